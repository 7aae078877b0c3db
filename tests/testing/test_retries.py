"""Sessions that judge too many servers a second time fail."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.cases import cases
from tests.conftest import RETRIED, Retries


def retries(tests: int, retried: int, others: int = 0, module: str = "test_pages.py") -> Retries:
    found = Retries()
    files = ["test_mutants.py"] * tests + [module] * others
    for number, file in enumerate(files):
        properties = [(RETRIED, f"mutant {number}")] if number < retried else []
        report: Any = SimpleNamespace(
            when="call", nodeid=f"tests/{file}::test_{number}", user_properties=properties
        )
        found.pytest_runtest_logreport(report)
    return found


@cases((1, 1, False), (10, 2, True), (100, 2, False), (100, 3, True), (926, 18, False))
def test_retries_above_the_allowed_share_fail_the_session(
    tests: int, retried: int, exceeded: bool
) -> None:
    session: Any = SimpleNamespace(exitstatus=pytest.ExitCode.OK)

    retries(tests, retried).pytest_sessionfinish(session)

    assert (session.exitstatus == pytest.ExitCode.TESTS_FAILED) is exceeded


@pytest.mark.parametrize("module", ["test_pages.py", "test_fakes.py"])
def test_other_tests_allow_no_more_mutants_to_be_retried(module: str) -> None:
    assert retries(100, 3, others=900, module=module).exceeded("mutants")


@pytest.mark.parametrize(("retried", "exceeded"), [(6, False), (7, True)])
def test_fakes_have_their_own_share(retried: int, exceeded: bool) -> None:
    found = retries(0, retried, others=313, module="test_fakes.py")

    assert found.exceeded("fakes") is exceeded
    assert not found.exceeded("mutants")
