"""Find out why a server does not answer its first request: try what no client sends.

Each attempt is a process of its own. Beside them, one more process gets the first request alone: if
it is answered, only the first start of the server was slow. A server that answers an attempt, but
neither this process nor one that has waited for longer, is not slow. Where that is possible, the
waiting process then gets the same input, and its answer is the proof.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.connection.connection import CLIENT_INFO, Connection
from mcp_touchstone.connection.server_profile import Diagnosis
from mcp_touchstone.transport.process import LaunchError, now, sleep
from mcp_touchstone.wire.framing import encode, id_key, loads
from mcp_touchstone.wire.transcript import Source

QUIET: Final = 10.0
"""Greatest number of silent seconds before the first attempt."""

SHARE: Final = 3
"""The same, as a part of the limit for the first answer."""

LEAST: Final = 1.0
"""Least seconds that a waiting process gets after an attempt was answered."""

MANY: Final = 1000
"""Requests whose answers exceed the buffer of any standard library."""

SLICE: Final = 0.1
"""Seconds between two looks at the processes."""

HEADER: Final = b"content-length:"


class Spawn(Protocol):
    """Starts a process."""

    def __call__(self, revision: str, label: str, *, judged: bool = True) -> Connection:
        """Return an unused connection, which rules on all traffic read unless it is not judged."""


@dataclass(frozen=True, slots=True)
class OddInput:
    """An input that no client sends.

    Attributes:
        clause: the clause that a server breaks if it needs this input.
        expected: what the clause asks for.
        actual: what the server does instead, and the usual cure.
        again: sends the input after the first request, also to a process that already has that;
            None for a first request with a header.
    """

    clause: str
    expected: str
    actual: str
    again: Callable[[Connection], object] | None

    def send(self, connection: Connection) -> int:
        """Send the first request, with this input; return the number of its line."""
        message = _opening(connection)
        if self.again is None:
            body = encode(message).removesuffix(b"\n")
            raw = b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
            return connection.say_raw(raw, message, required=False)
        line = connection.say(message, required=False)
        self.again(connection)
        return line


def _opening(connection: Connection) -> dict[str, Any]:
    if connection.modern:
        return connection.build("server/discover")
    params = {
        "protocolVersion": connection.transcript.revision,
        "capabilities": {},
        "clientInfo": CLIENT_INFO,
    }
    return connection.build("initialize", params)


def _pings(connection: Connection) -> None:
    connection.say_together(*(connection.build(connection.ping_method) for _ in range(MANY)))


WHOLE_LINES: Final = "an answer while stdin stays open"

ATTEMPTS: Final = (
    OddInput(
        "stdio-stdout-only-messages",
        "messages that end with a line feed, without headers",
        "it reads and writes messages with a Content-Length header, the framing of another "
        "protocol (LSP): read and write one message a line",
        None,
    ),
    OddInput(
        "stdio-newline-terminated",
        "an answer to a message that a line feed ends",
        "it answers only after an empty line: take each line as a message",
        lambda connection: connection.say_raw(b"\n", required=False),
    ),
    OddInput(
        "lifecycle-initialize-response",
        "an answer to initialize before notifications/initialized",
        "it answers initialize only after notifications/initialized, which a client may send only "
        "after that answer",
        lambda connection: connection.notify("notifications/initialized"),
    ),
    OddInput(
        "stdio-newline-terminated",
        WHOLE_LINES,
        f"it answers only after {MANY:,} requests: its output is buffered; flush it after each "
        "message (PYTHONUNBUFFERED=1, print(..., flush=True), setvbuf)",
        _pings,
    ),
    OddInput(
        "stdio-newline-terminated",
        WHOLE_LINES,
        "it answers only after the end of its input: read one line at a time, and flush each "
        "answer",
        lambda connection: connection.process.pipes.close_input(),
    ),
)
"""The attempts; of several that are answered, the first one counts."""


def explain_silence(
    spawn: Spawn,
    waiting: Mapping[str, Connection],
    over: threading.Event,
) -> Diagnosis | None:
    """Return why a server does not answer; None if it answered, left, or the cause is unknown.

    Args:
        waiting: revision -> a process that gets the first request.
        over: set when no process is waited for any more.
    """
    revision = max(waiting, key=lambda one: (not rev.is_modern(one), one))
    plain = waiting[revision]
    alike = [c for one, c in waiting.items() if rev.is_modern(one) is rev.is_modern(revision)]
    while not any(entry.source is Source.US for entry in plain.transcript):
        if over.wait(SLICE):
            return None
    if over.wait(min(QUIET, plain.pace.startup / SHARE)) or _has_stirred(alike):
        return None
    found = _on_stderr(plain)
    if found is not None:
        return found
    started: list[Connection] = []

    def start() -> Connection:
        connection = spawn(revision, "silence", judged=False)
        started.append(connection)
        connection.answers.enabled = False
        return connection

    try:
        control = start()
        control.say(_opening(control), required=False)
        trials = [(one, each, one.send(each)) for one, each in ((a, start()) for a in ATTEMPTS)]
        answered = _first_answered(trials, [*alike, control], over)
    except LaunchError:
        return None
    finally:
        for connection in started:
            connection.end(polite=False)
    return None if answered is None else _proven(answered, plain)


def _has_stirred(waiting: Sequence[Connection]) -> bool:
    return any(one.transcript.spoke or one.gone for one in waiting)


def _is_answered(connection: Connection, line: int) -> bool:
    if connection.transcript.answer_to(line) is not None:
        return True
    said = (e for e in connection.transcript.since(line) if e.source is Source.THEM)
    return any(HEADER in entry.raw.lower() for entry in said)


def _first_answered(
    trials: list[tuple[OddInput, Connection, int]],
    waiting: Sequence[Connection],
    over: threading.Event,
) -> OddInput | None:
    """Return the attempt that was answered, if the waiting processes stay silent as long again."""
    until = None
    while not over.is_set() and not _has_stirred(waiting):
        answered = [trial for trial in trials if _is_answered(trial[1], trial[2])]
        if answered and until is None:
            until = now() + max(LEAST, now() - answered[0][1].process.born)
        if until is not None and now() > until:
            return answered[0][0]
        if not answered and all(connection.gone for _, connection, _ in trials):
            return None
        sleep(SLICE)
    return None


def _proven(attempt: OddInput, plain: Connection) -> Diagnosis | None:
    """Send the same input to a waiting process; its answer is the proof."""
    transcript = plain.transcript
    asked = next(e.n for e in transcript if e.source is Source.US)
    entry = None
    if attempt.again is not None:
        attempt.again(plain)
        transcript.wait(lambda: _is_answered(plain, asked), plain.pace.reply)
        if not _is_answered(plain, asked):
            return None
        entry = next(e.n for e in transcript.since(asked) if e.source is Source.THEM)
    return Diagnosis(
        attempt.clause, attempt.expected, attempt.actual, plain.transcript.revision, asked, entry
    )


def _on_stderr(plain: Connection) -> Diagnosis | None:
    asked = next(e for e in plain.transcript if e.source is Source.US)
    for text in plain.process.pipes.stderr_tail.decode("utf-8", "replace").splitlines():
        try:
            said = loads(text)
        except ValueError:
            continue
        if not isinstance(said, dict) or "result" not in said:
            continue
        if id_key(said.get("id")) == id_key(asked.value["id"]):
            return Diagnosis(
                "jsonrpc-request-answered",
                "an answer on stdout",
                "it writes JSON-RPC to stderr, and nothing to stdout: write messages to stdout, "
                "and logs to stderr",
                plain.transcript.revision,
                asked.n,
            )
    return None
