"""Policies for the answers of a client to requests of the server: params -> answer. Pure.

``answer.accept()``, ``answer.decline()``, ``answer.silence()`` and so on make policies for a
``Client``; a suite file reads ``Client(elicitation=answer.decline())``.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from mcp_touchstone.samples.from_schema import form

METHOD_NOT_FOUND: Final = -32601


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of the client to one request of the server.

    Attributes:
        body: ``{"result": ...}`` or ``{"error": ...}``; None means no answer.
        delay: seconds until it is sent.
    """

    body: Mapping[str, Any] | None
    delay: float = 0.0


Policy = Callable[[Mapping[str, Any]], Answer]
"""Function: params of the server's request -> answer."""


def give(result: Any) -> Policy:
    """Answer with this result, even one of a wrong shape."""
    return lambda _params: Answer({"result": result})


def refuse(code: int = -1, message: str = "the user refused", **data: Any) -> Policy:
    """Answer with an error."""
    more = {"data": data} if data else {}
    return lambda _params: Answer({"error": {"code": code, "message": message, **more}})


def silence() -> Policy:
    """Never answer."""
    return lambda _params: Answer(None)


def late(seconds: float, policy: Policy) -> Policy:
    """Answer as another policy does, after a delay in seconds."""
    return lambda params: replace(policy(params), delay=seconds)


def in_turn(*policies: Policy) -> Policy:
    """Answer the first request by the first policy, and so on; repeat the last one."""
    rest: Iterator[Policy] = iter(policies[:-1])

    def policy(params: Mapping[str, Any]) -> Answer:
        turn = next(rest, policies[-1])
        return turn(params)

    return policy


# --- elicitation


def accept(content: Any = None) -> Policy:
    """Accept an elicitation: a form with ``content``, by default made from its schema."""

    def policy(params: Mapping[str, Any]) -> Answer:
        if params.get("mode") == "url":
            return Answer({"result": {"action": "accept"}})
        filled = form(params.get("requestedSchema")) if content is None else content
        return Answer({"result": {"action": "accept", "content": filled}})

    return policy


def decline() -> Policy:
    """Decline an elicitation."""
    return give({"action": "decline"})


def dismiss() -> Policy:
    """Cancel an elicitation, as a user who closes the window."""
    return give({"action": "cancel"})


# --- sampling


def say(text: str = "The answer is forty-two.") -> Policy:
    """Answer a sampling request with a message of the model."""
    return give(
        {
            "role": "assistant",
            "content": {"type": "text", "text": text},
            "model": "touchstone-model",
            "stopReason": "endTurn",
        }
    )


def use_tools(calls: int = 1) -> Policy:
    """Answer a sampling request with calls of the first offered tool.

    The ids differ from round to round. A request that offers no tool gets a plain message.
    """
    rounds = 0

    def policy(params: Mapping[str, Any]) -> Answer:
        nonlocal rounds
        rounds += 1
        tools = params.get("tools")
        tool = tools[0] if isinstance(tools, list) and tools else None
        if not isinstance(tool, dict):
            return say()(params)
        use = {
            "type": "tool_use",
            "name": tool.get("name"),
            "input": form(tool.get("inputSchema")),
        }
        return Answer(
            {
                "result": {
                    "role": "assistant",
                    "content": [
                        {**use, "id": f"touchstone-{rounds}-{number}"} for number in range(calls)
                    ],
                    "model": "touchstone-model",
                    "stopReason": "toolUse",
                }
            }
        )

    return policy


# --- roots


def offer(*uris: str) -> Policy:
    """Answer roots/list with these roots."""
    return give({"roots": [{"uri": uri, "name": "root"} for uri in uris]})
