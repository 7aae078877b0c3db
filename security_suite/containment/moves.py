"""Moves and copies across the border of the root, and undo through a link.

Undo is called after a link has replaced the edited file or its folder.
"""

import secrets
import shlex
from collections.abc import Iterator

from mcp_touchstone.security.suite import (
    CANARY,
    AttackCall,
    AttackSession,
    Binding,
    Call,
    Carriage,
    Operation,
    Payload,
    Place,
    SafePath,
    attack,
    attack_calls,
    attack_carrying,
)

TREES = ("base", "siblings", "links")


@attack("moves-in", fixtures=TREES, place=Place.REUSED)
def carries_nothing_in(session: AttackSession) -> None:
    """Nothing is moved or copied into the root from outside."""
    attack_carrying(session, "moves-in", Carriage.IN, "write.move", "link.write")


@attack("moves-out", fixtures=TREES, place=Place.REUSED)
def carries_nothing_out(session: AttackSession) -> None:
    """Nothing is moved or copied out of the root."""
    attack_carrying(session, "moves-out", Carriage.OUT, "write.move", "link.write")


@attack("moves-over-links", fixtures=TREES, place=Place.REUSED)
def carries_nothing_where_a_link_leads(session: AttackSession) -> None:
    """A move onto a link replaces the link and does not follow it."""
    attack_carrying(session, "moves-over-links", Carriage.OVER, "write.move", "link.write")


@attack("moves-trees", fixtures=TREES, place=Place.REUSED)
def copies_links_as_links(session: AttackSession) -> None:
    """A copy of a folder does not contain the targets of its links."""
    attack_carrying(session, "moves-trees", Carriage.TREE, "write.move", "link.write")


@attack("moves-denied", fixtures=(*TREES, "denied"), place=Place.REUSED)
def renames_nothing_denied(session: AttackSession) -> None:
    """A denied file is neither moved away nor replaced."""
    attack_carrying(session, "moves-denied", Carriage.DENIED, "write.move")


@attack("moves-undo", fixtures=TREES)
def undoes_through_no_link(session: AttackSession) -> None:
    """Undo does not write through a link that was made after the edit."""
    attack_calls(session, "moves-undo", swapped(session))


FOLDER = "undone"


def swapped(session: AttackSession) -> Iterator[AttackCall]:
    """Edit a file, replace it or its folder with a link outwards, and yield the call of undo."""
    (row, *_) = session.payloads("write.move", via="session")
    for undo in session.bindings.of(Operation.UNDO):
        for edit in session.bindings.of(Operation.EDIT, Operation.WRITE):
            for where in ("file", "folder"):
                shot = _one(session, row, undo, edit, where)
                if shot is not None:
                    yield shot


def _one(
    session: AttackSession, row: Payload, undo: Binding, edit: Binding, where: str
) -> AttackCall | None:
    """Prepare one call; return None if the edit has no effect or the tool cannot undo it."""
    tree = session.tree
    if undo.tool != edit.tool and not _undoes(session, undo, edit):
        return None
    done = _edited(session, edit)
    if done is None:
        return None
    path, call = done
    there = tree.outside / CANARY if where == "file" else tree.outside
    place = path if where == "file" else path.parent
    place.remove()
    place.symlink_to(there)
    name = path.relative_to(tree.root).as_posix()
    root = str(tree.root)
    file, gone, leads = (shlex.quote(str(one)) for one in (path, place, there))
    made = f"mkdir -p {shlex.quote(str(path.parent))}; printf 'one line 1\\n' > {file}"
    script = (made, call, f"rm -r {gone}; ln -s {leads} {gone}")
    return AttackCall(row, name, undo, undo.call(undo.spelled(name, root), root), True, script)


def _edited(session: AttackSession, edit: Binding) -> tuple[SafePath, Call] | None:
    """Make a file and edit it with a tool; return None if that has no effect."""
    root = session.tree.root
    path = root / f"{FOLDER}-{secrets.token_hex(3)}" / CANARY
    path.parent.mkdir()
    before = b"one line 1\n"
    path.write_bytes(before)
    where = edit.spelled(str(path.relative_to(session.tree.root)), str(root))
    call = edit.call(where, str(root), before=before, content="touched")
    session.wire.request(*call, required=False)
    return (path, call) if path.read_bytes() != before else None


def _undoes(session: AttackSession, undo: Binding, edit: Binding) -> bool:
    done = _edited(session, edit)
    if done is None:
        return False
    root = str(session.tree.root)
    changed = done[0].read_bytes()
    where = undo.spelled(str(done[0].relative_to(session.tree.root)), root)
    session.wire.request(*undo.call(where, root), required=False)
    return done[0].read_bytes() != changed
