"""The folder of golden recordings: one folder per revision, one JSON file per question."""

from pathlib import Path
from typing import Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.golden.requests import Document
from mcp_touchstone.results.scrubber import pretty
from mcp_touchstone.runtime.input_file import InputFile
from mcp_touchstone.runtime.members import Members

CURE: Final = "restore it, or remove it and record again"

Recording = dict[str, dict[str, Document]]
"""Revision -> name of the stop -> its record."""


class Shelf:
    """The folder of the recordings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self) -> Recording:
        """Read all records.

        Raises:
            InputError: a file is not a record.
        """
        found: Recording = {}
        for revision in rev.ALL:
            for path in sorted((self.folder / revision).glob("*.json")):
                record = Members.of(InputFile(path, CURE, named=False).json(), str(path))
                found.setdefault(revision, {})[path.stem] = dict(record.value)
        return found

    def write(self, revision: str, name: str, document: Document) -> Path:
        """Write the record of one stop; return its file."""
        path = self.path(revision, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(pretty(document) + "\n", encoding="utf-8", newline="\n")
        return path

    def remove(self, revision: str, name: str) -> Path:
        """Remove the record of a stop, and its folder if it becomes empty."""
        path = self.path(revision, name)
        path.unlink(missing_ok=True)
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
        return path

    def path(self, revision: str, name: str) -> Path:
        """Return the file of a stop."""
        return self.folder / revision / f"{name}.json"
