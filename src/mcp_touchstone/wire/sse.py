"""Bytes to events: the event stream format of HTML. Pure; no I/O.

Source: https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation
"""

from dataclasses import dataclass
from typing import Final

from mcp_touchstone.wire.framing import LINE_LIMIT

_BOM: Final = b"\xef\xbb\xbf"
_CR: Final = 0x0D
_LF: Final = 0x0A


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event of a stream.

    Attributes:
        data: the bytes of its ``data`` fields, joined by line feeds; None without such a field.
        name: its ``event`` field; ``message`` without one.
        id: its own ``id`` field; None without a valid one.
        retry: its ``retry`` field in milliseconds; None without a valid one.
    """

    data: bytes | None
    name: str = "message"
    id: str | None = None
    retry: int | None = None


class EventReader:
    """Reader of an event stream, in bounded memory.

    Unlike a browser it also returns events with empty data, or without data: they may have an id.

    Attributes:
        overlong: whether an event was longer than the limit; the rest of the stream is not read.
        comments: number of comment lines so far.
    """

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self.overlong = False
        self.comments = 0
        self._limit = limit
        self._line = bytearray()
        self._begun = False
        self._after_cr = False
        self._fields: list[tuple[bytes, bytes]] = []
        self._stray = b""
        self._size = 0

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """Add the next bytes; return the events they complete."""
        events: list[ServerEvent] = []
        if self.overlong:
            return events
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        start = 0
        for at, byte in _ends(chunk):
            if at < start:
                continue  # the line feed of a pair
            self._line += chunk[start:at]
            start = at + 1
            if byte == _CR:
                if start == len(chunk):
                    self._after_cr = True
                elif chunk[start] == _LF:
                    start += 1
            events += self._end_line()
        self._line += chunk[start:]
        if self._size + len(self._line) > self._limit:
            self.overlong = True
            self._line.clear()
            self._fields.clear()
        return events

    @property
    def loss(self) -> str:
        """Why text that was read is in no event; empty if there is none."""
        names = [self._stray, *(name for name, _ in self._fields), bytes(self._line[:5])]
        if any(name.lstrip().startswith((b"{", b"[")) for name in names):
            return "JSON without `data:`, which is application/json"
        if any(name.startswith(b"data") for name in names):
            return "an event without the empty line that ends it"
        return ""

    def _end_line(self) -> list[ServerEvent]:
        line = bytes(self._line)
        self._line.clear()
        if not self._begun:
            self._begun = True
            line = line.removeprefix(_BOM)
        if not line:
            return self._end_event()
        if line.startswith(b":"):
            self.comments += 1
            return []
        name, _, value = line.partition(b":")
        self._fields.append((name, value.removeprefix(b" ")))
        self._size += len(line) + 1
        return []

    def _end_event(self) -> list[ServerEvent]:
        fields, self._fields, self._size = self._fields, [], 0
        data = [value for name, value in fields if name == b"data"]
        last = dict(fields)
        known = {b"data", b"event", b"id", b"retry"}
        if not known & last.keys():
            self._stray = fields[0][0] if fields else self._stray
            return []
        ids = [value for name, value in fields if name == b"id" and b"\0" not in value]
        retries = [value for name, value in fields if name == b"retry" and value.isdigit()]
        return [
            ServerEvent(
                data=b"\n".join(data) if data else None,
                name=last.get(b"event", b"").decode("utf-8", "replace") or "message",
                id=ids[-1].decode("utf-8", "replace") if ids else None,
                retry=int(retries[-1][:9]) if retries else None,
            )
        ]


def _ends(chunk: bytes) -> list[tuple[int, int]]:
    """Return the place and the value of each byte that can end a line."""
    if b"\r" not in chunk:
        found = []
        at = chunk.find(b"\n")
        while at >= 0:
            found.append((at, _LF))
            at = chunk.find(b"\n", at + 1)
        return found
    return [(at, byte) for at, byte in enumerate(chunk) if byte in {_LF, _CR}]
