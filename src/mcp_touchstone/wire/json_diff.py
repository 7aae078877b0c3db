"""Comparison of JSON values: differences, volatile places and permitted differences. Pure.

A list of named items is compared by name, any other list by position; what was added to or removed
from a list that is not too long is found. ``VOLATILE`` in a record
matches any value, or none; a list that begins with ``ANY_ORDER`` may come in any order.
"""

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

VOLATILE: Final = "<volatile>"
ANY_ORDER: Final = "<any order>"

NAMES: Final = ("name", "uri", "uriTemplate")
"""Members that identify the items of a list, if all items have it with different values."""

ALIGNED: Final = 1_000_000
"""Pairs of items of two lists, at most, to find what was added or removed: it takes quadratic time,
and another program wrote one of the lists."""

ORDER: Final = "(order)"
"""Placeholder for the order of a list in a path."""


class _Nothing:
    def __repr__(self) -> str:
        return "(nothing)"


NOTHING: Final = _Nothing()
"""The value of a missing place."""

Path = tuple[str, ...]
"""Members, names of items, and places such as ``[0]``, from the outside in."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A place at which two values differ.

    Attributes:
        old: the recorded value; NOTHING if the place is new.
        new: the present value; NOTHING if the place is gone.
    """

    path: Path
    old: Any
    new: Any


def where(path: Path) -> str:
    """Return a path as text: ``inputSchema.required[0]``."""
    text = ""
    for step in path:
        text += step if step.startswith("[") or not text else f".{step}"
    return text


# --- differences


def differences(old: Any, new: Any, path: Path = ()) -> Iterator[Difference]:
    """Yield the differences of a new value from a recorded one."""
    if old == VOLATILE:
        return
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            inside = old.get(name, NOTHING), new.get(name, NOTHING)
            yield from differences(*inside, (*path, name))
    elif isinstance(old, list) and isinstance(new, list):
        yield from _in_lists(old, new, path)
    elif _plain(old) != _plain(new):
        yield Difference(path, old, new)


def _in_lists(old: list[Any], new: list[Any], path: Path) -> Iterator[Difference]:
    loose = old[:1] == [ANY_ORDER]
    items = old[1:] if loose else old
    was, now = _by_name(items), _by_name(new)
    if was is not None and now is not None and (items or new):
        yield from differences(was, now, path)
        before, after = [n for n in was if n in now], [n for n in now if n in was]
        if not loose and before != after:
            yield Difference((*path, ORDER), before, after)
        return
    if loose:
        items, new = sorted(items, key=_plain), sorted(new, key=_plain)
    if len(items) == len(new) or len(items) * len(new) > ALIGNED:
        for place, pair in enumerate(zip_longest(items, new, fillvalue=NOTHING)):
            yield from differences(*pair, (*path, f"[{place}]"))
        return
    one, two = [_plain(item) for item in items], [_plain(item) for item in new]
    for kind, a, b, c, d in difflib.SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        for place in range(max(b - a, d - c)):
            gone = items[a + place] if a + place < b else NOTHING
            come = new[c + place] if c + place < d else NOTHING
            yield from differences(gone, come, (*path, f"[{min(a, c) + place}]"))


def _by_name(items: Sequence[Any]) -> dict[str, Any] | None:
    """Return the items of a list by their unique names; None if they have none."""
    if not all(isinstance(item, dict) for item in items):
        return None
    for member in NAMES:
        names = [item.get(member) for item in items]
        if VOLATILE in names:  # the names identify nothing: compare by position
            return None
        if all(isinstance(name, str) for name in names) and len(set(names)) == len(names):
            return dict(zip(names, items, strict=True))
    return None


def _plain(value: Any) -> str:
    """Return a text that is equal for values of equal meaning: 1 is 1.0, and not true."""
    if value is NOTHING:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True)


# --- volatile places


def steady(one: Any, two: Any) -> Any:
    """Return the common parts of two recordings, with VOLATILE where they differ."""
    if _plain(one) == _plain(two):
        return one
    if isinstance(one, dict) and isinstance(two, dict):
        return {
            name: steady(one[name], two[name]) if name in one and name in two else VOLATILE
            for name in dict.fromkeys([*one, *two])
        }
    if isinstance(one, list) and isinstance(two, list):
        return _steady_list(one, two)
    return VOLATILE


def _steady_list(one: list[Any], two: list[Any]) -> Any:
    if one[:1] == [ANY_ORDER]:
        if _by_name(one[1:]) is None and sorted(map(_plain, one[1:])) != sorted(map(_plain, two)):
            return VOLATILE
        inside = _steady_list(one[1:], two)
        return inside if inside == VOLATILE or inside[:1] == [ANY_ORDER] else [ANY_ORDER, *inside]
    by_name = _by_name(one), _by_name(two)
    if by_name[0] is not None and by_name[1] is not None and set(by_name[0]) == set(by_name[1]):
        same_order = list(by_name[0]) == list(by_name[1])
        names = list(by_name[0]) if same_order else sorted(by_name[0])
        items = [steady(by_name[0][name], by_name[1][name]) for name in names]
        return items if same_order else [ANY_ORDER, *items]
    if sorted(map(_plain, one)) == sorted(map(_plain, two)):
        return [ANY_ORDER, *sorted(one, key=_plain)]
    if len(one) == len(two):
        return [steady(*pair) for pair in zip(one, two, strict=True)]
    return VOLATILE


def still_volatile(old: Any, new: Any) -> Any:
    """Return a new record with the marks of the old one, which users may have set by hand."""
    if old == VOLATILE:
        return VOLATILE
    if isinstance(old, dict) and isinstance(new, dict):
        gone = {name: VOLATILE for name, value in old.items() if value == VOLATILE}
        kept = {name: still_volatile(old.get(name), value) for name, value in new.items()}
        return kept | {name: mark for name, mark in gone.items() if name not in new}
    if not isinstance(old, list) or not isinstance(new, list):
        return new
    loose = old[:1] == [ANY_ORDER]
    items = old[1:] if loose else old
    fresh = new[1:] if new[:1] == [ANY_ORDER] else new
    known = _by_name(items)
    named = _by_name(fresh)
    if known is not None and named is not None:
        kept_items = [still_volatile(known.get(name), item) for name, item in named.items()]
    elif len(items) == len(fresh) and not loose:
        kept_items = [still_volatile(*pair) for pair in zip(items, fresh, strict=True)]
    else:
        kept_items = list(fresh)
    return [ANY_ORDER, *kept_items] if loose or fresh is not new else kept_items
