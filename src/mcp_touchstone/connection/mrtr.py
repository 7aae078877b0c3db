"""Make the server send requests: in several rounds in 2026-07-28, else during one request.

first = begin(connection, request, client)
second = retry(connection, first)                       a correct client
second = retry(connection, first, state="forged")       an incorrect client
"""

from dataclasses import dataclass, field
from typing import Any, Final

from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.profile import Client
from mcp_touchstone.connection.server_profile import Request
from mcp_touchstone.connection.server_requests import Question, input_requests, questions
from mcp_touchstone.wire.reply import Reply

SAME: Final[Any] = object()
"""Placeholder for correct values: the state as received, the matching answers."""

MOST: Final = 8
"""Greatest number of rounds."""


@dataclass(frozen=True, slots=True)
class Round:
    """One request of several, and its reply.

    Attributes:
        request: the request without the members that rounds add.
        sent: the params as sent.
    """

    request: Request
    client: Client
    sent: dict[str, Any]
    reply: Reply

    @property
    def asks(self) -> bool:
        """Whether the result requests input."""
        return (self.reply.result or {}).get("resultType") == "input_required"

    @property
    def requests(self) -> dict[str, Any]:
        """The requested input, by key."""
        return input_requests(self.reply.value)

    @property
    def state(self) -> Any:
        """The requestState; None if there is none."""
        return (self.reply.result or {}).get("requestState")


@dataclass(frozen=True, slots=True)
class Provoked:
    """The result of making the server send requests.

    Attributes:
        reply: the final reply to the request.
        questions: the requests of the server before it.
        rounds: the rounds; empty in a session.
    """

    reply: Reply
    questions: list[Question] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)


def begin(connection: Connection, request: Request, client: Client | None = None) -> Round:
    """Send a request that the server may answer with a request for input."""
    who = client or connection.answers.client
    return _send(connection, request, who, dict(request.params))


def retry(
    connection: Connection,
    before: Round,
    *,
    responses: Any = SAME,
    state: Any = SAME,
    request: Request | None = None,
    required: bool = False,
) -> Round:
    """Send the request again with the input that its reply requests.

    Args:
        before: the round that requested input.
        responses: inputResponses; by default the answers of the client; None omits them.
        state: requestState; by default as received; None leaves it out.
        request: another request to send with them.
        required: whether its silence is a finding of its own.
    """
    goal = request or before.request
    params = dict(goal.params)
    if responses is SAME:
        responses = (
            connection.answers.filled(before.client, before.requests) if before.requests else None
        )
    if responses is not None:
        params["inputResponses"] = responses
    if state is SAME:
        state = before.state
    if state is not None:
        params["requestState"] = state
    return _send(connection, goal, before.client, params, required=required)


def rounds(
    connection: Connection, request: Request, client: Client | None = None, most: int = MOST
) -> list[Round]:
    """Continue until the request has a final answer, or the client does not answer."""
    found = [begin(connection, request, client)]
    while found[-1].asks and len(found) < most:
        last = found[-1]
        filled = connection.answers.filled(last.client, last.requests)  # once: a policy may count
        if set(filled) != set(last.requests):
            break
        found.append(retry(connection, last, responses=filled or None))
    return found


def provoke(connection: Connection, request: Request, client: Client | None = None) -> Provoked:
    """Make the server send requests, let the client answer, and wait, in either era."""
    if client is not None:
        connection.answers.use(client)
    transcript = connection.transcript
    start = len(transcript) if request.method else 0
    if not request.method:
        connection.wait(lambda: any(questions(transcript)), connection.pace.silence)
        connection.quiet()
        reply = connection.opening or Reply(0, why="the connection was never opened")
        return Provoked(reply, list(questions(transcript)))
    if connection.modern:
        taken = rounds(connection, request)
        return Provoked(taken[-1].reply, list(questions(transcript.since(start))), taken)
    reply = connection.request(request.method, request.params, required=False)
    return Provoked(reply, list(questions(transcript.since(start))))


def altered(state: str) -> str:
    """Change one character of a state, in its middle, to another of the same kind."""
    middle = len(state) // 2
    old = state[middle : middle + 1]
    new = "A" if old != "A" else "B"
    if old.isdigit():
        new = "1" if old != "1" else "2"
    return f"{state[:middle]}{new}{state[middle + 1 :]}"


def _send(
    connection: Connection,
    request: Request,
    client: Client,
    params: dict[str, Any],
    *,
    required: bool = False,
) -> Round:
    meta = connection.meta(capabilities=dict(client.capabilities)) if connection.modern else None
    reply = connection.request(request.method, params, meta=meta, required=required)
    return Round(request, client, params, reply)
