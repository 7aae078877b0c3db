"""Guards that promise a deny list, with one fault each; and a good one."""

import os
import unicodedata
from pathlib import Path

from tests.fakes.server import Guard, Refused, fakes, has

LISTED = {".git", "node_modules", "__pycache__", ".env", ".vs"}
BUILT = {"bin", "obj"}

DIRECT = "deny-direct"
SPELLING = "deny-spelling"
CASE = "deny-case"
EQUIVALENCE = "deny-equivalence"
ALIAS = "deny-alias"
BUILD = "deny-write-only"
NEAR = "deny-near-miss"


class Denies(Guard, promises=("deny-list",), families=("deny",)):
    """Resolves the path, then matches every component of the result."""

    def place(self, text: str, *, writing: bool) -> str:
        place = self.strictly(text)
        self.check(place, writing=writing)
        return place

    def check(self, place: str, *, writing: bool) -> None:
        listed = LISTED | BUILT if writing else LISTED
        if any(self.is_listed(part, listed) for part in self.parts(place)):
            raise Refused("that is denied")

    def parts(self, place: str) -> tuple[str, ...]:
        return Path(place).relative_to(self.root).parts

    def is_listed(self, part: str, listed: set[str]) -> bool:
        return part in listed

    def list_directory(self, path: str) -> str:
        found = os.listdir(self.place(path, writing=False))
        return "\n".join(sorted(name for name in found if name not in LISTED))


class DeniesOneLevel(Denies, trips={DIRECT}):
    """Denies a folder and its direct content, for one of its names."""

    def check(self, place: str, *, writing: bool) -> None:
        parts = self.parts(place)
        if len(parts) > 2 and parts[0] == ".vs":
            return
        super().check(place, writing=writing)


class DeniesRelativePathsOnly(Denies, trips={SPELLING}):
    """Ignores the list if the path is absolute."""

    def place(self, text: str, *, writing: bool) -> str:
        place = self.strictly(text)
        if writing or not text.startswith("/"):
            self.check(place, writing=writing)
        return place


class FoldsCaseAfterTheList(Denies, trips={CASE}):
    """Checks the list before the name is folded to lower case."""

    def place(self, text: str, *, writing: bool) -> str:
        place = super().place(text, writing=writing)
        folded = os.path.join(self.root, text.lower())
        return folded if not os.path.exists(place) and os.path.exists(folded) else place


class FoldsCaseBeforeTheList(Denies):
    """Folds every name to lower case, then checks the list."""

    def place(self, text: str, *, writing: bool) -> str:
        place = super().place(text, writing=writing)
        folded = os.path.join(self.root, text.lower())
        return place if os.path.exists(place) else super().place(folded, writing=writing)


class NormalisesAfterTheList(Denies, trips={EQUIVALENCE}):
    """Checks the list before invisible characters are removed."""

    def place(self, text: str, *, writing: bool) -> str:
        place = super().place(text, writing=writing)
        plain = "".join(c for c in text if unicodedata.category(c) != "Cf")
        return place if plain == text else self.strictly(plain)


class CutsNamesAfterTheList(Denies, trips={EQUIVALENCE}, tiers=("platform",)):
    """Checks the list before trailing dots and blanks are removed."""

    def place(self, text: str, *, writing: bool) -> str:
        place = super().place(text, writing=writing)
        cut = "/".join(part.rstrip(". ") for part in text.split("/"))
        dotted = any(part != "." and part.endswith(".") for part in text.split("/"))
        return self.strictly(cut) if dotted and ".." not in text.split("/") else place


class DeniesBeforeResolving(Denies, trips={ALIAS, SPELLING, BUILD}):
    """Matches the path without dot-dot, before links are resolved."""

    def place(self, text: str, *, writing: bool) -> str:
        place = self.strictly(text)
        text = os.path.normpath(os.path.join(self.root, text))
        if text.startswith(self.root):
            self.check(text, writing=writing)
        return place


class ForgetsNestedRepositories(Denies, trips={ALIAS}):
    """Matches .git at the top of the root only."""

    def check(self, place: str, *, writing: bool) -> None:
        if ".git" not in self.parts(place)[1:]:
            super().check(place, writing=writing)


class ForgetsBuildOutputWhenMaking(Denies, trips={BUILD}):
    """Matches bin and obj only for existing files."""

    def check(self, place: str, *, writing: bool) -> None:
        super().check(place, writing=writing and os.path.exists(place))


class ForgetsBuildOutputWhenMoving(Denies, trips={BUILD}):
    """Checks whether the source of a move is denied, and not the destination."""

    def move_file(self, source: str, destination: str) -> str:
        os.replace(self.place(source, writing=True), self.place(destination, writing=False))
        return "moved"


fakes(__name__)(
    RemovesNothingDenied=has(
        Denies,
        "Has a tool that removes files and checks the list like all others.",
        callable=("delete_file",),
        tools=(*Guard.tools, "delete_file"),
    ),
    DeniesPrefixes=has(
        Denies,
        "Matches prefixes of names.",
        NEAR,
        is_listed=lambda self, part, listed: any(part.startswith(name) for name in listed),
    ),
    DeniesEndingsWhenWriting=has(
        Denies,
        "Matches bin and obj at the end of names.",
        NEAR,
        is_listed=lambda self, part, listed: (
            part in LISTED or any(part.endswith(name) for name in listed - LISTED)
        ),
    ),
    ListsDeniedNames=has(
        Denies,
        "Shows the names of denied folders in the listing above them.",
        list_directory=lambda self, path: "\n".join(
            sorted(os.listdir(self.place(path, writing=False)))
        ),
    ),
    RefusesDeniedAsMissing=has(
        Denies,
        "Reports a denied file as missing.",
        refusal=lambda self, text, arguments: Denies.refusal(self, "no such file", arguments),
    ),
)
