"""Guards with a deny list of names of their own, with one fault each; and good ones."""

import os
from collections.abc import Mapping
from fnmatch import fnmatchcase
from types import MappingProxyType

from mcp_touchstone.terms import Terms
from tests.fakes.promises import (
    ALIAS,
    CASE,
    DIRECT,
    EQUIVALENCE,
    NEAR,
    SPELLING,
    Denies,
    FoldsCaseBehindTheList,
    NormalisesBehindTheList,
)
from tests.fakes.server import Refused

IN_PLACE = ("read_file", "list_directory", "write_file", "edit_file", "make_directory")
LIST = ("*.pem", "secrets.yml", ".ssh/", "private/**")


class DeniesItsOwn(Denies):
    """Denies files and folders by name at every depth, and one folder of the root."""

    terms: Mapping[str, Terms] = MappingProxyType({"deny-list": Terms(deny=LIST)})

    def check(self, place: str, *, writing: bool) -> None:
        del writing
        parts = self.parts(place)
        if parts[:1] == ("private",) or any(map(self.is_named, parts)):
            raise Refused("that is denied")

    def is_named(self, part: str) -> bool:
        return part in {".ssh", "secrets.yml"} or fnmatchcase(part, "*.pem")

    def list_directory(self, path: str) -> str:
        found = os.listdir(self.place(path, writing=False))
        return "\n".join(sorted(name for name in found if not self.is_named(name)))


class DeniesItsOwnInAnyCase(DeniesItsOwn):
    """Compares names in small letters."""

    def is_named(self, part: str) -> bool:
        return super().is_named(part.casefold())


class DeniesItsOwnFilesByName(DeniesItsOwn):
    """Takes files for denied only by the last part of a path, and folders by all the others."""

    def check(self, place: str, *, writing: bool) -> None:
        *folders, name = self.parts(place) or ("",)
        if {".ssh"} & {*folders, name} or [*folders, name][:1] == ["private"]:
            raise Refused("that is denied")
        if self.is_named(name):
            super().check(place, writing=writing)


class DeniesItsOwnContent(DeniesItsOwn):
    """Lets a folder be listed whose content is denied: no name in it is a secret."""

    tools = IN_PLACE

    def check(self, place: str, *, writing: bool) -> None:
        if self.parts(place) != ("private",):
            super().check(place, writing=writing)


class DeniesItsOwnAtTheTop(DeniesItsOwn):
    """Looks at the first part of a path only, where a folder is denied."""

    trips = frozenset({DIRECT})

    def check(self, place: str, *, writing: bool) -> None:
        if ".ssh" not in self.parts(place)[1:]:
            super().check(place, writing=writing)


class DeniesItsOwnFilesAtTheTop(DeniesItsOwn):
    """Matches files in the root only, also where an odd name makes a folder of its own."""

    trips = frozenset({DIRECT, SPELLING})

    def check(self, place: str, *, writing: bool) -> None:
        parts = self.parts(place)
        if len(parts) == 1 or parts[:1] == ("private",) or ".ssh" in parts:
            super().check(place, writing=writing)


class DeniesItsOwnOneLevel(DeniesItsOwn):
    """Denies what lies directly in a folder, also behind a link to that."""

    trips = frozenset({DIRECT, ALIAS})
    tools = IN_PLACE

    def check(self, place: str, *, writing: bool) -> None:
        parts = self.parts(place)
        if parts[0:1] != ("private",) or len(parts) <= 2:
            super().check(place, writing=writing)


class DeniesItsOwnWhereNoSlashFollows(DeniesItsOwn):
    """Matches the end of the text, so that a slash behind it opens the file."""

    trips = frozenset({SPELLING})

    def place(self, text: str, *, writing: bool) -> str:
        place = self.strictly(text)
        if os.path.isdir(place) or not text.endswith(("/", "/.")):
            self.check(place, writing=writing)
        return place


class DeniesItsOwnCase(FoldsCaseBehindTheList, DeniesItsOwn):
    """Asks the list about the name as it came, and opens it in small letters."""

    trips = frozenset({CASE})


class DeniesItsOwnCharacters(NormalisesBehindTheList, DeniesItsOwn):
    """Asks the list about the name as it came, and takes away what cannot be seen."""

    trips = frozenset({EQUIVALENCE})


class DeniesItsOwnPrefixes(DeniesItsOwn):
    """Matches the beginnings of names."""

    trips = frozenset({NEAR})

    def is_named(self, part: str) -> bool:
        return super().is_named(part) or part.startswith((".ssh", "secrets.yml"))


class DeniesItsOwnButLinks(DeniesItsOwn):
    """Trusts links of the root to lead to what may be read."""

    trips = frozenset({ALIAS})

    def place(self, text: str, *, writing: bool) -> str:
        place = self.strictly(text)
        if not text.startswith("lnk_") or text.startswith("lnk_in"):
            self.check(place, writing=writing)
        return place
