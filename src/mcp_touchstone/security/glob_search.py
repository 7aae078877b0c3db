"""Attack walks: listings, searches, patterns and completions, which read more than one path.

A pattern may climb, be absolute, or go through a link. A finding is a name or line in an answer
that exists only outside the root or in denied files.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from mcp_touchstone.bindings.argument_roles import ArgumentRole, Pointer
from mcp_touchstone.bindings.binding import Binding, Operation
from mcp_touchstone.samples.from_schema import words
from mcp_touchstone.security import reachability
from mcp_touchstone.security.attack_session import AttackSession
from mcp_touchstone.security.call_attack import attack_calls
from mcp_touchstone.security.fixture_tree import FixtureTree
from mcp_touchstone.security.payload import Payload
from mcp_touchstone.security.targeting import AttackCall

WALKS: Final = frozenset({Operation.LIST, Operation.SEARCH, Operation.GLOB})

EXCLUDING: Final = frozenset({"exclude", "excluded", "excludes", "ignore", "ignored"})
"""Words in the name of an argument with the paths that a walk leaves out."""


def from_the_top(session: AttackSession, threat: str, *groups: str) -> None:
    """List and search the root and its folders with links; stop at the first hit.

    A server that follows links may never finish a walk from the top, so a folder with a single
    link comes first.
    """
    attack_calls(session, threat, _walks(session, _plain(session, groups)), enough=1)


def by_pattern(session: AttackSession, threat: str, *groups: str) -> None:
    """Send patterns that lead outside; ``**`` may never end, so it comes last."""
    rows = [row for row in session.payloads(*groups, via="pattern") if row.expect == "deny"]
    attack_calls(session, threat, _matched(session, sorted(rows, key=lambda row: "**" in row.text)))


def by_completion(session: AttackSession, threat: str, *groups: str) -> None:
    """Request completions of folders outside."""
    rows = [row for row in session.payloads(*groups) if row.operation in {"read", "list"}]
    asked = session.payloads.actions("complete", *groups)
    rows += [row for row, _ in asked if not row.is_denied]
    attack_calls(session, threat, _completed(session, rows))


def to_denied(session: AttackSession, threat: str, *groups: str) -> None:
    """Walk over denied files, search them by patterns, and clear the exclusions of walks."""
    session.canaries.protect_denied()

    def shots() -> Iterator[AttackCall]:
        yield from _walks(session, _plain(session, groups))
        denied = session.payloads(*groups, via="pattern")
        yield from _matched(session, [row for row in denied if row.expect == "safe"])
        yield from _cleared(session, session.payloads(*groups, via="args"))
        asked = session.payloads.actions("complete", *groups)
        yield from _completed(session, [row for row, _ in asked if row.is_denied])

    attack_calls(session, threat, shots())


def _plain(session: AttackSession, groups: Iterable[str]) -> list[Payload]:
    """Return the rows whose text is an existing folder of the root."""
    rows = [row for row in session.payloads(*groups) if row.expect == "safe"]
    return [row for row in rows if (session.tree.root / row.text).is_dir()]


def _walks(session: AttackSession, rows: list[Payload]) -> Iterator[AttackCall]:
    """Yield walks over each folder; a tool without a path argument walks once, from the top."""
    top = next(row for row in rows if row.text == ".")
    for row in rows:
        yield from session.targeting.calls([row], WALKS)
        for binding in session.bindings.of(Operation.SEARCH, Operation.GLOB):
            if row is top or (row.text != top.text and binding.has(ArgumentRole.PATH)):
                yield AttackCall(
                    row, row.text, binding, _call(session, binding, {}, row.text), live=True
                )


def _call(
    session: AttackSession, binding: Binding, values: dict[Pointer, Any], below: str = "."
) -> Any:
    """Return the call that walks over the root or a folder, with some arguments replaced."""
    root = str(session.tree.root)
    paths = {
        s.pointer: binding.naming.written(binding.spelled(below, root))
        for s in binding.slots
        if s.role is ArgumentRole.PATH
    }
    return binding.calls_with({**paths, **values}, root)


def _matched(session: AttackSession, rows: Iterable[Payload]) -> Iterator[AttackCall]:
    for row, text in session.tree.each(rows):
        live = _leads_out(text, session.tree) or row.expect == "safe"
        for binding in session.bindings.of(Operation.GLOB):
            patterns = {s.pointer: text for s in binding.slots if s.role is ArgumentRole.PATTERN}
            yield AttackCall(row, text, binding, _call(session, binding, {**patterns}), live)


def _leads_out(pattern: str, tree: FixtureTree) -> bool:
    """Return whether a pattern matches something outside the root on an unprotected server.

    ``**`` is read as no folder or as ``*``, because links that lead upwards would make it endless.
    """
    near = {pattern.replace("**/", ""), pattern.replace("**", "*")}
    found = (path for one in near for path in tree.root.matches(one))
    return any(not reachability.is_inside(path, tree) for path in found)


def _cleared(session: AttackSession, rows: Iterable[Payload]) -> Iterator[AttackCall]:
    for row in rows:
        for binding in session.bindings.of(*WALKS):
            known = binding.schema.get("properties") or {}
            named = [name for name in known if EXCLUDING & {*words(name)}]
            lists = [n for n in named if isinstance(known[n], dict) and "items" in known[n]]
            if lists:
                none: dict[Pointer, Any] = {(name,): [] for name in lists}
                yield AttackCall(row, row.text, binding, _call(session, binding, none), live=True)


def _completed(session: AttackSession, rows: Iterable[Payload]) -> Iterator[AttackCall]:
    """Yield completions of the names in a folder; for a file, in its folder."""
    tree, seen = session.tree, set()
    for row, filled in tree.each(rows):
        text = filled
        if row.via == "session":
            text = str(json.loads(text)["value"])
        folder = text.rpartition("/")[0] if row.operation == "read" else text
        aim = reachability.aim(replace(row, target="dir", live=("posix", "lexical")), folder, tree)
        if not folder or folder in seen or (row.via != "session" and aim is None):
            continue
        seen.add(folder)
        for binding in session.bindings.of(Operation.COMPLETE):
            root = str(tree.root)
            yield AttackCall(
                row, folder, binding, binding.call(binding.spelled(folder, root), root), True
            )
