"""Requests with an invalid value, by which a malformed answer counts less."""

from typing import Any

from mcp_touchstone.judging.invalid_requests import has_invalid_value
from tests.cases import cases

TOOL = {"name": "read", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}}


@cases(
    ("prompts/get", {"name": "p", "arguments": {"topic": 42}}),
    ("prompts/get", {"name": "p", "arguments": ["topic"]}),
    ("tools/call", {"name": 7}),
    ("tools/call", {"name": "read", "arguments": {"n": "many"}}),
    ("tools/list", {"cursor": 42}),
    ("resources/read", {"uri": None}),
    ("completion/complete", {"argument": {"name": "a", "value": 1}}),
    ("ping", []),
)
def test_params_of_another_type_are_invalid(method: str, params: Any) -> None:
    assert has_invalid_value({"method": method, "params": params}, [TOOL])


@cases(
    ("prompts/get", {"name": "p", "arguments": {"topic": "42"}}),
    ("prompts/get", {"name": "p"}),
    ("tools/call", {"name": "read", "arguments": {"n": 1}}),
    ("tools/call", {"name": "unknown", "arguments": {"n": "many"}}),
    ("tools/list", {}),
    ("resources/read", {"uri": "unknown://"}),
    ("completion/complete", {"argument": {"name": "a", "value": ""}}),
)
def test_params_of_the_right_type_are_valid(method: str, params: Any) -> None:
    assert not has_invalid_value({"method": method, "params": params}, [TOOL])


def test_a_request_without_params_and_a_line_without_json_are_valid() -> None:
    assert not has_invalid_value({"method": "ping"}, [])
    assert not has_invalid_value(None, [])
