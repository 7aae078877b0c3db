"""Making the server ask: several rounds in 2026-07-28, one request in a session.

first = begin(connection, exchange, client)
second = retry(connection, first)                       as a client should
second = retry(connection, first, state="forged")       as one should not
"""

from dataclasses import dataclass, field
from typing import Any, Final

from mcp_touchstone.client import Client
from mcp_touchstone.connection import Connection
from mcp_touchstone.dossier import Exchange
from mcp_touchstone.questions import Question, input_requests, questions
from mcp_touchstone.reply import Reply

SAME: Final[Any] = object()
"""Stands for what a client has to send: the state as received, the answers that fit."""

MOST: Final = 8
"""Rounds after which nobody waits for a final result any more."""


@dataclass(frozen=True, slots=True)
class Round:
    """One request of several, and what it got.

    Attributes:
        exchange: the request without what the rounds add to it.
        client: who answers.
        sent: the params as they were sent.
        reply: what came back.
    """

    exchange: Exchange
    client: Client
    sent: dict[str, Any]
    reply: Reply

    @property
    def asks(self) -> bool:
        """Whether the result asks for input."""
        return (self.reply.result or {}).get("resultType") == "input_required"

    @property
    def requests(self) -> dict[str, Any]:
        """What it asks for, by key."""
        return input_requests(self.reply.value)

    @property
    def has_state(self) -> bool:
        """Whether it gives a requestState, of whatever type."""
        return "requestState" in (self.reply.result or {})

    @property
    def state(self) -> Any:
        """The requestState; None where there is none."""
        return (self.reply.result or {}).get("requestState")


@dataclass(frozen=True, slots=True)
class Provoked:
    """What came of making the server ask.

    Attributes:
        reply: what the request got in the end.
        questions: what was asked meanwhile.
        rounds: the rounds it took; empty in a session.
    """

    reply: Reply
    questions: list[Question] = field(default_factory=list)
    rounds: list[Round] = field(default_factory=list)


def begin(connection: Connection, exchange: Exchange, client: Client | None = None) -> Round:
    """Send a request that may be answered with a question."""
    who = client or connection.client
    return _send(connection, exchange, who, dict(exchange.params))


def retry(
    connection: Connection,
    before: Round,
    *,
    responses: Any = SAME,
    state: Any = SAME,
    exchange: Exchange | None = None,
    required: bool = False,
) -> Round:
    """Send the request again with the input it was answered with a question for.

    Args:
        connection: where.
        before: the round that asked.
        responses: inputResponses; by default what the client answers; None leaves them out.
        state: requestState; by default as received; None leaves it out.
        exchange: another request to bring it to.
        required: whether its silence is a finding of its own.
    """
    goal = exchange or before.exchange
    params = dict(goal.params)
    if responses is SAME:
        responses = connection.filled(before.client, before.requests) if before.requests else None
    if responses is not None:
        params["inputResponses"] = responses
    if state is SAME:
        state = before.state
    if state is not None:
        params["requestState"] = state
    return _send(connection, goal, before.client, params, required=required)


def rounds(
    connection: Connection, exchange: Exchange, client: Client | None = None, most: int = MOST
) -> list[Round]:
    """Go on until the request has a final answer, or its questions are not answered."""
    found = [begin(connection, exchange, client)]
    while found[-1].asks and len(found) < most:
        last = found[-1]
        filled = connection.filled(last.client, last.requests)  # once: a policy may count
        if set(filled) != set(last.requests):
            break
        found.append(retry(connection, last, responses=filled or None))
    return found


def provoke(
    connection: Connection,
    exchange: Exchange,
    client: Client | None = None,
    *,
    seconds: float | None = None,
) -> Provoked:
    """Make the server ask, let the client answer, and wait for the end, in either era."""
    if client is not None:
        connection.use(client)
    transcript = connection.transcript
    start = len(transcript) if exchange.method else 0
    if not exchange.method:
        connection.wait(lambda: any(questions(transcript)), connection.pace.silence)
        connection.quiet()
        reply = connection.opening or Reply(0, why="the connection was never opened")
        return Provoked(reply, list(questions(transcript)))
    if connection.modern:
        taken = rounds(connection, exchange)
        return Provoked(taken[-1].reply, list(questions(transcript.since(start))), taken)
    reply = connection.request(exchange.method, exchange.params, seconds=seconds, required=False)
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
    exchange: Exchange,
    client: Client,
    params: dict[str, Any],
    *,
    required: bool = False,
) -> Round:
    meta = connection.meta(capabilities=dict(client.capabilities)) if connection.modern else None
    reply = connection.request(exchange.method, params, meta=meta, required=required)
    return Round(exchange, client, params, reply)
