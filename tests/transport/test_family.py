"""What the processes of a server have open."""

import os
import socket
import sys

import pytest

from mcp_touchstone.transport.family import listening

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def test_a_file_that_is_closed_meanwhile_hides_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: [*listed(path), "999999"])

    with socket.create_server(("127.0.0.1", 0)) as server:
        assert server.getsockname() in listening(os.getpid())
