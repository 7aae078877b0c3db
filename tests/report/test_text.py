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


READ_ONLY = "EROFS: Read-only file system"
NOT_CACHED = "npm error code ENOTCACHED"


@cases(
    ("", READ_ONLY, ""),
    ("unshare", READ_ONLY, "write below {root} only"),
    ("bwrap", READ_ONLY, "write below {root} only"),
    ("bwrap", f"{READ_ONLY}: /home/a/.cache", "caches are read-only"),
    ("unshare", f"{READ_ONLY}: /home/a/.cache", "write below {root} only"),
    ("", NOT_CACHED, ""),
    ("unshare", NOT_CACHED, "there is no network"),
    ("unshare", "out of memory", ""),
)
def test_advice_about_a_sandbox_is_given_only_in_a_sandbox(
    sandbox: str, words: str, said: str
) -> None:
    found = hint(Run(replace(SERVER, sandbox=sandbox, stderr=words)))

    assert len(found) == bool(said)
    assert said in "".join(found)
