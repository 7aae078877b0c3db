"""A tour of a server: fixed questions in a fixed order, with comparable answers.

The profile of the server determines the stops: the opening, the lists, calls that are allowed,
resources, prompts, completions, and common mistakes. A recorded question is repeated unchanged as
long as the server still offers its subject. Judges nothing.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.server_profile import LISTS, Example, Request, Spoken
from mcp_touchstone.results.scrubber import Scrubber, lined
from mcp_touchstone.samples.from_schema import incomplete, mistyped
from mcp_touchstone.target.target import ROOT, replaced
from mcp_touchstone.transport.process import LaunchError
from mcp_touchstone.wire.lifecycle import Role
from mcp_touchstone.wire.reply import Reply

Document = dict[str, Any]
"""The record of one stop: ``ask``, ``answer``, for a list ``pages``, and ``of`` for a template."""

WORDS: Final = frozenset(
    {"callable-tool", "readable-resource", "readable-template", "rendered-prompt", "completions"}
)
"""The words that discovery must decide before a tour."""

UNASKED: Final = "unasked"
"""The stop with the unsolicited messages of the server, in any order."""

PAGES: Final = 50
SILENCES: Final = 3
"""Unanswered questions after which a tour is abandoned."""

_CLIENT: Final = {"name": "touchstone-golden", "version": "1"}


@dataclass(frozen=True, slots=True)
class Stop:
    """One question.

    Attributes:
        name: name, unique among the stops of a revision; also names a file.
        ask: the request; ``{root}`` in it is replaced by the folder of the run.
        of: the listed item it concerns, if ``ask`` does not name it.
        member: for a list, the member of the result that contains the items.
    """

    name: str
    ask: Request
    of: str = ""
    member: str = ""

    @property
    def about(self) -> str:
        """The listed item it concerns; empty if there is none."""
        named = self.ask.params.get("name") or self.ask.params.get("uri")
        return self.of or (named if isinstance(named, str) else "")


def title(name: str, document: Document) -> str:
    """Return the method and subject of a stop: ``tools/call echo``."""
    ask = document.get("ask")
    if not isinstance(ask, dict) or name == UNASKED:
        return name
    params = ask.get("params") or {}
    words = [ask.get("method"), params.get("name") or params.get("uri")]
    shown = " ".join(word for word in words if isinstance(word, str))
    return f"{shown} ({name})" if name.startswith("error-") else shown


# --- the plan of a tour


@dataclass(frozen=True, slots=True)
class Offer:
    """The offer of a server in one revision, and the tools that may be called there.

    Attributes:
        spoken: its profile in that revision.
        may_call: names of tools that may be called.
        root: the folder used by discovery; the examples contain its path.
    """

    spoken: Spoken
    may_call: Collection[str]
    root: str

    def __contains__(self, stop: Stop) -> bool:
        """Return whether a recorded question can be asked again."""
        if stop.ask.method == "tools/call":
            return stop.about in self.may_call or not stop.about
        feature = _FEATURES.get(stop.name.partition("-")[0])
        if feature is None:
            return False
        method = LISTS[feature[0][0]][0]
        listed = {i.get(member) for kind, member in feature for i in self.spoken.items(kind)}
        return stop.about in listed or method in self.spoken.cursors


_FEATURES: Final = {
    "read": (("resources", "uri"), ("templates", "uriTemplate")),
    "prompt": (("prompts", "name"),),
}
"""Beginning of the name of a stop -> the lists with its subject, and the members that name it."""


def plan(revision: str, offer: Offer, recorded: Mapping[str, Document]) -> list[Stop]:
    """Plan the tour of a revision; recorded questions are repeated unchanged."""
    stops = {stop.name: stop for stop in _stops(revision, offer)}
    for name, document in recorded.items():
        known = _stop(name, document)
        if known is None or known.member or name in _FIXED:
            continue
        if known in offer or (name in stops and known.ask.method != "tools/call"):
            stops[name] = known
    return list(stops.values())


def _stop(name: str, document: Document) -> Stop | None:
    """Read a stop from its record; None if it cannot be asked again."""
    ask = document.get("ask")
    if not isinstance(ask, dict) or not isinstance(ask.get("method"), str):
        return None
    params = ask.get("params", {})
    if not isinstance(params, dict):
        return None
    member = next((m for method, m in LISTS.values() if method == ask["method"]), "")
    paged = "pages" in document
    return Stop(name, Request(ask["method"], params), document.get("of", ""), member * paged)


_FIXED: Final = ("opening", "ping", UNASKED)


def _stops(revision: str, offer: Offer) -> Iterator[Stop]:
    spoken = offer.spoken
    if not rev.is_modern(revision):
        yield Stop("ping", Request("ping"))
    for feature, (method, member) in LISTS.items():
        if feature in spoken.lists:
            yield Stop(f"list-{feature}", Request(method), member=member)
    calls = {example.name: example for example in reversed(spoken.examples("callable-tool"))}
    for example in reversed(calls.values()):
        yield _of_example("call", example, offer.root)
    for example in [*spoken.examples("readable-resource"), *spoken.examples("readable-template")]:
        yield _of_example("read", example, offer.root)
    for example in spoken.examples("rendered-prompt"):
        yield _of_example("prompt", example, offer.root)
    for example in spoken.examples("completions")[:1]:
        yield Stop("complete", _anywhere(example, offer.root))
    yield from _mistakes(revision, offer)


def _of_example(kind: str, example: Example, root: str) -> Stop:
    ask = _anywhere(example, root)
    subject = ask.params.get("name") or ask.params.get("uri") or ""
    template = example.item.get("uriTemplate")
    of = template if isinstance(template, str) else ""
    return Stop(f"{kind}-{slug(str(subject))}", ask, of)


def _anywhere(request: Request, root: str) -> Request:
    return Request(request.method, replaced(dict(request.params), root, ROOT))


def slug(name: str) -> str:
    """Return a part of a file name for a name; it is unique for each name."""
    plain = re.sub(r"[^a-z0-9._-]+", "_", name.lower()).strip("._")[:48]
    if plain == name:
        return plain
    return f"{plain}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:6]}"


def _mistakes(revision: str, offer: Offer) -> Iterator[Stop]:
    spoken = offer.spoken
    yield Stop("error-unknown-method", Request("no/such/method"))
    if "tools" in spoken.lists:
        unknown = {"name": "no_such_tool", "arguments": {}}
        yield Stop("error-unknown-tool", Request("tools/call", unknown))
        yield Stop("error-tool-without-a-name", Request("tools/call", {}))
    for example in spoken.examples("argument-tool")[:1]:
        for name, make in (("missing", incomplete), ("mistyped", mistyped)):
            made = make(example.schema, example.arguments)
            if made is not None:
                ask = Request("tools/call", {"name": example.name, "arguments": made[1]})
                yield Stop(f"error-argument-{name}", _anywhere(ask, offer.root))
    if "resources" in spoken.lists:
        ask = Request("resources/read", {"uri": "touchstone://no/such/resource"})
        yield Stop("error-unknown-resource", ask)
    if "prompts" in spoken.lists:
        yield Stop("error-unknown-prompt", Request("prompts/get", {"name": "no_such_prompt"}))
    for method in list(spoken.cursors)[:1]:
        yield Stop("error-unknown-cursor", Request(method, {"cursor": "made up"}))
    if rev.is_modern(revision):
        meta = {
            rev.META + "protocolVersion": "2099-01-01",
            rev.META + "clientInfo": _CLIENT,
            rev.META + "clientCapabilities": {},
        }
        ask = Request("server/discover", {"_meta": meta})
        yield Stop("error-unsupported-version", ask)


# --- the tour itself


@dataclass(slots=True)
class Tour:
    """One pass through all stops of a revision.

    Attributes:
        spawn: starts an unused process.
        scrubber: makes answers comparable; one for the whole tour.
        root: the folder the server works on.
    """

    spawn: Callable[[], Connection]
    scrubber: Scrubber
    root: str
    _connections: list[Connection] = field(default_factory=list)
    _silences: int = 0

    def take(self, stops: list[Stop]) -> dict[str, Document]:
        """Make all stops; return the answers by the name of the stop.

        Raises:
            LaunchError: the server does not start, open or answer.
        """
        opening = self._connection().opening
        found = {"opening": self._opening(opening or Reply(0))}
        for stop in stops:
            found[stop.name] = self._visit(stop)
        for connection in self._connections:
            connection.end()
        found[UNASKED] = self._unasked()
        return found

    def _connection(self) -> Connection:
        """Return the open process; a new one if the last has exited."""
        if self._connections and not self._connections[-1].gone:
            return self._connections[-1]
        connection = self.spawn()
        self._connections.append(connection)
        reply = connection.open()
        if reply.result is None:
            raise LaunchError(
                f"{connection.transcript.revision}: the opening got no result: {reply}"
            )
        return connection

    def _opening(self, reply: Reply) -> Document:
        method = "server/discover" if self._connections[0].modern else "initialize"
        return {"ask": {"method": method}, "answer": self._shown(reply)}

    def _visit(self, stop: Stop) -> Document:
        asked: Document = {"ask": {"method": stop.ask.method}}
        if stop.ask.params:
            asked["ask"]["params"] = dict(stop.ask.params)
        if stop.of:
            asked["of"] = stop.of
        params = replaced(dict(stop.ask.params), ROOT, self.root)
        if not stop.member:
            return {**asked, "answer": self._shown(self._ask(stop.ask.method, params))}
        first, items, pages = self._whole_list(stop)
        shown = self._shown(first)
        if pages:
            shown["result"].pop("nextCursor", None)
            shown["result"][stop.member] = lined(self.scrubber.scrub(items))
        return {**asked, "pages": pages, "answer": shown}

    def _whole_list(self, stop: Stop) -> tuple[Reply, list[Any], list[int]]:
        """Follow the cursors; return the first page, all items, and items per page."""
        first = reply = self._ask(stop.ask.method, {})
        items: list[Any] = []
        pages: list[int] = []
        while len(pages) < PAGES:
            page = (reply.result or {}).get(stop.member)
            if not isinstance(page, list):
                break
            items += page
            pages.append(len(page))
            cursor = (reply.result or {}).get("nextCursor")
            if not isinstance(cursor, str):
                break
            reply = self._ask(stop.ask.method, {"cursor": cursor})
        return first, items, pages

    def _ask(self, method: str, params: Mapping[str, Any]) -> Reply:
        connection = self._connection()
        reply = connection.request(method, params or None, required=False)
        if not reply.answered and not connection.gone:
            self._silences += 1
            if self._silences >= SILENCES:
                raise LaunchError(f"the server stopped answering: {method}: {reply.why}")
        return reply

    def _shown(self, reply: Reply) -> Document:
        if reply.value is None:
            gone = self._connections[-1].gone
            return {"silence": "the server left" if gone else "no answer came"}
        value = {name: one for name, one in reply.value.items() if name not in ("jsonrpc", "id")}
        shown: Document = lined(self.scrubber.scrub(value))
        return shown

    def _unasked(self) -> Document:
        """Collect notifications and requests of the server, without time and number."""
        heard: dict[str, list[Any]] = {}
        for connection in self._connections:
            for entry in connection.transcript:
                for message in entry.messages:
                    if message.role in (Role.NOTIFICATION, Role.REQUEST):
                        said = heard.setdefault(str(message.method), [])
                        params = lined(self.scrubber.scrub(message.value.get("params")))
                        if params not in said:
                            said.append(params)
        return {"heard": {method: sorted(heard[method], key=repr) for method in sorted(heard)}}
