"""A reference server that breaks a rule once or always.

Run it by hand: ``python tests/flaky_server.py FAULT ROOT``. It counts in a file of its root.
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.mutants.kit import Fault, Json, Out, run


def is_empty_ping(request: Json) -> bool:
    return request.get("method") == "ping" and request.get("params") == {}


class FailsAlways(Fault):
    """Refuses every ping with an empty params."""

    def said(self, message: Any, request: Json) -> Out:
        if is_empty_ping(request):
            error = {"code": -32603, "message": "busy"}
            return {"jsonrpc": "2.0", "id": message["id"], "error": error}
        return message  # type: ignore[no-any-return]


class FailsOnce(FailsAlways):
    """Refuses the first ping of a session, the first time anybody sends one."""

    def said(self, message: Any, request: Json) -> Out:
        mark = self.root / "refused"
        if is_empty_ping(request) and not mark.exists():
            mark.touch()
            return super().said(message, request)
        return message  # type: ignore[no-any-return]


class AnswersTwiceOnce(Fault):
    """Answers the first ping with an empty params a second time, the first time one is sent."""

    def said(self, message: Any, request: Json) -> Out:
        mark = self.root / "answered"
        if is_empty_ping(request) and not mark.exists():
            mark.touch()
            self.emit(message)
        return message  # type: ignore[no-any-return]


class RunsUnknownTools(FailsAlways):
    """Refuses every ping with an empty params, and answers a call of an unknown tool."""

    def said(self, message: Any, request: Json) -> Out:
        unknown = message.get("error", {}).get("code") == -32602
        if request.get("method") == "tools/call" and unknown:
            result: Json = {"content": []}
            return {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return super().said(message, request)


if __name__ == "__main__":
    kinds = (FailsOnce, FailsAlways, AnswersTwiceOnce, RunsUnknownTools)
    faults = {kind.__name__: kind for kind in kinds}
    sys.exit(run(faults[sys.argv[1]](), sys.argv[2]))
