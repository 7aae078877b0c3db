"""What the processes of a server have open."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from mcp_touchstone.transport import family
from mcp_touchstone.transport.family import alive, children, everybody, listening
from tests.conftest import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_a_file_that_is_closed_meanwhile_hides_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: [*listed(path), "999999"])

    with socket.create_server(("127.0.0.1", 0)) as server:
        assert server.getsockname() in listening(os.getpid())


TREE = """
import subprocess, threading
def start():
    subprocess.Popen(["sh", "-c", "sleep 60 & wait"])
    threading.Event().wait()
threading.Thread(target=start, daemon=True).start()
subprocess.Popen(["sleep", "60"]).wait()
"""
"""A program with a child of its main thread, and one of another thread that has a child."""


@pytest.fixture
def tree() -> Iterator[int]:
    """A running process with two children, one of which has a child."""
    with ExitStack() as stack:
        command = [sys.executable, "-c", TREE]
        process = stack.enter_context(subprocess.Popen(command, start_new_session=True))
        stack.callback(os.killpg, process.pid, 9)
        eventually(lambda: len(psutil.Process(process.pid).children(recursive=True)) == 3)
        yield process.pid


@pytest.mark.parametrize("recursive", [False, True])
@pytest.mark.parametrize("listed", ["/proc/thread-self/children", "/proc/nothing"])
def test_children_of_all_threads_are_found(
    tree: int, recursive: bool, listed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(family, "_LISTED", Path(listed))

    found = children(tree, recursive=recursive)

    assert {*found} == {*psutil.Process(tree).children(recursive=recursive)}
    assert len(found) == (3 if recursive else 2)


def test_children_of_a_thread_that_ends_meanwhile_are_found(
    tree: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, listed, calls = {*children(tree)}, os.listdir, iter(range(99))
    monkeypatch.setattr(os, "listdir", lambda path: listed(path)[next(calls) == 0 :])

    assert {*children(tree)} == expected


def test_children_are_listed_up_to_a_bound(tree: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family, "_MOST", 2)

    assert len(children(tree, recursive=True)) == 2


def test_a_process_that_has_ended_has_no_children() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()

    assert children(ended.pid, recursive=True) == []


LAST_ID = Path("/proc/sys/kernel/ns_last_pid")
"""The id after which Linux looks for the next free one; only root may write it."""


@pytest.mark.skipif(not os.access(LAST_ID, os.W_OK), reason="only root chooses the id of a process")
def test_a_process_with_the_id_of_one_that_has_ended_is_alive() -> None:
    for _ in range(100):  # another process may take the id first
        with subprocess.Popen(["sleep", "0"]) as first:
            everybody()
        LAST_ID.write_text(str(first.pid - 1))
        with subprocess.Popen(["sleep", "60"]) as second:
            found = [process for process in everybody() if process.pid == second.pid]
            states = [alive(process) for process in found]
            second.kill()
        if second.pid == first.pid:
            break
    else:
        pytest.skip("other processes took each id")

    assert states == [True]
