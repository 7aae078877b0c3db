"""The log records, audit lines, verbose file and hooks of the reference server."""

import hashlib
import json
import os
import random
import re
import signal
import socket
import stat
import string
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_server.operation import redact, stderr
from reference_server.operation.log import Log
from reference_server.operation.stderr import StandardError
from reference_server.protocol.calls import Call
from reference_server.protocol.toolbox import Tool
from reference_server.settings import Settings
from reference_server.surface import Surface
from tests.reference_client import (
    ALL,
    CHECKOUT,
    MODERN,
    PATIENCE,
    InProcess,
    Message,
    Spawned,
    ask,
    modern,
    notification,
    raw,
    request,
)

fcntl = pytest.importorskip("fcntl", reason="needs POSIX descriptors")

WRITER = """
import sys
from reference_server.__main__ import main
from reference_server.features import ALL_FEATURES
from reference_server.protocol.toolbox import Tool

def feature(surface):
    def write(call, arguments):
        path = arguments["path"]
        edit = surface.workspace.edit(call.who, call.request_id)
        before = surface.workspace.find(path)
        if "file_text" in arguments:
            edit.put(path, arguments["file_text"].encode(), before=before)
        else:
            edit.remove(before)
        edit.commit()
        return {}

    text = {"type": "string"}
    word = {"type": "string", "enum": ["plain", "quick"]}
    pair = {"type": "array", "items": {"type": "integer"}}
    properties = {"path": text, "file_text": text, "mode": word, "view_range": pair,
                  "dry_run": {"type": "boolean"}, "scale": {"type": "number"}}
    schema = {"type": "object", "properties": properties}
    surface.toolbox.add(Tool("write", title="W", description="W", input_schema=schema,
                             output_schema={"type": "object"}, annotations={}, work=write))

sys.exit(main(sys.argv[1:], [*ALL_FEATURES, feature]))
"""


def tool(name: str, work: Callable[[Call, Message], Message]) -> Tool:
    schema = {"type": "object", "properties": {}}
    return Tool(
        name,
        title="T",
        description="T",
        input_schema=schema,
        output_schema=schema,
        annotations={},
        work=work,
    )


def writer(root: Path, *arguments: str) -> Spawned:
    command = (sys.executable, "-c", WRITER)
    return Spawned("--root", str(root), *arguments, command=command)


def call(request_id: Any, tool: str, **arguments: Any) -> Message:
    return modern(request_id, "tools/call", name=tool, arguments=arguments)


def logged(client: Spawned) -> str:
    """Let the server end and give what it wrote to standard error."""
    client.end_input()
    client.rest()
    assert client.exit_code() == 0
    return client.stderr()


def records(client: Spawned) -> list[Message]:
    """Return the lines of standard error as JSON objects."""
    entries = [json.loads(line) for line in logged(client).splitlines()]
    assert all(isinstance(entry, dict) for entry in entries)
    return entries


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


# --- records -------------------------------------------------------------------------------------


def test_tool_call_logs_one_record(tmp_path: Path) -> None:
    with writer(tmp_path, "--log-level", "INFO") as client:
        arguments = {"path": "a.txt", "file_text": "canary", "mode": "quick", "dry_run": True}
        client.send(call("my id", "write", **arguments, view_range=[1, 20], scale=0.5))
        (record,) = (one for one in records(client) if one["event"] == "tool_called")

    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record.pop("timestamp"))
    assert re.fullmatch(r"req_[0-9a-f]{12}", record.pop("request_id"))
    assert 0 <= record.pop("duration_ms") < 60_000
    assert record.pop("bytes") > 50
    assert record == {
        "level": "INFO",
        "event": "tool_called",
        "id": "my id",
        "method": "tools/call",
        "tool": "write",
        "revision": MODERN,
        "status": "success",
        "args": {
            "path": "a.txt",
            "file_text": "[6 characters]",
            "mode": "quick",
            "dry_run": True,
            "view_range": [1, 20],
            "scale": 0.5,
        },
    }


def test_log_record_starts_with_timestamp_level_request_id_and_event(tmp_path: Path) -> None:
    with writer(tmp_path, "--log-level=info") as client:
        client.send(call(1, "write", path="a.txt", file_text=""))
        lines = logged(client).splitlines()

    (line,) = (line for line in lines if "tool_called" in line)
    assert list(json.loads(line))[:4] == ["timestamp", "level", "request_id", "event"]


@pytest.mark.parametrize("revision", ALL)
def test_errors_are_logged_at_the_default_level(revision: str, tmp_path: Path) -> None:
    with Spawned("--root", str(tmp_path)) as client:
        client.open(revision)
        client.send(
            ask(revision, 1, "tools/call", name="file.read", arguments={"path": ".git/config"}),
            ask(revision, 2, "tools/call", name="no such tool"),
            ask(revision, 3, "tools/list"),
            ask(revision, 4, "no/such/method"),
            b"not json",
        )
        found = records(client)

    denied, unknown = sorted((one for one in found if "id" in one), key=lambda one: one["id"])
    (refused,) = (one for one in found if "id" not in one)
    assert (denied["level"], denied["status"], denied["code"]) == ("WARNING", "error", "DENIED")
    assert (denied["tool"], denied["args"]) == ("file.read", {"path": ".git/config"})
    assert denied["revision"] == revision
    assert (unknown["level"], unknown["code"]) == ("WARNING", -32602)
    assert "tool" not in unknown
    assert (refused["event"], refused["code"]) == ("refused", -32700)


def test_successful_requests_log_nothing_at_the_default_level(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    with Spawned("--root", str(tmp_path)) as client:
        client.send(call(1, "file.read", path="a.txt"), modern(2, "tools/list"))
        assert logged(client) == ""


def test_handler_exception_logs_a_defect_and_an_error_request(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def feature(surface: Any) -> None:
        surface.methods.request("x/broken", ALL, lambda _call: 1 / 0)

    with InProcess(features=[feature]) as client:
        client.send(modern(1, "x/broken"))
        assert client.hear()["error"]["code"] == -32603
    found = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(one["level"], one["event"]) for one in found] == [
        ("ERROR", "defect"),
        ("ERROR", "request"),
    ]
    assert found[0]["type"] == "ZeroDivisionError"
    assert re.fullmatch(r"test_reference_operation\.py:\d+", found[0]["where"])


def test_cancelled_request_is_logged_with_status_cancelled(
    capfd: pytest.CaptureFixture[str],
) -> None:
    def feature(surface: Any) -> None:
        surface.methods.request("x/never", ALL, lambda _call: None)

    with InProcess(Settings(log_level="info"), features=[feature]) as client:
        client.send(
            modern("n", "x/never"), notification("notifications/cancelled", {"requestId": "n"})
        )
        client.end_input()
        assert client.rest() == []
    found = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    (record,) = (one for one in found if one["event"] == "request")
    assert (record["status"], record["id"]) == ("cancelled", "n")


FORGED = 'x\n{"event":"forged"}\r\x1b[2J\x7f\u2028\x85é\udc80'


@pytest.mark.parametrize("style", ["json", "text"])
def test_client_strings_cannot_forge_log_lines_or_terminal_escapes(
    style: str, tmp_path: Path
) -> None:
    escaped = json.dumps(FORGED)
    client_info = {"name": FORGED, "version": "1"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client_info}
    odd = f'{{"jsonrpc":"2.0","id":"i","method":{escaped}}}'.encode()
    with Spawned("--root", str(tmp_path), "--log-level=debug", "--log-format", style) as client:
        client.send(request("init", "initialize", opening))
        client.send(request("init" + FORGED[:-1], "ping"), request("x", FORGED[:-1]), odd)
        client.send(request(1, "tools/call", {"name": FORGED[:-1], "arguments": {}}))
        bad = {"path": FORGED[:-1], FORGED[:-1]: 1}
        client.send(request(2, "tools/call", {"name": "file.read", "arguments": bad}))
        reason = {"requestId": FORGED[:-1], "reason": FORGED[:-1]}
        client.send(notification("notifications/cancelled", reason), notification(FORGED[:-1]))
        shown = logged(client)

    assert shown.count("\n") > 5
    assert shown.replace("\n", "").isascii()
    assert shown.replace("\n", "").isprintable()
    for line in shown.splitlines():
        assert "forged" not in line.split(" ")[2:3]
        if style == "json":
            assert json.loads(line)["event"] != "forged"
        else:
            assert re.match(r"\d{4}-\d\d-\d\dT[\d:.]{12}Z [A-Z]+ [a-z_]+ ", line + " ")


def test_resource_read_logs_the_uri_and_no_other_parameter(tmp_path: Path) -> None:
    with Spawned("--root", str(tmp_path), "--log-level=info") as client:
        client.send(modern(1, "resources/read", uri="x:///a.txt", other="canary"))
        found = records(client)
    (record,) = (one for one in found if one["event"] == "request")
    assert (record["method"], record["uri"]) == ("resources/read", "x:///a.txt")
    assert "canary" not in json.dumps(found)


def test_text_log_line_shows_time_level_event_and_facts(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    with Spawned("--root", str(tmp_path), "--log-level=info", "--log-format=text") as client:
        client.send(call(7, "file.read", path="a.txt"))
        lines = logged(client).splitlines()

    (line,) = (line for line in lines if "tool_called" in line)
    moment, level, event, *facts = line.split(" ", 3)
    assert (level, event) == ("INFO", "tool_called")
    assert " tool=file.read " in f" {facts[0]} "
    assert ' args={"path": "a.txt"}' in facts[0]
    assert moment.endswith("Z")


def test_log_lines_are_short_for_long_inputs(tmp_path: Path) -> None:
    long = "é😀" * 50_000
    with Spawned("--root", str(tmp_path), "--log-level=debug") as client:
        client.send(
            call(long, "file.read", path=long),
            call(1, long, path=long),
            modern(2, long),
            call(3, "file.read", **{f"{long}{n}": long for n in range(5)}),
            notification(long),
            notification("notifications/cancelled", {"requestId": long, "reason": long}),
        )
        lines = logged(client).splitlines()

    assert len(lines) >= 6
    assert max(map(len, lines)) < 4096


# --- content that is never logged ----------------------------------------------------------------

LETTERS = string.ascii_letters + string.digits
RANDOM = random.Random(7)  # noqa: S311 - made here so that no secret-like text lies in the repository


def some(count: int, letters: str = LETTERS) -> str:
    return "".join(RANDOM.choices(letters, k=count))


SECRETS = {
    "provider key": f"sk-{some(40)}",
    "code host": f"ghp_{some(36)}",
    "fine-grained": f"github_pat_{some(82)}",
    "cloud": f"AKIA{some(16, string.ascii_uppercase + string.digits)}",
    "signed token": f"eyJ{some(30)}.eyJ{some(60)}.{some(43)}",
    "private key": f"-----BEGIN {'PRIVATE'} KEY-----\n{some(64)}\n{some(64)}\n",
    "chat": f"xoxb-{some(48)}",
    "header": f"Bearer {some(20)}",
    "connection": f"postgres://u:{some(12)}@h/db",
    "assignment": f"password={some(12)}",
    "hex": some(64, "0123456789abcdef"),
    "bare": some(40),
}


def parts_of(secret: str) -> list[str]:
    """Return the forbidden parts of a secret: any six characters of its random parts."""
    runs = re.findall(r"[A-Za-z0-9]{12,}", secret)
    return [run[at : at + 6] for run in runs for at in range(0, len(run) - 6, 3)]


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("style", ["json", "text"])
def test_log_contains_no_secrets_or_file_contents(kind: str, style: str, tmp_path: Path) -> None:
    secret = SECRETS[kind]
    (tmp_path / "held.txt").write_text(secret)
    options = ("--log-level=debug", f"--log-format={style}")
    with writer(tmp_path, *options) as client:
        client.send(
            call(1, "write", path="new.txt", file_text=secret),
            call(2, "file.read", path="held.txt"),
            call(3, "file.read", path=secret),
            call(4, "file.read", path="held.txt", cwd=secret),
            call(5, "file.read", **{secret: secret}),
            call(6, secret, path=secret),
            call(7, "write", path="new.txt", file_text=[secret], mode=secret),
            modern(8, secret),
            modern(9, "tools/list", cursor=secret),
            notification("notifications/cancelled", {"requestId": 9, "reason": secret}),
            notification(secret),
            secret.replace("\n", "").encode(),
        )
        shown = logged(client)

    assert "tool_called" in shown
    assert parts_of(secret)
    assert [part for part in parts_of(secret) if part in shown] == []


def test_log_contains_no_secrets_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = some(30)
    monkeypatch.setenv("CEDARSCRIPT_API_KEY", secret)
    monkeypatch.setenv("GITHUB_TOKEN", secret)
    with Spawned("--root", str(tmp_path), "--log-level=debug") as client:
        client.send(modern(1, "server/discover"), call(2, "file.read", path="none"))
        shown = logged(client)
    assert secret not in shown
    assert str(tmp_path) not in shown


@pytest.mark.parametrize(
    "path",
    [
        "a.txt",
        "src/mcp_touchstone/report/terminal.py",
        "tests/test_reference_operation.py",
        "docs/2025-11-25/server-tools.md",
        "Reports 2025/Übersicht.txt",
        "app/components/ApplicationNavigationBar.tsx",
    ],
)
def test_ordinary_paths_are_not_redacted(path: str) -> None:
    assert redact.text(path) == path


def test_path_segment_that_looks_like_a_key_is_redacted() -> None:
    shown = redact.text(f"keys/{some(40)}/a.txt")
    assert shown == "keys/[40 characters]/a.txt"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("path must be a string", "path must be a string"),
        ("unknown tool 'file.raed'", "unknown tool 'file.raed'"),
        ("unknown tool 'x y'", "unknown tool [3 characters]"),
        ('unknown tool "it\'s"', "unknown tool [4 characters]"),
    ],
)
def test_quoted_plain_words_are_kept_and_others_redacted(message: str, shown: str) -> None:
    assert redact.sentence(message) == shown


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(
    given_arguments=st.dictionaries(st.sampled_from(["path", "mode", "n", "text"]), JSON_VALUES),
    unknown=st.dictionaries(st.text().map(lambda name: "?" + name), JSON_VALUES),
)
def test_logged_arguments_hide_free_text_and_unknown_names(
    given_arguments: dict[str, Any], unknown: dict[str, Any]
) -> None:
    properties = {"path": {}, "mode": {"enum": ["a"]}, "n": {}, "text": {}}
    shown = redact.arguments({**given_arguments, **unknown}, {"properties": properties})

    json.dumps(shown, allow_nan=False)
    assert shown.pop("unknown", 0) == len(unknown)
    assert shown.keys() == given_arguments.keys()
    for name in ("text", "mode"):
        if isinstance(value := given_arguments.get(name), str) and value != "a":
            assert shown[name] == f"[{len(value)} characters]"


# --- audit ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["debug", "warning", "error", "off"])
def test_every_write_logs_an_audit_line_at_any_level(level: str, tmp_path: Path) -> None:
    with writer(tmp_path, "--log-level", level) as client:
        for step, text in enumerate(["one", "two", None]):
            arguments = {} if text is None else {"file_text": text}
            client.send(call(step, "write", path="a b.txt", **arguments))
            assert client.hear()["result"]["structuredContent"] == {}
        lines = [json.loads(line) for line in logged(client).splitlines()]

    audit = [one for one in lines if one["event"] == "write"]
    assert [(one["before"], one["after"]) for one in audit] == [
        (None, sha256("one")),
        (sha256("one"), sha256("two")),
        (sha256("two"), None),
    ]
    for one in audit:
        assert list(one) == sorted(
            ["timestamp", "level", "event", "who", "request_id", "path", "before", "after"]
        )
        assert one["path"] == "a b.txt"
        assert one["level"] == "INFO"
    if level == "off":
        assert len(lines) == 3


def test_audit_line_is_written_before_the_answer(tmp_path: Path) -> None:
    with writer(tmp_path) as client:
        client.send(call(1, "write", path="a.txt", file_text="x"))
        client.hear()
        assert client.process.stderr is not None
        os.set_blocking(client.process.stderr.fileno(), False)
        assert json.loads(os.read(client.process.stderr.fileno(), 65536))["path"] == "a.txt"


def test_newline_in_a_path_is_escaped_in_the_audit_line(tmp_path: Path) -> None:
    name = 'x\n{"event":"forged"}\x1b[2J'
    with writer(tmp_path, "--log-format=text") as client:
        client.send(call(1, "write", path=name, file_text="x"))
        (line,) = logged(client).splitlines()
    assert line.isprintable()
    assert r"\u001b[2J" in line


def test_audit_line_truncates_a_long_client_name() -> None:
    lines: list[bytes] = []
    log = Log(Settings())
    log._stderr.put_for_sure = lines.extend  # type: ignore[method-assign, assignment]
    log.audit("n" * 10_000, "req_1", [{"path": "a", "before": None, "after": "0"}])
    assert len(lines[0]) < 500


# --- payloads, in a file of their own ------------------------------------------------------------


def test_payloads_are_written_only_to_the_verbose_file(tmp_path: Path) -> None:
    root, file = tmp_path / "root", tmp_path / "verbose.log"
    root.mkdir()
    with writer(root, "--verbose-log", str(file), "--log-level=debug") as client:
        client.send(call(1, "write", path="a.txt", file_text="canary-1"))
        client.hear()
        client.send(call(2, "file.read", path="a.txt"), b'{"id":"canary-2"')
        shown = logged(client)

    assert "canary" not in shown
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    events = [one["event"] for one in entries]
    assert events.count("write") == 1
    assert events.count("refused") == 1
    called = {one["params"]["name"]: one for one in entries if one["event"] == "tool_called"}
    assert called["write"]["params"]["arguments"]["file_text"] == "canary-1"
    assert "canary-1" in json.dumps(called["file.read"]["answer"])


def test_verbose_file_is_appended_to_with_log_level_off(tmp_path: Path) -> None:
    root, file = tmp_path / "root", tmp_path / "verbose.log"
    root.mkdir()
    file.write_text("before\n")
    file.chmod(0o644)
    with Spawned("--root", str(root), f"--verbose-log={file}", "--log-level=off") as client:
        line = raw(modern(1, "tools/list", number="huge")).replace(b'"huge"', b"1e999")
        client.write(line)
        assert logged(client) == ""
    before, *lines = file.read_text().splitlines()

    assert before == "before"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    strict = [json.loads(line, parse_constant=pytest.fail) for line in lines]
    assert {"request", "ending"} <= {one["event"] for one in strict}


def linked(tmp_path: Path) -> Path:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    return tmp_path / "link"


def piped(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


def twice_named(tmp_path: Path) -> Path:
    (tmp_path / "other").touch()
    (tmp_path / "second").hardlink_to(tmp_path / "other")
    return tmp_path / "second"


def through_a_link(tmp_path: Path) -> Path:
    (tmp_path / "way").symlink_to(tmp_path / "root" / "deep")
    return tmp_path / "way" / "verbose.log"


@pytest.mark.parametrize(
    "place",
    [
        *(linked, piped, twice_named, through_a_link),
        lambda tmp_path: tmp_path / "root" / "verbose.log",
        lambda tmp_path: tmp_path / "root" / "deep" / "verbose.log",
        lambda tmp_path: tmp_path / "nowhere" / "verbose.log",
        lambda tmp_path: tmp_path,
    ],
)
def test_bad_verbose_log_path_exits_with_status_2(
    place: Callable[[Path], Path], tmp_path: Path
) -> None:
    (tmp_path / "root" / "deep").mkdir(parents=True)
    with Spawned("--root", str(tmp_path / "root"), f"--verbose-log={place(tmp_path)}") as client:
        assert client.rest() == []
        assert client.exit_code() == 2
        said = client.stderr()
    assert said.startswith("reference_server: --verbose-log '")
    assert said.count("\n") == 1
    assert not (tmp_path / "elsewhere").exists()
    assert list((tmp_path / "root" / "deep").iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_failing_verbose_file_is_reported_once(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    log = Log(Settings([str(tmp_path / "none")], verbose_log=str(tmp_path / "v")))
    assert log._verbose is not None
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, log._verbose._descriptor)
    os.close(full)
    for _ in range(3):
        log.info("event")
    log.close()
    (line,) = capfd.readouterr().err.splitlines()
    assert json.loads(line)["event"] == "verbose_log_failed"


# --- unread standard error -----------------------------------------------------------------------


def test_failing_calls_are_answered_when_nobody_reads_the_log(
    tmp_path: Path,
) -> None:
    calls = [call(n, "file.read", path=f"missing-{n}.txt") for n in range(5000)]
    with Spawned("--root", str(tmp_path)) as client:
        sender = threading.Thread(target=client.send, args=calls)
        sender.start()
        heard = {client.hear()["id"] for _ in calls}
        sender.join(PATIENCE)
        assert heard == set(range(5000))
        client.end_input()
        began = time.monotonic()
        assert client.exit_code() == 0
        assert time.monotonic() - began < 5
        lines = client.stderr().splitlines()
    assert len(lines) > 100
    assert [line for line in lines[:-1] if json.loads(line)["code"] != "NOT_FOUND"] == []


def test_writes_continue_when_nobody_reads_the_audit(tmp_path: Path) -> None:
    calls = [call(n, "write", path=f"{n}.txt", file_text="x") for n in range(600)]
    with writer(tmp_path) as client:
        began = time.monotonic()
        client.send(*calls)
        for _ in calls:
            assert "result" in client.hear(patience=30)
        assert time.monotonic() - began < 25  # one wait of a second, not six hundred


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full", "2>/dev/null"])
def test_unusable_standard_error_does_not_affect_answers(where: str, tmp_path: Path) -> None:
    if "/dev/full" in where and not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    line = f'exec "$0" -m reference_server --root "$1" --log-level=debug {where}'
    command = ("sh", "-c", line, sys.executable, str(tmp_path))
    with Spawned(command=command) as client:
        client.send(*[call(n, "file.read", path="none") for n in range(50)])
        client.end_input()
        assert sorted(one["id"] for one in client.rest()) == [*range(50)]
        assert client.exit_code() == 0


def test_closed_standard_error_sends_no_log_to_the_client(tmp_path: Path) -> None:
    """The socket is bidirectional, so a log line written to the wrong descriptor would be read."""
    ours, theirs = socket.socketpair()
    line = 'exec "$0" -m reference_server --root "$1" --log-level=debug 2>&-'
    command = ["sh", "-c", line, sys.executable, str(tmp_path)]
    end = theirs.fileno()
    with subprocess.Popen(command, stdin=end, stdout=end, cwd=CHECKOUT) as process:
        theirs.close()
        with ours, ours.makefile("rb") as heard:
            ours.settimeout(PATIENCE)
            ours.sendall(raw(call(1, "file.read", path="none"), b"junk"))
            ours.shutdown(socket.SHUT_WR)
            lines = heard.read().splitlines()
        assert process.wait(PATIENCE) == 0
    assert len(lines) == 2
    assert all("jsonrpc" in json.loads(one) for one in lines)


def test_standard_error_stays_blocking(tmp_path: Path) -> None:
    with Spawned("--root", str(tmp_path), "--log-level=debug") as client:
        client.send(modern(1, "server/discover"))
        client.hear()
        flags = Path(f"/proc/{client.process.pid}/fdinfo/2")
        if not flags.exists():
            pytest.skip("reads flags through /proc")
        found = re.search(r"flags:\s*(\d+)", flags.read_text())
        assert found
        assert not int(found[1], 8) & os.O_NONBLOCK


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writing = os.pipe()
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    yield reader, writing
    for descriptor in (reader, writing):
        os.close(descriptor)


def lost(count: int) -> bytes:
    return f"lost {count}\n".encode()


def read_until(reader: int, last: bytes) -> list[bytes]:
    data = b""
    while not data.endswith(last + b"\n"):
        data += os.read(reader, 65536)
    return data.splitlines()


def test_dropped_log_lines_are_counted_and_reported(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stderr, "ROOM", 10_000)
    way = StandardError(lost, pipe[1])
    for n in range(1000):
        way.put(b"%0999d\n" % n)
    data = b""
    while not (b"lost" in data and data.endswith(b"\n")):
        data += os.read(pipe[0], 65536)
    way.close()
    *kept, note = data.splitlines()
    assert 10 <= len(kept) < 50
    assert kept == sorted(set(kept))
    assert {len(line) for line in kept} == {999}
    assert note == b"lost %d" % (1000 - len(kept))


def test_audit_lines_wait_once_and_have_reserved_space(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stderr, "ROOM", 10_000)
    monkeypatch.setattr(stderr, "PATIENCE", 0.3)
    way = StandardError(lost, pipe[1])
    for _ in range(100):
        way.put(b"x" * 999 + b"\n")
    began = time.monotonic()
    way.put_for_sure([b"audit 1\n", b"audit 2\n"])
    first = time.monotonic() - began
    for _ in range(50):
        way.put_for_sure([b"audit 3\n"])
    assert 0.2 < first < 2
    assert time.monotonic() - began < first + 0.5
    data = b""
    while not (b"lost" in data and data.endswith(b"\n")):
        data += os.read(pipe[0], 65536)
    lines = data.splitlines()
    assert lines.count(b"audit 1") == 1
    assert lines.count(b"audit 3") == 50
    began = time.monotonic()
    way.put_for_sure([b"audit 4\n"])
    assert time.monotonic() - began < 0.2
    assert os.read(pipe[0], 65536) == b"audit 4\n"
    way.close()


def test_close_returns_when_nobody_reads(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stderr, "PATIENCE", 0.2)
    way = StandardError(lost, pipe[1])
    for _ in range(20):
        way.put(b"x" * 999 + b"\n")
    began = time.monotonic()
    way.close()
    way.put(b"too late\n")
    assert time.monotonic() - began < 2
    os.read(pipe[0], 65536)  # unblocks the writing thread


def test_non_blocking_descriptor_receives_every_line(
    pipe: tuple[int, int],
) -> None:
    os.set_blocking(pipe[1], False)
    way = StandardError(lost, pipe[1])
    sent = [b"%0999d" % n for n in range(100)]
    for line in sent:
        way.put(line + b"\n")
    assert read_until(pipe[0], sent[-1]) == sent
    way.close()


def test_failed_writes_are_reported_after_the_next_successful_write(tmp_path: Path) -> None:
    file = tmp_path / "log"
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT)
    way = StandardError(lost, descriptor)
    os.close(descriptor)
    way.put_for_sure([b"1\n", b"2\n"])
    way.put_for_sure([b"3\n"])
    again = os.open(file, os.O_RDWR)
    assert again == descriptor
    way.put_for_sure([b"4\n"])
    way.close()
    os.close(again)
    assert file.read_bytes() == b"4\nlost 3\n"


# --- hooks ---------------------------------------------------------------------------------------


def test_hooks_receive_the_facts_of_each_request(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    seen: list[Message] = []
    with InProcess(Settings([str(tmp_path)], hooks=[seen.append], log_level="off")) as client:
        for line in (
            call(1, "file.read", path="a.txt"),
            call(2, "file.read", path="none"),
            call(3, "no.such.tool"),
            modern(4, "tools/list"),
            modern(5, "no/such/method"),
        ):
            client.send(line)
            client.hear()
    began = [one for one in seen if one["event"] == "request_began"]
    seen = [one for one in seen if one["event"] == "request_finished"]
    facts = [[one[name] for name in ("method", "tool", "status", "code")] for one in seen]
    assert facts == [
        ["tools/call", "file.read", "success", None],
        ["tools/call", "file.read", "error", "NOT_FOUND"],
        ["tools/call", None, "error", -32602],
        ["tools/list", None, "success", None],
        [None, None, "error", -32601],
    ]
    assert all(one["bytes"] > 50 for one in seen)
    assert all(one["duration_ms"] >= 0 and one["revision"] == MODERN for one in seen[:4])
    assert len({one["request_id"] for one in seen}) == 5
    known = [{name: one[name] for name in began[0] if name != "event"} for one in seen[:4]]
    assert [{**one, "event": "request_began"} for one in known] == began


def test_hooks_receive_an_event_for_each_batch_member() -> None:
    seen: list[Message] = []
    with InProcess(Settings(hooks=[seen.append])) as client:
        client.open("2025-03-26")
        client.send([request(1, "ping"), request(2, "ping")])
        assert len(client.hear()) == 2
    finished = [one["method"] for one in seen if one["event"] == "request_finished"]
    assert finished == ["initialize", "ping", "ping"]


def test_hook_is_called_before_the_tool_runs(tmp_path: Path) -> None:
    """The hook therefore also sees a request that hangs."""
    seen: list[str] = []

    def feature(surface: Surface) -> None:
        def work(_call: Call, _arguments: Message) -> Message:
            seen.append("tool")
            return {}

        surface.toolbox.add(tool("slow", work))

    def hook(facts: Message) -> None:
        seen.append(facts["event"])

    with InProcess(Settings([str(tmp_path)], hooks=[hook]), [feature]) as client:
        client.send(call(1, "slow"))
        client.hear()
    assert seen == ["request_began", "tool", "request_finished"]


def test_hooks_receive_the_start_and_end_of_a_session() -> None:
    seen: list[Message] = []
    with InProcess(Settings(hooks=[seen.append])) as client:
        client.open("2025-11-25")
        client.send(request(1, "ping"))
        client.hear()
        client.end_input()
        client.rest()
    events = [one["event"] for one in seen]
    assert events == [
        *("request_began", "session_began", "request_finished"),
        *("request_began", "request_finished", "session_ended"),
    ]
    opened, ended = seen[1], seen[-1]
    assert opened["client"] == {"name": "test", "version": "1"}
    assert opened["revision"] == "2025-11-25"
    assert opened["request_id"] == seen[0]["request_id"]
    assert ended.pop("duration_ms") >= 0
    assert {**ended, "event": "session_began"} == opened


def test_stateless_requests_emit_no_session_events() -> None:
    seen: list[Message] = []
    with InProcess(Settings(hooks=[seen.append])) as client:
        client.send(modern(1, "server/discover"))
        client.hear()
    assert {one["event"] for one in seen} == {"request_began", "request_finished"}


@pytest.mark.parametrize("revision", ALL)
def test_request_id_of_an_error_appears_in_the_log(revision: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    key = "mcp-touchstone/request_id"
    with writer(tmp_path, "--log-level=debug") as client:
        client.open(revision)
        client.send(
            ask(revision, 1, "tools/call", name="file.read", arguments={"path": "none"}),
            ask(revision, 2, "no/such/method"),
            ask(revision, 3, "resources/read", uri="workspace:///none"),
            b"not json",
            ask(revision, 4, "tools/call", name="write", arguments={"path": "b", "file_text": ""}),
        )
        heard = [client.hear() for _ in range(5)]
        entries = records(client)
    answers = {one.get("id"): one for one in heard}
    ids = {
        1: answers[1]["result"]["_meta"][key],
        2: answers[2]["error"]["data"]["request_id"],
        3: answers[3]["error"]["data"]["request_id"],
        None: answers[None]["error"]["data"]["request_id"],
    }
    for number, request_id in ids.items():
        found = [one for one in entries if one.get("request_id") == request_id]
        last = found[-1]
        assert last.get("id") == (number if last["event"] != "refused" else None)
        began = [one["event"] for one in found[:-1]]
        assert began == (["request_began"] if number in (1, 3) else [])
    (written,) = (one for one in entries if one["event"] == "write")
    (finished,) = (one for one in entries if one.get("tool") == "write" and "status" in one)
    assert written["request_id"] == finished["request_id"]


def test_debug_level_adds_request_began_and_part_loaded(tmp_path: Path) -> None:
    events = {}
    for level in ("info", "debug"):
        with writer(tmp_path, "--log-level", level) as client:
            client.open("2025-11-25")
            client.send(request(1, "tools/call", {"name": "write", "arguments": {"path": "a"}}))
            client.hear()
            events[level] = {one["event"] for one in records(client)}
    assert events["debug"] - events["info"] == {"request_began", "part_loaded"}
    assert events["info"] >= {"session_began", "session_ended"}


def test_exception_in_a_hook_is_logged_and_ignored(capfd: pytest.CaptureFixture[str]) -> None:
    seen: list[Message] = []

    def broken(facts: Message) -> None:
        facts.clear()
        raise KeyError("canary")

    with InProcess(Settings(hooks=[broken, seen.append])) as client:
        client.send(modern(1, "server/discover"), modern(2, "server/discover"))
        assert [client.hear()["id"] for _ in range(2)] == [1, 2]
    assert [one["method"] for one in seen] == ["server/discover"] * 4
    found = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [(one["event"], one["type"]) for one in found] == [("hook_failed", "KeyError")] * 4


# --- the end -------------------------------------------------------------------------------------


def test_sigterm_finishes_and_audits_running_writes(tmp_path: Path) -> None:
    with writer(tmp_path, "--log-level=info") as client:
        client.send(
            *[call(n, "write", path=f"{n}.txt", file_text="x" * 100_000) for n in range(30)]
        )
        assert "result" in client.hear()
        client.process.send_signal(signal.SIGTERM)
        heard = 1 + sum("result" in one for one in client.rest())
        assert client.exit_code() == 0
        entries = [json.loads(line) for line in client.stderr().splitlines()]
    files = sorted(tmp_path.iterdir())
    assert [one for one in files if one.stat().st_size != 100_000] == []
    audit = {one["path"] for one in entries if one["event"] == "write"}
    assert audit == {one.name for one in files}
    assert heard == len(files)


def test_server_without_log_output_starts_no_log_thread() -> None:
    with InProcess() as client:
        client.send(modern(1, "server/discover"))
        client.hear()
        assert "mcp-log" not in {thread.name for thread in threading.enumerate()}


def test_start_does_not_import_the_redaction_and_verbose_modules() -> None:
    script = "import sys, reference_server.__main__ as m; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=CHECKOUT,
        capture_output=True,
        check=True,
        timeout=PATIENCE,
    )
    loaded = set(done.stdout.decode().split())
    assert not loaded & {"reference_server.operation.redact", "reference_server.operation.verbose"}
