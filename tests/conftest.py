"""What several test files share."""

import contextlib
import ctypes
import gc
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from mcp_touchstone.catalog.sdk import SdkIdentity
from mcp_touchstone.discovery import packages
from mcp_touchstone.engine import stages
from mcp_touchstone.runtime import scratch
from mcp_touchstone.target.target import ROOT
from mcp_touchstone.transport.family import ProcessFacts
from tests.fork_server import forking
from tests.fork_server import kind as forked_kind
from tests.order import ordered

pytest_plugins = ["pytester"]

RETRIED = "retried"
"""Property of a test that judged a server again, because the first run missed a finding."""

RETRIES_ALLOWED = 0.02
"""Share of the mutants, and of the fakes, that a session may judge again; more fails it."""

JUDGING = ("mutants", "fakes")
"""The modules ``test_KIND...`` have tests that judge one server of that kind each."""

# A process that a shell script starts in the background ignores interrupts, and so do its children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if sys.platform != "win32" and signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# glibc otherwise gives each thread a heap of its own, and keeps the heaps of ended threads: after
# four fakes a worker had 71 MB, of which 9 were in use.
M_ARENA_MAX = -8
if sys.platform == "linux" and hasattr(libc := ctypes.CDLL(None), "mallopt"):
    libc.mallopt(M_ARENA_MAX, 1)

# No test of ours is about the speed of the machine it runs on. In CI the parent is Hypothesis' own
# profile for it, which draws the same examples every time.
settings.register_profile(
    "unhurried", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unhurried")

LEAN = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
"""Options of a pytest of its own: the plugin of Hypothesis imports all of it at the end."""

PROGRESS = re.compile(r"(?m)^mcp-touchstone: \d+ s: .*\n")
"""A line of progress, which a run without a terminal prints if the machine is slow."""

MEMORY = Path("/dev/shm")  # noqa: S108  (a file system in memory)
ROOM = 2 << 30
"""Bytes that must be free in memory for the throw-away folders of all workers."""

HERE = Path(__file__).parent
MUTANTS = HERE / "mutants"


def mutant_command(name: str) -> list[str]:
    """Give the command of a mutant."""
    return [sys.executable, str(MUTANTS), name, ROOT]


def eventually(holds: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Return the first true value of a function; fail if there is none in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if found := holds():
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen")


@pytest.fixture(scope="session", autouse=True)
def forked_servers() -> Iterator[None]:
    """Fork mutants, fakes and reference servers in place of starting an interpreter for each.

    Coverage is not measured in a fork that ends without the end of its interpreter.
    """
    with contextlib.nullcontext() if "COVERAGE_RUN" in os.environ else forking():
        yield


@pytest.fixture(scope="session", autouse=True)
def identities() -> Iterator[None]:
    """Look up the SDK and the packages of forked servers once: they are those of this project."""
    ordinary = packages.identity
    known: dict[Sequence[str], SdkIdentity] = {}

    def identity(
        processes: Sequence[ProcessFacts], command: Sequence[str], cwd: Path, env: Mapping[str, str]
    ) -> SdkIdentity:
        own = forked_kind(command)
        if own is None:
            return ordinary(processes, command, cwd, env)
        if own not in known:
            known[own] = ordinary(processes, command, cwd, env)
        return known[own]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "identity", identity)
        yield


@pytest.fixture(scope="session", autouse=True)
def folders_in_memory() -> Iterator[None]:
    """Make the throw-away folders of runs in this process in memory, if there is room.

    Each attack builds hundreds of files, and servers sync what they write: on a disk, the tests
    mostly wait for that. Processes of their own use the disk, as users do.
    """
    with pytest.MonkeyPatch.context() as patch:
        if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
            patch.setattr(scratch, "PLACES", (str(MEMORY), *scratch.PLACES))
        yield


@pytest.fixture(scope="session", autouse=True)
def state_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep what our commands and servers store out of the folder of the developer."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(autouse=True)
def signal_handlers() -> Iterator[None]:
    """Restore the handlers that a command of ours sets, for the tests that follow."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        if handler is not None:  # it was set by another program than Python
            signal.signal(number, handler)


@pytest.fixture
def golden(snapshot: Any) -> Any:
    """Compare with the files in golden/; ``--snapshot-update`` writes them."""
    from tests.goldens import Golden  # noqa: PLC0415  (syrupy is not installed in every environment)

    return snapshot.use_extension(Golden)


class Retries:
    """Counts the tests that needed another try, in the process that collects the reports.

    Mutants and fakes are counted apart, so that many of one kind allow no retries of the other.
    """

    def __init__(self) -> None:
        self.names: dict[str, set[str]] = {kind: set() for kind in JUDGING}
        self.tests = dict.fromkeys(JUDGING, 0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read what a test recorded."""
        kind = next((one for one in JUDGING if f"test_{one}" in report.nodeid), None)
        if report.when == "call" and kind is not None:
            self.tests[kind] += 1
            known = {str(value) for key, value in report.user_properties if key == RETRIED}
            self.names[kind] |= known

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a session that retried more tests than allowed."""
        if any(map(self.exceeded, JUDGING)) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the tests that were retried."""
        for kind, names in self.names.items():
            if names:
                verdict = "too many" if self.exceeded(kind) else "allowed"
                count = f"{len(names)} of {self.tests[kind]} {kind}"
                shown = ", ".join(sorted(names))
                terminalreporter.write_line(f"retried, {verdict}: {count}: {shown}")

    def exceeded(self, kind: str) -> bool:
        """Return whether more mutants or fakes were retried than is allowed."""
        return len(self.names[kind]) > max(1, RETRIES_ALLOWED * self.tests[kind])


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin slow tests first in each worker of xdist; without workers, keep the order."""
    if work := getattr(config, "workerinput", None):
        items[:] = ordered(items, work["workercount"])


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exempt ten thousand tests from each later collection of garbage."""
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    """Count retries in the controller, not in the workers of xdist."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Retries(), "retries")
