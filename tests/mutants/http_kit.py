"""The parts of HTTP mutants: our own HTTP server with one rule broken, in front of a process.

An HTTP mutant is a subclass of the endpoint that overrides its methods. Behind it runs a mutant of
stdio. Run one by hand: ``python tests/mutants --http PORT NAME``.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final

from mcp_touchstone.bridge.child import Launch
from mcp_touchstone.bridge.endpoint import ClientConnection
from mcp_touchstone.bridge.listener import Listener
from mcp_touchstone.http_server.server import HOST
from tests.mutants.kit import META, ROOT

TOKEN: Final = "MCP_TOUCHSTONE_MUTANT_TOKEN"
"""Variable with the Authorization header for the servers that want one."""

BEARER: Final = (
    "Bearer eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJtdXRhbnQiLCJleHAiOjQxMDI0NDQ4MDB9"
    ".bXV0YW50LXNpZ25hdHVyZS0wMTIzNDU2Nzg5"
)
"""A JSON Web Token; nobody checks its signature."""

Extra = dict[str, str]
_NONE: Final[Mapping[str, str]] = MappingProxyType({})

SESSIONS: Final = 64
STARTUP: Final = 20.0


class HttpFault(ClientConnection):
    """Our HTTP server; a subclass overrides a method.

    Attributes:
        behind: name of the mutant of stdio behind it; by default one without a fault.
        headers_sent: headers of our requests, and variables with their values.
        listens_on: address.
        received: body of the request.
        last_status: status of the answer.
    """

    over_http: ClassVar[bool] = True
    behind: ClassVar[str] = "SaysNothingWrong"
    headers_sent: ClassVar[dict[str, str]] = {}

    listens_on: ClassVar[str] = HOST
    received = b""
    last_status = 0

    def __init_subclass__(cls, **members: Any) -> None:
        """Take members that are data from the line that names the base."""
        for name, value in members.items():
            setattr(cls, name, value)

    def _body(self) -> bytes:
        self.received = super()._body()
        return self.received

    def wait_until_left(self) -> None:
        """Wait until the client closes its connection."""
        while not self.client_left():
            time.sleep(0.1)

    def answer(self, status: int, body: bytes = b"", extra: Mapping[str, str] = _NONE) -> None:
        """Answer with a JSON object or with nothing, as ``answering`` changes it."""
        status, body, extra = self.answering(status, body, dict(extra))
        self.last_status = status
        super().answer(status, body, extra)

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        """Change an answer: its status, its body and its further headers."""
        return status, body, extra

    def set_header(self, name: str, value: str | None) -> None:
        """Replace a header of the request before it is checked; None removes it."""
        del self.headers[name]
        if value is not None:
            self.headers[name] = value

    def header(self, name: str) -> str | None:
        """Return a header of the request; None if it is absent."""
        found: str | None = self.headers.get(name)
        return found

    @property
    def is_modern(self) -> bool:
        """Whether the headers name the stateless revision."""
        return (self.header("MCP-Protocol-Version") or "") >= "2026"


class WithoutHandshake(HttpFault):
    """Our HTTP server in front of a process without a handshake."""

    behind: ClassVar[str] = "SpeaksModernOnly"

    def do_GET(self) -> None:  # noqa: N802  (the name in the base class)
        """Refuse it."""
        self._others()

    def do_DELETE(self) -> None:  # noqa: N802  (the name in the base class)
        """Refuse it."""
        self._others()


def named(message: dict[str, Any]) -> str | None:
    """Return the value that ``Mcp-Name`` repeats; None if there is none."""
    params = message.get("params")
    params = params if isinstance(params, dict) else {}
    found = params.get("uri" if message.get("method") == "resources/read" else "name")
    return found if isinstance(found, str) else None


def meta_version(message: dict[str, Any]) -> str | None:
    """Return the revision in the body of a request; None if there is none."""
    params = message.get("params")
    meta = params.get("_meta") if isinstance(params, dict) else None
    found = meta.get(META + "protocolVersion") if isinstance(meta, dict) else None
    return found if isinstance(found, str) else None


class _Launch(Launch):
    """Leaves the search for strays to the run that judges the mutant: it looks at all processes."""

    def sweep(self) -> int:
        return 0


def serve(endpoint: type[ClientConnection], command: tuple[str, ...], port: int) -> int:
    """Serve a process over HTTP with this endpoint, until SIGTERM or SIGINT."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    over = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: over.set())
    launch = _Launch(command=command, env=env)
    host = getattr(endpoint, "listens_on", HOST)
    with Listener(launch, port=port, most=SESSIONS, startup=STARTUP, host=host) as listener:
        listener.RequestHandlerClass = endpoint
        listener.start()
        while not over.wait(0.2):
            pass
    return 0


def run(name: str, fault: type[Any], port: int, root: str) -> int:
    """Serve a mutant over HTTP: an HTTP mutant, or one of stdio behind our server."""
    here = str(Path(__file__).with_name("__main__.py").parent)
    http = getattr(fault, "over_http", False)
    behind = fault.behind if http else name
    command = (sys.executable, here, behind, root)
    return serve(fault if http else ClientConnection, command, port)
