"""A bridge for one test."""

import os
from collections.abc import Iterator

import pytest

from mcp_touchstone.bridge.child import Launch
from mcp_touchstone.bridge.listener import Listener
from mcp_touchstone.transport.orphans import sweep
from tests.bridge_client import WAIT, Bridge, Http


@pytest.fixture
def bridge() -> Iterator[Bridge]:
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
