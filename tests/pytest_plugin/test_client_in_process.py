"""The fixture ``mcp_part``: a client in a test talks to a part of ours, and is judged."""

import os

import pytest

from tests.cases import cases

if os.name != "posix":
    pytest.skip("a socket with a path", allow_module_level=True)

TEST = """
import json, subprocess, urllib.request

INFO = {"name": "x", "version": "1"}
PARAMS = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": INFO}

def on_stdio(command, number):
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    def say(**message):
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
        server.stdin.flush()
    say(id=1, method="initialize", params=PARAMS)
    version = json.loads(server.stdout.readline())["result"]["protocolVersion"]
    say(method="notifications/initialized")
    say(id=number, method="tools/list")
    server.stdout.readline()
    server.stdin.close()
    server.wait()
    server.stdout.close()
    return version

def test_good(mcp_part):
    assert on_stdio(mcp_part("tools_call").command, 2) == "2025-11-25"

def test_older(mcp_part):
    assert on_stdio(mcp_part("tools_call", revision="2025-06-18").command, 2) == "2025-06-18"

def test_bad(mcp_part):
    on_stdio(mcp_part("tools_call").command, 1)

def test_http(mcp_part):
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": PARAMS}
    kinds = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    url = mcp_part("tools_call", http=True).url
    asked = urllib.request.Request(url, json.dumps(body).encode(), kinds)
    with urllib.request.urlopen(asked) as got:
        assert b"2025-11-25" in got.read()

def test_steps(mcp_part):
    assert mcp_part("tools_call").steps[0] == {"list": "tools"}
"""


def test_a_client_in_a_test_is_judged_after_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_client=TEST)

    done = pytester.runpytest("-p", "no:cacheprovider")

    done.assert_outcomes(passed=5, errors=1)
    done.stdout.fnmatch_lines(["*ERROR at teardown of test_bad*", "*client-request-id-unique*"])


@cases(
    ("auth", "runs with `mcp-touchstone client` only"),
    ("tools_cal", "did you mean 'tools_call'"),
)
def test_a_scenario_that_cannot_be_played_is_named(
    pytester: pytest.Pytester, scenario: str, why: str
) -> None:
    pytester.makepyfile(f"def test_it(mcp_part): mcp_part({scenario!r})")

    done = pytester.runpytest("-p", "no:cacheprovider")

    done.assert_outcomes(failed=1)
    assert why in done.stdout.str()
