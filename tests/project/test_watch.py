"""`check --watch`: which changes start a check, what is checked first, and how it ends."""

import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.cli import main
from mcp_touchstone.commands.output import INTERRUPTED
from mcp_touchstone.commands.watch import Look, look, watch, watched, written
from mcp_touchstone.config.settings import Settings
from mcp_touchstone.runtime import scratch
from tests.cases import cases
from tests.fleets import SERVER
from tests.forked_runs import TOKEN, processes_left


def state(**files: int) -> Look:
    return {f"{name}.py": (time, 1) for name, time in files.items()}


def followed(looks: list[Look], codes: list[int]) -> tuple[int, int]:
    """Watch files that look so one after the other, until they end; return code and checks."""
    left, answers = iter(looks), iter(codes)
    checks = 0

    def check() -> int:
        nonlocal checks
        checks += 1
        return next(answers)

    def next_look() -> Look:
        found = next(left, None)
        if found is None:
            raise KeyboardInterrupt
        return found

    return watch(next_look, check, lambda _seconds: None), checks


OLD, NEW, NEWER = state(a=1), state(a=2), state(a=3)


@cases(
    ([OLD, OLD, OLD, OLD], 1),
    ([OLD, OLD, OLD, NEW, NEW, NEW], 2),
    ([OLD, OLD, state(a=1, b=1), state(a=1, b=1)], 2),
    ([OLD, OLD, {}, {}], 2),
    ([OLD, NEW, NEW], 2),
    ([OLD, state(a=1, b=1), state(a=1, b=1)], 1),
    ([OLD, {}, {}], 1),
    ([OLD, OLD, NEW, NEWER, NEWER, NEWER], 2),
    ids=[
        "nothing changes",
        "a change",
        "a new file",
        "a file is removed",
        "a change during a check",
        "a new file during a check",
        "a file is removed during a check",
        "a change in two steps",
    ],
)
def test_check_begins_after_a_change(looks: list[Look], checks: int) -> None:
    assert followed(looks, [0] * 9) == (0, checks)


def test_file_that_each_check_changes_starts_none(capsys: pytest.CaptureFixture[str]) -> None:
    looks = [state(a=time) for time in (1, 2, 2, 3, 3, 4, 4)]

    assert followed(looks, [0] * 9) == (0, 3)
    assert "a.py: each check changes it" in capsys.readouterr().out


def test_code_is_that_of_the_last_check_that_finished() -> None:
    changing = [OLD, OLD, NEW, NEW]

    assert followed(changing, [0, 1])[0] == 1
    assert followed(changing, [1, INTERRUPTED])[0] == 1
    assert followed(changing, [INTERRUPTED])[0] == INTERRUPTED
    with pytest.raises(KeyboardInterrupt):
        followed([], [0])


def test_files_below_folders_are_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        "a.py",
        "src/b.py",
        "report.json",
        "saved/x.log",
        ".git/index",
        "node_modules/c.js",
        "src/__pycache__/b.pyc",
        "env/pyvenv.cfg",
        "env/lib/d.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    (tmp_path / "link").symlink_to("/")
    monkeypatch.chdir(tmp_path)
    own = written([Settings(json=Path("report.json"), save=tmp_path / "saved")])

    assert look([Path()], own).keys() == {"a.py", "src/b.py", "env/pyvenv.cfg"}
    assert look([Path("src"), Path("a.py")]).keys() == {"src/b.py", "a.py"}
    monkeypatch.setattr(scratch, "LOOKED_AT", 3)
    with pytest.raises(UserError, match="name some"):
        look([Path()])


def test_files_of_the_command_are_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "server.py").write_text("")
    (tmp_path / "t.toml").write_text("")
    monkeypatch.chdir(tmp_path / "work")
    server = str(tmp_path / "server.py")
    settings = [Settings(command=("python", server, "--root", "{root}"))]

    assert watched(settings, (), tmp_path / "t.toml") == [
        Path(),
        Path(server),
        tmp_path / "t.toml",
    ]
    assert watched(settings, [tmp_path], None) == [tmp_path]
    with pytest.raises(UserError, match="--watch gone"):
        watched(settings, [Path("gone")], None)


def test_record_and_watch_exclude_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--from", "x.json", "--watch"]) == 2
    assert "--watch" in capsys.readouterr().err


@pytest.fixture
def watching(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[subprocess.Popen[str], Callable[[str], str]]]:
    """Watch a server with an error; return the process, and what reads on until a text."""
    (tmp_path / "server.py").write_text(SERVER.replace("result = {}", 'result = "wrong"'))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(TOKEN, secrets.token_hex(8))
    words = ["check", "--watch", "--select", "ping", "--", sys.executable, "server.py"]
    with subprocess.Popen(
        [sys.executable, "-m", "mcp_touchstone", *words],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        stdout = process.stdout
        assert stdout is not None

        def until(text: str) -> str:
            lines = []
            for line in stdout:
                lines.append(line)
                if text in line:
                    return "".join(lines)
            raise AssertionError("".join(lines))

        try:
            yield process, until
        finally:
            process.kill()


@pytest.mark.skipif(os.name == "nt", reason="signals are of POSIX")
def test_failed_clauses_are_checked_first_after_a_change(
    tmp_path: Path, watching: tuple[subprocess.Popen[str], Callable[[str], str]]
) -> None:
    process, until = watching
    assert "FAIL  ping-empty-response" in until("watching ")

    (tmp_path / "server.py").write_text(SERVER)
    first = until("all:")
    whole = until("watching ")
    process.send_signal(signal.SIGINT)

    assert "changed: server.py" in first
    counts = re.search(r"1 clause checked in 1 revision: 1 pass   \((\d) process", first)
    assert counts, first
    assert int(counts[1]) <= 3
    assert "FAIL" not in whole
    assert process.wait(60) == 0
    assert processes_left(os.environ[TOKEN], str(tmp_path)) == []
