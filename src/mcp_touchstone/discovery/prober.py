"""Tries things on one revision of a server: only what may be called, and not for ever.

A tool may be called if it is annotated read-only in some revision, or if the user named it.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_touchstone.arguments import Places, candidates, required
from mcp_touchstone.connection import Connection
from mcp_touchstone.dossier import Example, Exchange, Spoken
from mcp_touchstone.pending import Pending, heard
from mcp_touchstone.process import LaunchError, now
from mcp_touchstone.reply import Reply
from mcp_touchstone.session import Message, Role
from mcp_touchstone.target import Named

BUDGET: Final = 20.0
"""Seconds spent on trying in one revision."""

HANGS: Final = 2
"""Requests without an answer after which nothing more is tried."""

TOOLS: Final = 14
"""Tools called to learn what they do, beside those the user named."""

NOT_NAMED: Final = "no tool is annotated read-only, and none was named with --call"

PAGES: Final = 10
"""Pages of tools read to find one that may be called."""


@dataclass(frozen=True, slots=True)
class Line:
    """A process to try things on: it is started when first needed, and replaced when it hangs."""

    get: Callable[[], Connection]
    drop: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One exchange that was tried.

    Attributes:
        exchange: what was sent.
        reply: what came back.
        seconds: how long that took.
        messages: the server's messages behind it, up to the answer.
        item: the listed definition it is about.
    """

    exchange: Exchange
    reply: Reply
    seconds: float
    messages: list[Message]
    item: Mapping[str, Any] = field(default_factory=dict)

    @property
    def succeeded(self) -> bool:
        """Whether it got a final result that reports no error."""
        return self.reply.succeeded

    def notified(self, method: str) -> list[Message]:
        """Give the notifications of a method that came meanwhile."""
        return [m for m in self.messages if m.role is Role.NOTIFICATION and m.method == method]

    def example(self, asked: tuple[Mapping[str, Any], ...] = ()) -> Example:
        """Keep it."""
        return Example(
            self.exchange.method,
            self.exchange.params,
            result=self.reply.result or {},
            seconds=self.seconds,
            item=self.item,
            asked=asked,
        )


class Scout:
    """Tries things on one revision.

    Attributes:
        revision: which.
        spoken: what is known of it; lists may differ from client to client.
        named: what the user named.
        places: where paths may point.
    """

    def __init__(
        self,
        revision: str,
        spoken: Spoken,
        line: Line,
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
        self._line = line
        self._trusted = trusted
        self._stop = stop or threading.Event()
        self._until = now() + BUDGET
        self._hangs = 0
        self._tools: list[dict[str, Any]] | None = None

    @property
    def over(self) -> bool:
        """Whether nothing more should be tried."""
        return self._stop.is_set() or self._hangs >= HANGS or now() > self._until

    def connection(self) -> Connection | None:
        """Give the process things are tried on; None where none can be had any more."""
        if self.over:
            return None
        try:
            return self._line.get()
        except LaunchError:
            self._hangs = HANGS
            return None

    def attempt(
        self,
        exchange: Exchange,
        item: Mapping[str, Any] | None = None,
        *,
        token: Any = None,
        level: str | None = None,
    ) -> Attempt | None:
        """Send one request and wait; None where nothing more should be tried."""
        connection = self.connection()
        if connection is None:
            return None
        pending = Pending(connection, exchange, token=token, level=level)
        reply = pending.reply()
        seconds = pending.age
        messages = [message for _, message in heard(connection, pending.line)]
        if not reply.answered:
            self.unanswered(connection, pending)
        return Attempt(exchange, reply, seconds, messages, item or {})

    def unanswered(self, connection: Connection, pending: Pending | None = None) -> None:
        """Take a request back that hangs, and give the process up if it hangs with it."""
        self._hangs += 1
        if connection.gone:
            return
        if pending is not None:
            pending.cancel("it took too long")
        if not connection.probe(seconds=connection.pace.silence, required=False).answered:
            self._line.drop()

    # --- what may be called

    def tools(self) -> list[dict[str, Any]]:
        """Give the definitions of the tools that may be called, the most promising first.

        A named tool that is not listed is among them, by its name alone.
        """
        if self._tools is None:
            listed = {t["name"]: t for t in self._listed() if t["name"] in self._may_call}
            unlisted = [{"name": n} for n in self._named_calls if n not in listed]
            self._tools = sorted([*listed.values(), *unlisted], key=self._rank)
        return self._tools[: TOOLS + len(self._named_calls)]

    @property
    def _named_calls(self) -> list[str]:
        return list(dict.fromkeys(name for name, _ in self.named.calls))

    @property
    def _may_call(self) -> set[str]:
        return {*self._trusted, *self._named_calls}

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

    def arguments(self, tool: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Give the arguments to try on a tool: those the user named, or made from its schema."""
        named = [dict(a) for name, a in self.named.calls if name == tool["name"] and a is not None]
        return named or candidates(tool.get("inputSchema"), self.places) or [{}]

    def calls(self, tool: Mapping[str, Any]) -> list[Exchange]:
        """Give the calls to try on a tool; the one that worked before alone, if one did."""
        known = [e for e in self.spoken.found.get("callable-tool", []) if e.name == tool["name"]]
        if known:
            return [Exchange(e.method, e.params) for e in known[:1]]
        name = tool["name"]
        return [
            Exchange("tools/call", {"name": name, "arguments": arguments})
            for arguments in self.arguments(tool)
        ]

    # --- what is found

    def found(self, word: str, example: Example) -> None:
        """Keep an example of a word, once."""
        kept = self.spoken.found.setdefault(word, [])
        if all((known.method, known.params) != (example.method, example.params) for known in kept):
            kept.append(example)
