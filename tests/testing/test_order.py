"""Workers of xdist begin with slow tests."""

from pathlib import Path
from typing import Any

from tests.order import HERE, LONGEST, dealt, ordered


class Item:
    """What the order looks at in a test."""

    def __init__(self, file: str, name: str, *, slow: bool, case: bool = False) -> None:
        self.path = HERE / file
        self.nodeid = f"{file}::{name}"
        self._slow = slow
        if case:
            self.callspec = name

    def get_closest_marker(self, _name: str) -> bool:
        return self._slow


def test_each_part_begins_with_long_ones_and_none_is_lost() -> None:
    found = dealt([["A", "B"], ["C"], ["D"], ["E"]], list("abcdefg"), 3)

    assert found == [*"ABEa", *"Cbcd", *"Defg"]


def test_more_long_ones_than_a_part_holds_are_kept() -> None:
    assert dealt([list("ABCDEFG"), ["H"]], list("ab"), 3) == [*"ABCDEFG", *"Ha", "b"]


def test_slow_tests_of_a_file_stay_together_and_cases_are_divided() -> None:
    slow = [Item("bridge/a.py", name, slow=True) for name in "xy"]
    cases = [Item("bridge/b.py", f"t[{n}]", slow=True, case=True) for n in range(4)]
    fast = [Item("wire/c.py", name, slow=False) for name in "pqrst"]
    longest = Item(LONGEST[0], "z", slow=True)
    items: Any = [*slow, *cases, *fast, longest]

    found: Any = ordered(items, 2)

    assert found == [longest, *cases[:2], *fast[:3], *slow, *cases[2:], *fast[3:]]


def test_files_with_the_longest_tests_exist() -> None:
    assert [name for name in LONGEST if not Path(HERE / name).is_file()] == []
