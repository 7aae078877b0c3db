"""The actions of a scenario: send, receive, let the client answer. Judges nothing."""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.client.connection import Connection
from mcp_touchstone.client.mrtr import MOST, SAME, Provoked, Round, begin, provoke, retry, rounds
from mcp_touchstone.client.pending import Pending, Window
from mcp_touchstone.client.profile import Client
from mcp_touchstone.client.raw_http import RawHttp
from mcp_touchstone.client.server_profile import Example, Exchange, ServerProfile, Spoken
from mcp_touchstone.client.server_requests import Question, questions
from mcp_touchstone.client.subscriptions import Subscription
from mcp_touchstone.client.tasks import TTL, Task
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.transport.process import Ending
from mcp_touchstone.wire.exchange import Exchange as HttpExchange
from mcp_touchstone.wire.framing import Kind
from mcp_touchstone.wire.lifecycle import LOOSE, Message, Role
from mcp_touchstone.wire.matchers import list_methods
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Entry

PAGES: Final = 50
"""Greatest number of pages read from a list."""


class Broken(Exception):  # noqa: N818  (an outcome, not a fault of ours)
    """The scenario could not continue: a basic action of every server failed."""


Settle = Callable[[str, str], None]
"""(revision, word) -> returns once discovery has decided the word in the revision."""


class Talk:
    """One use of a server: the current connection, and the profile of the server.

    Args:
        connection: a process of the server.
        profile: the profile of the server.
        revision: the judged revision.
        spawn: starts a further process; it takes ``env``, variables to add, and over HTTP a port.
        settle: waits for discovery; returns at once if discovery has ended.
        probable: word -> the example to use before discovery has proved it; None if there is none.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        profile: ServerProfile,
        revision: str,
        spawn: Callable[..., Connection],
        settle: Settle = lambda _revision, _word: None,
        probable: Callable[[str], Example | None] = lambda _word: None,
    ) -> None:
        self.wire = connection
        self._settle = settle
        self.profile = profile
        self.revision = revision
        self._spawn = spawn
        self._start = len(connection.transcript)
        self._used = [connection]
        self._probable = probable

    # --- the server

    @property
    def over_http(self) -> bool:
        """Whether the messages are sent over HTTP."""
        return self.wire.channel.transport is Transport.HTTP

    @property
    def http(self) -> RawHttp:
        """The HTTP endpoint, for requests with other headers or another body than usual.

        Raises:
            LookupError: the messages are sent on stdio.
        """
        return RawHttp(self.wire)

    @property
    def modern(self) -> bool:
        """Whether this revision is stateless."""
        return self.wire.modern

    @property
    def pace(self) -> Pace:
        """The time limits."""
        return self.wire.pace

    @property
    def spoken(self) -> Spoken:
        """The profile of this revision."""
        return self.profile.spoken[self.revision]

    @property
    def opening(self) -> Reply:
        """The answer to initialize or server/discover that opened this connection."""
        if self.wire.opening is None:
            raise Broken("the connection was never opened")
        return self.wire.opening

    def example(self, word: str) -> Example:
        """Return the best example of a word that a judged clause needs: ``callable-tool``.

        Raises:
            LookupError: there is none although a clause uses it: a fault of the suite.
        """
        found = self.examples(word)
        if not found:
            raise LookupError(f"no example of {word}: a clause has to name it in its needs")
        return found[0]

    def examples(self, word: str) -> list[Example]:
        """Return every example of a word, the best first; may be empty."""
        probable = self._probable(word)
        if probable is not None:
            return [probable]
        self._settle(self.revision, word)
        return self.spoken.examples(word)

    def slowdown(self, word: str) -> float:
        """Return how many times its ``seconds`` the example of a word takes; wait for discovery.

        It is 1 unless the scenario began before discovery had measured the example.
        """
        probable = self._probable(word)
        self._settle(self.revision, word)
        found = self.spoken.examples(word)
        if probable is None or not found or found[0].params != probable.params:
            return 1.0
        return found[0].seconds / probable.seconds

    @property
    def root(self) -> SafePath:
        """The folder of the server; a scenario that is ``apart`` may change it."""
        if self.wire.root is None:
            raise Broken("the server was given no folder")
        return self.wire.root

    def here(self, example: Example) -> Example:
        """Return an example with paths in the folder of this process, for scenarios ``apart``."""
        before, after = self.profile.root, str(self.root)
        moved: Any = _replaced(dict(example.params), before, after) if before else example.params
        return replace(example, params=moved)

    # --- sending and receiving

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        id: Any = None,  # noqa: A002  (the protocol's own word)
        meta: Mapping[str, Any] | None = None,
        seconds: float | None = None,
        required: bool = True,
    ) -> Reply:
        """Send a request and wait for its answer; silence is a value, not an exception."""
        return self.wire.request(
            method, params, id=id, meta=meta, seconds=seconds, required=required
        )

    def pages(
        self, method: str, params: Mapping[str, Any] | None = None, *, most: int = PAGES
    ) -> Iterator[Reply]:
        """Yield the pages of a list, until one has no cursor or no result."""
        wanted = dict(params or {})
        for _ in range(most):
            reply = self.request(method, wanted or None)
            yield reply
            cursor = (reply.result or {}).get("nextCursor")
            if not isinstance(cursor, str):
                return
            wanted["cursor"] = cursor

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a notification; return the number of the line."""
        return self.wire.notify(method, params)

    def probe(self, *, required: bool = True) -> Reply:
        """Send a request that every server answers: ping, or server/discover.

        A scenario that judges the answer itself, after a malformed line, sets ``required`` to
        False: otherwise silence would be counted twice.
        """
        return self.wire.probe(required=required)

    def quiet(self, seconds: float | None = None) -> list[Entry]:
        """Listen for some seconds; return the server's lines."""
        return self.wire.quiet(seconds)

    def hears_notifications(self) -> bool:
        """Return whether the server can send messages that belong to no request.

        Over HTTP a session needs the stream of our GET for that, which a server may refuse. Waits
        until the server has answered the GET.

        Source: 2025-11-25 basic/transports#listening-for-messages-from-the-server.
        """
        if not self.over_http or self.modern:
            return True
        exchanges = self.wire.transcript.exchanges

        def answered() -> list[HttpExchange]:
            gets = [e for e in list(exchanges) if e.verb == "GET" and not (e.line or e.crafted)]
            return [one for one in gets if one.status or one.ended is not None]

        found = self.wire.wait(answered, self.pace.reply)
        # Some servers send no status before the first event.
        return not found or found[-1].streams

    def since(self, n: int) -> list[Entry]:
        """Return the entries after line ``n``."""
        return self.wire.transcript.since(n)

    def strays(self, n: int) -> list[tuple[Entry, Message]]:
        """Return the responses after line ``n`` that answer no request of ours.

        A second response to a request is excluded, except an error with the id of a request that
        was answered before line ``n``: some servers use the id of their last request when they
        answer a line they could not read.
        """
        return [
            (entry, message)
            for entry in self.since(n)
            for message in entry.messages
            if message.role in LOOSE
            and message.kind is not Kind.ODD
            and (
                message.role is not Role.SECOND_ANSWER
                or (message.kind is Kind.ERROR and (message.answers or 0) <= n)
            )
        ]

    def instead(self, line: int) -> str:
        """Return the HTTP response that came instead of a message, or ``silence``."""
        return self.wire.channel.silence(line) or "silence"

    def first_response(self, line: int) -> tuple[Reply, list[tuple[Entry, Message]]]:
        """Wait for the answer to the only pending request; return it, and strays instead of it.

        A stray may be the answer with a changed id. It ends the long wait, but the answer itself
        may still come for a short time.
        """

        def came() -> bool:
            answers = (m.answers for entry in self.since(line) for m in entry.messages)
            return line in answers or bool(self.strays(line))

        self.wire.wait(came, self.pace.reply)
        return self.wire.answer_to(line, self.pace.silence), self.strays(line)

    def replace_server(self) -> Connection:
        """End the process of an HTTP server, and start another one on its port.

        The session is not ended: its id is one that the server has lost.

        Raises:
            LaunchError: the other process could not be started.
            LookupError: we did not start the server.
        """
        port = self.http.port
        self.wire.end(polite=False)
        return self._continue(port)

    def restart(self, env: Mapping[str, str] | None = None) -> Connection:
        """Continue on an unused process; the old one is shut down with the scenario.

        Args:
            env: variables to add to its environment.
        """
        return self._continue(**({"env": env} if env else {}))

    def _continue(self, *port: int, **how: Any) -> Connection:
        scenario = self.wire.transcript.scenario
        self.wire = self._spawn(*port, **how)
        self.wire.transcript.scenario = scenario
        self._start = 0
        self._used.append(self.wire)
        return self.wire

    def exercise(self) -> None:
        """Use the features of the server, as far as that is safe on any server.

        The lists, one listed resource, one prompt without required arguments, and tools
        annotated read-only that need no arguments.
        """
        for method in list_methods(self.spoken.capabilities).values():
            self.request(method)
        for resource in self.spoken.lists.get("resources", [])[:1]:
            if isinstance(resource, dict) and isinstance(resource.get("uri"), str):
                self.request("resources/read", {"uri": resource["uri"]}, required=False)
        for name in self.spoken.plain_prompts[:1]:
            self.request("prompts/get", {"name": name}, required=False)
        for tool in self.spoken.harmless[:3]:
            self.request("tools/call", {"name": tool, "arguments": {}}, required=False)

    def need(self, reply: Reply, what: str) -> dict[str, Any]:
        """Return the result of an indispensable request, or end the scenario as BROKEN."""
        if reply.result is None:
            raise Broken(f"{what}: {reply}")
        return reply.result

    def need_answer(self, reply: Reply, what: str) -> None:
        """End the scenario as BROKEN if an indispensable request got neither result nor error."""
        if not reply.answered:
            raise Broken(f"{what}: {reply}")

    # --- the client's side

    def use(self, client: Client) -> None:
        """Use another client for the rest of the scenario; see ``Connection.use``."""
        self.wire.use(client)

    def session(self, client: Client) -> Reply:
        """Continue as another client; a legacy session is opened again, on an unused process.

        Modern requests declare their own capabilities, so there the process does not change.
        """
        if self.modern:
            self.wire.use(client)
            return self.opening
        self.restart().use(client)
        return self.wire.open()

    def provoke(
        self, exchange: Exchange, client: Client | None = None, *, seconds: float | None = None
    ) -> Provoked:
        """Make the server send requests, let the client answer, and wait for the end."""
        return provoke(self.wire, exchange, client, seconds=seconds)

    def questions(self, line: int | None = None) -> list[Question]:
        """Return the requests of the server to the client, after a line or in this scenario."""
        return list(questions(self.since(self._start if line is None else line)))

    def round(self, exchange: Exchange, client: Client | None = None) -> Round:
        """Send a modern request that may need input; do not answer the request for it."""
        return begin(self.wire, exchange, client)

    def retry(
        self,
        before: Round,
        *,
        responses: Any = SAME,
        state: Any = SAME,
        exchange: Exchange | None = None,
        required: bool = False,
    ) -> Round:
        """Repeat the request of a round, by default with the requested input; see ``rounds``."""
        return retry(
            self.wire,
            before,
            responses=responses,
            state=state,
            exchange=exchange,
            required=required,
        )

    def rounds(
        self, exchange: Exchange, client: Client | None = None, most: int = MOST
    ) -> list[Round]:
        """Answer round after round until the request has its final answer."""
        return rounds(self.wire, exchange, client, most)

    # --- concurrent exchanges

    def run(
        self, exchange: Exchange, *, meta: Mapping[str, Any] | None = None, required: bool = True
    ) -> Reply:
        """Send an exchange again and wait for its answer."""
        return self.request(exchange.method, exchange.params, meta=meta, required=required)

    def start(
        self,
        exchange: Exchange,
        *,
        token: Any = None,
        level: str | None = None,
        id: Any = None,  # noqa: A002  (the protocol's own word)
    ) -> Pending:
        """Send an exchange without waiting, with a progress token and a log level if given."""
        return Pending(self.wire, exchange, token=token, level=level, id=id)

    def window(self, seconds: float | None = None) -> Window:
        """Begin to listen for some seconds; several windows can overlap."""
        return Window(self.wire, self.pace.settle if seconds is None else seconds)

    def task(
        self,
        exchange: Exchange,
        *,
        ttl: int | None = TTL,
        token: Any = None,
        more: Mapping[str, Any] | None = None,
    ) -> Task:
        """Request an exchange as a task."""
        return Task(self.wire, exchange, ttl=ttl, token=token, more=more)

    def subscribe(
        self,
        notifications: Mapping[str, Any] | None,
        *,
        id: Any = None,  # noqa: A002  (the protocol's own word)
    ) -> Subscription:
        """Open a subscription with a filter; None omits the filter."""
        return Subscription(self.wire, notifications, id=id)

    @property
    def connections(self) -> list[Connection]:
        """Every connection this scenario used, the initial one first."""
        return self._used

    def terminate(self) -> None:
        """Send SIGTERM to the server of the current connection, and wait until it has ended.

        Its last lines are read. On Windows no signal is sent, because a process cannot catch it.
        """
        if sys.platform != "win32":
            self.wire.process.terminate()
            self.wire.wait(lambda: self.wire.gone, self.pace.farewell)
        if self.wire.gone:  # the process may exit before we have read its last lines
            self.wire.transcript.wait(lambda: self.wire.transcript.ended, self.pace.farewell)

    def end(self) -> Ending:
        """Shut the server of the current connection down."""
        return self.wire.end()


def _replaced(value: Any, before: str, after: str) -> Any:
    """Replace one text by another in every string of a JSON value."""
    if isinstance(value, str):
        return value.replace(before, after)
    if isinstance(value, list):
        return [_replaced(one, before, after) for one in value]
    if isinstance(value, dict):
        return {name: _replaced(one, before, after) for name, one in value.items()}
    return value
