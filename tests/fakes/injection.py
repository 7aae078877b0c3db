"""Servers that have a program do the work, with one fault each; and good ones."""

import shlex
import subprocess

from tests.fakes.server import Guard, Refused


class SortsAfterOptions(Guard):
    """Sorts a file by a program that is told where its options end."""

    families: tuple[str, ...] = ("injection",)
    tools: tuple[str, ...] = ("read_file", "list_directory", "sort_file")
    ended: tuple[str, ...] = ("--",)

    def sort_file(self, path: str) -> str:
        self.place(path, writing=False)
        return self.ran("sort", *self.ended, path)

    def ran(self, *words: str) -> str:
        """Run a program in the root and give what it prints."""
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


class PassesOptionsOn(SortsAfterOptions):
    """Has a file sorted whose name may be an option: --output=PATH lies inside the root."""

    trips = frozenset({"injection-options"})
    ended = ()


class Greps(SortsAfterOptions):
    """Searches by a shell, in which every word of the caller stands in quotes."""

    tools = ("read_file", "list_directory", "search_file")

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


class QuotesByHand(Greps):
    """Puts quotes around what is searched for, and leaves to the shell what stands in them."""

    trips = frozenset({"injection-commands"})

    def quoted(self, text: str) -> str:
        return '"' + text.replace('"', '\\"') + '"'


class ComparesAfterOptions(SortsAfterOptions):
    """Compares a file with a target by a program; neither is an option."""

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


class ComparesWithAnyTarget(ComparesAfterOptions):
    """Ends its options before a path, and has a target of the caller among them."""

    trips = frozenset({"injection-options"})

    def compare_files(self, path: str, target: str) -> str:
        self.place(path, writing=False)
        return self.ran("sort", target, "--", path)
