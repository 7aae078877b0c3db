"""Servers that break a rule of basic/jsonrpc about lines that are no request."""

import os
from typing import Any

from tests.mutants.kit import MODERN, Fault, Json, has, mutant, mutants

INVALID = {"code": -32600, "message": "Invalid request"}
UNREADABLE = {"code": -32700, "message": "Parse error"}


def without_id(error: Json) -> Json:
    """Make an error for a line whose id could not be read."""
    return {"jsonrpc": "2.0", "id": None, "error": error}


class BadJson(Fault):
    """Handles lines that are not JSON in its own way."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if message is None:
            self.on_bad_json()
            return None
        return line

    def on_bad_json(self) -> None:
        """Answer it."""


mutants("jsonrpc-parse-error", of=BadJson)(
    DiesOfBadJson=has("Exits at a line that is not JSON.", on_bad_json=lambda *_: os._exit(1)),
    AcknowledgesBadJson=has(
        "Answers a line that is not JSON with a result.",
        on_bad_json=lambda self: self.emit({"jsonrpc": "2.0", "id": None, "result": {}}),
    ),
)


@mutant("jsonrpc-parse-error", outcome="warn")
class LosesTheLineAfterBadUtf8(Fault):
    """Answers bytes that are not UTF-8 with -32700, and drops the next line with them."""

    spoilt = False

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if b"\xff" in line:
            self.spoilt = True
            return None
        if self.spoilt:
            self.spoilt = False
            self.emit(without_id(UNREADABLE))
            return None
        return line


@mutant("jsonrpc-parse-error", revision=MODERN)
class HangsAfterBadJson(BadJson):
    """Never finds the end of a broken line, and appends all further lines to it."""

    deaf = False

    def heard(self, line: bytes, message: Any) -> bytes | None:
        return None if self.deaf else super().heard(line, message)

    def on_bad_json(self) -> None:
        self.deaf = True


mutants("jsonrpc-parse-error", of=BadJson, outcome="warn")(
    RefusesBadJsonAsABadRequest=has(
        "Answers a line that is not JSON with -32600.",
        on_bad_json=lambda self: self.emit(without_id(INVALID)),
    )
)
mutants("jsonrpc-error-id-unreadable", of=BadJson)(
    InventsAnId=has(
        "Answers a line that is not JSON under an invented id.",
        on_bad_json=lambda self: self.emit({**without_id(UNREADABLE), "id": "unknown"}),
    ),
    RepeatsTheLastId=has(
        "Answers a line that is not JSON under the id of the last readable request.",
        MODERN,
        on_bad_json=lambda self: self.emit({**without_id(UNREADABLE), "id": [*self.asked][-1]}),
    ),
)


def odd(message: Any) -> bool:
    """Whether a message of the client is JSON, but none of its requests or notifications."""
    if not isinstance(message, dict):
        return message is not None
    if "result" in message or "error" in message:
        return False
    sound = isinstance(message.get("method"), str) and message.get("jsonrpc") == "2.0"
    return not sound or not isinstance(message.get("params", {}), dict)


class OddRequest(Fault):
    """Handles JSON that is not a request in its own way."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if odd(message) and self.on_odd(message):
            return None
        return line

    def on_odd(self, message: Any) -> bool:
        """Answer it, or say False to leave it to the reference server."""
        return False


@mutant("jsonrpc-invalid-request")
class AnswersObjectsWithoutAMethod(OddRequest):
    """Answers an object without a method with an empty result."""

    def on_odd(self, message: Any) -> bool:
        if isinstance(message, dict) and "method" not in message and "id" in message:
            self.answer(message, {})
            return True
        return False


mutants("jsonrpc-invalid-request", of=OddRequest, revision=MODERN)(
    DiesOfScalarParams=has(
        "Exits if params is not an object.",
        on_odd=lambda self, message: (
            os._exit(1)
            if isinstance(message, dict) and isinstance(message.get("params"), str)
            else False
        ),
    )
)
mutants("jsonrpc-invalid-request", of=OddRequest, outcome="warn")(
    DropsInvalidRequests=has(
        "Does not answer JSON that is not a request, like the official SDKs.",
        on_odd=lambda *_: True,
    )
)


@mutant("jsonrpc-invalid-request", outcome="warn")
class ExitsAfterAnInvalidRequest(OddRequest):
    """Answers JSON that is not a request with -32600 and exits."""

    def on_odd(self, message: Any) -> bool:
        if isinstance(message, dict) and "id" in message:
            self.refuse(message, -32600, "Invalid request")
            os._exit(0)
        return False


@mutant("jsonrpc-invalid-request", revision="2024-11-05", outcome="warn")
class IgnoresJsonrpc(OddRequest):
    """Serves requests with any jsonrpc member."""

    def on_odd(self, message: Any) -> bool:
        if isinstance(message, dict) and message.get("method") == "ping":
            self.pass_on({**message, "jsonrpc": "2.0", "params": {}})
            return True
        return False


@mutant("jsonrpc-invalid-request", revision=MODERN, outcome="warn")
class ServesMembersOfArrays(OddRequest):
    """Serves the members of an array like separate lines."""

    def on_odd(self, message: Any) -> bool:
        for member in message if isinstance(message, list) else []:
            self.pass_on(member)
        return isinstance(message, list)


@mutant("jsonrpc-error-id-recoverable")
class RefusesUnderAnotherId(OddRequest):
    """Answers a request with a numeric method under an id of its own."""

    def on_odd(self, message: Any) -> bool:
        if isinstance(message, dict) and isinstance(message.get("method"), int):
            self.emit({**without_id(INVALID), "id": -1})
            return True
        return False


@mutant("jsonrpc-error-id-recoverable", revision=MODERN, outcome="warn")
class RefusesUnderIdNull(OddRequest):
    """Answers a request with a numeric method under the id null."""

    def on_odd(self, message: Any) -> bool:
        if isinstance(message, dict) and isinstance(message.get("method"), int):
            self.emit(without_id(INVALID))
            return True
        return False
