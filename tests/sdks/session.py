"""What the tour knows of an SDK: a client that behaves as it is configured, and a session."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

Wire = dict[str, Any]
"""An object as it is on the wire."""

HANDSHAKES = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN = "2026-07-28"
SILENCE = 0.3
"""Seconds in which something that must not come would come."""


class Notifications(list[Wire]):
    """Notifications, ``{"method", "params"}``.

    Attributes:
        changes: Those about resources, in the words of the tour.
    """

    def __init__(self) -> None:
        super().__init__()
        self.changes: list[Wire] = []

    def append(self, one: Wire) -> None:
        """Take one more."""
        super().append(one)
        if one["method"] == "notifications/resources/updated":
            self.changes.append({"updated": one["params"]["uri"]})
        if one["method"] == "notifications/resources/list_changed":
            self.changes.append({"list_changed": "resources"})


@dataclass
class Client:
    """How the client behaves, and what it has heard.

    Attributes:
        can: What it declares: ``elicitation``, ``sampling``, ``roots``.
        log_level: The log level it asks for, in 2026-07-28 with each request.
        answer: What it answers when it is asked for input.
        roots: URIs it gives as its roots.
        asked: The questions it got: ``{"method", "params"}``.
        notifications: The notifications it got.
        logs: The params of log messages, as the callback for them got them.
        progress: ``[progress, total, message]``, as the callback got them.
        faults: What the SDK could not make sense of.
    """

    can: frozenset[str] = frozenset()
    log_level: str | None = None
    answer: Wire = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)
    asked: list[Wire] = field(default_factory=list)
    notifications: Notifications = field(default_factory=Notifications)
    logs: list[Wire] = field(default_factory=list)
    progress: list[list[Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


@asynccontextmanager
async def served(bridge: list[str], command: list[str], stderr: IO[str]) -> AsyncIterator[str]:
    """Give the URL under which a bridge serves a command."""
    words = [*bridge, "--", *command]
    process = await asyncio.create_subprocess_exec(
        *words, stdout=asyncio.subprocess.PIPE, stderr=stderr
    )
    assert process.stdout
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        await process.wait()


class RefusedError(Exception):
    """The server answered with an error."""

    def __init__(self, error: Wire) -> None:
        super().__init__(error)
        self.error = error


class Session(Protocol):
    """What an SDK's client can do; results are objects as on the wire, as the SDK read them."""

    async def opening(self) -> Wire:
        """Give revision, serverInfo, capabilities and instructions."""

    async def alive(self) -> bool:
        """Return whether the server answers."""

    async def page(self, what: str, cursor: str | None = None) -> Wire:
        """List ``tools``, ``resources``, ``resource_templates`` or ``prompts``."""

    async def call(self, name: str, arguments: Wire, *, with_progress: bool = False) -> Wire:
        """Call a tool."""

    async def call_and_cancel(self, name: str, arguments: Wire, when: asyncio.Event) -> bool:
        """Call a tool and take the call back; return whether it was answered all the same."""

    async def read(self, uri: str) -> Wire:
        """Read a resource."""

    def expand(self, template: str, values: dict[str, str]) -> str:
        """Fill in a URI template."""

    async def prompt(self, name: str, arguments: dict[str, str]) -> Wire:
        """Get a prompt."""

    async def complete(
        self, ref: Wire, name: str, typed: str, chosen: dict[str, str] | None = None
    ) -> Wire:
        """Complete an argument."""

    async def set_level(self, level: str) -> None:
        """Say which log messages are wanted."""

    async def roots_changed(self) -> None:
        """Say that the roots have changed."""

    def watch(self, uri: str) -> AbstractAsyncContextManager[list[Wire]]:
        """Give a list of the notifications so far: ``{"updated": uri}``, ``{"list_changed"}``."""

    async def task(self, method: str, params: Wire) -> Wire:
        """Send a request about tasks."""


class Connect(Protocol):
    """Starts a server below a root and opens a session.

    Attributes:
        revisions: Those that the client can be made to ask for, in the era of the tour.
    """

    revisions: tuple[str, ...]

    def __call__(
        self, root: Path, client: Client, *options: str, revision: str | None = None
    ) -> AbstractAsyncContextManager[Session]:
        """Give the session; ``revision`` is another one than that of the tour."""
