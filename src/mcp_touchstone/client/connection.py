"""One live connection to a server: send, wait, answer its requests. Judges nothing."""

import contextlib
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from mcp_touchstone import __version__
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.client.profile import Client
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.runtime.timeouts import UNFINISHED_SHORT, Pace
from mcp_touchstone.runtime.timing import Wait, WaitKind
from mcp_touchstone.transport.channel import Channel, Said
from mcp_touchstone.transport.deadline import Patience
from mcp_touchstone.transport.process import Ending, Gone, ServerProcess, left, now
from mcp_touchstone.wire.framing import Fault, Kind, encode, id_key
from mcp_touchstone.wire.lifecycle import Message, Role
from mcp_touchstone.wire.near_miss import READ_ON, NearMiss, near_miss
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Entry, Source, Transcript

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

MOST_ANSWERS: Final = 2000
"""Greatest number of answered server requests per connection: some servers send two for each."""

FIRST_ID: Final = 101
"""Lower ids are reserved for scenarios that need a particular one."""


class Connection:
    """A channel, its transcript, and the client's side of the conversation.

    Attributes:
        guarded: the request that the server refuses without a token; empty for the first one of a
            client; None until somebody looked for it.
    """

    def __init__(
        self,
        channel: Channel,
        transcript: Transcript,
        pace: Pace,
        *,
        root: SafePath | None = None,
    ) -> None:
        self.channel = channel
        self.transcript = transcript
        self.pace = pace
        self.revision = transcript.revision
        self.opening: Reply | None = None
        self.answering = True
        self.client = Client()
        self._ids = itertools.count(FIRST_ID)
        self.root = root
        self._roots = () if root is None else (root.as_uri(),)
        self._served = 0
        self._due: list[tuple[float, dict[str, Any]]] = []
        self._deaf_since: int | None = None
        self._serving = threading.Lock()
        self._deaf_to = ""
        self._granted = 0.0
        self._answers = 0
        self.waits: list[Wait] = []
        self.first_method = "server/discover"
        self.near_miss: NearMiss | None = None
        self.near_miss_lines = (0, 0)
        self.guarded: dict[str, Any] | None = None

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
        return rev.is_modern(self.revision)

    @property
    def gone(self) -> bool:
        """Whether the server, its output or its session has ended."""
        channel = self.channel
        return self.transcript.ended or channel.session_ended or not channel.running

    @property
    def has_begun(self) -> bool:
        """Whether the server has written something, or has ended."""
        return self.transcript.spoke or self.gone

    def next_id(self) -> int:
        """Return an id that was not used on this connection."""
        return next(self._ids)

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
            META + "protocolVersion": self.revision if version is None else version,
            META + "clientInfo": CLIENT_INFO if client is None else client,
            META + "clientCapabilities": (
                self.transcript.capabilities if capabilities is None else capabilities
            ),
            **more,
        }

    def tagged(self, *, token: Any = None, level: str | None = None) -> dict[str, Any] | None:
        """Build a ``_meta`` with a progress token or, in a stateless request, a log level."""
        more = {} if token is None else {"progressToken": token}
        if not self.modern:
            return more or None
        return self.meta(**more, **({} if level is None else {META + "logLevel": level}))

    def use(self, client: Client) -> None:
        """Use another client for later answers, and for the capabilities in stateless requests.

        The capabilities declared to an open session do not change.
        """
        self.client = client
        if self.modern:
            self.transcript.capabilities = dict(client.capabilities)

    def filled(self, client: Client, requests: Any) -> dict[str, Any]:
        """Return the answers of a client to ``inputRequests``."""
        return client.fill(requests, world=self._roots)

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
        self._send(*map(Said, lines, raws, messages))
        return lines

    def say_in_pieces(self, message: Any, cuts: Sequence[int], pause: float) -> int:
        """Write a line cut at some bytes, with a pause in seconds after each; return its number.

        It requires no answer.
        """
        raw = encode(message)
        n = self.transcript.said(raw, message, malformed=False, required=False, modern=self.modern)
        with self._recording_loss():
            self.channel.say_in_pieces(Said(n, raw, message), cuts, pause, self.pace.reply)
        return n

    def say_raw(
        self,
        raw: bytes,
        message: Any = None,
        *,
        required: bool = True,
        malformed: bool = False,
    ) -> int:
        """Write bytes unchanged; ``message`` is their JSON value, if they have one."""
        n = self.transcript.said(
            raw, message, malformed=malformed, required=required, modern=self.modern
        )
        self._send(Said(n, raw, message))
        return n

    def _send(self, *said: Said) -> None:
        with self._recording_loss():
            self.channel.say(said, self.pace.reply)

    @contextlib.contextmanager
    def _recording_loss(self) -> Iterator[None]:
        try:
            yield
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
            "id": self.next_id() if id is None else id,
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
        if self._deaf_since is not None and self._heard() == self._deaf_since:
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
        almost = self.near_miss_watch(asked)
        silence = self.channel.silence
        self.wait(lambda: self.transcript.answer_to(asked) or almost() or silence(asked), seconds)
        found = self.transcript.answer_to(asked)
        if found is None and silence(asked):
            return Reply(asked, why=silence(asked))
        near = self.near_miss
        if near is not None and found is None:
            # a log line may quote the answer before it is written
            patience = self.pace.silence if near.slip in READ_ON else self.pace.reply
            found = self.wait(lambda: self.transcript.answer_to(asked), patience)
            if found is None and near.slip in READ_ON:
                self.transcript.read_on(near.slip)
                found = self.transcript.answer_to(asked)
        if self.transcript.slip is None and found is not None:
            self.near_miss = None
        return self._reply(asked, found, seconds)

    def in_words(self, reply: Reply) -> str:
        """Return a reply as text, with the status of the HTTP error that carried it."""
        origin = self.transcript[reply.entry].origin if reply.entry else None
        if origin is None or not origin.refuses:
            return str(reply)
        return f"HTTP {origin.exchange.status}: {reply}"

    def near_miss_watch(self, asked: int) -> Callable[[], NearMiss | None]:
        """Return a function that reads new lines until one is almost the answer."""
        request = self.transcript[asked].value
        mark = asked

        def almost() -> NearMiss | None:
            nonlocal mark
            for entry in self.transcript.since(mark) if self.near_miss is None else ():
                mark = entry.n
                if entry.reading is not None and self.near_miss is None:
                    found = near_miss(entry.raw, entry.reading.value, request)
                    if found is not None and "result" in found.meant:
                        self.near_miss = found
                        self.near_miss_lines = asked, entry.n
            return self.near_miss

        return almost

    def _reply(self, asked: int, found: tuple[Entry, Message] | None, limit: float) -> Reply:
        if found is not None:
            entry, message = found
            self._deaf_since = None
            return Reply(asked, entry.n, message.value)
        if limit >= self.pace.reply:
            self._deaf_since = self._heard()
        exchanges = self.transcript.exchanges
        lost = next((one.lost for one in exchanges if one.line == asked and one.lost), "")
        instead = f"; in its response is {lost}" if lost else self._instead(asked)
        if self.near_miss is not None and not self.gone:
            return Reply(asked, why=instead.removeprefix("; "))
        return Reply(asked, why=self.absence(limit) + instead)

    def _instead(self, asked: int) -> str:
        """Return the message that came instead of an answer, if it explains the silence.

        An error without an id may be the late answer to a malformed line of ours.
        """
        spoilt = any(one.malformed for one in list(self.transcript)[:asked])
        for entry in self.transcript.since(asked):
            if entry.source is Source.THEM and entry.raw.rstrip() == self.transcript[asked].raw:
                return f"; line {entry.n} repeats our request"
            if entry.reading is not None and Fault.TOO_DEEP in entry.reading.faults:
                return f"; line {entry.n} is {Fault.TOO_DEEP}"
            of_another = any(
                message.answers is not None
                or (spoilt and message.kind is Kind.ERROR and message.value.get("id") is None)
                for message in entry.messages
            )
            if entry.reading is not None and not of_another:
                near = near_miss(entry.raw, entry.reading.value, self.transcript[asked].value)
                if near is not None:
                    return f"; line {entry.n} is {near.words}: {near.cure}"
        if not self.transcript.spoke and '"jsonrpc"' in self.channel.stderr():
            return "; it writes JSON-RPC to stderr, and nothing to stdout"
        on_pipes = self.channel.transport is Transport.STDIO
        silent = on_pipes and not self.transcript.spoke and not self.gone
        ports = self.process.family.ports() if silent else []
        if ports:
            return f"; it listens on port {ports[0]}: has it an option for stdio?"
        return ""

    def _heard(self) -> int:
        """Return the number of the server's lines, to detect a server that no longer answers."""
        return sum(entry.source is Source.THEM for entry in self.transcript)

    def absence(self, limit: float) -> str:
        """Return the reason there is no answer."""
        if self.transcript.overflow:
            return f"we stopped listening: {self.transcript.overflow}"
        status = self.channel.wait(1.0) if self.transcript.ended else self.channel.status
        if status is not None:
            return left(status)
        if self.transcript.ended:
            return "the server closed its output"
        if self._answers > MOST_ANSWERS:
            return f"we stopped answering it after {MOST_ANSWERS:,} of its requests"
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
        found = self._wait(seen, patience)
        self._granted = patience.granted
        if self.transcript.spoke and not spoke and not self.channel.is_guest:
            self.waits.append(
                Wait(WaitKind.STARTUP, begun if self.waits else self.channel.born, now())
            )
        else:
            self.waits.append(Wait(WaitKind.ANSWER if found else WaitKind.SILENCE, begun, now()))
        return found

    def _wait(self, seen: Callable[[], Any], patience: Patience) -> Any:
        cut_off = now() + self.pace.unfinished
        while True:
            stirred = self._stirred(seen)
            self._serve()
            due = self._next_due()
            got = self.transcript.wait(stirred, min([patience.left(), cut_off - now(), *due]))
            over = not patience.left()
            if got or over or now() >= cut_off:
                if not got and not due and self.channel.take_unfinished():
                    self.pace.unfinished = UNFINISHED_SHORT
                cut_off = now() + self.pace.unfinished
            self._serve()
            found = seen()
            if found or self.transcript.ended or self.transcript.overflow or over:
                return found or None

    def quiet(self, seconds: float | None = None) -> list[Entry]:
        """Listen for some seconds; return the server's lines."""
        start = len(self.transcript)
        self.wait(lambda: False, self.pace.settle if seconds is None else seconds)
        return [e for e in self.transcript.since(start) if e.source is Source.THEM]

    # --- the client's side

    def _stirred(self, seen: Callable[[], Any]) -> Callable[[], Any]:
        """Return a function: whether the entry was seen, or a new server request has come.

        It is called at every line, so it reads each line once.
        """
        mark = len(self.transcript)
        was_asked = False

        def stirred() -> Any:
            nonlocal mark, was_asked
            if self.answering and not was_asked:
                fresh = self.transcript.since(mark)
                mark += len(fresh)
                was_asked = any(m.role is Role.REQUEST for entry in fresh for m in entry.messages)
            return seen() or was_asked

        return stirred

    def _serve(self) -> None:
        """Answer new requests of the server, and send delayed answers that are due."""
        if not self.answering:
            return
        with self._serving:
            fresh = self.transcript.since(self._served)
            self._served += len(fresh)
        for entry in fresh:
            for message in entry.messages:
                if message.role is Role.REQUEST and id_key(message.value.get("id")) is not None:
                    self._serve_one(message)
        with self._serving:
            ripe = [reply for when, reply in self._due if when <= now()]
            self._due = [(when, reply) for when, reply in self._due if when > now()]
        for reply in ripe:
            self.say(reply)

    def _serve_one(self, message: Message) -> None:
        if self.transcript.session.echoes(message.value):
            return  # our answer to an echoed request would look like its own
        said = self.client.answer(
            message.method,
            message.value.get("params"),
            declared=self.transcript.capabilities,
            world=self._roots,
        )
        if said.body is None:
            return
        self._answers += 1
        if self._answers > MOST_ANSWERS:
            self.answering = False
            self.transcript.happened(f"we answered {MOST_ANSWERS:,} of its requests, and no more")
            return
        reply = {"jsonrpc": "2.0", "id": message.value["id"], **said.body}
        if said.delay:
            with self._serving:
                self._due.append((now() + said.delay, reply))
        else:
            self.say(reply)

    def _next_due(self) -> list[float]:
        """Return the seconds until each delayed answer is due."""
        with self._serving:
            return [max(0.0, when - now()) for when, _ in self._due]

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
        declared = dict(self.client.capabilities if capabilities is None else capabilities)
        self.transcript.capabilities = declared
        params = {
            "protocolVersion": self.revision if version is None else version,
            "capabilities": declared,
            "clientInfo": CLIENT_INFO if client is None else client,
        }
        for member in omit:
            del params[member]
        first = not any(entry.source is Source.US for entry in self.transcript)
        message = {"jsonrpc": "2.0", "id": self.next_id(), "method": "initialize", "params": params}
        asked = self.say(message, required=required and not omit)
        limit = seconds or (self.pace.startup if first else self.pace.reply)
        self.opening = self.opening_answer(asked, limit) if first else self.answer_to(asked, limit)
        return self.opening

    def initialized(self) -> int:
        """Send ``notifications/initialized``."""
        return self.notify("notifications/initialized")

    def discover(
        self, *, seconds: float | None = None, required: bool = True, **meta: Any
    ) -> Reply:
        """Send ``server/discover``, or a list if the server lacks it, and wait."""
        first = not any(entry.source is Source.US for entry in self.transcript)
        limit = seconds or (self.pace.startup if first else self.pace.reply)
        reply = self.request(
            self.first_method, meta=self.meta(**meta), seconds=limit, required=required
        )
        if self.opening is None:
            self.opening = reply
        return reply

    def open(self, *, capabilities: Mapping[str, Any] | None = None) -> Reply:
        """Perform the ordinary opening of this connection's revision."""
        if self.modern:
            declared = self.client.capabilities if capabilities is None else capabilities
            self.transcript.capabilities = dict(declared)
            return self.discover()
        reply = self.initialize(capabilities=capabilities)
        if reply.result is not None:
            self.initialized()
        return reply

    @property
    def everyday(self) -> str:
        """The method that every server of this revision supports: ping, or server/discover."""
        return self.first_method if self.modern else "ping"

    def probe(self, *, seconds: float | None = None, required: bool = True) -> Reply:
        """Send a request that every server of this revision answers."""
        return self.request(self.everyday, seconds=seconds, required=required)

    def close_input(self) -> None:
        """Close the input of the server; it may still answer."""
        self.transcript.input_closed()
        self.process.close_stdin()

    def end(self, *, polite: bool = True) -> Ending:
        """Shut the server down."""
        return self.channel.end(self.pace.farewell, polite=polite, hurry=self.pace.hurry)


__all__ = ["CLIENT_INFO", "FULL_CAPABILITIES", "META", "Connection", "Pace", "Reply"]
