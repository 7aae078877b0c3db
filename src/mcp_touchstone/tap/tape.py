"""What is recorded of the exchanges of an HTTP server: heads, bodies, events, and ends."""

import contextlib
import itertools
import threading
import zlib
from collections.abc import Iterator
from typing import Final

from mcp_touchstone.http_server.reading import values
from mcp_touchstone.http_server.responses import Responses
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.runtime.secrets import in_query
from mcp_touchstone.tap.recording import Recorder
from mcp_touchstone.wire.events import Side
from mcp_touchstone.wire.exchange import EVENTS, Headers
from mcp_touchstone.wire.framing import CUT, LINE_LIMIT, Line
from mcp_touchstone.wire.sse import EventReader

RECORDING: Final = 3.0
"""Greatest seconds for the end of the exchanges under way when a server ends."""

REFUSED: Final = "the tap answered with "


class Tape:
    """The recorder of the exchanges of one server, and the number of those under way."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._numbers = itertools.count(1)
        self._under_way = 0
        self._ended = threading.Condition()

    @contextlib.contextmanager
    def exchange(self, connection: Responses) -> Iterator[int]:
        """Record the head of a request, and count its exchange until it is recorded.

        Yields:
            The number of the exchange.
        """
        path, _, query = connection.path.partition("?")
        self.recorder.hide(in_query(query))
        parts = []
        for part in query.split("&"):
            name, sign, _ = part.partition("=")
            hidden = f"{name}=HIDDEN" if sign else "HIDDEN"
            parts.append(part if self.recorder.plants(part) else hidden)
        shown = path + ("?" + "&".join(parts) if query else "")
        headers = tuple(connection.headers.items())
        with self._ended:
            self._under_way += 1
        try:
            number = next(self._numbers)
            head = f"{connection.command} {shown}"
            self.recorder.http(Side.CLIENT, number, head, headers)
            yield number
        finally:
            with self._ended:
                self._under_way -= 1
                self._ended.notify_all()

    def wait(self) -> None:
        """Wait until the exchanges under way are recorded."""
        with self._ended:
            self._ended.wait_for(lambda: not self._under_way, RECORDING)


class HeldBody:
    """A body that is kept to its end, in bounded memory.

    Attributes:
        length: bytes so far.
    """

    def __init__(self) -> None:
        self.length = 0
        self._kept = bytearray()

    def fed(self, data: bytes) -> bytes:
        """Add bytes and return them."""
        self.length += len(data)
        self._kept += b"" if self.is_cut else data
        if self.is_cut:
            del self._kept[CUT:]
        return data

    @property
    def is_cut(self) -> bool:
        """Whether only its beginning is kept."""
        return self.length > LINE_LIMIT

    def line(self) -> Line:
        """Return it as a line."""
        return Line(bytes(self._kept), self.length)


class HeardBody:
    """The body of a response, for the recorder: events as they come, another body at its end."""

    def __init__(self, recorder: Recorder, number: int, headers: Headers) -> None:
        self._recorder, self._number = recorder, number
        kind = "".join(values(headers, "content-type")[:1]).partition(";")[0].strip().lower()
        coding = ",".join(values(headers, "content-encoding")).lower() or "identity"
        self._events = EventReader() if kind == EVENTS else None
        self._body = HeldBody()
        self._unpack = zlib.decompressobj(47) if coding in {"gzip", "deflate"} else None
        self._closed = coding not in {"identity", "gzip", "deflate"}
        if self._closed:
            recorder.http(Side.EVENT, number, f"its body is encoded as {safe(coding)}: not read")

    def feed(self, data: bytes, *, last: bool) -> None:
        """Record what the next bytes complete.

        Args:
            last: whether they are known to be the last.
        """
        if self._unpack is not None and not self._closed:
            try:
                data = self._unpack.decompress(data, LINE_LIMIT)
            except zlib.error:
                self._closed = True
        if self._closed:
            return
        if self._events is None:
            self._body.fed(data)
        else:
            for one in self._events.feed(data):
                raw = one.data or b""
                event = [one.name, one.id, one.retry]
                line = Line(raw, len(raw))
                self._recorder.http(Side.SERVER, self._number, line, event=event)
        if last:
            self.end()

    def end(self) -> None:
        """Record a body that is no stream."""
        if self._body.length and not self._closed:
            self._recorder.http(Side.SERVER, self._number, self._body.line())
        self._closed = True
