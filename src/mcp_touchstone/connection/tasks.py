"""A task of the server (2025-11-25): create it, poll it, wait for its end, cancel it."""

from collections.abc import Mapping
from typing import Any, Final

from mcp_touchstone.connection.client_tasks import TERMINAL
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.pending import Pending
from mcp_touchstone.connection.server_profile import Request
from mcp_touchstone.wire.reply import Reply

TTL: Final = 60_000
"""Requested lifetime of a task, in milliseconds."""

LONGEST_POLL: Final = 0.5
"""Greatest seconds between two polls, even if pollInterval is longer."""


class Task:
    """One task, from the request that creates it.

    Attributes:
        created: the answer to that request; normally a CreateTaskResult.
        states: its states in the answers, in order.
        lasted: seconds after which it was last observed unfinished, or not created yet.
    """

    def __init__(
        self,
        connection: Connection,
        request: Request,
        *,
        ttl: int | None = TTL,
        token: Any = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        """Request it; ``more`` are further members of ``task``."""
        self._connection = connection
        wish = {**({} if ttl is None else {"ttl": ttl}), **(more or {})}
        params = {**request.params, "task": wish}
        self.request = Pending(connection, Request(request.method, params), token=token)
        self.states: list[dict[str, Any]] = []
        self._wanted: Pending | None = None
        self.created = self.request.reply()
        self.lasted = self.request.age
        found = (self.created.result or {}).get("task")
        self._note(found)

    @property
    def id(self) -> str:
        """Its id; empty if no task was created."""
        found = self.states[0].get("taskId") if self.states else None
        return found if isinstance(found, str) else ""

    @property
    def status(self) -> Any:
        """Its last status; None if no task was created."""
        return self.states[-1].get("status") if self.states else None

    @property
    def ended(self) -> bool:
        """Whether its last status is terminal."""
        return isinstance(self.status, str) and self.status in TERMINAL

    def get(self, meta: Mapping[str, Any] | None = None) -> Reply:
        """Poll it once."""
        asked = self.request.age
        reply = self._ask("tasks/get", meta)
        self._note(reply.result)
        if reply.result is not None and not self.ended:
            self.lasted = asked
        return reply

    def cancel(self) -> Reply:
        """Cancel it."""
        reply = self._ask("tasks/cancel")
        self._note(reply.result)
        return reply

    def result(self, seconds: float | None = None) -> Reply:
        """Wait for its result."""
        return self.start_result().reply(seconds)

    def start_result(self) -> Pending:
        """Request the result without waiting; later calls return the same request."""
        if self._wanted is None:
            self._wanted = Pending(self._connection, Request("tasks/result", {"taskId": self.id}))
        return self._wanted

    def wait(self, seconds: float) -> bool:
        """Poll until it has ended; return whether it ended in time.

        If it needs input, its result is requested, which lets the server send its request.
        """
        begun = self.request.age
        while self.id and not self.ended:
            if self.status == "input_required":
                self.start_result()
            left = seconds - (self.request.age - begun)
            if left <= 0 or self._connection.gone:
                break
            self._connection.quiet(min(self._interval(), left))
            if not self.get().answered:
                break
        return self.ended

    def _interval(self) -> float:
        wish = self.states[-1].get("pollInterval") if self.states else None
        if not isinstance(wish, int | float) or isinstance(wish, bool):
            return 0.05
        return min(LONGEST_POLL, max(0.01, wish / 1000))

    def _ask(self, method: str, meta: Mapping[str, Any] | None = None) -> Reply:
        return self._connection.request(method, {"taskId": self.id}, meta=meta, required=False)

    def _note(self, state: Any) -> None:
        if isinstance(state, dict) and "status" in state:
            self.states.append(state)
