"""Fleets on a cluster of Dask."""

import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone import cli
from mcp_touchstone.fleet import drive
from mcp_touchstone.fleet.child import Running
from mcp_touchstone.fleet.drive import FleetError, Rows
from mcp_touchstone.fleet.judge import Plan, judge
from mcp_touchstone.fleet.servers import Entry, Registry
from tests.fleets import (
    PLAN,
    small,
    write_list,
)
from tests.reference_client import CHECKOUT


def test_engine_and_scheduler_belong_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_list(tmp_path, [small("a", tmp_path)])

    assert cli.main(["fleet", str(tmp_path / "list.jsonl"), "--engine", "dask"]) == 2
    assert "belong together" in capsys.readouterr().err


def test_worker_that_is_lost_for_ever_makes_a_row_of_ours(tmp_path: Path) -> None:
    lost: list[str] = []

    def submit(entry: Entry, _plan: Plan) -> "Future[dict[str, Any]]":
        lost.append(entry.name)
        future: Future[dict[str, Any]] = Future()
        future.set_exception(RuntimeError("the worker was killed"))
        return future

    with Rows(tmp_path / "rows.jsonl", PLAN, resume=False) as rows:
        drive.drive(
            [small("a", tmp_path)],
            PLAN,
            rows,
            pool=drive.Pool(submit, 1),
            running=Running(),
            on_row=lambda _row: None,
        )

    (row,) = drive.read(tmp_path / "rows.jsonl")
    line = "RuntimeError: the worker was killed"
    assert row["start"] == {"class": "harness", "line": line}
    assert lost == ["a", "a"]


def test_worker_of_another_version_is_refused(tmp_path: Path) -> None:
    def submit(entry: Entry, plan: Plan) -> "Future[dict[str, Any]]":
        future: Future[dict[str, Any]] = Future()
        future.set_result({**judge(entry, plan), "tool": {"version": "0.0.1", "catalogue": ""}})
        return future

    with (
        Rows(tmp_path / "rows.jsonl", PLAN, resume=False) as rows,
        pytest.raises(FleetError, match="a worker has another version"),
    ):
        drive.drive(
            [Entry(name="x", registry=Registry.OCI, package="x")],
            PLAN,
            rows,
            pool=drive.Pool(submit, 1),
            running=Running(),
            on_row=lambda _row: None,
        )


def test_cluster_judges_the_server_of_a_killed_worker_again(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    # In a process of its own: the cluster leaves a resource tracker until the end of the process.
    words = [sys.executable, "-m", "tests.fleet_cluster", str(tmp_path)]
    done = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    found = list(drive.read(tmp_path / "rows.jsonl"))
    assert sorted(row["name"] for row in found) == ["s0", "s1", "s2", "s3"]
    assert {row["start"]["class"] for row in found} == {"started"}
