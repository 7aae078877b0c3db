"""Servers that promise a record of each write, with one fault each; and good ones."""

import json
import sys
import time
from typing import Any

from tests.fakes.server import Guard

READING = {"read_file", "list_directory"}


class Records(Guard):
    """Records each write on standard error: one line of JSON, whatever stands in it."""

    promises: tuple[str, ...] = ("audit",)
    families: tuple[str, ...] = ("audit",)

    def run(self, tool: str, given: dict[str, Any]) -> str:
        said = super().run(tool, given)
        if tool not in READING:
            self.record(tool, str(given.get("path", given.get("source"))))
        return said

    def record(self, tool: str, path: str) -> None:
        line = {"event": "write", "tool": tool, "path": path, "at": self.time()}
        print(json.dumps(line), file=sys.stderr, flush=True)

    def time(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class ForgetsEdits(Records):
    """Records what it makes and moves, and no edit."""

    trips = frozenset({"audit-writes"})

    def record(self, tool: str, path: str) -> None:
        if tool != "edit_file":
            super().record(tool, path)


class RecordsNoTime(Records):
    """Records each write without saying when."""

    trips = frozenset({"audit-writes"})

    def time(self) -> str:
        return "just now"


class RecordsNamesAsTheyCame(Records):
    """Puts names into a line as they came."""

    trips = frozenset({"audit-forged"})

    def record(self, tool: str, path: str) -> None:
        print(f"{self.time()} written by {tool}: {path}", file=sys.stderr, flush=True)


class EscapesLineFeeds(RecordsNamesAsTheyCame):
    """Writes line feeds out and leaves other control characters as they came."""

    trips = frozenset({"audit-forged"})

    def record(self, tool: str, path: str) -> None:
        super().record(tool, path.replace("\n", "\\n"))


class TellsItsClient(Records):
    """Records each write as a log message to its client."""

    def record(self, tool: str, path: str) -> None:
        params = {"level": "info", "data": {"tool": tool, "path": path, "at": self.time()}}
        self.emit({"jsonrpc": "2.0", "method": "notifications/message", "params": params})


class NeverSaidSo(Guard):
    """Records nothing, and never said it would."""

    families = ("audit", "links")
