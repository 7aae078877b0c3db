"""Faults of the environment give one error line, an exit status, and no leftovers."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.commands import ran
from tests.forked_runs import Nursery, Ran, processes_left
from tests.hostile_cases import hostile

pytestmark = [
    pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full"),
    pytest.mark.slow,
]

PINGS = ["--select", "ping-empty-response", "--select", "ping-before-initialized"]
CHECK = ["check", *PINGS, "--revision", "2025-11-25", "--examples", "0"]
SOUND = ["--", *hostile("renames_itself")]
ODD = ["--", *hostile("writes_escape_sequences")]


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def clean(ran: Ran) -> bool:
    return not (ran.threads or ran.files or ran.processes or "Traceback" in ran.out + ran.err)


def test_unwritable_reports_print_one_line_each(nursery: Nursery, folder: Path) -> None:
    kinds = ("html", "markdown", "junit", "sarif", "badge", "json")
    reports = [f"--report={kind}:{folder / kind}" for kind in kinds]
    for kind in kinds:
        (folder / kind).symlink_to("/dev/full")

    ran = nursery.run([*CHECK, "-q", *reports, *SOUND], folder)

    assert ran.status == 2
    assert ran.err.splitlines() == [
        f"mcp-touchstone: {folder / kind}: {kind} could not be written: No space left on device"
        for kind in kinds
    ]
    assert "2 pass" in ran.out
    assert clean(ran)


def test_unwritable_output_prints_one_line(nursery: Nursery, folder: Path) -> None:
    ran = nursery.run([*CHECK, *SOUND], folder, out="/dev/full")

    assert ran.status == 2
    assert ran.err == "mcp-touchstone: the output: No space left on device\n"
    assert clean(ran)


@pytest.mark.parametrize("nofile", [12, 20])
def test_too_few_file_descriptors_are_reported(nofile: int, nursery: Nursery, folder: Path) -> None:
    everywhere = ["check", *PINGS, "--examples", "0"]
    ran = nursery.run([*everywhere, *SOUND], folder, nofile=nofile)

    assert ran.status == 2
    assert "open files" in ran.out + ran.err
    assert clean(ran)


def test_clock_jump_does_not_change_the_result(nursery: Nursery, folder: Path) -> None:
    ran = nursery.run([*CHECK, *SOUND], folder, clock=True)

    assert ran.status == 0, ran.out + ran.err
    assert clean(ran)


def test_concurrent_runs_do_not_interfere(nursery: Nursery, folder: Path) -> None:
    def run(name: str) -> Ran:
        (folder / name).mkdir()
        (folder / name / "worlds").symlink_to(folder)
        return nursery.run([*CHECK, *SOUND], folder / name)

    with ThreadPoolExecutor(2) as threads:
        ran = list(threads.map(run, ("one", "other")))

    assert [one.status for one in ran] == [0, 0]
    assert sorted(path.name for path in folder.iterdir()) == ["one", "other"]


def test_next_run_removes_the_leftovers_of_a_killed_run(nursery: Nursery, folder: Path) -> None:
    deaf = ["--", *hostile("never_reads", "{root}")]

    def started() -> bool:
        return any("never_reads" in words for words in processes_left("", str(folder / "worlds")))

    killed = nursery.run([*CHECK, *deaf], folder, kill_when=started)
    ran = nursery.run([*CHECK, *SOUND], folder)

    assert killed.status == -9
    assert killed.files
    assert killed.processes
    assert ran.status == 0
    assert clean(ran)


def run_in_shell(
    *words: str, before: str = "", after: str = "", **env: str
) -> tuple[str, str, int]:
    """Run the command line in a new shell; return stdout, stderr and the status."""
    line = " ".join([sys.executable, "-m", "mcp_touchstone", *words])
    command = ["bash", "-o", "pipefail", "-c", f"{before} {line} {after}"]
    done = ran(command, encoding="latin-1", env={**os.environ, "COLUMNS": "100", **env})
    return done.stdout, done.stderr, done.returncode


def test_closed_output_pipe_prints_no_traceback() -> None:
    out, err, status = run_in_shell(*CHECK, *ODD, after="| (read line; echo $line)")

    assert out.startswith("mcp-touchstone")
    assert err == ""
    assert status == 141


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_characters_unknown_to_the_encoding_are_escaped(encoding: str) -> None:
    out, err, status = run_in_shell(*CHECK, "-v", *ODD, PYTHONIOENCODING=encoding)

    assert status == 0, err
    assert r"\u2190" in out
    assert err == ""


def test_run_succeeds_with_closed_output_streams() -> None:
    assert run_in_shell(*CHECK, *SOUND, after=">&- 2>&-") == ("", "", 0)


def test_run_succeeds_without_proc() -> None:
    before = "unshare -m sh -c 'mount -t tmpfs none /proc && exec \"$@\"' sh"
    if shutil.which("unshare") is None or subprocess.call(
        ["unshare", "-m", "mount", "-t", "tmpfs", "none", "/proc"], stderr=subprocess.DEVNULL
    ):
        pytest.skip("needs the right to mount")

    out, err, status = run_in_shell(*CHECK, *SOUND, before=before)

    assert status == 0, err
    assert "2 pass" in out
