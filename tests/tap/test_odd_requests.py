"""A client may write anything: each part of our server goes on with params of a wrong type."""

import json
from typing import Any

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.parts.scenarios import scenarios
from tests.odd_values import ODD, changed, paths
from tests.silent_peer import SilentPeer

Json = dict[str, Any]

PARAMS: dict[str, Json] = {
    "tools/list": {"cursor": "a"},
    "tools/call": {
        "name": "add_numbers",
        "arguments": {"a": 1, "b": 2},
        "inputResponses": {"q": {}},
    },
    "prompts/get": {"name": "p", "arguments": {"x": "y"}},
    "resources/read": {"uri": "u:x"},
    "resources/subscribe": {"uri": "u:x"},
    "completion/complete": {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a"}},
    "logging/setLevel": {"level": "info"},
    "subscriptions/listen": {"notifications": {"toolsListChanged": True}},
    "tasks/get": {"taskId": "t"},
    "tasks/result": {"taskId": "t"},
}


@pytest.mark.parametrize("name", sorted(scenarios()))
def test_each_part_answers_odd_params_at_most_once(name: str) -> None:
    peer = SilentPeer()
    part = scenarios()[name](peer)
    part.opened = True
    meta = {f"{rev.META}protocolVersion": part.revision, f"{rev.META}clientCapabilities": {}}
    odd_ones = (
        (method, changed(usual, path, odd))
        for method, usual in PARAMS.items()
        for path in paths(usual)
        for odd in ODD
    )
    for number, (method, params) in enumerate(odd_ones):
        full = {**params, "_meta": meta}
        part._hear({"jsonrpc": "2.0", "id": number, "method": method, "params": full})
        part._alarms.clear()

    said = [json.loads(line) for line in peer.lines]
    answers = [one for one in said if "id" in one and "method" not in one]
    ids = [one["id"] for one in answers]
    assert len({*ids}) == len(ids)
    assert {*ids} <= {*range(number + 1)}
    assert all(("result" in one) != ("error" in one) for one in answers)
