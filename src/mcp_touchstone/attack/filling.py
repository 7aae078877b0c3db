"""A disk that is full in the middle of a write: the file holds its old bytes, or the new ones.

No disk is filled: the process of the server may write files up to a size, and not beyond. A write
then fails half-way as it does where there is no room (EFBIG for ENOSPC), or SIGXFSZ ends the
process; either way nobody may find half a file.
"""

from pathlib import Path
from typing import Final

from mcp_touchstone.attack import limits
from mcp_touchstone.attack.bindings import Binding, Operation
from mcp_touchstone.attack.siege import PATIENCE, Siege
from mcp_touchstone.reply import Reply
from mcp_touchstone.talk import Broken

ROOM: Final = 64 << 10
"""Bytes a file may grow to while the disk is full; what is there before is well below."""

NEW: Final = 256 << 10
"""Bytes that are written, at least: more than there is room for."""

FIRST: Final = "touchstone line 1\n"
BEFORE: Final = FIRST + "what was there before\n" * 256
EXPECTED: Final = "the old bytes or the new ones, and nothing left beside them"
WRITERS: Final = (Operation.WRITE, Operation.EDIT, Operation.CREATE)


def fill(siege: Siege, threat: str) -> None:
    """Write more than there is room for with each tool that writes, makes or edits files.

    Raises:
        Broken: nothing could be written.
    """
    siege.begin()
    found, tried, at = "", 0, None
    ways = sorted(siege.promising(threat, *WRITERS), key=lambda way: WRITERS.index(way.operation))
    for number, binding in enumerate(ways):
        folder = siege.field.root / f"full-{number}"
        folder.mkdir()
        path = folder / "file.txt"
        if binding.operation is not Operation.CREATE:
            path.write_text(BEFORE, encoding="utf-8", newline="\n")
        with limits.narrowed(siege.wire.process.pid, ROOM) as held:
            if not held:
                siege.unseen(threat, "only Linux can limit what another process may write")
                return
            reply = _write(siege, binding, path)
        tried += 1
        found = _flaw(binding, path, answered=reply.answered)
        if found:
            at = reply
            break
        if not reply.answered:
            siege.renew()
    if not tried:
        raise Broken("no tool could be used")
    siege.conclude(threat, found, expected=EXPECTED, passed=f"{tried} tools", at=at)


def _write(siege: Siege, binding: Binding, path: Path) -> Reply:
    """Ask for the write."""
    root = str(siege.field.root)
    name = binding.spelled(path.relative_to(siege.field.root).as_posix(), root)
    content = "what is there afterwards\n" * (NEW // 24)
    before = BEFORE.encode() if path.exists() else b""
    call = binding.call(name, root, before=before, content=content)
    limit = max(PATIENCE, siege.pace.reply)
    return siege.wire.request(*call, required=False, seconds=limit)


def _flaw(binding: Binding, path: Path, *, answered: bool) -> str:
    """Say what is wrong with what lies there; a killed server cannot clear away behind itself."""
    left = path.read_bytes() if path.is_file() else None
    old = None if binding.operation is Operation.CREATE else BEFORE.encode()
    if left != old and (left is None or len(left) < NEW):
        size = "nothing" if left is None else f"{len(left)} bytes"
        was = "no file was" if old is None else f"{len(old)} bytes were"
        return f"{binding.tool}: {size} where {was}, after a write with room for {ROOM}"
    beside = sorted(one.name for one in path.parent.iterdir() if one != path)
    return f"{binding.tool}: {beside[0]} is left beside the file" if beside and answered else ""
