"""Events of a connection: each sentence is written once, and read as it was written."""

import ast

import pytest

from mcp_touchstone.wire.events import Happened
from tests.commands import CHECKOUT


@pytest.mark.parametrize("event", Happened)
def test_a_sentence_is_read_as_its_event(event: Happened) -> None:
    more = "/canary.json" if event.endswith(" ") else ""

    assert Happened.of(event + more) is event


@pytest.mark.parametrize(
    "sentence", ["", "the client ended early", "the client closed the input", "we sent"]
)
def test_another_sentence_is_no_event(sentence: str) -> None:
    assert Happened.of(sentence) is None


def test_no_other_file_has_the_sentence_of_an_event() -> None:
    known = {one.strip() for one in Happened}
    found = set()
    for folder in ("src", "conformance", "security_suite"):
        for path in (CHECKOUT / folder).rglob("*.py"):
            nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
            parts = {
                one for node in nodes if isinstance(node, ast.JoinedStr) for one in node.values
            }
            for node in nodes:
                value = node.value if isinstance(node, ast.Constant) else None
                text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
                if node not in parts and isinstance(text, str) and text.strip() in known:
                    found.add(path.name)

    assert found == {"events.py"}
