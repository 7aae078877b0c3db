"""Bearer tokens of our own issuer, and of commands of the user."""

import base64
import contextlib
import hashlib
import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.cli import main
from mcp_touchstone.config import resolve, scaffold
from mcp_touchstone.connection import checked_http, login
from mcp_touchstone.connection.checked_http import CheckedHttp, LoginError, is_public
from mcp_touchstone.http_server.refusals import Refusal
from mcp_touchstone.issuer.mint import FLAWS, USERS
from mcp_touchstone.issuer.server import ASKED, LONGEST, METADATA, MOST_BODY, Issuer, shared
from mcp_touchstone.parts.part import Protection
from mcp_touchstone.tap.guard import Guard
from mcp_touchstone.transport import logins, tokens
from mcp_touchstone.transport.tokens import CommandTokens, TokenCommand, TokenError
from tests.cases import cases
from tests.conftest import HERE
from tests.http_canned import fixed, mcp, response, serving
from tests.mutants.http_tokens import ENV
from tests.transport.test_http_targets import URL, check, only

SERVER = (sys.executable, str(HERE / "mutants"), "--http", "{port}", "ChecksTokensOfSessions")
ISSUED = ("--http", URL, "--issuer", "mock")
PASSED_ON = [word for pair in ENV.items() for word in ("--env", "=".join(pair))]
VALID = {"listed-audience", "no-scope", "other-audience", "no-audience", "other-list"} | {
    "longer-audience",
    "nested-audience",
    "id-token",
}
"""Flaws of tokens that are valid at their issuer: only a server can know that they are not its."""


@pytest.fixture(scope="module")
def issuer() -> Any:
    made = Issuer()
    yield made
    made.close()


def post(url: str, body: dict[str, Any], *, as_json: bool = False) -> dict[str, Any]:
    data = json.dumps(body).encode() if as_json else urlencode(body).encode()
    return get(url, data)


def get(url: str, data: bytes | None = None) -> dict[str, Any]:
    with urllib.request.urlopen(url, data, timeout=20) as answer:  # noqa: S310  (our own)
        found: dict[str, Any] = json.load(answer)
    return found


@contextlib.contextmanager
def refused(status: str = "400") -> Iterator[None]:
    with pytest.raises(urllib.error.HTTPError, match=status) as refusal:
        yield
    refusal.value.close()


def test_issuer_publishes_its_metadata_and_public_keys(issuer: Issuer) -> None:
    documents = [get(issuer.url + path) for path in METADATA]
    keys = get(documents[0]["jwks_uri"])["keys"]

    assert documents[0] == documents[1]
    assert documents[0]["issuer"] == issuer.url
    assert documents[0]["code_challenge_methods_supported"] == ["S256"]
    assert [sorted(key) for key in keys] == [["alg", "e", "kid", "kty", "n", "use"]]


@pytest.mark.parametrize("flaw", ["", *FLAWS])
def test_introspection_knows_the_tokens_that_are_valid(issuer: Issuer, flaw: str) -> None:
    token = issuer.mint.token("https://a.example/mcp", "read", flaw=flaw)
    found = post(f"{issuer.url}/introspect", {"token": token})

    assert found["active"] is (not flaw or flaw in VALID)
    assert issuer.introspected[token] is found["active"]
    assert (found.get("sub"), "scope" in found) == (
        (USERS[0], True) if found["active"] else (None, False)
    )


BACK = "http://127.0.0.1:9/back"


class Stays(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_words: Any) -> None:
        return None


def sent_back(issuer: Issuer, registered: list[str], **more: str) -> tuple[str, int, str]:
    """Return a new client, the status of its authorization request, and where the browser goes."""
    about = {"redirect_uris": registered}
    client = post(f"{issuer.url}/register", about, as_json=True)["client_id"]
    challenge = base64.urlsafe_b64encode(hashlib.sha256(b"verifier").digest()).rstrip(b"=").decode()
    asked = {
        "client_id": client,
        "state": "s",
        "scope": "read",
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "login_hint": USERS[1],
        "resource": "https://a.example/mcp",
        **more,
    }
    with pytest.raises(urllib.error.HTTPError) as redirect:
        urllib.request.build_opener(Stays).open(f"{issuer.url}/authorize?{urlencode(asked)}")
    redirect.value.close()
    return client, redirect.value.code, redirect.value.headers["Location"] or ""


def allowed(
    issuer: Issuer, registered: list[str], **more: str
) -> tuple[str, str, dict[str, list[str]]]:
    """Return a new client, the place to which the browser is sent, and what it is told there."""
    client, _, place = sent_back(issuer, registered, **more)
    back, _, query = place.partition("?")
    return client, back, parse_qs(query)


def redeeming(client: str, said: dict[str, list[str]], **more: str) -> dict[str, str]:
    form = {"grant_type": "authorization_code", "code": said["code"][0], "client_id": client}
    return {**form, "code_verifier": "verifier", **more}


def test_client_gets_a_token_for_a_code_with_pkce(issuer: Issuer) -> None:
    client, back, said = allowed(issuer, [BACK], redirect_uri=BACK)
    form = redeeming(client, said, redirect_uri=BACK)
    token = post(f"{issuer.url}/token", form)["access_token"]

    assert back == BACK
    assert (said["state"], said["iss"]) == (["s"], [issuer.url])
    claims = issuer.mint.read(token) or {}
    assert (claims["sub"], claims["aud"]) == (USERS[1], "https://a.example/mcp")
    with refused():
        post(f"{issuer.url}/token", form)  # a code is used once


ELSEWHERE = "http://127.0.0.1:9/elsewhere"


@cases(
    ([BACK], {}, {}),
    ([BACK], {}, {"redirect_uri": BACK}),
    ([BACK], {"redirect_uri": BACK}, {}),
    ([BACK, ELSEWHERE], {"redirect_uri": BACK}, {}),
)
def test_token_request_need_not_repeat_the_redirect_uri(
    issuer: Issuer, registered: list[str], asking: dict[str, str], redeemed: dict[str, str]
) -> None:
    client, back, said = allowed(issuer, registered, **asking)
    token = post(f"{issuer.url}/token", redeeming(client, said, **redeemed))["access_token"]

    assert back == BACK
    assert (issuer.mint.read(token) or {})["sub"] == USERS[1]


@cases({}, {"redirect_uri": BACK})
def test_token_request_must_not_name_another_redirect_uri(
    issuer: Issuer, asking: dict[str, str]
) -> None:
    for other in (ELSEWHERE, BACK + "/"):
        client, _, said = allowed(issuer, [BACK], **asking)
        with refused():
            post(f"{issuer.url}/token", redeeming(client, said, redirect_uri=other))


def test_authorization_request_must_name_one_of_two_redirect_uris(issuer: Issuer) -> None:
    named: list[dict[str, str]] = [{}, {"redirect_uri": "http://127.0.0.1:9/third"}]
    found = [sent_back(issuer, [BACK, ELSEWHERE], **more)[1:] for more in named]
    assert found == [(400, ""), (400, "")]


@cases(
    *(
        "http://a/\r\nX: y",
        "http://a/\n",
        "http://a b/",
        "http://a/#part",
        "/back",
        "",
        "a",
        "http://",
    ),
    *(
        "https://[",
        "http://a:x/",
        "http://a:0/",
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///x",
    ),
    *("FILE:///x", "http://\u0430/", 5, None, ["http://a/"], "http://a/" + "x" * 3000),
)
def test_redirect_uri_to_which_no_browser_may_be_sent_is_not_registered(
    issuer: Issuer, uri: Any
) -> None:
    for uris in ([uri], ["http://localhost:1/back", uri]):
        with refused():
            post(f"{issuer.url}/register", {"redirect_uris": uris}, as_json=True)


@cases(
    "http://localhost:1/b", "http://[::1]:1/b?a=b", "https://a.example/", "cursor://a/b", "x.y:/b"
)
def test_redirect_uri_of_a_client_is_registered(issuer: Issuer, uri: str) -> None:
    made = post(f"{issuer.url}/register", {"redirect_uris": [uri]}, as_json=True)
    assert made["redirect_uris"] == [uri]


@cases("evil.example", "127.0.0.1.evil.example", "localhost.", "127.0.0.1:1:2", "", "a@127.0.0.1")
def test_issuer_serves_no_request_for_another_host(issuer: Issuer, host: str) -> None:
    request = urllib.request.Request(  # noqa: S310  (our own)
        f"{issuer.url}{METADATA[0]}", headers={"Host": host}
    )
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request, timeout=20)  # noqa: S310  (our own)


@cases(
    ("http://127.0.0.1:5/mcp", True),
    ("http://127.0.0.1:5/", True),
    ("http://127.0.0.1:5", True),
    (None, True),
    ("http://127.0.0.1:5/mcp/other", False),
    ("http://127.0.0.1:5/m", False),
    ("http://127.0.0.1:6/mcp", False),
    ("https://elsewhere.example/mcp", False),
    ("mcp", False),
)
def test_guard_refuses_a_token_for_another_server(audience: str | None, admitted: bool) -> None:
    notes: list[str] = []
    guard = Guard(Protection(), notes.append, lambda: socket.create_server(("127.0.0.1", 0)))
    try:
        guard.protect("http://127.0.0.1:5/mcp")
        token = guard._current.mint.token(audience, "read")
        headers = Message()
        headers["Authorization"] = f"Bearer {token}"
        with contextlib.nullcontext() if admitted else pytest.raises(Refusal):
            guard.admit(headers, "POST", [{"method": "tools/list"}])
    finally:
        guard.close()
    assert f'"token": "{"valid" if admitted else "old"}"' in notes[-1]


@pytest.mark.parametrize("change", [{"code_verifier": "other"}, {"grant_type": "password"}])
def test_token_is_refused_to_others(issuer: Issuer, change: dict[str, str]) -> None:
    form = {"grant_type": "authorization_code", "code": "guessed", "code_verifier": "verifier"}
    with refused():
        post(f"{issuer.url}/token", form | change)


def test_what_a_server_sends_to_the_issuer_is_kept_within_limits(issuer: Issuer) -> None:
    asked = dict.fromkeys((f"t{number}" for number in range(ASKED)), True)
    issuer.introspected.clear()
    issuer.introspected |= asked
    post(f"{issuer.url}/introspect", {"token": "one more"})
    assert issuer.introspected == asked
    issuer.introspected.clear()
    post(f"{issuer.url}/introspect", {"token": "t" * (LONGEST + 1)})
    assert not issuer.introspected
    assert all(len(issuer.mint.token("https://a.example", flaw=one)) <= LONGEST for one in FLAWS)
    with refused("413"):
        post(f"{issuer.url}/register", {"x": "y" * MOST_BODY}, as_json=True)


def test_client_gets_a_token_for_itself(issuer: Issuer) -> None:
    form = {"grant_type": "client_credentials", "client_id": "me", "resource": "https://a.example"}
    claims = issuer.mint.read(post(f"{issuer.url}/token", form)["access_token"]) or {}

    assert (claims["sub"], claims["aud"]) == ("me", "https://a.example")


def test_upstream_service_is_an_mcp_server_and_notes_our_tokens(issuer: Issuer) -> None:
    url = f"{issuer.url}/upstream/8000"
    token = issuer.mint.token("a")
    issuer.upstream.clear()
    opened = post(url, {"jsonrpc": "2.0", "id": 1, "method": "initialize"}, as_json=True)
    tools = post(url, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}, as_json=True)
    other = get(f"{url}/items?access_token={token}&other=a.b.c")

    assert opened["result"]["capabilities"] == {"tools": {}}
    assert [tool["name"] for tool in tools["result"]["tools"]] == ["upstream"]
    assert other == {}
    places = ["/upstream/8000", "/upstream/8000", "/upstream/8000/items"]
    assert [place for place, _ in issuer.upstream] == places
    assert [set(tokens) for _, tokens in issuer.upstream] == [set(), set(), {token}]


@cases(
    ([*ISSUED, "--", "server", "{port}"], r"write \{issuer\} or \{jwks\}"),
    ([*ISSUED, "--", "server", "{isuer}"], r"there is no \{isuer\}; did you mean"),
    (["http://127.0.0.1:9/mcp", "--issuer", "mock"], "add -- COMMAND"),
    (["--issuer", "mock", "--", "server", "{issuer}"], "name its URL"),
    (["--token-command", "echo a", "--", "server"], "name its URL"),
    (["http://a/mcp", "--scope", "read"], "--scope is for the tokens of --issuer"),
    ([*ISSUED, "--token-command", "echo a", "--", "x", "{jwks}"], "keep one"),
    (["http://a", "--token-command", "a", "--header", "authorization=env:HOME"], "keep one"),
    ([*ISSUED, "--other-token-command", "echo a", "--", "x", "{jwks}"], "has another user"),
    (["http://a/mcp", "--token-command", "no-such-program-here"], "it cannot be run"),
    (["http://a/mcp", "--token-command", "'"], "it cannot be run"),
    (["http://a/mcp", "--token-command", "false"], "it ended with status 1"),
    (["http://a/mcp", "--token-command", "true"], "it printed nothing"),
    (["http://a/mcp", "--token-command", "echo a b"], "more than a token"),
    (["http://a/mcp", "--other-token-command", "true"], "--other-token-command: it printed n"),
)
def test_options_that_give_no_token_are_refused(words: list[str], why: str) -> None:
    with pytest.raises(UserError, match=why):
        resolve.target(only(*words))


def test_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp_touchstone.issuer.server", None)
    with pytest.raises(UserError, match=r"pip install 'mcp-touchstone\[http-auth\]'"):
        resolve.target(only(*ISSUED, "--", "server", "{issuer}"))


def test_placeholders_are_replaced_with_the_port() -> None:
    words = [*ISSUED, "--scope", "read", "--env", "I={issuer}", "--env", "U={upstream}"]
    words += ["--", "x", "{jwks}", "{audience}"]
    target = resolve.target(only(*words))
    placed = target.on_port(8123)
    issuer = shared()
    claims = issuer.mint.read(placed.tokens.own() if placed.tokens else "") or {}

    assert placed.command == ("x", issuer.jwks, "http://127.0.0.1:8123/mcp")
    assert placed.env == {"I": issuer.url, "U": f"{issuer.url}/upstream/8123"}
    assert (claims["aud"], claims["scope"]) == ("http://127.0.0.1:8123/mcp", "read")
    assert resolve.target(only(*target.words())) == target


def jwt(seconds: float) -> str:
    """Return a JWT that expires in some seconds."""
    return shared().mint.token("a") if seconds > 0 else shared().mint.token("a", flaw="expired")


def test_expired_token_of_a_command_is_refused_in_one_line() -> None:
    with pytest.raises(TokenError, match="has expired"):
        TokenCommand("--token-command", f"echo {jwt(-1)}").token()


def test_command_is_run_again_only_when_its_token_expires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = [100.0]
    monkeypatch.setattr(tokens, "now", lambda: times[0])
    count = tmp_path / "count"
    script = f"import pathlib; p = pathlib.Path({str(count)!r}); "
    script += (
        "n = len(p.read_text()) if p.exists() else 0; p.write_text('x' * (n + 1)); print(f't{n}')"
    )
    source = CommandTokens(f'"{sys.executable}" -c "{script}"', "")

    assert [source.own(), source.own()] == ["t0", "t0"]
    source.refused()
    assert source.own() == "t0"  # a server that refuses every token does not start it each time
    times[0] += tokens.RETRY + 1
    assert source.own() == "t1"
    times[0] += tokens.OPAQUE + 1
    assert source.own() == "t2"


@pytest.mark.slow
def test_token_of_a_command_is_sent_and_in_no_output(tmp_path: Path) -> None:
    secret = "s3cret-token-of-a-command"
    seen: list[bytes] = []

    def write(connection: socket.socket, request: bytes) -> None:
        seen.append(request)
        if f"Bearer {secret}".encode() in request:
            mcp()(connection, request)
        else:
            connection.sendall(response("401 Unauthorized", "text/plain", b"no"))

    script = tmp_path / "token"
    script.write_text(f"print('{secret}')")
    with serving(write) as server:
        report, saved = tmp_path / "report.json", tmp_path / "saved"
        words = (
            *("--json", str(report), "--save", str(saved), "--revision", "2025-11-25"),
            *("--select", "http/authorization", "-v"),
        )
        done = check(server.url, *words, "--token-command", f"{sys.executable} {script}")

    assert any(secret.encode() in one for one in seen)
    written = [done.stdout, done.stderr, report.read_text()]
    written += [path.read_text("utf-8", "replace") for path in saved.rglob("*") if path.is_file()]
    assert not [text for text in written if secret in text]
    assert str(script) in done.stdout  # the line that runs it again names the command


@pytest.mark.slow
def test_wrong_token_of_a_command_is_advice() -> None:
    with serving(lambda c, _r: c.sendall(response("401 U", "text/plain", b"no"))) as server:
        done = check(server.url, "--token-command", "echo wrong-token-of-a-command")

    assert done.returncode == 2
    assert "does not accept the token of --token-command" in " ".join(done.stdout.split())


@pytest.mark.slow
@cases(
    ("ChecksTokensOfSessions", "wants 'mcp:use' (--scope"), ("ProtectsSessions", "or {jwks}, and")
)
def test_server_that_refuses_our_token_is_advice(server: str, why: str) -> None:
    done = check(*ISSUED, *PASSED_ON, "--", *SERVER[:-1], server)

    assert done.returncode == 2, done.stdout
    assert why in " ".join(done.stdout.split())


def test_file_of_init_names_the_tokens() -> None:
    target = resolve.target(only(*ISSUED, "--scope", "read", "--", "x", "{jwks}"))

    lines = [*scaffold._command(target)]
    assert 'issuer = "mock"' in lines
    assert 'scope = ["read"]' in lines


KEPT: Final[dict[str, Any]] = {
    "url": "http://127.0.0.1:9/mcp",
    "expires": 1.0,
    "token": "a",
    "token_endpoint": "http://127.0.0.1:9/token",
    "refresh_token": "b",
}
"""A login that is stored."""


@pytest.fixture
def guarded(
    issuer: Issuer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[dict[str, Any]]:
    """A server that wants tokens of the issuer; its members can be changed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "state"))
    made: dict[str, Any] = {"authorization_servers": [issuer.url], "status": "401 Unauthorized"}

    def answer(connection: socket.socket, request: bytes) -> None:
        if b"/.well-known/oauth-protected-resource" in request:
            shown = json.dumps({"resource": made["url"]} | made).encode()
            connection.sendall(response("200 OK", "application/json", shown))
        else:
            place = f"{made['url'].removesuffix('/mcp')}/.well-known/oauth-protected-resource"
            place = made.get("place", place)
            asks = f'WWW-Authenticate: Bearer resource_metadata="{place}", scope="read"'
            plain = response(made["status"], "text/plain", b"no")
            connection.sendall(plain.replace(b"\r\n", f"\r\n{asks}\r\n".encode(), 1))

    with serving(answer) as server:
        made["url"] = server.url
        yield made


def browse(url: str) -> None:
    """Follow the redirects as a browser does."""
    with contextlib.suppress(OSError):
        urllib.request.urlopen(url, timeout=20).close()  # noqa: S310  (our own)


def test_login_stores_a_token_for_its_user_only_and_refreshes_it(
    issuer: Issuer, guarded: dict[str, Any]
) -> None:
    url = guarded["url"]
    login.login(url, browse=browse)
    first = logins.read(url) or {}
    claims = issuer.mint.read(login.token(url)) or {}
    logins.write(url, first | {"expires": 1.0})
    again = login.token(url)

    assert (claims["aud"], claims["scope"]) == (url, "read")
    if sys.platform != "win32":
        assert logins.path(url).stat().st_mode & 0o777 == 0o600
    assert again != first["token"]
    assert (logins.read(url) or {})["refresh_token"] != first["refresh_token"]
    assert "login --print-token" in resolve.target(only(url)).token_command
    assert resolve.target(only(url, "--token-command", "echo a")).token_command == "echo a"
    assert logins.forget(url)
    assert not logins.forget(url)
    with pytest.raises(LoginError, match="run `mcp-touchstone login"):
        login.token(url)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "[" * 100_000,
        json.dumps({**KEPT, "expires": 10**400}),
        *(
            json.dumps({**KEPT, name: wrong})
            for name in KEPT
            for wrong in (None, True, [5], {"a": 1})
            if (name, wrong) != ("refresh_token", None)
        ),
    ],
)
def test_stored_login_with_wrong_members_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path))
    file = logins.path(KEPT["url"])
    file.parent.mkdir(parents=True)
    file.write_text(text)

    assert main(["login", "--print-token", KEPT["url"]]) == 2
    error = capsys.readouterr().err
    assert (str(file) in error, "delete" in error, error.count("\n")) == (True, True, 1)


def test_command_line_prints_and_forgets_the_token(guarded: dict[str, Any]) -> None:
    login.login(guarded["url"], browse=browse)
    command = [sys.executable, "-m", "mcp_touchstone", "login", guarded["url"]]
    said = [
        subprocess.run([*command, one], capture_output=True, text=True, check=False)
        for one in ("--print-token", "--forget", "--print-token")
    ]

    assert [one.returncode for one in said] == [0, 0, 2]
    assert shared_claims(said[0].stdout.strip())["scope"] == "read"
    assert "forgotten" in said[1].stdout


def shared_claims(token: str) -> dict[str, Any]:
    part = token.split(".")[1]
    found: dict[str, Any] = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    return found


@cases(
    ({"status": "200 OK"}, "gets HTTP 200, not 401"),
    ({"resource": "https://elsewhere.example/mcp"}, "it is about https://elsewhere.example"),
    ({"authorization_servers": []}, "names no authorization server"),
    ({"authorization_servers": ["http://login.example.org"]}, "needs https"),
)
def test_login_stops_at_metadata_that_a_client_must_refuse(
    guarded: dict[str, Any], change: dict[str, Any], why: str
) -> None:
    guarded |= change
    with pytest.raises(LoginError, match=why):
        login.login(guarded["url"], browse=browse)


def test_login_takes_no_metadata_that_are_nested_too_deep(
    guarded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json, "dumps", lambda _value, **_more: "[" * 100_000)
    with pytest.raises(LoginError, match="there are no metadata"):
        login.login(guarded["url"], browse=browse)


NEARBY = """
127.0.0.1 ::1 0.0.0.0 :: 10.1.2.3 172.16.0.1 192.168.1.1 169.254.169.254 100.64.0.1
224.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 fe80::1%1 fc00::1 fd12::1 ff02::1
64:ff9b::7f00:1 2002:7f00:1::
"""


@cases(*NEARBY.split())
def test_address_nearby_is_not_public(address: str) -> None:
    assert not is_public(address)
    assert is_public("1.1.1.1")
    assert is_public("2606:4700::1111")


SPELLINGS = """
127.0.0.1 127.1 2130706433 0x7f000001 0x7f.1 017700000001 0 0.0.0.0 [::1]
[::ffff:127.0.0.1] [::ffff:7f00:1] [::] localhost 10.0.0.1 192.168.0.1 169.254.169.254
[fe80::1] [fd00::1] user@127.0.0.1
"""


@cases(*SPELLINGS.split())
def test_server_elsewhere_cannot_name_a_place_nearby(host: str) -> None:
    place = f"https://{host}:9/x"
    with pytest.raises(LoginError, match="on this machine, or in a private network"):
        CheckedHttp(near=False).check(place)

    assert CheckedHttp(near=True).check(place) == place


def test_name_is_resolved_once_and_the_checked_address_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name whose addresses change between two look-ups, and one with a private address too."""
    real, asked = socket.getaddrinfo, []
    answers = [["203.0.113.9"], ["127.0.0.1"], ["1.1.1.1", "10.0.0.1"]]

    def resolve(host: str, port: int, **more: Any) -> Any:
        asked.append(host)
        return [one for each in answers[len(asked) - 1] for one in real(each, port, **more)]

    class Elsewhere(socket.socket):
        def connect(self, address: Any) -> None:
            raise ConnectionRefusedError(str(address))

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(socket, "socket", Elsewhere)
    web = CheckedHttp()
    with pytest.raises(LoginError, match=r"203\.0\.113\.9"):
        web.send("https://rebinds.example/x", None, {})
    web.near = False
    for _ in range(2):
        with pytest.raises(LoginError, match="in a private network"):
            web.send("https://rebinds.example/x", None, {})
    assert asked == ["rebinds.example"] * 3


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_answer_that_comes_byte_by_byte_is_ended(
    head: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checked_http, "PATIENCE", 0.2)

    def drip(connection: socket.socket, _request: bytes) -> None:
        with contextlib.suppress(OSError):
            connection.sendall(head)
            while True:
                connection.sendall(b"1")
                connection.settimeout(0.02)
                with contextlib.suppress(TimeoutError):
                    connection.recv(1)

    with serving(drip) as server, pytest.raises(LoginError, match=r"no whole answer|not answer"):
        CheckedHttp().document(server.url)


HOSTILE: Final[tuple[Any, ...]] = (
    5,
    "text",
    [5],
    [[]],
    {"a": 1},
    True,
    "https://[",
    "https://a b/",
    "javascript:alert(1)",
)
HUGE = b"1" + b"0" * 400


def one_line(guarded: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
    """Log in on the command line, which has to fail in one line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(login.login.__kwdefaults__ or {}, "browse", browse)
        assert main(["login", guarded["url"]]) == 2
    [*_, line] = capsys.readouterr().err.splitlines()
    assert "Traceback" not in line
    assert len(line) < 1200
    return line


@pytest.mark.parametrize("name", ["resource", "authorization_servers", "scopes_supported", "place"])
@pytest.mark.parametrize("value", HOSTILE, ids=str)
def test_hostile_metadata_of_a_resource_are_one_line(
    guarded: dict[str, Any], name: str, value: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    guarded[name] = value
    if name == "scopes_supported":
        guarded["authorization_servers"] = []
    one_line(guarded, capsys)


@pytest.mark.parametrize(
    "name",
    [
        "issuer",
        "authorization_endpoint",
        "token_endpoint",
        "registration_endpoint",
        "code_challenge_methods_supported",
    ],
)
@pytest.mark.parametrize("value", HOSTILE, ids=str)
def test_hostile_metadata_of_an_issuer_are_one_line(
    issuer: Issuer,
    guarded: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    value: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(issuer.metadata, name, value)
    one_line(guarded, capsys)


GRANTED = b'{"access_token": "abc", "token_type": "bearer", "expires_in": %s}'


@pytest.mark.parametrize("place", ["token_endpoint", "registration_endpoint"])
@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[]", b"null", b"[" * 100_000, b"{}", b"\xff", b"9" * 5000),
        *(GRANTED % one for one in (b"NaN", b"Infinity", b"1e999", HUGE, b"-5", b"true", b"[]")),
        *(b'{"access_token": %s, "token_type": "bearer"}' % one for one in (b"5", b'"a b"', b"[]")),
        b'{"access_token": "abc", "token_type": ["bearer"]}',
        b'{"access_token": "abc", "token_type": "bearer", "refresh_token": [1]}',
        b'{"client_id": 5}',
        b'{"client_id": "a", "client_secret": {}}',
    ],
    ids=lambda body: body[:60].decode("latin-1"),
)
def test_hostile_answers_of_an_issuer_are_one_line(
    issuer: Issuer,
    guarded: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    place: str,
    body: bytes,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serving(fixed(response("200 OK", "application/json", body))) as server:
        monkeypatch.setitem(issuer.metadata, place, server.url)
        one_line(guarded, capsys)
    assert logins.read(guarded["url"]) is None


def test_error_of_an_issuer_is_shown_in_part(
    issuer: Issuer,
    guarded: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    body = json.dumps({"error": "\x1b]0;a\x07", "error_description": "\u202e" + "x" * 500_000})
    with serving(fixed(response("400 Bad", "application/json", body.encode()))) as server:
        monkeypatch.setitem(issuer.metadata, "token_endpoint", server.url)
        line = one_line(guarded, capsys)
    assert "\\x1b]0;a\\x07 \\u202exxx" in line
    assert "…" in line


def test_login_stops_at_another_issuer(
    issuer: Issuer, guarded: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(issuer.metadata, "issuer", "https://elsewhere.example")
    with pytest.raises(LoginError, match="its issuer is https://elsewhere"):
        login.login(guarded["url"], browse=browse)


def test_login_takes_no_code_without_the_iss_of_its_issuer(guarded: dict[str, Any]) -> None:
    def strip(url: str) -> None:
        back = parse_qs(urlsplit(url).query)
        words = {"state": back["state"][0], "code": "stolen", "iss": "https://elsewhere.example"}
        for one in ({**words, "state": "guessed"}, words):
            browse(f"{back['redirect_uri'][0]}?{urlencode(one)}")

    with pytest.raises(LoginError, match="is of another issuer: https://elsewhere"):
        login.login(guarded["url"], browse=strip)


@pytest.mark.parametrize("missing", ["code_challenge_methods_supported", "registration_endpoint"])
def test_login_needs_pkce_and_a_client(
    issuer: Issuer, guarded: dict[str, Any], monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    monkeypatch.delitem(issuer.metadata, missing)
    with pytest.raises(LoginError, match=r"PKCE|--client-id"):
        login.login(guarded["url"], browse=browse)
