"""The file of one conversation: a line of JSON for each line of a peer, written before it passes.

The first line describes the recording. Each other line has ``at`` (seconds since the start) and
``from``: ``client``, ``server``, ``stderr`` or ``event``. Bytes that are not UTF-8 are lone
surrogates, as in Python's ``surrogateescape``.
"""

import json
import os
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from mcp_touchstone import __version__
from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.report.text import masked
from mcp_touchstone.runtime.console import say
from mcp_touchstone.runtime.secrets import secrets
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.framing import Line, LineSplitter

FORMAT: Final = 1
SUFFIX: Final = ".jsonl"

CLIENT_CLOSED: Final = "the client closed the input of the server"
CLIENT_DEAF: Final = "the client reads no more"
SERVER_CLOSED: Final = "the server closed its output"
SERVER_DEAF: Final = "the server reads no more"
NOT_STARTED: Final = "the server could not be started: "
EXITED: Final = "the server exited with status "
DIED: Final = "the server was ended by "
SIGNALLED: Final = "the client sent "
FETCHED: Final = "the client fetched "
LEFT: Final = "the client ended and left the server running"
KILLED: Final = "the client killed the server without closing its input"


class Side(StrEnum):
    """Where a line of a recording comes from."""

    CLIENT = "client"
    SERVER = "server"
    STDERR = "stderr"
    EVENT = "event"


class RecordingError(UserError):
    """A folder has no recordings, or a file is none; the message says what to do."""


class Recorder:
    """The writer of one recording; a line is in the file before ``take`` returns.

    Args:
        path: the new file.
        about: further members of the first line.
        environment: variables whose secrets are hidden.

    Raises:
        OSError: the file cannot be made.
    """

    def __init__(
        self, path: Path, about: Mapping[str, Any], environment: Mapping[str, str]
    ) -> None:
        names = dict.fromkeys(name for name, _ in secrets(environment))
        self._hidden = {name: environment[name] for name in names}
        self._begun = now()
        self._lock = threading.RLock()  # a signal may come while the main thread holds it
        self._splitters = {side: LineSplitter() for side in Side}
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._write({"recording": FORMAT, "tool": __version__, "started": started, **about})

    def take(self, side: Side, chunk: bytes) -> None:
        """Record the lines that the next bytes of a side complete."""
        with self._lock:
            for line in self._splitters[side].feed(chunk):
                self._line(side, line)

    def end(self, side: Side) -> None:
        """Record the bytes after the last line feed of a side, if there are any."""
        with self._lock:
            rest = self._splitters[side].close()
            if rest is not None:
                self._line(side, rest)

    def event(self, sentence: str) -> None:
        """Record something that is no line."""
        self._write({"at": self._at(), "from": Side.EVENT, "text": sentence})

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            os.close(self._file)
            self._file = -1

    def _line(self, side: Side, line: Line) -> None:
        row: dict[str, Any] = {"at": self._at(), "from": side}
        row["text"] = line.raw.decode("utf-8", "surrogateescape")
        if line.cut:
            row["length"] = line.length
        if not line.terminated:
            row["open"] = True
        self._write(row)

    def _at(self) -> float:
        return round(now() - self._begun, 6)

    def _write(self, row: Mapping[str, Any]) -> None:
        """Append a line in one call; a full disk must not disturb the conversation."""
        shown = {key: self._masked(value) for key, value in row.items()}
        raw = json.dumps(shown).encode() + b"\n"
        with self._lock:
            try:
                os.write(self._file, raw)
            except OSError as error:
                if self._file >= 0:
                    say(f"mcp-touchstone tap: it records no more: {error.strerror}", error=True)
                self._file = -1

    def _masked(self, value: Any) -> Any:
        if isinstance(value, str):
            return masked(value, self._hidden) if self._hidden else value
        return [self._masked(one) for one in value] if isinstance(value, list) else value


def recorder(folder: Path, about: Mapping[str, Any], environment: Mapping[str, str]) -> Recorder:
    """Start a recording in a folder, which is made if there is none.

    Raises:
        RecordingError: it cannot be written there.
    """
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}{SUFFIX}"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Recorder(folder / name, about, environment)
    except OSError as error:
        raise RecordingError(f"{folder}: no recording can be written: {error.strerror}") from error


def shown(command: Iterable[str]) -> list[str]:
    """Return a command without arguments that look like tokens."""
    words = list(command)
    for _, secret in secrets({str(n): word for n, word in enumerate(words)}):
        words = [word.replace(secret, "HIDDEN") for word in words]
    return words


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a recording.

    Attributes:
        at: seconds since the start.
        side: where it comes from.
        line: its bytes; for an event its sentence.
    """

    at: float
    side: Side
    line: Line

    @property
    def text(self) -> str:
        """The line as text, with replacement characters for invalid UTF-8."""
        return self.line.raw.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Recording:
    """One conversation that was recorded.

    Attributes:
        path: its file.
        about: the members of its first line.
        rows: its lines.
    """

    path: Path
    about: Mapping[str, Any]
    rows: list[Row] = field(default_factory=list)

    @property
    def command(self) -> list[str]:
        """The command of the server; empty if it is ours."""
        found = self.about.get("command")
        return [str(word) for word in found] if isinstance(found, list) else []

    @property
    def scenario(self) -> str:
        """The scenario that our server played; empty for another server."""
        return str(self.about.get("scenario") or "")

    def events(self, beginning: str) -> Iterator[Row]:
        """Yield the events whose sentences begin like this."""
        return (r for r in self.rows if r.side is Side.EVENT and r.text.startswith(beginning))


def read(path: Path) -> Recording:
    """Read a recording; a last line that was cut off by a kill is left out.

    Raises:
        RecordingError: it is no recording.
    """
    try:
        lines = path.read_bytes().split(b"\n")
        about = json.loads(lines[0])
        if about["recording"] > FORMAT:
            raise RecordingError(f"{path}: a newer version wrote it; update mcp-touchstone")
        rows = [_row(json.loads(line)) for line in lines[1:-1]]
    except OSError as error:
        raise RecordingError(f"{path}: {error.strerror}") from error
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise RecordingError(f"{path}: it is no recording of `mcp-touchstone tap`") from error
    return Recording(path, about, rows)


def _row(row: Mapping[str, Any]) -> Row:
    raw = row["text"].encode("utf-8", "surrogateescape")
    line = Line(raw, int(row.get("length", len(raw))), terminated="open" not in row)
    return Row(float(row["at"]), Side(row["from"]), line)


def read_all(folder: Path) -> list[Recording]:
    """Read the recordings of a folder, the oldest first.

    Raises:
        RecordingError: there are none, or one cannot be read.
    """
    paths = sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else [folder]
    if not paths:
        below = sorted({str(path.parent) for path in folder.glob(f"*/*{SUFFIX}")})
        hint = f"; name one of {', '.join(below)}" if below else "; `mcp-touchstone tap` makes them"
        raise RecordingError(f"{folder}: it has no recordings{hint}")
    return [read(path) for path in paths]
