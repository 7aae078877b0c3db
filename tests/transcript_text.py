"""Conversations with the reference server as readable text.

→ marks what was sent, ← what was heard, # a remark. What is in <> is another value each time, or
is said over and over.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from mcp_touchstone.results.scrubber import NAMED, Scrubber, pretty
from reference_server.settings import Settings
from tests.reference_client import META, MODERN, InProcess, Message, ask, modern_as, result

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_NAMED = {**NAMED, "confirm_token": "token"}
_VERSION = "io.modelcontextprotocol/protocolVersion"


class TourScrubber(Scrubber):
    """The scrubber of golden recordings, without what differs between our own machines.

    Args:
        places: Texts that stand for directories of this host -> what to call them.
    """

    def __init__(self, places: dict[str, str]) -> None:
        super().__init__(places, datetime.now(UTC), named=_NAMED)

    def _about_server(self, info: Any) -> Any:
        return super()._about_server({**info, "version": "<version>"})

    def _string(self, value: str, member: str) -> Any:
        if value == "made up":
            return value
        shown = super()._string(value, member)
        return re.sub(r"Python \(3\.\d+\)", "Python (<version>)", shown)


def _without_copies(message: dict[str, Any]) -> dict[str, Any]:
    """Leave out the copy of ``structuredContent`` in the text of a result, if it is one."""
    result = message.get("result")
    if not isinstance(result, dict) or "structuredContent" not in result:
        return message
    blocks = [
        {**block, "text": "<structuredContent>"}
        if block.get("text") == {"<JSON>": result["structuredContent"]}
        else block
        for block in result["content"]
    ]
    return {**message, "result": {**result, "content": blocks}}


def line(arrow: str, message: Any) -> str:
    """Show a message: the members of JSON-RPC first, the rest as it came."""
    if isinstance(message, dict):
        message = {name: value for name, value in message.items() if name != "jsonrpc"}
        message = _with_short_meta(_without_copies(message))
    return f"{arrow} {pretty(message, 2)}"


def _with_short_meta(message: dict[str, Any]) -> dict[str, Any]:
    """Show what all requests of 2026-07-28 have in their ``_meta`` as one word."""
    params = message.get("params")
    if not isinstance(params, dict) or not isinstance(params.get("_meta"), dict):
        return message
    meta = params["_meta"]
    if meta.get(_VERSION) != META[_VERSION] or META.keys() - meta.keys():
        return message
    own = {name: value for name, value in meta.items() if value != META.get(name)}
    short = {f"<{META[_VERSION]}>": own} if own else f"<{META[_VERSION]}>"
    return {**message, "params": {**params, "_meta": short}}


class Tour:
    """One conversation, or several one after the other, written down.

    Args:
        root: The directory that is served.

    Attributes:
        lines: The transcript.
    """

    def __init__(self, revision: str, root: Path) -> None:
        self.revision = revision
        self.root = root
        self.lines: list[str] = []
        self._scrubber = TourScrubber({str(root): "<root>"})
        self._client: InProcess
        self._capabilities: Message = {}
        self._asked = 0

    @property
    def modern(self) -> bool:
        return self.revision == MODERN

    @contextmanager
    def served(
        self, capabilities: Message | None = None, *, opened: bool = True, **settings: Any
    ) -> Iterator[None]:
        """Have a server to talk to; what it still says at the end of input is written down.

        The opening of the session is not: it is the same in every tour, see ``opening``.
        """
        self._capabilities = capabilities or {}
        self._asked = 0
        with InProcess(Settings([str(self.root)], log_level="off", **settings)) as self._client:
            if opened and not self.modern:
                self._client.open(self.revision, self._capabilities)
            yield
            self._client.end_input()
            self.remark("end of input")
            for message in self._client.rest():
                self._heard(message)
        assert self._client.code == 0

    def remark(self, text: str) -> None:
        self.lines.append(f"# {text}")

    def write(self, path: str, data: bytes) -> None:
        """Change a file behind the server's back."""
        place = self.root / path
        place.parent.mkdir(exist_ok=True)
        staged = self.root.parent / "staged"
        staged.write_bytes(data)
        staged.replace(place)
        shown = repr(data) if len(data) <= 60 else f"{len(data)} bytes"
        self.remark(f"somebody writes {path}: {shown}")

    def say(self, message: Any) -> None:
        if isinstance(message, bytes):
            self.lines.append(f"→ {message.decode('utf-8', 'backslashreplace')}")
        else:
            self.lines.append(line("→", self._scrubber.scrub(message)))
        self._client.send(message)

    def hear(self) -> Any:
        message = self._client.hear()
        self._heard(message)
        return message

    def _heard(self, message: Any) -> None:
        self.lines.append(line("←", self._scrubber.scrub(message)))

    def question(self, method: str, **params: Any) -> Message:
        """Build the next request."""
        self._asked += 1
        if self.modern:
            return modern_as(self._capabilities, self._asked, method, **params)
        return ask(self.revision, self._asked, method, **params)

    def ask(self, method: str, *replies: Message, **params: Any) -> Message:
        """Send a request; give its answer. What the server asks meanwhile gets the replies."""
        return self.ask_with(self.question(method, **params), *replies)

    def ask_with(self, question: Message, *replies: Message) -> Message:
        left = list(replies)
        self.say(question)
        while True:
            heard: Message = self.hear()
            if heard.get("id") == question["id"] and "method" not in heard:
                return heard
            if "method" in heard and "id" in heard:
                self.say(result(heard, **left.pop(0)))

    def call(self, tool: str, *replies: Message, **arguments: Any) -> Message:
        """Call a tool; give what it found, or its error."""
        answer = self.ask("tools/call", *replies, name=tool, arguments=arguments)
        found: Message = answer.get("result", {})
        return found

    def change_of(self, question: Message) -> None:
        """Send a request that changes something; a thread of its own reports it.

        That may come before the answer or after it; it is written down after it.
        """
        self.say(question)
        heard = [self._client.hear(), self._client.hear()]
        for message in sorted(heard, key=lambda one: "method" in one):
            self._heard(message)
