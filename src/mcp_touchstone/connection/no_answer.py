"""Why a request got no answer: what is almost one, what came instead, and the words for it."""

from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.transport.channel import Channel
from mcp_touchstone.wire.framing import Fault, Kind, loads
from mcp_touchstone.wire.near_miss import NearMiss, near_miss
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Source, Transcript


class NearMissSearch:
    """The search for a line that is almost the answer to the first request.

    Attributes:
        found: its fault; None before it was found.
        lines: the lines of the request and of that answer.
    """

    def __init__(self, transcript: Transcript) -> None:
        self.found: NearMiss | None = None
        self.lines = (0, 0)
        self._transcript = transcript
        self._read = 0

    def go_on(self, asked: int) -> NearMiss | None:
        """Read the new lines after the request until one is almost its answer."""
        request = self._transcript[asked].value
        self._read = max(asked, self._read)
        for entry in self._transcript.since(self._read) if self.found is None else ():
            self._read = entry.n
            if entry.reading is not None:
                found = near_miss(entry.raw, entry.reading.value, request)
                if found is not None and "result" in found.meant:
                    self.found, self.lines = found, (asked, entry.n)
                    break
        return self.found


def instead(transcript: Transcript, channel: Channel, asked: int) -> str:
    """Return the message that came instead of an answer, if it explains the silence.

    An error without an id may be the late answer to a malformed line of ours.
    """
    lost = next((one.lost for one in transcript.exchanges if one.line == asked and one.lost), "")
    if lost:
        return f"in its response is {lost}"
    spoilt = any(one.malformed for one in list(transcript)[:asked])
    for entry in transcript.since(asked):
        if entry.source is Source.THEM and entry.raw.rstrip() == transcript[asked].raw:
            return f"line {entry.n} repeats our request"
        if entry.reading is not None and Fault.TOO_DEEP in entry.reading.faults:
            return f"line {entry.n} is {Fault.TOO_DEEP}"
        of_another = any(
            message.answers is not None
            or (spoilt and message.kind is Kind.ERROR and message.value.get("id") is None)
            for message in entry.messages
        )
        if entry.reading is not None and not of_another:
            near = near_miss(entry.raw, entry.reading.value, transcript[asked].value)
            if near is not None:
                return f"line {entry.n} is {near.words}: {near.cure}"
    if not transcript.spoke and any(map(_is_message, channel.stderr().splitlines())):
        return "it writes JSON-RPC to stderr, and nothing to stdout"
    silent = not transcript.spoke and not transcript.ended and channel.running
    on_pipes = channel.transport is Transport.STDIO
    ports = channel.process.family.ports() if silent and on_pipes else []
    return f"it listens on port {ports[0]}: has it an option for stdio?" if ports else ""


def _is_message(text: str) -> bool:
    """Whether a line is a message: a trace of Python may quote one."""
    try:
        value = loads(text)
    except ValueError:
        return False
    return isinstance(value, dict) and "jsonrpc" in value


def in_words(transcript: Transcript, reply: Reply) -> str:
    """Return a reply as text, with the status of the HTTP error that carried it."""
    origin = transcript[reply.entry].origin if reply.entry else None
    if origin is None or not origin.refuses:
        return str(reply)
    return f"HTTP {origin.exchange.status}: {reply}"
