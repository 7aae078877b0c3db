"""Runs of the harness in processes that are forked from one with all modules loaded.

Memory, descriptors and threads can only be measured in a separate process, and loading the suites
for each run would take a second of CPU time. Run as a program, this file is the parent process: it
reads orders as lines of JSON and writes the outcome of each.
"""

# ruff: noqa: PLC0415, SIM115, BLE001  (a child loads late, keeps files open, reports all)

import contextlib
import gc
import itertools
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psutil

TOKEN = "MCP_TOUCHSTONE_NURSERY"
"""Variable that every process of a run inherits, beside the harness's own mark."""


@dataclass(frozen=True, kw_only=True)
class Ran:
    """The outcome of a run.

    Attributes:
        status: exit status; negative for a signal.
        out: what stood on stdout.
        err: what stood on stderr.
        seconds: how long it took.
        peak: the most memory the harness had, in bytes.
        threads: names of threads that were left in the harness.
        descriptors: what its open descriptors were, where there were more than before.
        files: what was left in the place of its worlds.
        processes: command lines of what was left running.
    """

    status: int
    out: str
    err: str
    seconds: float
    peak: int
    threads: list[str]
    descriptors: list[str]
    files: list[str]
    processes: list[str]


class Nursery:
    """The parent process of runs, a context manager. Several runs may be active at a time."""

    def __enter__(self) -> Self:
        """Start it."""
        self._parent = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, text=True, encoding="utf-8"
        )
        return self

    def __exit__(self, *_: object) -> None:
        """End it."""
        assert self._parent.stdin
        self._parent.stdin.close()
        self._parent.wait(10)

    def run(
        self,
        arguments: Sequence[str],
        folder: Path,
        *,
        seconds: float = 300.0,
        kill_when: Callable[[], object] | None = None,
        env: Mapping[str, str] | None = None,
        **limits: Any,
    ) -> Ran:
        """Run the command line in ``folder``; one that lasts longer than ``seconds`` is killed.

        Args:
            arguments: the arguments of ``mcp-touchstone``.
            folder: where the run works; its worlds are made in a folder there.
            seconds: its deadline.
            kill_when: kills the run as soon as it returns a true value.
            env: variables on top of ours.
            limits: see ``_confine``.
        """
        token = secrets.token_hex(8)
        order = {
            "arguments": list(arguments),
            "folder": str(folder),
            "env": {**(env or {}), TOKEN: token},
            "limits": limits,
        }
        (folder / "worlds").mkdir(exist_ok=True)
        for name in ("status", "pid", "vitals", "out", "err"):
            (folder / name).unlink(missing_ok=True)
        assert self._parent.stdin
        begun = time.monotonic()
        self._parent.stdin.write(json.dumps(order) + "\n")
        self._parent.stdin.flush()
        while not (folder / "status").exists():
            due = kill_when is not None and kill_when()
            if (due or time.monotonic() - begun > seconds) and (pid := _text(folder / "pid")):
                os.kill(int(pid), 9)
                kill_when, seconds = None, seconds + 30
            time.sleep(0.02)
        spent = time.monotonic() - begun
        vitals = {}
        with contextlib.suppress(OSError):
            vitals = json.loads((folder / "vitals").read_text("utf-8"))
        return Ran(
            status=int((folder / "status").read_text()),
            out=_text(folder / "out"),
            err=_text(folder / "err"),
            seconds=spent,
            peak=vitals.get("peak", 0),
            threads=vitals.get("threads", []),
            descriptors=vitals.get("descriptors", []),
            files=sorted(path.name for path in (folder / "worlds").iterdir()),
            processes=processes_left(token, str(folder)),
        )


def _text(path: Path) -> str:
    return path.read_text("utf-8") if path.exists() else ""


def processes_left(token: str, folder: str) -> list[str]:
    """Return the processes with the token in their environment or the folder in their command."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            if folder in " ".join(words) or process.environ().get(TOKEN) == token:
                found.append(" ".join(words))
    return found


def main() -> None:
    """Fork a waiting process for each order, which forks the run."""
    from mcp_touchstone import cli
    from mcp_touchstone.catalog import loader
    from mcp_touchstone.config import files as config_file  # noqa: F401
    from mcp_touchstone.engine import runner  # noqa: F401
    from mcp_touchstone.gate import baseline_file  # noqa: F401
    from mcp_touchstone.report import html, junit, kinds, markdown, sarif, terminal  # noqa: F401
    from mcp_touchstone.runtime import scratch
    from mcp_touchstone.transport.orphans import sweep  # noqa: F401

    loader.load()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        order = json.loads(line)
        folder = Path(order["folder"])
        if os.fork():
            continue
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        pid = os.fork()
        if not pid:
            scratch.PLACES = (str(folder / "worlds"),)  # type: ignore[assignment,misc]
            _child(order, folder, cli.main)
        (folder / "pid").write_text(str(pid))
        _, status = os.waitpid(pid, 0)
        (folder / "status.new").write_text(str(os.waitstatus_to_exitcode(status)))
        (folder / "status.new").rename(folder / "status")
        os._exit(0)


def _child(order: dict[str, Any], folder: Path, work: Any) -> None:
    import resource

    os.chdir(folder)
    os.environ.update(order["env"])
    for number, name, how in (
        (0, os.devnull, os.O_RDONLY),
        (1, "out", os.O_CREAT | os.O_WRONLY | os.O_TRUNC),
        (2, "err", os.O_CREAT | os.O_WRONLY | os.O_TRUNC),
    ):
        descriptor = os.open(order["limits"].get(name, name), how)
        os.dup2(descriptor, number)
        os.close(descriptor)
    sys.stdin = open(0, encoding="utf-8", closefd=False)
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = open(2, "w", encoding="utf-8", closefd=False)
    _confine(**order["limits"])
    sys.argv[1:] = order["arguments"]
    before = _descriptors()
    status = 70
    try:
        status = work()
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    after = _descriptors()
    vitals = {
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        * (1 if sys.platform == "darwin" else 1024),
        "threads": [t.name for t in threading.enumerate() if t is not threading.main_thread()],
        "descriptors": after if len(after) > len(before) else [],
    }
    Path(folder / "vitals").write_text(json.dumps(vitals), "utf-8")
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(status)


def _descriptors() -> list[str]:
    with contextlib.suppress(OSError):
        found = []
        for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  (one of them is the list itself)
            with contextlib.suppress(OSError):
                found.append(os.readlink(f"/proc/self/fd/{name}"))  # noqa: PTH115
        return found
    return []


def _confine(nofile: int = 0, *, clock: bool = False, **_: str) -> None:
    """Restrict the resources of the run.

    Args:
        nofile: descriptors it may have; 0 for as many as there are.
        clock: whether the time of day jumps, an hour on and a day back, each time it is asked.
    """
    if clock:
        days = itertools.count()
        time.time = lambda: 1e9 + 3600 * next(days) if next(days) % 4 else 1e9 - 86400.0
    if nofile:
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))


if __name__ == "__main__":
    main()
