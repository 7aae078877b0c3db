"""Fleets on a cluster of Dask."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest

from mcp_touchstone import cli
from mcp_touchstone.fleet import drive
from mcp_touchstone.fleet.drive import FleetError, LostError
from mcp_touchstone.fleet.entry import ListedServer
from mcp_touchstone.fleet.judge import FleetSettings, judge
from mcp_touchstone.transport.http_endpoint import free_port
from tests.conftest import eventually
from tests.fleets import (
    FutureRow,
    driven,
    failed,
    fleet,
    in_image,
    returned,
    small,
    write_list,
    write_waiting_list,
)
from tests.reference_client import CHECKOUT

pytestmark = pytest.mark.slow


def test_engine_and_scheduler_belong_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_list(tmp_path, [small("a", tmp_path)])

    assert cli.main(["fleet", str(tmp_path / "list.jsonl"), "--engine", "dask"]) == 2
    assert "belong together" in capsys.readouterr().err


def test_worker_that_is_lost_for_ever_makes_a_row_of_ours(tmp_path: Path) -> None:
    lost: list[str] = []

    def submit(entry: ListedServer, _plan: FleetSettings) -> FutureRow:
        lost.append(entry.name)
        return failed(RuntimeError("the worker was killed"))

    (row,) = driven(tmp_path, [small("a", tmp_path)], drive.WorkerPool(submit, 1))

    line = "RuntimeError: the worker was killed"
    assert row["start"] == {"class": "harness", "line": line}
    assert lost == ["a", "a"]


def test_worker_of_another_version_is_refused(tmp_path: Path) -> None:
    def submit(entry: ListedServer, plan: FleetSettings) -> FutureRow:
        return returned({**judge(entry, plan), "tool": {"version": "0.0.1", "catalogue": ""}})

    with pytest.raises(FleetError, match="a worker has another version"):
        driven(tmp_path, [in_image()], drive.WorkerPool(submit, 1))


def test_cluster_judges_the_server_of_a_killed_worker_again(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    # In a process of its own: the cluster leaves a resource tracker until the end of the process.
    words = [sys.executable, "-m", "tests.fleet_cluster", str(tmp_path)]
    done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    found = list(drive.read(tmp_path / "rows.jsonl"))
    assert sorted(row["name"] for row in found) == ["s0", "s1", "s2"]
    assert {row["start"]["class"] for row in found} == {"started"}


@contextmanager
def dask(part: str, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a scheduler or a worker; kill it at the end."""
    command = [sys.executable, "-m", f"distributed.cli.dask_{part}", *words, "--no-dashboard"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def scheduler(port: int) -> Iterator[str]:
    """Run a scheduler with a worker on loopback; yield its address."""
    address = f"tcp://127.0.0.1:{port}"
    with (
        dask("scheduler", "--host", "127.0.0.1", "--port", str(port)),
        dask("worker", address, "--nthreads", "1", "--no-nanny"),
    ):
        yield address


SHORT = """import sys
from mcp_touchstone import cli
from mcp_touchstone.fleet import drive
drive.CONNECT, drive.RENEW = 120, {seconds}
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("returns", [True, False])
def test_lost_scheduler_loses_and_repeats_no_server(returns: bool, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    mark, errors = write_waiting_list(tmp_path), tmp_path / "stderr"
    port = free_port()
    start = SHORT.format(seconds=120 if returns else 0)
    words = [sys.executable, "-c", start, *fleet(tmp_path)[3:]]
    with errors.open("wb") as stderr, ExitStack() as second:
        with scheduler(port) as address:
            more = ["--engine", "dask", "--scheduler", address]
            driver = subprocess.Popen([*words, *more], stdout=subprocess.DEVNULL, stderr=stderr)
            second.callback(driver.kill)
            eventually(lambda: mark.exists() or driver.poll() is not None, 240)
        eventually(lambda: b"it is lost; waiting" in errors.read_bytes())
        (tmp_path / "go").touch()
        if returns:
            second.enter_context(scheduler(port))
        assert driver.wait(240) == (0 if returns else 2), errors.read_text()

    found = [row["name"] for row in drive.read(tmp_path / "rows.jsonl")]
    if not returns:
        said = errors.read_text().splitlines()
        assert found == ["first"]
        assert said[-1].startswith(f"mcp-touchstone: --scheduler {address}: ")
        assert said[-1].endswith("; --resume continues")
        assert len(said) == 3  # with the lines on the sandbox and on the loss
        subprocess.run(fleet(tmp_path, "--resume"), check=True, capture_output=True, timeout=240)
        found = [row["name"] for row in drive.read(tmp_path / "rows.jsonl")]
    assert sorted(found) == ["first", "last", "waits"]
    rows = list(drive.read(tmp_path / "rows.jsonl"))
    assert [(row["start"]["class"], row["attempts"]) for row in rows] == [("started", 1)] * 3


@pytest.mark.parametrize(("losses", "ends"), [(3, True), (4, False)])
def test_cluster_that_is_lost_again_and_again_ends_the_fleet(
    losses: int, ends: bool, tmp_path: Path
) -> None:
    renewed: list[int] = []

    def submit(entry: ListedServer, plan: FleetSettings) -> FutureRow:
        if len(renewed) < losses:
            return failed(LostError())
        return returned({**judge(entry, plan), "attempts": 1})

    def renew() -> int:
        renewed.append(1)
        return 1

    why = "lost 4 times without a row"
    with nullcontext() if ends else pytest.raises(FleetError, match=why):
        driven(tmp_path, [*map(in_image, "abc")], drive.WorkerPool(submit, 2, renew))

    found = [row["name"] for row in drive.read(tmp_path / "rows.jsonl")]
    assert sorted(found) == (["a", "b", "c"] if ends else [])
