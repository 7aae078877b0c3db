"""Lines reach a process in order, and writing does not block."""

import os
import threading
from collections.abc import Iterator
from typing import IO

import pytest

from mcp_touchstone.transport.stdin_writer import Feed

SOON = 5.0
MUCH = b"x" * 1_000_000 + b"\n"


@pytest.fixture
def pipe_ends() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    reading, writing = os.pipe()
    with (
        os.fdopen(reading, "rb", buffering=0) as out,
        os.fdopen(writing, "wb", buffering=0) as into,
    ):
        yield out, into


PipeEnds = tuple[IO[bytes], IO[bytes]]


def test_write_that_fits_the_pipe_completes_at_once(pipe_ends: PipeEnds) -> None:
    out, into = pipe_ends

    assert Feed(into).write(b"one\n").is_set()

    assert out.read(4) == b"one\n"


def test_write_that_exceeds_the_pipe_completes_later_in_order(pipe_ends: PipeEnds) -> None:
    out, into = pipe_ends
    feed = Feed(into)

    written = [feed.write(MUCH), feed.write(b"behind\n")]
    assert not written[0].is_set()
    feed.close()

    assert b"".join(iter(lambda: out.read(65_536), b"")) == MUCH + b"behind\n"
    assert all(done.wait(SOON) for done in written)


def test_writer_thread_ends_when_the_pipe_is_closed(pipe_ends: PipeEnds) -> None:
    out, into = pipe_ends
    before = set(threading.enumerate())
    feed = Feed(into)
    written, missing = feed.write(MUCH), len(MUCH)
    while missing:
        missing -= len(out.read(missing))
    assert written.wait(SOON)

    feed.close()
    feed.join(SOON)

    assert set(threading.enumerate()) <= before


def test_pipe_without_reader_is_broken(pipe_ends: PipeEnds) -> None:
    out, into = pipe_ends
    feed = Feed(into)
    waiting = feed.write(MUCH)
    out.close()

    assert waiting.wait(SOON)
    assert feed.broken
    assert feed.write(b"lost\n").is_set()


def test_write_after_close_is_discarded_without_waiting(pipe_ends: PipeEnds) -> None:
    out, into = pipe_ends
    feed = Feed(into)
    feed.close()

    assert feed.write(b"late\n").is_set()
    assert out.read(10) == b""
