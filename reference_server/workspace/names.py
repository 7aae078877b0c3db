"""Which names may be read and written: the deny lists and the allow list. Pure.

A denied name is denied as a component, at every depth: ``.git`` stops ``a/.git/config`` and
leaves ``.gitignore`` alone. Where the volume folds names, whatever it would take for the denied
name is denied as well.
"""

from __future__ import annotations

import os

from .refusals import Denied, NotAllowed, WriteDenied

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
_SHORT = 6
"""Letters of a long name that its NTFS short form keeps: ``GIT~1``, ``NODE_M~1``."""


class Names:
    """The lists of one server.

    Args:
        deny: Names no path may hold.
        deny_writes: More names, for paths written to.
        allow: Patterns (``*.py``, ``docs/*``); a file's path or name must match one, if any.
    """

    def __init__(
        self, deny: Iterable[str], deny_writes: Iterable[str], allow: Iterable[str]
    ) -> None:
        self._deny = frozenset(deny)
        self._deny_writes = frozenset(deny_writes)
        self._allow = tuple(allow)

    def denies(self, name: str, *, folds: bool) -> bool:
        """Tell whether a component may not even be read."""
        return name.startswith(OURS) or _is_one_of(name, self._deny, folds)

    def check(self, parts: Parts, *, folds: bool, writing: bool = False) -> None:
        """See that no component is denied.

        Raises:
            Denied: One is.
            WriteDenied: One is, for writing.
        """
        for name in parts:
            if self.denies(name, folds=folds):
                raise Denied("/".join(parts))
            if writing and _is_one_of(name, self._deny_writes, folds):
                raise WriteDenied("/".join(parts))

    def allows(self, parts: Parts) -> bool:
        """Tell whether the allow list has a place for this file."""
        if not self._allow:
            return True
        from fnmatch import fnmatchcase  # noqa: PLC0415 - only for servers with such a list

        path = "/".join(parts)
        return any(fnmatchcase(path, one) or fnmatchcase(parts[-1], one) for one in self._allow)

    def check_allowed(self, parts: Parts) -> None:
        """See that a file is on the allow list.

        Raises:
            NotAllowed: It is not.
        """
        if not self.allows(parts):
            raise NotAllowed("/".join(parts))


def _is_one_of(name: str, listed: frozenset[str], folds: bool) -> bool:
    if name in listed:
        return True
    return folds and _is_alias(name, listed)


def _is_alias(name: str, listed: frozenset[str]) -> bool:
    """Tell whether a folding volume may take a name for a listed one."""
    folded = {_fold(one) for one in listed}
    plain = _fold(name)
    if plain in folded:
        return True
    if os.name != "nt":
        return False
    # NTFS: trailing dots and blanks, streams, and the short names it makes by itself.
    plain = plain.split(":")[0].rstrip(". ")
    stem, tilde, number = plain.partition("~")
    return plain in folded or bool(
        tilde and number.isdigit() and stem and any(_short(one) == stem for one in folded)
    )


def _fold(name: str) -> str:
    from unicodedata import normalize  # noqa: PLC0415 - only for volumes that fold

    return normalize("NFKC", normalize("NFKC", name.translate(_IGNORED)).casefold())


def _short(name: str) -> str:
    return "".join(letter for letter in name if letter not in ". ")[:_SHORT]
