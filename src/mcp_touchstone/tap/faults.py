"""Faults that a tap makes between a client and a server, which a host should survive.

They are those of our parts (``parts.part``: LOSES, DROPS; the scenario ``restart``), on the first
call of a tool, so that what the client does next is seen.
"""

import re
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.tap.recording import Recorder
from mcp_touchstone.wire.events import Side
from mcp_touchstone.wire.framing import (
    LINE_LIMIT,
    Kind,
    LineSplitter,
    id_key,
    kind_of,
    read,
    value_in,
)

DROP, CLOSE, RESTART, DELAY = "drop-answer", "close-stream", "restart", "delay"
LONGEST: Final = 600.0
"""Greatest seconds of a delay."""


class FaultError(UserError):
    """A word of ``--fault`` is none, or does not fit the transport; the message says which fit."""


@dataclass
class Faults:
    """What a tap does otherwise than pass on.

    Attributes:
        words: those of DROP, CLOSE and RESTART that are still to come.
        delay: seconds before each answer.
        recorder: gets a sentence for each fault.
    """

    words: set[str]
    delay: float
    recorder: Recorder | None = None
    _calls: set[Any] = field(default_factory=set)
    _lock: Any = field(default_factory=threading.Lock)
    _lines: dict[Side, LineSplitter] = field(
        default_factory=lambda: {side: LineSplitter(LINE_LIMIT) for side in Side}
    )

    def due(self, word: str, sentence: str) -> bool:
        """Whether a fault is to come now, for the only time; record it."""
        with self._lock:
            if word not in self.words:
                return False
            self.words.remove(word)
        if self.recorder is not None:
            self.recorder.event(sentence)
        return True

    def recorded_by(self, recorder: Recorder) -> "Faults":
        """Return the same for a recording.

        What happens once happens in the first one of a folder only: the client may start the server
        again.
        """
        return Faults(self.words if recorder.is_first else set(), self.delay, recorder)

    def wait(self) -> None:
        """Wait before an answer."""
        time.sleep(self.delay)

    # --- stdio

    def passed(self, side: Side, chunk: bytes) -> bytes:
        """Return what a peer gets of the next bytes of the other one: whole lines."""
        lines = self._lines[side].feed(chunk)
        return b"".join(line.raw + b"\n" for line in lines if self._passes(side, read(line).value))

    def rest(self, side: Side) -> bytes:
        """Return the bytes after the last line feed, at the end."""
        return self._lines[side].peek()

    def ends_server(self) -> bool:
        """Whether the server is to be ended: it got a call."""
        called = bool(self._calls)
        return called and self.due(RESTART, "the tap ends the server, which got a call")

    def _passes(self, side: Side, message: Any) -> bool:
        key = id_key(value_in(message, "id"))
        if side is Side.CLIENT and is_call(message):
            self._calls.add(key)
        elif side is Side.SERVER and kind_of(message) in {Kind.RESULT, Kind.ERROR}:
            self.wait()
            return not (key in self._calls and self.due(DROP, "the tap dropped the answer"))
        return True


def is_call(message: Any) -> bool:
    """Whether a message calls a tool."""
    return bool(value_in(message, "method") == "tools/call")


def first_event(piece: bytes) -> bytes:
    """Return what a part of a stream has up to the end of its first event."""
    found = re.search(rb"\r?\n\r?\n", piece)
    return piece[: found.end()] if found else piece


def faults(text: str, *, http: bool) -> Faults:
    """Read ``--fault``: words with commas between them.

    Raises:
        FaultError: a word is unknown, or does not fit the transport.
    """
    known = {DROP, CLOSE if http else RESTART}
    delay, words = 0.0, set[str]()
    for word in filter(None, text.split(",")):
        name, _, number = word.partition("=")
        if name == DELAY:
            delay = _seconds(number)
        elif word in known:
            words.add(word)
        else:
            fits = ", ".join((*sorted(known), "delay=SECONDS"))
            where = "over HTTP" if http else "on stdio"
            raise FaultError(f"--fault: {word!r} is no fault {where}; there are {fits}")
    return Faults(words, delay)


def _seconds(text: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found <= LONGEST:
        raise FaultError(f"--fault: delay={text}: write seconds, at most {LONGEST:.0f}")
    return found
