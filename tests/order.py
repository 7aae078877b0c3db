"""The order in which the workers of pytest-xdist begin tests.

``--dist worksteal`` gives each worker an equal part of the tests, one part after the other. A
worker that has ended its own takes tests from the end of another part. So the long tests stand at
the start of each part, and what is left at the end is short.
"""

from collections.abc import Iterable, Sequence
from itertools import cycle, groupby, islice
from pathlib import Path
from typing import Final, TypeVar

import pytest

HERE: Final = Path(__file__).parent

LONGEST: Final = (
    "robustness/test_swapped_files.py",
    "project/test_wheel.py",
    "config/test_options.py",
    "golden/test_golden_scenarios.py",
    "pytest_plugin/test_plugin.py",
    "project/test_cli.py",
    "project/test_readme.py",
    "project/test_new_revision.py",
)
"""The files with the longest tests: those are begun first, in this order.

``pytest -n 2 -m slow --durations 40 tests/PACKAGE`` measures them.
"""

T = TypeVar("T")


def ordered(items: Sequence[pytest.Item], workers: int) -> list[pytest.Item]:
    """Return the tests in the order for some workers: slow ones at the start of each part.

    The slow tests of a file stay together, because they may share what they start. The cases of one
    function are divided among the workers.
    """
    rank = {HERE / name: number for number, name in enumerate(LONGEST)}
    slow = [item for item in items if item.get_closest_marker("slow")]
    slow.sort(key=lambda item: rank.get(item.path, len(rank)))
    groups: list[list[pytest.Item]] = []
    for (_, function), group in groupby(slow, key=_group):
        found = [*group]
        size = -(-len(found) // workers) if function else len(found)
        groups += [found[start : start + size] for start in range(0, len(found), size)]
    others = [item for item in items if not item.get_closest_marker("slow")]
    return dealt(groups, others, workers)


def _group(item: pytest.Item) -> tuple[Path, str]:
    return item.path, item.nodeid.partition("[")[0] if hasattr(item, "callspec") else ""


def dealt(first: Iterable[Sequence[T]], others: Sequence[T], workers: int) -> list[T]:
    """Return equal parts, one for each worker, that begin with groups dealt in turn."""
    parts: list[list[T]] = [[] for _ in range(workers)]
    for part, group in zip(cycle(parts), first, strict=False):
        part.extend(group)
    total, rest = len(others) + sum(map(len, parts)), iter(others)
    for number, part in enumerate(parts):
        before = sum(map(len, parts[:number]))
        size = (total - before) // (workers - number)
        part.extend(islice(rest, max(0, size - len(part))))
    return [one for part in parts for one in part] + list(rest)
