"""Walks: searches, patterns and completions, which look at more than the path they are given.

A pattern is a path of many: it may climb, be absolute, or go through a link. What is looked for
are names and lines that stand nowhere but outside, or in what is denied.
"""

import glob
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
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
"""Words in the name of an argument that says what a walk leaves out."""


def from_the_top(session: AttackSession, threat: str, *groups: str) -> None:
    """List and search the whole root, and go in where it has links; once is enough.

    Who follows links may never come back from the top: a folder with a single one is first.
    """
    attack_calls(session, threat, _walks(session, _plain(session, groups)), enough=1)


def by_pattern(session: AttackSession, threat: str, *groups: str) -> None:
    """Ask for names by patterns that lead outside; what may never end comes last."""
    rows = [row for row in session.payloads(*groups, via="pattern") if row.expect == "deny"]
    attack_calls(session, threat, _matched(session, sorted(rows, key=lambda row: "**" in row.text)))


def by_completion(session: AttackSession, threat: str, *groups: str) -> None:
    """Ask for completions of folders outside."""
    rows = [row for row in session.payloads(*groups) if row.operation in {"read", "list"}]
    rows += [row for row in _said(session, *groups) if not row.is_denied]
    attack_calls(session, threat, _completed(session, rows))


def to_denied(session: AttackSession, threat: str, *groups: str) -> None:
    """Walk over what is denied, ask for it by patterns, clear what a walk leaves out."""
    session.protect_denied()

    def shots() -> Iterator[AttackCall]:
        yield from _walks(session, _plain(session, groups))
        denied = session.payloads(*groups, via="pattern")
        yield from _matched(session, [row for row in denied if row.expect == "safe"])
        yield from _cleared(session, session.payloads(*groups, via="args"))
        yield from _completed(session, [row for row in _said(session, *groups) if row.is_denied])

    attack_calls(session, threat, shots())


def _plain(session: AttackSession, groups: Iterable[str]) -> list[Payload]:
    """Give the rows that begin at a folder of the root that is there."""
    rows = [row for row in session.payloads(*groups) if row.expect == "safe"]
    return [row for row in rows if (session.field.root / row.text).is_dir()]


def _walks(session: AttackSession, rows: list[Payload]) -> Iterator[AttackCall]:
    """Aim at what takes a path; where a walk always begins at the top, begin there once."""
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
    """Give the call that walks over the root or a folder, with other values in some places."""
    root = str(session.field.root)
    paths = {
        s.pointer: binding.spelled(below, root)
        for s in binding.slots
        if s.role is ArgumentRole.PATH
    }
    return binding.calls_with({**paths, **values}, root)


def _matched(session: AttackSession, rows: Iterable[Payload]) -> Iterator[AttackCall]:
    for row, text in session.field.each(rows):
        live = _leads_out(text, session.field) or row.expect == "safe"
        for binding in session.bindings.of(Operation.GLOB):
            patterns = {s.pointer: text for s in binding.slots if s.role is ArgumentRole.PATTERN}
            yield AttackCall(row, text, binding, _call(session, binding, {**patterns}), live)


def _leads_out(pattern: str, field: FixtureTree) -> bool:
    """Whether a pattern finds something outside when nothing guards it.

    Two stars are read as none or as one: links that lead up again make all of them endless.
    """
    near = {pattern.replace("**/", ""), pattern.replace("**", "*")}
    found = [name for one in near for name in glob.glob(one, root_dir=field.root)]  # noqa: PTH207
    places = (Path(os.path.realpath(field.root / name)) for name in found)
    return any(not place.is_relative_to(field.root) for place in places)


def _cleared(session: AttackSession, rows: Iterable[Payload]) -> Iterator[AttackCall]:
    """Say that a walk leaves out nothing, where a tool has an argument for what it does."""
    for row in rows:
        for binding in session.bindings.of(*WALKS):
            known = binding.schema.get("properties") or {}
            named = [name for name in known if EXCLUDING & {*words(name)}]
            lists = [n for n in named if isinstance(known[n], dict) and "items" in known[n]]
            if lists:
                none: dict[Pointer, Any] = {(name,): [] for name in lists}
                yield AttackCall(row, row.text, binding, _call(session, binding, none), live=True)


def _said(session: AttackSession, *groups: str) -> list[Payload]:
    rows = session.payloads(*groups, via="session")
    return [row for row in rows if json.loads(row.text)["do"] == "complete"]


def _completed(session: AttackSession, rows: Iterable[Payload]) -> Iterator[AttackCall]:
    """Ask for the names in a folder, or in the one in which a file stands."""
    field, seen = session.field, set()
    for row, filled in field.each(rows):
        text = filled
        if row.via == "session":
            text = str(json.loads(text)["value"])
        folder = text.rpartition("/")[0] if row.operation == "read" else text
        aim = reachability.aim(replace(row, target="dir", live=("posix", "lexical")), folder, field)
        if not folder or folder in seen or (row.via != "session" and aim is None):
            continue
        seen.add(folder)
        for binding in session.bindings.of(Operation.COMPLETE):
            root = str(field.root)
            yield AttackCall(
                row, folder, binding, binding.call(binding.spelled(folder, root), root), True
            )
