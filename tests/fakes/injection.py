"""Servers that run programs, with one fault each; and good ones."""

import os
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.fakes.server import STRING, STRINGS, Guard, Refused, fakes, has, takes


class SortsAfterOptions(Guard, families=("injection",)):
    """Sorts a file with a program, after the end of its options."""

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


class AddsNotes(Guard, families=("injection",), tools=("add_note",)):
    """Keeps texts, and takes nothing else."""

    schemas = MappingProxyType({"add_note": takes(text=STRING) | {"required": ["text"]}})

    def add_note(self, text: str) -> str:
        with Path(self.root, "notes.txt").open("a", encoding="utf-8") as notes:
            notes.write(f"{' '.join(text.split())}\n")
        return "added"


class Greps(SortsAfterOptions, tools=("read_file", "list_directory", "search_file")):
    """Searches with a shell, with correct quotes around every argument."""

    schemas = MappingProxyType(
        {"search_file": takes(path=STRING, pattern=STRING) | {"required": ["path"]}}
    )

    def search_file(self, path: str, pattern: str = "line") -> str:
        place = shlex.quote(self.place(path, writing=False))
        return self.ran("sh", "-c", f"grep -e {self.quoted(pattern)} -- {place}")

    def quoted(self, text: str) -> str:
        return shlex.quote(text)


class ComparesAfterOptions(SortsAfterOptions):
    """Compares a file with a target by a program; neither can be an option."""

    tools = ("read_file", "list_directory", "compare_files")

    schemas = MappingProxyType({"compare_files": takes(path=STRING, target=STRING)})

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


class Reports(SortsAfterOptions, tools=("read_file", "report")):
    """Shows a report by its key, with a program and no shell."""

    schemas = MappingProxyType({"report": takes(subject=STRING)})

    def listed(self, tool: str) -> dict[str, Any]:
        return {**super().listed(tool), "annotations": {"readOnlyHint": True}}

    def report(self, subject: str) -> str:
        return self.ran("printf", "%s", f"report {subject}")


class ReportsVariables(Reports, tools=("read_file", "report", "get_status")):
    """Shows the environment beside the report, whatever the key: that is no injection."""

    schemas = MappingProxyType({**Reports.schemas, "get_status": {"type": "object"}})

    def report(self, subject: str) -> str:
        return f"{super().report(subject)} {dict(os.environ)}"

    def get_status(self, path: str = "") -> str:
        return str(dict(os.environ))


class FetchesInContainers(Reports, tools=("read_file", "container_exec")):
    """Has a tool that says that it runs commands, and passes them to a container unseen."""

    schemas = MappingProxyType({"container_exec": takes(box=STRING, command=STRING)})

    def container_exec(self, box: str, command: str) -> str:
        return self.ran("printf", "%s", f"in {box}: {command}")


class FindsInFolders(SortsAfterOptions, tools=("read_file", "list_directory", "find_files")):
    """Searches files with a program in folders that it has checked."""

    schemas = MappingProxyType({"find_files": takes(folder_paths=STRINGS)})

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

    schemas = MappingProxyType(dict.fromkeys(("read_files", "make_folders"), takes(paths=STRINGS)))

    def read_files(self, paths: list[str]) -> str:
        found = [Path(self.root, one) for one in paths]
        return "".join(one.read_text(errors="replace") for one in found if one.is_file())

    def make_folders(self, paths: list[str]) -> str:
        for one in paths:
            os.makedirs(os.path.join(self.root, one), exist_ok=True)
        return "made"


class CopiesFolders(SortsAfterOptions, tools=("read_file", "list_directory", "sync_folders")):
    """Copies one folder into another, also the root into itself."""

    schemas = MappingProxyType({"sync_folders": takes(source_dir=STRING, target_dir=STRING)})

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


fakes(__name__)(
    PassesOptionsOn=has(
        SortsAfterOptions,
        "Sorts a file whose name may be an option: --output=PATH is inside the root.",
        "injection-options",
        ended=(),
    ),
    QuotesByHand=has(
        Greps,
        "Puts quotes around the search text without escaping quotes in it.",
        "injection-commands",
        quoted=lambda self, text: '"' + text.replace('"', '\\"') + '"',
    ),
    EndsAtAQuote=has(
        Greps,
        "Ends the process at a search text with a quote, and runs nothing of it.",
        "injection-ended",
        quoted=lambda self, text: os._exit(1) if '"' in text else shlex.quote(text),
    ),
    EndsAtAnyText=has(
        Greps,
        "Ends the process at any search text but the one that it has by default.",
        "injection-ended",
        quoted=lambda self, text: shlex.quote(text) if text == "line" else os._exit(1),
    ),
    ReportsByShell=has(
        Reports,
        "Puts the key of a report into the line of a shell.",
        "injection-commands",
        report=lambda self, subject: self.ran("sh", "-c", f'printf %s "report {subject}"'),
    ),
    ExecutesInContainers=has(
        FetchesInContainers,
        "Puts the name of the container into the line of a shell.",
        "injection-commands",
        container_exec=lambda self, box, command: self.ran("sh", "-c", f"printf %s {box}"),
    ),
    RunsCommandsAsNamed=has(
        FetchesInContainers,
        "Runs the command, as its tool says.",
        container_exec=lambda self, box, command: self.ran("sh", "-c", command),
    ),
)
