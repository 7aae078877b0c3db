"""The conversation of a scenario with a server."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mcp_touchstone.connection.server_profile import Request
from mcp_touchstone.judging.run_settings import RunSettings
from mcp_touchstone.judging.talk import Talk
from mcp_touchstone.judging.used_server import Broken
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Entry


@dataclass(eq=False)
class Conversation(Talk):
    """The conversation of one scenario with a server.

    Attributes:
        settings: the settings of properties.
    """

    settings: RunSettings

    @property
    def root(self) -> SafePath:
        """The folder of the server; a scenario with ``Place.OWN_FOLDER`` may change it."""
        return self.server.root

    def since(self, n: int) -> list[Entry]:
        """Return the entries after line ``n``."""
        return self.wire.transcript.since(n)

    def run(
        self, request: Request, *, meta: Mapping[str, Any] | None = None, required: bool = True
    ) -> Reply:
        """Send a request again and wait for its answer."""
        return self.wire.request(request.method, request.params, meta=meta, required=required)

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
