"""The server's side of the worker: starts it, sends requests, and kills it on a timeout.

The library runs in a separate process for these reasons:

- It prints to the standard output.
- A regular expression of a script can run forever. ``re`` blocks all other threads meanwhile.
- A script can make it allocate all memory.

The process has few environment variables, an empty working directory and its own process group.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import threading
import time
from queue import Empty, Queue

from ...failure import ToolError
from .available import reason_against

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...surface import Surface

    Answer = dict[str, Any]

RUN_SECONDS = 10.0
"""Processor time for one request to a warm worker, in seconds."""
CLOCK = 10 if os.name != "nt" else 1
"""Limit by the clock, as a multiple of that. Windows has no limit for the processor time."""
START_SECONDS = 30.0
"""Time limit for the start of the worker, which loads the library, in seconds."""
MEMORY = 1024 * 1024 * 1024
"""Limit for the address space of the worker, in bytes."""

_PASSED_ON = (
    *("SYSTEMROOT", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME"),
    *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
)
"""Environment variables that are passed on to the worker.

The interpreter may need them to find its files and packages, and to cache bytecode.
"""

# The worker imports its modules as the package cedarscript_worker. This package may have either
# of two names, and neither it nor the directory the server was started in is on the worker's path.
_BOOT = """
import sys, types
package = types.ModuleType("cedarscript_worker")
package.__path__ = [sys.argv[1]]
sys.modules[package.__name__] = package
from cedarscript_worker.worker import run
run(sys.argv[2])
"""
_MOMENT = 0.05
_CHUNK = 64 * 1024
_ESCAPED = 8
"""Largest size of an answer, as a multiple of the size limit of a file: escapes lengthen JSON."""


class UnavailableError(ToolError):
    def __init__(self, reason: str) -> None:
        super().__init__(
            f"CEDARScript is not available: {reason}.",
            code="CEDARSCRIPT_UNAVAILABLE",
            type="SystemError",
            related_tools=("list_capabilities",),
        )


def build(surface: Surface) -> Engine:
    return Engine(surface.settings.max_file_size)


class Engine:
    """Sends requests to the worker. Any thread may use it.

    ``warm`` or the first request starts the worker. It then stays alive for later requests.

    Attributes:
        reason: Why the library cannot be used; None while no reason is known.
        on_failure: Called without a lock held, when the library is found not to work.
    """

    def __init__(self, largest: int) -> None:
        self.reason = reason_against()
        self.on_failure: Callable[[], None] | None = None
        self._largest = largest
        self._run_seconds = RUN_SECONDS
        self._worker: Worker | None = None
        self._lock = threading.Lock()
        self._warming: threading.Thread | None = None
        self._closed = False

    def ask(self, request: Answer, check: Callable[[], None]) -> Answer:
        """Send a request to the worker and return the answer.

        Args:
            check: Called several times a second. An exception that it raises ends the work.

        Raises:
            ToolError: ``CEDARSCRIPT_UNAVAILABLE``: the library does not work. ``SCRIPT_TIMEOUT``:
                the request took too long. ``SCRIPT_TOO_COSTLY``: the worker ran out of memory or
                ended. ``BUSY``: requests of other threads took too long.
        """
        self._acquire(check)
        try:
            worker = self._warm(check)
            if worker is None:
                raise UnavailableError(self.reason or "it does not start")
            answer = self._ask(worker, request, check)
            if answer.get("spent"):
                self._end()
        finally:
            self._lock.release()
            if self.reason and self.on_failure:
                self.on_failure()
        if answer.get("spent"):
            raise _too_costly()
        return answer

    def probe(self, check: Callable[[], None]) -> str | None:
        """Start the worker unless it runs, and return why the library does not work, or None."""
        if self.reason is None:
            self._acquire(check)
            try:
                self._warm(check)
            finally:
                self._lock.release()
            if self.reason and self.on_failure:
                self.on_failure()
        return self.reason

    def warm(self) -> None:
        """Start the worker in the background. Do nothing if this was called before."""
        if self._warming or self.reason or self._closed:
            return

        def start() -> None:
            try:
                self.probe(lambda: None)
            except ToolError:  # the server is ending, or the next request tries again
                return

        self._warming = threading.Thread(target=start, name="mcp-cedarscript-start", daemon=True)
        self._warming.start()

    def close(self) -> None:
        self._closed = True
        self._end()
        if self._warming:
            self._warming.join(5)

    def _acquire(self, check: Callable[[], None]) -> None:
        deadline = time.monotonic() + 4 * self._run_seconds
        while not self._lock.acquire(timeout=_MOMENT):
            check()
            if time.monotonic() > deadline:
                raise ToolError(
                    "Other scripts are being worked on.", code="BUSY", type="SystemError"
                )

    def _warm(self, check: Callable[[], None]) -> Worker | None:
        if self.reason:
            return None
        if self._closed:
            raise UnavailableError("the server is ending")
        if self._worker and self._worker.is_alive():
            return self._worker
        self._end()
        try:
            worker = self._worker = Worker(self._largest, self._run_seconds)
            if self._closed:  # meanwhile; close() may not have seen the worker
                self._end()
            found = worker.hear(START_SECONDS, check)
            worker.leave_directory()
        except (OSError, EOFError, TimeoutError) as error:
            self._end()
            raise UnavailableError(f"the worker did not start ({type(error).__name__})") from None
        except BaseException:
            self._end()
            raise
        if not found["ready"]:
            self._end()
            self.reason = found["reason"]
            return None
        return self._worker

    def _ask(self, worker: Worker, request: Answer, check: Callable[[], None]) -> Answer:
        try:
            worker.say(request)
            return worker.hear(CLOCK * self._run_seconds, check)
        except TimeoutError:
            self._end()
            raise self._timeout() from None
        except (OSError, EOFError):
            self._end()
            raise (self._timeout() if worker.is_out_of_time() else _too_costly()) from None
        except BaseException:  # the call was cancelled
            self._end()
            raise

    def _timeout(self) -> ToolError:
        return ToolError(
            f"The script was stopped after {self._run_seconds:g} s; nothing was written.",
            code="SCRIPT_TIMEOUT",
            type="ExecutionError",
            suggestions=[
                "Write patterns without repetition inside repetition, as in (a+)+.",
                "Send fewer commands at a time.",
            ],
        )

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker:
            worker.kill()


def _too_costly() -> ToolError:
    return ToolError(
        "The script needed more memory or time than it may have; nothing was written.",
        code="SCRIPT_TOO_COSTLY",
        type="ExecutionError",
        suggestions=["Send fewer commands at a time.", "Change very large files another way."],
    )


class Worker:
    def __init__(self, largest: int, seconds: float) -> None:
        from tempfile import mkdtemp  # noqa: PLC0415 - takes longer to load than this module

        here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as above
        limits = {"memory": MEMORY, "largest": largest, "seconds": math.ceil(seconds)}
        options = ("-P", "-X", "utf8")
        self._most = _ESCAPED * largest + _CHUNK
        self._lines: Queue[bytes | None] = Queue()
        self._directory: str | None = mkdtemp(prefix="mcp-cedarscript-")
        command = [sys.executable, *options, "-c", _BOOT, here, json.dumps(limits)]
        try:
            self._process = self._start(command, self._directory)
        except BaseException:
            self.leave_directory()
            raise
        self._reader = threading.Thread(target=self._read, name="mcp-cedarscript", daemon=True)
        self._reader.start()

    @staticmethod
    def _start(command: list[str], directory: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=directory,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            start_new_session=True,  # its own process group, which kill() ends as a whole
        )

    def leave_directory(self) -> None:
        """Remove the working directory of the worker, where the system allows this.

        The worker can then create no file in it. Nothing is left behind if this process is killed.
        Some systems keep the working directory of a running process. There it stays until the
        worker has ended.
        """
        if self._directory:
            try:
                os.rmdir(self._directory)  # noqa: PTH106 - pathlib costs a third of the start-up
            except OSError:
                return
            self._directory = None

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def is_out_of_time(self) -> bool:
        """Return whether the system has ended the process because its processor time was spent."""
        import signal  # noqa: PLC0415 - only needed here

        return self._process.poll() == -getattr(signal, "SIGXCPU", 0)

    def say(self, request: Answer) -> None:
        assert self._process.stdin is not None  # noqa: S101 - Popen was called with a pipe
        self._process.stdin.write(json.dumps(request, ensure_ascii=False).encode() + b"\n")
        self._process.stdin.flush()

    def hear(self, seconds: float, check: Callable[[], None]) -> Answer:
        """Wait for the next answer and return it.

        Raises:
            TimeoutError: No answer arrived within the time limit.
            EOFError: The process has ended, or a line of its output was too long.
        """
        deadline = time.monotonic() + seconds
        while True:
            try:
                line = self._lines.get(timeout=_MOMENT)
            except Empty:
                check()
                if time.monotonic() > deadline:
                    raise TimeoutError from None
                continue
            if line is None:
                raise EOFError
            answer: Answer = json.loads(line)
            return answer

    def kill(self) -> None:
        """Kill the process and remove its directory; on POSIX, kill its whole process group."""
        process = self._process
        if process.poll() is None:
            if os.name == "nt":
                process.kill()
            else:
                import signal  # noqa: PLC0415 - only needed here

                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    process.kill()
        process.wait()
        try:
            if process.stdin:
                process.stdin.close()
        except OSError:  # unsent data is discarded on purpose
            pass
        self._reader.join(1.0)
        self.leave_directory()

    def _read(self) -> None:
        """Read the output of the process and put its lines into the queue, then None.

        Stop at the end of the output, or when a line exceeds the largest size of an answer. The
        output is closed afterwards.
        """
        assert self._process.stdout is not None  # noqa: S101 - as above
        pending: list[bytes] = []
        size = 0
        with self._process.stdout as stream:
            while size <= self._most and (chunk := os.read(stream.fileno(), _CHUNK)):
                *lines, rest = chunk.split(b"\n")
                for line in lines:
                    self._lines.put(b"".join((*pending, line)))
                    pending, size = [], 0
                pending.append(rest)
                size += len(rest)
        self._lines.put(None)
