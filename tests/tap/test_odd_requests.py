"""A client may write anything: each part of our server goes on with params of a wrong type."""

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
def test_each_part_goes_on_after_odd_params(name: str) -> None:
    part = scenarios()[name](SilentPeer())
    part.opened = True
    meta = {f"{rev.META}protocolVersion": part.revision, f"{rev.META}clientCapabilities": {}}
    for method, usual in PARAMS.items():
        for path in paths(usual):
            for odd in ODD:
                params = {**changed(usual, path, odd), "_meta": meta}
                part._hear({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
                part._alarms.clear()
