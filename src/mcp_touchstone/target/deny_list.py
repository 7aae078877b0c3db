"""Deny lists: the names that many servers deny, or the entries that the user declares. Pure.

An entry has the form of a line in ``.gitignore``. Without a slash inside it applies at every depth,
otherwise from the root. A slash at its end denies a folder with its content; two stars deny the
content alone. Each entry has an example: a denied path that attacks create. Payloads and fixtures
name the examples in braces.
"""

import itertools
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from typing import Final

STAR: Final = "touchstone"
"""The text that replaces a star in an example."""

EACH: Final = 4
"""Greatest number of examples for one row; if there are more, each row gets other ones."""

MOST: Final = 64
"""Greatest number of entries in a list: each entry is attacked."""

SERVED: Final = ("control.txt", "ok.txt", "dir/ok2.txt")
"""Files that every attack must be able to read."""

ANYWHERE: Final = "**"


@dataclass(frozen=True, slots=True)
class DenyEntry:
    """One entry of a deny list.

    Attributes:
        parts: a glob for each part of a path; ``**`` matches any number of parts.
        is_folder: whether it denies a folder with its content.
        example: a denied path below the root.
    """

    parts: tuple[str, ...]
    is_folder: bool
    example: str

    @property
    def is_deep(self) -> bool:
        """Whether it denies at every depth."""
        return self.parts[0] == ANYWHERE


def entry(text: str) -> DenyEntry:
    """Parse an entry.

    Raises:
        ValueError: the entry is invalid; the message suggests a valid one.
    """
    parts = text.removesuffix("/").split("/")
    if not text.strip():
        raise ValueError(f"{text!r} is empty; write a name, a folder (.ssh/) or a glob (*.pem)")
    if text.startswith(("/", "~")) or re.match(r"[A-Za-z]:", text):
        raise ValueError(f"{text!r} is absolute; write it from the root, as in private/**")
    if ".." in parts:
        raise ValueError(f"{text!r} leads up; write what lies below the root, as in private/**")
    if text.startswith("!") or re.search(r"[\\{}\"\x00-\x1f]", text):
        raise ValueError(f"{text!r} is no glob of *, ?, [] and **; write an entry for each name")
    if {"", "."} & {*parts}:
        raise ValueError(f"{text!r} has an empty part; write it from the root, as in private/**")
    is_content = parts[-1] == ANYWHERE and len(parts) > 1
    if is_content:
        del parts[-1]
    elif len(parts) == 1:
        parts.insert(0, ANYWHERE)
    while parts[:2] == [ANYWHERE, ANYWHERE]:
        del parts[0]
    names = [_example(part) for part in parts if part != ANYWHERE]
    wanted = (*parts, "*") if is_content else tuple(parts)
    made = DenyEntry(wanted, is_content or text.endswith("/"), "/".join(names))
    if not names or not _matches(wanted, (*names, STAR)):
        raise ValueError(f"{text!r} names nothing an example can be made of; write it otherwise")
    for path in SERVED:
        if _matches(made.parts, tuple(path.split("/"))):
            raise ValueError(
                f"{text!r} denies {path}, which attacks have to read; write it more narrowly"
            )
    return made


def _example(glob: str) -> str:
    """Return a name that matches a glob of one part."""
    one = re.sub(r"\[([!^]?)(.[^\]]*)\]", _letter, glob)
    return re.sub(r"\*+", STAR, one).replace("?", "x")


def _letter(match: re.Match[str]) -> str:
    """Return a letter that matches a set in brackets; empty if none is found."""
    among = match[2][0] + "abcdefghijklmnopqrstuvwxyz0123456789_"
    wanted = match[0].replace("[^", "[!")
    return next((letter for letter in among if fnmatchcase(letter, wanted)), "")


@lru_cache(maxsize=1 << 16)
def _matches(wanted: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Return whether an entry matches a path or one of its parents."""
    if not wanted:
        return True
    if wanted[0] == ANYWHERE:
        return any(_matches(wanted[1:], parts[n:]) for n in range(len(parts)))
    return bool(parts) and fnmatchcase(parts[0], wanted[0]) and _matches(wanted[1:], parts[1:])


@dataclass(frozen=True)
class Denied:
    """A deny list.

    Attributes:
        entries: entries that deny reading and writing.
        written: entries that deny writing only.
        is_default: whether it is the default list, whose names some rows contain.
    """

    entries: tuple[DenyEntry, ...]
    written: tuple[DenyEntry, ...] = ()
    is_default: bool = False

    def lists(self, parts: Iterable[str], *, writing: bool = False) -> bool:
        """Return whether it denies a path below the root."""
        return self._lists(tuple(parts), writing)

    @cached_property
    def _lists(self) -> Callable[[tuple[str, ...], bool], bool]:
        """``lists``, with cached results: each attack asks again about every path of a tree."""

        @lru_cache(maxsize=1 << 14)
        def lists(path: tuple[str, ...], writing: bool) -> bool:
            known = (*self.entries, *self.written) if writing else self.entries
            return any(_matches(one.parts, path) for one in known)

        return lists

    @cached_property
    def names(self) -> Mapping[str, tuple[str, ...]]:
        """Name in braces -> the examples that replace it."""
        if self.is_default:
            return _DEFAULT
        of = {
            "denied": self.entries,
            "denied_folder": [one for one in self.entries if one.is_folder],
            "denied_file": [one for one in self.entries if not one.is_folder],
            "denied_deep_folder": [e for e in self.entries if e.is_folder and e.is_deep],
            "denied_deep_file": [e for e in self.entries if not e.is_folder and e.is_deep],
        }
        return {k: tuple(dict.fromkeys(one.example for one in ones)) for k, ones in of.items()}

    def texts(self, template: str, *, everything: bool = True) -> Iterator[str]:
        """Yield a text for each combination of examples for the names in braces.

        ``{denied_file|upper}`` is replaced by the example in capitals. There is no text if the
        spelling equals the example, or if the list denies it too.

        Args:
            template: a payload, or a path of a fixture; other braces do not change.
            everything: whether to use every example; otherwise at most ``EACH`` of them, which
                depend on the template.
        """
        names = dict.fromkeys(match[1] for match in _TAG.finditer(template))
        for chosen in itertools.product(
            *(self._turn(n, template, everything=everything) for n in names)
        ):
            text = self._put(template, dict(zip(names, chosen, strict=True)))
            if text is not None:
                yield text

    def _put(self, template: str, values: Mapping[str, str]) -> str | None:
        """Replace the names in braces; None if a spelling changes nothing or is denied too."""
        is_same = False

        def piece(match: re.Match[str]) -> str:
            nonlocal is_same
            value, how = values[match[1]], match[2]
            if not how:
                return value
            spelled = _SPELLED[how](value, match[3] or "")
            is_same |= how != FLAT and (spelled == value or self.lists(spelled.split("/")))
            return spelled

        text = _TAG.sub(piece, template)
        return None if is_same else text

    def _turn(self, name: str, template: str, *, everything: bool) -> tuple[str, ...]:
        known = self.names[name]
        if everything or len(known) <= EACH:
            return known
        start = zlib.crc32(template.encode()) % len(known)
        return (known[start:] + known[:start])[:EACH]


def read(entries: Iterable[str]) -> Denied:
    """Parse a deny list of the user; without entries, return the default list.

    Raises:
        ValueError: an entry is invalid; the message names it and suggests a valid one.
    """
    found = tuple(dict.fromkeys(map(entry, entries)))
    return Denied(found) if found else DEFAULT


# --- other spellings of names


def flat(name: str, _: str = "") -> str:
    """Return the letters, digits and underscores of a name, for the name of a link."""
    return re.sub(r"\W", "", name) or "x"


def _escaped(character: str) -> str:
    return f"%{ord(character):02x}" if character.isascii() else character


def _wide(at: int) -> Callable[[str, str], str]:
    """Return a function that replaces one character by its full-width form (from U+FF01)."""

    def widened(name: str, _: str) -> str:
        wide = len(name) > at and "!" <= name[at] <= "~" and name[at] != "/"
        return name[:at] + chr(ord(name[at]) + 0xFEE0) + name[at + 1 :] if wide else name

    return widened


def _short(name: str, _: str) -> str:
    """Return the short name on Windows: six letters, a tilde, a number, three of the ending."""
    stem, _dot, ending = name.lstrip(".").partition(".")
    return f"{stem[:6]}~1{'.' if ending else ''}{ending[:3]}".upper()


FLAT: Final = "flat"
"""Spelling for a part of the name of a link; it may equal the example."""

_SPELLED: Final[Mapping[str, Callable[[str, str], str]]] = {
    "bare": lambda name, _: name.replace(".", "", 1),
    FLAT: flat,
    "upper": lambda name, _: name.upper(),
    "title": lambda name, _: re.sub(r"[^\W\d_]", lambda match: match[0].upper(), name, count=1),
    "last-upper": lambda name, _: name[:-1] + name[-1].upper(),
    "dotless": lambda name, _: name.replace("i", "\u0131", 1),
    "dotted": lambda name, _: name.upper().replace("I", "\u0130", 1) if "i" in name else name,
    "last-escaped": lambda name, _: name[:-1] + _escaped(name[-1]),
    "first-escaped": lambda name, _: _escaped(name[0]) + name[1:],
    "within": lambda name, character: name[:2] + character + name[2:],
    "wide-first": _wide(0),
    "wide-second": _wide(1),
    "short": _short,
    "short-lower": lambda name, _: _short(name, "").lower(),
}
"""Word after the bar -> the function that respells a name."""

_TAG: Final = re.compile(
    r"\{(denied(?:_deep)?(?:_folder|_file)?)(?:\|(" + "|".join(_SPELLED) + r")(?:=(.))?)?\}"
)

_NAMES: Final = (".git", "node_modules", "__pycache__", ".env", ".vs")

_DEFAULT: Final[Mapping[str, tuple[str, ...]]] = {
    "denied": _NAMES,
    "denied_folder": (".git",),
    "denied_file": (".env",),
    "denied_deep_folder": ("__pycache__",),
    "denied_deep_file": (".env",),
}
"""Examples of the default list; rows without braces contain its other names."""

DEFAULT: Final = Denied(
    tuple(map(entry, _NAMES)), tuple(map(entry, ("bin", "obj"))), is_default=True
)
"""The default list; some rows contain its names."""
