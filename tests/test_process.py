"""Servers that do what servers do: start, refuse, flood, hang, leave, and leave things behind."""

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

import psutil
import pytest

from mcp_touchstone import transcript as transcript_module
from mcp_touchstone.framing import Fault
from mcp_touchstone.process import (
    MARK,
    STDERR_KEPT,
    Gone,
    LaunchError,
    ServerProcess,
    Step,
    signal_name,
)
from mcp_touchstone.strays import sweep
from mcp_touchstone.transcript import Source, Transcript

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and groups of POSIX")

LONG = 20.0
"""Seconds of patience where the thing waited for happens at once."""

SHORT = 0.3
"""Seconds of patience where nothing is going to happen."""

Start = Callable[..., ServerProcess]

FOREVER = "time.sleep(600)"
READS = "sys.stdin.read()"
DEAF = "signal.signal(signal.SIGTERM, signal.SIG_IGN)"
READY = "print('ready', flush=True)"
CHILD = "subprocess.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(600)']"


def record_of(process: ServerProcess) -> Transcript:
    assert isinstance(process.transcript, Transcript)
    return process.transcript


def lines(process: ServerProcess) -> list[str]:
    return [entry.text for entry in record_of(process) if entry.source is Source.THEM]


def events(process: ServerProcess) -> list[str]:
    return [entry.text for entry in record_of(process) if entry.source is Source.EVENT]


def heard(process: ServerProcess, count: int = 1) -> list[str]:
    """Wait for so many lines of the server."""
    record_of(process).wait(lambda: len(lines(process)) >= count, LONG)
    return lines(process)


def until(true: Callable[[], Any], seconds: float = LONG) -> bool:
    end = time.monotonic() + seconds
    while not (found := true()) and time.monotonic() < end:
        time.sleep(0.01)
    return bool(found)


def lives(pid: int) -> bool:
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.fixture
def start() -> Iterator[Start]:
    """Start a small Python server from its statements; whatever is left is ended."""
    started: list[ServerProcess] = []

    def start(*statements: str, **how: Any) -> ServerProcess:
        code = "import os, signal, subprocess, sys, time\n" + "\n".join(statements)
        env = {"PATH": os.environ["PATH"], **how.pop("env", {})}
        command = [sys.executable, "-S", "-c", code]
        record = Transcript("2025-11-25", clock=time.monotonic)
        process = ServerProcess(command, record, env=env, **how)
        started.append(process)
        return process

    yield start
    for process in started:
        process.end(0.0, polite=False)


# --- a server that does not start


def launch(*command: str, cwd: str | None = None) -> str:
    record = Transcript("2025-11-25", clock=time.monotonic)
    before = threading.active_count()
    with pytest.raises(LaunchError) as caught:
        ServerProcess(command, record, env=dict(os.environ), cwd=cwd)
    assert threading.active_count() == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def script(folder: Path, text: str, mode: int) -> str:
    path = folder / "server"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_program_that_is_not_there() -> None:
    assert launch("no-such-server") == (
        "there is no program 'no-such-server'; is it installed and on PATH?"
    )


def test_a_program_that_is_not_executable(tmp_path: Path) -> None:
    assert launch(script(tmp_path, "", 0o644)).endswith(
        "may not be run; is it a program, and executable (chmod +x)?"
    )


def test_a_folder_for_a_program(tmp_path: Path) -> None:
    assert "may not be run; is it a program" in launch(str(tmp_path))


def test_a_script_that_does_not_say_what_runs_it(tmp_path: Path) -> None:
    assert launch(script(tmp_path, "print()", 0o755)).endswith(
        "is no program; a script needs a first line with #!"
    )


def test_a_script_whose_interpreter_is_missing(tmp_path: Path) -> None:
    assert launch(script(tmp_path, "#!/no/such/python\n", 0o755)).endswith(
        "is there, but not the program its first line (#!) names"
    )


@pytest.mark.parametrize("program", [sys.executable, "no-such-server"])
def test_a_working_folder_that_is_not_there(program: str) -> None:
    assert launch(program, cwd="/no/such") == (
        "the folder /no/such does not exist; name another with --cwd"
    )


def test_a_file_for_a_working_folder(tmp_path: Path) -> None:
    file = script(tmp_path, "", 0o644)

    assert launch(sys.executable, cwd=file).startswith(f"the folder {file} does not exist")


def test_an_empty_command() -> None:
    assert launch() == "the command is empty; name the program that starts the server"


def test_an_argument_no_program_can_get() -> None:
    assert "could not be started: embedded null byte" in launch(sys.executable, "\0")


def test_a_system_that_has_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)

    assert launch("server").startswith("'server' could not be started: [Errno")


# --- a server that talks


def test_lines_arrive_as_they_are_written(start: Start) -> None:
    process = start(
        "print('one', flush=True)", "print(sys.stdin.readline(), end='', flush=True)", READS
    )

    assert heard(process) == ["one"]
    process.send(b"two\n", LONG)
    assert heard(process, 2) == ["one", "two"]
    assert process.running


def test_environment_and_folder_are_what_was_given(start: Start, tmp_path: Path) -> None:
    show = "print(sorted(k for k in os.environ if k[0] in 'MP' and k != 'PWD'), os.getcwd())"
    process = start(show, env={"MINE": "1"}, cwd=tmp_path)

    assert heard(process) == [f"['MINE', 'PATH'] {tmp_path}"]


def test_a_last_line_without_a_line_feed_is_heard_at_the_end(start: Start) -> None:
    process = start("sys.stdout.write('{}')")

    assert process.wait(LONG) == 0
    assert heard(process) == ["{}"]
    entry = record_of(process)[1]
    assert entry.reading is not None
    assert entry.reading.faults == {Fault.UNTERMINATED}


def test_a_message_without_its_line_feed_can_be_taken(start: Start) -> None:
    process = start(
        "sys.stdout.write('{\"a\":'); sys.stdout.flush(); sys.stdin.readline()",
        "sys.stdout.write('1}'); sys.stdout.flush()",
        READS,
    )

    assert until(process._splitter.peek)
    assert not process.take_unfinished(), "half a message is not taken"
    process.send(b"\n", LONG)

    assert until(process.take_unfinished)
    assert lines(process) == ['{"a":1}']
    assert not process.take_unfinished(), "and nothing is taken twice"


def test_the_last_words_of_a_server_that_left_are_read_to_their_end(start: Start) -> None:
    process = start("sys.stderr.write('x' * 60_000 + ' last words')", "os._exit(3)")

    assert process.wait(LONG) == 3
    assert process.stderr().endswith("last words")


def test_stderr_is_drained_and_its_end_is_kept(start: Start) -> None:
    process = start(
        "for _ in range(300): sys.stderr.write('x' * 9999 + '\\n')",
        "sys.stderr.write('last words \\udcff'); sys.stderr.flush()",
        READY,
        READS,
    )

    assert heard(process) == ["ready"]
    process.end(LONG)

    assert process.stderr_bytes > 3_000_000
    assert len(process.stderr_tail) == STDERR_KEPT
    assert "last words" in process.stderr()


def test_a_server_that_floods_us_is_ended(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_module, "ENTRIES_LIMIT", 1000)
    process = start(DEAF, "while True: os.write(1, b'{}\\n' * 1000)")

    assert process.wait(LONG) == -signal.SIGKILL
    assert record_of(process).overflow


# --- a server that does not listen


def test_a_server_that_never_reads_is_given_up_in_time(start: Start) -> None:
    process = start(READY, FOREVER)
    heard(process)
    begun = time.monotonic()

    with pytest.raises(Gone, match=r"did not read its input for 0\.3 s"):
        process.send(b"x" * 1_000_000, SHORT)

    assert time.monotonic() - begun < LONG / 2
    assert process.running


def test_a_server_that_did_not_read_is_not_waited_for_again(start: Start) -> None:
    process = start(READY, FOREVER)
    heard(process)
    with pytest.raises(Gone):
        process.send(b"x" * 1_000_000, SHORT)

    with pytest.raises(Gone, match="still does not read its input"):
        process.send(b"x", 600.0)


def test_a_line_without_end_is_not_read_to_its_end(start: Start) -> None:
    process = start("while True: os.write(1, b'x' * 65536)")

    assert process.wait(LONG * 3) == -signal.SIGKILL
    assert "a line of 33," in record_of(process).overflow


def test_a_server_that_closed_its_input_is_told_from_one_that_is_slow(start: Start) -> None:
    process = start("os.close(0)", READY, FOREVER)
    heard(process)

    with pytest.raises(Gone, match="closed its input"):
        process.send(b"{}\n", LONG)


def test_nothing_is_written_to_a_server_that_left(start: Start) -> None:
    process = start("pass")
    process.wait(LONG)

    with pytest.raises(Gone, match="closed its input"):
        process.send(b"{}\n", LONG)


@pytest.mark.parametrize("ended", [False, True])
def test_nothing_is_written_once_we_closed_its_input(start: Start, ended: bool) -> None:
    """It used to wait for the whole deadline, and then to blame the server."""
    process = start(READS, READY, FOREVER)
    process.close_stdin()
    assert heard(process) == ["ready"]
    if ended:
        process.end(0.0, polite=False)
    begun = time.monotonic()

    with pytest.raises(Gone, match="we closed it"):
        process.send(b"{}\n", LONG)

    assert time.monotonic() - begun < LONG / 2


def test_what_was_written_before_the_end_of_input_arrives(start: Start) -> None:
    process = start("sys.stdout.write(sys.stdin.read())")
    process.send(b"a\nb\n", LONG)
    process.close_stdin()

    assert heard(process, 2) == ["a", "b"]


# --- a server that leaves


@pytest.mark.parametrize(
    ("statement", "status", "words"),
    [
        ("sys.exit(3)", 3, "ended by itself (status 3)"),
        ("os.kill(os.getpid(), signal.SIGUSR1)", -signal.SIGUSR1, "ended by itself (SIGUSR1)"),
    ],
)
def test_how_it_left_is_recorded(start: Start, statement: str, status: int, words: str) -> None:
    process = start(statement)

    assert process.wait(LONG) == status
    ending = process.end(LONG)

    assert (ending.step, ending.status, ending.strays) == (Step.ITSELF, status, 0)
    assert str(ending) == words
    assert events(process)[-1] == f"the server {words}"
    assert process.status == status
    assert not process.running


@pytest.mark.parametrize(
    ("statements", "polite", "step", "status"),
    [
        ((READY, READS), True, Step.INPUT_CLOSED, 0),
        ((READY, FOREVER), True, Step.TERMINATED, -signal.SIGTERM),
        ((READY, READS), False, Step.TERMINATED, -signal.SIGTERM),
        ((DEAF, READY, FOREVER), True, Step.KILLED, -signal.SIGKILL),
        (
            ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))", READY, FOREVER),
            True,
            Step.TERMINATED,
            7,
        ),
    ],
)
def test_it_is_asked_first_and_then_made_to_leave(
    start: Start, statements: tuple[str, ...], polite: bool, step: Step, status: int
) -> None:
    process = start(*statements)
    heard(process)

    ending = process.end(LONG if step is Step.INPUT_CLOSED else SHORT, polite=polite)

    assert (ending.step, ending.status) == (step, status)
    assert ("we closed its input" in events(process)) is polite


def test_it_ends_once(start: Start) -> None:
    process = start(READY, READS)
    heard(process)

    first = process.end(LONG)

    assert process.end(LONG) is first
    assert sum("ended" in event for event in events(process)) == 1


def test_a_server_that_closes_its_output_and_lives_is_not_waited_for(start: Start) -> None:
    process = start("os.close(1)", READS)

    assert record_of(process).wait(lambda: False, LONG) is False
    assert record_of(process).ended
    assert events(process) == ["the server closed its output"]
    assert process.end(LONG).step is Step.INPUT_CLOSED


def test_a_process_that_ended_is_not_signalled_again(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its number may belong to somebody else's group by then."""
    process = start("pass")
    process.end(LONG)
    signalled: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, _: signalled.append(pid))

    process.kill()

    assert signalled == []


def test_signals_have_names() -> None:
    assert signal_name(11) == "SIGSEGV"
    assert signal_name(99) == "signal 99"


# --- and what it leaves behind


def test_children_in_its_group_end_with_it(start: Start) -> None:
    process = start(f"print({CHILD}).pid, flush=True)", READS)
    child = int(heard(process)[0])

    ending = process.end(LONG)

    assert ending.strays == 1
    assert until(lambda: not lives(child))


def test_children_in_a_session_of_their_own_end_with_it(start: Start) -> None:
    process = start(f"print({CHILD}, start_new_session=True).pid, flush=True)", READS)
    child = int(heard(process)[0])

    process.kill()
    process.end(LONG)

    assert until(lambda: not lives(child))


def test_a_child_that_outlives_it_is_found_in_its_group(start: Start) -> None:
    process = start(f"print({CHILD}).pid, flush=True)")
    child = int(heard(process)[0])
    process.wait(LONG)

    ending = process.end(LONG)

    assert (ending.step, ending.strays) == (Step.ITSELF, 1)
    assert until(lambda: not lives(child))


def test_the_dead_whom_nobody_buried_are_no_strays(start: Start) -> None:
    """In a container process 1 often buries nobody."""
    process = start("pid = os.fork()", "if pid: time.sleep(0.2)", "os._exit(0)")
    process.wait(LONG)

    assert process.end(LONG).strays == 0


DAEMON = (
    "if os.fork() == 0:",
    "    os.setsid()",
    "    if os.fork(): os._exit(0)",
    "    os.write(1, b'%d\\n' % os.getpid())",
    "    {closing}",
    "    time.sleep(600)",
    "os.wait()",
)


def test_a_daemon_is_found_by_its_mark(start: Start) -> None:
    mark = f"test-{os.getpid()}-{time.monotonic_ns()}"
    closing = "[os.close(fd) for fd in (0, 1, 2)]"
    process = start(*(s.format(closing=closing) for s in DAEMON), env={MARK: mark})
    daemon = int(heard(process)[0])
    process.end(LONG)
    assert lives(daemon)

    assert sweep(mark) == 1

    assert until(lambda: not lives(daemon))
    assert sweep(mark) == 0


def test_a_daemon_that_holds_the_pipes_keeps_nobody_waiting(start: Start) -> None:
    mark = f"test-{os.getpid()}-{time.monotonic_ns()}"
    threads, descriptors = threading.active_count(), open_descriptors()
    process = start(*(s.format(closing="pass") for s in DAEMON), env={MARK: mark})
    daemon = int(heard(process)[0])
    process.wait(LONG)
    begun = time.monotonic()

    process.end(LONG)

    assert time.monotonic() - begun < LONG / 2
    assert record_of(process).ended
    assert lives(daemon)
    assert sweep(mark) == 1
    assert until(lambda: threading.active_count() == threads)
    assert open_descriptors() == descriptors


# --- and what we keep


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
def test_no_thread_and_no_descriptor_is_left(start: Start, statements: tuple[str, ...]) -> None:
    threads, descriptors = set(threading.enumerate()), open_descriptors()
    process = start(*statements)
    record_of(process).wait(lambda: lines(process), LONG)
    if FOREVER in statements:
        with contextlib.suppress(Gone):
            process.send(b"x" * 500_000, 0.05)

    process.end(SHORT)

    assert set(threading.enumerate()) <= threads
    assert open_descriptors() <= descriptors
