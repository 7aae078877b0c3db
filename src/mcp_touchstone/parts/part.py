"""A server of ours that plays a part for a client under test.

The part decides what the server answers; the rules on clients judge the recording.
"""

import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, TypeVar

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.scenario import declare_part
from mcp_touchstone.parts.canary import FetchCanary
from mcp_touchstone.runtime.inotify import OpenWatcher
from mcp_touchstone.runtime.safe_path import Tree
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.events import Happened
from mcp_touchstone.wire.framing import (
    Kind,
    brief,
    encode,
    id_key,
    kind_of,
    object_in,
    value_in,
)

Json = dict[str, Any]

VERSION: Final = rev.META + "protocolVersion"
METHOD_NOT_FOUND, INVALID_PARAMS, UNSUPPORTED = -32601, -32602, -32022
INFO: Final = {"name": "mcp-touchstone-act", "version": "1"}
DROPS: Final = "drops"
"""The stream of the first call is closed after its first message."""

FORGETS: Final = "forgets"
"""The session of the first call is over at the next request."""

BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
"""The grant by an assertion of an identity provider (RFC 7523)."""

WORKLOAD: Final = "workload"
"""The same grant by the JWT of the platform on which a client runs, without a user."""

ISSUER: Final = "{issuer}"
"""The URL of the first issuer replaces it in metadata and in authorization responses."""

COMMENTS: Final = "comments"
"""Streams of calls have comments and other forms of lines; the first one has not."""

LOSES: Final = "loses"
"""The connection of a call is closed in place of an answer, once for each call."""

REDIRECTS: Final = "redirects"
"""Calls are redirected to another origin of ours."""

STATUSES: Final = (307, 308, 301, 302, 303)
"""The redirects, one for each call; a further one has the other origin under another name."""

PROOFS, NONCES = "proofs", "nonces"
"""Tokens are bound to a key, of which each request has a proof; with NONCES it has a nonce too."""

MOVES: Final = "moves"
"""Tokens come from another authorization server after the first call."""

NUMBERS: Final = {
    "name": "add_numbers",
    "description": "Add two numbers together.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
}


@dataclass(frozen=True, slots=True)
class Protection:
    """How our HTTP server asks for a token, and what is wrong there.

    Attributes:
        place: path of its metadata; a client finds the default ones without a challenge.
        names_place: whether the challenge has the URL of the metadata.
        scope: scopes in the challenge.
        supported: scopes in the metadata.
        more: the scope that a call needs beside them.
        never: whether a call, or the list, is refused even with that scope.
        resource: the resource in the metadata; empty for our URL.
        tenant: path of the issuer.
        places: paths of the metadata of the issuer; None for those of an issuer without a path.
        metadata: members of that metadata to replace; None removes one.
        response: members of the authorization response to replace, likewise.
        then: what happens after the first call: with FORGETS the token expires, with MOVES another
            issuer takes over; empty for nothing.
        defaults: whether it is a server of 2025-03-26: no metadata, its own default endpoints, and
            an open ``initialize``.
        moved: paths of the issuer that are redirected to another origin of ours.
        grant: how a client that the issuer knows already gets a token: ``authorization_code``,
            ``client_credentials``, BEARER or WORKLOAD; empty for a client that it does not know.
        stranger: whether the metadata names another issuer than the one that knows the client.
        renamed: whether the other issuer has the port of the first one, and another host name.
        proofs: PROOFS or NONCES; empty for tokens that whoever has them may use.
    """

    place: str = "/metadata/mcp"
    names_place: bool = True
    scope: str = "read"
    supported: tuple[str, ...] = ()
    more: str = ""
    never: bool = False
    resource: str = ""
    tenant: str = ""
    places: tuple[str, ...] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    response: Mapping[str, str | None] = field(default_factory=dict)
    then: str = ""
    defaults: bool = False
    moved: tuple[str, ...] = ()
    grant: str = ""
    stranger: bool = False
    renamed: bool = False
    proofs: str = ""


BAIT: Final = "bait.json"
"""Name of the file that nobody may open."""

CALLS: Final[tuple[Json, ...]] = (
    {"list": "tools"},
    *({"call": "add_numbers", "a": n, "b": 3, "fails": True} for n in range(len(STATUSES) + 1)),
)
"""The steps of a client that calls a tool for each redirect, whatever comes of it."""

TWICE: Final[tuple[Json, ...]] = (
    {"list": "tools"},
    {"call": "add_numbers", "a": 2, "b": 3},
    {"call": "add_numbers", "a": 4, "b": 5},
)
"""The steps of a client that calls a tool twice."""


class ClientGone(Exception):  # noqa: N818  (an event of the conversation, not a fault of ours)
    """The client ended the conversation without closing the input; the message is the event."""


END: Final = object()
"""A part reads it when its input has ended."""


class Noted(Protocol):
    """What is known of the client of a scenario.

    Attributes:
        lost: its calls whose answers it did not get, see ``lose``.
    """

    lost: set[str]

    def note(self, sentence: str) -> None:
        """Record an event."""


class Peer(Noted, Protocol):
    """The client of a part.

    Attributes:
        is_first: whether no part was played for it before.
        place: a folder of ours that it can read; None if there is none.
    """

    is_first: bool
    place: Path | None

    def read(self, seconds: float) -> Sequence[Any]:
        """Return its next messages, and END at the end of the input; none if none come in time.

        Raises:
            ClientGone: it has ended the conversation.
        """

    def write(self, raw: bytes) -> None:
        """Write a message to it; one that reads no more is no error."""

    def listen(self) -> socket.socket:
        """Return a socket that listens where it is.

        Raises:
            OSError: no port is free.
        """

    def log(self, raw: bytes) -> None:
        """Write bytes to the standard error that it holds; note when they were read."""


def lose(peer: Noted, request: Json) -> bool:
    """Return whether the answer to a call is to be lost: the first time it is; note both."""
    own, is_first = call_of(request), call_of(request) not in peer.lost
    name = value_in(request, "params", "name")
    peer.note(f"{Happened.LOST if is_first else Happened.RAN_AGAIN}{name}")
    peer.lost.add(own)
    return is_first


def call_of(request: Json) -> str:
    """Return which call a request is, by the tool and its arguments."""
    params = object_in(request, "params")
    return brief([params.get("name"), params.get("arguments")])


def listening(port: int = 0) -> socket.socket:
    """Return a socket that listens on loopback, on any free port or on this one.

    Raises:
        OSError: no port is free.
    """
    return socket.create_server(("127.0.0.1", port))


class Part:
    """A server that does nothing special; a subclass overrides what its scenario is about.

    Attributes:
        steps: what the client is asked to do, as data.
        modern: whether it speaks the stateless era; else it speaks the revisions with a handshake.
        both: whether ``initialize`` begins a session although it is modern.
        versions: the revisions that it speaks, of its era; oldest first.
        is_about_sessions: whether it makes no sense in the stateless era.
        opened: whether initialize came.
        peer: the client.
        gone: its exit status; None while it plays.
        http_fault: what its HTTP server does: one of the constants above; empty for nothing.
        protection: how its HTTP server asks for a token; None for a part that asks for none.
        official: see ``scenario``.
        draft: the chapter of a draft that has it; empty for one that is played always.
        may_fail: whether a client may report an error, so that its exit status means nothing.
        lingers: seconds that it goes on after the end of its input.
        on_stdio: whether it is for stdio only.
        named: further tools, by which a client of the official suite finds the scenario.
        results: method -> the result of each request with it, whatever its parameters.
    """

    steps: ClassVar[tuple[Json, ...]] = ({"list": "tools"}, {"call": "add_numbers", "a": 2, "b": 3})
    modern = False
    both = False
    versions: ClassVar[tuple[str, ...]] = rev.ALL
    is_about_sessions = False
    http_fault = ""
    protection: ClassVar[Protection | None] = None
    may_fail = False
    lingers = 0.0
    on_stdio = False
    official: ClassVar[str | None] = None
    draft = ""
    capabilities: ClassVar[Json] = {"tools": {"listChanged": True}}
    results: ClassVar[Mapping[str, Json]] = {}
    named: ClassVar[tuple[str, ...]] = ()

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.revision = self.spoken(modern=self.modern)[-1]
        self.gone: int | None = None
        self.opened = False
        self._number = 0
        self._asked: dict[Any, Callable[[Json], object]] = {}
        self._alarms: list[tuple[float, Callable[[], object]]] = []
        self._canary: FetchCanary | None = None
        self._opened: OpenWatcher | None = None

    # --- what a part overrides

    def tools(self, params: Json) -> Json | None:
        """Return the result of tools/list; None for a cursor that it never gave."""
        del params
        return {"tools": [NUMBERS]}

    def call(self, request: Json) -> None:
        """Answer tools/call."""
        given = object_in(request, "params", "arguments")
        numbers = [one for one in given.values() if isinstance(one, int | float)]
        self.answer(request, self.text(str(sum(numbers))))

    def initialize(self, request: Json) -> None:
        """Answer initialize."""
        wanted, spoken = object_in(request, "params").get("protocolVersion"), self.spoken()
        self.revision = wanted if wanted in spoken else spoken[-1]
        self.answer(request, self.opening())

    def noticed(self, message: Json) -> None:
        """Act on a notification."""

    # --- what a part uses

    @classmethod
    def spoken(cls, *, modern: bool = False) -> list[str]:
        """Return the revisions that it speaks in an era, oldest first."""
        return [one for one in cls.versions if rev.is_modern(one) is modern]

    def opening(self) -> Json:
        """Return the result of initialize."""
        return {
            "protocolVersion": self.revision,
            "capabilities": self.capabilities,
            "serverInfo": INFO,
        }

    @staticmethod
    def text(words: str) -> Json:
        """Return the result of a call."""
        return {"content": [{"type": "text", "text": words}]}

    def say(self, message: Json) -> None:
        """Write a message."""
        self.peer.write(encode({"jsonrpc": "2.0", **message}))

    def log(self, raw: bytes) -> None:
        """Write bytes to standard error; nothing more comes until the client has read them."""
        self.peer.log(raw)

    def answer(self, request: Json, result: Json) -> None:
        """Answer a request with a result."""
        if self.modern:
            meta = {rev.META + "serverInfo": INFO, **result.get("_meta", {})}
            result = {"resultType": "complete", **result, "_meta": meta}
        self.say({"id": request.get("id"), "result": result})

    def refuse(self, request: Json, code: int, message: str, **data: Any) -> None:
        """Answer a request with an error."""
        more = {"data": data} if data else {}
        self.say({"id": request.get("id"), "error": {"code": code, "message": message, **more}})

    def ask(self, method: str, then: Callable[[Json], object], **params: Any) -> None:
        """Ask the client, and call a function with its response."""
        self._number += 1
        self._asked[id_key(f"q{self._number}")] = then
        more = {"params": params} if params else {}
        self.say({"id": f"q{self._number}", "method": method, **more})

    @cached_property
    def canary(self) -> str:
        """An address of ours; what the client fetches there is an event."""
        try:
            self._canary = FetchCanary(self.peer.note, self.peer.listen())
        except OSError as error:  # its sandbox has ended
            raise ClientGone(Happened.KILLED) from error
        return self._canary.start()

    @cached_property
    def bait(self) -> str:
        """The URL of a file of ours; that it is opened is an event. Empty where nobody can tell."""
        if self.peer.place is None:
            return ""
        folder = Tree(self.peer.place.resolve()).top / f"bait-{secrets.token_hex(8)}"
        folder.mkdir()
        (folder / BAIT).write_text("{}")
        self._opened = OpenWatcher([folder])
        return (folder / BAIT).as_uri() if self._opened.works else ""

    def _look(self) -> None:
        """Note whether the bait was opened."""
        for path in self._opened.seen() if self._opened else ():
            if path.name == BAIT:
                self.peer.note(f"{Happened.FETCHED}file:{BAIT}")

    def later(self, seconds: float, then: Callable[[], object]) -> None:
        """Call a function after some seconds, while the client is there."""
        self._alarms.append((now() + seconds, then))

    # --- the conversation

    def run(self) -> int:
        """Play until the client closes the input; return the exit status.

        Raises:
            ClientGone: the client ended the conversation.
        """
        try:
            while self.gone is None:
                for message in self.peer.read(self._ring()):
                    self._look()
                    if message is END and self.lingers:
                        self.later(self.lingers, self._leave)
                    elif message is END:
                        self._leave()
                    elif self.gone is None:
                        self._hear(message)
        except ClientGone:
            self.gone = 1
            raise
        finally:
            self._look()
            if self._opened is not None:
                self._opened.close()
            if self._canary is not None:
                self._canary.stop()
        return self.gone

    def _ring(self) -> float:
        """Call what is due; return the seconds until something is."""
        for alarm in [alarm for alarm in self._alarms if alarm[0] <= now()]:
            self._alarms.remove(alarm)
            alarm[1]()
        if self.gone is not None:
            return 0.0
        return max(0.0, min((at for at, _ in self._alarms), default=now() + 60) - now())

    def _leave(self) -> None:
        self.gone = self.gone or 0

    def _hear(self, message: Any) -> None:
        kind = kind_of(message)
        if kind in {Kind.RESULT, Kind.ERROR}:
            then = self._asked.pop(id_key(message.get("id")), None)
            if then is not None:
                then(message)
        elif kind is Kind.NOTIFICATION:
            self.noticed(message)
        elif kind is Kind.REQUEST:
            self.serve(message)

    def serve(self, request: Json) -> None:
        """Answer a request."""
        method, params = request["method"], object_in(request, "params")
        if self.both and method == "initialize":
            self.modern = False
        if self.modern and (trouble := self._unsupported(request, method)):
            code, words, data = trouble
            self.refuse(request, code, words, **data)
        elif method == "initialize":
            self.opened = True
            self.initialize(request)
        elif method == "ping" and not self.modern:
            self.answer(request, {})
        elif method == "server/discover" and self.modern:
            spoken = self.spoken(modern=True)
            more = {"supportedVersions": spoken, "capabilities": self.capabilities}
            self.answer(request, {**more, **self.cache})
        elif method in {"tools/list", "tools/call", *self.results}:
            self._offer(request, method, params)
        else:
            self.refuse(request, METHOD_NOT_FOUND, "Method not found")

    def _offer(self, request: Json, method: str, params: Json) -> None:
        """Answer a request that a server with sessions refuses before ``initialize``."""
        if not (self.modern or self.opened):
            self.refuse(request, INVALID_PARAMS, "This server wants initialize first")
        elif method == "tools/call":
            self.call(request)
        elif method == "tools/list" and (page := self.tools(params)) is None:
            self.refuse(request, INVALID_PARAMS, "Unknown cursor")
        elif method == "tools/list":
            found = page or {}
            named = ({"name": name, "inputSchema": {"type": "object"}} for name in self.named)
            self.answer(request, {**self.cache, **found, "tools": [*found["tools"], *named]})
        else:
            more = self.cache if method.endswith("/list") else {}
            self.answer(request, {**self.results[method], **more})

    @property
    def cache(self) -> Json:
        """What says how long a result may be kept, in the stateless era."""
        return {"ttlMs": 0, "cacheScope": "private"} if self.modern else {}

    def is_open(self, request: Json) -> bool:
        """Whether a request may be answered: a session is open, or it is a right one without."""
        return self._unsupported(request, request["method"]) is None if self.modern else self.opened

    def _unsupported(self, request: Json, method: str) -> tuple[int, str, Json] | None:
        meta = object_in(request, "params", "_meta")
        spoken = self.spoken(modern=True)
        if method == "initialize" or (VERSION in meta and meta[VERSION] not in spoken):
            asked = meta.get(VERSION) or value_in(request, "params", "protocolVersion")
            data = {"supported": spoken, "requested": asked}
            return UNSUPPORTED, "Unsupported protocol version", data
        needed = (VERSION, rev.META + "clientCapabilities")
        if not all(name in meta for name in needed):
            return INVALID_PARAMS, f"_meta lacks {' or '.join(needed)}", {}
        return None


P = TypeVar("P", bound=Part)


def scenario(name: str, official: str | None = None) -> Callable[[type[P]], type[P]]:
    """Declare the part of our server in a scenario for clients.

    Args:
        name: the name of the scenario.
        official: the scenario of the official conformance suite in which a client takes the steps,
            and after a blank its other name;
            empty if there is none, None for the one that lists tools and calls the first.

    Raises:
        CatalogueError: there is such a scenario.
    """

    def declare(part: type[P]) -> type[P]:
        part.official = official
        declare_part(name, part)
        return part

    return declare


def variant(
    name: str, base: type[Part], about: str, official: str | None = None, **members: Any
) -> type[Part]:
    """Declare a part that differs from another one in these members."""
    part = type(base.__name__, (base,), {"__doc__": about, **members})
    return scenario(name, official)(part)


class Protected(Part):
    """A server that asks for a token."""

    modern = both = may_fail = True


def protected(name: str, *, about: str, official: str, draft: str = "", **members: Any) -> None:
    """Declare a server that asks for a token, by members of its ``Protection``."""
    steps = TWICE if "then" in members else Protected.steps
    own = {"steps": steps, "protection": Protection(**members), "draft": draft}
    variant(name, Protected, about, official, **own)
