"""Servers that let out what they should keep; and good ones. Their guard is sound."""

import os
import sys
import traceback
from typing import Any

from tests.fakes.resources import Workspace
from tests.fakes.server import Guard, Refused


class Keeps(Guard):
    """Promises to redact."""

    promises: tuple[str, ...] = ("redaction",)
    families: tuple[str, ...] = ("secrets",)


class ShowsItsConfiguration(Keeps):
    """Says in an error what it was started with."""

    trips = frozenset({"secrets-environment"})

    def refusal(self, text: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return super().refusal(f"{text} ({os.environ.get('MCP_CANARY_SECRET')})", arguments)


class LogsItsEnvironment(Keeps):
    """Writes all it was started with to stderr."""

    trips = frozenset({"secrets-environment"})

    def __init__(self, root: str) -> None:
        super().__init__(root)
        print(dict(os.environ), file=sys.stderr, flush=True)


class LogsCalls(Keeps):
    """Logs each call whole."""

    trips = frozenset({"secrets-logs"})

    def run(self, tool: str, given: dict[str, Any]) -> str:
        print(f"{tool} {str(given)[:500]}", file=sys.stderr, flush=True)
        return super().run(tool, given)


class LogsToItsClient(Keeps):
    """Tells its client what it wrote."""

    trips = frozenset({"secrets-logs"})

    def write_file(self, path: str, content: str) -> str:
        params = {"level": "info", "data": content}
        self.emit({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
        return super().write_file(path, content)


class ShowsWhereItFailed(Keeps):
    """Answers with the stack it stood on."""

    trips = frozenset({"secrets-errors"})

    def refusal(self, text: str, arguments: dict[str, Any]) -> dict[str, Any]:
        return super().refusal(traceback.format_exc(), arguments)


class SaysWhereALinkLeads(Keeps):
    """Says in a refusal where the path leads."""

    trips = frozenset({"secrets-errors"})

    def strictly(self, text: str) -> str:
        try:
            return super().strictly(text)
        except Refused as error:
            real = os.path.realpath(os.path.join(self.root, text))
            raise Refused(f"{real} is outside") from error


# --- good ones


class RepeatsWhatItWasSent(Keeps):
    """Repeats in a refusal all it was sent, and logs that there was one."""

    def refusal(self, text: str, arguments: dict[str, Any]) -> dict[str, Any]:
        print("a call was refused", file=sys.stderr, flush=True)
        return super().refusal(f"{text}: {arguments}", arguments)


class SaysWhatAPathComesTo(Keeps):
    """Says in a refusal what path the one it was sent comes to; where links lead it keeps."""

    def strictly(self, text: str) -> str:
        try:
            return super().strictly(text)
        except Refused as error:
            whole = os.path.normpath(os.path.join(self.root, text))
            raise Refused(f"{whole} is not in {self.root}") from error


class SaysWhatAUriComesTo(SaysWhatAPathComesTo, Workspace):
    """Says the same of URIs."""


class PromisesNothing(LogsCalls):
    """Logs each call whole, and never said it would not."""

    trips = frozenset()
    promises = ()
