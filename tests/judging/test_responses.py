"""Responses that answer no open request, and the clause each one counts under."""

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
RULE = importlib.import_module(f"{NAMESPACE}.conformance.basic.jsonrpc").answers_each_request_once

ECHO, ORPHAN = "jsonrpc-response-id-echo", "jsonrpc-no-orphan-response"
NOTE, SILENCE = "jsonrpc-notification-no-response", "jsonrpc-request-answered"

OPENING = [("us", 101, "initialize"), ("them", 101), ("note",)]
NAMELESS = ("error", None)

CASES: dict[str, tuple[list[tuple[Any, ...]], list[str]]] = {
    "all is well": ([("us", 1), ("them", 1)], []),
    "answers out of order": ([("us", 1), ("us", 2), ("them", 2), ("them", 1)], []),
    "a request without an answer": ([("us", 1)], [SILENCE]),
    "a cancelled request without an answer": ([("us", 1), ("cancel", 1)], []),
    "an answer to a request cancelled too late": ([("us", 1), ("cancel", 1), ("them", 1)], []),
    "an id as text": ([("us", 1), ("them", "1")], [ECHO]),
    "an id as text that was answered before": (
        [("us", "1"), ("them", "1"), ("us", 1), ("them", "1")],
        [ECHO],
    ),
    "two ids changed": ([("us", 1), ("us", 2), ("them", "1"), ("them", "2")], [ECHO, ECHO]),
    "an error without the id of its request": ([("us", 1), NAMELESS], [ECHO]),
    "a changed id and an orphan": ([("us", 1), ("them", "1"), ("them", "x")], [ECHO, ORPHAN]),
    "an orphan long after a request in vain": (
        [("us", 1), ("scenario", "next"), ("them", "x")],
        [SILENCE, ORPHAN],
    ),
    "a second answer": ([("us", 1), ("them", 1), ("them", 1)], [ORPHAN]),
    "a second answer to a cancelled request, while another one waits": (
        [("us", 1), ("cancel", 1), ("us", 2), ("them", 1), ("error", 1), ("them", 2)],
        [ORPHAN],
    ),
    "a second answer to a cancelled request, and then nothing": (
        [("us", 1), ("cancel", 1), ("us", 2), ("them", 1), ("error", 1)],
        [ORPHAN, SILENCE],
    ),
    "a response out of the blue": ([("us", 1), ("them", 1), ("them", 7)], [ORPHAN]),
    "an answer to a notification": ([("note",), NAMELESS], [NOTE]),
    "a response out of the blue, after a notification": ([("note",), ("them", "x")], [ORPHAN]),
    "an answer to a notification, after an older answer": (
        [("us", 1), ("note",), ("them", 1), NAMELESS],
        [NOTE],
    ),
    "an answer when the notification is long past": (
        [("note",), ("us", 1), ("them", 1), ("us", 2), ("them", 2), ("them", None)],
        [ORPHAN],
    ),
    "an error for a broken line": ([("broken",), NAMELESS, ("us", 1), ("them", 1)], []),
    "an error for a broken line, under the last id": (
        [("us", 1), ("them", 1), ("broken",), ("error", 1)],
        [],
    ),
    "a second answer after a broken line": (
        [("us", 1), ("them", 1), ("broken",), ("them", 1)],
        [ORPHAN],
    ),
    "a late error for a broken line": (
        [("broken",), ("scenario", "next"), ("us", 1), ("them", 1), NAMELESS],
        [],
    ),
    "a late result for a broken line": (
        [("broken",), ("scenario", "next"), ("us", 1), ("them", 1), ("them", None)],
        [ORPHAN],
    ),
    "an error for a malformed notification": (
        [("malformed",), ("us", 1), ("them", 1), NAMELESS],
        [f"{NOTE} warn"],
    ),
    "a result for a malformed notification": ([("malformed",), ("them", None)], [NOTE]),
}


def play(transcript: Transcript, what: str, own: Any = None, method: str = "ping") -> None:
    if what == "scenario":
        transcript.scenario = own
    elif what in {"them", "error"}:
        body = {"result": {}} if what == "them" else {"error": {"code": -32600, "message": "no"}}
        raw = json.dumps({"jsonrpc": "2.0", "id": own, **body}).encode()
        transcript.heard(Line(raw, len(raw)))
    else:
        name = "notifications/cancelled" if what == "cancel" else "notifications/initialized"
        value: Any = {"jsonrpc": "2.0", "method": name, "params": {"requestId": own}}
        if what == "us":
            value = {"jsonrpc": "2.0", "id": own, "method": method}
        elif what == "malformed":
            value["params"] = [1]
        elif what == "broken":
            value = None
        raw = json.dumps(value).encode()
        transcript.said(raw, value, malformed=what in {"broken", "malformed"})


@pytest.mark.parametrize("name", CASES)
def test_response_is_reported_under_the_expected_clause(name: str) -> None:
    events, expected = CASES[name]
    transcript = Transcript("2025-11-25", clock=lambda: 0.0)
    for event in [*OPENING, ("us", 102), ("them", 102), *events]:
        play(transcript, *event)

    record = Record(transcript, ServerProfile(Pace(5.0)))
    found = [
        seen.clause + (f" {seen.mild}" if seen.mild else "")
        for seen in RULE(record)
        if not seen.passed
    ]

    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize(("seconds", "expected"), [(4.0, []), (20.0, [SILENCE])])
def test_silence_is_no_finding_while_the_method_was_answered_after_a_longer_time(
    seconds: float, expected: list[str]
) -> None:
    """A server without a network may take 16 seconds for each of its lists."""
    now = 0.0
    transcript = Transcript("2025-11-25", clock=lambda: now)
    opening: list[tuple[Any, ...]] = [*OPENING, ("us", 1, "resources/list"), ("us", 2), ("them", 2)]
    for event in opening:
        play(transcript, *event)
    now = 16.0
    play(transcript, "them", 1)
    play(transcript, "us", 3, "resources/list")
    now += seconds
    transcript.input_closed()
    now += 60.0
    transcript.happened("it exited")

    record = Record(transcript, ServerProfile(Pace(5.0)))

    assert [seen.clause for seen in RULE(record) if not seen.passed] == expected


def test_a_request_without_an_answer_shows_the_exit_of_the_server() -> None:
    transcript = Transcript("2025-11-25", clock=lambda: 0.0)
    play(transcript, "us", 101, "initialize")
    play(transcript, "them", 101)
    play(transcript, "note")
    play(transcript, "us", 102)
    ending = Ending(Step.ITSELF, status=3, seconds=0.0)

    found = [s for s in RULE(Record(transcript, ServerProfile(Pace(5.0)), ending)) if not s.passed]

    assert [(seen.clause, seen.actual) for seen in found] == [
        (SILENCE, "the server left (status 3)")
    ]
