"""The transcript of a live connection: threads write it one at a time, and wait for it."""

import json
import threading
import time
from functools import partial

import pytest

from mcp_touchstone.transport.live_transcript import LiveTranscript
from mcp_touchstone.wire import transcript
from mcp_touchstone.wire.framing import Line
from mcp_touchstone.wire.lifecycle import Role
from tests.wire.test_transcript import ask, hear

LONG = 20.0
"""Seconds of patience where the thing waited for happens at once."""


@pytest.fixture
def record() -> LiveTranscript:
    return LiveTranscript("2025-11-25", clock=time.monotonic)


def test_wait_ends_when_its_condition_becomes_true(record: LiveTranscript) -> None:
    later = threading.Timer(0.05, lambda: hear(record, b'{"method":"hello"}'))
    later.start()

    found = record.wait(lambda: [e for e in record if e.messages], LONG)
    later.join()

    assert found[0].messages[0].method == "hello"


def test_wait_returns_at_once_when_its_condition_is_true(record: LiveTranscript) -> None:
    assert record.wait(lambda: "here", 0.0) == "here"
    assert record.wait(lambda: "here", -5.0) == "here"


def test_wait_ends_at_its_timeout(record: LiveTranscript) -> None:
    begun = time.monotonic()

    assert not record.wait(lambda: False, 0.05)
    assert time.monotonic() - begun >= 0.05


@pytest.mark.parametrize("end", ["finished", "overflow"])
def test_wait_ends_with_the_output_of_the_server(
    record: LiveTranscript, end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcript, "ENTRIES_LIMIT", 0)
    action = record.finished if end == "finished" else lambda: record.heard(Line(b"{}", 2))
    later = threading.Timer(0.05, action)
    later.start()
    begun = time.monotonic()

    assert not record.wait(lambda: False, LONG)
    assert time.monotonic() - begun < LONG / 2
    later.join()


def test_message_before_the_end_is_seen(record: LiveTranscript) -> None:
    hear(record, b'{"method":"last words"}')
    record.finished()

    assert record.wait(lambda: len(record) == 1, 0.0)


def test_concurrent_writers_and_readers_agree_on_one_order(record: LiveTranscript) -> None:
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
    assert record.session.unanswered() == []
    for entry in entries:
        for message in entry.messages:
            assert message.role is Role.ANSWER
            assert message.answers is not None
            assert record[message.answers].value["id"] == message.value["id"]
