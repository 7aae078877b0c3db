"""A client that is run against our servers: its verdicts, and the causes of none."""

import json
import os
import sys
from pathlib import Path

import pytest

from mcp_touchstone.cli import main
from mcp_touchstone.tap import drive
from tests.cases import cases

if os.name != "posix":
    pytest.skip("signals of POSIX", allow_module_level=True)

GOOD = """
import json, subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
info = {"name": "x", "version": "1"}
params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
def say(**message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
    server.stdin.flush()
say(id=1, method="initialize", params=params)
server.stdout.readline()
say(method="notifications/initialized")
"""
CLOSE = "server.stdin.close()\nserver.wait()\n"
TRANSPORT = """
import json, sys, urllib.request
info = {"name": "x", "version": "1"}
params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}
body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
def post(body, **more):
    data = json.dumps({"jsonrpc": "2.0", **body}).encode()
    request = urllib.request.Request(sys.argv[-1], data, {**headers, **more})
    return urllib.request.urlopen(request)
with post({"id": 1, "method": "initialize", "params": params}) as answer:
    session = {"Mcp-Session-Id": answer.headers["Mcp-Session-Id"]}
session["MCP-Protocol-Version"] = "2025-11-25"
post({"method": "notifications/initialized"}, **session).close()
"""


def client(tmp_path: Path, code: str, *options: str, scenario: str = "tools_call") -> int:
    """Run a client in one scenario; return the exit status of ours."""
    words = ["--scenario", scenario, "--save", str(tmp_path / "r"), "--json", str(tmp_path / "j")]
    server = [] if "--http" in options else ["{server}"]
    return main(["client", *words, *options, "--", sys.executable, "-c", code, *server])


def outcomes(tmp_path: Path) -> dict[str, str]:
    document = json.loads((tmp_path / "j").read_text())
    return {one["clause"]: one["outcome"] for one in document["verdicts"]}


def test_a_good_client_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert client(tmp_path, GOOD + CLOSE) == 0

    assert "passed: x 1 breaks no clause" in capsys.readouterr().out
    assert outcomes(tmp_path)["client-closes-input-first"] == "pass"


def test_a_client_may_ask_one_process_for_its_eras_and_talk_to_another(tmp_path: Path) -> None:
    opening = 'say(id=1, method="initialize", params=params)'
    probe, after = GOOD.partition(opening)[0], "server.stdout.readline()\n" + CLOSE
    asks = probe + "say(id=1, method='server/discover', params={})\n" + after

    assert client(tmp_path, asks + GOOD + CLOSE) == 0


def test_a_fault_fails(tmp_path: Path) -> None:
    assert client(tmp_path, GOOD + "say(id=1, method='tools/list')\n" + CLOSE) == 1

    assert outcomes(tmp_path)["client-request-id-unique"] == "fail"


@cases(
    ("print('hello')", "the client never connected"),
    ("import os; os.kill(os.getpid(), 9)", "the client was ended by SIGKILL"),
    ("import subprocess, sys\nsubprocess.run(sys.argv[1:], input=b'')", "sent nothing"),
    (GOOD + CLOSE + GOOD + CLOSE, "the client connected 2 times"),
    (GOOD + CLOSE + "sys.exit('broken')", "the client ended with exit status 1"),
)
def test_a_client_without_a_conversation_is_not_checked_for_a_named_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, cause: str
) -> None:
    assert client(tmp_path, code) == 2

    assert cause in capsys.readouterr().out


def test_a_client_that_does_not_end_is_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert client(tmp_path, GOOD + "server.wait()", "--timeout", "4") == 2

    assert "did not end within 4 s" in capsys.readouterr().out


@cases("server.kill()\nserver.wait()\n", "server.terminate()\nserver.wait()\n")
def test_a_signal_before_the_end_of_the_input_is_a_warning(tmp_path: Path, end: str) -> None:
    assert client(tmp_path, GOOD + end) == 0

    assert outcomes(tmp_path)["client-closes-input-first"] == "warn"


def test_a_client_of_the_other_era_is_not_accused(tmp_path: Path) -> None:
    assert client(tmp_path, GOOD.replace("say(method", "sys.exit(1)\n#"), scenario="state") == 0


def test_a_client_over_http_gets_the_url_as_its_last_argument(tmp_path: Path) -> None:
    assert client(tmp_path, TRANSPORT, "--http") == 0

    assert outcomes(tmp_path)["client-http-accept"] == "pass"
    assert outcomes(tmp_path)["client-initialized"] != "fail"
    assert outcomes(tmp_path)["client-message-shape"] == "pass"


def test_an_unknown_scenario_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["client", "--scenario", "pagnation", "--", "x"]) == 2
    assert "did you mean 'pagination'?" in capsys.readouterr().err


def test_scenarios_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["act", "--list"]) == 0
    assert "pagination" in capsys.readouterr().out


def test_a_client_that_leaves_a_process_has_ended(tmp_path: Path) -> None:
    leaves = (
        "import subprocess, sys\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(20)'],"
        " start_new_session=True)\n"
    )
    assert client(tmp_path, GOOD + CLOSE + leaves, "--timeout", "8") == 0


def test_only_the_last_words_of_a_client_are_kept(tmp_path: Path) -> None:
    import tracemalloc  # noqa: PLC0415  (for one test)

    loud = (
        "import os\nfor _ in range(640): os.write(2, b'x' * 99_999 + b'\\n')\nos.write(2, b'end')\n"
    )
    tracemalloc.start()
    try:
        played = drive.play([sys.executable, "-c", loud, "{server}"], "tools_call", tmp_path / "r")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert "never connected" in played.trouble
    assert played.said[-1] == "end"
    assert most < 10_000_000
