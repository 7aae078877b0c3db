"""The files as a process sees them, for those who only read. Knows no MCP.

A process in a sandbox has a root of its own, with files that are nowhere else: ``uvx`` makes its
environment there. They are read through the root of the process, so a link leads where it leads for
the process, and never out of that root.
"""

import contextlib
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.runtime.input_file import parsed
from mcp_touchstone.runtime.open_folder import LARGEST, Folder, open_folder, open_root
from mcp_touchstone.runtime.safe_path import SafePath, Tree

BEGINNING: Final = 200_000
"""Bytes of a text of which the beginning is read."""


@dataclass(frozen=True, slots=True)
class SeenFiles:
    """Files, named by absolute paths.

    Attributes:
        root: the root of a process in a sandbox; None for the files of the system.
    """

    root: Tree | None = None

    def resolve(self, path: Path) -> Path:
        """Return a path without links; parts that are missing are kept.

        Raises:
            OSError: links form a circle; a ``RuntimeError`` in older versions of Python.
        """
        return path.resolve() if self.root is None else Path(self.root.likely(str(path)))

    def is_file(self, path: Path) -> bool:
        """Return whether a path leads to a regular file."""
        return stat.S_ISREG(self._mode(path))

    def is_dir(self, path: Path) -> bool:
        """Return whether a path leads to a folder."""
        return stat.S_ISDIR(self._mode(path))

    def matching(self, folder: Path, pattern: str) -> list[Path]:
        """Return the sorted paths that match a pattern; none if the folder cannot be read."""
        with contextlib.suppress(OSError, ValueError):
            if self.root is None:
                return sorted(folder.glob(pattern))
            return sorted(map(Path, self._at(self.root, folder).matches(pattern)))
        return []

    def opened(self, path: Path) -> tuple[Folder, str]:
        """Return the open folder of a file that a path leads to, and the name of the file in it.

        Raises:
            OSError: there is no such file.
        """
        if self.root is None:
            real = path.resolve()
            return open_folder(real.parent), real.name
        place = self._at(self.root, path)
        return place.parent.opened(), place.name

    def beginning(self, path: Path) -> str:
        """Return the first ``BEGINNING`` bytes of a text; empty if it cannot be read."""
        return self._read(path, BEGINNING, whole=False).decode("utf-8", "replace")

    def text(self, path: Path) -> str:
        """Return a text in UTF-8 as a whole; empty if it cannot be read, or is none."""
        with contextlib.suppress(UnicodeDecodeError):
            return self._read(path, LARGEST).decode("utf-8-sig").replace("\r\n", "\n")
        return ""

    def json(self, path: Path) -> dict[str, Any]:
        """Return the object in a JSON file; empty if there is none."""
        with contextlib.suppress(InputError):
            found = parsed(self.text(path), str(path), "")
            return found if isinstance(found, dict) else {}
        return {}

    def _read(self, path: Path, most: int, *, whole: bool = True) -> bytes:
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            folder, name = self.opened(path)
            return folder.read(name, most, whole=whole)
        return b""

    def _mode(self, path: Path) -> int:
        with contextlib.suppress(OSError, ValueError):
            place = path if self.root is None else self._at(self.root, path)
            return place.stat().st_mode
        return 0

    @staticmethod
    def _at(root: Tree, path: Path) -> SafePath:
        return root.top / root.real(str(path))


SYSTEM: Final = SeenFiles()


def seen_by(pid: int) -> SeenFiles:
    """Return the files that a process sees; those of the system if it has ended, and for 0."""
    with contextlib.suppress(OSError):
        return SYSTEM if not pid else SeenFiles(Tree(Path("/"), open_root(pid)))
    return SYSTEM
