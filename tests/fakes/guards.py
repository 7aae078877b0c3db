"""Path guards with one fault each, and good ones. The docstring describes the behaviour."""

import contextlib
import os
import time
import unicodedata
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.fakes.server import LONGEST, STRING, Guard, Refused, fakes, has, takes

DOTDOT = "traversal-dotdot"
ABSOLUTE = "traversal-absolute"
SIBLING = "traversal-sibling"
TWO_READINGS = "traversal-two-readings"
ENCODED = "traversal-encoded"
UNICODE = "traversal-unicode"
SEPARATORS = "traversal-separators"
EXPANSION = "traversal-expansion"
NAMES = "traversal-hostile-names"


class Joined(Guard):
    """Joins the path to the root and opens it."""

    trips = frozenset(
        {DOTDOT, ABSOLUTE, SIBLING, TWO_READINGS, SEPARATORS, EXPANSION}
        | {"links-read", "links-write", "special-procfs", "moves-in", "moves-out"}
    )

    def place(self, text: str, *, writing: bool) -> str:
        return os.path.join(self.root, text)


class JoinedWithMore(Joined, families=(*Joined.families, "lines", "messages")):
    """Joins the path to the root and opens it, and ignores unknown arguments."""

    def run(self, tool: str, given: dict[str, Any]) -> str:
        known = self.schema(tool)["properties"]
        return super().run(tool, {k: v for k, v in given.items() if k in known})


class ListsAnything(Guard):
    """Lists every folder; opens and changes files in the root only."""

    def list_directory(self, path: str) -> str:
        return "\n".join(sorted(os.listdir(os.path.join(self.root, path))))


class ReadsByAnotherArgument(Joined, tools=("read_file",)):
    """Joins the path to the root; the command line names the argument of its only tool."""

    def schema(self, tool: str) -> dict[str, Any]:
        return takes(**dict.fromkeys(self.options, STRING))

    def run(self, tool: str, given: dict[str, Any]) -> str:
        return super().run(tool, {"path": given[self.options[0]]})


class RemovesAnywhere(Guard, tools=(*Guard.tools, "delete_file"), callable=("delete_file",)):
    """Checks all paths except those of files to remove."""

    trips = frozenset({DOTDOT, ABSOLUTE, SIBLING, TWO_READINGS, SEPARATORS, "links-write"})

    def delete_file(self, path: str) -> str:
        os.remove(os.path.join(self.root, path))
        return "removed"


class LeadingDotsOnly(Guard, trips={DOTDOT}):
    """Checks for dot-dot only at the beginning of the path, then normalises and opens it."""

    def place(self, text: str, *, writing: bool) -> str:
        if text.startswith(("/", "..")) or self.has_links(text):
            return self.strictly(text)
        return os.path.normpath(os.path.join(self.root, text))


class MakesFoldersFirst(Guard):
    """Creates the folders of a new file before the path is checked."""

    trips = frozenset(
        {DOTDOT, ABSOLUTE, SIBLING, TWO_READINGS, SEPARATORS, EXPANSION, "links-write"}
    )

    def write_file(self, path: str, content: str) -> str:
        os.makedirs(os.path.dirname(os.path.join(self.root, path)), exist_ok=True)
        temporary = Path(os.path.join(self.root, path) + ".tmp")
        temporary.touch()
        temporary.unlink()
        return super().write_file(path, content)


class OpensBeforeItChecks(Guard, trips={"traversal-opened"}):
    """Opens the path, and then checks the opened file."""

    def place(self, text: str, *, writing: bool) -> str:
        if not writing:
            with contextlib.suppress(OSError):
                flags = os.O_RDONLY | os.O_NONBLOCK
                os.close(os.open(os.path.join(self.root, text), flags))
        return self.strictly(text)


class TextPrefix(Guard, trips={SIBLING}):
    """Compares the prefix of the normalised path with the root, without the separator."""

    def place(self, text: str, *, writing: bool) -> str:
        path = os.path.normpath(os.path.join(self.root, text))
        if not path.startswith(self.root) or self.has_links(text):
            raise Refused(f"{text} is outside")
        return path


class OpensAnotherForm(Guard):
    """Checks one form of a path, and opens another if that differs."""

    def place(self, text: str, *, writing: bool) -> str:
        place = self.strictly(self.checked(text))
        opened = self.opened_as(text)
        return place if opened == self.checked(text) else os.path.join(self.root, opened)

    def checked(self, text: str) -> str:
        return text

    def opened_as(self, text: str) -> str:
        return text


class NormalisesThenOpens(Guard, trips={TWO_READINGS, "links-read", "links-write"}):
    """Checks the text without dot-dot and without resolving links, and opens the original."""

    tools = ("read_file", "list_directory", "write_file", "edit_file", "make_directory")

    def place(self, text: str, *, writing: bool) -> str:
        path = os.path.normpath(os.path.join(self.root, text))
        if path != self.root and not path.startswith(self.root + os.sep):
            raise Refused(f"{text} is outside")
        self.strictly(path)
        return os.path.join(self.root, text)


class StripsDotdotOnce(Guard, trips={SEPARATORS}):
    """Deletes "../" instead of refusing it, once."""

    def place(self, text: str, *, writing: bool) -> str:
        if text.startswith("/") or text.endswith("..") or self.has_links(text):
            return self.strictly(text)
        return os.path.join(self.root, text.replace("../", "").lstrip("/"))


class TrustsUnresolvablePaths(Guard, trips={NAMES}):
    """Opens the part of a path before a NUL if resolving fails."""

    def place(self, text: str, *, writing: bool) -> str:
        try:
            return self.strictly(text)
        except ValueError:
            return os.path.join(self.root, text.partition("\0")[0])


class DiesOfLongNames(Guard, trips={NAMES}):
    """Exits at a long path."""

    def place(self, text: str, *, writing: bool) -> str:
        if len(text) > LONGEST:
            os._exit(3)
        return self.strictly(text)


class Resolves(Guard):
    """Resolves the path like the kernel and opens the result."""


class OpensEachComponent(Guard, tools=("read_file", "list_directory", "write_file")):
    """Opens each component relative to the one before, and follows no links."""

    def place(self, text: str, *, writing: bool) -> str:
        below = text.removeprefix(self.root).lstrip("/") if text.startswith(self.root) else text
        parts = [part for part in below.split("/") if part not in {"", "."}]
        if ".." in parts or (text.startswith("/") and not text.startswith(self.root + "/")):
            raise Refused("that path is not allowed")
        here = os.open(self.root, os.O_RDONLY)
        try:
            for part in parts[:-1]:
                deeper = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY, dir_fd=here)
                os.close(here)
                here = deeper
            if parts and Path(f"/proc/self/fd/{here}", parts[-1]).is_symlink():
                raise Refused("that path is a link")
            return os.path.join(os.readlink(f"/proc/self/fd/{here}"), *parts[-1:])
        finally:
            os.close(here)


class RefusesAbsolute(Guard):
    """Refuses absolute paths."""

    def place(self, text: str, *, writing: bool) -> str:
        if text.startswith("/"):
            raise Refused("absolute paths are refused")
        return self.strictly(text)


class KeepsALogAtHome(Guard):
    """Writes a log to its home and to the temporary folder, like many servers."""

    def run(self, tool: str, given: dict[str, Any]) -> str:
        for folder in (os.environ["HOME"], os.environ["TMPDIR"]):
            with open(os.path.join(folder, "fake.log"), "a", encoding="utf-8") as log:
                log.write(f"{tool} {sorted(given)}\n")
        return super().run(tool, given)


class HangsOnHugeNames(Guard):
    """Hangs on a name of a mebibyte."""

    longest = 1_000_000

    def place(self, text: str, *, writing: bool) -> str:
        if len(text) > self.longest:
            time.sleep(3600)
        return self.strictly(text)


class HangsOnLongNames(HangsOnHugeNames, longest=2_000):
    """Hangs on a long name."""


class RefusesAllAfterAClimb(Guard):
    """Refuses everything after one refused path."""

    sulking = False

    def place(self, text: str, *, writing: bool) -> str:
        if self.sulking:
            raise Refused("no more")
        try:
            return self.strictly(text)
        except Refused:
            self.sulking = True
            raise


fakes(__name__)(
    TrimsBeforeCheck=has(
        OpensAnotherForm,
        "Trims the path for the check and opens the original.",
        SIBLING,
        checked=lambda self, text: text.strip(),
    ),
    ResolvesThenNormalises=has(
        OpensAnotherForm,
        "Checks the resolved path, and opens the text without dot-dot.",
        TWO_READINGS,
        opened_as=lambda self, text: os.path.normpath(text),
    ),
    TrimsAfterCheck=has(
        OpensAnotherForm,
        "Checks the path and trims it before it is opened.",
        TWO_READINGS,
        opened_as=lambda self, text: text.strip(),
    ),
    UnquotesAfterCheck=has(
        OpensAnotherForm,
        "Checks the path and removes quotes before it is opened.",
        TWO_READINGS,
        opened_as=lambda self, text: text.strip("\"'`"),
    ),
    DecodesAfterCheck=has(
        OpensAnotherForm,
        "Checks the path and decodes percent before it is opened.",
        ENCODED,
        opened_as=lambda self, text: unquote(text),
    ),
    NormalisesUnicodeAfterCheck=has(
        OpensAnotherForm,
        "Checks the path and normalises its characters before it is opened.",
        UNICODE,
        opened_as=lambda self, text: unicodedata.normalize("NFKC", text),
    ),
    TurnsBackslashesAfterCheck=has(
        OpensAnotherForm,
        "Turns backslashes into slashes after the check.",
        SEPARATORS,
        opened_as=lambda self, text: text.replace("\\", "/"),
    ),
    ExpandsAfterCheck=has(
        OpensAnotherForm,
        "Expands the tilde and variables after the check.",
        EXPANSION,
        opened_as=lambda self, text: os.path.expandvars(os.path.expanduser(text)),
    ),
    NetworkShare=has(
        Guard,
        "Treats a path with two leading slashes as a network share and allows it.",
        ABSOLUTE,
        place=lambda self, text, *, writing: text if text.startswith("//") else self.strictly(text),
    ),
    TakesAbsoluteAsRelative=has(
        Guard,
        "Treats an absolute path as relative to the root.",
        place=lambda self, text, *, writing: self.strictly(text.lstrip("/")),
    ),
    RefusesInSuccess=has(
        Guard,
        "Refuses in the text of a successful result, and repeats all arguments.",
        refusal=lambda self, text, arguments: {
            "content": [{"type": "text", "text": f"Error: {text} (you sent {arguments})"}]
        },
    ),
    DecodesBeforeCheck=has(
        Guard,
        "Decodes, normalises and trims the path, then checks it, then opens the checked path.",
        place=lambda self, text, *, writing: self.strictly(
            unicodedata.normalize("NFKC", unquote(text)).strip()
        ),
    ),
)
