"""Servers that leak secrets; and good ones. Their guard is correct."""

import os
import sys
import traceback
from typing import Any

from tests.fakes.resources import Workspace
from tests.fakes.server import Guard, Refused, fakes, has


class Keeps(Guard, promises=("redaction",), families=("secrets",)):
    """Promises to redact."""


class LogsItsEnvironment(Keeps, trips={"secrets-environment"}):
    """Writes its environment to stderr."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        print(dict(os.environ), file=sys.stderr, flush=True)


class LogsCalls(Keeps, trips={"secrets-logs"}):
    """Logs each call completely."""

    def run(self, tool: str, given: dict[str, Any]) -> str:
        print(f"{tool} {str(given)[:500]}", file=sys.stderr, flush=True)
        return super().run(tool, given)


class LogsToItsClient(Keeps, trips={"secrets-logs"}):
    """Sends its client log messages with written content."""

    def write_file(self, path: str, content: str) -> str:
        params = {"level": "info", "data": content}
        self.emit({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
        return super().write_file(path, content)


class NamesTheTargetOfALink(Keeps, trips={"secrets-errors"}):
    """Names the resolved path in a refusal."""

    def strictly(self, text: str) -> str:
        try:
            return super().strictly(text)
        except Refused as error:
            real = os.path.realpath(os.path.join(self.root, text))
            raise Refused(f"{real} is outside") from error


class RepeatsTheRequest(Keeps):
    """Repeats the arguments in a refusal, and logs only the fact."""

    def refusal(self, text: str, arguments: dict[str, Any]) -> dict[str, Any]:
        print("a call was refused", file=sys.stderr, flush=True)
        return super().refusal(f"{text}: {arguments}", arguments)


class NamesTheNormalisedPath(Keeps):
    """Names the normalised path in a refusal, without resolving links."""

    def strictly(self, text: str) -> str:
        try:
            return super().strictly(text)
        except Refused as error:
            whole = os.path.normpath(os.path.join(self.root, text))
            raise Refused(f"{whole} is not in {self.root}") from error


class NamesTheNormalisedUri(NamesTheNormalisedPath, Workspace):
    """Names the normalised path of a URI in a refusal."""


fakes(__name__)(
    ShowsItsConfiguration=has(
        Keeps,
        "Puts its configuration into an error.",
        "secrets-environment",
        refusal=lambda self, text, arguments: Keeps.refusal(
            self, f"{text} ({os.environ.get('MCP_CANARY_SECRET')})", arguments
        ),
    ),
    ShowsItsStackInErrors=has(
        Keeps,
        "Answers with its stack trace.",
        "secrets-errors",
        refusal=lambda self, text, arguments: Keeps.refusal(
            self, traceback.format_exc(), arguments
        ),
    ),
    PromisesNothing=has(
        LogsCalls,
        "Logs each call completely, and does not promise otherwise.",
        trips=frozenset(),
        promises=(),
    ),
)
