"""A gateway that was configured by hand for our server is judged at its URL."""

import shlex
import subprocess
import sys

import pytest

from mcp_touchstone.transport.http_endpoint import free_port
from tests.commands import touchstone

pytestmark = pytest.mark.slow

OURS = (sys.executable, "-m", "mcp_touchstone")
RULES = ("--select", "gateway-answers-come", "--revision", "2025-11-25", "--no-baseline")


def test_gateway_with_the_printed_command_is_judged_at_its_url() -> None:
    port, upstream = str(free_port()), ("--upstream-port", str(free_port()))
    printed = touchstone("gateway", *upstream, "--upstream")
    command = printed.stdout.splitlines()[0].removeprefix("command").split()
    words = (*OURS, "bridge", "--port", port, "--", *shlex.split(" ".join(command)))
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as gateway:
        assert gateway.stdout is not None
        url = next(line for line in gateway.stdout if "http://" in line).split()[-1]

        judged = touchstone("gateway", *RULES, *upstream, "--to", url)
        gateway.terminate()

    assert printed.returncode == 0
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert "1 clause checked" in judged.stdout


def test_our_server_is_printed_for_a_port_only() -> None:
    printed = touchstone("gateway", "--upstream")

    assert printed.returncode == 2
    assert printed.stderr.splitlines() == [
        "mcp-touchstone: gateway --upstream: name the port with --upstream-port PORT"
    ]
