"""Copy the content of a user's folder into a root, not the targets of its links. Knows no MCP."""

import os
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
                target = path.readlink()
                leads = tree.at(tree.likely(f"{here}/{target}"))
                if leads is not None and not target.startswith("/"):
                    place.unlink()
                    place.symlink_to(target)
            elif path.is_file():
                place.write_bytes(path.read_bytes())
                place.chmod(path.stat().st_mode & 0o777)
