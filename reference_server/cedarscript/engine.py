"""The server's end of the worker: starts it, asks it, and ends it when it takes too long.

The library prints, hangs on patterns that a stranger wrote, and can be made to ask for all the
memory there is; ``re`` does not even let other threads run meanwhile. So it lives in a process of
its own with nothing to reach: no environment, an empty directory, its own process group.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from queue import Empty, Queue

from ..failure import ToolError
from .available import reason_against

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..surface import Surface

    Answer = dict[str, Any]

RUN_SECONDS = 10.0
"""How long one request may take once the worker is warm."""
START_SECONDS = 30.0
"""How long it may take to load the library."""
MEMORY = 1024 * 1024 * 1024
"""Bytes of address space the worker may use."""

_PASSED_ON = (
    *("SYSTEMROOT", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME"),
    *("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
)
"""What an interpreter may need to find itself and its packages, and to cache what it compiles."""

# The worker's modules are found under a name of their own: neither this package with its two
# names nor the directory the server was started in is on its path.
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
"""Bytes of JSON that a byte of a file can become, and some for the rest."""


class UnavailableError(ToolError):
    """The library cannot be used here."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"CEDARScript is not available: {reason}.",
            code="CEDARSCRIPT_UNAVAILABLE",
            type="SystemError",
            related_tools=("list_capabilities",),
        )


def build(surface: Surface) -> Engine:
    """Build the one engine of a server."""
    return Engine(surface.settings.max_file_size)


class Engine:
    """The worker, started when it is first asked and kept warm; any thread may ask.

    Args:
        largest: Bytes of a file.

    Attributes:
        reason: Why it cannot be used, once that is known.
        on_failure: Called when the library turns out not to work, with no lock held.
    """

    def __init__(self, largest: int) -> None:
        self.reason = reason_against()
        self.on_failure: Callable[[], None] | None = None
        self._largest = largest
        self._run_seconds = RUN_SECONDS
        self._worker: Worker | None = None
        self._lock = threading.Lock()
        self._closed = False

    def ask(self, request: Answer, check: Callable[[], None]) -> Answer:
        """Give the worker's answer to a request.

        Args:
            request: See ``worker.Worker``.
            check: Called again and again; what it raises ends the work.

        Raises:
            ToolError: ``CEDARSCRIPT_UNAVAILABLE``; ``SCRIPT_TIMEOUT``, it took too long;
                ``SCRIPT_TOO_COSTLY``, it took the worker down; ``BUSY``, others were first.
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
        """Start the worker if it is not there; give the reason if the library does not work."""
        if self.reason is None:
            self._acquire(check)
            try:
                self._warm(check)
            finally:
                self._lock.release()
            if self.reason and self.on_failure:
                self.on_failure()
        return self.reason

    def close(self) -> None:
        """End the worker, whatever it is doing."""
        self._closed = True
        self._end()

    def _acquire(self, check: Callable[[], None]) -> None:
        deadline = time.monotonic() + 4 * self._run_seconds
        while not self._lock.acquire(timeout=_MOMENT):
            check()
            if time.monotonic() > deadline:
                raise ToolError(
                    "Other scripts are being worked on.",
                    code="BUSY",
                    type="SystemError",
                    recovery_steps=("Call again in a moment.",),
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
            self._worker = Worker(self._largest, self._run_seconds)
            found = self._worker.hear(START_SECONDS, check)
            self._worker.leave_directory()
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
            return worker.hear(self._run_seconds, check)
        except TimeoutError:
            self._end()
            raise ToolError(
                f"The script was stopped after {self._run_seconds:g} s; nothing was written.",
                code="SCRIPT_TIMEOUT",
                type="ExecutionError",
                suggestions=[
                    "Write patterns without repetition inside repetition, as in (a+)+.",
                    "Send fewer commands at a time.",
                ],
            ) from None
        except (OSError, EOFError):
            self._end()
            raise _too_costly() from None
        except BaseException:  # the call was cancelled
            self._end()
            raise

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
    """One worker process.

    Args:
        largest: Bytes of a file.
        seconds: For one request.
    """

    def __init__(self, largest: int, seconds: float) -> None:
        from tempfile import mkdtemp  # noqa: PLC0415 - it costs more than all of this module

        here = os.path.dirname(os.path.abspath(__file__))  # noqa: PTH100, PTH120 - as above
        limits = {"memory": MEMORY, "largest": largest, "seconds": int(seconds) + 1}
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
            start_new_session=True,  # a group of its own, to be killed as one
        )

    def leave_directory(self) -> None:
        """Take away the directory it runs in, where a running program does not keep it.

        Nothing can be made in it any more, and nothing is left of it if this process is killed.
        """
        if self._directory:
            try:
                os.rmdir(self._directory)  # noqa: PTH106 - pathlib costs a third of the start-up
            except OSError:
                return
            self._directory = None

    def is_alive(self) -> bool:
        """Say whether it can be asked."""
        return self._process.poll() is None

    def say(self, request: Answer) -> None:
        """Send a request; ``OSError`` if it is gone."""
        assert self._process.stdin is not None  # noqa: S101 - it was made with a pipe
        self._process.stdin.write(json.dumps(request, ensure_ascii=False).encode() + b"\n")
        self._process.stdin.flush()

    def hear(self, seconds: float, check: Callable[[], None]) -> Answer:
        """Give the next answer.

        Raises:
            TimeoutError: There is none in time.
            EOFError: There is none to come.
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
        """End it and what it may have started; it takes no wish."""
        process = self._process
        if process.poll() is None:
            if os.name == "nt":
                process.kill()
            else:
                import signal  # noqa: PLC0415 - for this only

                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    process.kill()
        process.wait()
        try:
            if process.stdin:
                process.stdin.close()
        except OSError:  # what was to be sent is lost, as it should be
            pass
        self._reader.join(1.0)
        self.leave_directory()

    def _read(self) -> None:
        """Cut its output into lines; give up on one beyond all bounds. Closes it at the end."""
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
