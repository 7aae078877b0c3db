"""Scripts as arguments: what stands in them is not seen by who looks at paths.

A script names files in its commands and clauses, and filters in it may be programs. It is fired at
tools that did what a plain one said; what counts is what is there afterwards.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from mcp_touchstone.attack import denied
from mcp_touchstone.attack import payload as payloads
from mcp_touchstone.attack.aimer import Shot
from mcp_touchstone.attack.bindings import Operation
from mcp_touchstone.attack.canary import Area
from mcp_touchstone.attack.payload import CANARY, Payload
from mcp_touchstone.attack.siege import SECRET, Siege
from mcp_touchstone.attack.slots import Role
from mcp_touchstone.reply import Reply

EXPECTED: Final = "nothing outside is made, changed or read, and nothing is run"


def lead_out(siege: Siege, threat: str, *groups: str) -> None:
    """Send scripts that name files outside, or programs."""
    rows = [row for row in _rows(siege, groups) if not row.is_denied]
    _fire(siege, threat, rows, SECRET)


def lead_to_denied(siege: Siege, threat: str, *groups: str) -> None:
    """Send scripts that name what a deny list has."""
    siege.deny()
    rows = [row for row in _rows(siege, groups) if row.is_denied]
    _fire(siege, threat, rows, frozenset({*SECRET, Area.DENIED}))


def _rows(siege: Siege, groups: Iterable[str]) -> list[Payload]:
    return [row for row in siege.payloads(*groups, via="script") if row.expect == "deny"]


def _fire(siege: Siege, threat: str, rows: Iterable[Payload], areas: frozenset[Area]) -> None:
    field = siege.field

    def shots() -> Iterator[Shot]:
        for row, named in field.each(rows):
            text = payloads.fill(named, _lines(siege, named))
            for binding in siege.bindings.of(Operation.SCRIPT):
                values = {s.pointer: text for s in binding.slots if s.role is Role.SCRIPT}
                yield Shot(row, text, binding, binding.calls_with(values, str(field.root)), True)

    def carried(_shot: Shot, _reply: Reply) -> str:
        found = field.laundered(areas)
        return f"the bytes of {found[0][1].where} stand in {found[0][0]} now" if found else ""

    siege.judge_shots(threat, shots(), oracle=carried, expected=EXPECTED)


def _lines(siege: Siege, text: str) -> dict[str, str]:
    """Give lines that stand in files a script names: it has to say which it wants removed."""
    field = siege.field
    files = {"canary_line": field.outside / CANARY}
    for name in field.denied.names["denied_file"]:
        if name in text or denied.flat(name) in text:
            files["env_line"] = field.root / name
    lines = {name: field.content(path).decode().partition("\n")[0] for name, path in files.items()}
    return {name: line for name, line in lines.items() if line}
