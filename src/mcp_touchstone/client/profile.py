"""The client's side: what it declares, and what it answers when the server asks. Pure.

The same client serves both eras: requests of a session, and the ``inputRequests`` of 2026-07-28.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_touchstone import answer
from mcp_touchstone.answer import Answer, Policy
from mcp_touchstone.client_tasks import ClientTasks

ASKED: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""What a server may ask of a client -> the capability the client has to declare for it."""

_OLDEST: Final[dict[str, Any]] = {"roots": {"listChanged": True}, "sampling": {}}
_TASKS: Final[dict[str, Any]] = {
    "list": {},
    "cancel": {},
    "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
}
CAPABILITIES: Final[dict[str, dict[str, Any]]] = {
    "2024-11-05": _OLDEST,
    "2025-03-26": _OLDEST,
    "2025-06-18": {**_OLDEST, "elicitation": {}},
    "2025-11-25": {
        "roots": {"listChanged": True},
        "sampling": {"tools": {}, "context": {}},
        "elicitation": {"form": {}, "url": {}},
        "tasks": _TASKS,
    },
    "2026-07-28": {
        "roots": {},
        "sampling": {"tools": {}, "context": {}},
        "elicitation": {"form": {}, "url": {}},
    },
}
"""Everything a client can declare, by revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """What one client declares and answers.

    Attributes:
        capabilities: what it declares, in ``initialize`` or in each stateless request.
        elicitation: answers elicitation/create.
        sampling: answers sampling/createMessage.
        roots: answers roots/list; None offers the root of the world.
        tasks: makes tasks of requests that ask for one, and serves them; None makes none.
    """

    capabilities: Mapping[str, Any] = field(default_factory=dict)
    elicitation: Policy = field(default_factory=answer.decline)
    sampling: Policy = field(default_factory=answer.say)
    roots: Policy | None = None
    tasks: ClientTasks | None = None

    def answer(
        self,
        method: str | None,
        params: Any,
        *,
        declared: Mapping[str, Any] | None = None,
        world: Sequence[str] = (),
    ) -> Answer:
        """Answer one request of the server.

        Args:
            method: what it asks.
            params: as it sent them.
            declared: what was declared to it, where that is not what this client declares now.
            world: the roots offered where this client names no others.
        """
        given = params if isinstance(params, dict) else {}
        if method == "ping":
            return Answer({"result": {}})
        if method is not None and method.startswith("tasks/") and self.tasks is not None:
            return self.tasks.serve(method, given)
        needed = ASKED.get(method or "")
        if needed is None or needed not in (self.capabilities if declared is None else declared):
            return answer.refuse(answer.METHOD_NOT_FOUND, f"the client has no {method}")(given)
        policies = {
            "elicitation": self.elicitation,
            "sampling": self.sampling,
            "roots": self.roots or answer.offer(*world),
        }
        said = policies[needed](given)
        if self.tasks is not None and "task" in given:
            return self.tasks.create(said)
        return said

    def fill(self, requests: Any, *, world: Sequence[str] = ()) -> dict[str, Any]:
        """Give the ``inputResponses`` for ``inputRequests``; what is refused is left out."""
        filled = {}
        for key, asked in requests.items() if isinstance(requests, dict) else ():
            value = asked if isinstance(asked, dict) else {}
            said = self.answer(value.get("method"), value.get("params"), world=world)
            if said.body is not None and "result" in said.body:
                filled[key] = said.body["result"]
        return filled


def willing(revision: str) -> Client:
    """Give a client that declares everything a revision knows, and agrees to everything."""
    return Client(
        capabilities=CAPABILITIES[revision],
        elicitation=answer.accept(),
        tasks=ClientTasks() if "tasks" in CAPABILITIES[revision] else None,
    )
