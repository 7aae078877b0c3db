"""Finish or undo the edits of servers that were killed, from their journals.

A journal may come from a foreign repository. It is used only if it contains plain names that may be
written and temporary files with its own prefix. Any other one is set aside, and stops neither the
start nor the recovery of the others.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress

from .entries import sha256
from .journal import JOURNAL, STAGED, tidy
from .names import OURS
from .paths import cut

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .names import Names
    from .place import Place, Root

REFUSED = ".refused"
"""Replaces the suffix of a journal that is set aside."""

_LONGEST = 4 * 1024 * 1024
"""Bytes of a journal; ours have some hundred for each file."""


def recover(root: Root, names: Names, largest: int) -> tuple[int, list[str]]:
    """Recover the edits below a root.

    The caller holds ``root.writing()``, so no running server has an unfinished edit.

    Returns:
        The number of recovered edits, and the names of the journals that were refused.
    """
    recovered, refused = 0, []
    with root.place(()) as top:
        journals = [n for n in top.names() if n.startswith(OURS) and n.endswith(JOURNAL)]
        for name in journals:
            try:
                _recover(root, top, name, names, largest)
            except Exception:  # noqa: BLE001 - whatever a stranger has put there
                refused.append(_set_aside(top, name))
            else:
                recovered += 1
        if journals:
            top.sync()
    return recovered, refused


def _recover(root: Root, top: Place, name: str, names: Names, largest: int) -> None:
    data = _content(top, name, _LONGEST)
    if data is None:
        raise ValueError(name)
    line, complete, rest = data.partition(b"\n")
    if complete:  # else its server was killed before anything was staged
        plan, staged = json.loads(line), rest == STAGED
        _check_plan(plan, name.removesuffix(JOURNAL), root, names)
        for entry in plan["files"]:
            with suppress(OSError):  # its directory was removed, or is not accessible any more
                _recover_file(root, entry, largest, staged=staged)
        for parts in () if staged else reversed(plan["made"]):
            with suppress(OSError), root.place(tuple(parts[:-1])) as place:
                place.remove_directory(parts[-1])
    top.remove(name)


def _recover_file(root: Root, entry: dict[str, Any], largest: int, *, staged: bool) -> None:
    *parents, name = entry["parts"]
    temporary = entry["temporary"]
    with root.place(tuple(parents)) as place:
        try:
            # Changes by others after the kill are kept.
            if staged and _has(place, name, entry["before"], largest):
                if entry["after"] is None:
                    place.remove(name)
                elif place.has(temporary):
                    place.replace(temporary, name)
        finally:
            tidy(place, temporary)


def _has(place: Place, name: str, expected: str | None, largest: int) -> bool:
    if not place.has(name):
        return expected is None
    data = _content(place, name, largest)
    return data is not None and sha256(data) == expected


def _check_plan(plan: dict[str, Any], name: str, root: Root, names: Names) -> None:
    """Check that a plan is one of ours; raise any exception if it is not."""
    paths = [entry["parts"] for entry in plan["files"]] + plan["made"]
    for parts in paths:
        path = "/".join(parts)
        path.encode()  # no lone surrogates
        if not parts or cut(path, ()) != (None, tuple(parts)):
            raise ValueError(parts)
        names.check(tuple(parts), folds=root.folds, writing=True)
    for number, entry in enumerate(plan["files"]):
        if entry["temporary"] != f"{name}-{number}" or entry["before"] == entry["after"]:
            raise ValueError(entry)


def _content(place: Place, name: str, largest: int) -> bytes | None:
    """Return the bytes of a file; None if it is larger, or no regular file."""
    descriptor = place.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > largest:
            return None
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(found.st_size + 1)
    finally:
        os.close(descriptor)


def _set_aside(top: Place, name: str) -> str:
    """Rename a journal, so that no later start reads it; return the name that it has then."""
    aside = name.removesuffix(JOURNAL) + REFUSED
    try:
        top.replace(name, aside)
    except OSError:  # not permitted, or a directory has that name
        return name
    return aside
