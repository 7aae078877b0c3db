"""Extract a part of a transcript as a new transcript: the opening and the lines after a line. Pure.

Rules about all traffic read whole transcripts. The extract lets them check one of hundreds of
examples on one process alone.
"""

from mcp_touchstone.catalog.revision import is_modern
from mcp_touchstone.wire.framing import Fault, Line
from mcp_touchstone.wire.transcript import Entry, Source, Transcript


def excerpt(whole: Transcript, start: int) -> tuple[Transcript, int]:
    """Copy the opening of a connection and the lines after line ``start`` to a new transcript.

    Returns:
        The new transcript, and the number to add to a line number in it, after the opening, to get
        the line number in ``whole``.
    """
    entries = list(whole)
    first = min(opening(entries), start)
    part = Transcript(
        whole.revision, lambda: entries[-1].at, capabilities=whole.capabilities, label=whole.label
    )
    required = {asked.line for asked in whole.session.asked if asked.required}
    for entry in [*entries[:first], *entries[start:]]:
        part.enter(entry.scenario)
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
    """Return the number of the line that ends the opening.

    It is ``notifications/initialized`` or, in a stateless session, the first answer.
    """
    for entry in entries:
        value = entry.value if isinstance(entry.value, dict) else {}
        handshake = value.get("method") == "notifications/initialized"
        discovered = any(message.method == "server/discover" for message in entry.messages)
        if handshake or discovered:
            return entry.n
    return len(entries)
