"""Each schema with a full message of its type, and functions that make messages invalid."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from mcp_touchstone.catalog import revision as rev
from tests import schema_samples as samples

Json = dict[str, Any]

LEGACY: Final = "2025-11-25"
MODERN: Final = "2026-07-28"


class Case(NamedTuple):
    """A full message and the schema it is of."""

    revision: str
    part: str
    method: str
    value: Json


def everything() -> Iterator[Case]:
    """Walk a full message for each schema there is."""
    for revision in rev.ALL:
        for method, result in samples.results(revision).items():
            yield Case(revision, "results", method, result)
        for method, params in samples.notifications(revision).items():
            yield Case(revision, "notifications", method, {"method": method, "params": params})
        for method, several in samples.requests(revision).items():
            for params in several:
                value = {"id": 1, "method": method, "params": params}
                yield Case(revision, "requests", method, value)
        for code, error in samples.errors(revision).items():
            yield Case(revision, "errors", code, error)
    for method in ("tools/call", "resources/read", "prompts/get"):
        yield Case(MODERN, "input_required", method, samples.interim())
    yield Case(LEGACY, "tasks", "tools/call", {"task": samples.TASK})


FULL: Final = [case._replace(value=json.loads(json.dumps(case.value))) for case in everything()]
"""Without a part that two places share: what is spoilt in one would be in the other."""

STRANGE: Final[list[Any]] = [
    None,
    5,
    1.5,
    -1,
    "x",
    "object",
    "text",
    "audio",
    "string",
    "array",
    "form",
    "url",
    True,
    [],
    {},
    [5],
    {"type": "text"},
    {"type": "string"},
]
"""What is put in the place of something else."""


SIMPLE: Final[tuple[Any, ...]] = (None, 5, 1.5, "x", True, [], {})


def spoilt(value: Json, count: int, seed: str) -> Iterator[Json]:
    """Return copies of a message, each with one to three invalid places."""
    dice = random.Random(seed)  # noqa: S311  (nothing secret: the same mutations each time)
    for _ in range(count):
        copied = copy.deepcopy(value)
        for _ in range(dice.choice([1, 1, 1, 2, 3])):
            holders = [p for p in containers(copied) if p]
            holder: Any = dice.choice(holders)
            key = dice.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            if dice.random() < 0.3:
                del holder[key]
            else:
                holder[key] = copy.deepcopy(dice.choice(STRANGE))
            if not copied:
                break
        yield copied


def spoilt_once(value: Json) -> Iterator[Json]:
    """Return every copy of a message with one place removed or replaced."""
    for place in places(value):
        known = at(value, place)
        for strange in SIMPLE:
            if known != strange or type(known) is not type(strange):
                yield put(value, place, strange)
        yield put(value, place)


REMOVED: Final = object()


def put(value: Any, place: tuple[Any, ...], new: Any = REMOVED) -> Any:
    """Return a copy with another value at a place, or without it. Other parts are shared."""
    copied = copy.copy(value)
    first, *rest = place
    if rest:
        copied[first] = put(value[first], tuple(rest), new)
    elif new is REMOVED:
        del copied[first]
    else:
        copied[first] = new
    return copied


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Walk the places of a value, the value itself left out."""
    if isinstance(value, dict | list):
        for key, one in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from places(one, (*path, key))


def at(value: Any, place: tuple[Any, ...]) -> Any:
    """Return the value at a place."""
    for key in place:
        value = value[key]
    return value


def containers(value: Any) -> Iterator[Any]:
    """Walk the objects and arrays of a value."""
    if isinstance(value, dict | list):
        yield value
        for one in value.values() if isinstance(value, dict) else value:
            yield from containers(one)
