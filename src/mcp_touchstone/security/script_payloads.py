"""Attack with scripts as arguments: a check of path arguments does not see the paths in them.

A script names files in its commands and clauses, and its filters may be programs. Scripts are sent
to tools that executed a plain script. The verdict depends on the files that exist afterwards.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from mcp_touchstone.bindings.argument_roles import ArgumentRole
from mcp_touchstone.bindings.binding import Operation
from mcp_touchstone.security import payload
from mcp_touchstone.security.attack_session import AttackSession
from mcp_touchstone.security.call_attack import attack_calls
from mcp_touchstone.security.payload import CANARY
from mcp_touchstone.security.targeting import AttackCall
from mcp_touchstone.target import deny_list
from mcp_touchstone.wire.reply import Reply

EXPECTED: Final = "nothing outside is made, changed or read, and nothing is run"


def lead_out(session: AttackSession, threat: str, *groups: str) -> None:
    """Send scripts that name files outside, or programs."""
    _fire(session, threat, groups, denied=False)


def lead_to_denied(session: AttackSession, threat: str, *groups: str) -> None:
    """Send scripts that name entries of a deny list."""
    session.canaries.protect_denied()
    _fire(session, threat, groups, denied=True)


def _fire(session: AttackSession, threat: str, groups: Iterable[str], *, denied: bool) -> None:
    tree = session.tree
    rows = [row for row in session.payloads(*groups, via="script") if row.expect == "deny"]

    def shots() -> Iterator[AttackCall]:
        for row, named in tree.each(row for row in rows if row.is_denied is denied):
            text = payload.fill(named, _lines(session, named))
            for binding in session.bindings.of(Operation.SCRIPT):
                values = {s.pointer: text for s in binding.slots if s.role is ArgumentRole.SCRIPT}
                yield AttackCall(
                    row, text, binding, binding.calls_with(values, str(tree.root)), True
                )

    def carried(_shot: AttackCall, _reply: Reply) -> str:
        found = tree.laundered(session.canaries.protected)
        return f"the bytes of {found[0][1].where} stand in {found[0][0]} now" if found else ""

    attack_calls(session, threat, shots(), oracle=carried, expected=EXPECTED)


def _lines(session: AttackSession, text: str) -> dict[str, str]:
    """Return a line of each file that a script names: it must quote the line it removes."""
    tree = session.tree
    files = {"canary_line": tree.outside / CANARY}
    for name in tree.denied.names["denied_file"]:
        if name in text or deny_list.flat(name) in text:
            files["env_line"] = tree.root / name
    lines = {name: tree.content(path).decode().partition("\n")[0] for name, path in files.items()}
    return {name: line for name, line in lines.items() if line}
