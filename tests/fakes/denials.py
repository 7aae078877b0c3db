"""Guards with a configured deny list, with one fault each; and good ones."""

import os
from fnmatch import fnmatchcase
from types import MappingProxyType

from tests.fakes.promises import (
    ALIAS,
    CASE,
    DIRECT,
    EQUIVALENCE,
    NEAR,
    SPELLING,
    Denies,
    FoldsCaseAfterTheList,
    NormalisesAfterTheList,
)
from tests.fakes.server import Refused, fakes, has

IN_PLACE = ("read_file", "list_directory", "write_file", "edit_file", "make_directory")
LIST = ("*.pem", "secrets.yml", ".ssh/", "private/**")


class DeniesItsOwn(Denies, terms=MappingProxyType({"deny-list": {"deny": LIST}})):
    """Denies files and folders by name at every depth, and one folder of the root."""

    def check(self, place: str, *, writing: bool) -> None:
        parts = self.parts(place)
        if parts[:1] == ("private",) or any(map(self.is_named, parts)):
            raise Refused("that is denied")

    def is_named(self, part: str) -> bool:
        return part in {".ssh", "secrets.yml"} or fnmatchcase(part, "*.pem")

    def list_directory(self, path: str) -> str:
        found = os.listdir(self.place(path, writing=False))
        return "\n".join(sorted(name for name in found if not self.is_named(name)))


class DeniesItsOwnFilesByName(DeniesItsOwn):
    """Denies files only by the last part of a path, and folders by all other parts."""

    def check(self, place: str, *, writing: bool) -> None:
        *folders, name = self.parts(place) or ("",)
        if {".ssh"} & {*folders, name} or [*folders, name][:1] == ["private"]:
            raise Refused("that is denied")
        if self.is_named(name):
            super().check(place, writing=writing)


class DeniesItsOwnContent(DeniesItsOwn, tools=IN_PLACE):
    """Lists a denied folder, whose names are not secret, and denies its content."""

    def check(self, place: str, *, writing: bool) -> None:
        if self.parts(place) != ("private",):
            super().check(place, writing=writing)


class DeniesItsOwnAtTheTop(DeniesItsOwn, trips={DIRECT}):
    """Checks only the first part of a path for denied folders."""

    def check(self, place: str, *, writing: bool) -> None:
        if ".ssh" not in self.parts(place)[1:]:
            super().check(place, writing=writing)


class DeniesItsOwnFilesAtTheTop(DeniesItsOwn, trips={DIRECT, SPELLING}):
    """Matches files in the root only, also if an unusual name makes a folder of its own."""

    def check(self, place: str, *, writing: bool) -> None:
        parts = self.parts(place)
        if len(parts) == 1 or parts[:1] == ("private",) or ".ssh" in parts:
            super().check(place, writing=writing)


class DeniesItsOwnOneLevel(DeniesItsOwn, trips={DIRECT, ALIAS}, tools=IN_PLACE):
    """Denies the direct content of a folder, also through a link to it."""

    def check(self, place: str, *, writing: bool) -> None:
        parts = self.parts(place)
        if parts[0:1] != ("private",) or len(parts) <= 2:
            super().check(place, writing=writing)


class DeniesItsOwnWhereNoSlashFollows(DeniesItsOwn, trips={SPELLING}):
    """Matches the end of the text, so a trailing slash opens the file."""

    def place(self, text: str, *, writing: bool) -> str:
        place = self.strictly(text)
        if os.path.isdir(place) or not text.endswith(("/", "/.")):
            self.check(place, writing=writing)
        return place


class DeniesItsOwnCase(FoldsCaseAfterTheList, DeniesItsOwn, trips={CASE}):
    """Checks the list before the name is folded to lower case."""


class DeniesItsOwnCharacters(NormalisesAfterTheList, DeniesItsOwn, trips={EQUIVALENCE}):
    """Checks the list before invisible characters are removed."""


class DeniesItsOwnButLinks(DeniesItsOwn, trips={ALIAS}):
    """Trusts links in the root to lead to allowed files."""

    def place(self, text: str, *, writing: bool) -> str:
        place = self.strictly(text)
        if not text.startswith("lnk_") or text.startswith("lnk_in"):
            self.check(place, writing=writing)
        return place


fakes(__name__)(
    DeniesItsOwnInAnyCase=has(
        DeniesItsOwn,
        "Compares names in lower case.",
        is_named=lambda self, part: DeniesItsOwn.is_named(self, part.casefold()),
    ),
    DeniesItsOwnPrefixes=has(
        DeniesItsOwn,
        "Matches prefixes of names.",
        NEAR,
        is_named=lambda self, part: (
            DeniesItsOwn.is_named(self, part) or part.startswith((".ssh", "secrets.yml"))
        ),
    ),
)
