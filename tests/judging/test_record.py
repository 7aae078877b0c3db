"""The record of a connection, as rules on all traffic read it."""

import importlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from mcp_touchstone.catalog.clause import Breach
from mcp_touchstone.catalog.home import NAMESPACE
from mcp_touchstone.catalog.loader import GATEWAYS, load
from mcp_touchstone.catalog.revision import LATEST_LEGACY, META
from mcp_touchstone.catalog.scenario import DISCOVERY, Seen
from mcp_touchstone.connection.server_profile import ServerProfile
from mcp_touchstone.judging.ambient import Record, breaches, origins
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.wire.exchange import Exchange, Origin
from mcp_touchstone.wire.framing import Line, encode
from mcp_touchstone.wire.lifecycle import Role
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.sse import ServerEvent
from mcp_touchstone.wire.transcript import Entry, Transcript
from tests.bridge_client import notification, request
from tests.cases import cases


def record(revision: str, *said: object) -> Record:
    transcript = Transcript(revision, clock=lambda: 0.0)
    for message in said:
        transcript.said(encode(message), message)
    return Record(transcript, ServerProfile(Pace(1.0)))


def initialize(**capabilities: object) -> dict[str, object]:
    return request("initialize", {"capabilities": capabilities})


def hears(seen: Record, message: object, *origin: Origin) -> None:
    raw = encode(message).rstrip(b"\n")
    seen.transcript.heard(Line(raw, len(raw)), *origin)


def chapter(name: str) -> Any:
    load()
    return importlib.import_module(f"{NAMESPACE}.conformance.{name}")


def answered(
    number: int, verb: str, status: int, began: float, headed: float, session: str = "a"
) -> Exchange:
    sent = (("Accept", "text/event-stream"), ("Mcp-Session-Id", session))
    return Exchange(number, verb, 0, sent, began, status, headed=headed)


@cases(
    ([], []),
    ([("DELETE", 204, 0.5, 0.9)], []),
    ([("POST", 200, 0.5, 3.0)], []),
    ([("POST", 404, 2.5, 3.0)], []),
    ([("POST", 200, 2.5, 3.0, "another")], []),
    ([("POST", 200, 2.5, 3.0)], [False]),
    ids=["alone", "deleted", "overtaken", "ended", "another session", "outlived"],
)
def test_refused_get_is_judged_only_in_a_session_that_outlived_it(
    others: list[Any], judged: list[bool]
) -> None:
    seen = record("2025-11-25")
    seen.transcript.exchanges.append(answered(1, "GET", 404, 1.0, 2.0))
    for number, other in enumerate(others, 2):
        seen.transcript.exchanges.append(answered(number, *other))

    rule = chapter("http.endpoint").opens_a_stream_for_get_or_refuses_with_405

    assert [one.passed for one in rule(seen)] == judged


def test_session_uses_the_capabilities_of_its_last_initialize() -> None:
    call = request("tools/call", {"_meta": {}}, id=2)
    found = record("2025-11-25", call, initialize(roots={}), call, initialize(), call)

    assert [found.declared(n) for n in range(1, 6)] == [{}, {"roots": {}}, {"roots": {}}, {}, {}]


def test_stateless_request_uses_the_capabilities_of_its_own_meta() -> None:
    meta: dict[str, object] = {META + "clientCapabilities": {"roots": {}}}
    able, odd = request("tools/call", {"_meta": meta}), request("tools/call", [1], id=2)
    found = record("2026-07-28", able, odd, [able], 7)

    assert [found.declared(n) for n in range(1, 5)] == [{"roots": {}}, {}, {}, {}]


def test_messages_recorded_later_appear_in_the_next_iteration() -> None:
    found = record("2025-11-25", initialize())
    hears(found, notification("notifications/message", {}))
    assert [m.method for _, m in found.messages(Role.NOTIFICATION)] == ["notifications/message"]
    hears(found, {"jsonrpc": "2.0", "id": 1, "result": {"protocolVersion": "2025-11-25"}})
    assert [m.role for _, m in found.messages()] == [Role.NOTIFICATION, Role.ANSWER]
    assert [m.role for _, m in found.messages(Role.ANSWER)] == [Role.ANSWER]


def test_reply_succeeds_only_with_a_final_result_without_error() -> None:
    def replied(**body: object) -> bool:
        return Reply(1, 2, body).succeeded

    assert replied(result={})
    assert replied(result={"resultType": "complete", "isError": False})
    assert not replied(result={"resultType": "input_required"})
    assert not replied(result={"isError": True})
    assert not replied(result=[])
    assert not replied(error={"code": 1})
    assert not Reply(1, why="silence").succeeded


@cases(
    ([], [False]),
    ([("DELETE", 204, 2.0, 2.5)], []),
    ([("DELETE", 204, 4.0, 4.5)], [False]),
    ids=["open session", "ended session", "session that ended later"],
)
def test_stream_closed_early_is_judged_only_in_an_open_session(
    then: list[Any], judged: list[bool]
) -> None:
    seen = record("2025-06-18", request("tools/list"))
    seen.transcript.exchanges.append(closed_stream())
    seen.transcript.exchanges += [answered(n, *other) for n, other in enumerate(then, 2)]

    rule = chapter("http.streams").keeps_the_stream_open_until_the_response

    assert [each.passed for each in rule(seen)] == judged


def test_stream_of_a_cancelled_request_may_end_without_a_response() -> None:
    cancelled = notification("notifications/cancelled", {"requestId": 1})
    seen = record("2025-06-18", request("tools/list"), cancelled)
    seen.transcript.exchanges.append(closed_stream())

    assert list(chapter("http.streams").keeps_the_stream_open_until_the_response(seen)) == []


@pytest.mark.parametrize(("offered", "judged"), [("2025-11-25", [False]), ("1900-01-01", [])])
def test_initialize_with_another_revision_need_not_be_primed(
    offered: str, judged: list[bool]
) -> None:
    seen = record("2025-11-25")
    asked = request("initialize", {"protocolVersion": offered})
    line = seen.transcript.said(encode(asked), asked)
    events = (("Content-Type", "text/event-stream"),)
    exchange = Exchange(1, "POST", line, (), 1.0, 200, events)
    exchange.events.append(ServerEvent(None, id="1"))
    seen.transcript.exchanges.append(exchange)
    answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
    hears(seen, answer, Origin(exchange, exchange.events[0]))

    assert [one.passed for one in chapter("http.streams").primes_the_client(seen)] == judged


def test_rules_on_streams_read_the_lines_of_a_record_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = record("2025-11-25")
    for number in range(1, 4):
        asked = request("ping", id=number)
        line = seen.transcript.said(encode(asked), asked)
        exchange = Exchange(number, "POST", line, (), 1.0, 200)
        seen.transcript.exchanges.append(exchange)
        hears(seen, {"jsonrpc": "2.0", "id": number, "result": {}}, Origin(exchange))
    read = []
    lines = Record.lines

    def counted(one: Record) -> Iterator[Entry]:
        read.append(one)
        return lines(one)

    monkeypatch.setattr(Record, "lines", counted)

    streams = chapter("http.streams")
    found = [streams.answered_in(seen, exchange) for exchange in seen.transcript.exchanges]

    assert [entry.n for entry in found] == [2, 4, 6]
    assert len(read) == 1


@cases(
    ((1, 1), "a", (True, Breach.FAIL)),
    ((1, 1), "b", (False, Breach.FAIL)),
    ((1, 2), "a", (True, Breach.WARN)),
    ((1, 2), "b", (False, Breach.WARN)),
    ((2, 1), "a", (True, Breach.WARN)),
)
def test_completion_on_another_stream_is_before_no_elicitation(
    streams_of: tuple[int, int], named: str, judged: tuple[bool, Breach]
) -> None:
    """An unknown id fails only if an elicitation was sent before the completion."""
    seen = record("2025-11-25")
    link = {"mode": "url", "elicitationId": "a", "url": "https://example.com", "message": "?"}
    asked = request("elicitation/create", link, id=7)
    done = notification("notifications/elicitation/complete", {"elicitationId": named})
    came = [(asked, streams_of[0]), (done, streams_of[1])]
    for message, number in came if streams_of != (2, 1) else reversed(came):
        exchange = Exchange(number, "POST", 0, (), 1.0)
        same = next((e for e in seen.transcript.exchanges if e.number == number), exchange)
        seen.transcript.exchanges += [same] if same is exchange else []
        hears(seen, message, Origin(same))

    rules = chapter("questions.elicitation")
    found = [one for one in rules.completes_only_known_elicitations(seen) if one.expected]

    assert [(one.passed, one.mild or Breach.FAIL) for one in found][-1] == judged


@pytest.mark.parametrize(("streams_of", "judged"), [((1, 1), [False]), ((1, 2), [])])
def test_progress_on_two_streams_has_no_order(
    streams_of: tuple[int, int], judged: list[bool]
) -> None:
    seen = record("2025-11-25")
    call = request("ping", {"_meta": {"progressToken": "t"}})
    seen.transcript.said(encode(call), call)
    exchanges = {number: Exchange(number, "POST", 0, (), 1.0) for number in streams_of}
    for number, value in zip(streams_of, (2, 1), strict=True):
        params = {"progressToken": "t", "progress": value}
        hears(seen, notification("notifications/progress", params), Origin(exchanges[number]))

    found = list(chapter("basic.progress").reports_progress_consistently(seen))

    assert [one.passed for one in found if one.clause == "progress-increases"] == judged


def closed_stream() -> Exchange:
    """Return the stream of the request on line 1, which the server closed without a message."""
    events = (("Content-Type", "text/event-stream"),)
    return Exchange(1, "POST", 1, (), 1.0, 200, events, headed=1.5, ended=3.0)


def test_the_capabilities_of_many_lines_are_found_in_one_walk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    walked = 0

    class Counted(Transcript):
        def __iter__(self) -> Iterator[Entry]:
            nonlocal walked
            walked += 1
            return super().__iter__()

    monkeypatch.setitem(globals(), "Transcript", Counted)
    found = record("2025-11-25", initialize(roots={}), *(notification("x") for _ in range(9)))

    assert [found.declared(n) for n in range(1, 11)] == [{"roots": {}}] * 10
    assert walked == 1


def test_a_rule_about_one_exchange_reads_no_other() -> None:
    rule = next(one for one in load(GATEWAYS).ambients if one.of)
    clause, *_ = rule.clauses
    rule = replace(rule, watch=lambda _: iter([Seen(clause.id, passed=False)]))
    own, other = (replace(record(LATEST_LEGACY), scenario=one) for one in (rule.of, "another"))

    assert list(breaches(rule, own, [clause])) == [(clause.id, None)]
    assert list(breaches(rule, other, [clause])) == []
    assert list(origins(rule, [own, other], [clause])) == [(clause.id, DISCOVERY)]
