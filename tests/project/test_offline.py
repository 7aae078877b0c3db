"""The option --offline: a server is started without a network, or not at all."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_touchstone.cli import main
from mcp_touchstone.runtime import no_network
from mcp_touchstone.target.target import Target

CALLS = """
import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20)
except OSError:
    print("nobody there")
"""


def namespaces_work() -> bool:
    """Return whether network namespaces work here, without the tested code."""
    words = ["unshare", *(() if os.geteuid() == 0 else ("--map-current-user",)), "--net", "true"]
    found = shutil.which("unshare") is not None
    return found and subprocess.run(words, capture_output=True, check=False).returncode == 0


needs_namespaces = pytest.mark.skipif(
    sys.platform != "linux" or not namespaces_work(),
    reason="network namespaces cannot be made here",
)


@needs_namespaces
def test_offline_server_cannot_connect_to_localhost() -> None:
    target = Target(command=(sys.executable, "-c", CALLS), without_network=no_network.way())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        words = [*target.command_in(Path("/")), port]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)

    assert done.stdout == "nobody there\n", done.stderr


@needs_namespaces
def test_server_is_judged_without_a_network(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["check", "--self", "--offline", "--select", "ping-empty-response", "--quiet"])

    assert status == 0, capsys.readouterr().err
    assert "pass" in capsys.readouterr().out


def test_repeat_command_contains_offline() -> None:
    assert "--offline" in Target(command=("x",), offline=True).words()
    assert "--offline" not in Target(command=("x",)).words()


def test_offline_without_unshare_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")

    status = main(["check", "--offline", "--", sys.executable, "-c", ""])

    said = capsys.readouterr().err
    assert (status, said.count("\n")) == (2, 1)
    assert "--offline: " in said
    assert "or leave --offline out" in said
