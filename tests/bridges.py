"""Bridges to small servers, and the checks of their replies."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from mcp_touchstone.bridge.child import Launch
from mcp_touchstone.bridge.listener import Listener
from mcp_touchstone.transport.orphans import sweep
from tests.bridge_client import (
    WAIT,
    Http,
    Reply,
    notification,
    opening,
)

Bridge = Callable[..., Http]


EVENTS = "text/event-stream"


@contextmanager
def bridging() -> Iterator[Bridge]:
    """Yield a function that serves a command, and check at the end that no process is left."""
    listeners: list[tuple[Listener, Launch]] = []

    def serve(*command: str, most: int = 8, startup: float = WAIT, **env: str) -> Http:
        launch = Launch(command=command, env={**os.environ, **env})
        listener = Listener(launch, most=most, startup=startup)
        listener.start()
        listeners.append((listener, launch))
        return Http(listener.server_address[1])

    yield serve
    for listener, launch in listeners:
        listener.stop()
        assert sweep(launch.mark) == 0, "a process outlived the bridge"


def session(http: Http, revision: str = "2025-11-25", **capabilities: Any) -> Http:
    """Open a session."""
    with http.post(opening(revision, **capabilities)) as reply:
        assert reply.status == 200
        assert reply.json()["result"]["protocolVersion"] == revision
        name = reply.header("Mcp-Session-Id") or ""
    opened = Http(http.port, {"Mcp-Session-Id": name, "MCP-Protocol-Version": revision})
    with opened.post(notification("notifications/initialized")) as reply:
        assert reply.status == 202
        assert reply.response.read() == b""
    return opened


def refused(reply: Reply, status: int, *words: str) -> Any:
    """Check that a request was refused with a JSON-RPC error, and return the error."""
    body = reply.json()
    reply.close()
    assert reply.status == status, body
    assert body.get("id", 0) is not None, "an id that is not known is left out"
    for word in words:
        assert word in body["error"]["message"]
    return body["error"]
