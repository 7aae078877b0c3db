"""The numbered record: in order, bounded, and safe between the reader and the scenario."""

import json
import threading
import time
from functools import partial
from itertools import count
from typing import Any

import pytest

from mcp_touchstone import transcript as module
from mcp_touchstone.framing import Fault, Line, LineSplitter, read
from mcp_touchstone.session import Phase, Role
from mcp_touchstone.transcript import Entry, Source, Transcript

LONG = 20.0
"""Seconds of patience where the thing waited for happens at once."""


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


# --- numbering


def test_entries_are_numbered_from_one_in_the_order_they_came(record: Transcript) -> None:
    asked = ask(record, 1)
    hear(record, b'{"id":1,"result":{}}')
    left = record.happened("the server left")

    assert (asked, left) == (1, 3)
    assert [entry.n for entry in record] == [1, 2, 3]
    assert [entry.source for entry in record] == [Source.US, Source.THEM, Source.EVENT]
    assert [entry.at for entry in record] == [0.0, 1.0, 2.0]
    assert record[2].raw == b'{"id":1,"result":{}}'


def test_an_answer_names_the_line_it_answers(record: Transcript) -> None:
    record.happened("something")
    asked = ask(record, "a", "tools/list")

    (entry,) = hear(record, b'{"id":"a","result":{}}')

    assert [(m.role, m.answers, m.method) for m in entry.messages] == [
        (Role.ANSWER, asked, "tools/list")
    ]


def test_an_entry_keeps_what_was_under_way(record: Transcript) -> None:
    record.scenario = "one"
    ask(record, 1)
    record.scenario = "two"
    hear(record, b"{}")

    assert [entry.scenario for entry in record] == ["one", "two"]


def test_our_line_is_kept_without_its_line_feed_and_with_its_value(record: Transcript) -> None:
    ask(record, 1)

    entry = record[1]

    assert entry.raw == b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
    assert entry.length == len(entry.raw) + 1
    assert entry.value == {"jsonrpc": "2.0", "id": 1, "method": "ping"}


def test_silence_to_a_line_broken_on_purpose_is_no_open_request(record: Transcript) -> None:
    ask(record, 1)
    ask(record, 2, required=False)
    n = ask(record, 3, malformed=True)

    assert record[n].malformed
    assert [asked.line for asked in record.unanswered()] == [1]


def test_a_walk_is_not_disturbed_by_what_comes_meanwhile(record: Transcript) -> None:
    hear(record, b"{}", b"{}")

    seen = [record.happened("later") for _ in record]

    assert seen == [3, 4]


def test_bytes_that_are_no_text_are_shown_all_the_same(record: Transcript) -> None:
    (entry,) = hear(record, b"\xff{")

    assert entry.text == "\ufffd{"


def test_the_end_of_input_closes_the_session(record: Transcript) -> None:
    record.input_closed()

    assert record.session.phase is Phase.CLOSING
    assert record[1].text == "we closed its input"


# --- lines that hold no message, half of one, or two


def test_an_unreadable_line_is_kept_and_holds_no_message(record: Transcript) -> None:
    (entry,) = hear(record, b"Server running")

    assert entry.messages == ()
    assert entry.reading is not None
    assert Fault.NOT_JSON in entry.reading.faults


def test_glued_messages_become_two_entries(record: Transcript) -> None:
    ask(record, 1)
    ask(record, 2)

    entries = hear(record, b'{"id":1,"result":{}}{"id":2,"result":{}}')

    assert [e.messages[0].answers for e in entries] == [1, 2]
    assert record.unanswered() == []


PRETTY = json.dumps({"id": 1, "result": {"a": [1, {"b": "}"}], "c": {}}}, indent=2).encode()


def test_a_pretty_printed_answer_is_read_on_its_last_line(record: Transcript) -> None:
    ask(record, 1)

    entries = hear(record, *PRETTY.split(b"\n"))

    assert [len(entry.messages) for entry in entries] == [0] * (len(entries) - 1) + [1]
    assert entries[-1].messages[0].role is Role.ANSWER
    assert entries[-1].spread == len(entries)
    assert entries[-1].reading is not None
    assert entries[-1].reading.faults == {Fault.SPREAD}


def test_a_message_between_the_pieces_is_read(record: Transcript) -> None:
    ask(record, 1)

    entries = hear(record, b"{ loading", b'{"id":1,"result":{}}')

    assert entries[-1].messages[0].role is Role.ANSWER


def test_a_banner_in_braces_swallows_no_message_behind_it(record: Transcript) -> None:
    ask(record, 1)

    entries = hear(record, b"{oops", b"really }", *PRETTY.split(b"\n"))

    assert entries[-1].messages[0].role is Role.ANSWER


def test_pieces_that_never_fit_are_read_once() -> None:
    """Quadratic time here, under the lock, kept every deadline from being held."""
    record = Transcript("2025-11-25", clock=lambda: 0.0)
    begun = time.process_time()

    hear(record, b'{"a": [', *[b'"' + b"x" * 4000 + b'", {}'] * 3000)

    assert time.process_time() - begun < 10
    assert hear(record, b'{"id":1,"method":"ping"}')[0].messages


# --- limits


def test_a_flood_of_lines_is_cut_off(record: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENTRIES_LIMIT", 10)

    hear(record, *[b"{}"] * 50)

    assert len(record) == 11
    assert record.overflow == "it wrote more than 10 lines"


def test_a_flood_of_bytes_is_cut_off(record: Transcript, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BYTES_LIMIT", 2**20)

    hear(record, *[b"x" * 2**18] * 20)

    assert len(record) == 5
    assert record.overflow == "it wrote more than 1 MiB"


def test_messages_over_many_lines_are_not_taken_for_a_flood(
    record: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENTRIES_LIMIT", 30)
    message = json.dumps({"jsonrpc": "2.0", "method": "x", "params": dict.fromkeys("abcdef", 1)})
    lines = json.dumps(json.loads(message), indent=1).encode().split(b"\n")

    for _ in range(4):
        hear(record, *lines)

    assert len(record) > 30
    assert not record.overflow

    for _ in range(30):
        hear(record, *lines)

    assert record.overflow


def test_a_flood_glued_on_one_line_is_cut_off(
    record: Transcript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENTRIES_LIMIT", 10)

    hear(record, b"{}" * 100_000)

    assert len(record) == 11


def test_a_line_that_is_too_long_is_kept_cut_and_ends_the_listening(record: Transcript) -> None:
    splitter = LineSplitter(limit=10_000)
    for line in splitter.feed(b"x" * 20_000 + b"\n{}\n"):
        record.heard(line)

    (entry,) = record

    assert (len(entry.raw), entry.length) == (4096, 20_000)
    assert record.overflow == "it wrote a line of 20,000 bytes and more"


def test_what_we_do_is_still_recorded_after_a_flood(record: Transcript) -> None:
    record.overflow = "too much"

    ask(record, 1)
    record.happened("the server ended")

    assert [entry.source for entry in record] == [Source.US, Source.EVENT]


# --- waiting


def test_a_wait_ends_when_the_thing_is_seen(record: Transcript) -> None:
    later = threading.Timer(0.05, lambda: hear(record, b'{"method":"hello"}'))
    later.start()

    found = record.wait(lambda: [e for e in record if e.messages], LONG)
    later.join()

    assert found[0].messages[0].method == "hello"


def test_a_wait_that_is_already_true_does_not_wait(record: Transcript) -> None:
    assert record.wait(lambda: "here", 0.0) == "here"
    assert record.wait(lambda: "here", -5.0) == "here"


def test_a_wait_for_nothing_ends_in_time(record: Transcript) -> None:
    begun = time.monotonic()

    assert not record.wait(lambda: False, 0.05)
    assert time.monotonic() - begun >= 0.05


@pytest.mark.parametrize("end", ["finished", "overflow"])
def test_a_wait_ends_with_the_servers_output(
    record: Transcript, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENTRIES_LIMIT", 0)
    action = record.finished if end == "finished" else lambda: record.heard(Line(b"{}", 2))
    later = threading.Timer(0.05, action)
    later.start()
    begun = time.monotonic()

    assert not record.wait(lambda: False, LONG)
    assert time.monotonic() - begun < LONG / 2
    later.join()


def test_what_came_with_the_end_is_still_seen(record: Transcript) -> None:
    hear(record, b'{"method":"last words"}')
    record.finished()

    assert record.wait(lambda: len(record) == 1, 0.0)


# --- between threads


def test_writers_and_readers_in_many_threads_agree_on_one_order() -> None:
    record = Transcript("2025-11-25", clock=time.monotonic)
    each = 150

    def write(worker: int) -> None:
        for i in range(each):
            ask(record, f"{worker}-{i}")

    def asked(wanted: str) -> bool:
        return any(entry.value is not None and entry.value["id"] == wanted for entry in record)

    def answer(worker: int) -> None:
        for i in range(each):
            wanted = f"{worker}-{i}"
            assert record.wait(partial(asked, wanted), LONG)
            hear(record, json.dumps({"id": wanted, "result": {}}).encode())

    threads = [
        threading.Thread(target=work, args=(worker,))
        for worker in range(3)
        for work in (write, answer)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)

    entries = list(record)
    assert [entry.n for entry in entries] == list(range(1, 6 * each + 1))
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)
    assert record.unanswered() == []
    for entry in entries:
        for message in entry.messages:
            assert message.role is Role.ANSWER
            assert message.answers is not None
            assert record[message.answers].value["id"] == message.value["id"]


def test_what_is_read_twice_reads_the_same(record: Transcript) -> None:
    (entry,) = hear(record, b'{"a":NaN}')

    assert entry.reading == read(Line(entry.raw, entry.length))
