"""What throw-away folders may take of a disk, and how it is counted."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mcp_touchstone.runtime import disk_limit
from mcp_touchstone.runtime.disk_limit import DiskLimit, Use
from mcp_touchstone.runtime.safe_path import Tree
from mcp_touchstone.runtime.scratch import World, held
from mcp_touchstone.transport.process import sacrifice

MIB = 2**20


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Count at each look: others may use the disk, so the free space proves nothing here."""
    monkeypatch.setattr(disk_limit, "COUNTED", 0.0)
    monkeypatch.setattr(disk_limit, "SHARE", 0)


def fill(path: Path, mib: int) -> None:
    path.write_bytes(b"\xa5" * mib * MIB)


def test_what_the_owner_made_is_not_counted(tmp_path: Path) -> None:
    seed = tmp_path / "seed"
    seed.mkdir()
    fill(seed / "large", 3)
    with World(tmp_path, seed=seed, limit=DiskLimit(2)) as world:
        assert not world.limit.check()
        fill(Path(str(world.home), "more"), 1)
        assert not world.limit.check()
        fill(Path(str(world.tmp), "much"), 2)
        assert "more than 2 MiB" in world.limit.check()


def test_worlds_of_a_run_share_a_limit_until_they_are_removed(tmp_path: Path) -> None:
    limit = DiskLimit(4)
    with World(tmp_path, limit=limit) as one:
        fill(Path(str(one.root), "file"), 3)
        assert not limit.check()
    with held(tmp_path, limit) as folder, World(**{**one.ground, "parent": tmp_path}) as other:
        fill(folder / "file", 3)
        assert not limit.check()
        fill(Path(str(other.root), "file"), 3)
        assert "more than 4 MiB" in limit.check()


def test_a_file_with_two_names_is_counted_once(tmp_path: Path) -> None:
    limit = DiskLimit(4)
    limit.watch(Tree(tmp_path))
    fill(tmp_path / "file", 3)
    os.link(tmp_path / "file", tmp_path / "again")

    assert not limit.check()


def test_a_deep_folder_does_not_keep_the_watcher_busy(tmp_path: Path) -> None:
    limit = DiskLimit(64)
    limit.watch(Tree(tmp_path))
    descriptor = os.open(tmp_path, os.O_RDONLY)
    for _ in range(2 * disk_limit.DEEPEST):
        os.mkdir("deep", dir_fd=descriptor)
        below = os.open("deep", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)

    assert not limit.check()


def test_what_cannot_be_counted_is_bounded_by_what_the_disk_loses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free = {1: Use(100 * MIB, 10**6)}
    monkeypatch.setattr(disk_limit, "_free", lambda _trees: dict(free))
    monkeypatch.setattr(disk_limit, "LOST", 50 * MIB)
    limit = DiskLimit(1)
    limit.watch(Tree(tmp_path))

    free[1] = Use(51 * MIB, 10**6)
    assert not limit.check()
    free[1] = Use(49 * MIB, 10**6)
    assert "lost 51 MiB" in limit.check()


def test_the_end_comes_once_and_for_a_limit_that_was_exceeded_before(tmp_path: Path) -> None:
    limit, ended = DiskLimit(1), threading.Event()
    calls: list[int] = []

    def end() -> None:
        calls.append(1)
        ended.set()

    limit.watch(Tree(tmp_path))
    with limit.ending(end):
        fill(tmp_path / "file", 2)
        assert ended.wait(300)
    with limit.ending(end):
        pass

    assert len(calls) == 2


def test_what_is_written_at_the_last_moment_is_counted(tmp_path: Path) -> None:
    limit = DiskLimit(1)
    limit.watch(Tree(tmp_path))
    with limit.ending(lambda: None):
        fill(tmp_path / "file", 2)

    assert limit.met


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which process ends first")
def test_linux_ends_a_server_first_if_memory_runs_out() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        sacrifice(process.pid)
        score = Path(f"/proc/{process.pid}/oom_score_adj").read_text("ascii")
        process.send_signal(signal.SIGKILL)

    assert score.strip() == "1000"
