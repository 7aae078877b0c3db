r"""A client's path cut into components, and nothing on the disk looked at. Pure.

A path is relative to a root, or absolute when it spells out a root component by component:
``/srv/rootEvil/x`` does not begin with ``/srv/root`` here.
"""

from __future__ import annotations

import os

from .refusals import InvalidPath, OutsideRoot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Parts = tuple[str, ...]

DEEPEST = 128
"""Components of a path. What lies deeper, many a program can neither show nor remove."""

_CONTROLS = frozenset(map(chr, [*range(0x20), 0x7F]))
_UNREADABLE = _CONTROLS | ({"\\", ":"} if os.name == "nt" else {"\\"})


class Location:
    """Where a file or a directory lies.

    Attributes:
        root: Index of its root.
        parts: Its path below the root, cut; empty for the root itself.
        path: The path that a client may send to reach it: relative to the root or, if there are
            several roots, beginning with the name of the root. ``""`` is the only root.
    """

    __slots__ = ("parts", "path", "root")

    def __init__(self, root: int, parts: Parts, name: str | None) -> None:
        self.root = root
        self.parts = parts
        self.path = "/".join(parts if name is None else (name, *parts))


def names_of(roots: Iterable[str]) -> tuple[str, ...]:
    """Name each root, so that a path can say which of several roots it is in.

    The name is the last part of the path of the root. Where an earlier root has the same name, a
    number is added: ``src``, ``src-2``. A root without a usable name is called ``root``.
    """
    names: list[str] = []
    for path in roots:
        name = plain = _last_part(path)
        number = 1
        while name in names:
            number += 1
            name = f"{plain}-{number}"
        names.append(name)
    return tuple(names)


def _last_part(path: str) -> str:
    name = os.path.basename(os.path.abspath(path))  # noqa: PTH100, PTH119 - pathlib is slow to load
    try:
        name.encode()
    except UnicodeEncodeError:  # no name in JSON
        return "root"
    return name if name and is_readable(name) and _CONTROLS.isdisjoint(name) else "root"


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
    """Say whether a path can hold a name; a directory may hold others too."""
    return _UNREADABLE.isdisjoint(name)


def parts_of(path: str) -> Parts:
    """Cut a path at its slashes; empty parts and ``.`` mean nothing."""
    return tuple(part for part in path.split("/") if part not in ("", "."))


def is_below(parts: Parts, directory: Parts) -> bool:
    """Say whether parts lie in a directory or are it."""
    return parts[: len(directory)] == directory
