"""A client that is run against our servers: its verdicts, and the causes of none."""

import json
import os
import re
import sys
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from mcp_touchstone.catalog.sdk import NPM, Package, SdkIdentity
from mcp_touchstone.cli import main
from mcp_touchstone.parts.scenarios import find, scenarios
from mcp_touchstone.results import sdk_faults
from mcp_touchstone.results.played import PlayedScenario, ScenarioOutcome
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime import interrupts
from mcp_touchstone.tap import check, course, drive, recording
from mcp_touchstone.tap.recording import Recorder
from mcp_touchstone.target.target import Target
from mcp_touchstone.wire.events import Happened
from tests.cases import cases
from tests.mutants.clients import http_client
from tests.mutants.clients.judged import over_http

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
STATELESS = """
import json, subprocess, sys
server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
info = {"name": "x", "version": "1"}
about = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": info}
meta = {"io.modelcontextprotocol/" + name: value for name, value in about.items()}
params = {"name": "add_numbers", "arguments": {"a": 2, "b": 3}, "_meta": meta}
def say(**message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\\n")
    server.stdin.flush()
"""
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
    answer.read()
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


def test_a_question_for_the_eras_in_another_process_is_the_first_request(tmp_path: Path) -> None:
    say = STATELESS + "say(id=1, method='tools/list', params={'_meta': meta})\n"
    talk = say + "server.stdout.readline()\n" + CLOSE
    code = talk.replace("tools/list", "server/discover")
    code += "import os\nif os.environ['MCP_CONFORMANCE_SCENARIO'] == 'stateless':\n"
    code += f"{indent(talk, ' ')}else:\n{indent(GOOD + CLOSE, ' ')}"

    assert client(tmp_path, code, "--scenario", "old-errors", scenario="stateless") == 0

    found = outcomes(tmp_path)
    assert found["client-probes-first"] == found["client-falls-back"] == "pass"


def test_no_recording_has_a_token_or_a_code(tmp_path: Path) -> None:
    command = (sys.executable, http_client.__file__, "none")
    played = drive.play(Target(command=command), "auth-discovery", tmp_path, http=True)

    assert played.scenario.why == ""
    seen = b"".join(path.read_bytes() for path in tmp_path.rglob("*.jsonl"))
    assert b'grant_type\\": \\"refresh_token' in seen
    for secret in (b"eyJ", b"code_verifier=", b"code=", b"state="):
        assert secret not in seen


def test_a_client_without_authorization_breaks_no_rule_about_it(tmp_path: Path) -> None:
    assert client(tmp_path, TRANSPORT, "--http", scenario="auth") == 0

    about = {one for clause, one in outcomes(tmp_path).items() if clause.startswith("client-auth")}
    assert about == {"unseen"}


@cases("auth-dpop", "auth-dpop-nonce", "auth-enterprise")
def test_a_client_finds_the_metadata_before_it_asks(scenario: str) -> None:
    protection = find(scenario).protection

    assert protection is not None
    assert protection.place == "/.well-known/oauth-protected-resource/mcp"


def test_tokens_are_for_http_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert client(tmp_path, GOOD, scenario="auth") == 2

    assert "the scenario auth needs --http" in capsys.readouterr().err


def test_a_fault_fails(tmp_path: Path) -> None:
    assert client(tmp_path, GOOD + "say(id=1, method='tools/list')\n" + CLOSE) == 1

    assert outcomes(tmp_path)["client-request-id-unique"] == "fail"


@cases(
    ("print('hello')", "the client never connected"),
    ("import os; os.kill(os.getpid(), 9)", "the client was ended by SIGKILL"),
    ("import subprocess, sys\nsubprocess.run(sys.argv[1:], input=b'')", "sent nothing"),
    (GOOD + CLOSE + "sys.exit('broken')", "the client ended with exit status 1"),
)
def test_a_client_without_a_conversation_is_not_checked_for_a_named_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], code: str, cause: str
) -> None:
    assert client(tmp_path, code) == 2

    assert cause in capsys.readouterr().out


STEPS = """
say(id=2, method='tools/list')
server.stdout.readline()
say(id=3, method='tools/call', params={'name': 'add_numbers', 'arguments': {'a': 2}})
server.stdout.readline()
"""


def played(tmp_path: Path) -> dict[str, str]:
    """Return what came of each scenario."""
    document = json.loads((tmp_path / "j").read_text())
    return {one["scenario"]: one["outcome"] for one in document["scenarios"]}


@cases(
    (GOOD + CLOSE) * 2,
    GOOD + STEPS + CLOSE + "sys.exit(3)",
    GOOD + STEPS + CLOSE + (GOOD + STEPS + CLOSE).replace("server", "other"),
    GOOD + "first = server\n" + GOOD + STEPS + CLOSE + "server = first\n" + CLOSE,
)
def test_a_client_may_connect_more_than_once_and_end_with_any_status(
    tmp_path: Path, code: str
) -> None:
    assert client(tmp_path, code) == 0

    assert played(tmp_path) == {"tools_call": "judged"}
    assert "fail" not in outcomes(tmp_path).values()


def test_a_scenario_in_trouble_does_not_take_the_verdicts_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = (
        "import os\nif os.environ['MCP_CONFORMANCE_SCENARIO'] == 'progress': raise SystemExit(4)\n"
    )

    assert client(tmp_path, code + GOOD + CLOSE, "--scenario", "progress") == 0

    assert played(tmp_path) == {"tools_call": "judged", "progress": "never connected"}
    assert outcomes(tmp_path)["client-initialized"] == "pass"
    assert "progress: the client never connected" in capsys.readouterr().out


def test_a_run_that_is_cut_off_has_a_report_of_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play = drive.play

    def cut(target: Target, name: str, *words: Any, **more: Any) -> drive.Played:
        if name == "progress":
            raise KeyboardInterrupt
        return play(target, name, *words, **more)

    monkeypatch.setattr(drive, "play", cut)

    assert client(tmp_path, GOOD + CLOSE, "--scenario", "progress") == 130

    assert played(tmp_path) == {"tools_call": "judged"}
    assert outcomes(tmp_path)["client-initialized"] == "pass"


def test_a_signal_while_it_is_judged_does_not_take_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attribute = sdk_faults.attribute

    def signalled(run: Run) -> Run:
        interrupts._take(15, None)
        return attribute(run)

    monkeypatch.setattr(interrupts, "_came", value=False)
    monkeypatch.setattr(check, "attribute", signalled)

    assert client(tmp_path, GOOD + CLOSE) == 130

    assert outcomes(tmp_path)["client-initialized"] == "pass"


MODERN_CALL = """
say(id=1, method="tools/list", params={"_meta": meta})
sys.exit("error" in json.loads(server.stdout.readline()))
"""


@cases("tools_call", "questions")
def test_a_client_without_sessions_is_left_out_of_the_scenarios_with_one(
    tmp_path: Path, scenario: str
) -> None:
    assert client(tmp_path, STATELESS + MODERN_CALL, scenario=scenario) == 0

    assert played(tmp_path) == {scenario: "left out"}
    assert not {"fail", "warn"} & set(outcomes(tmp_path).values())


CALL = "say(id=3, method='tools/call', params={'name': 'add_numbers', 'arguments': {}})\n"


@cases(
    ("server.stdout.readline()\n", "unseen"),
    ("say(id=4, method='tools/list')\nserver.stdout.readline()\n", "warn"),
    ("say(method='notifications/cancelled', params={'requestId': 3})\n", "pass"),
    ("", "warn"),
)
def test_a_client_that_only_waits_cancels_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str, outcome: str
) -> None:
    monkeypatch.setattr(scenarios()["cancel"], "PATIENCE", 0.3)

    assert client(tmp_path, GOOD + CALL + then + CLOSE, scenario="cancel") == 0

    assert outcomes(tmp_path)["client-cancel-sent-legacy"] == outcome


def test_a_server_that_is_started_again_need_not_be_asked_for_its_eras_again(
    tmp_path: Path,
) -> None:
    asks = STATELESS + "say(id=0, method='server/discover', params={'_meta': meta})\n"
    asks += "server.stdout.readline()\n"
    talk = "say(id=1, method='tools/call', params=params)\nserver.stdout.readline()\n"
    code = "import os\nif os.environ['MCP_CONFORMANCE_SCENARIO'] == 'restart':\n"
    code += f"{indent(asks + talk + STATELESS + talk + CLOSE, ' ')}else:\n"
    code += indent(asks + "info = " + GOOD.partition("info = ")[2] + CLOSE, " ")

    assert client(tmp_path, code, "--scenario", "restart", scenario="old-errors") == 0

    assert outcomes(tmp_path)["client-probes-first"] == "pass"
    assert outcomes(tmp_path)["client-restarts-server"] == "pass"


def test_a_client_that_never_initializes_over_http_fails(tmp_path: Path) -> None:
    code = TRANSPORT.partition("with post")[0] + (
        "try: post({'id': 1, 'method': 'tools/list'}).close()\n"
        "except OSError as error: sys.exit(str(error))\n"
    )

    assert client(tmp_path, code, "--http") == 1

    assert outcomes(tmp_path)["client-initialize-first"] == "fail"


LOST = """
import urllib.error
def ask(n, method, **params):
    with post({"id": n, "method": method, "params": params}, **session) as answer: answer.read()
ask(2, "tools/call", name="add_numbers", arguments={"a": 2, "b": 3})
try: ask(3, "tools/list")
except urllib.error.HTTPError: pass
try:
    with post({"id": 4, "method": "initialize", "params": params}, **more) as answer: answer.read()
except urllib.error.HTTPError: pass
"""


@cases(("{}", "pass"), ("session", "fail"))
def test_a_new_session_has_no_id_of_the_lost_one(tmp_path: Path, more: str, outcome: str) -> None:
    code = TRANSPORT + f"more = {more}\n" + LOST

    assert client(tmp_path, code, "--http", scenario="session-lost") == (outcome == "fail")

    assert outcomes(tmp_path)["client-http-session-lost"] == outcome


@cases("sys.exit('lost')", "")
def test_a_client_that_does_not_resume_gets_a_warning(tmp_path: Path, end: str) -> None:
    call = (
        "with post({'id': 2, 'method': 'tools/call', 'params': {'name': 'add_numbers', "
        "'arguments': {}}}, **session) as answer: answer.read()\n"
    )
    assert client(tmp_path, TRANSPORT + call + end, "--http", scenario="resume") == 0

    assert outcomes(tmp_path)["client-http-resumes"] == "warn"


def test_a_slow_client_that_is_cut_off_before_it_resumes_breaks_nothing(tmp_path: Path) -> None:
    call = (
        "with post({'id': 2, 'method': 'tools/call', 'params': {'name': 'add_numbers', "
        "'arguments': {}}}, **session) as answer: answer.read()\n"
    )
    slow = TRANSPORT + call + "import time\ntime.sleep(60)\n"
    client(tmp_path, slow, "--http", "--timeout", "4", scenario="resume")

    assert outcomes(tmp_path)["client-http-resumes"] == "unseen"


@cases(("PIPE", "warn"), ("DEVNULL", "pass"))
def test_a_client_that_holds_the_standard_error_of_a_server_reads_it(
    tmp_path: Path, where: str, outcome: str
) -> None:
    code = GOOD.replace("sys.argv[1:],", f"sys.argv[1:], stderr=subprocess.{where},")
    call = CALL + "server.stdout.readline()\n"

    assert client(tmp_path, code + call + CLOSE, "--timeout", "4", scenario="stderr") == 0

    assert outcomes(tmp_path)["client-reads-stderr"] == outcome


@cases(("GIVES_UP", "warn"), ("FALLS_BACK", "pass"))
def test_a_client_of_both_eras_falls_back_after_no_answer(
    tmp_path: Path, what: str, outcome: str
) -> None:
    asks = STATELESS + "say(id=0, method='server/discover', params={'_meta': meta})\n"
    code = asks + "import os, select\nif os.environ['MCP_CONFORMANCE_SCENARIO'] == 'silent':\n"
    code += " select.select([server.stdout], [], [], 0.5)\n"
    code += f" if {what!r} == 'GIVES_UP': sys.exit('no answer')\nelse: server.stdout.readline()\n"
    code += "info = " + GOOD.partition("info = ")[2] + CLOSE

    assert client(tmp_path, code, "--scenario", "old-errors", scenario="silent") == 0

    assert outcomes(tmp_path)["client-falls-back"] == outcome


@cases(("2025-06-18", "pass"), ("2025-11-25", "warn"))
def test_a_client_names_the_version_that_was_agreed(
    tmp_path: Path, named: str, outcome: str
) -> None:
    code = TRANSPORT.replace(
        '"MCP-Protocol-Version"] = "2025-11-25', f'"MCP-Protocol-Version"] = "{named}'
    )

    assert client(tmp_path, code, "--http", scenario="older") == 0

    assert outcomes(tmp_path)["client-http-version"] == outcome


@cases(("", "pass"), ("post({'id': 3, 'method': 'ping'}, **session).close()", "fail"))
def test_a_client_that_gives_up_may_try_the_transport_of_2024_11_05(
    tmp_path: Path, later: str, outcome: str
) -> None:
    code = f"""
post({{"id": 2, "method": "ping"}}, **session).close()
look = urllib.request.Request(sys.argv[-1], headers={{"Accept": "text/event-stream"}})
try: urllib.request.urlopen(look)
except OSError: pass
{later}
"""
    client(tmp_path, TRANSPORT + code, "--http")

    found = outcomes(tmp_path)
    assert found["client-http-session"] == found["client-http-version"] == outcome


@cases(("tools_call", "warn"), ("lost", "unseen"))
def test_a_session_whose_connection_broke_need_not_be_deleted(
    tmp_path: Path, scenario: str, outcome: str
) -> None:
    code = """
call = {"name": "add_entry", "arguments": {"a": 2, "b": 3}}
try: post({"id": 2, "method": "tools/call", "params": call}, **session).close()
except OSError: pass
"""
    assert client(tmp_path, TRANSPORT + code, "--http", scenario=scenario) == 0

    assert outcomes(tmp_path)["client-http-session-deleted"] == outcome


def test_credentials_that_follow_a_redirect_are_named(tmp_path: Path) -> None:
    code = "'name': 'add_numbers', 'arguments': {}"
    follow = f"""
from urllib.error import HTTPError
class Stays(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_words): return None
urllib.request.install_opener(urllib.request.build_opener(Stays))
for n in range(4):
    try: post({{"id": n + 2, "method": "tools/call", "params": {{{code}}}}}, **session)
    except HTTPError as error:
        place = error.headers["Location"]
        there = urllib.request.Request(place, b"code=1", session if n else {{}})
        try: urllib.request.urlopen(there)
        except HTTPError: pass
"""
    assert client(tmp_path, TRANSPORT + follow, "--http", scenario="redirect") == 1

    document = json.loads((tmp_path / "j").read_text())
    (found,) = (
        one["judgements"][0]["actual"]
        for one in document["verdicts"]
        if one["clause"] == "client-auth-credentials-origin"
    )
    assert found == "the client fetched /elsewhere/mcp with code"


def test_an_issuer_that_differs_by_a_slash_is_another_one(tmp_path: Path) -> None:
    for fault, outcome in (("none", Outcome.PASS), ("client-auth-iss", Outcome.FAIL)):
        found = over_http(fault, "auth-iss-slash", tmp_path / fault)
        assert found["client-auth-iss"] is outcome


def test_a_client_that_does_not_end_is_ended(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert client(tmp_path, GOOD + "server.wait()", "--timeout", "4") == 2

    assert "did not end within 4 s" in capsys.readouterr().out


@cases(
    (["server", "request", "document", "metadata", "register", "request"], "nobody opened"),
    (["server", "request", "metadata"], "nobody opened"),
    (["metadata", "register", "authorize", "request"], "used no code"),
    (["metadata", "register", 'authorize {"registered": true}', "request"], "used no code"),
    (["metadata", 'authorize {"registered": false}', "request"], "did not come back"),
    (["metadata", "register", "authorize", "token", "request"], ""),
    (["server", "request", "document"], ""),
)
def test_a_client_that_waits_for_a_login_is_named(places: list[str], waits: str) -> None:
    recorder = Recorder(None, {"url": "http://127.0.0.1:1/mcp", "scenario": "auth"}, {})
    for place in places:
        recorder.event(f"{Happened.AUTHORIZATION}{place}" + " {}" * (" " not in place))
    talk = recording.kept(bytes(recorder.kept), Path("auth-1.jsonl"))

    came = course.outcome(PlayedScenario("auth"), find("auth"), None, [talk], 5)

    assert came.outcome is ScenarioOutcome.UNENDED
    assert came.why.startswith("the client did not end within 5 s")
    assert waits in came.why
    assert (": " in came.why) is bool(waits)


@cases("server.kill()\nserver.wait()\n", "server.terminate()\nserver.wait()\n")
def test_a_signal_before_the_end_of_the_input_is_a_warning(tmp_path: Path, end: str) -> None:
    assert client(tmp_path, GOOD + end) == 0

    assert outcomes(tmp_path)["client-closes-input-first"] == "warn"


def test_a_request_before_the_opening_fails_under_its_own_name(tmp_path: Path) -> None:
    early = GOOD.replace("say(id=1, method", "say(id=0, method='tools/list')\nsay(id=1, method", 1)

    assert client(tmp_path, early + "server.stdout.readline()\n" + CLOSE) == 1

    assert outcomes(tmp_path)["client-initialize-first"] == "fail"


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("print('hello')", "the client never connected (exit status 0)"),
        ("import os; os.kill(os.getpid(), 9)", "the client was ended by SIGKILL"),
        (TRANSPORT + "sys.exit('broken')", "the client ended with exit status 1"),
    ],
)
def test_a_cause_over_http_is_named(
    code: str, cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert client(tmp_path, code, "--http") == 2

    assert cause in capsys.readouterr().out


@pytest.mark.parametrize(("again", "outcome"), [(True, "pass"), (False, "warn")])
def test_a_server_that_exited_is_to_be_started_again(
    again: bool, outcome: str, tmp_path: Path
) -> None:
    call = STATELESS + "say(id=1, method='tools/call', params=params)\nserver.stdout.readline()\n"
    assert client(tmp_path, call + (call if again else "") + CLOSE, scenario="restart") == 0

    assert outcomes(tmp_path)["client-restarts-server"] == outcome


@pytest.mark.parametrize(
    ("tool", "again", "outcome"),
    [("add_entry", True, "warn"), ("add_entry", False, "pass"), ("count_entries", True, "pass")],
)
def test_a_call_whose_answer_was_lost_is_not_sent_again_if_it_adds_something(
    tool: str, again: bool, outcome: str, tmp_path: Path
) -> None:
    call = STATELESS.replace("add_numbers", tool)
    call += "say(id=1, method='tools/call', params=params)\nserver.stdout.readline()\n"
    code = call + (call if again else "") + CLOSE
    assert client(tmp_path, code, scenario="lost-stateless") == 0

    assert outcomes(tmp_path)["client-call-not-repeated"] == outcome


def test_advisories_on_the_sdk_of_a_client_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mcp").mkdir()
    (tmp_path / "mcp" / "__init__.py").touch()
    (tmp_path / "mcp-1.29.1.dist-info").mkdir()
    about = "Name: mcp\nVersion: 1.29.1\n"
    (tmp_path / "mcp-1.29.1.dist-info" / "METADATA").write_text(about)
    (tmp_path / "client.py").write_text("import mcp\n" + GOOD + CLOSE)
    command = [sys.executable, str(tmp_path / "client.py"), "{server}"]
    words = ["--scenario", "tools_call", "--advisories"]
    assert main(["client", *words, "--", *command]) == 0

    shown = capsys.readouterr().out
    assert "not tested GHSA-rwrf-2pqf-9j8j: use mcp 1.30.0" in shown
    assert re.search(r"^  sdk +mcp 1\.29\.1: none of its releases was", shown, re.MULTILINE)


@cases(
    (("server", "client"), "@modelcontextprotocol/client 2.4.0"),
    (("server",), "@modelcontextprotocol/server 2.4.0"),
)
def test_the_sdk_of_a_client_is_the_one_for_clients(
    names: tuple[str, ...], of_a_client: str
) -> None:
    found = tuple(Package(f"@modelcontextprotocol/{name}", "2.4.0", NPM) for name in names)

    assert str(SdkIdentity(found).of_client) == of_a_client


def test_a_client_of_unknown_packages_is_said_to_be_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert client(tmp_path, GOOD + CLOSE, "--advisories") == 0

    shown = capsys.readouterr().out
    assert "its own packages are unknown" in shown
    assert re.search(r"^  sdk +unknown: its faults count as yours$", shown, re.MULTILINE)


@pytest.mark.parametrize(("info", "outcome"), [('"clientInfo": info', "pass"), ("", "warn")])
def test_a_client_that_falls_back_is_judged_by_both_eras(
    info: str, outcome: str, tmp_path: Path
) -> None:
    probe = STATELESS.replace('"clientInfo": info', info)
    probe += "say(id=9, method='server/discover', params={'_meta': meta})\n"
    probe += "server.stdout.readline()\n"
    opening = "info = " + GOOD.partition("info = ")[2]
    assert client(tmp_path, probe + opening + CLOSE, scenario="old-errors") == 0

    found = outcomes(tmp_path)
    assert found["client-meta-client-info"] == outcome
    assert found["client-falls-back"] == found["client-initialized"] == "pass"


def test_a_client_of_the_other_era_is_not_accused(tmp_path: Path) -> None:
    assert client(tmp_path, GOOD.replace("say(method", "sys.exit(1)\n#"), scenario="state") == 0


def test_a_client_over_http_gets_the_url_as_its_last_argument(tmp_path: Path) -> None:
    assert client(tmp_path, TRANSPORT, "--http") == 0

    assert outcomes(tmp_path)["client-http-accept"] == "pass"
    assert outcomes(tmp_path)["client-initialized"] != "fail"
    assert outcomes(tmp_path)["client-message-shape"] == "pass"


DUPLICATE = GOOD + "say(id=1, method='tools/list')\n" + CLOSE


def judged(*words: str) -> int:
    return main(["client", "--scenario", "tools_call", "--color", "never", *words])


def test_a_configuration_names_a_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = json.dumps(["{python}", "-c", DUPLICATE, "{server}"])
    file = tmp_path / "touchstone.toml"
    file.write_text(f"client = {words}\nfail-on = 'never'\ntimeout = 5\n")

    assert judged() == 0
    assert "client-request-id-unique" in capsys.readouterr().out
    assert judged("--fail-on", "must") == 1
    assert "client --scenario tools_call -v --config touchstone.toml" in capsys.readouterr().out
    assert main(["check"]) == 2
    assert "`mcp-touchstone client` judges its client" in capsys.readouterr().err

    file.write_text("command = 'x'\nselect = ['ping']\n")
    assert judged() == 2
    assert "touchstone.toml: it names no client" in capsys.readouterr().err
    file.write_text(f"command = 'x'\nselect = ['ping']\nclient = {words}\n")
    assert judged() == 1


def test_no_client_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    assert judged() == 2
    assert judged("a") == 2
    assert judged("--", "./no-such-program") == 2

    assert capsys.readouterr().err == (
        "mcp-touchstone: client: write the command of the client after `--`, or client = [...] "
        "into touchstone.toml\n"
        "mcp-touchstone: client: write the command after `--`: client -- a\n"
        "mcp-touchstone: client: ./no-such-program: No such file or directory\n"
    )


def test_the_gate_of_a_client_is_that_of_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ("--", sys.executable, "-c", DUPLICATE, "{server}")

    assert judged("--json", "old.json", *command) == 1
    assert judged("--since", "old.json", *command) == 0
    assert main(["report", "old.json", "--markdown", "again.md"]) == 0
    assert "client --scenario tools_call -v" in (tmp_path / "again.md").read_text()
    assert main(["diff", "old.json", "old.json"]) == 0
    capsys.readouterr()
    assert judged("--select", "client-request-id-uniqe", *command) == 2
    assert "no clause, chapter, section or scenario" in capsys.readouterr().err
    assert judged("--update-baseline", *command) == 2
    assert "--scenario and --update-baseline" in capsys.readouterr().err

    entry = '[[known]]\nclause = "client-initialized"\nrevision = "all"\nreason = "x"\n'
    (tmp_path / "touchstone-baseline.toml").write_text(
        entry + entry.replace("initialized", "request-id-unique")
    )
    assert judged(*command) == 0  # an entry may be about another scenario
    assert judged("--no-baseline", *command) == 1


def test_a_folder_of_recordings_can_be_used_again(tmp_path: Path) -> None:
    assert client(tmp_path, GOOD + CLOSE) == 0
    assert client(tmp_path, GOOD + CLOSE) == 0

    assert len([*(tmp_path / "r" / "tools_call").glob("*.jsonl")]) == 1


def test_a_client_of_the_official_suite_gets_the_scenarios_that_it_knows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = "import os\nname = os.environ['MCP_CONFORMANCE_SCENARIO']\n"
    known += "if name not in ('initialize', 'tools_call'): raise SystemExit('unknown ' + name)\n"
    names = ("resume", "version", "list-changed", "cancel", "pages")
    few = {name: scenarios()[name] for name in names}
    monkeypatch.setattr(check, "scenarios", lambda: few)

    code = main(["client", "--", sys.executable, "-c", known + TRANSPORT])

    out = " ".join(capsys.readouterr().out.split())
    assert code == 0, out
    for name in ("cancel", "pages"):
        assert f"{name} left out: the official suite has no such scenario" in out
    assert out.count("played") == 3  # `resume` by the name tools_call
    known = known.replace("'tools_call'", "'cancel'")
    words = ("--scenario", "cancel", "--", sys.executable, "-c", known + TRANSPORT)
    assert main(["client", *words]) == 0


def test_an_official_client_that_connects_and_finds_no_tool_is_run_again_as_tools_call(
    tmp_path: Path,
) -> None:
    call = "{'id': 2, 'method': 'tools/call', 'params': {'name': 'add_numbers', 'arguments': {}}}"
    code = "import os\n" + TRANSPORT
    code += "if os.environ['MCP_CONFORMANCE_SCENARIO'] != 'tools_call': sys.exit('no such tool')\n"
    code += f"with post({call}, **session) as answer: answer.read()\n"

    assert client(tmp_path, code, "--http", scenario="questions") == 0

    assert played(tmp_path) == {"questions": "judged"}


GIVES_UP = """
import os, urllib.parse
handled = os.environ["MCP_CONFORMANCE_SCENARIO"].startswith("auth/")
if handled: urllib.request.urlopen(urllib.parse.urljoin(sys.argv[-1], "/metadata/mcp")).close()
sys.exit("it needs a token")
"""


def test_an_official_client_that_refuses_the_metadata_keeps_its_verdict(tmp_path: Path) -> None:
    post = "try: post({'id': 1, 'method': 'initialize', 'params': params}).close()\n"
    code = TRANSPORT.partition("with post")[0] + post + "except OSError: pass\n" + GIVES_UP
    words = ("--scenario", "auth-resource", "--json", str(tmp_path / "j"))

    assert main(["client", *words, "--", sys.executable, "-c", code]) == 0

    assert outcomes(tmp_path)["client-auth-resource-match"] == "pass"


def test_an_official_client_that_reaches_nothing_is_not_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    few = {name: scenarios()[name] for name in ("tools_call", "cancel")}
    monkeypatch.setattr(check, "scenarios", lambda: few)

    assert main(["client", "--", sys.executable, "-c", "raise SystemExit('lost')"]) == 2

    out = " ".join(capsys.readouterr().out.split())
    assert "reason tools_call: the client never connected (exit status 1)" in out


def test_a_client_that_says_nothing_without_a_step_is_left_out(tmp_path: Path) -> None:
    """A client of 2026-07-28 need not ask for the eras, and lists nothing."""
    idle = "import os\nif os.environ['MCP_CONFORMANCE_SCENARIO'] != 'newer':\n"
    asks = "say(id=1, method='tools/list', params={'_meta': meta})\nserver.stdout.readline()\n"
    code = STATELESS + idle + indent(asks, " ") + CLOSE
    words = ("--scenario", "newer", "--scenario", "cache")

    assert client(tmp_path, code, *words, scenario="stateless") == 0

    assert played(tmp_path) == {"stateless": "judged", "newer": "left out", "cache": "judged"}


def test_a_client_that_never_listed_keeps_no_stale_list(tmp_path: Path) -> None:
    call = STATELESS + "say(id=1, method='tools/call', params=params)\nserver.stdout.readline()\n"

    assert client(tmp_path, call + CLOSE, scenario="cache") == 0

    assert outcomes(tmp_path)["client-cache-stale"] == "unseen"


def test_a_common_trouble_is_told_once_with_what_our_server_did(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = [word for name in ("tools_call", "exit") for word in ("--scenario", name)]

    assert main(["client", *words, "--", sys.executable, "-c", "raise SystemExit('lost')"]) == 2

    out = " ".join(capsys.readouterr().out.split())
    assert "tools_call the client never connected (exit status 1)" in out
    assert out.count("our part: List the tools and call one, with a session.") == 1
    assert out.count("lost") == 2  # once in the command
    assert "reason tools_call, exit: the client never connected (exit status 1);" in out
    assert "without {server} in its command, a client gets the URL of a server" in out


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
        command = (sys.executable, "-c", loud, "{server}")
        played = drive.play(Target(command=command), "tools_call", tmp_path / "r")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert "never connected" in played.scenario.why
    assert played.said[-1] == "end"
    assert most < 10_000_000
