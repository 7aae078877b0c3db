"""Messages that a server breaks over several lines, as a pretty-printer does. Pure."""

from typing import Any, Final

from mcp_touchstone.wire.framing import Fault, Kind, Line, Reading, joined, kind_of, open_brackets

SPREAD_LIMIT: Final = 4_000
"""Lines that one message may be broken over and still be read."""


class SpreadReader:
    """Puts the lines of one output together."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._open = 0

    @property
    def unfinished(self) -> bool:
        """Whether the last line is within a message."""
        return bool(self._pieces)

    def read(self, line: Line, reading: Reading) -> tuple[Reading, int]:
        """Read a message that spans several lines, as a pretty-printed one does.

        Returns the reading of the line and, on the last line of such a message, its line count.
        """
        if not self._pieces:
            if Fault.NOT_JSON in reading.faults and line.raw.lstrip().startswith((b"{", b"[")):
                self._open = open_brackets(line.raw)
                if self._open > 0:
                    self._pieces.append(line.raw)
            return reading, 0
        if _is_message(reading.value) or len(self._pieces) >= SPREAD_LIMIT:
            self._pieces.clear()
            return reading, 0
        if line.raw.rstrip() in {b"{", b"["}:
            self._pieces.clear()
            self._open = 0
        self._pieces.append(line.raw)
        self._open += open_brackets(line.raw)
        if self._open <= 0:
            whole = joined(self._pieces)
            if isinstance(whole, dict | list):
                spread = len(self._pieces)
                self._pieces.clear()
                faults = frozenset({Fault.SPREAD, *(reading.faults & {Fault.UNTERMINATED})})
                return Reading(whole, faults), spread
            self._pieces.clear()
        return reading, 0


def _is_message(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_message, value))
    return kind_of(value) is not Kind.ODD or (isinstance(value, dict) and "jsonrpc" in value)
