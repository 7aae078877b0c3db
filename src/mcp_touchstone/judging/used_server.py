"""The server as one scenario uses it: its processes, and examples of what it can do."""

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.profile import Client
from mcp_touchstone.connection.raw_http import RawHttp
from mcp_touchstone.connection.server_profile import Example, ServerProfile, Spoken
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.transport.process import Ending
from mcp_touchstone.wire.exchange import Exchange as HttpExchange
from mcp_touchstone.wire.reply import Reply


class Broken(Exception):  # noqa: N818  (an outcome, not a fault of ours)
    """The scenario could not continue: a basic action of every server failed."""


Settle = Callable[[str, str], None]
"""(revision, word) -> returns once discovery has decided the word in the revision."""


class UsedServer:
    """The processes of the server that a scenario uses, one after the other.

    Args:
        connection: the first.
        spawn: starts a further process; it takes ``env``, variables to add, ``judged``, whether
            rules on all traffic read it, and over HTTP a port.

    Attributes:
        wire: the current connection.
        connections: every connection, the first one first.
        start: the line of the current connection after which the evidence of judgements begins.
        fired: ids of the sent payloads, if it is an attack.
    """

    def __init__(self, connection: Connection, spawn: Callable[..., Connection]) -> None:
        self.wire = connection
        self.connections = [connection]
        self.start = len(connection.transcript)
        self.fired: set[str] = set()
        self._spawn = spawn

    @property
    def over_http(self) -> bool:
        """Whether the messages are sent over HTTP."""
        return self.wire.channel.transport is Transport.HTTP

    @property
    def opening(self) -> Reply:
        """The answer to initialize or server/discover that opened this connection."""
        if self.wire.opening is None:
            raise Broken("the connection was never opened")
        return self.wire.opening

    @property
    def root(self) -> SafePath:
        """The folder of the server; a scenario with ``Place.OWN_FOLDER`` may change it."""
        if self.wire.answers.root is None:
            raise Broken("the server was given no folder")
        return self.wire.answers.root

    def hears_notifications(self) -> bool:
        """Return whether the server can send messages that belong to no request.

        Over HTTP a session needs the stream of our GET for that, which a server may refuse. Waits
        until the server has answered the GET.

        Source: 2025-11-25 basic/transports#listening-for-messages-from-the-server.
        """
        if not self.over_http or self.wire.modern:
            return True
        exchanges = self.wire.transcript.exchanges

        def answered() -> list[HttpExchange]:
            gets = [e for e in list(exchanges) if e.verb == "GET" and not (e.line or e.crafted)]
            return [one for one in gets if one.status or one.ended is not None]

        found = self.wire.wait(answered, self.wire.pace.reply)
        # Some servers send no status before the first event.
        return not found or found[-1].streams

    # --- other processes

    def restart(
        self, env: Mapping[str, str] | None = None, *, judged: bool | None = None
    ) -> Connection:
        """Continue on an unused process; the old one is shut down with the scenario.

        Args:
            env: variables to add to its environment.
            judged: whether rules on all traffic read it; None for the usual.
        """
        how = {"env": env} if env else {}
        return self._continue(**how, **({} if judged is None else {"judged": judged}))

    def replace(self) -> Connection:
        """End the process of an HTTP server, and start another one on its port.

        The session is not ended: its id is one that the server has lost.

        Raises:
            LaunchError: the other process could not be started.
            LookupError: we did not start the server.
        """
        port = RawHttp(self.wire).port
        self.wire.end(polite=False)
        return self._continue(port)

    def _continue(self, *port: int, **how: Any) -> Connection:
        scenario = self.wire.transcript.scenario
        self.wire = self._spawn(*port, **how)
        self.wire.transcript.enter(scenario)
        self.start = 0
        self.connections.append(self.wire)
        return self.wire

    def reopen(self, client: Client) -> Reply:
        """Continue as another client; a legacy session is opened again, on an unused process.

        Modern requests declare their own capabilities, so there the process does not change.
        """
        if self.wire.modern:
            self.wire.answers.use(client)
            return self.opening
        self.restart().answers.use(client)
        return self.wire.open()

    def mark(self) -> None:
        """Start the evidence of the next judgement here."""
        self.start = len(self.wire.transcript)

    def go_back(self, wire: Connection, line: int) -> None:
        """Start the evidence of the next judgement at a line of an earlier connection."""
        self.wire, self.start = wire, line

    # --- the end of a process

    def terminate(self) -> None:
        """Send SIGTERM to the server of the current connection, and wait until it has ended.

        Its last lines are read. On Windows no signal is sent, because a process cannot catch it.
        """
        wire = self.wire
        if sys.platform != "win32":
            wire.process.terminate()
            wire.wait(lambda: wire.gone, wire.pace.farewell)
        if wire.gone:  # the process may exit before we have read its last lines
            wire.transcript.wait(lambda: wire.transcript.ended, wire.pace.farewell)

    def end(self) -> Ending:
        """Shut the server of the current connection down."""
        return self.wire.end()


class Examples:
    """Examples of the features that a clause can need, in one revision.

    Args:
        server: the server, as the scenario uses it.
        settle: waits for discovery; returns at once if discovery has ended.
    """

    def __init__(
        self,
        server: UsedServer,
        profile: ServerProfile,
        revision: str,
        *,
        settle: Settle = lambda _revision, _word: None,
    ) -> None:
        self._server = server
        self.profile = profile
        self.revision = revision
        self._settle = settle

    @property
    def spoken(self) -> Spoken:
        """The profile of this revision."""
        return self.profile.spoken[self.revision]

    def __call__(self, word: str) -> list[Example]:
        """Return every example of a word, the best first; may be empty."""
        self._settle(self.revision, word)
        return self.spoken.examples(word)

    def best(self, word: str) -> Example:
        """Return the best example of a word that a judged clause needs: ``callable-tool``.

        Raises:
            LookupError: there is none although a clause uses it: a fault of the suite.
        """
        found = self(word)
        if not found:
            raise LookupError(f"no example of {word}: a clause has to name it in its needs")
        return found[0]

    def here(self, example: Example) -> Example:
        """Return an example with paths in the folder of this process, for ``Place.OWN_FOLDER``."""
        before, after = self.profile.root, str(self._server.root)
        moved: Any = _replaced(dict(example.params), before, after) if before else example.params
        return replace(example, params=moved)

    def exercise(self) -> None:
        """Use the features of the server, as far as that is safe on any server.

        The lists, one listed resource, one prompt without required arguments, and tools
        annotated read-only that need no arguments.
        """
        wire, spoken = self._server.wire, self.spoken
        for method in spoken.declared_list_methods:
            wire.request(method)
        for resource in spoken.lists.get("resources", [])[:1]:
            if isinstance(resource, dict) and isinstance(resource.get("uri"), str):
                wire.request("resources/read", {"uri": resource["uri"]}, required=False)
        for name in spoken.plain_prompts[:1]:
            wire.request("prompts/get", {"name": name}, required=False)
        for tool in spoken.harmless[:3]:
            wire.request("tools/call", {"name": tool, "arguments": {}}, required=False)


def _replaced(value: Any, before: str, after: str) -> Any:
    """Replace one text by another in every string of a JSON value."""
    if isinstance(value, str):
        return value.replace(before, after)
    if isinstance(value, list):
        return [_replaced(one, before, after) for one in value]
    if isinstance(value, dict):
        return {name: _replaced(one, before, after) for name, one in value.items()}
    return value
