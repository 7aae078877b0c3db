"""The conversation of a scenario with a server."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from mcp_touchstone.catalog.clause import Clause
from mcp_touchstone.catalog.scenario import Scenario
from mcp_touchstone.client.connection import Connection
from mcp_touchstone.client.server_profile import Exchange, ServerProfile
from mcp_touchstone.judging.judge import Judge
from mcp_touchstone.judging.run_settings import RunSettings
from mcp_touchstone.judging.talk import Talk
from mcp_touchstone.judging.used_server import Broken, Examples, UsedServer
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Entry


class Conversation(Talk):
    """The conversation of one scenario with a server.

    Args:
        connection: a process of the server.
        scenario: the scenario.
        clauses: the clauses to judge.
        profile: the profile of the server.
        revision: the judged revision.
        spawn: starts a further process; see ``UsedServer``.
        settings: those of properties.
        on_certain: see ``Judge``.
        more: further arguments of ``Examples``.
    """

    def __init__(
        self,
        connection: Connection,
        scenario: Scenario,
        clauses: Iterable[Clause],
        *,
        profile: ServerProfile,
        revision: str,
        spawn: Callable[..., Connection],
        settings: RunSettings,
        on_certain: Callable[[frozenset[str]], bool],
        **more: Any,
    ) -> None:
        server = UsedServer(connection, spawn)
        judge = Judge(server, scenario, clauses, revision=revision, on_certain=on_certain)
        examples = Examples(server, profile, revision, **more)
        super().__init__(server, judge, examples, profile, revision)
        self.settings = settings

    @property
    def root(self) -> SafePath:
        """The folder of the server; a scenario that is ``apart`` may change it."""
        return self.server.root

    def since(self, n: int) -> list[Entry]:
        """Return the entries after line ``n``."""
        return self.wire.transcript.since(n)

    def run(
        self, exchange: Exchange, *, meta: Mapping[str, Any] | None = None, required: bool = True
    ) -> Reply:
        """Send an exchange again and wait for its answer."""
        return self.wire.request(exchange.method, exchange.params, meta=meta, required=required)

    @staticmethod
    def need(reply: Reply, what: str) -> dict[str, Any]:
        """Return the result of an indispensable request, or end the scenario as BROKEN."""
        if reply.result is None:
            raise Broken(f"{what}: {reply}")
        return reply.result

    @staticmethod
    def need_answer(reply: Reply, what: str) -> None:
        """End the scenario as BROKEN if an indispensable request got neither result nor error."""
        if not reply.answered:
            raise Broken(f"{what}: {reply}")
