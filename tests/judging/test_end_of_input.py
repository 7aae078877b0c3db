"""Which shutdowns are judged: those with no request in flight when the input was closed."""

import importlib
import json
from typing import Any

import pytest

from mcp_touchstone.catalog.home import NAMESPACE
from mcp_touchstone.catalog.loader import load
from mcp_touchstone.connection.connection import Pace
from mcp_touchstone.discovery.recon import ServerProfile
from mcp_touchstone.judging.ambient import Record
from mcp_touchstone.transport.process import Ending, Step
from mcp_touchstone.wire.framing import Line
from mcp_touchstone.wire.transcript import Transcript

load()
RULE = importlib.import_module(f"{NAMESPACE}.conformance.basic.stdio").exits_when_its_input_ends

CLOSE: Any = None
CALL = {"id": 1, "method": "tools/call"}
CANCEL = {"method": "notifications/cancelled", "params": {"requestId": 1}}
LISTEN = {"id": 1, "method": "subscriptions/listen"}
DONE: dict[str, Any] = {"id": 1, "result": {}}
ASK = {"id": "a", "method": "roots/list"}
GIVE: dict[str, Any] = {"id": "a", "result": {"roots": []}}

CASES: dict[str, tuple[list[tuple[str, Any]], bool]] = {
    "nothing was sent": ([("us", CLOSE)], True),
    "an answered call": ([("us", CALL), ("them", DONE), ("us", CLOSE)], True),
    "an open call": ([("us", CALL), ("us", CLOSE)], False),
    "a call that was answered too late": ([("us", CALL), ("us", CLOSE), ("them", DONE)], False),
    "a cancelled call": ([("us", CALL), ("us", CANCEL), ("us", CLOSE)], False),
    "a cancelled call that was answered": (
        [("us", CALL), ("us", CANCEL), ("them", DONE), ("us", CLOSE)],
        True,
    ),
    "a cancelled subscription": ([("us", LISTEN), ("us", CANCEL), ("us", CLOSE)], True),
    "an answered request of the server": ([("them", ASK), ("us", GIVE), ("us", CLOSE)], True),
    "an open request of the server": ([("them", ASK), ("us", CLOSE)], False),
    "a request of the server that comes too late": ([("us", CLOSE), ("them", ASK)], False),
}


@pytest.mark.parametrize("name", CASES)
def test_a_shutdown_is_judged_only_with_no_request_in_flight(name: str) -> None:
    events, judged = CASES[name]
    transcript = Transcript("2025-11-25", clock=lambda: 0.0)
    for who, body in events:
        value = {"jsonrpc": "2.0", **(body or {})}
        raw = json.dumps(value).encode()
        if body is CLOSE:
            transcript.input_closed()
        elif who == "us":
            transcript.said(raw, value)
        else:
            transcript.heard(Line(raw, len(raw)))

    ending = Ending(Step.TERMINATED, -15, 5.0)
    found = list(RULE(Record(transcript, ServerProfile(Pace(5.0)), ending)))

    assert bool(found) == judged
    assert not any(seen.passed for seen in found)
