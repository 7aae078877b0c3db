"""The operator's log: one line per event on standard error, as JSON or text.

Text from the client is masked (``redact``), so no line contains the content of a file. The file of
``verbose`` contains unmasked text. Every line is ASCII with all control characters escaped, so that
a path or a name can neither forge a second line nor control a terminal.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from .stderr import StandardError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from ..settings import Settings
    from .verbose import VerboseFile

LEVELS = ("debug", "info", "warning", "error", "off")

FORMATS = ("json", "text")

_LONGEST_LINE = 4000
"""Bytes of an ordinary line. A pipe accepts up to 4096 in one piece, even with other writers."""

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-./:+@")
"""Characters of a value that the text format shows without quotes."""


class Log:
    """Writes events of the configured level and above.

    Raises:
        OSError: The file cannot be opened, see ``verbose.VerboseFile``.
    """

    def __init__(self, settings: Settings) -> None:
        self._threshold = LEVELS.index(settings.log_level)
        self._as_text = settings.log_format == "text"
        self._stderr = StandardError(self._lost)
        self._verbose: VerboseFile | None = None
        self._lock = threading.Lock()
        if settings.verbose_log is not None:
            from .verbose import VerboseFile  # noqa: PLC0415 - for debugging only

            self._verbose = VerboseFile(settings.verbose_log, settings.roots)

    def wants(self, level: str) -> bool:
        return self._verbose is not None or LEVELS.index(level) >= self._threshold

    def debug(self, event: str, **facts: Any) -> None:
        self._record("debug", event, facts)

    def info(self, event: str, **facts: Any) -> None:
        self._record("info", event, facts)

    def warning(self, event: str, **facts: Any) -> None:
        self._record("warning", event, facts)

    def error(self, event: str, **facts: Any) -> None:
        """Log a defect of this server, or a problem of its host.

        Inside an ``except`` clause, the file and line of the exception are added. Its message is
        not, because it may quote the content of a file.
        """
        trace = sys.exc_info()[2]
        if trace is not None:
            facts["where"] = _where(trace)
        self._record("error", event, facts)

    def _record(self, level: str, event: str, facts: dict[str, Any]) -> None:
        if self.wants(level):
            from . import redact  # noqa: PLC0415 - a quiet server has nothing to mask

            self.record(level, event, redact.facts(facts))

    def record(
        self, level: str, event: str, facts: dict[str, Any], payload: dict[str, Any] | None = None
    ) -> None:
        """Log an event with masked facts.

        Args:
            payload: Unmasked facts for the verbose file only.
        """
        if LEVELS.index(level) >= self._threshold:
            line = self._line(_entry(level, event, facts))
            if len(line) > _LONGEST_LINE:
                few = {name: one for name, one in facts.items() if not isinstance(one, dict)}
                line = self._line(_entry(level, event, {**few, "cut": len(line)}))
            self._stderr.put(line)
        if self._verbose is not None:
            self._write_verbose(_entry(level, event, {**facts, **(payload or {})}))

    def audit(self, who: str, request_id: str, changes: list[dict[str, Any]]) -> None:
        """Log a write, one line per file, at any level and before the answer.

        The members are sorted by name. If nobody reads standard error, this waits for a moment and
        then counts the lines as lost.

        Args:
            changes: One ``{"path", "before", "after"}`` per file: its path relative to the root,
                and the SHA-256 of its bytes in hex, None if the file does not exist.
        """
        from . import redact  # noqa: PLC0415 - as above

        about = {"who": redact.name(who), "request_id": request_id}
        facts = [{**about, **change} for change in changes]
        entries = [dict(sorted(_entry("info", "write", one).items())) for one in facts]
        self._stderr.put_for_sure([self._line(entry) for entry in entries])
        if self._verbose is not None:
            for entry in entries:
                self._write_verbose(entry)

    def close(self) -> None:
        """Write the waiting lines, for at most a second; call it last."""
        self._stderr.close()
        with self._lock:
            verbose, self._verbose = self._verbose, None
        if verbose is not None:
            verbose.close()

    def _line(self, entry: dict[str, Any]) -> bytes:
        return (_as_text(entry) if self._as_text else _as_json(entry)).encode("ascii") + b"\n"

    def _lost(self, count: int) -> bytes:
        return self._line(_entry("warning", "log_lines_lost", {"count": count}))

    def _write_verbose(self, entry: dict[str, Any]) -> None:
        try:
            if (verbose := self._verbose) is not None:
                verbose.write(_as_json(entry).encode("ascii") + b"\n")
        except OSError as error:
            # Stop now, because a file with gaps would mislead its reader.
            with self._lock:
                failed, self._verbose = self._verbose, None
            if failed is not None:
                failed.close()
                self.error("verbose_log_failed", reason=error.strerror)


def _entry(level: str, event: str, facts: dict[str, Any]) -> dict[str, Any]:
    nanoseconds = time.time_ns()
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    entry = {"timestamp": f"{moment}.{rest // 1_000_000:03}Z", "level": level.upper()}
    if "request_id" in facts:
        entry["request_id"] = facts["request_id"]
    return {**entry, "event": event, **facts}


def _where(trace: TracebackType) -> str:
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}"  # noqa: PTH119


def _as_json(value: Any) -> str:
    """Return a value as ASCII JSON without control characters, other objects as their type."""
    try:
        shown = json.dumps(value, default=_kind, allow_nan=False)
    except ValueError:  # NaN or infinity
        shown = json.dumps(_plain(value), default=_kind)
    return shown.replace("\x7f", "\\u007f")


def _kind(value: object) -> str:
    return f"[{type(value).__name__}]"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return repr(value) if isinstance(value, float) else value


def _as_text(entry: dict[str, Any]) -> str:
    """Return ``TIMESTAMP LEVEL EVENT name=value ...``. A value that is not a plain word is JSON."""
    rest = dict(entry)
    words = [rest.pop("timestamp"), rest.pop("level"), rest.pop("event")]
    for name, value in rest.items():
        plain = isinstance(value, str) and value and _PLAIN.issuperset(value)
        words.append(f"{name}={value if plain else _as_json(value)}")
    return " ".join(words)
