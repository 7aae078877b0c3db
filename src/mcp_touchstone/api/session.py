"""Use a server from scripts, agents and a project's own tests. Checks no rules.

with mcp_touchstone.connect("my-server --root .") as session:
    for tool in session.tools():
        print(tool.name, tool.input_schema)
    result = session.call_tool("search", {"query": "x"})
    print(result.text if result.success else result.error)
"""

import contextlib
import fnmatch
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any, Final

from mcp_touchstone.api.live_server import Live
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.target.target import Target, absolute
from mcp_touchstone.transport.process import LaunchError
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Source, Transcript

PATIENCE: Final = 60.0
"""Limit for the first answer of a server, and for the result of a call, in seconds."""

PAGES: Final = 1000
"""Maximum number of pages of a list that are requested."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool in the list of a server.

    Attributes:
        name: name of the tool.
        description: text for a model or a person; empty if there is none.
        input_schema: JSON Schema of its arguments; empty if there is none.
        output_schema: JSON Schema of its structured result; None if there is none.
        read_only: whether it is annotated ``readOnlyHint: true``. The annotation may be wrong.
        definition: the complete entry of ``tools/list``.
    """

    name: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    read_only: bool
    definition: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The outcome of one call.

    Attributes:
        success: whether the server sent a final result without an error.
        content: the content blocks, as the server sent them.
        structured: ``structuredContent``; None if there is none.
        error: why the call failed, for a model or a person; None if it succeeded.
        reply: the answer itself, with the number of its line in the transcript.
    """

    success: bool
    content: list[dict[str, Any]]
    structured: Any
    error: str | None
    reply: Reply

    @property
    def text(self) -> str:
        """The text blocks of the content, separated by line feeds."""
        return "\n".join(str(b["text"]) for b in self.content if b.get("type") == "text")


Offer = str | Iterable[str] | Callable[[Tool], bool] | None
"""Filter of the offered tools: names or globs, or a predicate; None offers all tools."""


class Session:
    """An open connection to a server.

    Attributes:
        connection: the underlying connection, for raw lines and for requests that this class does
            not support.
    """

    def __init__(self, connection: Connection, offer: Offer = None) -> None:
        self.connection = connection
        self._offer = (offer,) if isinstance(offer, str) else offer
        if not callable(self._offer) and self._offer is not None:
            self._offer = tuple(self._offer)
        self._begun = len(connection.transcript)
        self._offered: set[str] = set()

    # --- properties

    @property
    def revision(self) -> str:
        """The protocol revision in use."""
        return self.connection.transcript.revision

    @property
    def server(self) -> dict[str, Any]:
        """The ``serverInfo`` of the server, usually name and version; empty if there is none."""
        opened = (self.connection.opening.result if self.connection.opening else None) or {}
        info = opened.get("serverInfo") or opened.get("_meta", {}).get(rev.META + "serverInfo")
        return info if isinstance(info, dict) else {}

    @property
    def transcript(self) -> Transcript:
        """All lines sent and received since the process started."""
        return self.connection.transcript

    def conversation(self, most: int = 30, width: int = 300) -> list[str]:
        """Return the last lines of the conversation for a person, escaped and shortened.

        Args:
            most: greatest number of lines.
            width: characters of a line that are kept.
        """
        arrows = {Source.US: "→", Source.THEM: "←", Source.EVENT: "·"}
        entries = list(self.transcript)[self._begun :][-most:]
        shown = ((entry, safe(entry.text)) for entry in entries)
        return [
            f"{entry.n:>4} {arrows[entry.source]} {text[:width]}{'…' * (len(text) > width)}"
            for entry, text in shown
        ]

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The messages sent to the server since the session was created, in order."""
        return [
            entry.value
            for entry in self.transcript.since(self._begun)
            if entry.source is Source.US and isinstance(entry.value, dict)
        ]

    @property
    def received(self) -> list[dict[str, Any]]:
        """The messages received from the server since the session was created, in order."""
        return [
            message.value
            for entry in self.transcript.since(self._begun)
            if entry.source is Source.THEM
            for message in entry.messages
            if isinstance(message.value, dict)
        ]

    # --- tools

    def tools(self) -> list[Tool]:
        """Return the offered tools, from all pages of the list.

        Raises:
            LookupError: the server returned no list; the message contains its answer.
        """
        found = [tool for tool in self._listed() if self._takes(tool)]
        self._offered = {tool.name for tool in found}
        return found

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float = PATIENCE,
    ) -> ToolResult:
        """Call a tool and wait for its result.

        A failure is reported in the result and never raised. Failures are an error of the tool or
        of the protocol, a tool that is not offered, a timeout, and a server that has ended.

        Args:
            name: name of the tool.
            arguments: its arguments; none by default.
            timeout: seconds until the call is cancelled.
        """
        if not self._may_call(name):
            why = f"no tool {name!r} is offered; there are {', '.join(sorted(self._offered))}"
            return ToolResult(False, [], None, why, Reply(0, why=why))
        params = {"name": name, "arguments": dict(arguments or {})}
        message = self.connection.build("tools/call", params)
        asked = self.connection.say(message, required=False)
        reply = self.connection.answer_to(asked, timeout, patient=True)
        if not reply.answered and not self.connection.gone:
            why = f"no answer within {timeout:g} s"
            given_up = {"requestId": message["id"], "reason": why}
            self.connection.notify("notifications/cancelled", given_up)
        return _result(reply)

    # --- anything else

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        seconds: float | None = None,
    ) -> Reply:
        """Send any request and wait for its answer.

        If no answer arrives, the reply contains the reason.

        Args:
            method: name of the method.
            params: params of the request; in a stateless revision, ``_meta`` is added unless they
                contain it.
            seconds: time limit; by default a limit based on earlier answers of the server.
        """
        return self.connection.request(method, params, seconds=seconds)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a notification; return the number of its line in the transcript."""
        return self.connection.notify(method, params)

    def quiet(self, seconds: float | None = None) -> list[dict[str, Any]]:
        """Wait, and return the messages received in that time.

        Args:
            seconds: how long to wait; None selects the default of the connection.
        """
        before = len(self.received)
        self.connection.quiet(seconds)
        return self.received[before:]

    # --- internals

    def _listed(self) -> Iterator[Tool]:
        cursor: Any = None
        for _ in range(PAGES):
            reply = self.request("tools/list", None if cursor is None else {"cursor": cursor})
            items = (reply.result or {}).get("tools")
            if not isinstance(items, list):
                raise LookupError(safe(f"tools/list gave no list: {reply}"))  # noqa: TRY004
            yield from (
                _tool(item)
                for item in items
                if isinstance(item, dict) and isinstance(item.get("name"), str)
            )
            cursor = (reply.result or {}).get("nextCursor")
            if not isinstance(cursor, str):
                return

    def _takes(self, tool: Tool) -> bool:
        if self._offer is None:
            return True
        if callable(self._offer):
            return bool(self._offer(tool))
        return any(fnmatch.fnmatchcase(tool.name, glob) for glob in self._offer)

    def _may_call(self, name: str) -> bool:
        if self._offer is None or name in self._offered:
            return True
        with contextlib.suppress(LookupError):
            self.tools()
        return name in self._offered


@contextlib.contextmanager
def connect(
    command: str | Sequence[str] = (),
    *,
    url: str = "",
    headers: Mapping[str, str] | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | PathLike[str] | None = None,
    tools: Offer = None,
    timeout: float = PATIENCE,
    revision: str | None = None,
    isolated: bool = False,
) -> Iterator[Session]:
    """Start a server, yield an open session, and stop the server at the end of the block.

    Args:
        command: program and arguments, as a sequence or as one string with shell quoting;
            ``{root}`` in it is replaced by a throw-away folder. Empty for a server that runs
            already.
        url: the URL of a server that speaks HTTP; empty for stdio. ``{port}`` in it and in the
            command is replaced by a port that we choose.
        headers: header -> variable of the environment with its value, for each HTTP request.
        env: variables added to the current environment.
        cwd: working folder; None for the current one.
        tools: the offered tools: names or globs, or a predicate that takes a :class:`Tool`; None
            offers all tools.
        timeout: limit for the first answer, in seconds.
        revision: the protocol revision. None selects the newest revision with a handshake that
            the server supports, or 2026-07-28 if it supports none.
        isolated: whether the server gets its own HOME and temporary folder, as in a check.

    Raises:
        LaunchError: the program does not exist, or does not answer as an MCP server. The message
            contains its answer and the last lines of its stderr.
        ValueError: the command is empty, or the revision is unknown.
    """
    words = tuple(shlex.split(command) if isinstance(command, str) else command)
    if not words and not url:
        raise ValueError("the command is empty; name a program, or the url of a server")
    if headers and not url:
        raise ValueError("headers are for a server that speaks HTTP; name its url")
    if revision is not None and revision not in rev.ALL:
        raise ValueError(f"revision {revision!r} is none of {', '.join(rev.ALL)}")
    target = Target(
        command=absolute(words) if words else (),
        url=url,
        header=dict(headers or {}),
        env=dict(env or {}),
        cwd=None if cwd is None else fspath(cwd),
        timeout=timeout,
    )
    with Live(target, revision, isolated=isolated) as live:
        yield Session(live.connection(), tools)


def _tool(item: Mapping[str, Any]) -> Tool:
    hints, output = item.get("annotations"), item.get("outputSchema")
    given = item.get("inputSchema")
    return Tool(
        name=item["name"],
        description=str(item.get("description") or ""),
        input_schema=given if isinstance(given, dict) else {},
        output_schema=output if isinstance(output, dict) else None,
        read_only=isinstance(hints, dict) and hints.get("readOnlyHint") is True,
        definition=item,
    )


def _result(reply: Reply) -> ToolResult:
    result = reply.result or {}
    blocks = result.get("content")
    content = [b for b in blocks if isinstance(b, dict)] if isinstance(blocks, list) else []
    plain = ToolResult(reply.succeeded, content, result.get("structuredContent"), None, reply)
    if reply.succeeded:
        return plain
    if result.get("isError") is True:
        why = plain.text or "the tool reported an error and said no more"
    elif result.get("resultType") == "input_required":
        why = "the server asks for input first, and this client has none to give"
    else:
        why = str((reply.error or {}).get("message") or reply)
    return ToolResult(False, content, plain.structured, why, reply)


__all__ = ["LaunchError", "Offer", "Session", "Tool", "ToolResult", "connect"]
