"""Servers that promise not to write, with one fault each; and good ones."""

import os
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mcp_touchstone.terms import Terms
from tests.fakes.moves import EDITING, Undoes
from tests.fakes.server import Guard, Refused


class ReadOnly(Guard):
    """Refuses to write, whatever tool is called."""

    promises = ("read-only",)
    families = ("modes",)

    def place(self, text: str, *, writing: bool) -> str:
        if writing:
            raise Refused("this server is read-only")
        return self.strictly(text)


class ReadOnlyButForEdits(ReadOnly):
    """Asks whether it is read-only in all tools but one."""

    trips = frozenset({"modes-read-only"})

    def edit_file(self, path: str, old_text: str, new_text: str) -> str:
        place = Path(self.strictly(path))
        place.write_text(place.read_text().replace(old_text, new_text), encoding="utf-8")
        return "edited"


class ReadOnlyButForMoves(ReadOnly):
    """Asks whether it is read-only where contents are written."""

    trips = frozenset({"modes-read-only"})

    def move_file(self, source: str, destination: str) -> str:
        os.replace(self.strictly(source), self.strictly(destination))
        return "moved"


class ReadOnlyOnRequest(Guard):
    """Is read-only where it is started so, and tells nobody; an order to write is read over."""

    promises = ("read-only",)
    families = ("modes",)
    terms = MappingProxyType({"read-only": Terms(args=("--read-only",))})

    def run(self, tool: str, given: dict[str, Any]) -> str:
        if "--read-only" in self.options and not tool.startswith(("read", "list")):
            return "done"
        known = self.schema(tool)["properties"]
        return super().run(tool, {name: value for name, value in given.items() if name in known})


class ReadOnlyToTheLast(ReadOnlyOnRequest, Undoes):
    """Is read-only for what removes and what takes back, too."""

    tools = (*EDITING, "delete_file")
    families = ("modes",)
    callable = ("delete_file",)


class WritesWhenForced(ReadOnlyOnRequest):
    """Lets a call say that it is not read-only."""

    trips = frozenset({"modes-read-only-switch"})

    def run(self, tool: str, given: dict[str, Any]) -> str:
        started = self.options
        if given.get("read_only") is False or given.get("force"):
            self.options = ()
        try:
            return super().run(tool, given)
        finally:
            self.options = started


class TouchesWhatItReads(ReadOnlyOnRequest):
    """Keeps what it has read in a cache beside it."""

    trips = frozenset({"modes-read-only"})

    def read_file(self, path: str) -> str:
        text = super().read_file(path)
        if "--read-only" in self.options:
            Path(self.strictly(path) + ".cache").touch()
        return text


class ReadOnlyButForALog(ReadOnly):
    """Writes a log beside the files it serves."""

    trips = frozenset({"modes-read-only"})

    def run(self, tool: str, given: dict[str, Any]) -> str:
        with open(os.path.join(self.root, "access.log"), "a", encoding="utf-8") as log:
            log.write(f"{tool}\n")
        return super().run(tool, given)


class Rehearses(Guard):
    """Writes where a call says that it is no dry run, and only then."""

    promises: tuple[str, ...] = ("dry-run",)
    families = ("modes",)
    tools = ("read_file", "edit_file")

    def schema(self, tool: str) -> dict[str, Any]:
        known = super().schema(tool)
        more = {"dry_run": {"type": "boolean"}} if tool == "edit_file" else {}
        return known | {"properties": known["properties"] | more}

    def run(self, tool: str, given: dict[str, Any]) -> str:
        missing = object()
        said = given.pop("dry_run", missing)
        if tool == "edit_file" and not self.is_meant(None if said is missing else (said,)):
            self.place(given["path"], writing=True)
            return "it would be edited"
        known = self.schema(tool)["properties"]
        return super().run(tool, {name: value for name, value in given.items() if name in known})

    def is_meant(self, said: tuple[Any] | None) -> bool:
        """Whether it is done; what was said, if anything."""
        return said is not None and said[0] is False


class TakesNothingForNo(Rehearses):
    """Tests its switch for truth, if it is there."""

    trips = frozenset({"modes-dry-run-default"})

    def is_meant(self, said: tuple[Any] | None) -> bool:
        return said is not None and not said[0]


class WritesUnlessTold(Rehearses):
    """Writes where nothing is said; that is what it promises its users, so nobody minds."""

    promises = ()

    def is_meant(self, said: tuple[Any] | None) -> bool:
        return said is None or not said[0]


class BacksUpBeforeARehearsal(WritesUnlessTold):
    """Makes a copy of the file before it looks what is asked of it."""

    trips = frozenset({"modes-dry-run"})

    def run(self, tool: str, given: dict[str, Any]) -> str:
        if tool == "edit_file":
            place = self.strictly(given["path"])
            Path(place + ".orig").write_bytes(Path(place).read_bytes())
        return super().run(tool, given)


class ForgetsItsSwitch(WritesUnlessTold):
    """Has a switch for dry runs in its schema and does not look at it."""

    trips = frozenset({"modes-dry-run"})

    def is_meant(self, said: tuple[Any] | None) -> bool:
        return True
