"""Tools that run parts of CEDARScript, with one fault each; and good ones."""

import os
import re
import subprocess
from pathlib import Path
from types import MappingProxyType

from tests.fakes.promises import Denies
from tests.fakes.server import STRING, Refused, fakes, has, takes

MADE = re.compile(r'CREATE FILE "([^"]+)" WITH CONTENT \'\'\'\n(.*?)\n\'\'\'', re.DOTALL)
LINE_GONE = re.compile(r'UPDATE FILE "([^"]+)" DELETE LINE "([^"]+)"')
EDITED = re.compile(
    r'UPDATE FILE "([^"]+)" REPLACE WHOLE WITH ED r\'\'\'\n(.*?)\n\'\'\'', re.DOTALL
)
MOVED = re.compile(r'MV FILE "([^"]+)" TO "([^"]+)"')
REMOVED = re.compile(r'RM FILE "([^"]+)"')


class Carries(Denies, tools=("read_file", "apply_script")):
    """Checks every path of every command before it runs the first command."""

    families: tuple[str, ...] = ("injection", "deny")

    schemas = MappingProxyType({"apply_script": takes(script=STRING)})

    def first(self, path: str) -> str:
        """Return the path of the main target of a command, or refuse."""
        return self.place(path, writing=True)

    def second(self, path: str) -> str:
        """Return the path of the destination of a command, or refuse."""
        return self.place(path, writing=True)

    def apply_script(self, script: str) -> str:
        made = [(self.first(path), text) for path, text in MADE.findall(script)]
        shorter = [(self.first(path), line) for path, line in LINE_GONE.findall(script)]
        edited = [(self.first(path), given) for path, given in EDITED.findall(script)]
        moved = [(self.first(one), self.second(two)) for one, two in MOVED.findall(script)]
        removed = [self.first(path) for path in REMOVED.findall(script)]
        for place, text in made:
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            Path(place).write_text(text.replace("@0:", "") + "\n", encoding="utf-8")
        for place, line in shorter:
            lines = Path(place).read_text(encoding="utf-8").splitlines(keepends=True)
            Path(place).write_text("".join(x for x in lines if x.strip() != line), encoding="utf-8")
        for place, given in edited:
            self.edit(place, given)
        for one, two in moved:
            os.replace(one, two)
        for place in removed:
            Path(place).unlink()
        return "done"

    def edit(self, place: str, given: str) -> None:
        if given != "1,$d":
            raise Refused("that is more than a deletion")
        Path(place).write_text("", encoding="utf-8")


class RunsFilters(Carries, trips={"injection-scripts"}):
    """Passes an edit to a program with a shell escape."""

    def edit(self, place: str, given: str) -> None:
        if given.startswith("!"):
            subprocess.run(["sh", "-c", given[1:]], timeout=5, check=False, capture_output=True)


class ReadsFilters(Carries, trips={"injection-scripts"}):
    """Lets an edit read any file into its own file."""

    def edit(self, place: str, given: str) -> None:
        if given.startswith("0r /"):
            Path(place).write_bytes(Path(given[3:]).read_bytes())


fakes(__name__)(
    ChecksTheFirstPath=has(
        Carries,
        "Checks the main target of a command, and not its destination.",
        "injection-scripts",
        second=lambda self, path: os.path.join(self.root, path),
    ),
    AllowsInScripts=has(
        Carries,
        "Applies the deny list to arguments, and not to scripts.",
        "deny-scripts",
        first=lambda self, path: self.strictly(path),
    ),
)
