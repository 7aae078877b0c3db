"""Servers that break a rule of basic/stdio or basic/lifecycle as processes: what else they write,
and how they leave.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

from tests.mutants.asking import elicits
from tests.mutants.kit import (
    LEGACY,
    MODERN,
    AskingTool,
    Fault,
    Json,
    Out,
    client_capabilities,
    control,
    controls,
    encode,
    has,
    mutant,
    mutants,
    params,
    taken_back,
)

LINGER = 30.0
"""Longer than any patience of ours, so that a server has to be ended."""


@control("stdio-stderr-logging")
class LogsToStderr(Fault):
    """Logs to stderr in UTF-8, a replacement character included."""

    def start(self) -> None:
        sys.stderr.buffer.write("größer als erwartet: \ufffd\n".encode())
        sys.stderr.buffer.flush()


@mutant("stdio-stderr-logging")
class LogsLatin1ToStderr(Fault):
    """Logs to stderr in Latin-1."""

    def start(self) -> None:
        sys.stderr.buffer.write("größer als erwartet\n".encode("latin-1"))
        sys.stderr.buffer.flush()


@mutant("stdio-no-server-requests", revision=MODERN)
class ElicitsFromACapableClient(AskingTool):
    """Sends elicitation/create to a client that declared it, as in 2025-11-25."""

    def on_ask(self, request: Json) -> None:
        if not elicits(client_capabilities(request), "form"):
            super().on_ask(request)
            return
        schema = {"type": "object", "properties": {}}
        self.ask(request, "elicitation/create", {"message": "?", "requestedSchema": schema})


@mutant("stdio-no-server-requests", revision=MODERN)
class PingsAStatelessClient(Fault):
    """Pings the client in a revision without ping."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") != "tools/list":
            return message  # type: ignore[no-any-return]
        ping = {"jsonrpc": "2.0", "id": f"ping-{time.time_ns()}", "method": "ping"}
        return encode(message) + encode(ping)


@mutant("stdio-no-server-requests", revision=MODERN)
class AsksBeforeEachAnswer(Fault):
    """Sends roots/list before each answer."""

    def said(self, message: Any, request: Json) -> Out:
        asked = {"jsonrpc": "2.0", "id": f"roots-{time.time_ns()}", "method": "roots/list"}
        return encode(asked) + encode(message)


@mutant("stdio-no-unsolicited-notifications", "subscriptions-id-in-meta", revision=MODERN)
class AnnouncesToolsWithoutSubscription(Fault):
    """Sends tools/list_changed before its first answer, without a subscription."""

    begun = False

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if not self.begun:  # at its start it could be earlier than our first line, or later
            self.begun = True
            self.emit({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return line


@mutant("stdio-no-unsolicited-notifications=warn", "logging-capability-declared", revision=MODERN)
class LogsAfterItsAnswers(Fault):
    """Sends a log message shortly after the answer, without declaring logging."""

    def said(self, message: Any, request: Json) -> Out:
        log: Json = {"level": "info", "data": "done"}
        note = {"jsonrpc": "2.0", "method": "notifications/message", "params": log}
        self.later(0.02, lambda: self.emit(note))
        return message  # type: ignore[no-any-return]


class Stays(Fault):
    """Runs on after the end of its input."""

    def end(self) -> None:
        time.sleep(LINGER)


mutants("stdio-exit-on-eof", of=Stays, revision=MODERN)(
    StaysAfterItsInputEnds="Ignores the end of its input; SIGTERM ends it."
)


@mutant("lifecycle-shutdown-on-stdin-close", revision=LEGACY)
class HasToBeKilled(Stays):
    """Ignores the end of its input and SIGTERM."""

    def __init__(self) -> None:
        super().__init__()
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


mutants("lifecycle-shutdown-on-stdin-close", of=Stays)(
    ExitsOnSigterm="Ignores the end of its input, but exits on SIGTERM."
)


@mutant("lifecycle-shutdown-on-stdin-close", revision=LEGACY)
class LeavesAProcessBehind(Fault):
    """Exits at the end of its input, but a process that it started runs on."""

    seconds = LINGER
    apart: ClassVar[bool] = False

    def start(self) -> None:
        words = ["sleep", str(self.seconds)]
        subprocess.Popen(words, stdin=subprocess.DEVNULL, start_new_session=self.apart)


mutants("lifecycle-shutdown-on-stdin-close", of=LeavesAProcessBehind)(
    LeavesASessionBehind=has(
        "Exits at the end of its input, but a process in a session of its own runs on.", apart=True
    )
)

controls("lifecycle-shutdown-on-stdin-close", of=Fault)(
    StartsAShortProcess=has(
        "Starts a process that exits soon after the end of the input.",
        end=lambda *_: subprocess.Popen(["sleep", "0.3"], stdin=subprocess.DEVNULL),
    )
)


@control("stdio-newline-terminated", "lifecycle-shutdown-on-stdin-close")
class WritesLineFeedsApart(Fault):
    """Writes each line feed by itself, as Python without buffers does."""

    def said(self, message: Any, request: Json) -> Out:
        self.emit(encode(message).rstrip(b"\n"))
        return b"\n"


@mutant("lifecycle-shutdown-on-stdin-close", revision=LEGACY)
class WaitsForItsReader(Fault):
    """Tries for ever to write to an output that nobody reads."""

    def emit(self, message: Out) -> None:
        try:
            super().emit(message)
        except OSError:
            time.sleep(LINGER)


class _StaysWhileBusy(Fault):
    """Runs on after the end of its input while something is not finished."""

    busy = False

    def end(self) -> None:
        if self.busy:
            time.sleep(LINGER)


@mutant("lifecycle-shutdown-on-stdin-close", revision=LEGACY)
class ForgetsItsEndInARequest(_StaysWhileBusy):
    """Does not exit if its input ends before it has answered a ping."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") != "ping":
            return message  # type: ignore[no-any-return]
        self.busy = True
        time.sleep(0.05)
        if not self.done:
            self.busy = False
        return message  # type: ignore[no-any-return]


@control("lifecycle-shutdown-on-stdin-close")
class WaitsForRootsAtTheEnd(_StaysWhileBusy):
    """Requests the roots a while after it was opened, and does not exit before the answer."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if not isinstance(message, dict):
            return line
        if message.get("method") == "notifications/initialized":
            declared = [params(one).get("capabilities") for one in self.asked.values()]
            if any(isinstance(one, dict) and "roots" in one for one in declared):
                self.busy = True
                self.later(0.35, self.request_roots)
        if message.get("id") == "late-roots" and "method" not in message:
            self.busy = False
            return None
        return line

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        threading.Timer(seconds, action).start()

    def request_roots(self) -> None:
        """Send roots/list, even if nobody can answer it any more."""
        self.emit({"jsonrpc": "2.0", "id": "late-roots", "method": "roots/list"})


@control("cancellation-no-response", "lifecycle-shutdown-on-stdin-close")
class FinishesCancelledWork(_StaysWhileBusy):
    """Does not exit before the work of a cancelled call is finished."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        request = self.asked.get(taken_back(message), {})
        self.busy |= request.get("method") == "tools/call"
        return line


class ExitsAtOnce(Fault):
    """Answers an initialize for an unknown revision, and exits."""

    def said(self, message: Any, request: Json) -> Out:
        wanted = params(request).get("protocolVersion")
        if request.get("method") != "initialize" or "result" not in message:
            return message  # type: ignore[no-any-return]
        self.emit(message)
        if message["result"]["protocolVersion"] != wanted:
            self.leave()
        return None

    def leave(self) -> None:
        """End this process."""
        os._exit(0)


controls("stdio-server-initiated-close", "lifecycle-version-counteroffer", of=ExitsAtOnce)(
    ExitsWhenVersionsDiffer="Exits cleanly after it answered a client without a common revision."
)
mutants("stdio-server-initiated-close", of=ExitsAtOnce, passes=("lifecycle-version-counteroffer",))(
    AbortsWhenVersionsDiffer=has(
        "Dies by a signal after it answered a client without a common revision.",
        leave=lambda *_: os.kill(os.getpid(), signal.SIGKILL),
    ),
    ClosesItsOutputAndStays=has(
        "Closes its output for a client without a common revision, and runs on.",
        leave=lambda *_: os.close(sys.stdout.fileno()),
    ),
)
mutants("lifecycle-shutdown-answers-pending", of=Fault)(
    ForgetsOpenCallsAtTheEnd=has(
        "Writes no answer to a call any more when its input has ended.",
        said=lambda self, message, request: (
            None if self.done and request.get("method") == "tools/call" else message
        ),
    )
)
