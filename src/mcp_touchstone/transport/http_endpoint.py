"""The address of an HTTP server, and connections to it."""

import atexit
import itertools
import os
import re
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, urlsplit

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.transport.tokens import Tokens
from mcp_touchstone.wire.http_headers import FIXED, TOKEN, VALUE

PORT: Final = "{port}"
"""In a URL and in a command, replaced by the port that we choose."""

FIRST_PORT: Final = 10_240
LAST_PORT: Final = 32_000
"""We choose ports below those that systems give to clients: a connection could take them."""

RESERVED: Final = 32
"""Ports that a run keeps from other runs; more servers than that do not start at a time."""

PLAIN: Final = {"http": 80, "https": 443}

_LOOPBACK: Final = re.compile(r"localhost|127(\.\d{1,3}){3}|::1", re.IGNORECASE)

_ports: Final = itertools.count(FIRST_PORT + os.getpid() * 37 % (LAST_PORT - FIRST_PORT))
_choosing: Final = threading.Lock()
_reserved: Final = deque[socket.socket]()
_kept: Final[dict[str, str]] = {}


@atexit.register
def _release() -> None:
    while _reserved:
        _reserved.popleft().close()


def is_loopback(host: str) -> bool:
    """Return whether the name or address of a host is of this machine only."""
    return _LOOPBACK.fullmatch(host) is not None


class EndpointError(UserError, ValueError):
    """A URL or a header cannot be used; the message says why."""


@dataclass(frozen=True)
class Endpoint:
    """The URL of an MCP endpoint, and what each request to it needs.

    Attributes:
        url: the URL, which may contain ``{port}`` until ``on`` is called.
        secrets: header -> variable of the environment with its value, or what a shell writes there.
        ca_file: certificates to accept beside those of the system; None for none.
        tokens: where the bearer tokens come from that are not in ``secrets``.
        open_socket: makes a socket of a family in the network of the server; None for our own.
    """

    url: str
    secrets: Mapping[str, str] = field(default_factory=dict)
    ca_file: Path | None = None
    tokens: Tokens = field(default_factory=Tokens, compare=False)
    open_socket: Callable[[int], socket.socket] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        try:
            parts = self._parts
            usable = parts.scheme in PLAIN and bool(parts.hostname) and parts.port != 0
        except ValueError:
            usable = False
        if not usable or re.search(r"[\x00-\x20\x7f-\U0010ffff]", self.url):
            raise EndpointError(
                f"{self.url}: no URL of an HTTP server; write http://HOST:PORT/PATH"
            )
        if parts.username or parts.password:
            raise EndpointError("a URL with a user or a password; give a secret with --header")
        if parts.fragment:
            raise EndpointError(f"{self.url}: a URL for a server has no part after #")

    def on(self, port: int) -> "Endpoint":
        """Return the endpoint with a port filled in."""
        return replace(self, url=self.url.replace(PORT, str(port)))

    @cached_property
    def _parts(self) -> SplitResult:
        return urlsplit(self.url.replace(PORT, str(FIRST_PORT)))

    @property
    def host(self) -> str:
        """The name or the address of the host."""
        return self._parts.hostname or ""

    @property
    def port(self) -> int:
        """The port."""
        return self._parts.port or PLAIN[self._parts.scheme]

    @property
    def path(self) -> str:
        """The path with its query."""
        return (self._parts.path or "/") + (f"?{self._parts.query}" if self._parts.query else "")

    @property
    def authority(self) -> str:
        """The value of the ``Host`` header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PLAIN[self._parts.scheme] else f"{host}:{self.port}"

    @property
    def server(self) -> str:
        """Scheme, host and port, as in the URL."""
        return f"{self._parts.scheme}://{self.authority}"

    @property
    def local(self) -> bool:
        """Whether it is on the loopback of this machine, by its address."""
        return is_loopback(self.host)

    def connect(self, seconds: float) -> socket.socket:
        """Open a connection.

        Raises:
            OSError: there is none, or no valid certificate (``ssl.SSLError``).
        """
        plain = self._connected(max(seconds, 0.01))
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._parts.scheme != "https":
            return plain
        try:
            return self._tls.wrap_socket(plain, server_hostname=self.host)
        except BaseException:
            plain.close()
            raise

    def _connected(self, seconds: float) -> socket.socket:
        if self.open_socket is None:
            return socket.create_connection((self.host, self.port), seconds)
        version6 = ":" in self.host
        made = self.open_socket(socket.AF_INET6 if version6 else socket.AF_INET)
        try:
            made.settimeout(seconds)
            host = "127.0.0.1" if self.host == "localhost" else self.host
            made.connect((host, self.port))
        except BaseException:
            made.close()
            raise
        return made

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        context.set_alpn_protocols(["http/1.1"])
        if self.ca_file is not None:
            context.load_verify_locations(self.ca_file)
        return context


def free_port() -> int:
    """Return a port on 127.0.0.1 that nobody uses, and that was not returned before.

    Other runs on this machine choose other ports, even if no server listens yet: a run reserves
    its last ``RESERVED`` ports with UDP sockets.

    Raises:
        OSError: there is none.
    """
    with _choosing:
        for _ in range(LAST_PORT - FIRST_PORT):
            port = FIRST_PORT + next(_ports) % (LAST_PORT - FIRST_PORT)
            reservation = socket.socket(type=socket.SOCK_DGRAM)
            try:
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
                reservation.bind(("127.0.0.1", port))
            except OSError:
                reservation.close()
                continue
            _reserved.append(reservation)
            if len(_reserved) > RESERVED:
                _reserved.popleft().close()
            return port
    raise OSError("no port is free on 127.0.0.1")


def check_header(name: str) -> None:
    """Check that a user may set a header.

    Raises:
        ValueError: it is no name of a header, or we set it ourselves.
    """
    if not TOKEN.fullmatch(name):
        raise ValueError(f"{name!r} is no name of a header")
    if name.lower() in FIXED:
        raise ValueError(f"{name}: we set this header ourselves")


def check_certificates(pem: str, where: str) -> None:
    """Check that a text has certificates.

    Args:
        where: its place, for the message.

    Raises:
        EndpointError: it has none.
    """
    try:
        ssl.create_default_context().load_verify_locations(cadata=pem)
    except (ssl.SSLError, ValueError) as error:
        raise EndpointError(f"{where}: no certificates in PEM") from error


def keep(target: str, headers: Mapping[str, str]) -> dict[str, str]:
    """Keep the values of headers that a file gives; return header -> variable that names its value.

    The values are not in the environment, so no server inherits them. Commands and scripts name the
    variable in place of the value. Two values never have the same variable.

    Args:
        target: the name of the server in the file, so that two servers may have the same header.
        headers: header -> value.
    """
    named = {}
    for name, value in headers.items():
        variable = re.sub(r"\W+", "_", "_".join(filter(None, ("MCP", target, name)))).upper()
        while _kept.setdefault(variable, value) != value:
            variable += "_"
        named[name] = variable
    return named


def values_of(secrets: Mapping[str, str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with the values of their variables.

    Raises:
        EndpointError: a variable is not set, or its value cannot be sent.
    """
    found = {}
    for name, variable in secrets.items():
        value = _kept.get(variable) or environment.get(variable, "")
        if not value:
            raise EndpointError(f"--header {name}: the variable {variable} is not set")
        if not VALUE.fullmatch(value):
            raise EndpointError(
                f"--header {name}: the value of {variable} has forbidden characters"
            )
        found[name] = value
    return found
