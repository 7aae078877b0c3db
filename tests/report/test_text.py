"""Words of others, shortened for a report, and what it advises because of them."""

from dataclasses import replace

from mcp_touchstone.report.digest import hint
from mcp_touchstone.report.text import last_lines
from mcp_touchstone.results.run import Run
from tests.cases import cases
from tests.runs import SERVER


def test_reason_is_shown_before_a_long_stack() -> None:
    frames = [f"main.init.func{n}()\n\t/src/main.go:{n} +0x1" for n in range(8)]
    words = "\n".join(["panic: no engine was found", "", "goroutine 1 [running]:", *frames])

    assert last_lines(words)[:2] == ["panic: no engine was found", "goroutine 1 [running]:"]


def test_indented_lines_are_shown_if_there_is_room_or_nothing_else() -> None:
    assert last_lines("  a\n\n b\n") == ["  a", " b"]
    assert last_lines("\n".join(f" {n}" for n in range(20)))[-1] == " 19"


@cases(("python3", True), ("/venv/bin/python3", False))
def test_only_an_interpreter_without_a_path_may_be_another_one(program: str, hinted: bool) -> None:
    words = "ModuleNotFoundError: No module named 'notes'"

    assert bool(hint(Run(replace(SERVER, command=(program, "a.py"), stderr=words)))) is hinted
