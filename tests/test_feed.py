"""Lines reach a process in order, and nobody who writes is kept waiting."""

import os
import threading
from collections.abc import Iterator
from typing import IO

import pytest

from mcp_touchstone.feed import Feed

SOON = 5.0
MUCH = b"x" * 1_000_000 + b"\n"


@pytest.fixture
def ends() -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    reading, writing = os.pipe()
    with (
        os.fdopen(reading, "rb", buffering=0) as out,
        os.fdopen(writing, "wb", buffering=0) as into,
    ):
        yield out, into


Ends = tuple[IO[bytes], IO[bytes]]


def test_what_fits_is_there_at_once(ends: Ends) -> None:
    out, into = ends

    assert Feed(into).write(b"one\n").is_set()

    assert out.read(4) == b"one\n"


def test_what_does_not_fit_comes_later_and_in_order(ends: Ends) -> None:
    out, into = ends
    feed = Feed(into)

    written = [feed.write(MUCH), feed.write(b"behind\n")]
    assert not written[0].is_set()
    feed.close()

    assert b"".join(iter(lambda: out.read(65_536), b"")) == MUCH + b"behind\n"
    assert all(done.wait(SOON) for done in written)


def test_the_thread_that_helped_out_ends_with_the_pipe(ends: Ends) -> None:
    out, into = ends
    before = set(threading.enumerate())
    feed = Feed(into)
    written, missing = feed.write(MUCH), len(MUCH)
    while missing:
        missing -= len(out.read(missing))
    assert written.wait(SOON)

    feed.close()
    feed.join(SOON)

    assert set(threading.enumerate()) <= before


def test_a_pipe_nobody_reads_any_more_is_broken(ends: Ends) -> None:
    out, into = ends
    feed = Feed(into)
    waiting = feed.write(MUCH)
    out.close()

    assert waiting.wait(SOON)
    assert feed.broken
    assert feed.write(b"lost\n").is_set()


def test_what_is_written_behind_the_end_is_lost_and_nobody_waits_for_it(ends: Ends) -> None:
    out, into = ends
    feed = Feed(into)
    feed.close()

    assert feed.write(b"late\n").is_set()
    assert out.read(10) == b""
