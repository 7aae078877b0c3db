"""One live connection to a server: send, wait, answer its requests. Judges nothing."""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.connection.answering import MOST_ANSWERS, Answering
from mcp_touchstone.connection.no_answer import NearMissSearch, instead
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.runtime.timeouts import UNFINISHED_SHORT, Pace
from mcp_touchstone.runtime.timing import Wait, WaitKind
from mcp_touchstone.transport.channel import Channel, Said
from mcp_touchstone.transport.deadline import ALONE, Patience
from mcp_touchstone.transport.live_transcript import LiveTranscript
from mcp_touchstone.transport.pipes import Gone
from mcp_touchstone.transport.process import Ending, ServerProcess, left, now
from mcp_touchstone.version import __version__
from mcp_touchstone.wire.events import Happened
from mcp_touchstone.wire.framing import encode
from mcp_touchstone.wire.lifecycle import Message
from mcp_touchstone.wire.near_miss import READ_ON
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Entry, Source

META: Final = rev.META
CLIENT_INFO: Final = {"name": "mcp-touchstone", "version": __version__}

FULL_CAPABILITIES: Final[dict[str, Any]] = {
    "roots": {"listChanged": True},
    "sampling": {},
    "elicitation": {},
}
"""Every client capability of the core protocol, as a willing client declares them."""

WORTH_SAYING: Final = 0.1
"""Least share of a limit from which an extension of the wait is reported."""

FIRST_ID: Final = 101
"""Lower ids are reserved for scenarios that need a particular one."""


class Connection:
    """A channel, its transcript, and the client's side of the conversation.

    Attributes:
        answers: the client's answers to requests of the server.
        near: the search for a line that is almost the first answer.
        opening: the reply to the first request; None before it.
        substitute: the list to ask for in place of ping or server/discover, which the server lacks;
            empty if it has it.
        waits: every wait, for the parts of the time of a run.
        ids: ids that were not used on this connection.
    """

    def __init__(
        self,
        channel: Channel,
        transcript: LiveTranscript,
        pace: Pace,
        *,
        root: SafePath | None = None,
    ) -> None:
        self.channel = channel
        self.transcript = transcript
        self.pace = pace
        self.answers = Answering(transcript, root)
        self.near = NearMissSearch(transcript)
        self.opening: Reply | None = None
        self.substitute = ""
        self.waits: list[Wait] = []
        self.ids = itertools.count(FIRST_ID)
        self._deaf_since: int | None = None
        self._deaf_to = ""
        self._granted = 0.0

    @property
    def process(self) -> ServerProcess:
        """The process of the server.

        Raises:
            LookupError: we did not start it, or it serves another connection.
        """
        return self.channel.process

    @property
    def modern(self) -> bool:
        """Whether this connection is stateless."""
        return rev.is_modern(self.transcript.revision)

    @property
    def gone(self) -> bool:
        """Whether the server, its output or its session has ended."""
        channel = self.channel
        return self.transcript.ended or channel.session_ended or not channel.running

    def meta(
        self,
        *,
        version: Any = None,
        capabilities: Any = None,
        client: Any = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Build the ``_meta`` of a stateless request (2026-07-28 basic/index#meta)."""
        return {
            META + "protocolVersion": self.transcript.revision if version is None else version,
            META + "clientInfo": CLIENT_INFO if client is None else client,
            META + "clientCapabilities": (
                self.transcript.capabilities if capabilities is None else capabilities
            ),
            **more,
        }

    # --- sending

    def say(
        self,
        message: Any,
        *,
        required: bool = True,
        malformed: bool = False,
    ) -> int:
        """Write one JSON value as a line; return its number."""
        return self.say_raw(encode(message), message, required=required, malformed=malformed)

    def say_together(self, *messages: Any, broken: int = 0) -> list[int]:
        """Write some messages, one per line, in one write; return their numbers.

        They require no answer, and the first ``broken`` of them are malformed on purpose.
        """
        raws = [encode(message) for message in messages]
        lines = [
            self.transcript.said(
                raw, message, malformed=i < broken, required=False, modern=self.modern
            )
            for i, (raw, message) in enumerate(zip(raws, messages, strict=True))
        ]
        self._send(list(map(Said, lines, raws, messages)))
        return lines

    def say_raw(
        self,
        raw: bytes,
        message: Any = None,
        *,
        required: bool = True,
        malformed: bool = False,
        cuts: Sequence[int] = (),
        pause: float = 0.0,
    ) -> int:
        """Write bytes unchanged, cut at some of them with a pause in seconds after each piece.

        ``message`` is their JSON value, if they have one.
        """
        n = self.transcript.said(
            raw, message, malformed=malformed, required=required, modern=self.modern
        )
        self._send([Said(n, raw, message)], cuts, pause)
        return n

    def _send(self, said: Sequence[Said], cuts: Sequence[int] = (), pause: float = 0.0) -> None:
        try:
            self.channel.say(said, self.pace.reply, cuts, pause)
        except Gone as gone:
            if str(gone) != self._deaf_to:  # recorded once: it may send thousands of requests
                self.transcript.happened(f"the server {gone}")
            self._deaf_to = str(gone)
        else:
            self._deaf_to = ""

    def build(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        id: Any = None,  # noqa: A002  (the protocol's own word)
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Make a request; a stateless one gets its ``_meta`` unless params have their own."""
        message: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": next(self.ids) if id is None else id,
            "method": method,
        }
        body = dict(params or {})
        if meta is not None:
            body["_meta"] = dict(meta)
        elif self.modern and "_meta" not in body:
            body["_meta"] = self.meta()
        if body or params is not None:
            message["params"] = body
        return message

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        id: Any = None,  # noqa: A002  (the protocol's own word)
        meta: Mapping[str, Any] | None = None,
        seconds: float | None = None,
        required: bool = True,
    ) -> Reply:
        """Send a request and wait for its answer."""
        asked = self.say(self.build(method, params, id=id, meta=meta), required=required)
        return self.answer_to(asked, seconds)

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = dict(params)
        return self.say(message)

    # --- receiving

    def answer_to(
        self, asked: int, seconds: float | None = None, *, patient: bool = False
    ) -> Reply:
        """Wait for the answer to the request on line ``asked``, matched by its typed id.

        After one timeout, later waits for a server are short, unless ``patient`` is set.
        """
        limit = self.pace.reply if seconds is None else seconds
        if patient:
            self._deaf_since = None
        since = self._deaf_since
        if since is not None and not _theirs(self.transcript.since(since)):
            limit = min(limit, max(self.pace.silence, 4 * self.pace.settle))
        found = self.wait(
            lambda: self.transcript.answer_to(asked) or self.channel.silence(asked), limit
        )
        if isinstance(found, str):
            return Reply(asked, why=found)
        return self._reply(asked, found, limit)

    def opening_answer(self, asked: int, seconds: float) -> Reply:
        """Wait for the first answer of a server; end the wait if a line is almost that answer.

        If the intended message is certain, it is the answer, and later messages with the same
        fault are read too. Otherwise there is no answer.
        """
        almost, silence = self.near.go_on, self.channel.silence
        self.wait(
            lambda: self.transcript.answer_to(asked) or almost(asked) or silence(asked), seconds
        )
        found = self.transcript.answer_to(asked)
        if found is None and silence(asked):
            return Reply(asked, why=silence(asked))
        near = self.near.found
        if near is not None and found is None:
            # a log line may quote the answer before it is written
            patience = self.pace.silence if near.slip in READ_ON else self.pace.reply
            found = self.wait(lambda: self.transcript.answer_to(asked), patience)
            if found is None and near.slip in READ_ON:
                self.transcript.read_on(near.slip)
                found = self.transcript.answer_to(asked)
        if self.transcript.slip is None and found is not None:
            self.near.found = None
        return self._reply(asked, found, seconds)

    def _reply(self, asked: int, found: tuple[Entry, Message] | None, limit: float) -> Reply:
        if found is not None:
            entry, message = found
            self._deaf_since = None
            return Reply(asked, entry.n, message.value)
        if limit >= self.pace.reply:
            self._deaf_since = len(self.transcript)
        why = instead(self.transcript, self.channel, asked)
        if self.near.found is not None and not self.gone:
            return Reply(asked, why=why)
        over = self._over()
        why = f"{over or self._waited(limit)}{'; ' if why else ''}{why}"
        return Reply(asked, why=why, timed_out=not over)

    def _over(self) -> str:
        """Return the reason that no answer can come any more; empty if one can."""
        if self.transcript.overflow:
            return f"we stopped listening: {self.transcript.overflow}"
        status = self.channel.wait(1.0) if self.transcript.ended else self.channel.status
        if status is not None:
            return left(status)
        if self.transcript.ended:
            return Happened.SERVER_CLOSED
        if self.answers.exhausted:
            return f"we stopped answering it after {MOST_ANSWERS:,} of its requests"
        return ""

    def absence(self, limit: float) -> str:
        """Return the reason there is no answer."""
        return self._over() or self._waited(limit)

    def _waited(self, limit: float) -> str:
        crowded = self._granted > WORTH_SAYING * limit
        besides = f", and {self._granted:.1f} s in which it had no core" if crowded else ""
        return f"no answer within {limit:.1f} s{besides}"

    def wait(self, seen: Callable[[], Any], seconds: float) -> Any:
        """Wait for an entry in the transcript, and answer the server's requests meanwhile.

        A wait as long as the limit for an answer excludes the time in which the server had no
        core. A shorter wait is not extended: its result is the state at that time.
        """
        deadline = seconds >= self.pace.reply
        patience = self.channel.patience(seconds) if deadline else Patience(seconds, dict, now)
        begun = now()
        spoke = self.transcript.spoke
        cut_off = begun + self.pace.unfinished
        self._serve()
        while True:
            if self.pace.spins:
                patience.most = ALONE
            delay = self.answers.delay
            got = self.transcript.wait(
                lambda: seen() or self.answers.asked, min(patience.left(), cut_off - now(), delay)
            )
            over = not patience.left()
            if got or over or now() >= cut_off:
                if not got and delay == math.inf and self.channel.take_unfinished():
                    self.pace.unfinished = UNFINISHED_SHORT
                cut_off = now() + self.pace.unfinished
            self._serve()
            found = seen() or None
            if found or over or self.transcript.ended or self.transcript.overflow:
                break
        self._granted = patience.granted
        if self.transcript.spoke and not spoke and not self.channel.is_guest:
            self.waits.append(
                Wait(WaitKind.STARTUP, begun if self.waits else self.channel.born, now())
            )
        else:
            self.waits.append(Wait(WaitKind.ANSWER if found else WaitKind.SILENCE, begun, now()))
        return found

    def _serve(self) -> None:
        for reply in self.answers.replies():
            self.say(reply)

    def quiet(self, seconds: float | None = None) -> list[Entry]:
        """Listen for some seconds; return the server's lines."""
        start = len(self.transcript)
        self.wait(lambda: False, self.pace.settle if seconds is None else seconds)
        return _theirs(self.transcript.since(start))

    # --- the opening

    def initialize(
        self,
        version: str | None = None,
        *,
        capabilities: Mapping[str, Any] | None = None,
        client: Any = None,
        omit: Sequence[str] = (),
        seconds: float | None = None,
        required: bool = True,
    ) -> Reply:
        """Send ``initialize`` and wait; ``omit`` leaves members of params out."""
        declared = dict(self.answers.client.capabilities if capabilities is None else capabilities)
        self.transcript.declare(declared)
        params = {
            "protocolVersion": self.transcript.revision if version is None else version,
            "capabilities": declared,
            "clientInfo": CLIENT_INFO if client is None else client,
        }
        for member in omit:
            del params[member]
        first = not any(entry.source is Source.US for entry in self.transcript)
        message = {"jsonrpc": "2.0", "id": next(self.ids), "method": "initialize", "params": params}
        asked = self.say(message, required=required and not omit)
        limit = seconds or (self.pace.startup if first else self.pace.reply)
        self.opening = self.opening_answer(asked, limit) if first else self.answer_to(asked, limit)
        return self.opening

    def discover(self, *, required: bool = True, **meta: Any) -> Reply:
        """Send ``server/discover``, or a list if the server lacks it, and wait."""
        first = not any(entry.source is Source.US for entry in self.transcript)
        limit = self.pace.startup if first else self.pace.reply
        method = self.substitute or "server/discover"
        reply = self.request(method, meta=self.meta(**meta), seconds=limit, required=required)
        if self.opening is None:
            self.opening = reply
        return reply

    def open(self) -> Reply:
        """Perform the ordinary opening of this connection's revision."""
        if self.modern:
            self.transcript.declare(dict(self.answers.client.capabilities))
            return self.discover()
        reply = self.initialize()
        if reply.result is not None:
            self.notify("notifications/initialized")
        return reply

    @property
    def ping_method(self) -> str:
        """The method of a ping: server/discover where the revision has none, or else a list."""
        return self.substitute or ("server/discover" if self.modern else "ping")

    def ping(self, *, seconds: float | None = None, required: bool = True) -> Reply:
        """Send ``ping``, or in 2026-07-28 ``server/discover``; any server answers that."""
        return self.request(self.ping_method, seconds=seconds, required=required)

    def end(self, *, polite: bool = True) -> Ending:
        """Shut the server down."""
        return self.channel.end(self.pace.farewell, polite=polite, hurry=self.pace.hurry)


def _theirs(entries: Sequence[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.source is Source.THEM]


__all__ = ["CLIENT_INFO", "FULL_CAPABILITIES", "META", "Connection", "Pace", "Reply"]
