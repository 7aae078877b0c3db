"""Servers in a mode in which they promise not to write, and dry runs.

Every call that changes files is tried. The root and its surroundings must stay unchanged, including
times and inodes: writing the same bytes again is a write.
"""

import json
import secrets
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from mcp_touchstone.security.suite import (
    CHANGING,
    OWN,
    AttackCall,
    AttackSession,
    Binder,
    Binding,
    Broken,
    Call,
    Fact,
    Operation,
    Payload,
    Reply,
    attack,
    attack_calls,
    changes,
    dry_run,
    take,
)


@attack("modes-read-only", "modes-read-only-switch", fixtures=("base",), lasts=True)
def writes_nothing_when_read_only(session: AttackSession) -> None:
    """No tool makes, changes, moves or removes a file of a server that is read-only."""
    modes = Modes(session)
    modes.switch("modes-read-only-switch", "write.readonly")
    modes.write("modes-read-only", "write.readonly")


@attack("modes-dry-run", fixtures=("base",))
def rehearses_without_a_trace(session: AttackSession) -> None:
    """A call that asks for a dry run changes nothing."""
    Modes(session).rehearse("modes-dry-run", "write.dryrun")


@attack("modes-dry-run-default", fixtures=("base",))
def writes_only_when_told_to(session: AttackSession) -> None:
    """A call that does not ask for the real run changes nothing."""
    Modes(session).say_nothing("modes-dry-run-default", "write.dryrun")


DOES: Final[Mapping[str, frozenset[str]]] = {
    "write": frozenset({"write", "edit"}),
    "write-same": frozenset({"write"}),
    "create": frozenset({"create", "script"}),
    "delete": frozenset({"delete"}),
    "move": frozenset({"move", "copy"}),
    "mkdir": frozenset({"mkdir"}),
    "patch": frozenset({"edit"}),
    "undo": frozenset({"undo"}),
    "read": frozenset({"read", "list"}),
}
"""Action of a payload -> the operations that perform it."""

EXPECTED: Final = "nothing is made, changed, moved or removed"
SWITCH: Final = "dry_run"


class Modes:
    """A server that promises not to write, under attack."""

    def __init__(self, session: AttackSession) -> None:
        self._session = session
        self._tree = session.tree
        self._before: dict[str, Fact] = {}

    def write(self, threat: str, *groups: str) -> None:
        """Make every call that is known to change files, then search for more of them."""
        rows = [row for row in self._rows(*groups) if not {"args", "meta"} & {*_given(row)}]
        self._fire(threat, self._shots(threat, rows))
        self._search(threat)

    def switch(self, threat: str, *groups: str) -> None:
        """Make these calls with arguments that would switch the mode if the server obeyed them."""
        rows = [row for row in self._rows(*groups) if {"args", "meta"} & {*_given(row)}]
        self._session.begin()
        kept = [
            b
            for b in self._session.claims.promised(self._session.bindings, threat, *CHANGING)
            if not self._changes(b)
        ]
        if kept:
            self._fire(threat, (s for s in self._shots(threat, rows) if s.binding in kept))
        else:
            plain = "everything that changes files does so without being asked to"
            self._session.judge.conclude(threat, "", expected=EXPECTED, if_passed=plain)

    def rehearse(self, threat: str, *groups: str) -> None:
        """Ask for a dry run of each call that changes files."""
        rows = [row for row in self._rows(*groups, via="args") if _given(row) == {SWITCH: True}]
        self._fire(threat, self._dry(threat, rows))

    def say_nothing(self, threat: str, *groups: str) -> None:
        """Leave out the argument for the real run, send it empty, or send it under a wrong name."""
        rows = [row for row in self._rows(*groups, via="args") if row.expect == "deny"]
        self._fire(threat, self._dry(threat, rows))
        plain = [
            b
            for b in self._session.claims.promised(self._session.bindings, threat, *CHANGING)
            if dry_run(b.schema)
        ]
        if not all(self._changes(binding, **{dry_run(binding.schema): False}) for binding in plain):
            raise Broken("a change that is asked for in full is not made after the attack")

    # --- shots

    def _rows(self, *groups: str, via: str = "session") -> list[Payload]:
        return self._session.payloads(*groups, via=via)

    def _shots(self, threat: str, rows: Iterable[Payload]) -> Iterator[AttackCall]:
        for row in rows:
            given = _given(row)
            for binding in self._session.claims.promised(self._session.bindings, threat):
                if str(binding.operation) in DOES.get(given.get("do", ""), ()):
                    same = given["do"] == "write-same"
                    method, params = self._call(binding, same=same)
                    arguments = {**params.get("arguments", {}), **given.get("args", {})}
                    params = params if binding.uri else {**params, "arguments": arguments}
                    params |= {"_meta": given["meta"]} if "meta" in given else {}
                    yield AttackCall(row, row.text, binding, (method, params), live=True)

    def _dry(self, threat: str, rows: Iterable[Payload]) -> Iterator[AttackCall]:
        for binding in self._session.claims.promised(self._session.bindings, threat, *CHANGING):
            name = dry_run(binding.schema)
            for row in rows if name else ():
                given = _given(row)
                if name in given and name != SWITCH:
                    continue  # the name is wrong for other tools and right for this one
                method, params = self._call(binding)
                said = {name if key == SWITCH else key: value for key, value in given.items()}
                rest = {k: v for k, v in params["arguments"].items() if k != name}
                call = (method, {**params, "arguments": {**rest, **said}})
                yield AttackCall(row, row.text, binding, call, live=True)

    def _call(self, binding: Binding, *, same: bool = False) -> Call:
        """Return a plain call on a plain file, and record the state of the root."""
        self._before = take(self._tree.root, known=self._before)
        content = None if same else f"touchstone {secrets.token_hex(4)}\n"
        return self._session.targeting.plain(binding, content)

    def _changes(self, binding: Binding, **said: bool) -> bool:
        """Return whether a plain call changes something, and undo the change."""
        method, params = self._call(binding)
        arguments = {**params["arguments"], **said}
        self._session.wire.request(method, {**params, "arguments": arguments}, required=False)
        changed = bool(self._changed())
        self._tree.restore()
        return changed

    # --- looking

    def _changed(self) -> list[Any]:
        after = take(self._tree.root, known=self._before)
        return [change for change in changes(self._before, after) if change.path != "."]

    def _fire(self, threat: str, shots: Iterable[AttackCall]) -> None:
        def oracle(_shot: AttackCall, _reply: Reply) -> str:
            changed = self._changed()
            return str(changed[0]) if changed else ""

        attack_calls(self._session, threat, shots, oracle=oracle, expected=EXPECTED, still=True)

    def _search(self, threat: str) -> None:
        """Call every tool that seems to take a path, and judge whether the root is unchanged."""
        before = take(self._tree.root, OWN.match)
        session = self._session
        named = session.claims.callable_tools
        binder = Binder(lambda: session.wire, self._tree, named, session.claims.may_call)
        found = binder.find(self._session.spoken, briefly=True)
        if not found.of(Operation.READ):
            raise Broken("no plain file can be read")
        after = take(self._tree.root, OWN.match, before)
        effects = [f"{b.operation}: {b.tool}" for b in found.of(*CHANGING)]
        effects += [str(change) for change in changes(before, after) if change.path != "."]
        self._session.judge.conclude(
            threat,
            "; ".join(effects),
            expected=EXPECTED,
            if_passed=f"{found.calls} calls changed nothing",
        )


def _given(row: Payload) -> dict[str, Any]:
    """Return a payload parsed as JSON; the last of two equal names counts."""
    found: dict[str, Any] = json.loads(row.text)
    return found
