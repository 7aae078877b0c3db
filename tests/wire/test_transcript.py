"""The transcript: numbered in order, and bounded."""

import json
import time
import tracemalloc
from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from mcp_touchstone.wire import transcript
from mcp_touchstone.wire.allowance import Allowance
from mcp_touchstone.wire.exchange import Exchange, Origin
from mcp_touchstone.wire.framing import Fault, Line, LineSplitter, read
from mcp_touchstone.wire.lifecycle import Phase, Role
from mcp_touchstone.wire.near_miss import Slip
from mcp_touchstone.wire.sse import ServerEvent
from mcp_touchstone.wire.transcript import Entry, Source, Transcript
from tests.cases import cases


@pytest.fixture
def record() -> Transcript:
    ticks = count()
    return Transcript("2025-11-25", clock=lambda: float(next(ticks)), label="shared 1")


def hear(record: Transcript, *lines: bytes) -> list[Entry]:
    before = len(record)
    for raw in lines:
        record.heard(Line(raw, len(raw)))
    return record.since(before)


def ask(record: Transcript, request_id: Any, method: str = "ping", **how: Any) -> int:
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return record.said(json.dumps(message).encode() + b"\n", message, **how)


def test_an_empty_body_is_named() -> None:
    json = (("Content-Type", "application/json"),)
    empty = Exchange(1, "POST", 1, (), 0.0, status=200, headers=json, ended=1.0)

    assert str(empty) == "HTTP 200, application/json (its body is empty)"
    assert str(replace(empty, messages=1)) == "HTTP 200, application/json"
    assert str(replace(empty, ended=None)) == "HTTP 200, application/json"


def test_entries_are_numbered_from_one_in_order_of_arrival(record: Transcript) -> None:
    asked = ask(record, 1)
    hear(record, b'{"id":1,"result":{}}')
    left = record.happened("the server left")

    assert (asked, left) == (1, 3)
    assert [entry.n for entry in record] == [1, 2, 3]
    assert [entry.source for entry in record] == [Source.US, Source.THEM, Source.EVENT]
    assert [entry.at for entry in record] == [0.0, 1.0, 2.0]
    assert record[2].raw == b'{"id":1,"result":{}}'


def test_answer_names_the_line_of_its_request(record: Transcript) -> None:
    record.happened("something")
    asked = ask(record, "a", "tools/list")

    (entry,) = hear(record, b'{"id":"a","result":{}}')

    assert [(m.role, m.answers, m.method) for m in entry.messages] == [
        (Role.ANSWER, asked, "tools/list")
    ]


def test_entry_records_the_running_scenario(record: Transcript) -> None:
    record.scenario = "one"
    ask(record, 1)
    record.scenario = "two"
    hear(record, b"{}")

    assert [entry.scenario for entry in record] == ["one", "two"]


def test_sent_line_is_stored_without_line_feed_and_with_its_value(record: Transcript) -> None:
    ask(record, 1)

    entry = record[1]

    assert entry.raw == b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    assert entry.length == len(entry.raw) + 1
    assert entry.value == {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def test_malformed_and_optional_requests_are_not_unanswered(record: Transcript) -> None:
    ask(record, 1)
    ask(record, 2, required=False)
    n = ask(record, 3, malformed=True)

    assert record[n].malformed
    assert [asked.line for asked in record.session.unanswered()] == [1]


def test_iteration_ignores_entries_added_meanwhile(record: Transcript) -> None:
    hear(record, b"{}", b"{}")

    seen = [record.happened("later") for _ in record]

    assert seen == [3, 4]


def test_invalid_utf_8_is_shown_with_replacement_characters(record: Transcript) -> None:
    (entry,) = hear(record, b"\xff{")

    assert entry.text == "\ufffd{"


@pytest.mark.parametrize("more", [-1, 0])
def test_long_line_is_kept_compressed_and_read_as_it_was(record: Transcript, more: int) -> None:
    raw = b"\xff".ljust(transcript.PACKED + more, b"a")

    (heard,) = hear(record, raw)
    sent = record[record.said(raw + b"\n", None)]

    for entry in (heard, sent):
        assert entry.raw == raw
        assert entry.text == raw.decode("utf-8", "replace")
        assert (len(entry.kept) < len(raw) / 10) is (more == 0)


def test_closing_the_input_closes_the_session(record: Transcript) -> None:
    record.input_closed()

    assert record.session.phase is Phase.CLOSING
    assert record[1].text == "we closed its input"


def test_unreadable_line_is_kept_without_messages(record: Transcript) -> None:
    (entry,) = hear(record, b"Server running")

    assert entry.messages == ()
    assert entry.reading is not None
    assert Fault.NOT_JSON in entry.reading.faults


def test_messages_on_one_line_become_separate_entries(record: Transcript) -> None:
    ask(record, 1)
    ask(record, 2)

    entries = hear(record, b'{"id":1,"result":{}}{"id":2,"result":{}}')

    assert [e.messages[0].answers for e in entries] == [1, 2]
    assert record.session.unanswered() == []


PRETTY = json.dumps({"id": 1, "result": {"a": [1, {"b": "}"}], "c": {}}}, indent=2).encode()


def test_pretty_printed_answer_is_read_on_its_last_line(record: Transcript) -> None:
    ask(record, 1)

    entries = hear(record, *PRETTY.split(b"\n"))

    assert [len(entry.messages) for entry in entries] == [0] * (len(entries) - 1) + [1]
    assert entries[-1].messages[0].role is Role.ANSWER
    assert entries[-1].spread == len(entries)
    assert entries[-1].reading is not None
    assert entries[-1].reading.faults == {Fault.SPREAD}


def test_message_after_an_unfinished_piece_is_read(record: Transcript) -> None:
    ask(record, 1)

    entries = hear(record, b"{ loading", b'{"id":1,"result":{}}')

    assert entries[-1].messages[0].role is Role.ANSWER


def test_message_after_a_banner_in_braces_is_read(record: Transcript) -> None:
    ask(record, 1)

    entries = hear(record, b"{oops", b"really }", *PRETTY.split(b"\n"))

    assert entries[-1].messages[0].role is Role.ANSWER


def test_correction_of_earlier_lines_replaces_no_recorded_entry(record: Transcript) -> None:
    asked = ask(record, 1)
    (entry,) = hear(record, b'{"jsonrpc":"2.0","id":"1","result":{}}')
    assert record.answer_to(asked) is None
    assert record.once("slips", lambda: [one.slip for one in record]) == [None, None]

    record.read_on(Slip.ID_AS_TEXT)

    found = record.answer_to(asked)
    assert found is not None
    assert found[0] is record[entry.n] is list(record)[-1] is record.since(asked)[-1]
    assert (record[entry.n].slip, entry.slip) == (Slip.ID_AS_TEXT, None)
    assert record._entries[-1] is entry
    assert record.once("slips", lambda: [one.slip for one in record]) == [None, Slip.ID_AS_TEXT]


def test_unfinished_pieces_are_read_in_linear_time() -> None:
    """Quadratic time here, under the lock, would delay every deadline."""
    record = Transcript("2025-11-25", clock=lambda: 0.0)
    begun = time.process_time()

    hear(record, b'{"a": [', *[b'"' + b"x" * 4000 + b'", {}'] * 3000)

    assert time.process_time() - begun < 10
    assert hear(record, b'{"id":1,"method":"ping"}')[0].messages


def test_flood_of_lines_is_cut_off(record: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "ENTRIES_LIMIT", 10)

    hear(record, *[b"{}"] * 50)

    assert len(record) == 11
    assert "10 lines" in record.overflow


def test_flood_of_bytes_is_cut_off(record: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "BYTES_LIMIT", 2**20)

    hear(record, *[b"x" * 2**18] * 20)

    assert len(record) == 5
    assert "1 MiB" in record.overflow


def test_multi_line_messages_may_exceed_the_line_limit_for_a_while(
    record: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "ENTRIES_LIMIT", 30)
    message = json.dumps({"jsonrpc": "2.0", "method": "x", "params": dict.fromkeys("abcdef", 1)})
    lines = json.dumps(json.loads(message), indent=1).encode().split(b"\n")

    for _ in range(4):
        hear(record, *lines)

    assert len(record) > 30
    assert not record.overflow

    for _ in range(30):
        hear(record, *lines)

    assert record.overflow


def test_flood_of_messages_on_one_line_is_cut_off(
    record: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "ENTRIES_LIMIT", 10)

    hear(record, b"{}" * 100_000)

    assert len(record) == 11


def asked(n: int) -> dict[str, Any]:
    said = {"role": "user", "content": {"type": "text", "text": "x" * 500}}
    params = {"messages": [said], "maxTokens": 10}
    return {"jsonrpc": "2.0", "id": f"s{n}", "method": "sampling/createMessage", "params": params}


def listed(n: int) -> dict[str, Any]:
    tools = [{"name": f"t{n}-{i}", "inputSchema": {"type": "object"}} for i in range(50)]
    return {"jsonrpc": "2.0", "id": n, "result": {"tools": tools}}


def noted(_: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x"}}


@cases(noted, asked, listed)
def test_memory_of_a_transcript_is_bounded_by_its_allowance(made: Any) -> None:
    limit = 2**20
    full = Transcript("2025-11-25", clock=time.monotonic, allowance=Allowance(limit))
    lines = (json.dumps(made(n)).encode() for n in count())
    tracemalloc.start()
    try:
        while not full.overflow:
            hear(full, next(lines))
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert full.limit.startswith("the server wrote more than")
    assert taken < 1.5 * limit


def test_answers_to_the_server_count_against_the_allowance() -> None:
    full = Transcript("2025-11-25", clock=time.monotonic, allowance=Allowance(2**16))

    for n in range(200):
        answer = {"jsonrpc": "2.0", "id": n, "result": {}}
        full.said(json.dumps(answer).encode(), answer)

    assert full.limit


def test_headers_and_ids_of_events_count_against_the_allowance() -> None:
    full = Transcript("2025-11-25", clock=time.monotonic, allowance=Allowance(2**20))
    events = [ServerEvent(None, id=f"{n}" * 1000) for n in range(100)]
    one = Exchange(1, "GET", 0, (), 0.0, headers=(("X", "y" * 10_000),), events=events)

    while not full.overflow and one.number < 100:
        one.number += 1
        full.took(one)

    assert full.limit


def test_overlong_line_is_truncated_and_ends_the_recording(record: Transcript) -> None:
    splitter = LineSplitter(limit=10_000)
    for line in splitter.feed(b"x" * 20_000 + b"\n{}\n"):
        record.heard(line)

    (entry,) = record

    assert (len(entry.raw), entry.length) == (4096, 20_000)
    assert "20,000 bytes" in record.overflow


def test_own_lines_and_events_are_recorded_after_a_flood(record: Transcript) -> None:
    record.overflow = "too much"

    ask(record, 1)
    record.happened("the server ended")

    assert [entry.source for entry in record] == [Source.US, Source.EVENT]


def test_reading_of_an_entry_equals_a_second_reading(record: Transcript) -> None:
    (entry,) = hear(record, b'{"a":NaN}')

    assert entry.reading == read(Line(entry.raw, entry.length))


def test_order_is_known_on_one_pipe_and_in_one_http_stream_only() -> None:
    posts = [Exchange(number=n, verb="POST", line=n, sent=(), began=0.0) for n in (1, 2)]

    def line(n: int, origin: Origin | None = None) -> Entry:
        return Entry(n, 0.0, Source.THEM, b"", 0, origin=origin)

    assert line(2).follows(line(1))
    assert not line(1).follows(line(2))
    assert line(2, Origin(posts[0])).follows(line(1, Origin(posts[0])))
    assert not line(2, Origin(posts[1])).follows(line(1, Origin(posts[0])))
