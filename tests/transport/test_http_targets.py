"""Servers that speak HTTP, as targets: options, files, secrets, and whole runs."""

import json
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone import connect
from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.catalog.loader import load
from mcp_touchstone.config import resolve, scaffold
from mcp_touchstone.config.parser import parse
from mcp_touchstone.config.settings import ConfigError, Settings
from mcp_touchstone.connection.server_profile import ServerProfile, Spoken
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.plan import Plan
from mcp_touchstone.engine.runner import judge
from mcp_touchstone.results.run import Absent
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.target import values
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport import http_advice
from mcp_touchstone.transport.http_endpoint import Endpoint, values_of
from mcp_touchstone.transport.http_exchange import reason
from mcp_touchstone.transport.http_requests import RequestRate
from mcp_touchstone.wire.exchange import Exchange
from mcp_touchstone.wire.reply import Reply
from tests.bridge_client import TOY
from tests.cases import cases
from tests.commands import CHECKOUT, Done, ran, run_here
from tests.http_canned import Answer, fixed, mcp, message_of, response, serving
from tests.runs import learning

pytestmark = pytest.mark.slow

URL = "http://127.0.0.1:{port}/mcp"
REVISION = "2025-11-25"


def only(*words: str) -> Settings:
    [found] = resolve.settings(parse(["check", *words]))
    return found


def check(*words: str, **env: str) -> Done:
    return run_here("check", *words, cwd=CHECKOUT, **env)


def test_url_names_a_server_that_runs() -> None:
    target = resolve.target(only("https://example.org/mcp"))

    assert target.transport is Transport.HTTP
    assert not target.started
    assert target.words() == ["https://example.org/mcp"]
    assert target.revisions[0] == "2025-03-26"


def test_url_with_a_command_names_a_server_that_we_start() -> None:
    words = ["--http", URL, "--env", "PORT={port}", "--", "server", "--port", "{port}"]
    target = resolve.target(only(*words))
    placed = target.on_port(8123)

    assert placed.url == "http://127.0.0.1:8123/mcp"
    assert placed.command == ("server", "--port", "8123")
    assert placed.env == {"PORT": "8123"}
    assert resolve.target(only(*target.words())) == target


@cases(
    (["http://a/mcp", "http://b/mcp"], "name one server"),
    (["http://a/mcp", "--http", "http://b/mcp"], "name one server"),
    (["http://user:pw@a/mcp"], "with --header"),
    (["--http", URL], "add -- COMMAND"),
    (["http://a/mcp", "--suite", "security"], "--intrusive allows that"),
    (["http://a/mcp", "--header", "Authorization=env:NO_SUCH_VARIABLE"], "is not set"),
    (["http://a/mcp", "--ca-file", "no-such-file"], "there is no such file"),
    (["--header", "X=env:PATH", "--", "server"], "speaks HTTP"),
    (["--", "server", "--port", "{port}"], "name its URL"),
    (["--env", "PORT={port}", "--", "server"], "name its URL"),
    (["--http", URL, "--self"], "drop --http"),
)
def test_options_that_do_not_fit_are_refused(words: list[str], why: str) -> None:
    with pytest.raises(UserError, match=why):
        resolve.target(only(*words))


def test_header_whose_variable_no_shell_can_read_is_refused() -> None:
    with pytest.raises(ValueError, match="no name of a variable"):
        values.header("X-A=env:A$(id)")


def test_value_of_a_header_in_an_argument_is_refused_and_not_printed() -> None:
    done = check("http://127.0.0.1:9/mcp", "--header", "Authorization=Bearer s3cret")

    assert done.returncode == 2
    assert "write NAME=env:VARIABLE" in done.stderr
    assert "s3cret" not in done.stderr


def test_configuration_names_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = f'url = "{URL}"\ncommand = "server {{port}}"\n[header]\nAuthorization = "env:TOKEN"\n'
    (tmp_path / "touchstone.toml").write_text(text)
    found = only("--trust-config")

    assert (found.url, found.command) == (URL, ("server", "{port}"))
    assert found.header == {"Authorization": "TOKEN"}


LOCAL = "http://127.0.0.1:8000/mcp"


@pytest.fixture
def client_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that writes servers to .mcp.json in the working folder."""
    monkeypatch.chdir(tmp_path)

    def write(servers: dict[str, Any]) -> None:
        (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))

    return write


def test_file_of_a_client_names_a_url(client_file: Callable[..., None]) -> None:
    old = {"type": "sse", "url": "http://127.0.0.1:8000/sse"}
    client_file({"a": {"type": "http", "url": LOCAL}, "b": old})

    assert only("--config", ".mcp.json", "a").url == LOCAL
    with pytest.raises(ConfigError, match="HTTP\\+SSE of 2024-11-05"):
        only("--config", ".mcp.json", "b")


@cases(
    (["Authorization"], "a: headers is not an object of strings"),
    ({"X-Key": 7}, "a: headers is not an object of strings"),
    ({"Accept": "text/html"}, "a: Accept: we set this header ourselves"),
    ({"X Key": "v"}, "a: 'X Key' is no name of a header"),
    (
        {"X-Key": "${input:key}"},
        "a: headers.X-Key asks its user for ${input:key}; give it: --header X-Key=env:VARIABLE",
    ),
    ({"X-Key": "Bearer ${NO_SUCH}"}, "a: headers.X-Key needs the variable NO_SUCH; set it"),
    ({"X-Key": "${NO_SUCH}"}, "a: headers.X-Key needs the variable NO_SUCH; set it"),
    ({"X-Key": "${env:NO_SUCH}"}, "--header X-Key: the variable NO_SUCH is not set"),
)
def test_unusable_headers_of_a_client_file_are_refused(
    client_file: Callable[..., None], headers: object, message: str
) -> None:
    client_file({"a": {"url": LOCAL, "headers": headers}})

    with pytest.raises(UserError, match=re.escape(message)):
        resolve.target(only("--config", ".mcp.json"))


def test_header_of_the_command_line_replaces_that_of_a_client_file(
    client_file: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINE", "Bearer mine")
    client_file({"a": {"url": LOCAL, "headers": {"Authorization": "${input:token}"}}})

    found = only("--config", ".mcp.json", "--header", "Authorization=env:MINE")
    assert found.header == {"Authorization": "MINE"}


def test_servers_with_similar_names_keep_their_own_headers(
    client_file: Callable[..., None], tmp_path: Path
) -> None:
    servers = {name: {"url": LOCAL, "headers": {"X-Key": f"of {name}"}} for name in ("a-b", "a_b")}
    servers["c"] = {"url": LOCAL, "headers": {"X-Key": "${workspaceFolderBasename}"}}
    client_file(servers)
    found = [only("--config", ".mcp.json", "--target", name).header for name in servers]

    values = [values_of(header, {})["X-Key"] for header in found]
    assert values == ["of a-b", "of a_b", tmp_path.name]


def test_headers_of_a_client_file_are_sent_and_in_no_output(tmp_path: Path) -> None:
    with serving(mcp()) as server:
        headers = {
            "Authorization": "Bearer ${PART}-abcdefgh",
            "X-Key": "${KEY_OF_MINE}",
            "X-Plain": "literal-12345678",
        }
        entry = {"type": "http", "url": server.url, "headers": headers}
        file = tmp_path / ".mcp.json"
        file.write_text(json.dumps({"mcpServers": {"a": entry}}))
        done = check(
            *("--config", str(file), "--target", "a", "--select", "answers_a_ping", "-v"),
            *("--save", str(tmp_path / "wire"), "--json", str(tmp_path / "report.json")),
            PART="s3cret-part",
            KEY_OF_MINE="s3cret-key-12345678",
        )

    sent = ("Bearer s3cret-part-abcdefgh", "s3cret-key-12345678", "literal-12345678")
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(value.encode() in server.requests[0] for value in sent)
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path != file]
    texts = [done.stdout, done.stderr, *(path.read_text() for path in files)]
    assert not [text for text in texts for value in sent if value.removeprefix("Bearer ") in text]


def test_starting_configuration_names_the_url() -> None:
    target = resolve.target(only("http://127.0.0.1:8000/mcp", "--header", "X-Key=env:PATH"))
    profile = ServerProfile(Pace(1.0), {REVISION: Spoken(Reply(1, 2, {"result": {}}))})
    table = tomllib.loads(scaffold.text(target, profile, None))

    assert table["url"] == target.url
    assert table["header"] == {"X-Key": "env:PATH"}
    assert "command" not in table


def test_bridge_refuses_a_server_that_speaks_http() -> None:
    done = run_here("bridge", "http://127.0.0.1:9/")

    assert done.returncode == 2
    assert "speaks HTTP already" in done.stderr


def absences(target: Target) -> dict[str, Absent]:
    profile = ServerProfile(Pace(1.0), {REVISION: Spoken(Reply(1, 2, {"result": {}}))})
    plan = Plan(target, profile, load(), Choice())
    plan.rest()
    return {absent.clause: absent for absent in plan.absent}


def test_rules_of_stdio_do_not_apply_over_http() -> None:
    found = absences(Target(command=(), url="http://127.0.0.1:8000/mcp"))

    assert "stdio" in found["stdio-stdout-only-messages"].why
    assert "stdio" in found["lifecycle-shutdown-on-stdin-close"].why
    assert "jsonrpc-parse-error" not in found


def test_rules_of_http_do_not_apply_on_stdio() -> None:
    found = absences(Target(command=("server",)))
    judged = [
        clause.id
        for clause in load().catalogue
        if clause.group == "http" and REVISION in clause.revisions
        if clause.judged and not clause.draft
    ]

    assert {found[clause].why for clause in judged} == {"other transport: a rule of http only"}
    assert not any(found[clause].by_choice for clause in judged)


def test_server_of_somebody_gets_no_malformed_traffic_unless_the_user_says_so() -> None:
    theirs = Target(command=(), url="https://example.org/mcp")
    malformed = {"jsonrpc-parse-error", "jsonrpc-invalid-request", "generated-survived"}

    assert malformed <= absences(theirs).keys()
    assert "--intrusive" in absences(theirs)["jsonrpc-parse-error"].why
    for target in (
        Target(command=(), url="https://example.org/mcp", intrusive=True),
        Target(command=(), url="http://127.0.0.1:8000/mcp"),
        Target(command=("server",), url=URL),
    ):
        assert not malformed & absences(target).keys()


def short_sessions(pings: int) -> Answer:
    """Serve sessions that end after some pings; then every request gets 404 without a body."""
    used: dict[str, int] = {}

    def write(connection: socket.socket, request: bytes) -> None:
        method = message_of(request).get("method")
        if method == "initialize":
            used[f"session-{len(used)}"] = 0
            mcp(session=f"session-{len(used) - 1}")(connection, request)
            return
        known = next((name for name in used if f"Id: {name}\r".encode() in request), "")
        used[known] = used.get(known, 0) + (method == "ping")
        if used[known] > pings:
            connection.sendall(response("404 Not Found"))
        else:
            mcp(session=known)(connection, request)

    return write


def test_server_may_end_a_session_at_any_time(tmp_path: Path) -> None:
    with serving(short_sessions(pings=4)) as server:
        report = tmp_path / "report.json"
        select = ("--select", "jsonrpc-re*", "--revision", REVISION, "--examples", "1")
        done = check(server.url, *select, "--json", str(report))

    found = json.loads(report.read_text())
    outcomes = {one["clause"]: one["outcome"] for one in found["verdicts"]}
    assert outcomes["jsonrpc-request-answered"] == "pass", done.stdout
    assert "fail" not in outcomes.values(), done.stdout
    assert "the server ended the session: HTTP 404" in found["lost"][0]["how"]


def test_server_that_cannot_be_reached_exits_with_2_and_one_reason() -> None:
    done = check("http://127.0.0.1:9/mcp", "--select", "ping")

    assert done.returncode == 2
    assert "refused" in done.stdout
    assert "by hand" not in done.stdout


TOKEN_ERROR = b'{"error": "invalid_token", "error_description": "no"}'
RPC_ERROR = b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "no"}}'


@cases(
    ("401 Unauthorized", b"", "as in `Authorization: Bearer TOKEN`"),
    ("401 Unauthorized", TOKEN_ERROR, "as in `Authorization: Bearer TOKEN`"),
    ("403 Forbidden", RPC_ERROR, "it refuses us"),
    ("307 Temporary Redirect", b"", "a redirect to /there; name that URL"),
)
def test_server_that_keeps_us_out_is_not_accused(status: str, body: bytes, said: str) -> None:
    refusal = response(status, "application/json", body, "Location: /there")
    with serving(fixed(refusal)) as server:
        done = check(server.url)

    assert done.returncode == 2, done.stdout
    assert said in " ".join(done.stdout.split())
    assert "FAIL" not in done.stdout


def test_server_that_refuses_the_first_request_by_a_message_fails_with_the_status() -> None:
    with serving(fixed(response("406 Not Acceptable", "application/json", RPC_ERROR))) as server:
        done = check(server.url)

    assert done.returncode == 1, done.stdout
    assert "HTTP 406: error -32000" in done.stdout


def refuses_a_get(connection: socket.socket, request: bytes) -> None:
    """Answer a GET by 400, where 405 is asked for."""
    if request.startswith(b"GET"):
        connection.sendall(response("400 Bad Request", "text/plain", b"no"))
    else:
        mcp()(connection, request)


def test_finding_on_a_get_shows_it() -> None:
    choice = Choice(select=("endpoint-get-stream-or-405",), revisions=(REVISION,))
    with serving(refuses_a_get) as server:
        run = judge(Target(command=(), url=server.url), load(), choice)

    [found] = run.of(Outcome.FAIL)
    guilty = [line.text for line in found.gravest.wire if line.guilty]
    assert guilty == ["we sent GET /mcp: HTTP 400, text/plain"]


def with_token(connection: socket.socket, request: bytes) -> None:
    """Serve a session to callers with a token; others get the error of RFC 6750."""
    if b"Authorization: Bearer right-token\r" in request:
        mcp()(connection, request)
    else:
        challenge = 'WWW-Authenticate: Bearer error="invalid_token"'
        connection.sendall(response("401 Unauthorized", "application/json", TOKEN_ERROR, challenge))


def test_error_of_a_token_is_not_judged_as_a_message(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    select = [w for one in ("http/authorization", "jsonrpc-*") for w in ("--select", one)]
    words = (*select, "--revision", REVISION, "--header", "Authorization=env:TOKEN")
    with serving(with_token) as server:
        check(server.url, *words, "--json", str(report), TOKEN="Bearer right-token")

    verdicts = json.loads(report.read_text())["verdicts"]
    outcomes = {one["clause"]: one["outcome"] for one in verdicts}
    assert outcomes["authorization-missing-401"] == "pass"
    for clause in ("jsonrpc-version-member", "jsonrpc-error-shape", "jsonrpc-message-kind"):
        assert outcomes[clause] in {"pass", "unseen"}, clause


def test_server_that_ends_at_its_start_is_named_with_its_words() -> None:
    program = "import sys; sys.exit('the key is missing')"
    done = check("--http", URL, "--select", "ping", "--", sys.executable, "-c", program)

    assert done.returncode == 2
    assert "(status 1)" in done.stdout
    assert "key is" in done.stdout


def test_server_that_does_not_listen_is_named() -> None:
    sleeper = (sys.executable, "-c", "import time; time.sleep(60)")
    done = check("--http", URL, "--select", "ping", "--timeout", "3", "--", *sleeper)

    assert done.returncode == 2
    assert "take {port}?" in " ".join(done.stdout.split())


def test_our_own_bridge_is_started_checked_and_ended() -> None:
    bridge = (sys.executable, "-m", "mcp_touchstone", "bridge", "--port", "{port}", "--", *TOY)
    words = ("--http", URL, "--select", "answers_a_ping", "--revision", REVISION, "--", *bridge)
    done = check(*words)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout


def test_session_is_opened_over_http() -> None:
    with serving(mcp(session="abc")) as server:
        with connect(url=server.url) as session:
            assert session.request("ping").result == {}
        assert [one for one in server.requests if one.startswith(b"DELETE")]


def test_pytest_checks_a_url(tmp_path: Path) -> None:
    with serving(mcp()) as server:
        words = ["--mcp-url", server.url, "--mcp-select", "answers_a_ping"]
        done = ran([sys.executable, "-m", "pytest", *words], cwd=tmp_path)

    assert "2 passed" in done.stdout, done.stdout + done.stderr


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a self-signed certificate for 127.0.0.1, with its key, in one file."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("needs openssl")
    path = tmp_path_factory.mktemp("tls") / "server.pem"
    words = [
        *("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"),
        "-addext",
    ]
    subprocess.run(
        [program, *words, "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out", f"{path}.crt"],
        check=True,
        capture_output=True,
    )
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


def test_https_is_verified_and_a_certificate_can_be_added(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    words = ("--select", "ping", "--revision", REVISION)
    with serving(mcp(), context) as server:
        done = check(server.url, *words, "--ca-file", f"{certificate}.crt")
        refused = reason_of(Endpoint(server.url))
        other_name = server.url.replace("127.0.0.1", "localhost")
        misnamed = reason_of(Endpoint(other_name, ca_file=Path(f"{certificate}.crt")))

    assert done.returncode == 0, done.stdout
    assert refused.startswith("TLS failed: self-signed certificate")
    assert misnamed.startswith("TLS failed: Hostname mismatch")
    exchange = Exchange(1, "POST", 1, (), 0.0, fault=refused)
    assert "with --ca-file" in http_advice.about(exchange, server.url)


def test_a_port_that_ends_plain_connections_may_speak_tls(certificate: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    with serving(mcp(), context) as server:
        done = check(server.url.replace("https:", "http:"), "--select", "ping")

    assert done.returncode == 2
    said = " ".join(done.stdout.split())
    assert "write https://" in said


def reason_of(endpoint: Endpoint) -> str:
    """Return why there is no connection, in the words of a report."""
    with pytest.raises(OSError, match="certificate") as error:
        endpoint.connect(10.0)
    return reason(error.value)


def test_requests_keep_their_distance() -> None:
    waited: list[float] = []
    rate = RequestRate(4.0, clock=lambda: 100.0, pause=waited.append)

    for _ in range(4):
        rate.wait()

    assert waited == [0.25, 0.5, 0.75]


@pytest.mark.parametrize(("rate", "shown", "distance"), [(0, "5", 0.2), (2, "2", 0.5)])
def test_server_of_somebody_is_judged_gently_and_the_report_says_so(
    rate: int, shown: str, distance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    paused: list[float] = []
    monkeypatch.setattr(Endpoint, "local", False)
    monkeypatch.setattr(RequestRate.__init__, "__defaults__", (lambda: 100.0, paused.append))
    with serving(mcp()) as server:
        choice = Choice(select=("ping", "jsonrpc-request-answered"), revisions=(REVISION,))
        target = Target(command=(), url=server.url, rate=rate)
        _, profile = learning(target, load(), choice)

    assert any(f", {shown} requests a second" in remark for remark in profile.remarks)
    assert paused[0] == pytest.approx(distance)
    assert len(server.requests) >= 5
    assert len(paused) >= len(server.requests) - 1
    assert all(b"User-Agent: mcp-touchstone/" in one for one in server.requests)
