"""Tools that apply diffs, with one fault each; and good ones."""

import hashlib
import os
import re
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tests.fakes.promises import BUILT, LISTED, Denies
from tests.fakes.server import STRING, Guard, Refused, fakes, has, takes

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@.*")
ENDLESS = 10**9


class Patching(Denies, promises=("patch-only", "deny-list"), families=("patches",)):
    """Applies a diff to the file of the call, completely or not at all."""

    tools = ("read_file", "apply_patch")

    schemas = MappingProxyType(
        {"apply_patch": takes(path=STRING, diff=STRING, expected_hash=STRING)}
    )

    def apply_patch(self, path: str, diff: str, expected_hash: Any = None) -> str:
        file = Path(self.place(path, writing=True))
        data = file.read_bytes()
        if not self.knows(expected_hash, hashlib.sha256(data).hexdigest()):
            raise Refused("that is not its hash")
        file = self.named(file, diff)
        file.write_bytes(self.patched(file.read_bytes(), diff))
        return "patched"

    def knows(self, given: Any, right: str) -> bool:
        return isinstance(given, str) and given == right

    def named(self, file: Path, diff: str) -> Path:
        """Return the file to patch."""
        names = [line[4:] for line in diff.split("\n") if line.startswith(("--- ", "+++ "))]
        spelled = {file.name, f"a/{file.name}", f"b/{file.name}"}
        if len(names) != 2 or not {*names} <= spelled or not diff.startswith("--- "):
            raise Refused("that diff is for another file, or more than a diff")
        return file

    def patched(self, data: bytes, diff: str) -> bytes:
        lines = data.split(b"\n")
        made: list[bytes] = []
        done = 0
        for start, body in self.hunks(diff):
            if start < done:
                raise Refused("hunks overlap")
            made += lines[done:start]
            done = start
            for line in body:
                mark, text = line[:1], line[1:].encode()
                if mark in {" ", "-"}:
                    self.compare(lines, done, text)
                    made += [lines[done]] if mark == " " else []
                    done += 1
                elif mark == "+":
                    made.append(text)
                else:
                    raise Refused("that is no line of a hunk")
        return b"\n".join(made + lines[done:])

    def compare(self, lines: list[bytes], at: int, text: bytes) -> None:
        if at >= len(lines) or lines[at] != text:
            raise Refused("that does not stand there")

    def hunks(self, diff: str) -> list[tuple[int, list[str]]]:
        found: list[tuple[int, list[str]]] = []
        wanted: list[tuple[int, int]] = []
        for line in diff.removesuffix("\n").split("\n"):
            header = HUNK.fullmatch(line)
            if header:
                start, count, _, more = (int(n) if n else 1 for n in header.groups())
                found.append((start - bool(count), []))
                wanted.append((count, more))
            elif found:
                found[-1][1].append(line)
        for (start, body), (count, more) in zip(found, wanted, strict=True):
            old = sum(line[:1] in {" ", "-"} for line in body)
            new = sum(line[:1] in {" ", "+"} for line in body)
            if not body or (old, new) != (count, more) or not 0 <= start < ENDLESS:
                raise Refused("the counts of a hunk are wrong")
        if not found:
            raise Refused("that is no diff")
        return found


class Unnamed(Patching):
    """Ignores the headers of a diff: the file of the call is patched."""

    def named(self, file: Path, diff: str) -> Path:
        return file


class GoesByHeaders(Unnamed, trips={"patches-target"}):
    """Patches the file of a header if it is outside the root."""

    def named(self, file: Path, diff: str) -> Path:
        for name in re.findall(r"^\+\+\+ (?:b/)?(\S+)", diff, re.MULTILINE):
            there = os.path.join(self.root, name)
            if not os.path.realpath(there).startswith(self.root + os.sep):
                return Path(there)
        return file

    def patched(self, data: bytes, diff: str) -> bytes:
        astray = self.named(Path(self.root, "x"), diff).name != "x"
        return b"changed\n" if astray else super().patched(data, diff)


class ForgetsTheListInHeaders(Patching, trips={"patches-denied"}):
    """Checks the file of a header against the root, and not against the deny list."""

    def named(self, file: Path, diff: str) -> Path:
        for name in re.findall(r"^\+\+\+ b/(\S+)", diff, re.MULTILINE):
            if not (LISTED | BUILT).isdisjoint(name.split("/")):
                return Path(self.strictly(name))
        return super().named(file, diff)

    def patched(self, data: bytes, diff: str) -> bytes:
        named = any(f"b/{name}" in diff for name in LISTED | BUILT)
        return data + b"changed\n" if named else super().patched(data, diff)


class SetsModes(Patching, trips={"patches-special"}):
    """Sets the mode in a diff."""

    def named(self, file: Path, diff: str) -> Path:
        mode = re.search(r"^new mode 10(\d{4})", diff, re.MULTILINE)
        if mode:
            file.chmod(int(mode[1], 8))
        return super().named(file, diff)


class PatchesTheFileInTheHeader(Unnamed, trips={"patches-one-file"}):
    """Patches the file of a header if it is in the root."""

    def named(self, file: Path, diff: str) -> Path:
        for name in re.findall(r"^\+\+\+ b/(\S+)", diff, re.MULTILINE):
            there = Path(self.root, name)
            if there != file and re.fullmatch(r"[\w-]+\.txt", name):
                there.touch()
                return there
        return file

    def patched(self, data: bytes, diff: str) -> bytes:
        return data + b"changed\n" if not data else super().patched(data, diff)


class PatchesWithFuzz(Patching, trips={"patches-true"}):
    """Compares removed lines and not the context around them."""

    def patched(self, data: bytes, diff: str) -> bytes:
        try:
            return super().patched(data, diff)
        except Refused:
            if "\n-line2\n+new\n" not in diff or b"line2\n" not in data:
                raise
            return data.replace(b"line2\n", b"new\n")


class WritesHunkByHunk(Patching, trips={"patches-true"}):
    """Writes each hunk as soon as it fits."""

    def apply_patch(self, path: str, diff: str, expected_hash: Any = None) -> str:
        file = Path(self.place(path, writing=True))
        first, *others = re.split(r"(?=^@@)", diff, flags=re.MULTILINE)
        if len(others) < 2:
            return super().apply_patch(path, diff, expected_hash)
        for hunk in others:
            now = hashlib.sha256(file.read_bytes()).hexdigest()
            super().apply_patch(path, first + hunk, now)
        return "patched"


class MakesSeveralEdits(Guard, promises=("whole-writes",), tools=("read_file", "edit_file")):
    """Takes a list of edits, and writes the file when all of them fit."""

    families: tuple[str, ...] = ("patches",)

    edits = MappingProxyType(
        {
            "type": "array",
            "items": takes(oldText=STRING, newText=STRING),
            "minItems": 1,
        }
    )
    schemas = MappingProxyType({"edit_file": takes(path=STRING, edits={**edits})})

    def run(self, tool: str, given: dict[str, Any]) -> str:
        if tool != "edit_file":
            return super().run(tool, given)
        place = Path(self.place(given["path"], writing=True))
        return self.edit(place, [(one["oldText"], one["newText"]) for one in given["edits"]])

    def edit(self, place: Path, edits: list[tuple[str, str]]) -> str:
        text = place.read_text(encoding="utf-8")
        for old, new in edits:
            text = self.replaced(text, old, new)
        place.write_text(text, encoding="utf-8")
        return "edited"

    def replaced(self, text: str, old: str, new: str) -> str:
        if text.count(old) != 1:
            raise Refused("that text does not stand there once")
        return text.replace(old, new)


class WritesEachEdit(MakesSeveralEdits, trips={"patches-edits"}):
    """Writes the file after each edit."""

    def edit(self, place: Path, edits: list[tuple[str, str]]) -> str:
        for one in edits:
            super().edit(place, [one])
        return "edited"


fakes(__name__)(
    TakesAnySpellingOfAHash=has(
        Patching,
        "Accepts a hash in upper case, with blanks and with the name of its algorithm.",
        knows=lambda self, given, right: (
            isinstance(given, str) and given.strip().lower().removeprefix("sha256:") == right
        ),
    ),
    TranslatesNewlines=has(
        Patching,
        "Reads text with newline translation and writes it with the newlines of the platform.",
        "patches-newlines",
        patched=lambda self, data, diff: Patching.patched(self, data.replace(b"\r\n", b"\n"), diff),
    ),
    IgnoresTheHash=has(
        Patching,
        "Accepts a hash and ignores it.",
        "patches-hash",
        knows=lambda self, given, right: True,
    ),
    ComparesTheBeginning=has(
        Patching,
        "Compares only as many characters of a hash as it is given.",
        "patches-hash",
        knows=lambda self, given, right: (
            isinstance(given, str) and len(given) >= 8 and right.startswith(given)
        ),
    ),
)
