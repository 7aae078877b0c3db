"""The log records and the verbose file of the reference server."""

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reference_server.operation.log import Log
from reference_server.settings import Settings
from tests.cases import cases
from tests.reference_client import (
    ALL,
    MODERN,
    InProcess,
    Spawned,
    ask,
    modern,
    notification,
    raw,
    request,
)
from tests.reference_log import call, logged, records, writer


def test_tool_call_logs_one_record(tmp_path: Path) -> None:
    with writer(tmp_path, "--log-level", "INFO") as client:
        arguments = {"path": "a.txt", "file_text": "canary", "mode": "quick", "dry_run": True}
        client.send(call("my id", "write", **arguments, view_range=[1, 20], scale=0.5))
        (record,) = (one for one in records(client) if one["event"] == "tool_called")

    assert list(record)[:4] == ["timestamp", "level", "request_id", "event"]
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


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_errors_are_logged_at_the_default_level(revision: str, tmp_path: Path) -> None:
    with Spawned("--root", str(tmp_path)) as client:
        client.open(revision)
        client.send(
            ask(revision, 1, "tools/call", name="file_read", arguments={"path": ".git/config"}),
            ask(revision, 2, "tools/call", name="no such tool"),
            ask(revision, 3, "tools/list"),
            ask(revision, 4, "no/such/method"),
            b"not json",
        )
        found = records(client)

    denied, unknown = sorted((one for one in found if "id" in one), key=lambda one: one["id"])
    (refused,) = (one for one in found if "id" not in one)
    assert (denied["level"], denied["status"], denied["code"]) == ("WARNING", "error", "DENIED")
    assert (denied["tool"], denied["args"]) == ("file_read", {"path": ".git/config"})
    assert denied["revision"] == revision
    assert (unknown["level"], unknown["code"]) == ("WARNING", -32602)
    assert "tool" not in unknown
    assert (refused["event"], refused["code"]) == ("refused", -32700)


def test_successful_requests_log_nothing_at_the_default_level(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    with Spawned("--root", str(tmp_path)) as client:
        client.send(call(1, "file_read", path="a.txt"), modern(2, "tools/list"))
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
    assert re.fullmatch(r"test_log\.py:\d+", found[0]["where"])


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
        client.send(request(2, "tools/call", {"name": "file_read", "arguments": bad}))
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
        client.send(call(7, "file_read", path="a.txt"))
        lines = logged(client).splitlines()

    (line,) = (line for line in lines if "tool_called" in line)
    moment, level, event, *facts = line.split(" ", 3)
    assert (level, event) == ("INFO", "tool_called")
    assert " tool=file_read " in f" {facts[0]} "
    assert ' args={"path": "a.txt"}' in facts[0]
    assert moment.endswith("Z")


def test_log_lines_are_short_for_long_inputs(tmp_path: Path) -> None:
    long = "é😀" * 50_000
    with Spawned("--root", str(tmp_path), "--log-level=debug") as client:
        client.send(
            call(long, "file_read", path=long),
            call(1, long, path=long),
            modern(2, long),
            call(3, "file_read", **{f"{long}{n}": long for n in range(5)}),
            notification(long),
            notification("notifications/cancelled", {"requestId": long, "reason": long}),
        )
        lines = logged(client).splitlines()

    assert len(lines) >= 6
    assert max(map(len, lines)) < 4096


def test_payloads_are_written_only_to_the_verbose_file(tmp_path: Path) -> None:
    root, file = tmp_path / "root", tmp_path / "verbose.log"
    root.mkdir()
    with writer(root, "--verbose-log", str(file), "--log-level=debug") as client:
        client.send(call(1, "write", path="a.txt", file_text="canary-1"))
        client.hear()
        client.send(call(2, "file_read", path="a.txt"), b'{"id":"canary-2"')
        shown = logged(client)

    assert "canary" not in shown
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    entries = [json.loads(line) for line in file.read_text().splitlines()]
    events = [one["event"] for one in entries]
    assert events.count("write") == 1
    assert events.count("refused") == 1
    called = {one["params"]["name"]: one for one in entries if one["event"] == "tool_called"}
    assert called["write"]["params"]["arguments"]["file_text"] == "canary-1"
    assert "canary-1" in json.dumps(called["file_read"]["answer"])


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


@cases(
    *(linked, piped, twice_named, through_a_link),
    lambda tmp_path: tmp_path / "root" / "verbose.log",
    lambda tmp_path: tmp_path / "root" / "deep" / "verbose.log",
    lambda tmp_path: tmp_path / "nowhere" / "verbose.log",
    lambda tmp_path: tmp_path,
)
def test_bad_verbose_log_path_exits_with_status_2(
    tmp_path: Path, place: Callable[[Path], Path]
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
