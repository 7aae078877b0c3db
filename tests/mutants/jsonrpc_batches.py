"""Servers that break a rule of basic/jsonrpc about batches."""

import json
import os
from typing import Any, ClassVar

from tests.mutants.http_kit import Extra, HttpFault
from tests.mutants.kit import (
    MODERN,
    AskingTool,
    Fault,
    Json,
    Out,
    SaysMore,
    control,
    has,
    mutant,
    mutants,
)

BATCHES = "2025-03-26"
INVALID = {"code": -32600, "message": "Invalid request"}


def refusal(code: int = -32600) -> Json:
    """Make an error for a message without a readable id."""
    return {"jsonrpc": "2.0", "id": None, "error": {**INVALID, "code": code}}


def requests(batch: list[Any]) -> list[Json]:
    """Return the requests of a batch."""
    return [one for one in batch if isinstance(one, dict) and "method" in one and "id" in one]


def is_notifications(batch: list[Any]) -> bool:
    """Whether a batch holds notifications and nothing else."""
    return bool(batch) and all(isinstance(one, dict) and "id" not in one for one in batch)


def has_invalid(batch: list[Any]) -> bool:
    """Whether a batch has a member that is no object."""
    return any(not isinstance(one, dict) for one in batch)


class Batching(Fault):
    """Handles batches in its own way."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, list) and self.on_batch(message):
            return None
        return line

    def on_batch(self, batch: list[Any]) -> bool:
        """Handle a batch, or say False to leave it to the reference server."""
        raise NotImplementedError


mutants("jsonrpc-batch-receive", of=Batching, revision=BATCHES)(
    DropsBatches=has(
        "Does not answer batches, like the official SDKs.",
        on_batch=lambda self, batch: bool(requests(batch)),
    )
)


@mutant("jsonrpc-batch-receive", revision=BATCHES)
class AnswersTheFirstOfABatch(Batching):
    """Serves the first member of a batch of requests and drops the others."""

    def on_batch(self, batch: list[Any]) -> bool:
        if has_invalid(batch) or not requests(batch):
            return False
        self.pass_on(batch[0])
        return True


mutants("jsonrpc-batch-members-independent", of=Batching, revision=BATCHES)(
    LosesABatchOverOneMember=has(
        "Drops a whole batch because of one invalid member.",
        on_batch=lambda self, batch: has_invalid(batch),
    )
)


@mutant("jsonrpc-batch-members-independent", revision=BATCHES, outcome="warn")
class RefusesABatchOverOneMember(Batching):
    """Refuses a whole batch because of one invalid member."""

    def on_batch(self, batch: list[Any]) -> bool:
        if has_invalid(batch):
            self.emit(refusal())
            return True
        return False


@control("jsonrpc-batch-receive", revision=BATCHES)
class RefusesABatchWithAnUnknownNotification(Batching):
    """Refuses an array with a notification that the protocol does not define, as a Go server."""

    def on_batch(self, batch: list[Any]) -> bool:
        methods = [str(one.get("method")) for one in batch if isinstance(one, dict)]
        if any(method.startswith("notifications/x-") for method in methods):
            self.emit(refusal())
            return True
        return False


@mutant("jsonrpc-batch-members-independent", revision=BATCHES, outcome="warn")
class RefusesABatchOverOneMemberWithoutAnError(HttpFault):
    """Refuses a whole batch because of one invalid member by status 400 without a body."""

    is_mixed = False

    def _body(self) -> bytes:
        body = super()._body()
        batch = json.loads(body) if body.startswith(b"[") else None
        self.is_mixed = isinstance(batch, list) and has_invalid(batch)
        return b"[" if self.is_mixed else body

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        return (400, b"", extra) if self.is_mixed else (status, body, extra)


@mutant("jsonrpc-batch-members-independent", revision=BATCHES, outcome="warn")
class IgnoresInvalidMembers(Batching):
    """Serves the valid members of a batch and ignores the invalid ones."""

    def on_batch(self, batch: list[Any]) -> bool:
        if has_invalid(batch):
            self.pass_on([one for one in batch if isinstance(one, dict)])
            return True
        return False


@mutant("jsonrpc-batch-notifications-only", revision=BATCHES)
class AnswersNotificationsWithAnEmptyArray(Batching):
    """Answers a batch of notifications with an empty array."""

    def on_batch(self, batch: list[Any]) -> bool:
        if is_notifications(batch):
            self.emit([])
        return False


@mutant("jsonrpc-batch-notifications-only", revision=BATCHES)
class RefusesABatchOfNotificationsAlone(Batching):
    """Serves batches, and answers a batch of notifications with an error."""

    def on_batch(self, batch: list[Any]) -> bool:
        if is_notifications(batch):
            self.emit(refusal(-32600))
        return is_notifications(batch)


mutants("jsonrpc-batch-notifications-only", of=Batching, revision=BATCHES)(
    DiesOfABatchWithoutRequests=has(
        "Exits at a batch without requests.",
        on_batch=lambda self, batch: os._exit(1) if is_notifications(batch) else False,
    )
)


@mutant("jsonrpc-batch-empty", revision=BATCHES)
class AnswersAnEmptyBatchWithAnEmptyArray(Batching):
    """Answers an empty array with an empty array."""

    def on_batch(self, batch: list[Any]) -> bool:
        if not batch:
            self.emit([])
        return not batch


@mutant("jsonrpc-batch-empty", revision=BATCHES)
class WrapsTheRefusalOfAnEmptyBatch(Batching):
    """Answers an empty array with an array that holds the error."""

    def on_batch(self, batch: list[Any]) -> bool:
        if not batch:
            self.emit([refusal()])
        return not batch


mutants("jsonrpc-batch-empty", of=Batching, revision=BATCHES)(
    DiesOfAnEmptyBatch=has(
        "Exits at an empty array.", on_batch=lambda self, batch: os._exit(1) if not batch else False
    )
)
mutants("jsonrpc-batch-empty", of=Batching, revision=BATCHES, outcome="warn")(
    DropsAnEmptyBatch=has("Does not answer an empty array.", on_batch=lambda self, batch: not batch)
)


@mutant("jsonrpc-batch-empty", revision=BATCHES, outcome="warn")
class RefusesAnEmptyBatchAsUnreadable(Batching):
    """Answers an empty array with -32700."""

    def on_batch(self, batch: list[Any]) -> bool:
        if not batch:
            self.emit(refusal(-32700))
        return not batch


mutants("jsonrpc-batch-send", of=SaysMore, revision=BATCHES)(
    SendsAnEmptyBatch=has(
        "Sends its outgoing batch even if it is empty.", more=lambda self: self.emit([])
    )
)


@mutant("jsonrpc-batch-send", revision=BATCHES)
class MixesItsBatches(AskingTool):
    """Puts a response and a request of its own into one array."""

    def on_ask(self, request: Json) -> None:
        result = {"content": [{"type": "text", "text": "nothing to ask"}]}
        ping = {"jsonrpc": "2.0", "id": f"mine-{request['id']}", "method": "ping"}
        self.emit([{"jsonrpc": "2.0", "id": request["id"], "result": result}, ping])


@mutant("jsonrpc-no-batch-output")
class WrapsAnAnswer(AskingTool):
    """Writes its answer to a call as an array of one."""

    def on_ask(self, request: Json) -> None:
        result = {"content": [{"type": "text", "text": "nothing to ask"}]}
        self.emit([{"jsonrpc": "2.0", "id": request["id"], "result": result}])


@mutant("jsonrpc-no-batch-output", revision=MODERN)
class AnswersArraysWithArrays(Batching):
    """Serves batches in a revision without batches."""

    waiting: tuple[Any, ...] = ()

    answers: ClassVar[list[Any]] = []

    def on_batch(self, batch: list[Any]) -> bool:
        self.waiting = tuple(one["id"] for one in batch)
        for one in batch:
            self.pass_on(one)
        return True

    def said(self, message: Any, request: Json) -> Out:
        if message.get("id") not in self.waiting:
            return message  # type: ignore[no-any-return]
        self.answers.append(message)
        return self.answers if len(self.answers) == len(self.waiting) else None


mutants("jsonrpc-no-batch-output", of=AnswersArraysWithArrays, revision="2025-06-18")(
    StillAnswersArraysWithArrays="Serves batches one revision after their removal."
)
