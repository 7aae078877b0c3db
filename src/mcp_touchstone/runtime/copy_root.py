"""Copy the content of a user's folder into a root, not the targets of its links. Knows no MCP."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from mcp_touchstone.runtime.safe_path import SafePath, Tree

LARGEST: Final = 64 * 1024 * 1024
MOST: Final = 5_000


class SeedError(ValueError):
    """A folder cannot be copied; the message names the reason and the remedy."""


def check(folder: Path) -> None:
    """Reject a path that is no folder, or a folder too large to be copied for each attack.

    Raises:
        SeedError: the folder is rejected; the message names the reason.
    """
    if not folder.is_dir():
        raise SeedError(f"{folder} is no folder; name one whose content is copied into the root")
    number = size = 0
    for here, _, names in os.walk(folder):
        for name in names:
            number += 1
            size += Path(here, name).lstat().st_size
            if number > MOST or size > LARGEST:
                raise SeedError(
                    f"{folder} holds more than {MOST:,} files or {LARGEST >> 20} MiB, and it is "
                    "copied for each attack; name a smaller folder"
                )


def copy(folder: Path, root: SafePath) -> None:
    """Copy files, folders and links inside the folder; nothing else, and nothing twice.

    A link out of the folder would point at the user's own files: it is skipped.
    """
    tree = Tree(folder.resolve())
    for here, folders, names in tree.top.walk():
        there = root / "/".join(here.parts)
        for name in folders:
            (there / name).mkdir(exist_ok=True)
        for name in names:
            path, place = here / name, there / name
            if path.is_symlink():
                if _leads_inside(path):
                    place.unlink()
                    place.symlink_to(path.readlink())
            elif path.is_file():
                place.write_bytes(path.read_bytes())
                place.chmod(path.stat().st_mode & 0o777)


def left_out(folder: Path) -> Iterator[str]:
    """Yield the links of a folder that are not copied, relative to it."""
    for path in Tree(folder.resolve()).top.below():
        if path.is_symlink() and not _leads_inside(path):
            yield "/".join(path.parts)


def _leads_inside(link: SafePath) -> bool:
    """Return whether a link is relative and leads to a path of its tree."""
    try:
        target = link.tree.likely(str(link))
        return not link.readlink().startswith("/") and link.tree.at(target) is not None
    except OSError:
        return False
