"""What a scenario does to a server: say, hear, let the client answer. Judges nothing."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.client import Client
from mcp_touchstone.connection import Connection
from mcp_touchstone.dossier import Dossier, Example, Exchange, Spoken
from mcp_touchstone.framing import Kind
from mcp_touchstone.matchers import list_methods
from mcp_touchstone.pace import Pace
from mcp_touchstone.pending import Pending, Window
from mcp_touchstone.process import Ending
from mcp_touchstone.questions import Question, questions
from mcp_touchstone.reply import Reply
from mcp_touchstone.rounds import MOST, SAME, Provoked, Round, begin, provoke, retry, rounds
from mcp_touchstone.session import LOOSE, Message, Role
from mcp_touchstone.subscriptions import Subscription
from mcp_touchstone.tasks import TTL, Task
from mcp_touchstone.transcript import Entry

PAGES: Final = 50
"""Pages of a list after which nobody waits for its end any more."""


class Broken(Exception):  # noqa: N818  (an outcome, not a fault of ours)
    """We could not ask: something every server does did not happen."""


class Talk:
    """One use of a server: the connection it goes on with, and what is known of the server."""

    def __init__(
        self,
        connection: Connection,
        *,
        dossier: Dossier,
        revision: str,
        spawn: Callable[[], Connection],
    ) -> None:
        self.wire = connection
        self.dossier = dossier
        self.revision = revision
        self._spawn = spawn
        self._start = len(connection.transcript)
        self._used = [connection]

    # --- what it is about

    @property
    def modern(self) -> bool:
        """Whether this revision is stateless."""
        return self.wire.modern

    @property
    def pace(self) -> Pace:
        """How long to wait for what."""
        return self.wire.pace

    @property
    def spoken(self) -> Spoken:
        """What is known of this revision."""
        return self.dossier.spoken[self.revision]

    @property
    def opening(self) -> Reply:
        """The answer to initialize or server/discover that opened this connection."""
        if self.wire.opening is None:
            raise Broken("the connection was never opened")
        return self.wire.opening

    def example(self, word: str) -> Example:
        """Give the best example of a word that a judged clause needs: ``callable-tool``.

        Raises:
            LookupError: there is none, so no judged clause can need it: a fault of the suite.
        """
        found = self.examples(word)
        if not found:
            raise LookupError(f"no example of {word}: a clause has to name it in its needs")
        return found[0]

    def examples(self, word: str) -> list[Example]:
        """Give every example of a word, the best first; may be empty."""
        self.dossier.settle(self.revision, word)
        return self.spoken.examples(word)

    @property
    def root(self) -> Path:
        """The folder the server was started for; a scenario that is ``apart`` may change it."""
        if self.wire.root is None:
            raise Broken("the server was given no folder")
        return self.wire.root

    def here(self, example: Example) -> Example:
        """Give an example with its paths in the folder of this process, for who is ``apart``."""
        before, after = self.dossier.root, str(self.root)
        moved: Any = _replaced(dict(example.params), before, after) if before else example.params
        return replace(example, params=moved)

    # --- saying and hearing

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
        """Ask for a list page by page, until one has no cursor or no result."""
        wanted = dict(params or {})
        for _ in range(most):
            reply = self.request(method, wanted or None)
            yield reply
            cursor = (reply.result or {}).get("nextCursor")
            if not isinstance(cursor, str):
                return
            wanted["cursor"] = cursor

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a notification; give the number of the line."""
        return self.wire.notify(method, params)

    def probe(self, *, required: bool = True) -> Reply:
        """Ask what every server answers: ping, or server/discover.

        A scenario that judges the answer itself, behind a line it broke, sets ``required`` to
        False: the silence would be counted twice.
        """
        return self.wire.probe(required=required)

    def quiet(self, seconds: float | None = None) -> list[Entry]:
        """Listen for a while; give the server's lines that came."""
        return self.wire.quiet(seconds)

    def since(self, n: int) -> list[Entry]:
        """Give the entries behind line ``n``."""
        return self.wire.transcript.since(n)

    def strays(self, n: int) -> list[tuple[Entry, Message]]:
        """Give the responses behind line ``n`` that answer no request of ours.

        A second response to a request is none of them, save an error under the id of a request
        that was over before line ``n``: that is how a server answers a line it could not read,
        when it takes the id from its last request.
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

    def first_response(self, line: int) -> tuple[Reply, list[tuple[Entry, Message]]]:
        """Wait for the answer to the one request in flight; give it, and strays that came instead.

        A stray may be the answer under a changed id. It ends the long wait, yet the answer itself
        still has a while to come.
        """

        def came() -> bool:
            answers = (m.answers for entry in self.since(line) for m in entry.messages)
            return line in answers or bool(self.strays(line))

        self.wire.wait(came, self.pace.reply)
        return self.wire.answer_to(line, self.pace.silence), self.strays(line)

    def restart(self) -> Connection:
        """Go on with a virgin process; the old one is shut down with the scenario."""
        self.wire = self._spawn()
        self._start = 0
        self._used.append(self.wire)
        return self.wire

    def exercise(self) -> None:
        """Use what the server offers, as far as that is safe on any server.

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
        """Give the result of a request nothing works without, or end the scenario as BROKEN."""
        if reply.result is None:
            raise Broken(f"{what}: {reply}")
        return reply.result

    def need_answer(self, reply: Reply, what: str) -> None:
        """End the scenario as BROKEN where a request it rests on got neither result nor error."""
        if not reply.answered:
            raise Broken(f"{what}: {reply}")

    # --- the client's side

    def use(self, client: Client) -> None:
        """Let another client answer for the rest of the scenario; see ``Connection.use``."""
        self.wire.use(client)

    def session(self, client: Client) -> Reply:
        """Go on as another client: a session is opened anew, on a virgin process, to declare it.

        Stateless requests declare for themselves, so the process stays the same there.
        """
        if self.modern:
            self.wire.use(client)
            return self.opening
        self.restart().use(client)
        return self.wire.open()

    def provoke(
        self, exchange: Exchange, client: Client | None = None, *, seconds: float | None = None
    ) -> Provoked:
        """Send what makes the server ask, let the client answer, and wait for the end."""
        return provoke(self.wire, exchange, client, seconds=seconds)

    def questions(self, line: int | None = None) -> list[Question]:
        """Give what the server asked of the client, behind a line or in this scenario."""
        return list(questions(self.since(self._start if line is None else line)))

    def round(self, exchange: Exchange, client: Client | None = None) -> Round:
        """Send a stateless request that may be answered with a question; answer nothing yet."""
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
        """Send the request of a round again, by default with what it asked for; see ``rounds``."""
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

    # --- what goes on while others talk

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
        """Begin to listen for a while; windows opened one behind the other pass together."""
        return Window(self.wire, self.pace.settle if seconds is None else seconds)

    def task(
        self,
        exchange: Exchange,
        *,
        ttl: int | None = TTL,
        token: Any = None,
        more: Mapping[str, Any] | None = None,
    ) -> Task:
        """Ask for an exchange as a task."""
        return Task(self.wire, exchange, ttl=ttl, token=token, more=more)

    def subscribe(
        self,
        notifications: Mapping[str, Any] | None,
        *,
        id: Any = None,  # noqa: A002  (the protocol's own word)
    ) -> Subscription:
        """Open a subscription to what a filter names; None leaves the filter out."""
        return Subscription(self.wire, notifications, id=id)

    @property
    def connections(self) -> list[Connection]:
        """Every connection this scenario used, the one it was given first."""
        return self._used

    def end(self) -> Ending:
        """Shut the server of the current connection down."""
        return self.wire.end()


def _replaced(value: Any, before: str, after: str) -> Any:
    """Put one text in the place of another, in every string of a JSON value."""
    if isinstance(value, str):
        return value.replace(before, after)
    if isinstance(value, list):
        return [_replaced(one, before, after) for one in value]
    if isinstance(value, dict):
        return {name: _replaced(one, before, after) for name, one in value.items()}
    return value
