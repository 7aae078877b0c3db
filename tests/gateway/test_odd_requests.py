"""A gateway may write anything: our server and our rules go on with members of a wrong type."""

from collections.abc import Iterator
from typing import Any

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.judging.expected import Expected
from mcp_touchstone.parts.part import Part
from mcp_touchstone.parts.rich_upstream import LISTEN, ROUNDS, Rich
from mcp_touchstone.parts.troubled import Troubled
from mcp_touchstone.parts.upstream import DATA, UNKNOWN, Upstream, text_in
from tests.odd_values import ODD, changed, paths
from tests.silent_peer import SilentPeer

Json = dict[str, Any]

OWN_META = {
    f"{rev.META}clientCapabilities": {"sampling": {}, "elicitation": {"form": {}, "url": {}}},
    "progressToken": 1,
}
CALLED = {"mark": "m", "text": "t", "size": 4, "after": 1, "steps": 2, "what": "url", "only": "x"}
REQUESTS: dict[str, Json] = {
    "tools/list": {"cursor": "a"},
    "prompts/get": {"name": "p", "arguments": {"x": "y"}},
    "resources/read": {"uri": "u:x"},
    "completion/complete": {"ref": {"type": "ref/prompt", "name": "p"}},
    LISTEN: {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["u:x"]}},
    "tasks/get": {"taskId": "t"},
    "tasks/result": {"taskId": "t"},
    "tasks/cancel": {"taskId": "t"},
}
NOTIFICATIONS: dict[str, Json] = {
    "notifications/cancelled": {"requestId": 1},
    f"notifications/{UNKNOWN}": {"known": True},
}
FURTHER = ("tardy", "garbage", "unpaired", "grow", "subscribed", "withdraw", "afterwards", "rounds")
TOOLS = (*(one["name"] for one in (*DATA["tools"], *DATA["further"])), *FURTHER)


def messages(revision: str) -> Iterator[Json]:
    meta = {"_meta": {f"{rev.META}protocolVersion": revision, **OWN_META}}
    for method, params in NOTIFICATIONS.items():
        yield {"method": method, "params": params}
    for name in TOOLS:
        state = {"requestState": "ü/1", "inputResponses": {"q": {"action": "accept"}}}
        called = {"name": name, "arguments": CALLED, "task": {"ttl": 1}, **state}
        yield {"id": 1, "method": "tools/call", "params": {**called, **meta}}
        yield {"id": 2, "method": "tools/call", "params": {"name": name, **state, **meta}}
    for method, params in REQUESTS.items():
        yield {"id": 3, "method": method, "params": {**params, **meta}}


def playing(part: type[Part], revision: str) -> tuple[Part, SilentPeer]:
    own = {"modern": rev.is_modern(revision), "both": False, "versions": (revision,)}
    gateway = SilentPeer()
    played = type(part.__name__, (part,), own)(gateway)
    played.opened = True
    return played, gateway


@pytest.mark.parametrize("revision", [rev.LATEST_LEGACY, rev.LATEST_MODERN])
@pytest.mark.parametrize("part", [Upstream, Rich, Troubled])
def test_our_server_goes_on_after_odd_params(part: type[Part], revision: str) -> None:
    played, gateway = playing(part, revision)
    for usual in messages(revision):
        for path in paths(usual["params"]):
            for odd in ODD:
                message: Json = {"jsonrpc": "2.0", **usual}
                played._hear({**message, "params": changed(usual["params"], path, odd)})
                played._alarms.clear()
        played.gone = None
        gateway.lines.clear()

    played._hear({"jsonrpc": "2.0", "id": 9, "method": "resources/list", "params": {}})

    assert gateway.lines


def test_changes_are_told_to_a_subscription_to_an_odd_list() -> None:
    played, gateway = playing(Rich, rev.LATEST_MODERN)
    meta = {f"{rev.META}protocolVersion": rev.LATEST_MODERN, **OWN_META}
    for number, odd in enumerate(ODD):
        wanted = {"notifications": {"resourceSubscriptions": odd, "toolsListChanged": odd}}
        played._hear({"jsonrpc": "2.0", "id": number, "method": LISTEN, "params": wanted})
        listening: Json = {**wanted, "_meta": meta}
        played._hear({"jsonrpc": "2.0", "id": number, "method": LISTEN, "params": listening})

    params = {"name": "change", "_meta": meta}
    played._hear({"jsonrpc": "2.0", "id": "last", "method": "tools/call", "params": params})

    assert any(b'"last"' in line and b'"changed"' in line for line in gateway.lines)


def test_a_state_with_too_many_rounds_is_the_last_round() -> None:
    played, gateway = playing(Rich, rev.LATEST_MODERN)
    meta = {f"{rev.META}protocolVersion": rev.LATEST_MODERN, **OWN_META}
    params = {"name": "rounds", "requestState": "/" * (len(ROUNDS) + 1), "_meta": meta}

    played._hear({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})

    assert b"structuredContent" in gateway.lines[-1]


@pytest.mark.parametrize("odd", [one for one in ODD if not isinstance(one, str)])
def test_a_name_that_is_no_text_is_nobodys(odd: object) -> None:
    expected = Expected(prefix="a__", adds=frozenset({"own"}))

    assert text_in({"params": {"name": odd}}, "name") == ""
    assert expected.own([{"name": odd}, {"name": "a__echo"}, {"name": "own"}]) == [
        {"name": odd},
        {"name": "echo"},
    ]
