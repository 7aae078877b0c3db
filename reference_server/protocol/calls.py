"""One request in progress, as its handler uses it."""

from __future__ import annotations

import os
import threading
import time

from . import modern
from .envelope import declares, meta_of
from .errors import INTERNAL_ERROR, CancelledError, ProtocolError
from .framing import encode
from .printable import printable
from .progress import Progress
from .revisions import is_modern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol, TypeAlias

    from .legacy import Session
    from .messages import Id, Params, Request
    from .rounds import Round

    Deliver: TypeAlias = Callable[[bytes | None], None]
    Handler: TypeAlias = Callable[["Call"], dict[str, Any] | None]
    Outcome: TypeAlias = dict[str, Any] | ProtocolError | None
    Questioned: TypeAlias = Mapping[str, tuple[str, Params]]
    Waiting: TypeAlias = Callable[[bool], None]

    class Outlet(Protocol):
        """What a call needs of its connection."""

        def send(self, line: bytes) -> None: ...

        def settle(self, call: Call, line: bytes | None, outcome: Outcome = None) -> None: ...

        def is_open(self, call: Call) -> bool: ...

        def ask(self, call: Call, questions: Questioned, bound_to: bytes) -> dict[str, Params]: ...

        def log(self, call: Call, level: str, data: Any, logger: str | None) -> None: ...


_LONGEST_NAME = 64
_LONGEST_VERSION = 32


class Method:
    """One request method of one or more revisions.

    Attributes:
        handler: Takes the call and returns its result. It may raise ProtocolError or
            CancelledError. It may also return None and call ``finish`` on the call later, from any
            thread.
        slow: True if the handler may block; it then runs on a worker thread.
        endless: True if the answer may be missing until the connection ends, as for
            ``subscriptions/listen``. The end of input does not wait for it.
        cacheable: True if 2026-07-28 requires caching hints in the result
            (server/utilities/caching#cacheable-results).
    """

    __slots__ = ("cacheable", "endless", "handler", "name", "slow")

    def __init__(
        self, name: str, handler: Handler, *, slow: bool, endless: bool, cacheable: bool
    ) -> None:
        self.name = name
        self.handler = handler
        self.slow = slow
        self.endless = endless
        self.cacheable = cacheable


class Call:
    """One request in progress.

    It is answered at most once, by ``finish`` or ``fail``. A cancelled request is not answered.

    Attributes:
        id: The client's id; ``5`` and ``"5"`` are two ids.
        request_id: The server's id, in every log line, audit line and error of this request.
        client_capabilities: Declared by the client, in the session or with this request.
        session: The legacy session, or None for a request without one.
        deliver: Takes the encoded answer, or None for no answer.
        started: Time at which the request was read, by ``time.monotonic()``.
        brought: State and answers of a 2026-07-28 retry; None for a first request.
    """

    def __init__(
        self,
        outlet: Outlet,
        request: Request,
        method: Method,
        revision: str,
        *,
        session: Session | None,
        deliver: Deliver,
    ) -> None:
        self.id: Id = request.id
        self.request_id = new_request_id()
        self.params: Params = request.params
        self.meta = meta_of(request.params)
        self.revision = revision
        self.session = session
        self.method = method
        self.client_capabilities: Params = (
            session.client_capabilities if session else modern.client_capabilities(request)
        )
        self.deliver = deliver
        # Held while a notification of this call is written, so that none can follow its answer.
        self.lock = threading.Lock()
        self.started = time.monotonic()
        self.brought: Round | None = None
        self._outlet = outlet
        self._request = request
        self._progress = Progress(self.meta, revision, self.notify)
        self._cancelled = False
        self._on_cancel: list[Callable[[], None]] = []

    @property
    def who(self) -> str:
        """The client and the request on one line, for an audit: ``"client 1.0 #5"``.

        The name and version of the client are not verified (2026-07-28 basic/index#meta).
        """
        about = self.session.client_info if self.session else self.meta.get(modern.CLIENT_INFO)
        if not about:
            return f"client #{self._shown_id}"
        name = printable(about["name"], _LONGEST_NAME)
        return f"{name} {printable(about['version'], _LONGEST_VERSION)} #{self._shown_id}"

    @property
    def _shown_id(self) -> str:
        if isinstance(self.id, str):
            return '"' + printable(self.id, _LONGEST_NAME) + '"'
        return printable(str(self.id), _LONGEST_NAME)

    @property
    def cancelled(self) -> bool:
        """Whether the client has cancelled the request or closed the connection."""
        return self._cancelled

    def check(self) -> None:
        """Raise an error if the request was cancelled; long work calls this often."""
        if self._cancelled:
            raise CancelledError

    def on_cancel(self, callback: Callable[[], None]) -> None:
        """Call a function once, from any thread, when the request is cancelled.

        If the request is already cancelled, call it at once. It must neither raise nor block.
        """
        with self.lock:
            if not self._cancelled:
                self._on_cancel.append(callback)
                return
        callback()

    def can(self, capability: str, sub: str | None = None) -> bool:
        """Return whether the client can be asked something now.

        The client must have declared the capability and its revision must have it. A session must
        have received ``initialized`` (basic/lifecycle#initialization).

        Args:
            capability: ``elicitation``, ``roots`` or ``sampling``.
            sub: ``form`` or ``url`` of elicitation, ``tools`` or ``context`` of sampling.
        """
        is_ready = self.session is None or self.session.ready
        return is_ready and declares(self.client_capabilities, self.revision, capability, sub)

    def ask(self, key: str, method: str, params: Params, *, bound_to: bytes = b"") -> Params:
        """Ask the client a question and return the answer, after a check of its shape.

        In a session, the question is sent at once and this thread waits. In 2026-07-28, the
        question is the answer to the request, and the handler runs again from its start for the
        retry. Ask therefore before any work that must not be repeated.

        Args:
            key: Name of the question, unique within the request.
            method: ``elicitation/create``, ``sampling/createMessage`` or ``roots/list``.
            params: Its params, ``{}`` for none.
            bound_to: The subject of the question, if it can change before the answer. In
                2026-07-28, an answer is accepted only if the bytes are still the same.

        Raises:
            UnansweredError: A ToolError; the session has not sent a usable answer.
            InputRequired: The request of 2026-07-28 must be answered with the question.
            ProtocolError: -32021, a client of 2026-07-28 has not declared the capability; -32602,
                its answer is invalid.
            CancelledError: The request was cancelled meanwhile; the question is withdrawn.
        """
        return self.ask_together({key: (method, params)}, bound_to=bound_to)[key]

    def ask_together(self, questions: Questioned, *, bound_to: bytes = b"") -> dict[str, Params]:
        """Ask the client several questions, like ``ask``, and return the answers by key.

        Args:
            questions: Method and params by the name of the question. In 2026-07-28, they share one
                round; in a session, they are asked one after the other.
        """
        return self._outlet.ask(self, questions, bound_to)

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress, if the client has asked for it (basic/utilities/progress).

        You can call this often. A value is not sent if it does not exceed the last one or follows
        it too soon.

        Args:
            done: A value that grows from call to call, in any unit.
            total: The value at the end, in the same unit, if it is known.
            message: The current step, for a person; without contents of files.
        """
        self._progress.report(done, total, message)

    def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send the client a log message, if it wants messages of that level (``client_log``).

        Args:
            level: One of ``modern.LOG_LEVELS``.
            data: Any JSON value; never contents of files, nor a path above the root.
            logger: Name of the logger; the server's name by default.
        """
        self._outlet.log(self, level, data, logger)

    def notify(self, method: str, params: Params) -> None:
        """Send a notification for this request; do nothing once the request is settled."""
        line = encode({"jsonrpc": "2.0", "method": method, "params": self.related(params)})
        with self.lock:
            if self._is_open():
                self._outlet.send(line)

    def related(self, params: Params) -> Params:
        """Return the params of a server message; a detached call adds its ``_meta``."""
        return params

    def waiting(self, waits: bool) -> None:
        """Record the start or the end of a wait for the client."""

    def detach(self, meta: Params, waiting: Waiting) -> Detached:
        """Return a copy for work that continues after the answer to this call, such as a task.

        Args:
            meta: Members for the ``_meta`` of all its messages.
            waiting: Called with True before a wait for the client's answer to a question, and with
                False afterwards.
        """
        return Detached(self, meta, waiting)

    def finish(self, result: dict[str, Any]) -> None:
        if is_modern(self.revision):
            result = modern.stamp(result, self.method.cacheable, self.revision)
        try:
            line = encode({"jsonrpc": "2.0", "id": self.id, "result": result})
        except (TypeError, ValueError):
            self.fail(ProtocolError(INTERNAL_ERROR, "Internal error: the result is not JSON"))
        else:
            self._outlet.settle(self, line, result)

    def fail(self, error: ProtocolError) -> None:
        refused = {"event": "refused", "method": self.method.name, "code": error.code}
        self.log("notice", {**refused, "request_id": self.request_id})
        member = error.member(self.request_id)
        line = encode({"jsonrpc": "2.0", "id": self.id, "error": member})
        self._outlet.settle(self, line, error)

    def cancel(self) -> None:
        """Ask the work to stop, and send nothing more for this request."""
        self._stop()
        self._outlet.settle(self, None)

    def _stop(self) -> None:
        with self.lock:
            self._cancelled = True
            callbacks, self._on_cancel = self._on_cancel, []
        for callback in callbacks:
            callback()

    def _is_open(self) -> bool:
        return self._outlet.is_open(self)


class Detached(Call):
    """A call whose work continues after its answer; ``close`` or ``cancel`` ends it.

    It has the same request and the same progress token. ``finish`` and ``fail`` must not be called.
    """

    def __init__(self, call: Call, meta: Params, waiting: Waiting) -> None:
        super().__init__(
            call._outlet,  # noqa: SLF001 - a copy
            call._request,  # noqa: SLF001
            call.method,
            call.revision,
            session=call.session,
            deliver=lambda _answer: None,
        )
        self.started = call.started
        self.request_id = call.request_id
        sent = call._progress.sent  # noqa: SLF001
        self._progress = Progress(self.meta, self.revision, self.notify, sent)
        self._meta = meta
        self._waiting = waiting
        self._closed = False

    def close(self) -> None:
        with self.lock:
            self._closed = True

    def cancel(self) -> None:
        self.close()
        self._stop()

    def related(self, params: Params) -> Params:
        return {**params, "_meta": {**params.get("_meta", {}), **self._meta}}

    def waiting(self, waits: bool) -> None:
        self._waiting(waits)

    def _is_open(self) -> bool:
        return not self._closed


def new_request_id() -> str:
    return f"req_{os.urandom(6).hex()}"
