"""One client: reads, parses, routes and answers each of its lines.

    line --framing--> value --messages--> request --legacy/modern--> revision --methods--> handler

This code runs on the reading thread, in the order of the lines. ``initialize`` is therefore
complete before the next line is parsed. Only methods marked slow may run on a worker. The reading
thread runs a slow method itself if no other is running; if it takes long, another thread reads on.
"""

from __future__ import annotations

import functools

from . import modern, opening
from .asking import Asking
from .batches import Batch
from .calls import Call, new_request_id
from .envelope import meta_of
from .errors import (
    INTERNAL_ERROR,
    PARSE_ERROR,
    CancelledError,
    InputRequired,
    ProtocolError,
    invalid_request,
    method_not_found,
)
from .flight import Calls
from .framing import Decoded, decode, encode
from .legacy import Session
from .messages import Notification, Request, Response, Unusable, is_id, read_message
from .revisions import ALL, LATEST_LEGACY, MODERN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from ..settings import Settings
    from .calls import Deliver, Outcome, Questioned
    from .messages import Id, Params
    from .methods import Methods
    from .wire import Wire
    from .workers import Job, Workers

    class Log(Protocol):
        """The operator's log."""

        def debug(self, event: str, **facts: Any) -> None: ...

        def info(self, event: str, **facts: Any) -> None: ...

        def error(self, event: str, **facts: Any) -> None: ...


BATCHING = "2025-03-26"
"""The one revision that has batches."""

LONGEST_BATCH = 1000
"""Members. With an error for each member, a small line could cause a huge answer."""

_JSON_WHITESPACE = b" \t\r"


class Connection:
    """Handles the messages of one client.

    Args:
        lend: Runs a slow method on the reading thread if possible; returns whether it did.

    Attributes:
        hold: Called with each slow request of the session, if it is set; returns True if it has
            taken the request, to run it later (``roots``).
    """

    def __init__(
        self,
        settings: Settings,
        methods: Methods,
        log: Log,
        *,
        wire: Wire,
        workers: Workers,
        lend: Callable[[Job], bool],
    ) -> None:
        self.methods = methods
        self.workers = workers
        self._lend = lend
        self.calls = Calls()
        self.asking = Asking(wire.send, settings.ask_seconds, settings.state_key)
        self.session = Session()
        self.hold: Callable[[Call], bool] | None = None
        self._wire = wire
        self._log = log
        opening.install(methods, self.session)
        methods.notification("notifications/cancelled", ALL, self._cancelled)

    def receive(self, line: bytes | None) -> None:
        """Handle one line; None stands for a line beyond the limit.

        A blank line is ignored. It contains no message, and many clients end their output with one.
        """
        if line is None:
            error = ProtocolError(PARSE_ERROR, "Parse error: the line is longer than the limit")
            self._answer(None, error, self._send)
            return
        if not line.strip(_JSON_WHITESPACE):
            return
        try:
            decoded = decode(line)
        except ProtocolError as error:
            self._answer(None, error, self._send)
            return
        if isinstance(decoded.value, list):
            self._batch(decoded)
        else:
            self._message(decoded, self._send)

    def _send(self, message: bytes | None) -> None:
        if message is not None:
            self._wire.send(message)

    def _answer(self, request_id: Id | None, error: ProtocolError, deliver: Deliver) -> None:
        """Answer a message for which there is no call."""
        body: dict[str, Any] = {"jsonrpc": "2.0"}
        if request_id is not None:
            body["id"] = request_id
        elif (self.session.revision or LATEST_LEGACY) < LATEST_LEGACY:
            # JSON-RPC requires null. Since 2025-11-25, the schema requires that the member is left
            # out (schema#jsonrpcerrorresponse); earlier schemas do not define this error.
            body["id"] = None
        refused_id = new_request_id()
        body["error"] = error.member(refused_id)
        line = encode(body)
        deliver(line)
        self.calls.finished(None, error, len(line), refused_id)

    def _batch(self, decoded: Decoded) -> None:
        """Handle an array: a batch in a 2025-03-26 session, else one invalid request."""
        members = decoded.value
        problem = decoded.flaw
        if self.session.revision != BATCHING:
            problem = f"only {BATCHING} sessions have batches"
        elif not members:
            problem = "a batch has at least one member"
        elif len(members) > LONGEST_BATCH:
            problem = f"a batch has at most {LONGEST_BATCH} members"
        if problem:
            self._answer(None, invalid_request(problem), self._send)
            return
        batch = Batch(self._wire.send)
        for member in members:
            self._message(Decoded(member), batch.deliver, batch)
        batch.deliver(None)

    def _message(self, decoded: Decoded, deliver: Deliver, batch: Batch | None = None) -> None:
        try:
            message = read_message(decoded)
        except Unusable as unusable:
            if unusable.error is not None:
                if batch:
                    batch.expect()
                self._answer(unusable.id, unusable.error, deliver)
            return
        if isinstance(message, Request):
            if batch:
                batch.expect()
            self._request(message, deliver, in_batch=batch is not None)
        elif isinstance(message, Notification):
            self._notification(message)
        else:
            self._response(message)

    def _request(self, request: Request, deliver: Deliver, *, in_batch: bool) -> None:
        try:
            call = self._route(request, deliver, in_batch=in_batch)
        except ProtocolError as error:
            # With the id of a request in flight, the error would look like its answer.
            in_flight = self.calls.find(request.id)
            self._answer(None if in_flight else request.id, error, deliver)
            return
        if not self.calls.open(call):
            self._answer(None, invalid_request("the id is in use by a request in flight"), deliver)
            return
        self.calls.began(call)
        if not call.method.slow:
            self.run(call)
        elif not (call.session and self.hold and self.hold(call)):
            job = functools.partial(self.run, call)
            here = functools.partial(self.workers.run, job)
            if in_batch or self.workers.busy or not self._lend(here):
                self.workers.submit(job)

    def _route(self, request: Request, deliver: Deliver, *, in_batch: bool) -> Call:
        """Find the revision and the method; raise the error for the answer if there is none."""
        session = None
        if modern.is_modern_request(request):
            if in_batch:
                raise invalid_request("a request with 2026-07-28 fields needs a line of its own")
            revision = modern.revision_for(request)
        else:
            session = self.session
            if in_batch and request.method == "initialize":
                raise invalid_request("initialize cannot be part of a batch")
            revision = session.revision_for(request)
            meta_of(request.params)
        method = self.methods.find(request.method, revision)
        if method is None:
            raise method_not_found(request.method)
        return Call(self, request, method, revision, session=session, deliver=deliver)

    def run(self, call: Call) -> None:
        """Handle a request in flight; never raises."""
        try:
            call.check()
            call.brought = self.asking.brought(call)
            result = call.method.handler(call)
        except CancelledError:
            call.cancel()
        except ProtocolError as error:
            call.fail(error)
        except InputRequired as question:
            call.finish(question.result)
        except Exception as defect:  # noqa: BLE001 - the client must get an answer
            # Only the type, because a message may quote file contents.
            self._log.error("defect", type=type(defect).__name__)
            call.fail(ProtocolError(INTERNAL_ERROR, "Internal error"))
        else:
            if result is not None:
                call.finish(result)

    def _notification(self, message: Notification) -> None:
        """Handle a notification, or ignore an unknown one. Notifications are never answered.

        Modern notifications need not name a revision. Without an open session, the modern table
        applies. It does not have ``initialized``, so an early one has no effect.
        """
        revision = self.session.revision or MODERN[-1]
        listener = self.methods.listener(message.method, revision)
        if listener is None:
            self._log.debug("ignored", notification=message.method[:64])
        else:
            listener(message.params)

    def _cancelled(self, params: Params) -> None:
        """Cancel a request in flight; an unknown, finished or malformed id is ignored.

        Source: basic/utilities/cancellation#error-handling.
        """
        request_id = params.get("requestId")
        call = self.calls.find(request_id) if is_id(request_id) else None
        self._log.info("cancelled", found=call is not None, reason=str(params.get("reason"))[:200])
        if call is not None:
            call.cancel()

    def _response(self, message: Response) -> None:
        """Pass a response to its question, or ignore it. Responses are never answered."""
        if not self.asking.questions.answered(message):
            self._log.debug("ignored", response=True)

    # --- the outlet of its calls

    def send(self, line: bytes) -> None:
        self._wire.send(line)

    def settle(self, call: Call, line: bytes | None, outcome: Outcome = None) -> None:
        self.calls.settle(call, line, outcome)

    def is_open(self, call: Call) -> bool:
        return self.calls.find(call.id) is call

    def ask(self, call: Call, questions: Questioned, bound_to: bytes) -> dict[str, Params]:
        return self.asking.ask(call, questions, bound_to)

    def log(self, call: Call, level: str, data: Any, logger: str | None) -> None:
        self.methods.log_to_client(call, level, data, logger)

    # --- the end

    def input_ended(self) -> None:
        self.asking.questions.close()
