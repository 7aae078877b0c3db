"""Servers that promise not to write, with one fault each; and good ones."""

import os
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.fakes.moves import EDITING, Undoes
from tests.fakes.server import Guard, Refused, fakes, has


class ReadOnly(Guard, promises=("read-only",), families=("modes",)):
    """Refuses every write."""

    def place(self, text: str, *, writing: bool) -> str:
        if writing:
            raise Refused("this server is read-only")
        return self.strictly(text)


class ReadOnlyButForEdits(ReadOnly, trips={"modes-read-only"}):
    """Checks in all tools except one whether it is read-only."""

    def edit_file(self, path: str, old_text: str, new_text: str) -> str:
        place = Path(self.strictly(path))
        place.write_text(place.read_text().replace(old_text, new_text), encoding="utf-8")
        return "edited"


class ReadOnlyButForMoves(ReadOnly, trips={"modes-read-only"}):
    """Checks whether it is read-only only in tools that write contents."""

    def move_file(self, source: str, destination: str) -> str:
        os.replace(self.strictly(source), self.strictly(destination))
        return "moved"


class ReadOnlyOnRequest(Guard, promises=("read-only",), families=("modes",)):
    """Is read-only if it is started so, without declaring it, and ignores arguments to write."""

    terms = MappingProxyType({"read-only": {"args": ("--read-only",)}})

    def run(self, tool: str, given: dict[str, Any]) -> str:
        if "--read-only" in self.options and not tool.startswith(("read", "list")):
            return "done"
        known = self.schema(tool)["properties"]
        return super().run(tool, {name: value for name, value in given.items() if name in known})


class ReadOnlyForAllTools(ReadOnlyOnRequest, Undoes, families=("modes",)):
    """Is read-only for tools that remove and undo, too."""

    tools = (*EDITING, "delete_file")
    callable = ("delete_file",)


class WritesWhenForced(ReadOnlyOnRequest, trips={"modes-read-only-switch"}):
    """Lets an argument of a call disable the read-only mode."""

    def run(self, tool: str, given: dict[str, Any]) -> str:
        started = self.options
        if given.get("read_only") is False or given.get("force"):
            self.options = ()
        try:
            return super().run(tool, given)
        finally:
            self.options = started


class CachesFilesNextToThem(ReadOnlyOnRequest, trips={"modes-read-only"}):
    """Keeps a cache of each file it read next to the file."""

    def read_file(self, path: str) -> str:
        text = super().read_file(path)
        if "--read-only" in self.options:
            Path(self.strictly(path) + ".cache").touch()
        return text


class ReadOnlyButForALog(ReadOnly, trips={"modes-read-only"}):
    """Writes a log next to the files it serves."""

    def run(self, tool: str, given: dict[str, Any]) -> str:
        with open(os.path.join(self.root, "access.log"), "a", encoding="utf-8") as log:
            log.write(f"{tool}\n")
        return super().run(tool, given)


class DryRunByDefault(Guard, families=("modes",), tools=("read_file", "edit_file")):
    """Writes only if a call disables the dry run."""

    promises: tuple[str, ...] = ("dry-run",)

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
        """Whether the call is carried out, from the value of its switch."""
        return said is not None and said[0] is False


class WritesByDefault(DryRunByDefault, promises=()):
    """Writes by default, as it promises its users."""

    def is_meant(self, said: tuple[Any] | None) -> bool:
        return said is None or not said[0]


class BacksUpBeforeADryRun(WritesByDefault, trips={"modes-dry-run"}):
    """Makes a copy of the file before it checks the switch."""

    def run(self, tool: str, given: dict[str, Any]) -> str:
        if tool == "edit_file":
            place = self.strictly(given["path"])
            Path(place + ".orig").write_bytes(Path(place).read_bytes())
        return super().run(tool, given)


fakes(__name__)(
    TreatsNullAsFalse=has(
        DryRunByDefault,
        "Tests its switch for truth, if it is present.",
        "modes-dry-run-default",
        is_meant=lambda self, said: said is not None and not said[0],
    ),
    IgnoresItsSwitch=has(
        WritesByDefault,
        "Has a switch for dry runs in its schema and ignores it.",
        "modes-dry-run",
        is_meant=lambda self, said: True,
    ),
)
