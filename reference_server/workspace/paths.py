r"""Split the paths of a client into components, without access to the disk. Pure.

A path is relative to a root, or absolute and begins with all components of a root:
``/srv/rootEvil/x`` does not begin with ``/srv/root``.
"""

from __future__ import annotations

import os

from .refusals import InvalidPath, OutsideRoot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Parts = tuple[str, ...]

DEEPEST = 128
"""Maximum components of a path. Many programs can neither show nor remove deeper files."""

_CONTROLS = frozenset(map(chr, [*range(0x20), 0x7F]))
_UNREADABLE = _CONTROLS | ({"\\", ":"} if os.name == "nt" else {"\\"})


class Location:
    """The location of a file or a directory.

    Attributes:
        root: Index of its root.
        parts: The components of its path below the root; empty for the root itself.
        path: The path that a client may send for it: relative to the root or, if there are several
            roots, beginning with the name of the root. ``""`` is the only root.
    """

    __slots__ = ("parts", "path", "root")

    def __init__(self, root: int, parts: Parts, name: str | None) -> None:
        self.root = root
        self.parts = parts
        self.path = "/".join(parts if name is None else (name, *parts))


def names_of(roots: Iterable[str]) -> tuple[str, ...]:
    """Return a unique name for each root; a path may begin with it if there are several roots.

    The name is the last part of the path of the root. If an earlier root has the same name, a
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
    except UnicodeEncodeError:  # JSON cannot contain the name
        return "root"
    return name if name and is_readable(name) and _CONTROLS.isdisjoint(name) else "root"


def cut(path: str, roots: Sequence[Parts]) -> tuple[int | None, Parts]:
    r"""Return the index of the root of an absolute path, or None, and the parts below the root.

    Args:
        path: As the client wrote it; ``""`` and ``"."`` are the root itself.

    Raises:
        InvalidPath: It is too deep, or contains a control character or a separator of another
            system (``\``, and ``:`` on Windows).
        OutsideRoot: It contains ``..``, or is absolute and below no root.
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
    """Return whether a path may contain a name; a directory may contain other names too."""
    return _UNREADABLE.isdisjoint(name)


def parts_of(path: str) -> Parts:
    return tuple(part for part in path.split("/") if part not in ("", "."))


def is_below(parts: Parts, directory: Parts) -> bool:
    return parts[: len(directory)] == directory
