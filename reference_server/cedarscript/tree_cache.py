"""The syntax trees of the sources that were parsed last, kept within a bound. Pure.

A preview and the write after it parse the same source, and so does each command on a file that
the one before has not changed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LARGEST = 2 * 1024 * 1024
"""Bytes of all sources whose trees are kept; a tree takes some thirty times as much."""


class TreeCache:
    """A parser that remembers; what was used longest ago is dropped first.

    Args:
        parse: Gives the tree of a source.
        largest: Bytes of all sources whose trees are kept.

    Attributes:
        hits: How many trees were not made again.
        size: Bytes of the sources whose trees are kept.
    """

    def __init__(self, parse: Callable[[bytes], Any], largest: int = LARGEST) -> None:
        self._parse = parse
        self._largest = largest
        self._trees: dict[bytes, Any] = {}  # in the order of their last use
        self.hits = 0
        self.size = 0

    def parse(self, source: bytes) -> Any:
        """Give the tree of a source. The caller must not change it."""
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
