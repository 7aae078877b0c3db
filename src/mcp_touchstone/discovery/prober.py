"""Probes of one revision of a server: permitted calls only, and within a time limit.

A tool may be called if it is annotated read-only in some revision, or if the user named it.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from mcp_touchstone.catalog.scenario import Share
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.pending import Pending, heard
from mcp_touchstone.connection.server_profile import Example, Request, Spoken
from mcp_touchstone.samples.from_schema import Places, candidates, required
from mcp_touchstone.target.target import Named
from mcp_touchstone.transport.process import LaunchError, now
from mcp_touchstone.wire.lifecycle import Message, Role
from mcp_touchstone.wire.reply import Reply

BUDGET: Final = 20.0
"""Seconds for all probes in one revision."""

TURN: Final = 4.0
"""Seconds that each probe has at least, if those before it took the rest."""

HANGS: Final = 2
"""Unanswered requests after which probing stops."""

TOOLS: Final = 14
"""Greatest number of probed tools, beside those the user named."""

NOT_NAMED: Final = "no tool is annotated read-only, and none was named with --call"

PAGES: Final = 10
"""Pages of tools read to find one that may be called."""


class Processes(Protocol):
    """The shared processes of a run."""

    def get(self, revision: str, share: Share) -> Connection:
        """Return the live process of a revision.

        Raises:
            LaunchError: it could not be started.
        """

    def replace(self, revision: str, share: Share) -> None:
        """Abandon a process that no longer answers."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempted request.

    Attributes:
        seconds: its duration, in seconds.
        messages: the server's messages after it, up to the answer.
        item: the listed definition it uses.
    """

    request: Request
    reply: Reply
    seconds: float
    messages: list[Message]
    item: Mapping[str, Any] = field(default_factory=dict)

    def notified(self, method: str) -> list[Message]:
        """Return the notifications of a method during it."""
        return [m for m in self.messages if m.role is Role.NOTIFICATION and m.method == method]

    def example(self) -> Example:
        """Return it as an example."""
        return Example(
            self.request.method,
            self.request.params,
            result=self.reply.result or {},
            seconds=self.seconds,
            item=self.item,
        )


class Prober:
    """Prober of one revision, on a shared process: it is replaced if it hangs.

    Attributes:
        spoken: its profile; lists may differ from client to client.
        places: the targets of generated paths.
        is_alive: whether the process answered a later request after the last one that got none.
    """

    def __init__(
        self,
        revision: str,
        spoken: Spoken,
        processes: Processes,
        share: Share,
        *,
        trusted: frozenset[str] = frozenset(),
        named: Named | None = None,
        places: Places | None = None,
        stop: threading.Event | None = None,
    ) -> None:
        self.revision = revision
        self.spoken = spoken
        self.named = named or Named()
        self.places = places or Places()
        self._processes = processes
        self._share = share
        self._trusted = trusted
        self._stop = stop or threading.Event()
        self._until = now() + BUDGET
        self._hangs = 0
        self.is_alive = True
        self._tools: list[dict[str, Any]] | None = None

    @property
    def over(self) -> bool:
        """Whether to stop probing."""
        return self._stop.is_set() or self._hangs >= HANGS or now() > self._until

    def begin(self) -> None:
        """Give the next probe some time, whatever those before it took."""
        self._until = max(self._until, now() + TURN)

    def connection(self) -> Connection | None:
        """Return the connection for probes; None if no more process is available."""
        if self.over:
            return None
        try:
            return self._processes.get(self.revision, self._share)
        except LaunchError:
            self._hangs = HANGS
            return None

    def attempt(
        self,
        request: Request,
        item: Mapping[str, Any] | None = None,
        *,
        token: Any = None,
        level: str | None = None,
    ) -> Attempt | None:
        """Send one request and wait; None if probing should stop."""
        connection = self.connection()
        if connection is None:
            return None
        pending = Pending(connection, request, token=token, level=level)
        reply = pending.reply()
        seconds = pending.age
        messages = [message for _, message in heard(connection, pending.line)]
        if not reply.answered:
            self.unanswered(connection, pending)
        return Attempt(request, reply, seconds, messages, item or {})

    def unanswered(self, connection: Connection, pending: Pending | None = None) -> None:
        """Cancel a request that hangs, and abandon the process if it hangs too."""
        self._hangs += 1
        self.is_alive = not connection.gone
        if connection.gone:
            return
        if pending is not None:
            pending.cancel("it took too long")
        probed = connection.ping(seconds=connection.pace.silence, required=False)
        self.is_alive = probed.answered
        if not self.is_alive:
            self._processes.replace(self.revision, self._share)

    # --- permitted calls

    def tools(self) -> list[dict[str, Any]]:
        """Return the definitions of the permitted tools, the most promising first.

        A named tool that is not listed is included, with its name alone.
        """
        if self._tools is None:
            allowed = {*self._trusted, *self._named_calls}
            listed = {t["name"]: t for t in self._listed() if t["name"] in allowed}
            unlisted = [{"name": n} for n in self._named_calls if n not in listed]
            self._tools = sorted([*listed.values(), *unlisted], key=self._rank)
        return self._tools[: TOOLS + len(self._named_calls)]

    @property
    def _named_calls(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self.named.call))

    def _listed(self) -> Iterator[dict[str, Any]]:
        yield from self.spoken.named("tools")
        seen = {tool["name"] for tool in self.spoken.named("tools")}
        cursor = self.spoken.cursors.get("tools/list")
        for _ in range(PAGES):
            missing = not seen & self._trusted or not set(self._named_calls) <= seen
            connection = self.connection() if cursor is not None and missing else None
            if connection is None:
                return
            result = connection.request("tools/list", {"cursor": cursor}).result or {}
            page = Spoken(self.spoken.opening, {"tools": result.get("tools") or []})
            seen |= {tool["name"] for tool in page.named("tools")}
            yield from page.named("tools")
            cursor = result.get("nextCursor")

    def _rank(self, tool: Mapping[str, Any]) -> tuple[bool, bool, int]:
        hints = tool.get("annotations")
        closed = isinstance(hints, dict) and hints.get("openWorldHint") is False
        needed = len(required(tool.get("inputSchema")))
        return tool["name"] not in self._named_calls, not closed, needed

    def calls(self, tool: Mapping[str, Any]) -> list[Request]:
        """Return the calls to try on a tool; only the one that worked before, if any.

        Their arguments are those that the user gave, or made from its schema.
        """
        name = tool["name"]
        known = [e for e in self.spoken.found.get("callable-tool", []) if e.name == name]
        if known:
            return [Request(known[0].method, known[0].params)]
        given = (a for named, a in self.named.call if named == name and a is not None)
        made = [dict(a) for a in given] or candidates(tool.get("inputSchema"), self.places) or [{}]
        return [Request("tools/call", {"name": name, "arguments": one}) for one in made]

    # --- results

    def found(self, word: str, example: Example) -> None:
        """Record an example of a word, once."""
        self.spoken.decided.add(word, example)

    def note(self, word: str, why: str) -> None:
        """Record why there is no example of a word."""
        self.spoken.decided.note(word, why)

    def forget(self, word: str) -> None:
        """Drop the reason that there is no example of a word."""
        self.spoken.decided.forget(word)
