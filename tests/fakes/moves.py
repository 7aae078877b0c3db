"""Guards with a fault about moves, copies and undo; and good ones."""

import os
import shutil
from pathlib import Path
from typing import Any

from tests.fakes.promises import Denies
from tests.fakes.server import Guard, Refused

IN = "moves-in"
OUT = "moves-out"
OVER = "moves-over-links"
TREES = "moves-trees"
DENIED = "moves-denied"
UNDO = "moves-undo"

MOVING = ("read_file", "list_directory", "write_file", "move_file", "copy_file")
EDITING = ("read_file", "write_file", "edit_file", "undo_edit")


class Carrier(Guard, tools=MOVING, families=("moves",)):
    """Moves by renaming and copies folders with their links as links."""

    def schema(self, tool: str) -> dict[str, Any]:
        return super().schema("move_file" if tool == "copy_file" else tool)

    def end(self, text: str) -> str:
        """Return the path of a source or destination, without following a link in its last part."""
        folder, name = os.path.split(os.path.join(self.root, text).rstrip("/"))
        if name in {"", ".", ".."}:
            raise Refused("that is no name")
        return os.path.join(self.strictly(folder), name)

    def move_file(self, source: str, destination: str) -> str:
        os.rename(self.end(source), self.end(destination))
        return "moved"

    def copy_file(self, source: str, destination: str) -> str:
        here, there = self.end(source), self.end(destination)
        if os.path.islink(there) or os.path.isdir(there):
            raise Refused("there is something")
        if os.path.isdir(here) and not os.path.islink(here):
            shutil.copytree(here, there, symlinks=True)
        else:
            shutil.copy(here, there, follow_symlinks=False)
        return "copied"


class MovesFromAnywhere(Carrier, trips={IN}):
    """Checks the destination of a move and not the source."""

    def move_file(self, source: str, destination: str) -> str:
        os.rename(os.path.join(self.root, source), self.end(destination))
        return "moved"


class CopiesLinkTargets(Carrier, trips={IN}):
    """Checks the path of a link, and copies its target."""

    def copy_file(self, source: str, destination: str) -> str:
        here, there = self.end(source), self.end(destination)
        if not os.path.isdir(here) and not os.path.lexists(there):
            shutil.copy(here, there)
        return "copied"


class MovesToAnywhere(Carrier, trips={OUT}):
    """Checks the source of a move and not the destination."""

    def move_file(self, source: str, destination: str) -> str:
        os.rename(self.end(source), os.path.join(self.root, destination))
        return "moved"


class MovesIntoFolders(Carrier, trips={OVER}):
    """Moves into a destination that is a folder or a link to one."""

    def move_file(self, source: str, destination: str) -> str:
        shutil.move(self.end(source), self.end(destination))
        return "moved"


class CopiesOverLinks(Carrier, trips={OVER}):
    """Checks the folder of the destination and opens the destination, also a link."""

    def copy_file(self, source: str, destination: str) -> str:
        shutil.copyfile(self.strictly(source), self.end(destination))
        return "copied"


class CopiesTreesThroughLinks(Carrier, trips={TREES}):
    """Copies a folder with the targets of its links."""

    def copy_file(self, source: str, destination: str) -> str:
        here, there = self.end(source), self.end(destination)
        if os.path.isdir(here) and not os.path.islink(here):
            shutil.copytree(here, there, ignore_dangling_symlinks=True)
            return "copied"
        return super().copy_file(source, destination)


class DeniesFilesOnly(Denies, trips={DENIED}, families=("deny", "moves")):
    """Checks the list for files, and moves any folder."""

    def move_file(self, source: str, destination: str) -> str:
        here, there = self.strictly(source), self.strictly(destination)
        if not os.path.isdir(here):
            self.check(here, writing=True)
        self.check(there, writing=True)
        os.rename(here, there)
        return "moved"


class Undoes(Guard, families=("moves",), tools=EDITING):
    """Keeps the old content, and restores it if it may write there now."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.before: dict[str, str] = {}

    def edit_file(self, path: str, old_text: str, new_text: str) -> str:
        self.before[path] = Path(self.place(path, writing=True)).read_text(encoding="utf-8")
        return super().edit_file(path, old_text, new_text)

    def kept(self, path: str) -> str:
        """Return the content of a file before its edit."""
        if path not in self.before:
            raise Refused("nothing to undo")
        return self.before.pop(path)

    def undo_edit(self, path: str) -> str:
        Path(self.place(path, writing=True)).write_text(self.kept(path), encoding="utf-8")
        return "undone"


class UndoesByName(Undoes, trips={UNDO}):
    """Checks a path at the edit, and writes there at the undo without a check."""

    def undo_edit(self, path: str) -> str:
        Path(os.path.join(self.root, path)).write_text(self.kept(path), encoding="utf-8")
        return "undone"


class UndoesIntoLinkedFolders(Undoes, trips={UNDO}):
    """Checks at the undo whether the file is a link, and not its folder."""

    def undo_edit(self, path: str) -> str:
        place = Path(os.path.join(self.root, path))
        if place.is_symlink():
            raise Refused("that is a link now")
        place.write_text(self.kept(path), encoding="utf-8")
        return "undone"


class UndoesByRenaming(Undoes):
    """Writes a new file in a resolved folder and renames it."""

    def undo_edit(self, path: str) -> str:
        folder, name = os.path.split(path)
        place = os.path.join(self.strictly(folder or "."), name)
        Path(place + ".part").write_text(self.kept(path), encoding="utf-8")
        os.replace(place + ".part", place)
        return "undone"
