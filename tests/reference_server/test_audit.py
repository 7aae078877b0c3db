"""The audit lines of the reference server, and a standard error that nobody reads."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reference_server.operation import stderr
from reference_server.operation.log import Log
from reference_server.operation.stderr import StandardError
from reference_server.settings import Settings
from tests.reference_client import CHECKOUT, PATIENCE, Spawned, modern, raw
from tests.reference_log import call, fcntl, logged, sha256, writer


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


def test_failing_calls_are_answered_when_nobody_reads_the_log(tmp_path: Path) -> None:
    calls = [call(n, "file_read", path=f"missing-{n}.txt") for n in range(5000)]
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


@pytest.mark.parametrize("where", ["2>&-", "2>/dev/full", "2>/dev/null"])
def test_unusable_standard_error_does_not_affect_answers(where: str, tmp_path: Path) -> None:
    if "/dev/full" in where and not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    line = f'exec "$0" -m reference_server --root "$1" --log-level=debug {where}'
    command = ("sh", "-c", line, sys.executable, str(tmp_path))
    with Spawned(command=command) as client:
        client.send(*[call(n, "file_read", path="none") for n in range(50)])
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
            ours.sendall(raw(call(1, "file_read", path="none"), b"junk"))
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


def test_non_blocking_descriptor_receives_every_line(pipe: tuple[int, int]) -> None:
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
