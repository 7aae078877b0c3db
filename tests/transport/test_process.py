"""Server processes that start, fail to start, flood, hang, exit, and leave children behind."""

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import psutil
import pytest
from syrupy.assertion import SnapshotAssertion

from mcp_touchstone.transport.deadline import ThreadTimes, Turns
from mcp_touchstone.transport.live_transcript import LiveTranscript
from mcp_touchstone.transport.orphans import sweep
from mcp_touchstone.transport.pipes import STDERR_KEPT, Gone
from mcp_touchstone.transport.process import MARK, LaunchError, ServerProcess, Step, signal_name
from mcp_touchstone.wire import transcript
from mcp_touchstone.wire.events import Happened
from mcp_touchstone.wire.framing import Fault
from mcp_touchstone.wire.transcript import Source
from tests.cases import cases
from tests.conftest import eventually

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and groups of POSIX")

LONG = 20.0
"""Timeout in seconds for events that happen at once."""

SHORT = 0.3
"""Timeout in seconds for events that never happen."""

Start = Callable[..., ServerProcess]

FOREVER = "time.sleep(600)"
READS = "sys.stdin.read()"
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
READY = "print('ready', flush=True)"
CHILD = "subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)']"


def record_of(process: ServerProcess) -> LiveTranscript:
    assert isinstance(process.transcript, LiveTranscript)
    return process.transcript


def lines(process: ServerProcess) -> list[str]:
    return [entry.text for entry in record_of(process) if entry.source is Source.THEM]


def events(process: ServerProcess) -> list[str]:
    return [entry.text for entry in record_of(process) if entry.source is Source.EVENT]


def heard(process: ServerProcess, count: int = 1) -> list[str]:
    """Wait for a number of lines of the server."""
    record_of(process).wait(lambda: len(lines(process)) >= count, LONG)
    return lines(process)


def lives(pid: int) -> bool:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a small Python server from its statements; remaining processes are ended."""
    started: list[ServerProcess] = []

    def start(*statements: str, **how: Any) -> ServerProcess:
        code = "import os, signal, subprocess, sys, time\n" + "\n".join(statements)
        env = {"PATH": os.environ["PATH"], **how.pop("env", {})}
        command = [sys.executable, "-S", "-c", code]
        record = LiveTranscript("2025-11-25", clock=time.monotonic)
        process = ServerProcess(command, record, env=env, **how)
        started.append(process)
        return process

    yield start
    for process in started:
        process.end(0.0, polite=False)


def launch(*command: str, cwd: str | None = None) -> str:
    record = LiveTranscript("2025-11-25", clock=time.monotonic)
    before = set(threading.enumerate())
    with pytest.raises(LaunchError) as caught:
        ServerProcess(command, record, env=dict(os.environ), cwd=cwd)
    assert set(threading.enumerate()) <= before  # Threads of other tests may end meanwhile.
    assert "\n" not in str(caught.value)
    return str(caught.value)


def script(folder: Path, text: str, mode: int) -> str:
    path = folder / "server"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_command_that_does_not_start_is_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, golden: SnapshotAssertion
) -> None:
    file = script(tmp_path, "", 0o644)
    said = [
        launch("no-such-server"),
        launch(file),
        launch(str(tmp_path)),
        launch(script(tmp_path, "print()", 0o755)),
        launch(script(tmp_path, "#!/no/such/python\n", 0o755)),
        launch(sys.executable, cwd="/no/such"),
        launch("no-such-server", cwd="/no/such"),
        launch(sys.executable, cwd=file),
        launch(),
        launch(sys.executable, "\0"),
    ]
    full = OSError(errno.EAGAIN, "Resource temporarily unavailable")
    monkeypatch.setattr(subprocess, "Popen", Mock(side_effect=full))
    said.append(launch("server"))

    text = "\n".join(said).replace(str(tmp_path), "<folder>")
    assert text.replace(sys.executable, "<python>") == golden


def test_lines_arrive_as_they_are_written(start: Start) -> None:
    process = start(
        "print('one', flush=True)", "print(sys.stdin.readline(), end='', flush=True)", READS
    )

    assert heard(process) == ["one"]
    process.pipes.send(b"two\n", LONG)
    assert heard(process, 2) == ["one", "two"]
    assert process.running


def test_server_gets_the_given_environment_and_folder(start: Start, tmp_path: Path) -> None:
    show = "print(sorted(k for k in os.environ if k[0] in 'MP' and k != 'PWD'), os.getcwd())"
    process = start(show, env={"MINE": "1"}, cwd=tmp_path)

    assert heard(process) == [f"['MINE', 'PATH'] {tmp_path}"]


def test_unterminated_last_line_is_recorded_at_exit(start: Start) -> None:
    process = start("sys.stdout.write('{}')")

    assert process.wait(LONG) == 0
    assert heard(process) == ["{}"]
    entry = record_of(process)[1]
    assert entry.reading is not None
    assert entry.reading.faults == {Fault.UNTERMINATED}


def test_complete_message_without_a_line_feed_can_be_taken(start: Start) -> None:
    process = start(
        "sys.stdout.write('{\"a\":'); sys.stdout.flush(); sys.stdin.readline()",
        "sys.stdout.write('1}'); sys.stdout.flush()",
        READS,
    )

    assert eventually(process.pipes._splitter.peek)
    assert not process.pipes.take_unfinished(), "half a message is not taken"
    process.pipes.send(b"\n", LONG)

    assert eventually(process.pipes.take_unfinished)
    assert lines(process) == ['{"a":1}']
    assert not process.pipes.take_unfinished(), "and nothing is taken twice"


def test_stderr_of_an_exited_server_is_read_completely(start: Start) -> None:
    process = start("sys.stderr.write('x' * 60_000 + ' last words')", "os._exit(3)")

    assert process.wait(LONG) == 3
    assert process.pipes.stderr().endswith("last words")


def test_stderr_is_drained_and_its_end_is_kept(start: Start) -> None:
    process = start(
        "for _ in range(300): sys.stderr.write('x' * 9999 + '\\n')",
        "sys.stderr.write('last words \\udcff'); sys.stderr.flush()",
        READY,
        READS,
    )

    assert heard(process) == ["ready"]
    process.end(LONG)

    assert process.pipes.stderr_bytes > 3_000_000
    assert len(process.pipes.stderr_tail) == STDERR_KEPT
    assert "last words" in process.pipes.stderr()


def test_flooding_server_is_killed(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "ENTRIES_LIMIT", 1000)
    process = start(DEAF, "while True: os.write(1, b'{}\\n' * 1000)")

    assert process.wait(LONG) == -signal.SIGKILL
    assert record_of(process).overflow


def test_send_to_a_server_that_never_reads_times_out(start: Start) -> None:
    process = start(READY, FOREVER)
    heard(process)
    begun = time.monotonic()

    with pytest.raises(Gone, match=r"did not read its input for 0\.3 s"):
        process.pipes.send(b"x" * 1_000_000, SHORT)

    assert time.monotonic() - begun < LONG / 2
    assert process.running


def test_second_send_to_a_blocked_server_fails_at_once(start: Start) -> None:
    process = start(READY, FOREVER)
    heard(process)
    with pytest.raises(Gone):
        process.pipes.send(b"x" * 1_000_000, SHORT)

    with pytest.raises(Gone, match="still does not read its input"):
        process.pipes.send(b"x", 600.0)


def test_server_that_writes_an_endless_line_is_killed(start: Start) -> None:
    process = start("while True: os.write(1, b'x' * 65536)")

    assert process.wait(LONG * 3) == -signal.SIGKILL
    assert "a line of 33," in record_of(process).overflow


def test_send_reports_that_the_server_closed_its_input(start: Start) -> None:
    process = start("os.close(0)", READY, FOREVER)
    heard(process)

    with pytest.raises(Gone, match="closed its input"):
        process.pipes.send(b"{}\n", LONG)


@pytest.mark.parametrize("ended", [False, True])
def test_send_after_closing_stdin_fails_at_once(start: Start, ended: bool) -> None:
    """It waited for the whole deadline once, and then blamed the server."""
    process = start(READS, READY, FOREVER)
    process.pipes.close_input()
    assert heard(process) == ["ready"]
    if ended:
        process.end(0.0, polite=False)
    begun = time.monotonic()

    with pytest.raises(Gone, match="we closed it"):
        process.pipes.send(b"{}\n", LONG)

    assert time.monotonic() - begun < LONG / 2


@cases(
    ("sys.exit(3)", 3, "ended by itself (status 3)"),
    ("os.kill(os.getpid(), signal.SIGUSR1)", -signal.SIGUSR1, "ended by itself (SIGUSR1)"),
)
def test_exit_status_or_signal_is_recorded(
    start: Start, statement: str, status: int, words: str
) -> None:
    process = start(statement)

    assert process.wait(LONG) == status
    ending = process.end(LONG)

    assert (ending.step, ending.status, ending.strays) == (Step.ITSELF, status, 0)
    assert str(ending) == words
    assert events(process)[-1] == f"the server {words}"
    assert process.status == status
    assert not process.running


@cases(
    ((READY, READS), True, Step.INPUT_CLOSED, 0),
    ((READY, FOREVER), True, Step.TERMINATED, -signal.SIGTERM),
    ((READY, READS), False, Step.TERMINATED, -signal.SIGTERM),
    ((DEAF, READY, FOREVER), True, Step.KILLED, -signal.SIGKILL),
    ((DEAF, READY, FOREVER), False, Step.KILLED, -signal.SIGKILL),
    (
        ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))", READY, FOREVER),
        True,
        Step.TERMINATED,
        7,
    ),
)
def test_shutdown_escalates_until_the_server_ends(
    start: Start, statements: tuple[str, ...], polite: bool, step: Step, status: int
) -> None:
    process = start(*statements)
    heard(process)

    ending = process.end(LONG if step is Step.INPUT_CLOSED else SHORT, polite=polite)

    assert (ending.step, ending.status) == (step, status)
    assert ("we closed its input" in events(process)) is polite
    assert polite or Happened.SERVER_CLOSED not in events(process)


def test_what_a_server_says_at_a_hurried_end_is_not_recorded(start: Start) -> None:
    says = "signal.signal(signal.SIGTERM, lambda *_: (print('late', flush=True), sys.exit(0)))"
    process = start(says, READY, FOREVER)
    assert heard(process) == ["ready"]

    process.end(LONG, polite=False)

    assert lines(process) == ["ready"]


@pytest.mark.skipif(sys.platform != "linux", reason="the time on a core is known on Linux")
@cases((("while True: pass",), True), ((READS,), False))
def test_process_that_uses_a_whole_core_is_recognised(
    start: Start, statements: tuple[str, ...], spins: bool
) -> None:
    process = start(READY, *statements)
    heard(process)

    if spins:  # where it gets no core for long, one look does not show it
        eventually(lambda: process.spins(SHORT))
        return
    eventually(lambda: psutil.Process(process.pid).status() == psutil.STATUS_SLEEPING)
    assert not process.spins(SHORT)


def test_process_that_gets_no_core_for_little_work_does_not_spin(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    process, begun = start(READY, READS), time.monotonic()
    heard(process)

    def starved(_: int) -> Turns:
        return {1: ThreadTimes(waited=time.monotonic() - begun, ran=SHORT / 20, ready=True)}

    monkeypatch.setattr("mcp_touchstone.transport.process.below", starved)
    assert not process.spins(SHORT / 10)


def test_wait_ends_when_the_server_closes_its_output(start: Start) -> None:
    process = start("os.close(1)", READS)

    assert record_of(process).wait(lambda: False, LONG) is False
    assert record_of(process).ended
    assert events(process) == [Happened.SERVER_CLOSED]
    assert process.end(LONG).step is Step.INPUT_CLOSED


def test_ended_process_is_not_signalled(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number may belong to another process group by then."""
    process = start("pass")
    process.end(LONG)
    signalled: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, _: signalled.append(pid))

    process.kill()

    assert signalled == []


def test_signals_have_names() -> None:
    assert signal_name(11) == "SIGSEGV"
    assert signal_name(99) == "signal 99"


def test_children_in_the_process_group_are_ended(start: Start) -> None:
    process = start(f"print({CHILD}).pid, flush=True)", READS)
    child = int(heard(process)[0])

    ending = process.end(LONG)

    assert ending.strays == 1
    assert eventually(lambda: not lives(child))


def test_children_in_their_own_session_are_ended(start: Start) -> None:
    process = start(f"print({CHILD}, start_new_session=True).pid, flush=True)", READS)
    child = int(heard(process)[0])

    process.kill()
    process.end(LONG)

    assert eventually(lambda: not lives(child))


def test_child_that_outlives_the_server_is_ended(start: Start) -> None:
    process = start(f"print({CHILD}).pid, flush=True)")
    child = int(heard(process)[0])
    process.wait(LONG)

    ending = process.end(LONG)

    assert (ending.step, ending.strays) == (Step.ITSELF, 1)
    assert eventually(lambda: not lives(child))


def test_zombies_are_not_counted_as_orphans(start: Start) -> None:
    """In a container, process 1 often reaps no child."""
    process = start("pid = os.fork()", "if pid: time.sleep(0.2)", "os._exit(0)")
    process.wait(LONG)

    assert process.end(LONG).strays == 0


DAEMON = """
if os.fork() == 0:
    os.setsid()
    parent = os.getpid()
    if os.fork(): os._exit(0)
    while os.getppid() == parent: time.sleep(0.001)  # until then it is a descendant of the server
    os.write(1, b'%d\\n' % os.getpid())
    {closing}
    time.sleep(600)
os.wait()"""


def test_daemon_is_found_by_its_environment_mark(start: Start) -> None:
    mark = f"test-{os.getpid()}-{time.monotonic_ns()}"
    closing = "[os.close(fd) for fd in (0, 1, 2)]"
    process = start(DAEMON.format(closing=closing), env={MARK: mark})
    daemon = int(heard(process)[0])
    process.end(LONG)
    assert lives(daemon)

    assert sweep(mark) == 1

    assert eventually(lambda: not lives(daemon))
    assert sweep(mark) == 0


def test_daemon_with_open_pipes_does_not_block_the_end(start: Start) -> None:
    mark = f"test-{os.getpid()}-{time.monotonic_ns()}"
    threads, descriptors = set(threading.enumerate()), open_descriptors()
    process = start(DAEMON.format(closing="pass"), env={MARK: mark})
    daemon = int(heard(process)[0])
    process.wait(LONG)
    begun = time.monotonic()

    process.end(LONG)

    assert time.monotonic() - begun < LONG / 2
    assert record_of(process).ended
    assert lives(daemon)
    assert sweep(mark) == 1
    assert eventually(lambda: set(threading.enumerate()) <= threads)
    assert open_descriptors() == descriptors


def open_descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd")) if sys.platform == "linux" else set()  # noqa: PTH208


@pytest.mark.parametrize(
    "statements",
    [
        ("pass",),
        (READY, READS),
        ("os.close(1)", READS),
        (f"{CHILD})", READY, FOREVER),
        (DEAF, READY, FOREVER),
        ("sys.stderr.write('x' * 100_000)", READY, FOREVER),
    ],
    ids=["leaves", "reads", "closes its output", "has a child", "is deaf", "complains"],
)
def test_ended_process_leaves_no_thread_and_no_descriptor(
    start: Start, statements: tuple[str, ...]
) -> None:
    threads, descriptors = set(threading.enumerate()), open_descriptors()
    process = start(*statements)
    record_of(process).wait(lambda: lines(process), LONG)
    if FOREVER in statements:
        with contextlib.suppress(Gone):
            process.pipes.send(b"x" * 500_000, 0.05)

    process.end(SHORT)

    assert set(threading.enumerate()) <= threads
    assert open_descriptors() <= descriptors
