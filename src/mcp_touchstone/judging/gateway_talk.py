"""The talk with a gateway: an exchange is a function that talks as a client, in named steps."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any, Final

from mcp_touchstone.catalog.scenario import declare_part
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.raw_http import RawHttp
from mcp_touchstone.judging.expected import Expected
from mcp_touchstone.judging.hops import ExchangeStep, RecordedExchange, cancelled_at
from mcp_touchstone.parts.upstream import Upstream
from mcp_touchstone.transport.channel import StdioChannel
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.framing import list_in, value_in
from mcp_touchstone.wire.transcript import Transcript

MOST_PAGES: Final = 100
"""Pages of a list that are read."""

SOON: Final = 5.0
"""Seconds to wait for what comes at once, such as a sign that a call has begun."""

LOOK: Final = 0.2
"""Seconds between two looks at what our server has heard."""

MOST_ROUNDS: Final = 8
"""Rounds of a call."""


class NoSecondClientError(Exception):
    """A gateway does not serve a second client beside the first."""


class ExchangeTalk:
    """The client of an exchange.

    Args:
        open_: opens a connection of a further client, with a token or none.
        expected: what the gateway is meant to change; nothing without one.
        upstream: returns what our server has heard and said up to now.

    Attributes:
        steps: the steps so far.
        facts: what was measured.
        connections: those of all clients.
    """

    def __init__(
        self,
        open_: Callable[[str], Connection],
        expected: Expected,
        upstream: Callable[[], Sequence[Transcript]],
    ) -> None:
        self._open, self.expected, self._upstream = open_, expected, upstream
        self.connections: list[Connection] = [open_("")]
        self.steps: dict[str, ExchangeStep] = {}
        self.facts: dict[str, Any] = {}
        opening = self.connections[0].opening
        if opening is not None:
            self.steps["opening"] = ExchangeStep(opening.asked, opening.entry, opening.value)

    @property
    def first(self) -> Connection:
        """The connection of the first client."""
        return self.connections[0]

    @property
    def modern(self) -> bool:
        """Whether the stateless era is spoken."""
        return self.first.modern

    def http(self, client: int = 0) -> RawHttp:
        """Return the endpoint of the gateway, for requests that no client sends.

        Raises:
            LookupError: it is on stdio.
        """
        return RawHttp(self.connections[client])

    @property
    def shares(self) -> bool:
        """Whether several clients share what is started: over HTTP."""
        return not isinstance(self.first.channel, StdioChannel)

    def another(self, token: str = "") -> int:
        """Open a further client, over HTTP with a token if there is one; return its number.

        Raises:
            NoSecondClientError: it gets no result of its opening request. A gateway may accept no
                token that its own authorization server did not issue.
        """
        connection = self._open(token)
        self.connections.append(connection)
        if connection.opening is None or connection.opening.result is None:
            raise NoSecondClientError(f"it drops a second client: {connection.opening}")
        return len(self.connections) - 1

    def begin(
        self,
        tool: str,
        token: str,
        client: int = 0,
        id: Any = None,  # noqa: A002  (the protocol's own word)
        **arguments: Any,
    ) -> int:
        """Call a tool, and wait until the call has begun: its progress was reported."""
        line = self.send("tools/call", self.params(tool, **arguments), client, id=id, token=token)
        connection, at = self.connections[client], ("params", "progressToken")

        def begun() -> bool:
            every = (one.value for entry in connection.transcript for one in entry.messages)
            return any(value_in(one, *at) == token for one in every)

        connection.wait(begun, SOON)
        return line

    def cancel(self, line: int, client: int = 0) -> None:
        """Cancel the request on a line."""
        connection = self.connections[client]
        number = connection.transcript[line].value["id"]
        params = {"requestId": number, "reason": "ünïcode"}
        connection.notify("notifications/cancelled", params)

    def heard(self, method: str, line: int, client: int = 0) -> Any:
        """Return the first message of a method after a line of a client; None for none."""
        later = self.connections[client].transcript.since(line)
        every = (message for entry in later for message in entry.messages)
        return next((one.value for one in every if one.method == method), None)

    def hear(self, line: int, *methods: str, client: int = 0) -> None:
        """Wait until a message of each method has come after a line of a client."""
        heard = functools.partial(self.heard, line=line, client=client)
        self.connections[client].wait(lambda: all(map(heard, methods)), SOON)

    def asked(self, method: str, line: int, client: int = 0) -> Any:
        """Wait until our server asks for the call on a line; return the request, None for none."""
        one = self.connections[client]
        heard = functools.partial(self.heard, method, line, client)
        one.wait(lambda: heard() or one.transcript.answer_to(line), SOON)
        return heard()

    def is_cancelled(self, mark: str) -> bool:
        """Return whether our server learnt in time that nobody waits for a call any more."""
        until = now() + SOON
        while (
            found := cancelled_at(RecordedExchange(upstream=self._upstream()), mark)
        ) is None and now() < until:
            self.first.quiet(LOOK)
        return found is not None

    def question(self, what: str, client: int = 0) -> ExchangeStep:
        """Let our server ask, and answer: in a session, or in a second round of 2026-07-28."""
        params = self.params("ask", what=what, mark=f"{what}-{client}")
        return self.rounds(f"ask-{what}", params, client)

    def rounds(self, name: str, params: Mapping[str, Any], client: int = 0) -> ExchangeStep:
        """Call, and answer in each round of 2026-07-28; the steps are NAME-0 ..., and NAME."""
        more: dict[str, Any] = {}
        for number in range(MOST_ROUNDS):
            step = self.ask(f"{name}-{number}", "tools/call", {**params, **more}, client)
            self.steps[name] = step
            if step.result.get("resultType") != "input_required":
                break
            answers = self.connections[client].answers
            filled = answers.filled(answers.client, step.result.get("inputRequests"))
            more = {"inputResponses": filled, "requestState": step.result.get("requestState")}
        return step

    def send(self, method: str, params: Mapping[str, Any], client: int = 0, **more: Any) -> int:
        """Send a request; return its line.

        Args:
            more: ``id``; members of ``_meta`` as ``meta``; a progress token as ``token``.
        """
        connection = self.connections[client]
        meta = {**(connection.meta() if self.modern else {}), **more.get("meta", {})}
        meta |= {"progressToken": more["token"]} if "token" in more else {}
        message = connection.build(method, params, id=more.get("id"), meta=meta or None)
        return connection.say(message, required=False)

    def take(
        self, name: str, line: int, client: int = 0, seconds: float | None = None
    ) -> ExchangeStep:
        """Wait for the answer to a request, and note it as a step."""
        reply = self.connections[client].answer_to(line, seconds, patient=True)
        why, timed_out = reply.why, reply.timed_out
        self.steps[name] = ExchangeStep(line, reply.entry, reply.value, why, timed_out, client)
        return self.steps[name]

    def ask(
        self, name: str, method: str, params: Mapping[str, Any], client: int = 0, **more: Any
    ) -> ExchangeStep:
        """Send a request and wait; ``send`` describes ``more``."""
        return self.take(name, self.send(method, params, client, **more), client)

    def params(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the params of a call of a tool of our server, by its name at the gateway."""
        return {"name": self.expected.prefix + tool, "arguments": arguments}

    def call(self, name: str, tool: str, client: int = 0, **arguments: Any) -> ExchangeStep:
        """Call a tool of our server, and wait."""
        return self.ask(name, "tools/call", self.params(tool, **arguments), client)

    def pages(self, name: str, method: str, member: str, client: int = 0) -> ExchangeStep:
        """Read a list to its end; a gateway may cut it otherwise."""
        pages = [self.ask(name, method, {}, client)]
        cursors = [pages[0].result.get("nextCursor")]
        while isinstance(cursors[-1], str) and cursors[-1] not in cursors[:-1]:
            if len(pages) == MOST_PAGES:
                break
            pages.append(self.ask(name, method, {"cursor": cursors[-1]}, client))
            cursors.append(pages[-1].result.get("nextCursor"))
        whole = replace(pages[0], timed_out=pages[-1].timed_out)
        if whole.value and member in whole.result:
            items = [one for page in pages for one in list_in(page.result, member)]
            whole = replace(whole, value={**whole.value, "result": {**whole.result, member: items}})
        self.steps[name] = whole
        return whole

    def settle(self, client: int = 0) -> None:
        """Wait until messages that follow an answer have come."""
        self.connections[client].quiet()


Exchange = Callable[[ExchangeTalk], None]


@dataclass(frozen=True, slots=True)
class ExchangePlan:
    """An exchange.

    Attributes:
        part: our server.
        once: whether it is held in one revision only, as it takes long.
        several: whether it needs several servers.
    """

    run: Exchange
    part: type[Upstream]
    once: bool
    several: bool

    @property
    def chapter(self) -> str:
        """The chapter of its file, whose rules on all traffic read it if nothing else is held."""
        return PurePath(self.run.__code__.co_filename).stem


def exchange(
    name: str, part: type[Upstream] = Upstream, *, once: bool = False, several: bool = False
) -> Callable[[Exchange], Exchange]:
    """Declare an exchange; ``ExchangePlan`` describes it.

    Raises:
        CatalogueError: there is such an exchange.
    """

    def declare(run: Exchange) -> Exchange:
        declare_part(name, ExchangePlan(run, part, once, several))
        return run

    return declare
