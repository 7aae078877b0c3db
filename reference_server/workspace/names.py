"""The deny lists and the allow list of names. Pure.

A deny list has the syntax of a ``.gitignore`` without exceptions. An entry without a slash matches
a component at every depth: ``.git`` denies ``a/.git/config`` and not ``.gitignore``. An entry with
a slash, as ``/build`` has, matches from the root. Everything below a match is denied too.

On a volume that ignores case, every name that such a volume equates with a denied name is denied as
well: which of their rules a volume has cannot be found out. ``.git`` is denied like this on every
volume, because a repository may be copied to another one, and git itself refuses these names.
"""

from __future__ import annotations

from .refusals import Denied, WriteDenied

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from .paths import Parts

OURS = ".mcp-edit-"
"""Prefix of the temporary files of a write, and of the folder of plans; clients never see them."""

# Characters that HFS+ ignores in a name (core.protectHFS of git lists the same).
_IGNORED = dict.fromkeys(
    [0xFEFF, *range(0x200C, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070)]
)
_GIT = ".git"
_ANY = "**"
_WILD = frozenset("*?[/")
_SHORT = 6
"""Letters of a long name in its NTFS short name: ``GIT~1``, ``NODE_M~1``."""


class Names:
    """The lists of one server.

    Args:
        deny: Names and patterns that no path may match.
        deny_writes: Additional ones that no written path may match.
        allow: Patterns (``*.py``, ``docs/*``). The path or the name of a file must match one, if
            there are any.
    """

    def __init__(
        self, deny: Iterable[str], deny_writes: Iterable[str], allow: Iterable[str]
    ) -> None:
        self._deny = _List(deny)
        self._deny_writes = _List(deny_writes)
        self._allow = tuple(allow)

    def denies(self, parts: Parts, *, folds: bool) -> bool:
        ours = any(_fold(name).startswith(OURS) for name in parts)
        return ours or self._deny.has(parts, folds=folds)

    def check(self, parts: Parts, *, folds: bool, writing: bool = False) -> None:
        """Check that no part of a path is denied."""
        if self.denies(parts, folds=folds):
            raise Denied("/".join(parts))
        if writing and self._deny_writes.has(parts, folds=folds):
            raise WriteDenied("/".join(parts))

    def allows(self, parts: Parts) -> bool:
        if not self._allow:
            return True
        from fnmatch import fnmatchcase  # noqa: PLC0415 - only for servers with such a list

        path = "/".join(parts)
        return any(fnmatchcase(path, one) or fnmatchcase(parts[-1], one) for one in self._allow)


class _List:
    def __init__(self, entries: Iterable[str]) -> None:
        stripped = [entry.removesuffix("/") for entry in entries]
        self._names = frozenset(entry for entry in stripped if not _WILD & set(entry))
        self._folded = frozenset(map(_fold, self._names))
        self._always = self._folded & {_GIT}
        self._patterns = [_cut(entry) for entry in stripped if entry not in self._names]

    def has(self, parts: Parts, *, folds: bool) -> bool:
        """Return whether an entry matches a path or a directory above it."""
        listed = self._folded if folds else self._always
        for name in parts:
            if name in self._names or (listed and _is_alias(name, listed)):
                return True
        if not folds:
            return any(_matches(pattern, parts) for pattern in self._patterns)
        spelled = tuple(map(_fold, parts))
        spellings = {spelled, tuple(map(_plain, spelled))}
        patterns = [tuple(map(_fold, pattern)) for pattern in self._patterns]
        return any(_matches(pattern, one) for pattern in patterns for one in spellings)


def _cut(entry: str) -> Parts:
    """Split a pattern into components; ``**`` matches any number of them."""
    parts = entry.split("/")
    if len(parts) == 1:
        return (_ANY, *parts)
    if not parts[0]:
        del parts[0]
    if parts[-1] == _ANY:
        parts[-1] = "*"  # matches the content of the directory and not the directory itself
    return tuple(parts)


def _matches(pattern: Parts, parts: Parts) -> bool:
    """Return whether a pattern matches a path or a directory above it.

    All partial matches are followed at once, so the time does not grow with their number.
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
    """Add the index after each reached ``**``, which may match no component."""
    found = set(reached)
    for index, part in enumerate(pattern):
        if part == _ANY and index in found:
            found.add(index + 1)
    return found


def _is_alias(name: str, folded: frozenset[str]) -> bool:
    """Return whether a volume that ignores case may equate a name with a listed one."""
    spelled = _fold(name)
    plain = _plain(spelled)
    if spelled in folded or plain in folded:
        return True
    # NTFS and FAT also create short names automatically.
    stem, _, number = plain.partition("~")
    return number.isdigit() and bool(stem) and any(_short(one) == stem for one in folded)


def _plain(folded: str) -> str:
    """Return a name as NTFS and FAT compare it: without a stream, trailing dots and blanks."""
    return folded.partition(":")[0].rstrip(". ")


def _fold(name: str) -> str:
    if name.isascii():
        return name.lower()
    from unicodedata import normalize  # noqa: PLC0415 - few names need it

    return normalize("NFKC", normalize("NFKC", name.translate(_IGNORED)).casefold())


def _short(name: str) -> str:
    return "".join(letter for letter in name if letter not in ". ")[:_SHORT]
