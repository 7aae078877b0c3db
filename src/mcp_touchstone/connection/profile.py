"""A client: its capabilities, and its answers to requests of the server. Pure.

The same client serves both eras: requests of a session, and the ``inputRequests`` of 2026-07-28.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.connection import answers
from mcp_touchstone.connection.answers import Answer, Policy
from mcp_touchstone.connection.client_tasks import ClientTasks
from mcp_touchstone.wire.framing import object_in, value_in

ASKED: Final = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""Method of a server request -> the capability a client must declare for it."""

_OLDEST: Final[dict[str, Any]] = {"roots": {"listChanged": True}, "sampling": {}}
_TASKS: Final[dict[str, Any]] = {
    "list": {},
    "cancel": {},
    "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
}
_CHANGED: Final[dict[str, dict[str, Any]]] = {
    "2024-11-05": _OLDEST,
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
"""All capabilities of a client, by the revision that changed them."""

CAPABILITIES: Final = {
    revision: _CHANGED[max(since for since in _CHANGED if since <= revision)]
    for revision in rev.ALL
}
"""All capabilities of a client, by revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Client:
    """The capabilities and answers of one client.

    Attributes:
        capabilities: its capabilities, for ``initialize`` or for each stateless request.
        elicitation: policy for elicitation/create.
        sampling: policy for sampling/createMessage.
        roots: policy for roots/list; None offers the root of the world.
        tasks: tasks for requests that want one; None makes none.
    """

    capabilities: Mapping[str, Any] = field(default_factory=dict)
    elicitation: Policy = field(default_factory=answers.decline)
    sampling: Policy = field(default_factory=answers.say)
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
            declared: the capabilities declared to the server, if they differ from this client's.
            world: the default roots.
        """
        given = object_in(params)
        if method == "ping":
            return Answer({"result": {}})
        if method is not None and method.startswith("tasks/") and self.tasks is not None:
            return self.tasks.serve(method, given)
        needed = ASKED.get(method or "")
        if needed is None or needed not in (self.capabilities if declared is None else declared):
            return answers.refuse(answers.METHOD_NOT_FOUND, f"the client has no {method}")(given)
        policies = {
            "elicitation": self.elicitation,
            "sampling": self.sampling,
            "roots": self.roots or answers.offer(*world),
        }
        said = policies[needed](given)
        if self.tasks is not None and "task" in given:
            return self.tasks.create(said)
        return said

    def fill(self, requests: Any, *, world: Sequence[str] = ()) -> dict[str, Any]:
        """Return the ``inputResponses`` for ``inputRequests``, without refused ones."""
        filled = {}
        for key, asked in object_in(requests).items():
            method, params = value_in(asked, "method"), value_in(asked, "params")
            said = self.answer(method, params, world=world)
            if said.body is not None and "result" in said.body:
                filled[key] = said.body["result"]
        return filled


def willing(revision: str) -> Client:
    """Return a client that declares all capabilities of a revision, and accepts all requests."""
    return Client(
        capabilities=CAPABILITIES[revision],
        elicitation=answers.accept(),
        tasks=ClientTasks() if "tasks" in CAPABILITIES[revision] else None,
    )
