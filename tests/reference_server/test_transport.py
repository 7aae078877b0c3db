"""The reference server as a process: framing, hostile bytes, the end of input, signals, streams."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reference_server.protocol.source import Source
from reference_server.server import Server, serve
from reference_server.settings import Settings
from tests.cases import cases
from tests.reference_client import (
    ALL,
    CHECKOUT,
    MODERN,
    PATIENCE,
    InProcess,
    Message,
    Spawned,
    alive,
    ask,
    code_of,
    converse,
    modern,
    only,
    opening,
    raw,
    request,
)

POSIX_ONLY = pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")


def test_message_may_arrive_in_any_pieces() -> None:
    line = raw(modern("é😀", "server/discover"))
    with InProcess() as client:
        for byte in line:
            client.write(bytes([byte]))
        client.write(line + line)
        assert [client.hear()["id"] for _ in range(3)] == ["é😀"] * 3


def test_output_is_ascii() -> None:
    line = raw(modern("\u2028é", "server/discover"))
    with Spawned() as client:
        client.write(line)
        heard = client._lines.get(timeout=PATIENCE)
    assert heard is not None
    assert heard.isascii()


def test_line_at_the_limit_is_served_and_a_longer_line_refused() -> None:
    small = modern(1, "server/discover", padding="")
    limit = len(raw(small)) - 1 + 100
    right = modern(1, "server/discover", padding="x" * 100)
    wrong = modern(2, "server/discover", padding="x" * 101)
    options = Settings(max_line=limit)
    heard = converse(right, wrong, right, settings=options)
    assert [message.get("id") for message in heard] == [1, None, 1]
    assert code_of(heard[1]) == -32700


def test_overlong_line_gets_one_error_before_its_end() -> None:
    with InProcess(Settings(max_line=1000)) as client:
        client.write(b"x" * 5_000_000)
        assert code_of(client.hear()) == -32700
        client.write(b"y" * 5_000_000 + b"\n")
        client.send(modern(1, "server/discover"))
        assert client.hear()["id"] == 1


def test_memory_stays_bounded_under_an_endless_line() -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("reads memory through /proc")
    with Spawned("--max-line", "1000000") as client:
        for _ in range(60):
            client.write(b"[" * 1_000_000)
        assert code_of(client.hear()) == -32700
        status = Path(f"/proc/{client.process.pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    assert int(peak.split()[1]) < 40_000  # kibibytes; the interpreter alone has some 12,000


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
ENVELOPES = st.dictionaries(
    st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error"]),
    JSON_VALUES
    | st.sampled_from(["2.0", "ping", "initialize", "tools/call", "notifications/cancelled"]),
)
IDS = st.integers(-(2**53), 2**53) | st.text(max_size=10)
HOSTILE = (
    st.binary(max_size=60).map(lambda data: data.replace(b"\n", b""))
    | ENVELOPES.map(lambda value: json.dumps(value).encode())
    | st.lists(ENVELOPES, max_size=3).map(lambda value: json.dumps(value).encode())
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    revision=st.sampled_from(ALL),
    hostile=st.lists(HOSTILE, max_size=6),
    ids=st.lists(IDS, max_size=6, unique_by=lambda value: (type(value), value)),
)
def test_valid_requests_among_hostile_lines_are_answered_once(
    revision: str, hostile: list[bytes], ids: list[Any]
) -> None:
    marked = [f"ours {value}" if isinstance(value, str) else value for value in ids]
    lines: list[Any] = [*opening(revision)]
    for index, value in enumerate(marked):
        lines += hostile[index : index + 1]
        lines.append(alive(revision, value))
    heard = converse(*lines, *hostile[len(marked) :], settings=Settings(log_level="off"))
    flat = [m for line in heard for m in (line if isinstance(line, list) else [line])]
    assert all(m["jsonrpc"] == "2.0" and ("result" in m) != ("error" in m) for m in flat)
    theirs = [value for line in hostile for value in ids_in(line)]
    for value in marked:
        answers = [m for m in flat if same_id(m.get("id"), value) and "result" in m]
        assert len(answers) == 1 or value in theirs
        assert answers


def ids_in(line: bytes) -> list[Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return []
    members = value if isinstance(value, list) else [value]
    return [member.get("id") for member in members if isinstance(member, dict)]


def same_id(left: Any, right: Any) -> bool:
    return type(left) is type(right) and left == right


@pytest.mark.parametrize("revision", ["2025-11-25", MODERN])
def test_all_pipelined_requests_are_answered_before_the_exit(revision: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n" * 1000)
    calls = [
        ask(revision, n, "tools/call", name="file_read", arguments={"path": "a.txt"})
        for n in range(200)
    ]
    with Spawned("--root", str(tmp_path)) as client:
        client.send(*opening(revision), *calls)
        client.end_input()
        heard = client.rest()
        assert client.exit_code() == 0
    answered = [message["id"] for message in heard if message["id"] != "init"]
    assert sorted(answered) == [*range(200)]
    assert all("result" in message for message in heard)


def test_server_exits_quietly_when_the_client_stops_reading(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a" * 100_000)
    with Spawned("--root", str(tmp_path)) as client:
        client.send(modern(1, "server/discover"))
        client.hear()
        os.close(client._read_fd)
        client._read_fd = os.open(os.devnull, os.O_RDONLY)
        call = modern(1, "tools/call", name="file_read", arguments={"path": "a.txt"})
        client.write(raw(*[{**call, "id": n} for n in range(20)]))
        assert client.exit_code() == 1
        assert client.stderr() == ""


SLOW_SERVER = """
import sys, time
from reference_server.__main__ import main
from reference_server.protocol.toolbox import Tool

def slow(call, arguments):
    print("a tool prints", flush=True)
    sys.stdin.read()
    time.sleep(arguments["seconds"])
    return {}

def feature(surface):
    schema = {"type": "object", "properties": {"seconds": {"type": "number"}}}
    surface.toolbox.add(Tool("slow", title="S", description="S", input_schema=schema,
                     output_schema={"type": "object"}, annotations={}, work=slow))

sys.exit(main(sys.argv[1:], [feature]))
"""


def slow_server() -> Spawned:
    return Spawned(command=(sys.executable, "-c", SLOW_SERVER))


def slow(request_id: Any, seconds: float) -> Message:
    return modern(request_id, "tools/call", name="slow", arguments={"seconds": seconds})


def test_output_printed_by_a_tool_goes_to_standard_error() -> None:
    with slow_server() as client:
        client.send(slow(1, 0))
        assert client.hear()["result"]["structuredContent"] == {}
        client.end_input()
        assert client.rest() == []
        assert client.exit_code() == 0
        assert "a tool prints" in client.stderr()


def test_drain_at_end_of_input_is_bounded() -> None:
    with InProcess(Settings(drain_seconds=0.2), [never_answers]) as client:
        client.send(modern(1, "x/never"))
        client.end_input()
        assert client.rest() == []
    assert client.code == 1


def never_answers(surface: Any) -> None:
    surface.methods.request("x/never", ALL, lambda _call: None)


@POSIX_ONLY
@cases((signal.SIGTERM, 0), (signal.SIGINT, 128 + signal.SIGINT))
def test_signal_waits_for_running_work(number: int, code: int) -> None:
    with slow_server() as client:
        client.send(slow(1, 0.7), modern(2, "server/discover"))
        assert client.hear()["id"] == 2
        client.process.send_signal(number)
        time.sleep(0.1)
        client.send(modern(3, "server/discover"))
        assert client.hear()["id"] == 1
        assert client.rest() == []
        assert client.exit_code() == code
        assert client.stderr() == "a tool prints\n"


@POSIX_ONLY
@cases((signal.SIGTERM, 0), (signal.SIGINT, 128 + signal.SIGINT))
def test_signal_ends_an_idle_server_with_open_input(number: int, code: int) -> None:
    with Spawned() as client:
        client.send(modern(1, "server/discover"))
        client.hear()
        client.process.send_signal(number)
        assert client.exit_code() == code
        assert client.stderr() == ""


SIGNAL_BEFORE_THE_WAIT = """
import ctypes, functools, operator, os, signal, sys, threading
from reference_server.__main__ import main

read, send = os.read, getattr(ctypes.PyDLL(None), "raise")
waits = []

def read_after_a_signal(descriptor, size):
    if waits or threading.current_thread() is not threading.main_thread():
        return read(descriptor, size)
    waits.append(descriptor)
    # In C alone: no handler written in Python runs between the signal and the wait.
    steps = functools.partial(send, signal.SIGTERM), functools.partial(read, descriptor, size)
    return list(map(operator.call, steps))[1]

os.read = read_after_a_signal
sys.exit(main(sys.argv[1:]))
"""


@POSIX_ONLY
def test_signal_before_the_main_thread_waits_is_not_lost() -> None:
    command = (sys.executable, "-c", SIGNAL_BEFORE_THE_WAIT)
    with Spawned("--log-level", "info", command=command) as client:
        assert client.exit_code() == 0
        assert [json.loads(line)["why"] for line in client.stderr().splitlines()] == ["stopped"]


SIGNAL_AT_AN_IMPORT = """
import os, runpy, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.endswith(late):
            os.kill(os.getpid(), int(number))

late, number, program, *words = sys.argv[1:]
sys.meta_path.insert(0, Finder())
sys.argv = [program, *words]
runpy.run_module(program, run_name="__main__", alter_sys=True)
"""
BY_MODULE = ("reference_server",)
BY_COMMAND = ("mcp_touchstone", "serve")


@POSIX_ONLY
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("late", "program"),
    [
        *(("operation.options", one) for one in (BY_MODULE, BY_COMMAND)),
        *(("reference_server.bundle", one) for one in (BY_MODULE, BY_COMMAND)),
        ("reference_server.__main__", BY_COMMAND),
        ("bridge.reference", (*BY_COMMAND, "--http", "127.0.0.1:0")),
    ],
)
def test_signal_during_the_start_ends_the_server_at_once(
    late: str, program: tuple[str, ...], number: int
) -> None:
    words = (late, str(int(number)), *program)
    with Spawned(*words, command=(sys.executable, "-c", SIGNAL_AT_AN_IMPORT)) as client:
        assert client.exit_code() == 128 + number
        assert client.stderr() == ""


@POSIX_ONLY
def test_second_signal_ends_the_server_at_once() -> None:
    with slow_server() as client:
        client.send(slow(1, 60), modern(2, "server/discover"))
        assert client.hear()["id"] == 2
        client.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        assert client.process.poll() is None
        client.process.send_signal(signal.SIGTERM)
        assert client.exit_code() == 128 + signal.SIGTERM


def test_package_runs_inside_another_package(tmp_path: Path) -> None:
    home = tmp_path / "outer" / "_suites"
    shutil.copytree(CHECKOUT / "reference_server", home / "reference_server")
    command = (sys.executable, "-m", "outer._suites.reference_server")
    with Spawned(command=command, cwd=tmp_path) as client:
        client.send(modern(1, "server/discover"))
        assert client.hear()["id"] == 1


def test_import_loads_neither_the_harness_nor_heavy_modules() -> None:
    script = (
        "import sys, reference_server.__main__, reference_server.tools.files; print(*sys.modules)"
    )
    # -S and -I: site-packages may import what it likes before the server does.
    done = subprocess.run(
        [sys.executable, "-S", "-c", script],
        cwd=CHECKOUT,
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )
    loaded = set(done.stdout.decode().split())
    heavy = {"asyncio", "typing", "dataclasses", "inspect", "argparse", "logging", "pathlib"}
    assert not loaded & (heavy | {"hashlib", "socket", "subprocess", "mcp_touchstone"})
    late = {"reference_server.operation.redact", "reference_server.operation.verbose"}
    assert not loaded & late


def test_embedded_server_leaves_no_threads_descriptors_or_signal_handlers() -> None:
    descriptors = Path("/proc/self/fd")
    if not descriptors.exists():
        pytest.skip("counts descriptors through /proc")
    handler = signal.getsignal(signal.SIGTERM)
    converse(modern(0, "server/discover"))
    before = len(list(descriptors.iterdir()))
    threads = set(threading.enumerate())
    for _ in range(20):
        call = modern(1, "tools/call", name="file_read", arguments={"path": "LICENSE"})
        assert "result" in only(converse(call))
    assert len(list(descriptors.iterdir())) == before
    assert set(threading.enumerate()) <= threads
    assert signal.getsignal(signal.SIGTERM) is handler


def test_embedded_server_ends_when_nobody_reads() -> None:
    server_reads, we_write = os.pipe()
    we_read, server_writes = os.pipe()
    os.close(we_read)
    os.write(we_write, raw(modern(1, "server/discover")))
    try:
        assert serve(server_reads, server_writes) == 1
    finally:
        for descriptor in (server_reads, we_write, server_writes):
            os.close(descriptor)


def test_stopped_embedded_server_ends_despite_an_endless_call() -> None:
    server_reads, we_write = os.pipe()
    we_read, server_writes = os.pipe()
    server = Server(server_reads, server_writes, Settings(stop_seconds=0.2), [never_answers])
    os.write(we_write, raw(modern(1, "x/never"), modern(2, "server/discover")))
    stopper = threading.Timer(0.1, server.stop)
    stopper.start()
    try:
        assert server.run() == 1
        assert json.loads(os.read(we_read, 65536))["id"] == 2
    finally:
        stopper.join()
        for descriptor in (server_reads, we_write, we_read, server_writes):
            os.close(descriptor)


def test_stopped_server_logs_the_reason(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """This also applies when the reading thread notices the stop first, as an end of input."""
    server_reads, we_write = os.pipe()
    we_read, server_writes = os.pipe()
    server = Server(server_reads, server_writes, Settings(log_level="info"))

    def stop(source: Source) -> None:
        stop_reading(source)
        assert server._reader.join(PATIENCE)

    stop_reading = Source.stop
    monkeypatch.setattr(Source, "stop", stop)
    os.write(we_write, raw(modern(1, "server/discover")))
    running = threading.Thread(target=server.run)
    running.start()
    try:
        assert json.loads(os.read(we_read, 65536))["id"] == 1
        server.stop()
        running.join(PATIENCE)
        assert not running.is_alive()
    finally:
        for descriptor in (server_reads, we_write, we_read, server_writes):
            os.close(descriptor)
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert [line["why"] for line in lines if line["event"] == "ending"] == ["stopped"]


def test_two_embedded_servers_share_no_state() -> None:
    with InProcess() as first, InProcess() as second:
        first.open("2025-03-26")
        second.send(request(1, "tools/list"))
        assert code_of(second.hear()) == -32600
        first.send([request(1, "ping")])
        assert isinstance(first.hear(), list)
