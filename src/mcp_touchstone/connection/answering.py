"""The client's answers to the requests of one server. Sends nothing."""

import math
import threading
from collections.abc import Iterator
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.connection.profile import Client
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.framing import id_key
from mcp_touchstone.wire.lifecycle import Role
from mcp_touchstone.wire.transcript import Transcript

MOST_ANSWERS: Final = 2000
"""Greatest number of answered server requests per connection: some servers send two for each."""


class Answering:
    """The client of one connection, and the answers it owes.

    Attributes:
        root: the folder of the server, which is the client's root; None for none.
        enabled: whether requests are answered.
        exhausted: whether they are not, because the server sent too many.
    """

    def __init__(self, transcript: Transcript, root: SafePath | None = None) -> None:
        self.client = Client()
        self.root = root
        self.enabled = True
        self.exhausted = False
        self._transcript = transcript
        self._roots = () if root is None else (root.as_uri(),)
        self._lock = threading.Lock()
        self._served = self._searched = self._count = 0
        self._asked = False
        self._due: list[tuple[float, dict[str, Any]]] = []

    def use(self, client: Client) -> None:
        """Use another client for later answers, and for the capabilities in stateless requests.

        The capabilities declared to an open session do not change.
        """
        self.client = client
        if rev.is_modern(self._transcript.revision):
            self._transcript.capabilities = dict(client.capabilities)

    def filled(self, client: Client, requests: Any) -> dict[str, Any]:
        """Return the answers of a client to ``inputRequests``."""
        return client.fill(requests, world=self._roots)

    @property
    def asked(self) -> bool:
        """Whether a request has come since the last ``replies``; reads each line once.

        For the function that a wait calls at each line: there, one thread at a time reads it.
        """
        if self.enabled and not self._asked:
            fresh = self._transcript.since(self._searched)
            self._searched = fresh[-1].n if fresh else self._searched
            self._asked = any(m.role is Role.REQUEST for entry in fresh for m in entry.messages)
        return self._asked

    @property
    def delay(self) -> float:
        """Seconds until the next delayed answer is due; infinite if there is none."""
        with self._lock:
            due = [when for when, _ in self._due] if self.enabled else []
        return max(0.0, min(due, default=math.inf) - now())

    def replies(self) -> Iterator[dict[str, Any]]:
        """Yield the answers to new requests, and the delayed ones that are due."""
        if not self.enabled:
            return
        with self._lock:
            self._asked = False
            fresh = self._transcript.since(self._served)
            self._served = self._searched = fresh[-1].n if fresh else self._served
        for entry in fresh:
            for message in entry.messages:
                if message.role is Role.REQUEST and id_key(message.value.get("id")) is not None:
                    yield from self._reply(message.method, message.value)
        with self._lock:
            ripe = [reply for when, reply in self._due if when <= now()]
            self._due = [(when, reply) for when, reply in self._due if when > now()]
        yield from ripe

    def _reply(self, method: str | None, request: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if self._transcript.session.echoes(request):
            return  # our answer to an echoed request would look like its own
        said = self.client.answer(
            method,
            request.get("params"),
            declared=self._transcript.capabilities,
            world=self._roots,
        )
        if said.body is None or not self.enabled:
            return
        self._count += 1
        if self._count > MOST_ANSWERS:
            self.enabled, self.exhausted = False, True
            self._transcript.happened(f"we answered {MOST_ANSWERS:,} of its requests, and no more")
            return
        reply = {"jsonrpc": "2.0", "id": request["id"], **said.body}
        if said.delay:
            with self._lock:
                self._due.append((now() + said.delay, reply))
        else:
            yield reply
