"""A server is started where there is no network, or not at all."""

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from mcp_touchstone import offline
from mcp_touchstone.cli import main
from mcp_touchstone.target import Target

CALLS = """
import socket, sys
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=20)
except OSError:
    print("nobody there")
"""


def may() -> bool:
    """Whether this system lets us, asked without the code that is tested."""
    words = ["unshare", *(() if os.geteuid() == 0 else ("--map-current-user",)), "--net", "true"]
    found = shutil.which("unshare") is not None
    return found and subprocess.run(words, capture_output=True, check=False).returncode == 0


able = pytest.mark.skipif(
    sys.platform != "linux" or not may(), reason="no network namespaces may be made here"
)


@able
def test_nothing_can_be_reached_from_there() -> None:
    target = Target(command=(sys.executable, "-c", CALLS), apart=offline.way())
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = str(listening.getsockname()[1])
        words = [*target.command_in(Path("/")), port]
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)

    assert done.stdout == "nobody there\n", done.stderr


@able
def test_a_server_that_needs_no_network_is_judged_there(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = main(["check", "--offline", "--select", "ping-empty-response", "--quiet"])

    assert status == 0, capsys.readouterr().err
    assert "pass" in capsys.readouterr().out


def test_the_words_to_say_again_name_it() -> None:
    assert "--offline" in Target(command=("x",), apart=("unshare", "--net", "--")).words()
    assert "--offline" not in Target(command=("x",)).words()


def test_where_nothing_can_the_run_says_so_and_ends(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")

    status = main(["check", "--offline", "--", sys.executable, "-c", ""])

    said = capsys.readouterr().err
    assert (status, said.count("\n")) == (2, 1)
    assert "--offline: " in said
    assert "or leave --offline out" in said
