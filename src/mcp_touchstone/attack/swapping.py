"""Undo after the ground has changed: an edit, a link in its place, then the call."""

import secrets
import shlex
from collections.abc import Iterator
from pathlib import Path

from mcp_touchstone.attack.aimer import Shot
from mcp_touchstone.attack.bindings import Binding, Call, Operation
from mcp_touchstone.attack.field import remove
from mcp_touchstone.attack.payload import CANARY, Payload
from mcp_touchstone.attack.siege import Siege

FOLDER = "undone"


def swapped(siege: Siege) -> Iterator[Shot]:
    """Edit a file, put a link outwards in its place or its folder's, and aim undo at it."""
    (row, *_) = siege.payloads("write.move", via="session")
    for undo in siege.bindings.of(Operation.UNDO):
        for edit in siege.bindings.of(Operation.EDIT, Operation.WRITE):
            for where in ("file", "folder"):
                shot = _one(siege, row, undo, edit, where)
                if shot is not None:
                    yield shot


def _one(siege: Siege, row: Payload, undo: Binding, edit: Binding, where: str) -> Shot | None:
    """Prepare one call; None where this edit cannot be undone by this tool, or does nothing."""
    field = siege.field
    if undo.tool != edit.tool and not _undoes(siege, undo, edit):
        return None
    done = _edited(siege, edit)
    if done is None:
        return None
    path, call = done
    there = field.outside / CANARY if where == "file" else field.outside
    place = path if where == "file" else path.parent
    remove(place)
    place.symlink_to(there)
    name = path.relative_to(field.root).as_posix()
    root = str(field.root)
    file, gone, leads = (shlex.quote(str(one)) for one in (path, place, there))
    made = f"mkdir -p {shlex.quote(str(path.parent))}; printf 'one line 1\\n' > {file}"
    told = (made, call, f"rm -r {gone}; ln -s {leads} {gone}")
    return Shot(row, name, undo, undo.call(undo.spelled(name, root), root), True, told)


def _edited(siege: Siege, edit: Binding) -> tuple[Path, Call] | None:
    """Make a file and edit it by a tool; None where that has no effect."""
    root = siege.field.root
    path = root / f"{FOLDER}-{secrets.token_hex(3)}" / CANARY
    path.parent.mkdir()
    before = b"one line 1\n"
    path.write_bytes(before)
    where = edit.spelled(path.relative_to(root).as_posix(), str(root))
    call = edit.call(where, str(root), before=before, content="touched")
    siege.wire.request(*call, required=False)
    return (path, call) if path.read_bytes() != before else None


def _undoes(siege: Siege, undo: Binding, edit: Binding) -> bool:
    done = _edited(siege, edit)
    if done is None:
        return False
    root = str(siege.field.root)
    changed = done[0].read_bytes()
    where = undo.spelled(done[0].relative_to(root).as_posix(), root)
    siege.wire.request(*undo.call(where, root), required=False)
    return done[0].read_bytes() != changed
