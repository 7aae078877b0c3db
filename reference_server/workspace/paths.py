r"""A client's path cut into components, and nothing on the disk looked at. Pure.

A path is relative to a root, or absolute when it spells out a root component by component:
``/srv/rootEvil/x`` does not begin with ``/srv/root`` here.
"""

from __future__ import annotations

import os

from .refusals import InvalidPath, OutsideRoot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    Parts = tuple[str, ...]

DEEPEST = 128
"""Components of a path. What lies deeper, many a program can neither show nor remove."""

_CONTROLS = frozenset(map(chr, [*range(0x20), 0x7F]))
_UNREADABLE = _CONTROLS | ({"\\", ":"} if os.name == "nt" else {"\\"})


def cut(path: str, roots: Sequence[Parts]) -> tuple[int | None, Parts]:
    r"""Give the root an absolute path lies in (None for a relative one) and the parts below it.

    Args:
        path: As the client wrote it; ``""`` and ``"."`` are the root itself.
        roots: Absolute roots, each as its parts.

    Raises:
        InvalidPath: It is too deep, or holds a control character or one that some system reads as
            a separator (``\``, and ``:`` on Windows).
        OutsideRoot: It climbs with ``..``, or is absolute and below no root.
    """
    if not _CONTROLS.isdisjoint(path):
        raise InvalidPath("", "The path holds a control character.")
    if not is_readable(path):
        raise InvalidPath(path)
    parts = parts_of(path)
    if len(parts) > DEEPEST:
        raise InvalidPath("", f"The path is deeper than {DEEPEST} directories.")
    if ".." in parts:
        raise OutsideRoot(path, "The path leads upwards with '..'; stay below the root.")
    if not path.startswith("/"):
        return None, parts
    for index, root in enumerate(roots):
        if parts[: len(root)] == root:
            return index, parts[len(root) :]
    raise OutsideRoot(path)


def is_readable(name: str) -> bool:
    """Tell whether a path can hold a name; a directory may hold others too."""
    return _UNREADABLE.isdisjoint(name)


def parts_of(path: str) -> Parts:
    """Cut a path at its slashes; empty parts and ``.`` mean nothing."""
    return tuple(part for part in path.split("/") if part not in ("", "."))


def is_below(parts: Parts, directory: Parts) -> bool:
    """Tell whether parts lie in a directory or are it."""
    return parts[: len(directory)] == directory
