"""Values of a wrong type or size in the place of each member of a JSON value."""

import copy
from collections.abc import Iterator
from typing import Any, Final

ODD: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    -1,
    5,
    1.5,
    10**299,
    10**14,
    "",
    "abc",
    "\udc80",
    "\ud800",
    "http://[",
    "1" * 5000,
    [],
    [[]],
    [5],
    [["a"]],
    [["a", "b"]],
    ["a", 5],
    [None, None],
    {},
    {"a": [1]},
)

Path = tuple[str | int, ...]


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    """Yield the path of each member and item of a value."""
    if not isinstance(value, dict | list):
        return
    for key, child in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*at, key)
        yield from paths(child, (*at, key))


def changed(value: Any, path: Path, new: Any) -> Any:
    """Return a copy of a value with another value at a path."""
    made = inner = copy.deepcopy(value)
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = new
    return made


def without(value: Any, path: Path) -> Any:
    """Return a copy of a value without what is at a path."""
    made = inner = copy.deepcopy(value)
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return made


def mutants(value: Any) -> Iterator[Any]:
    """Yield copies of a value, each with one odd or missing member."""
    for path in paths(value):
        yield without(value, path)
        for new in ODD:
            yield changed(value, path, new)
