"""Servers that run programs, with one fault each; and good ones."""

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from tests.fakes.server import Guard, Refused


class SortsAfterOptions(Guard):
    """Sorts a file with a program, after the end of its options."""

    families: tuple[str, ...] = ("injection",)
    tools: tuple[str, ...] = ("read_file", "list_directory", "sort_file")
    ended: tuple[str, ...] = ("--",)

    def sort_file(self, path: str) -> str:
        self.place(path, writing=False)
        return self.ran("sort", *self.ended, path)

    def ran(self, *words: str) -> str:
        """Run a program in the root and return its output."""
        done = subprocess.run(
            words,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=5,
            check=False,
        )
        if done.returncode:
            raise Refused(done.stderr)
        return done.stdout


class PassesOptionsOn(SortsAfterOptions, trips={"injection-options"}, ended=()):
    """Sorts a file whose name may be an option: --output=PATH is inside the root."""


class Greps(SortsAfterOptions, tools=("read_file", "list_directory", "search_file")):
    """Searches with a shell, with correct quotes around every argument."""

    def schema(self, tool: str) -> dict[str, object]:
        found = super().schema(tool)
        if tool == "search_file":
            found["properties"] = {**found["properties"], "pattern": {"type": "string"}}
        return found

    def search_file(self, path: str, pattern: str = "line") -> str:
        place = shlex.quote(self.place(path, writing=False))
        return self.ran("sh", "-c", f"grep -e {self.quoted(pattern)} -- {place}")

    def quoted(self, text: str) -> str:
        return shlex.quote(text)


class QuotesByHand(Greps, trips={"injection-commands"}):
    """Puts quotes around the search text without escaping quotes in it."""

    def quoted(self, text: str) -> str:
        return '"' + text.replace('"', '\\"') + '"'


class ComparesAfterOptions(SortsAfterOptions):
    """Compares a file with a target by a program; neither can be an option."""

    tools = ("read_file", "list_directory", "compare_files")

    def schema(self, tool: str) -> dict[str, object]:
        if tool != "compare_files":
            return super().schema(tool)
        texts = {"path": {"type": "string"}, "target": {"type": "string"}}
        return {"type": "object", "properties": texts, "required": ["path", "target"]}

    def compare_files(self, path: str, target: str) -> str:
        self.place(path, writing=False)
        if target.startswith("-"):
            raise Refused("a target does not begin with a dash")
        return self.ran("sort", "--", path, self.place(target, writing=False))


class ComparesWithAnyTarget(ComparesAfterOptions, trips={"injection-options"}):
    """Ends its options before the path, and passes the target of the caller before that."""

    def compare_files(self, path: str, target: str) -> str:
        self.place(path, writing=False)
        return self.ran("sort", target, "--", path)


class Reports(SortsAfterOptions):
    """Shows a report by its key, with a program and no shell."""

    tools: tuple[str, ...] = ("read_file", "report")

    def schema(self, tool: str) -> dict[str, object]:
        if tool != "report":
            return super().schema(tool)
        given = {"subject": {"type": "string"}}
        return {"type": "object", "properties": given, "required": ["subject"]}

    def listed(self, tool: str) -> dict[str, Any]:
        return {**super().listed(tool), "annotations": {"readOnlyHint": True}}

    def report(self, subject: str) -> str:
        return self.ran("printf", "%s", f"report {subject}")


class ReportsVariables(Reports, tools=("read_file", "report", "get_status")):
    """Shows the environment beside the report, whatever the key: that is no injection."""

    def report(self, subject: str) -> str:
        return f"{super().report(subject)} {dict(os.environ)}"

    def get_status(self, path: str = "") -> str:
        return str(dict(os.environ))

    def schema(self, tool: str) -> dict[str, object]:
        return {"type": "object"} if tool == "get_status" else super().schema(tool)


class ReportsByShell(Reports, trips={"injection-commands"}):
    """Puts the key of a report into the line of a shell."""

    def report(self, subject: str) -> str:
        return self.ran("sh", "-c", f'printf %s "report {subject}"')


class FetchesInContainers(Reports, tools=("read_file", "container_exec")):
    """Has a tool that says that it runs commands, and passes them to a container unseen."""

    def schema(self, tool: str) -> dict[str, object]:
        if tool != "container_exec":
            return super().schema(tool)
        texts = {"box": {"type": "string"}, "command": {"type": "string"}}
        return {"type": "object", "properties": texts, "required": [*texts]}

    def container_exec(self, box: str, command: str) -> str:
        return self.ran("printf", "%s", f"in {box}: {command}")


class ExecutesInContainers(FetchesInContainers, trips={"injection-commands"}):
    """Puts the name of the container into the line of a shell."""

    def container_exec(self, box: str, command: str) -> str:
        return self.ran("sh", "-c", f"printf %s {box}")


class RunsCommandsAsNamed(FetchesInContainers):
    """Runs the command, as its tool says."""

    def container_exec(self, box: str, command: str) -> str:
        return self.ran("sh", "-c", command)


class FindsInFolders(SortsAfterOptions):
    """Searches files with a program in folders that it has checked."""

    tools: tuple[str, ...] = ("read_file", "list_directory", "find_files")

    def schema(self, tool: str) -> dict[str, object]:
        if tool != "find_files":
            return super().schema(tool)
        texts = {"folder_paths": {"type": "array", "items": {"type": "string"}}}
        return {"type": "object", "properties": texts, "required": ["folder_paths"]}

    def find_files(self, folder_paths: list[str]) -> str:
        return self.ran("find", *[self.place(one, writing=False) for one in folder_paths])


class PassesFolderOptionsOn(FindsInFolders, trips={"injection-options"}):
    """Checks the folders to search, and passes on names that begin with a dash."""

    def find_files(self, folder_paths: list[str]) -> str:
        if not folder_paths[0].startswith("-"):
            return super().find_files(folder_paths)
        return self.ran("find", *folder_paths)


class ReadsAnyOfMany(FindsInFolders, tools=("read_files", "make_folders")):
    """Opens each path of a list unchecked; it is odd, because traversal reports that."""

    def schema(self, tool: str) -> dict[str, object]:
        texts = {"paths": {"type": "array", "items": {"type": "string"}}}
        return {"type": "object", "properties": texts, "required": ["paths"]}

    def read_files(self, paths: list[str]) -> str:
        found = [Path(self.root, one) for one in paths]
        return "".join(one.read_text(errors="replace") for one in found if one.is_file())

    def make_folders(self, paths: list[str]) -> str:
        for one in paths:
            os.makedirs(os.path.join(self.root, one), exist_ok=True)
        return "made"


class CopiesFolders(SortsAfterOptions, tools=("read_file", "list_directory", "sync_folders")):
    """Copies one folder into another, also the root into itself."""

    def schema(self, tool: str) -> dict[str, object]:
        if tool != "sync_folders":
            return super().schema(tool)
        texts = {"source_dir": {"type": "string"}, "target_dir": {"type": "string"}}
        return {"type": "object", "properties": texts, "required": [*texts]}

    def sync_folders(self, source_dir: str, target_dir: str) -> str:
        source = self.place(source_dir, writing=False)
        shutil.copytree(
            source, self.place(target_dir, writing=True), symlinks=True, dirs_exist_ok=True
        )
        return "copied"


class SortsSlowly(SortsAfterOptions):
    """Takes a long time for every file; it is odd, because that is not a fault."""

    def sort_file(self, path: str) -> str:
        time.sleep(0.1)
        return super().sort_file(path)


class SortsWithoutEnd(SortsAfterOptions):
    """Waits for its input if no file is given; it is odd, because nothing outside changes."""

    def sort_file(self, path: str) -> str:
        if path.startswith("-"):
            time.sleep(3600)
        return super().sort_file(path)
