"""A cache of limited size for the syntax trees of recently parsed sources. No input or output.

A dry run and the following write parse the same source. So do successive commands on a file that
is not changed between them.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LARGEST = 2 * 1024 * 1024
"""Limit for the size of all cached sources, in bytes. A tree takes about thirty times as much."""


class TreeCache:
    """A parser with a cache. The least recently used trees are dropped first."""

    def __init__(self, parse: Callable[[bytes], Any], largest: int = LARGEST) -> None:
        self._parse = parse
        self._largest = largest
        self._trees: dict[bytes, Any] = {}  # in the order of their last use
        self.hits = 0
        self.size = 0

    def parse(self, source: bytes) -> Any:
        """Return the tree of a source. The caller must not change it."""
        if source in self._trees:
            self.hits += 1
            tree = self._trees[source] = self._trees.pop(source)
            return tree
        tree = self._parse(source)
        if len(source) <= self._largest:
            self._trees[source] = tree
            self.size += len(source)
            while self.size > self._largest:
                oldest = next(iter(self._trees))
                self.size -= len(oldest)
                del self._trees[oldest]
        return tree
