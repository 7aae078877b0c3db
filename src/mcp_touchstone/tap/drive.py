"""Run the command of a client once for each scenario, and collect what our server recorded."""

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_touchstone.bridge import headers as head
from mcp_touchstone.bridge.child import Launch
from mcp_touchstone.bridge.endpoint import PATH, Endpoint
from mcp_touchstone.bridge.exchanges import HttpExchange
from mcp_touchstone.bridge.listener import Listener
from mcp_touchstone.bridge.streams import EventStream
from mcp_touchstone.report.text import last_lines
from mcp_touchstone.tap import recording
from mcp_touchstone.tap.act import DROPS, FORGETS, Part
from mcp_touchstone.tap.proxy import Proxy
from mcp_touchstone.tap.recording import Recording, RecordingError, Side
from mcp_touchstone.tap.scenarios import find
from mcp_touchstone.transport import http_endpoint
from mcp_touchstone.transport.process import signal_name

if TYPE_CHECKING:
    from mcp_touchstone.tap.guard import Guard  # joserfc is an extra

SERVER: Final = "{server}"
"""Replaced in the command of a client by the command of our server, or by its URL."""

LIMIT: Final = 30.0
"""Seconds that a client has for a scenario, as in the official conformance suite."""

RETRY: Final = 3000
"""Milliseconds before a client may ask for a stream again; more than clients wait by themselves."""

KEPT: Final = 1 << 16
"""Bytes of the standard error of a client that are kept, the last ones."""

BEHIND: Final = "server"
"""The folder, within that of a scenario, of what our server behind HTTP recorded itself."""

GONE: Final = 3.0
"""Seconds for the exit of our server after that of the client."""


class FaultyEndpoint(Endpoint):
    """One connection of a client, with the fault of the listener."""

    server: "FaultyListener"

    def do_GET(self) -> None:  # noqa: N802  (the base class's name)
        """Answer with metadata, or as the bridge."""
        guard, path = self.server.guard, self.path.partition("?")[0]
        if guard is None or path == PATH:
            super().do_GET()
        elif guard.serves(path):
            self._relay(guard)
        else:
            found = guard.document(self.headers, path)
            self.answer(200 if found else 404, json.dumps(found).encode())

    def do_POST(self) -> None:  # noqa: N802  (as above)
        """Answer as our issuer, or as the bridge."""
        guard = self.server.guard
        if guard is not None and guard.serves(self.path):
            self._relay(guard)
        else:
            super().do_POST()

    def _relay(self, guard: "Guard") -> None:
        with self.refusing():
            head.guard(self.headers)
            body = self._body() if self.command == "POST" else b""
            self.answer(*guard.relay(self.command, self.path, body))

    def _check(self) -> None:
        super()._check()
        guard = self.server.guard
        if guard is not None and self.command != "POST":
            guard.admit(self.headers, self.command, [])

    def _post(self, line: bytes, messages: list[dict[str, Any]]) -> None:
        server, method = self.server, messages[0].get("method")
        if server.guard is not None:
            server.guard.admit(self.headers, "POST", messages)
        if server.fault == FORGETS and server.called and method and "id" in messages[0]:
            server.fault = ""
            server.sessions.finish(self._session())
        server.called |= method == "tools/call"
        super()._post(line, messages)

    def write_stream(self, stream: EventStream, after: int, *, resumable: bool | None) -> bool:
        """Write a stream, or its beginning."""
        called = isinstance(stream, HttpExchange) and stream.asked.get("method") == "tools/call"
        if called and self.command == "POST" and self.server.fault == DROPS:
            self.server.fault = ""
            begun, stream = stream.after(0, 0.0), EventStream(stream.number)
            stream.put(begun[0][1] + f"\nretry: {RETRY}".encode())  # a further field of the event
            stream.close()
        return super().write_stream(stream, after, resumable=resumable)


class FaultyListener(Listener):
    """The bridge, with a fault.

    Attributes:
        fault: DROPS or FORGETS; empty once it happened.
        called: whether a tool was called.
        guard: asks for tokens; None if none is needed.
    """

    handler = FaultyEndpoint
    fault = ""
    called = False
    guard: "Guard | None" = None


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one scenario.

    Attributes:
        name: the scenario.
        recordings: one for each start of our server.
        trouble: what the client did instead of a conversation, as a sentence; empty if nothing.
        said: the last lines of its standard error, if there is trouble.
        left_out: why it was not played; empty if it was.
    """

    name: str
    recordings: list[Recording] = field(default_factory=list)
    trouble: str = ""
    said: tuple[str, ...] = ()
    left_out: str = ""


def acting(name: str, folder: Path) -> list[str]:
    """Return the command of our server in a scenario."""
    words = [sys.executable, "-m", "mcp_touchstone", "act", name]
    return [*words, "--report", str(folder.absolute())]


def play(
    command: Sequence[str],
    name: str,
    folder: Path,
    *,
    http: bool = False,
    limit: float = LIMIT,
    known_as: str = "",
    env: Mapping[str, str] = os.environ,
    cwd: str | None = None,
) -> Played:
    """Run a client against our server in one scenario.

    Args:
        command: the command of the client; ``{server}`` is replaced. Over HTTP the URL is its last
            argument if it has no ``{server}``, as in the official conformance suite.
        http: whether our server is reached over HTTP.
        limit: seconds for the client.
        known_as: the name of the scenario for the client, if it is another one.
        env: the variables of the client, besides those of the scenario.
        cwd: its working folder; None for ours.
    """
    part = find(name)
    words = acting(name, folder)
    context = {"name": known_as or name, "steps": part.steps}
    env = {
        **env,
        "MCP_CONFORMANCE_SCENARIO": known_as or name,
        "MCP_CONFORMANCE_PROTOCOL_VERSION": "2026-07-28" if part.modern else "2025-11-25",
        "MCP_CONFORMANCE_CONTEXT": json.dumps(context),
    }
    with contextlib.ExitStack() as stack:
        recorder = None
        if http:
            words, recorder = _over_http(stack, name, folder, limit)
        status, said = _run(_filled(command, words, http=http), env, cwd, limit)
        end = recording.FAILED if status != 0 else recording.ENDED
        if recorder is None:
            _await(folder)
            paths = sorted(folder.glob(f"*{recording.SUFFIX}"))
            for path in paths:
                _note(path, *[recording.RESTARTED] * (path != paths[-1]), end)
        else:
            recorder.event(end)
            for text in _fetched(folder / BEHIND):
                recorder.event(text)
    try:
        found = recording.read_all(folder) if folder.is_dir() else []
    except RecordingError:
        found = []
    if http:  # the tap records also if nobody comes
        found = [one for one in found if any(row.side is Side.CLIENT for row in one.rows)]
    trouble = _trouble(status, found, limit, part, http=http)
    return Played(name, found, trouble, tuple(said))


def _over_http(
    stack: contextlib.ExitStack, name: str, folder: Path, limit: float
) -> tuple[list[str], recording.Recorder]:
    """Serve a part over HTTP until the stack ends; return its URL and what records it."""
    part = find(name)
    launch = Launch(command=tuple(acting(name, folder / BEHIND)))
    listener = stack.enter_context(FaultyListener(launch, most=8, startup=limit))
    listener.fault = part.http_fault
    server = http_endpoint.Endpoint(listener.start())
    about = {"url": server.url, "scenario": name}
    recorder = recording.recorder(folder, about, os.environ)
    url = stack.enter_context(Proxy(server, recorder)).start()
    if part.protection is not None:
        from mcp_touchstone.tap.guard import Guard  # noqa: PLC0415  (an extra)

        listener.guard = guard = Guard(part.protection, recorder.event)
        stack.callback(guard.close)
        guard.protect(url)
    return [url], recorder


def _fetched(folder: Path) -> Iterator[str]:
    """Yield what our server behind HTTP saw of a client beside its messages."""
    with contextlib.suppress(RecordingError):
        for one in recording.read_all(folder):
            yield from (row.text for row in one.events(recording.FETCHED))


def _filled(command: Sequence[str], server: Sequence[str], *, http: bool) -> Iterator[str]:
    """Yield the words of a client's command."""
    if http and not any(SERVER in word for word in command):
        command = [*command, SERVER]
    for word in command:
        if word == SERVER:
            yield from server
        else:
            yield word.replace(SERVER, shlex.join(server))


def _run(
    words: Iterator[str], env: Mapping[str, str], cwd: str | None, limit: float
) -> tuple[int | None, list[str]]:
    """Run a client; return its exit status, None if it had to be ended, and its last words.

    A process that it left may keep its standard error open: it has ended even so.
    """
    tail = bytearray()

    def keep(pipe: int) -> None:
        with open(pipe, "rb", buffering=0) as stderr:
            while chunk := stderr.read(KEPT):
                tail.extend(chunk)
                del tail[:-KEPT]

    with subprocess.Popen(
        list(words),
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None  # noqa: S101  (it is a pipe)
        reader = threading.Thread(target=keep, args=(os.dup(process.stderr.fileno()),), daemon=True)
        reader.start()
        status: int | None = None
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(OSError):
                os.killpg(process.pid, signal.SIGKILL)
        reader.join(GONE)
    return status, last_lines(bytes(tail).decode("utf-8", "replace"), 6)


def _await(folder: Path) -> None:
    """Wait until our servers have exited; end those that run on."""
    end = time.monotonic() + GONE
    for path in sorted(folder.glob(f"*{recording.SUFFIX}")):
        with contextlib.suppress(RecordingError):
            pid = int(recording.read(path).about.get("pid") or 0)
            while pid and _runs(pid) and time.monotonic() < end:
                time.sleep(0.02)
            if pid and _runs(pid):
                _note(path, recording.LEFT)
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


def _note(path: Path, *sentences: str) -> None:
    """Add events to a recording; before them the one that a killed server could not record."""
    with contextlib.suppress(RecordingError, OSError):
        one = recording.read(path)
        at = one.rows[-1].at if one.rows else 0.0
        ends = (recording.EXITED, recording.SIGNALLED, recording.LEFT)
        has_end = any(any(one.events(end)) for end in ends) or recording.LEFT in sentences
        with path.open("ab") as file:
            for text in (*[recording.KILLED] * (not has_end), *sentences):
                row = {"at": at, "from": Side.EVENT, "text": text}
                file.write(json.dumps(row).encode() + b"\n")


def _runs(pid: int) -> bool:
    with contextlib.suppress(OSError):
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat")
        return not (state.exists() and ") Z " in state.read_text("utf-8", "replace"))
    return False


def _trouble(
    status: int | None, found: Sequence[Recording], limit: float, part: type[Part], *, http: bool
) -> str:
    """Return what a client did instead of a conversation, as a sentence; empty if it had one."""
    spoke = [one for one in found if any(row.side is Side.CLIENT for row in one.rows)]
    restarts = part.restarts or http  # the bridge has a process for each session
    foreign = (
        part.modern and not part.both and not any('protocolVersion"' in _said(one) for one in spoke)
    )
    if status is None:
        return f"the client did not end within {limit:g} s"
    if status < 0:
        return f"the client was ended by {signal_name(-status)}"
    if not found or (http and not spoke):
        return f"the client never connected (exit status {status})"
    if not spoke:
        return f"the client connected and sent nothing (exit status {status})"
    talked = [one for one in spoke if not one.probes]
    if len(talked) > 1 and not restarts:
        return f"the client connected {len(talked)} times"
    fails = status and not part.may_fail and not foreign
    return f"the client ended with exit status {status}" if fails else ""


def _said(one: Recording) -> str:
    """Return what a client said in the stateless era."""
    lines = (row.text for row in one.rows if row.side is Side.CLIENT)
    return "".join(text for text in lines if "io.modelcontextprotocol/" in text)
