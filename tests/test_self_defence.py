"""Servers that misbehave: a right verdict, one clear message, in time, and nothing left behind."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from mcp_touchstone.world import PREFIX
from tests.conftest import HERE

ROOT = str(HERE.parent)
MEMORY = 700 * 2**20
"""Bound on the harness's own memory, whatever a server writes: see docs/robustness.md."""


@dataclass(frozen=True)
class Case:
    """A hostile server and what a user has to be told.

    Attributes:
        status: exit status.
        said: words that must stand in the report.
        seconds: deadline for the whole run, generous for a loaded machine.
        select: what is judged.
        patience: limit for the first answer, in seconds.
    """

    status: int
    said: tuple[str, ...]
    seconds: float = 30.0
    select: str = "stdio"
    patience: int = 3


CASES = {
    "exits_at_once": Case(
        2, ("the server left (status 3)", "DATABASE_URL is not set", "see what it says")
    ),
    "prints_a_banner": Case(1, ("stdio-stdout-only-messages", "▸", "Welcome to the demo server")),
    "never_answers": Case(2, ("no answer within 3.0 s", "--timeout gives it longer")),
    "never_reads": Case(2, ("no answer within 3.0 s",)),
    "floods_stdout": Case(2, ("we stopped listening", "20,000 lines"), 90.0, patience=60),
    "floods_stderr": Case(0, ("conforming",)),
    "ignores_end_of_input_and_sigterm": Case(0, ("SIGKILL", "warn"), 60.0, "lifecycle"),
    "leaves_children_behind": Case(0, ("conforming",)),
    "writes_invalid_utf8": Case(1, ("stdio-utf8-output", "not UTF-8")),
    "writes_a_hundred_megabyte_line": Case(2, ("a line of 104,857,",), 90.0, patience=60),
    "crashes_on_the_third_request": Case(1, ("SIGSEGV",), 60.0, "ping"),
    "writes_escape_sequences": Case(0, (r"\x1b[2J", r"\u202e"), 60.0, "ping"),
    "refuses_every_initialize": Case(
        1, ("lifecycle-initialize-response", "license expired"), select="lifecycle"
    ),
    "closes_stdout_and_lives": Case(1, ("closed its output",), 60.0, "ping"),
    "stops_itself": Case(1, ("no answer within",), 90.0, "jsonrpc"),
}


def check(name: str, *options: str, timeout: float = 120.0) -> "subprocess.CompletedProcess[str]":
    """Judge a hostile server from the command line."""
    server = [sys.executable, str(HERE / "hostile" / f"{name}.py"), ROOT]
    return subprocess.run(
        [sys.executable, "-m", "mcp_touchstone.cli", "check", *options, "--", *server],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=timeout,
        check=False,
        env={**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"},
        cwd=ROOT,
    )


def leftovers(name: str) -> list[str]:
    """Processes that carry the hostile server's name, or the child it left behind."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = " ".join(process.info["cmdline"] or [])
        if f"hostile/{name}.py" in words or (
            name == "leaves_children_behind" and "time.sleep(600)" in words
        ):
            found.append(words)
    return found


@pytest.mark.parametrize("name", CASES)
def test_gets_a_right_verdict_in_time_and_leaves_nothing(name: str) -> None:
    case = CASES[name]
    begun = time.monotonic()

    options = ["--timeout", str(case.patience), "--revision", "2025-11-25"]
    done = check(name, *options, "--select", case.select)

    assert done.returncode == case.status, done.stdout + done.stderr
    for words in case.said:
        assert words in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert "\x1b" not in done.stdout
    assert time.monotonic() - begun < case.seconds
    assert leftovers(name) == []


def test_every_hostile_server_is_tried() -> None:
    files = {path.stem for path in (HERE / "hostile").glob("*.py")} - {"__init__"}

    assert files == set(CASES)


@pytest.mark.parametrize("name", ["floods_stdout", "writes_a_hundred_megabyte_line"])
def test_memory_stays_bounded(name: str) -> None:
    program = (
        "import resource, sys; from mcp_touchstone.cli import main; status = main(sys.argv[1:]);"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    server = [sys.executable, str(HERE / "hostile" / f"{name}.py"), ROOT]
    done = subprocess.run(
        [sys.executable, "-c", program, "check", "--timeout", "60", "--", *server],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd=ROOT,
    )

    assert int(done.stdout.split()[-1]) < MEMORY


def test_removes_its_folders(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    script = tmp_path / "server.py"
    script.write_text(
        "import pathlib, sys\n"
        "root = pathlib.Path(sys.argv[1])\n"
        "(root / 'locked').mkdir(exist_ok=True)\n"
        "(root / 'locked' / 'file').write_text('x')\n"
        "(root / 'locked').chmod(0)\n"
        f"pathlib.Path({str(seen)!r}).write_text(str(root))\n"
    )
    server = [sys.executable, str(script), "{root}"]
    subprocess.run(
        [sys.executable, "-m", "mcp_touchstone.cli", "check", "--", *server],
        capture_output=True,
        timeout=60,
        check=False,
    )
    root = Path(seen.read_text())

    assert PREFIX in str(root)
    assert not root.parent.exists()


def test_a_lost_server_is_blamed_on_the_scenario_that_lost_it() -> None:
    done = check("crashes_on_the_third_request", "--select", "answers_a_ping")

    assert "lost  conformance/basic/ping.py::answers_a_ping" in done.stdout
    assert "after it   the server left (SIGSEGV)" in done.stdout
