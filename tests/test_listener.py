"""Who connects to us, and who only happens to."""

import contextlib
import socket
import threading
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from mcp_touchstone.attack.listener import HOST, Listener
from mcp_touchstone.verdict import Outcome
from tests.fakes.matrix import attacked

LONG = 10.0


def port_of(url: str) -> int:
    return int(url.split(":")[2].partition("/")[0])


def refused(url: str) -> None:
    with pytest.raises(HTTPError, match="404"):
        urlopen(url, timeout=LONG)  # noqa: S310  (our own)


def test_what_was_fetched_is_told_from_what_was_not() -> None:
    with contextlib.closing(Listener()) as listener:
        one, other = listener.url(), listener.url()
        refused(one)

        assert listener.heard(one)
        assert not listener.heard(other)


def test_who_comes_late_is_waited_for() -> None:
    with contextlib.closing(Listener()) as listener:
        url = listener.url()
        threading.Timer(0.1, refused, [url]).start()

        assert not listener.heard(url)
        assert listener.heard(url, LONG)


def test_who_does_not_know_the_place_is_a_stranger() -> None:
    with contextlib.closing(Listener()) as listener:
        url = listener.url()
        for said in (b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\n", b"\n", b"x" * 10_000):
            with socket.create_connection((HOST, port_of(url)), LONG) as stranger:
                stranger.sendall(said)
                with contextlib.suppress(OSError):  # it may have hung up already
                    stranger.shutdown(socket.SHUT_WR)
        refused(url)

        assert listener.heard(url)
        assert not listener.heard(listener.url())


def test_who_is_silent_keeps_nobody_from_being_heard() -> None:
    with contextlib.closing(Listener()) as listener:
        url = listener.url()
        with socket.create_connection((HOST, port_of(url)), LONG):
            refused(url)

        assert listener.heard(url)


def test_nobody_listens_any_more() -> None:
    with contextlib.closing(Listener()) as listener:
        url = listener.url()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port_of(url)), LONG)


@pytest.mark.parametrize("name", ["FetchesPaths", "FetchesUris", "FollowsReferences"])
def test_what_fetches_is_found_with_its_call(name: str) -> None:
    (found,) = attacked(name, ("resources-fetched",)).verdicts

    assert found.outcome is Outcome.FAIL
    assert "was fetched" in found.gravest.actual
    assert "http://127.0.0.1:" in "".join(line.text for line in found.gravest.wire)


def test_a_tool_that_says_it_takes_urls_may_fetch_them() -> None:
    (found,) = attacked("FetchesAsItSays", ("resources-fetched",)).verdicts

    assert found.outcome is Outcome.UNSEEN
