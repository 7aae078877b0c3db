"""The HTTP listener: expected requests and stray connections."""

import contextlib
import socket
import threading
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from mcp_touchstone.http_server.server import HOST
from mcp_touchstone.security.http_listener import RequestListener

LONG = 10.0


def port_of(url: str) -> int:
    return int(url.split(":")[2].partition("/")[0])


def refused(url: str) -> None:
    with pytest.raises(HTTPError, match="404"):
        urlopen(url, timeout=LONG)  # noqa: S310  (our own)


def test_listener_distinguishes_fetched_from_unfetched_urls() -> None:
    with contextlib.closing(RequestListener()) as listener:
        one, other = listener.url(), listener.url()
        refused(one)

        assert listener.heard(one)
        assert not listener.heard(other)


def test_listener_waits_for_a_late_request() -> None:
    with contextlib.closing(RequestListener()) as listener:
        url = listener.url()
        threading.Timer(0.1, refused, [url]).start()

        assert not listener.heard(url)
        assert listener.heard(url, LONG)


def test_requests_without_a_known_path_are_ignored() -> None:
    with contextlib.closing(RequestListener()) as listener:
        url = listener.url()
        for said in (b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\n", b"\n", b"x" * 10_000):
            with socket.create_connection((HOST, port_of(url)), LONG) as stranger:
                stranger.sendall(said)
                with contextlib.suppress(OSError):  # it may have hung up already
                    stranger.shutdown(socket.SHUT_WR)
        refused(url)

        assert listener.heard(url)
        assert not listener.heard(listener.url())


def test_silent_connection_does_not_block_other_requests() -> None:
    with contextlib.closing(RequestListener()) as listener:
        url = listener.url()
        with socket.create_connection((HOST, port_of(url)), LONG):
            refused(url)

        assert listener.heard(url)


def test_closed_listener_refuses_connections() -> None:
    with contextlib.closing(RequestListener()) as listener:
        url = listener.url()

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, port_of(url)), LONG)
