"""Signals end a run in one line and at once, whatever it does, and nothing is left."""

import os
import re
import secrets
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from types import ModuleType

import pytest

from mcp_touchstone.discovery import recon
from tests.conftest import PROGRESS, eventually
from tests.forked_runs import TOKEN, processes_left
from tests.hostile_cases import hostile

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pthread_kill is of POSIX")

SECONDS = 300
BOTH = (signal.SIGINT, signal.SIGTERM)


class SignalError(Exception):
    """Raised by the handler of a signal."""


def test_signal_to_another_thread_ends_the_wait_for_an_answer() -> None:
    def raises(_number: int, _frame: object) -> None:
        raise SignalError

    started = threading.Event()

    def receive() -> None:
        assert started.wait(60)
        main = threading.main_thread().ident or 0
        eventually(lambda: sys._current_frames()[main].f_code.co_name == "_result")
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, raises)
    other = threading.Thread(target=receive)
    other.start()
    started.set()
    try:
        with pytest.raises(SignalError):
            recon._result(Future())
    finally:
        other.join()
        signal.signal(signal.SIGUSR1, before)


@pytest.fixture
def interrupts(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    from mcp_touchstone.runtime import interrupts  # noqa: PLC0415  (its state is of a process)

    for name, value in {"_depth": 0, "_came": False, "_due": False}.items():
        monkeypatch.setattr(interrupts, name, value)
    before = [signal.getsignal(number) for number in BOTH]
    interrupts.take()
    yield interrupts
    for number, handler in zip(BOTH, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.parametrize("number", BOTH)
def test_only_the_first_signal_interrupts(interrupts: ModuleType, number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(number)

    for later in BOTH:
        signal.raise_signal(later)


def test_signal_is_delayed_to_the_end_of_a_block(interrupts: ModuleType) -> None:
    done = []

    def work() -> None:
        with interrupts.held():
            with interrupts.held():
                signal.raise_signal(signal.SIGINT)
                done.append("inner")
            done.append("outer")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["inner", "outer"]


def test_delayed_signal_is_delivered_where_it_is_allowed(interrupts: ModuleType) -> None:
    with interrupts.held():
        signal.raise_signal(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt), interrupts.allowed():
            pytest.fail("the block was entered")
        signal.raise_signal(signal.SIGTERM)


def test_signal_in_an_allowed_block_is_delivered_at_once(interrupts: ModuleType) -> None:
    with interrupts.held(), interrupts.allowed(), pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_other_threads_delay_nothing(interrupts: ModuleType) -> None:
    with interrupts.held():
        other = threading.Thread(target=interrupts.held().__enter__)
        other.start()
        other.join()
        assert interrupts._depth == 1


DRIVER = """
import signal, sys
from importlib import import_module
from mcp_touchstone.__main__ import program

when, place, number, worlds = sys.argv[1:5]
del sys.argv[1:5]

def send():
    signal.raise_signal(int(number))

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == place:
            send()

if when == "import":
    sys.meta_path.insert(0, Finder())
else:
    from mcp_touchstone.runtime import scratch
    scratch.PLACES = (worlds,)
    module, _, names = place.partition(":")
    owner = import_module(module)
    *owners, name = names.split(".")
    for one in owners:
        owner = getattr(owner, one)
    plain = getattr(owner, name)
    def wrapped(*words, **named):
        if when == "before":
            send()
        try:
            return plain(*words, **named)
        finally:
            if when == "after":
                send()
                send()
    setattr(owner, name, wrapped)
program()
"""
"""A program that runs the command line and gets a signal at a moment."""

MOMENTS = [
    "import mcp_touchstone.cli",
    "import mcp_touchstone.commands.output",
    "import mcp_touchstone.runtime.interrupts",
    "import mcp_touchstone.config.parser",
    "import mcp_touchstone.config.resolve",
    "import mcp_touchstone.engine.runner",
    "import mcp_touchstone.engine.stages",
    "before mcp_touchstone.runtime.scratch:World.__init__",
    "after mcp_touchstone.runtime.scratch:World.__init__",
    "before mcp_touchstone.engine.runner:explore",
    "after mcp_touchstone.engine.runner:explore",
    "before mcp_touchstone.engine.stages:Repetitions.finish",
    "before mcp_touchstone.engine.process_pool:ProcessPool.close",
    "after mcp_touchstone.engine.process_pool:ProcessPool.close",
    "before mcp_touchstone.runtime.scratch:World.remove",
    "after mcp_touchstone.runtime.scratch:World.remove",
    "before mcp_touchstone.engine.stages:fold",
    "before mcp_touchstone.report.terminal:Terminal.finish",
    "before mcp_touchstone.report.kinds:write",
]


@pytest.mark.parametrize("moment", MOMENTS)
def test_signal_at_any_moment_ends_the_program_and_leaves_nothing(
    moment: str, tmp_path: Path
) -> None:
    (tmp_path / "worlds").mkdir()
    when, place = moment.split()
    number = BOTH[MOMENTS.index(moment) % 2]
    token = secrets.token_hex(8)
    server = hostile("leaves_children_behind", "{root}", str(tmp_path))
    words = [
        "check",
        "--select",
        "ping",
        "--revision",
        "2025-11-25",
        "--examples",
        "0",
        "--report",
        f"json:{tmp_path / 'report.json'}",
        "--",
        *server,
    ]

    done = subprocess.run(
        [
            sys.executable,
            "-c",
            DRIVER,
            when,
            place,
            str(int(number)),
            str(tmp_path / "worlds"),
            *words,
        ],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=SECONDS,
        check=False,
        env={**os.environ, TOKEN: token, "NO_COLOR": "1"},
    )

    said = done.stdout + done.stderr
    assert done.returncode == 130, said
    assert len(re.findall(r"interrupted", said)) == 1, said
    assert "Traceback" not in said
    assert PROGRESS.sub("", done.stderr) in {"", "mcp-touchstone: interrupted\n"}
    assert list((tmp_path / "worlds").iterdir()) == []
    assert processes_left(token, str(tmp_path)) == []
