"""Calls in flight at the same time: whose answer, whose memory, and no verdict by the clock."""

import re
import sys

import pytest

from mcp_touchstone.cli import main
from mcp_touchstone.connection.server_profile import ServerProfile
from mcp_touchstone.engine.load import Lane, Load, _check, _Kind, _text, lines
from mcp_touchstone.runtime.timeouts import Pace
from tests.cases import cases
from tests.conftest import HERE

pytestmark = pytest.mark.slow


@cases(
    ("right", 0, ""),
    ("locks", 0, ""),
    ("mixes", 1, "WRONG: "),
    ("leaks", 1, "LEAK: "),
    ("loses", 1, "LOST: "),
)
def test_load_judges_answers_and_memory_and_not_time(
    capsys: pytest.CaptureFixture[str], mode: str, status: int, words: str
) -> None:
    server = (sys.executable, str(HERE / "load_server.py"), mode)

    found = main(["load", "--timeout", "3", "--", *server])

    out = capsys.readouterr().out
    assert found == status, out
    bad = [line for line in out.splitlines() if line.startswith(("WRONG", "LEAK", "LOST"))]
    assert bool(bad) == bool(words), out
    assert not words or all(line.startswith(words) for line in bad), out
    (memory,) = (line for line in out.splitlines() if line.startswith("memory: "))
    rest, first, _end = map(float, re.findall(r"([\d.]+) MiB", memory))
    assert 0 < rest < first + 1


def test_load_says_that_nothing_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["load", "--timeout", "3", "--", sys.executable, "-c", ""]) == 2
    assert "not measured" in capsys.readouterr().out


def test_load_knows_no_memory_of_a_server_that_it_did_not_start() -> None:
    found = Load(ServerProfile(Pace(1.0)), lanes=[Lane(1, 1, 0.1, (0.1,))])

    assert "memory: unknown, as we did not start it" in lines(found)


@pytest.mark.parametrize(("seen", "wrong"), [(["a"], 1), (["a", "c"], 0)])
def test_varying_answers_of_a_tool_are_not_those_of_another_tool(
    seen: list[str], wrong: int
) -> None:
    def text(word: str) -> str:
        return _text({"result": {"said": word}})

    own = _Kind("one", "tools/call", None, frozenset(map(text, seen)))
    other = _Kind("two", "tools/call", None, frozenset([text("b")]))
    found = Load(ServerProfile(Pace(1.0)))

    _check(found, own, [own, other], {"result": {"said": "b"}})
    assert len(found.wrong) == wrong
