"""Requests to places that a stranger names: short, complete, and to no machine nearby.

A name is resolved once, and the connection goes to the address that was checked. Proxies are not
used, because they would resolve it again.
"""

import contextlib
import ipaddress
import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any, Final, TypeVar
from urllib.parse import SplitResult, urlsplit

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.transport.http_endpoint import PLAIN, is_loopback

Json = dict[str, Any]
T = TypeVar("T")

WELL_KNOWN: Final = "/.well-known/"
PATIENCE: Final = 20.0
"""Seconds that a server may take for a whole answer."""

MOST: Final = 1 << 20
"""Bytes of a body."""

LONGEST_URL: Final = 8000
LONGEST_SHOWN: Final = 300
"""Characters of a stranger's text on the terminal."""

MOST_ADDRESSES: Final = 8
"""Addresses of one name."""

_URL: Final = re.compile(rf"[!-~]{{1,{LONGEST_URL}}}")
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


class LoginError(UserError):
    """There is no token; the message says why."""


def shown(value: object) -> str:
    """Return the beginning of what a stranger has sent, for the terminal."""
    text = str(value)
    return safe(text[:LONGEST_SHOWN]) + ("…" if len(text) > LONGEST_SHOWN else "")


def member(found: Json, name: str, kind: type[T], place: str, otherwise: T) -> T:
    """Return a member of a stranger's object, which may be missing or null.

    Raises:
        LoginError: it is of another type.
    """
    value = found.get(name)
    if value is None:
        return otherwise
    if not isinstance(value, kind):
        raise LoginError(f"{shown(place)}: `{name}` has the wrong type: {type(value).__name__}")
    return value


def words(found: Json, name: str, place: str) -> list[str]:
    """Return a member that is a list of texts; raises as ``member``."""
    listed = member(found, name, list, place, [])
    return [member({name: one}, name, str, place, "") for one in listed]


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the internet, also if it contains an IPv4 address."""
    found = ipaddress.ip_address(address)
    if isinstance(found, ipaddress.IPv6Address):
        inner = found.ipv4_mapped or found.sixtofour
        if found in _NAT64:
            inner = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        found = inner or found
    return found.is_global and not found.is_multicast


def split(url: str) -> SplitResult:
    """Return the parts of a URL to which a token may go.

    Raises:
        LoginError: it is no URL, or needs https.
    """
    try:
        parts = urlsplit(url)
        usable = _URL.fullmatch(url) and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise LoginError(f"{shown(url)}: it is no URL")
    if parts.scheme != "https" and not (
        parts.scheme == "http" and is_loopback(str(parts.hostname))
    ):
        raise LoginError(f"{shown(url)}: a token needs https, except on loopback")
    return parts


def metadata_places(issuer: str) -> list[str]:
    """Return the URLs at which an authorization server can have its metadata.

    Source: 2025-11-25 basic/authorization#authorization-server-metadata-discovery.

    Raises:
        LoginError: as ``split``.
    """
    parts = split(issuer)
    path, origin = parts.path.rstrip("/"), f"{parts.scheme}://{parts.netloc}"
    names = ("oauth-authorization-server", "openid-configuration")
    places = [f"{origin}{WELL_KNOWN}{name}{path}" for name in names]
    return list(dict.fromkeys([*places, f"{origin}{path}{WELL_KNOWN}{names[1]}"]))


class CheckedHttp:
    """Sends the requests of one login.

    Args:
        near: whether places may be on this machine or in a private network: whether the server of
            the user is there. With None, the first request tells.
    """

    def __init__(self, *, near: bool | None = None) -> None:
        self.near = near

    def check(self, url: str) -> str:
        """Return a URL that a server has named.

        Raises:
            LoginError: it is no URL, needs https, or is a place that is near, unless the server is.
        """
        self._addresses(url)
        return url

    def _addresses(self, url: str) -> list[tuple[int, Any]]:
        parts = split(url)
        port = parts.port or PLAIN[parts.scheme]
        try:
            found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        except (OSError, ValueError) as error:
            raise LoginError(f"{shown(url)}: its name has no address: {shown(error)}") from error
        addresses: list[tuple[int, Any]] = [(one[0], one[4]) for one in found[:MOST_ADDRESSES]]
        if self.near is False and not all(is_public(str(address[0])) for _, address in addresses):
            raise LoginError(f"{shown(url)}: it is on this machine, or in a private network")
        return addresses

    def send(
        self, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, tuple[tuple[str, str], ...], bytes]:
        """Return status, headers and body of a response; no redirect is followed.

        Raises:
            LoginError: as ``check``; or there is no whole answer in time.
        """
        parts, ended = split(url), threading.Event()
        try:
            with _connected(self._addresses(url)) as plain:
                if self.near is None:
                    self.near = not is_public(plain.getpeername()[0])
                stream = plain
                if parts.scheme == "https":
                    stream = ssl.create_default_context().wrap_socket(
                        plain, server_hostname=parts.hostname, do_handshake_on_connect=False
                    )
                with stream, _limit(stream, ended):
                    if isinstance(stream, ssl.SSLSocket):
                        stream.do_handshake()
                    connection = HTTPConnection(
                        str(parts.hostname), parts.port or PLAIN[parts.scheme]
                    )
                    connection.sock = stream
                    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
                    connection.request("GET" if body is None else "POST", target, body, {**headers})
                    answer = connection.getresponse()
                    content = answer.read(MOST)
        except (OSError, ValueError, HTTPException) as error:
            if not ended.is_set():
                raise LoginError(f"{shown(url)}: it does not answer: {shown(error)}") from error
        if ended.is_set():
            raise LoginError(f"{shown(url)}: there is no whole answer within {PATIENCE:g} s")
        return answer.status, tuple(answer.getheaders()), content

    def document(self, url: str) -> Json | None:
        """Return a JSON object; None if there is none."""
        status, _, body = self.send(url, None, {"Accept": "application/json"})
        return _object(body) if status == 200 else None  # noqa: PLR2004  (OK)

    def posted(self, url: str, body: bytes, kind: str) -> Json:
        """Return the JSON object with which a POST is answered.

        Raises:
            LoginError: the answer is an error, or no object.
        """
        headers = {"Accept": "application/json", "Content-Type": kind}
        status, _, text = self.send(url, body, headers)
        found = _object(text)
        if status not in range(200, 300):
            told = [(found or {}).get(name) for name in ("error", "error_description")]
            why = shown(" ".join(one for one in told if isinstance(one, str))) or "no reason"
            raise LoginError(f"{shown(url)}: HTTP {status}: {why}")
        if found is None:
            raise LoginError(f"{shown(url)}: the answer is no JSON object")
        return found


def _connected(addresses: list[tuple[int, Any]]) -> socket.socket:
    """Return a connection to the first address that takes one."""
    failed: OSError = OSError("no address")
    for family, address in addresses:
        made = socket.socket(family, socket.SOCK_STREAM)
        made.settimeout(PATIENCE)
        try:
            made.connect(address)
        except OSError as error:
            made.close()
            failed = error
        else:
            return made
    raise failed


@contextlib.contextmanager
def _limit(stream: socket.socket, ended: threading.Event) -> Iterator[None]:
    """End a connection that takes too long, whatever it sends meanwhile."""

    def end() -> None:
        ended.set()
        with contextlib.suppress(OSError):
            socket.socket.shutdown(stream, socket.SHUT_RDWR)  # that of TLS would wait

    timer = threading.Timer(PATIENCE, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _object(body: bytes) -> Json | None:
    try:
        found = json.loads(body, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _refuse(constant: str) -> None:
    raise ValueError(constant)
