"""The limits that the client's roots set inside ours (client/roots). Immutable."""

from __future__ import annotations

import os

from .paths import is_below
from .place import system_parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Self

    from .paths import Location, Parts
    from .place import Root


class Boundary:
    """The directories inside our roots to which the client's roots limit access.

    Args:
        places: For each directory the index of its root and its parts below it; None for no limit.
    """

    def __init__(self, places: Sequence[tuple[int, Parts]] | None) -> None:
        self._places = places

    @classmethod
    def of(cls, uris: Iterable[str] | None, roots: Sequence[Root]) -> Self:
        """Build the boundary for the ``file:`` URIs of the client; other URIs are ignored."""
        if uris is None:
            return cls(None)
        from urllib.parse import unquote, urlsplit  # noqa: PLC0415 - few clients have roots

        places: list[tuple[int, Parts]] = []
        for uri in uris:
            try:
                split = urlsplit(uri)
                if split.scheme != "file" or split.netloc not in ("", "localhost"):
                    continue
                theirs = system_parts(os.path.realpath(unquote(split.path)))
            except ValueError:  # not a URI, or a NUL in its path
                continue
            for index, root in enumerate(roots):
                if is_below(root.real, theirs):
                    places.append((index, ()))
                elif is_below(theirs, root.real):
                    places.append((index, theirs[len(root.real) :]))
        return cls(places)

    def contains(self, at: Location) -> bool:
        return self._places is None or any(
            root == at.root and is_below(at.parts, inside) for root, inside in self._places
        )

    def shows(self, at: Location) -> bool:
        """Return whether a location is inside, or above a location that is."""
        return self._places is None or any(
            root == at.root and (is_below(at.parts, inside) or is_below(inside, at.parts))
            for root, inside in self._places
        )
