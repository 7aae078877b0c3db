"""Which names may be read and written: the deny lists and the allow list. Pure.

A deny list is read as a ``.gitignore`` without exceptions. An entry without a slash matches a
component at every depth: ``.git`` denies ``a/.git/config`` and leaves ``.gitignore`` alone. One
with a slash matches from the root. Whatever lies below a match is denied too. Where the volume
folds names, every name that it takes for a denied one is denied as well.
"""

from __future__ import annotations

import os

from .refusals import Denied, WriteDenied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .paths import Parts

OURS = ".mcp-edit-"
"""Prefix of the files that a write needs for a moment; no client ever sees one."""

# What HFS+ ignores in a name (git's core.protectHFS lists the same).
_IGNORED = dict.fromkeys(
    [0xFEFF, *range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070)]
)
_ANY = "**"
_WILD = frozenset("*?[/")
_SHORT = 6
"""Letters of a long name that its NTFS short form keeps: ``GIT~1``, ``NODE_M~1``."""


class Names:
    """The lists of one server.

    Args:
        deny: Names and patterns that no path may match.
        deny_writes: More of them, for paths written to.
        allow: Patterns (``*.py``, ``docs/*``); a file's path or name must match one, if any.
    """

    def __init__(
        self, deny: Iterable[str], deny_writes: Iterable[str], allow: Iterable[str]
    ) -> None:
        self._deny = _List(deny)
        self._deny_writes = _List(deny_writes)
        self._allow = tuple(allow)

    def denies(self, parts: Parts, *, folds: bool) -> bool:
        """Say whether a path may not even be read."""
        return any(name.startswith(OURS) for name in parts) or self._deny.has(parts, folds=folds)

    def check(self, parts: Parts, *, folds: bool, writing: bool = False) -> None:
        """See that no part of a path is denied.

        Raises:
            Denied: One is.
            WriteDenied: One is, for writing.
        """
        if self.denies(parts, folds=folds):
            raise Denied("/".join(parts))
        if writing and self._deny_writes.has(parts, folds=folds):
            raise WriteDenied("/".join(parts))

    def allows(self, parts: Parts) -> bool:
        """Say whether the allow list has a place for this file."""
        if not self._allow:
            return True
        from fnmatch import fnmatchcase  # noqa: PLC0415 - only for servers with such a list

        path = "/".join(parts)
        return any(fnmatchcase(path, one) or fnmatchcase(parts[-1], one) for one in self._allow)


class _List:
    """One deny list: plain names, which are looked up, and patterns, which are matched."""

    def __init__(self, entries: Iterable[str]) -> None:
        stripped = [entry.removesuffix("/") for entry in entries]
        self._names = frozenset(entry for entry in stripped if not _WILD & set(entry))
        self._patterns = [_cut(entry) for entry in stripped if entry not in self._names]

    def has(self, parts: Parts, *, folds: bool) -> bool:
        """Say whether an entry matches a path or a directory above it."""
        for name in parts:
            if name in self._names or (folds and _is_alias(name, self._names)):
                return True
        if not self._patterns:
            return False
        if folds:
            parts = tuple(map(_plain, parts))
        return any(
            _matches(tuple(map(_fold, pattern)) if folds else pattern, parts)
            for pattern in self._patterns
        )


def _cut(entry: str) -> Parts:
    """Cut a pattern into components; ``**`` is any number of them."""
    parts = entry.split("/")
    if len(parts) == 1:
        return (_ANY, *parts)
    if parts[-1] == _ANY:
        parts[-1] = "*"  # what is in the directory and not the directory itself
    return tuple(parts)


def _matches(pattern: Parts, parts: Parts) -> bool:
    """Say whether a pattern matches a path or a directory above it.

    All ways to match are followed at once, so the time does not grow with their number.
    """
    from fnmatch import fnmatchcase  # noqa: PLC0415 - only for servers with such a list

    reached = _past_any({0}, pattern)
    for name in parts:
        kept = {index for index in reached if pattern[index] == _ANY}
        passed = {index + 1 for index in reached - kept if fnmatchcase(name, pattern[index])}
        reached = _past_any(kept | passed, pattern)
        if len(pattern) in reached:
            return True
    return False


def _past_any(reached: set[int], pattern: Parts) -> set[int]:
    """Add the places behind each ``**``, which may also stand for nothing."""
    found = set(reached)
    for index, part in enumerate(pattern):
        if part == _ANY and index in found:
            found.add(index + 1)
    return found


def _is_alias(name: str, listed: frozenset[str]) -> bool:
    """Say whether a folding volume may take a name for a listed one."""
    folded = {_fold(one) for one in listed}
    plain = _plain(name)
    if plain in folded:
        return True
    if os.name != "nt":
        return False
    # NTFS also makes short names by itself.
    stem, tilde, number = plain.partition("~")
    return bool(tilde and number.isdigit() and stem and any(_short(one) == stem for one in folded))


def _plain(name: str) -> str:
    """Give a name as a folding volume compares it."""
    folded = _fold(name)
    # NTFS passes over trailing dots and blanks, and over the name of a stream.
    return folded.split(":")[0].rstrip(". ") if os.name == "nt" else folded


def _fold(name: str) -> str:
    from unicodedata import normalize  # noqa: PLC0415 - only for volumes that fold

    return normalize("NFKC", normalize("NFKC", name.translate(_IGNORED)).casefold())


def _short(name: str) -> str:
    return "".join(letter for letter in name if letter not in ". ")[:_SHORT]
