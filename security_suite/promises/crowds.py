"""Several writes of one file at the same moment.

The file must contain the whole content of one write. All requests are sent before the first answer
is read, as by agents that work in parallel. A server may serve them in any order, or refuse all but
one.
"""

import secrets
from collections.abc import Iterator
from typing import Final

from mcp_touchstone.security.suite import (
    PATIENCE,
    AttackSession,
    Binding,
    Broken,
    Call,
    Operation,
    Reply,
    SafePath,
    attack,
)


@attack("crowds-whole", fixtures=("base",))
def leaves_one_content_as_a_whole(session: AttackSession) -> None:
    """A file that several calls write at once has the content of one of them."""
    overwrite(session, "crowds-whole")


@attack("crowds-confirmed", fixtures=("base",))
def keeps_every_edit_it_confirmed(session: AttackSession) -> None:
    """After edits of one line at the same moment, the file contains every confirmed edit."""
    edit(session, "crowds-confirmed")


SIZES: Final = (96 << 10, 1 << 10, 64 << 10, 1 << 10, 32 << 10, 1 << 10)
"""Sizes in bytes of the contents of one round: long and short ones in turn."""

EDITS: Final = 8
"""Edits of one file in one round."""

ROUNDS: Final = 4
"""Rounds with each tool."""

BEFORE: Final = "touchstone line 1\nand what follows\n"
WHOLE: Final = "the file as one of the calls wrote it"
KEPT: Final = "every edit that was confirmed is in the file"


def overwrite(session: AttackSession, threat: str) -> None:
    """Write contents of different lengths to one file, and judge whether it is one of them.

    Raises:
        Broken: nothing could be written.
    """
    session.begin()
    found, at, tried = "", None, 0
    for binding, path in _rounds(session, threat, Operation.WRITE, Operation.CREATE):
        if binding.operation is Operation.WRITE:
            _lay(path)
        contents = [_content(size) for size in SIZES]
        replies = _said(session, [_call(session, binding, path, text) for text in contents])
        left = path.read_bytes() if path.is_file() else b""
        tried += 1
        known = {text.encode().rstrip(b"\n") for text in (BEFORE, "", *contents)}
        if left.rstrip(b"\n") not in known:
            parts = len({line for line in left.split(b"\n") if line})
            found = f"{binding.tool}: {len(left)} bytes with parts of {parts} contents"
            at = replies[-1]
            break
    if not tried:
        raise Broken("no tool could be used")
    session.judge.conclude(threat, found, expected=WHOLE, if_passed=f"{tried} times", at=at)


def edit(session: AttackSession, threat: str) -> None:
    """Edit one line in many ways at once; every confirmed edit must be in the file.

    Skip a tool that falsely confirms edits even if they are made one at a time.
    """
    session.begin()
    found, at, tried, trusted = "", None, 0, set[str]()
    for binding, path in _rounds(session, threat, Operation.EDIT):
        if binding.tool not in trusted:
            if not _is_true(session, binding, path):
                continue
            trusted.add(binding.tool)
        _lay(path)
        words = [secrets.token_hex(8) for _ in range(EDITS)]
        replies = _said(session, [_call(session, binding, path, f"edit {w}\n") for w in words])
        left = path.read_text("replace")
        tried += 1
        confirmed = [(w, r) for w, r in zip(words, replies, strict=True) if _did(r)]
        lost = [reply for word, reply in confirmed if word not in left]
        if lost:
            found = f"{binding.tool}: {len(lost)} of {len(confirmed)} confirmed edits are not there"
            at = lost[0]
            break
    if not tried:
        session.judge.unseen(threat, "no tool says of an edit whether it was made")
        return
    session.judge.conclude(threat, found, expected=KEPT, if_passed=f"{tried} times", at=at)


def _rounds(
    session: AttackSession, threat: str, *operations: Operation
) -> Iterator[tuple[Binding, SafePath]]:
    """Yield each tool several times, each time with the path of a new file."""
    known = [
        b for b in session.claims.promised(session.bindings, threat, *operations) if b.gives_content
    ]
    for number, binding in enumerate(b for b in known if b.is_verbatim):
        for turn in range(ROUNDS):
            yield binding, session.tree.root / binding.naming.placed(f"crowd-{number}-{turn}.txt")


def _lay(path: SafePath) -> None:
    path.write_text(BEFORE)


def _content(size: int) -> str:
    """Return equal lines with a random word that identifies the content."""
    line = f"touchstone {secrets.token_hex(8)}\n"
    return line * (size // len(line))


def _call(session: AttackSession, binding: Binding, path: SafePath, content: str) -> Call:
    root = str(session.tree.root)
    name = binding.in_style(str(path.relative_to(session.tree.root)), root)
    return binding.call(name, root, before=BEFORE.encode(), content=content)


def _said(session: AttackSession, calls: list[Call]) -> list[Reply]:
    """Send all calls, then wait for all answers."""
    wire, limit = session.wire, max(PATIENCE, session.pace.reply)
    asked = [wire.say(wire.build(*call), required=False) for call in calls]
    return [wire.answer_to(line, limit) for line in asked]


def _did(reply: Reply) -> bool:
    return reply.result is not None and not reply.result.get("isError")


def _is_true(session: AttackSession, binding: Binding, path: SafePath) -> bool:
    """Return whether a tool confirms only edits that it made, if they are made one at a time."""
    _lay(path)
    for _ in range(2):
        word = secrets.token_hex(8)
        (reply,) = _said(session, [_call(session, binding, path, f"edit {word}\n")])
        if _did(reply) and word not in path.read_text("replace"):
            return False
    return True
