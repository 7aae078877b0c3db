"""The folder of golden recordings: one folder per revision, one JSON file per question."""

import json
from pathlib import Path

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.engine.choice import UsageError
from mcp_touchstone.recordings.requests import Document
from mcp_touchstone.recordings.scrubber import pretty

Recording = dict[str, dict[str, Document]]
"""Revision -> name of the stop -> its record."""


class Shelf:
    """The folder of the recordings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self) -> Recording:
        """Read all records.

        Raises:
            UsageError: a file is not a record.
        """
        found: Recording = {}
        for revision in rev.ALL:
            for path in sorted((self.folder / revision).glob("*.json")):
                try:
                    document = json.loads(path.read_text(encoding="utf-8"))
                except (OSError, ValueError) as error:
                    raise UsageError(f"{path} cannot be read: {error}") from error
                if not isinstance(document, dict):
                    raise UsageError(f"{path} is no record: it holds no JSON object")
                found.setdefault(revision, {})[path.stem] = document
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
