"""Servers that promise a record of each write, with one fault each; and good ones."""

import json
import sys
import time
from typing import Any

from tests.fakes.server import Guard

READING = {"read_file", "list_directory"}


class Records(Guard, promises=("audit",), families=("audit",)):
    """Records each write on standard error in one line of JSON."""

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


class OmitsRecordsOfEdits(Records, trips={"audit-writes"}):
    """Records new and moved files, and no edits."""

    def record(self, tool: str, path: str) -> None:
        if tool != "edit_file":
            super().record(tool, path)


class RecordsNoTime(Records, trips={"audit-writes"}):
    """Records each write without its time."""

    def time(self) -> str:
        return "just now"


class RecordsNamesUnescaped(Records, trips={"audit-forged"}):
    """Puts names into a record unescaped."""

    def record(self, tool: str, path: str) -> None:
        print(f"{self.time()} written by {tool}: {path}", file=sys.stderr, flush=True)


class EscapesLineFeeds(RecordsNamesUnescaped, trips={"audit-forged"}):
    """Escapes line feeds in records and no other control characters."""

    def record(self, tool: str, path: str) -> None:
        super().record(tool, path.replace("\n", "\\n"))


class RecordsToItsClient(Records):
    """Records each write as a log message to its client."""

    def record(self, tool: str, path: str) -> None:
        params = {"level": "info", "data": {"tool": tool, "path": path, "at": self.time()}}
        self.emit({"jsonrpc": "2.0", "method": "notifications/message", "params": params})


class PromisesNoAudit(Guard, families=("audit", "links")):
    """Records nothing, and does not promise it."""
