"""A part of a transcript as a transcript of its own: the opening, then what came behind a line.

Rules about all traffic read whole transcripts. An example among hundreds on one process is looked
at alone when its lines are read again, in order, by the same code. Pure.
"""

from mcp_touchstone.catalog.revision import is_modern
from mcp_touchstone.wire.framing import Fault, Line
from mcp_touchstone.wire.transcript import Entry, Source, Transcript


def excerpt(whole: Transcript, start: int) -> tuple[Transcript, int]:
    """Read the opening of a connection and the lines behind line ``start`` anew, from line 1.

    Gives what was read, and by how much the numbers of the lines behind ``start`` fell.
    """
    entries = list(whole)
    first = min(opening(entries), start)
    part = Transcript(
        whole.revision, lambda: entries[-1].at, capabilities=whole.capabilities, label=whole.label
    )
    required = {asked.line for asked in whole.session.asked if asked.required}
    for entry in [*entries[:first], *entries[start:]]:
        part.scenario = entry.scenario
        if entry.source is Source.US:
            part.said(
                entry.raw + b"\n",
                entry.value,
                malformed=entry.malformed,
                required=entry.n in required,
                modern=is_modern(whole.revision),
            )
        elif entry.source is Source.THEM:
            faults = entry.reading.faults if entry.reading else frozenset()
            part.heard(Line(entry.raw, entry.length, Fault.UNTERMINATED not in faults))
        else:
            part.happened(entry.text)
    return part, start - first


def opening(entries: list[Entry]) -> int:
    """Count the lines up to the end of the opening: initialized, or the first stateless answer."""
    for entry in entries:
        value = entry.value if isinstance(entry.value, dict) else {}
        handshake = value.get("method") == "notifications/initialized"
        discovered = any(message.method == "server/discover" for message in entry.messages)
        if handshake or discovered:
            return entry.n
    return len(entries)
