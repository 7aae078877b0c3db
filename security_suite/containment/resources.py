"""Resources that are files, and URLs or references that a server may fetch.

A URI is another form of a path: it has a host, a query and a fragment, and every character may be
percent-encoded. The server must check and open the same reading of it.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any, Final
from urllib.parse import quote

from mcp_touchstone.security.suite import (
    DEATHS,
    URL,
    AttackCall,
    AttackSession,
    Binding,
    Broken,
    Call,
    Operation,
    Payload,
    Place,
    Reply,
    RequestListener,
    attack,
    attack_calls,
    reachability,
    shown,
)

TREES = ("base", "siblings", "links")


@attack("resources-file-uri", "resources-template", fixtures=TREES, place=Place.REUSED)
def keeps_uris_inside(session: AttackSession) -> None:
    """No URI reads a file outside the root, however it is written."""
    uris = Uris(session)
    uris.name_files("resources-file-uri", "path.uri")
    uris.fill_templates("resources-template", "path.dotdot", "path.absolute", "path.sibling")


@attack("resources-denied", fixtures=(*TREES, "denied"), place=Place.REUSED)
def denies_by_uri_too(session: AttackSession) -> None:
    """No URI reads a denied file, however it is written."""
    Uris(session).name_denied("resources-denied", "deny.direct", "deny.spelling", "deny.alias")


@attack("resources-fetched", fixtures=TREES, place=Place.REUSED)
def fetches_nothing(session: AttackSession) -> None:
    """A URL that is sent as a path, as a URI or in an extra argument is not fetched."""
    nothing(session, "resources-fetched", "path.uri", "res.schema")


SAYS_SO: Final = re.compile(r"https?:|(?<![a-z])urls?(?![a-z])", re.IGNORECASE)
"""Words in the definition of a tool that says that it fetches."""

APART: Final = "the server was started where there is no network"

NOBODY: Final = "every tool that reads says that it takes URLs"

EXPECTED: Final = "nothing is fetched: an argument is the name of a file, or data"


def nothing(session: AttackSession, threat: str, *groups: str) -> None:
    """Send URLs of our listener as paths, as URIs of resources and in extra arguments.

    Raises:
        Broken: several calls got no answer.
    """
    if session.claims.is_offline:
        session.judge.unseen(threat, APART)
        return
    session.begin()
    sent: list[tuple[str, AttackCall, Reply]] = []
    lost = 0
    heard_by: set[int] = set()
    with closing(RequestListener()) as listener:
        for url, shot in _shots(session, listener, *groups):
            _listen_in_its_network(session, listener, heard_by)
            session.payloads.fire(shot.payload.id)
            session.server.mark()
            method, params = shot.call
            reply = session.wire.request(method, params, required=False)
            sent.append((url, shot, reply))
            if listener.heard(url, 0.0 if reply.answered else session.pace.settle):
                break
            lost += not reply.answered
            if lost >= DEATHS:
                raise Broken(f"{lost} calls got no answer: {reply.why}")
            if not reply.answered:
                session.renew()
        if not sent:
            session.judge.unseen(threat, NOBODY)
            return
        listener.heard(sent[-1][0], session.pace.settle)
        found = next((one for one in sent if listener.heard(one[0])), None)
    session.judge.conclude(
        threat,
        f"{found[0]} was fetched: {shown(found[1].call)}" if found else "",
        expected=EXPECTED,
        if_passed=f"{len(sent)} calls that name a place where we listen",
        at=found[2] if found else None,
    )


def _listen_in_its_network(
    session: AttackSession, listener: RequestListener, known: set[int]
) -> None:
    """Listen in the network of a server that has one of its own, once for each process.

    Raises:
        Broken: listening is impossible.
    """
    process = session.wire.process
    if process.pid in known:
        return
    known.add(process.pid)
    try:
        listening = process.listen(*listener.address)
    except OSError as error:
        raise Broken(f"nobody can listen in the sandbox of the server: {error}") from error
    if listening is not None:
        listener.also(listening)


def _shots(
    session: AttackSession, listener: RequestListener, *groups: str
) -> Iterator[tuple[str, AttackCall]]:
    readers = [one for one in session.bindings.of(Operation.READ) if not _fetches(session, one)]
    for row in session.payloads(*groups, via="uri"):
        if row.is_fetched:
            for binding in readers:
                url = listener.url()
                text = row.text.replace(URL, url)
                yield url, AttackCall(row, text, binding, _named(session, binding, text), live=True)
    for row in session.payloads(*groups, via="args"):
        if row.is_fetched:
            for binding in (one for one in readers if not one.uri):
                url = listener.url()
                text = row.text.replace(URL, url)
                yield (
                    url,
                    AttackCall(row, text, binding, _beside(session, binding, text), live=True),
                )


def _named(session: AttackSession, binding: Binding, text: str) -> Call:
    if binding.uri:
        return "resources/read", {"uri": text}
    return binding.call(text, str(session.tree.root))


def _beside(session: AttackSession, binding: Binding, text: str) -> Call:
    """Return a plain call with extra arguments."""
    method, params = session.targeting.plain(binding)
    return method, {**params, "arguments": {**params["arguments"], **json.loads(text)}}


def _fetches(session: AttackSession, binding: Binding) -> bool:
    """Return whether a tool says that it takes URLs, and may therefore fetch them."""
    tools = [tool for tool in session.spoken.named("tools") if tool["name"] == binding.tool]
    texts = [str(tool.get("description")) for tool in tools] + list(_descriptions(binding.schema))
    return any(SAYS_SO.search(text) for text in texts)


def _descriptions(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names and the descriptions of the arguments of a schema."""
    properties = schema.get("properties")
    for name, one in properties.items() if isinstance(properties, Mapping) else ():
        yield name
        yield str(one.get("description") if isinstance(one, Mapping) else "")


FILE: Final = "file:"


def _every(text: str) -> str:
    return quote(text, safe="")


def _twice(text: str) -> str:
    return quote(quote(text, safe=""), safe="")


def _dots(text: str) -> str:
    return text.replace(".", "%2e")


WRITTEN: Final[tuple[Callable[[str], str], ...]] = (str, _every, _dots, _twice)
"""Ways to write a path into a URI: unchanged, percent-encoded, with encoded dots, encoded twice.
The usual way is fired with the paths of tools."""


class Uris:
    """Resources, under attack."""

    def __init__(self, session: AttackSession) -> None:
        self._session = session
        self._tree = session.tree

    def name_files(self, threat: str, *groups: str) -> None:
        """Read ``file:`` URIs of every form, whatever the resources of the server are called."""
        rows = [row for row in self._rows(*groups, via="uri") if row.expect == "deny"]
        named = [row for row in rows if not row.is_fetched]
        attack_calls(self._session, threat, self._verbatim(named))

    def fill_templates(self, threat: str, *groups: str) -> None:
        """Put paths that lead outside into the URIs of resources, written in every way."""
        attack_calls(self._session, threat, self._filled(self._rows(*groups)))

    def name_denied(self, threat: str, *groups: str) -> None:
        """Read denied files by URIs, written in every way."""
        self._session.canaries.protect_denied()
        attack_calls(self._session, threat, self._filled(self._rows(*groups)))

    def _rows(self, *groups: str, via: str = "path") -> list[Payload]:
        rows = self._session.payloads(*groups, via=via)
        return [row for row in rows if row.operation == "read"]

    def _resources(self) -> list[Binding]:
        return [b for b in self._session.bindings.of(Operation.READ) if b.uri]

    def _verbatim(self, rows: Iterable[Payload]) -> Iterator[AttackCall]:
        for row, text in self._tree.each(rows):
            live = reachability.aim(row, text, self._tree) is not None
            for binding in self._resources()[:1]:
                yield AttackCall(row, text, binding, ("resources/read", {"uri": text}), live)

    def _filled(self, rows: Iterable[Payload]) -> Iterator[AttackCall]:
        for row, text in self._tree.each(rows):
            if reachability.aim(row, text, self._tree) is None:
                continue
            for binding in self._resources():
                if text.startswith(FILE):
                    yield AttackCall(
                        row, text, binding, ("resources/read", {"uri": text}), live=True
                    )
                    continue
                spelled = binding.spelled(text, str(self._tree.root))
                for uri in dict.fromkeys(binding.uri + write(spelled) for write in WRITTEN):
                    yield AttackCall(
                        row, text, binding, ("resources/read", {"uri": uri}), live=True
                    )
