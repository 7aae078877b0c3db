"""Finish or undo the edits of servers that were killed, from their plans.

Only plans in the user's state folder are read (``plans``). What they say of the files below a root
is checked, because those may have changed since: a new file must still have the promised bytes. A
plan that today's rules forbid is set aside, and stops neither the start nor the other plans.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress

from .entries import sha256
from .journal import STAGED, rules_of, tidy
from .paths import cut
from .plans import PLAN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..settings import Settings
    from .names import Names
    from .place import Place, Root

REFUSED = ".refused"
"""Replaces the suffix of a plan that is set aside."""

_LONGEST = 4 * 1024 * 1024
"""Bytes of a plan; it has some hundred for each file."""

_DONE, _READY, _LOST = range(3)
"""The change of one file is on the disk; it can be made; others have changed the files."""


class Recovered:
    """One edit that was finished, undone or refused.

    Attributes:
        plan: Who made it, its request and its files.
        done: The files whose change is on the disk.
        lost: The parts of the paths that could not be changed, although others of the edit were.
        refused: The name of a plan that is not used.
    """

    def __init__(self, plan: dict[str, Any], *, refused: str = "") -> None:
        self.plan = plan
        self.done: list[dict[str, Any]] = []
        self.lost: list[list[str]] = []
        self.refused = refused


def recover(root: Root, plans: Place, names: Names, settings: Settings) -> Iterator[Recovered]:
    """Recover the edits below a root; a plan is removed when the next one is asked for.

    The caller holds ``root.writing()``, so no running server has an unfinished edit.
    """
    for name in plans.names():
        if not name.startswith(f"{root.key}-") or not name.endswith(PLAN):
            continue
        try:
            found = _recover(root, plans, name, names, settings)
        except Exception:  # noqa: BLE001 - a damaged disk, or another version of this server
            aside = name.removesuffix(PLAN) + REFUSED
            with suppress(OSError):
                plans.replace(name, aside)
            yield Recovered({}, refused=aside)
        else:
            yield found
            with suppress(OSError):
                plans.remove(name)


def _recover(root: Root, plans: Place, name: str, names: Names, settings: Settings) -> Recovered:
    data = _content(plans, name, _LONGEST)
    line, complete, rest = data.partition(b"\n")
    found = Recovered(json.loads(line) if complete else {"made": [], "files": []})
    files, made = found.plan["files"], found.plan["made"]
    if complete:  # else its server was killed before anything was staged
        _check_plan(found.plan, root, names, settings)
    states = [_state(root, entry) for entry in files]
    staged = rest == STAGED
    whole = _LOST not in states or _DONE in states
    for entry, state in zip(files, states, strict=True):
        with suppress(OSError), root.place(tuple(entry["parts"][:-1])) as place:
            try:
                if state == _READY and staged and whole:
                    _rename(place, entry)
                    state = _DONE  # noqa: PLW2901
            finally:
                tidy(place, entry["temporary"])
        if state == _DONE and (staged or (len(files) == 1 and not made)):
            found.done.append(entry)
        elif staged and whole:
            found.lost.append(entry["parts"])
    for parts in reversed(made):  # those with a new file stay
        with suppress(OSError), root.place(tuple(parts[:-1])) as place:
            place.remove_directory(parts[-1])
    return found


def _state(root: Root, entry: dict[str, Any]) -> int:
    *above, name = entry["parts"]
    with suppress(OSError), root.place(tuple(above)) as place:
        if _has(place, name, entry["after"]):
            return _DONE
        staged = entry["after"] is None or _has(place, entry["temporary"], entry["after"])
        if staged and _has(place, name, entry["before"]):
            return _READY
    return _LOST


def _rename(place: Place, entry: dict[str, Any]) -> None:
    name = entry["parts"][-1]
    if entry["after"] is None:
        place.remove(name)
    elif entry["before"] is None:
        place.claim(entry["temporary"], name)
    else:
        place.replace(entry["temporary"], name)


def _has(place: Place, name: str, expected: list[Any] | None) -> bool:
    """Return whether a name is a regular file with the expected hash and size, or is missing."""
    if not place.has(name):
        return expected is None
    with suppress(OSError):  # a link, or another file
        return expected is not None and sha256(_content(place, name, expected[1])) == expected[0]
    return False


def _check_plan(plan: dict[str, Any], root: Root, names: Names, settings: Settings) -> None:
    """Check that the settings permit a plan; raise any exception if they do not."""
    if any(now < then for now, then in zip(rules_of(settings), plan["rules"], strict=True)):
        raise ValueError(plan["rules"])
    files = [tuple(entry["parts"]) for entry in plan["files"]]
    for parts in [*files, *map(tuple, plan["made"])]:
        if not parts or cut("/".join(parts), ()) != (None, parts):
            raise ValueError(parts)
        names.check(parts, folds=root.folds, writing=True)
    sizes = [entry["after"][1] for entry in plan["files"] if entry["after"]]
    if not all(map(names.allows, files)) or max(sizes, default=0) > settings.max_file_size:
        raise ValueError(files)


def _content(place: Place, name: str, most: int) -> bytes:
    """Return the bytes of a regular file that is not larger than expected."""
    descriptor = place.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            raise OSError(0, "another file")
        with os.fdopen(os.dup(descriptor), "rb") as file:
            return file.read(found.st_size + 1)
    finally:
        os.close(descriptor)
