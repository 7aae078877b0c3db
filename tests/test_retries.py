"""Sessions that judge too many servers a second time fail."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import RETRIED, Retries


def retries(tests: int, retried: int, others: int = 0) -> Retries:
    found = Retries()
    files = ["test_mutants.py"] * tests + ["test_pages.py"] * others
    for number, file in enumerate(files):
        properties = [(RETRIED, f"mutant {number}")] if number < retried else []
        report: Any = SimpleNamespace(
            when="call", nodeid=f"tests/{file}::test_{number}", user_properties=properties
        )
        found.pytest_runtest_logreport(report)
    return found


@pytest.mark.parametrize(
    ("tests", "retried", "exceeded"),
    [(1, 1, False), (10, 2, True), (100, 2, False), (100, 3, True), (926, 18, False)],
)
def test_retries_above_the_allowed_share_fail_the_session(
    tests: int, retried: int, exceeded: bool
) -> None:
    session: Any = SimpleNamespace(exitstatus=pytest.ExitCode.OK)

    retries(tests, retried).pytest_sessionfinish(session)

    assert (session.exitstatus == pytest.ExitCode.TESTS_FAILED) is exceeded


def test_fakes_count_as_mutants_do() -> None:
    report: Any = SimpleNamespace(
        when="call", nodeid="tests/test_fakes.py::test_fake[A]", user_properties=[(RETRIED, "A")]
    )
    found = Retries()
    found.pytest_runtest_logreport(report)

    assert (found.tests, found.names) == (1, {"A"})


def test_tests_that_judge_no_mutant_raise_no_limit() -> None:
    assert retries(100, 3, others=900).exceeded
