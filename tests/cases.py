"""Tests that run once for each row of a table."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., None])


def cases(*rows: Any, **options: Any) -> Callable[[Test], Test]:
    """Run a test once for each row, whose values are the last parameters of the test.

    ``options`` are those of ``pytest.mark.parametrize``.
    """
    first = getattr(rows[0], "values", rows[0])  # those of a pytest.param
    width = len(first) if type(first) is tuple else 1

    def mark(test: Test) -> Test:
        names = ", ".join(list(inspect.signature(test).parameters)[-width:])
        marked: Test = pytest.mark.parametrize(names, rows, **options)(test)
        return marked

    return mark
