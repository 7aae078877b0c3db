"""Calls in flight at the same time: whose answer, whose memory, and no verdict by the clock."""

import sys

import pytest

from mcp_touchstone.cli import main
from tests.conftest import HERE

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("mode", "status", "words"),
    [
        ("right", 0, ""),
        ("locks", 0, ""),
        ("mixes", 1, "WRONG: "),
        ("leaks", 1, "LEAK: "),
        ("loses", 1, "LOST: "),
    ],
)
def test_load_judges_answers_and_memory_and_not_time(
    mode: str, status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    server = (sys.executable, str(HERE / "load_server.py"), mode)

    found = main(["load", "--timeout", "3", "--", *server])

    out = capsys.readouterr().out
    assert found == status, out
    bad = [line for line in out.splitlines() if line.startswith(("WRONG", "LEAK", "LOST"))]
    assert bool(bad) == bool(words), out
    assert not words or all(line.startswith(words) for line in bad), out


def test_load_says_that_nothing_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", "--timeout", "3", "--", sys.executable, "-c", ""]) == 2
    assert "not measured" in capsys.readouterr().out
