"""The tap passes everything on unchanged, and its file survives whatever happens."""

import json
import os
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.cli import main
from mcp_touchstone.engine import runner
from mcp_touchstone.sandbox import sandbox
from mcp_touchstone.tap import recording, stand_in
from mcp_touchstone.tap.recording import Recording
from mcp_touchstone.wire.events import Happened, Side
from tests.conftest import eventually

if os.name != "posix":
    pytest.skip("signals and groups of POSIX", allow_module_level=True)

ECHO = "import os\nwhile chunk := os.read(0, 65536): os.write(1, chunk)"
ODD = b'{"a":1}\n\xff\xfe not utf-8 \x00\n\r\n[1,2\n  {"pretty":\n1}\n\nno end'


Popen = subprocess.Popen[bytes]
_started: list[Popen] = []


def tap(folder: Path, *command: str, **env: str) -> Popen:
    """Start the tap before a program."""
    words = [sys.executable, "-m", "mcp_touchstone", "tap", "--report", str(folder), "--", *command]
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        words, stdin=pipe, stdout=pipe, stderr=pipe, env={**os.environ, **env}, bufsize=0
    )
    _started.append(process)
    return process


def python(folder: Path, code: str) -> Popen:
    """Start the tap before a program in Python."""
    return tap(folder, sys.executable, "-c", code)


def only(folder: Path) -> Recording:
    """Return the one recording of a folder."""
    (found,) = recording.read_all(folder)
    return found


def lines(found: Recording, side: Side) -> bytes:
    """Return the bytes of a side that a recording has."""
    rows = [row for row in found.rows if row.side is side]
    return b"".join(row.line.raw + b"\n" * row.line.terminated for row in rows)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "recordings"
    while _started:
        process = _started.pop()
        process.kill()
        process.wait(60)
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                pipe.close()


def test_bytes_pass_unchanged_in_both_directions_and_are_recorded(folder: Path) -> None:
    process = python(folder, ECHO)

    out, _ = process.communicate(ODD, timeout=60)

    assert out == ODD
    assert process.returncode == 0
    assert lines(only(folder), Side.CLIENT) == ODD
    assert lines(only(folder), Side.SERVER) == ODD


def test_bytes_pass_before_a_line_feed_comes(folder: Path) -> None:
    process = python(folder, ECHO)
    assert process.stdin
    assert process.stdout
    process.stdin.write(b"half a li")

    assert os.read(process.stdout.fileno(), 100) == b"half a li"
    process.communicate(timeout=60)


def test_large_lines_pass(folder: Path) -> None:
    line = b'"' + b"x" * 5_000_000 + b'"\n'

    out, _ = python(folder, ECHO).communicate(line, timeout=60)

    assert out == line
    assert lines(only(folder), Side.SERVER) == line


def test_the_exit_status_and_stderr_of_the_server_are_those_of_the_tap(folder: Path) -> None:
    process = python(folder, "import sys\nsys.stderr.write('usage: ...')\nsys.exit(7)")

    _, stderr = process.communicate(timeout=60)

    assert (process.returncode, stderr) == (7, b"usage: ...")
    assert lines(only(folder), Side.STDERR) == b"usage: ..."
    assert only(folder).rows[-1].text == Happened.EXITED + "7"


def test_the_tap_ends_by_the_signal_that_ended_the_server(folder: Path) -> None:
    process = python(folder, "import os\nos.kill(os.getpid(), 9)")

    assert process.wait(60) == -signal.SIGKILL
    assert only(folder).rows[-1].text == Happened.DIED + "SIGKILL"


def test_a_server_that_does_not_exist_is_named_and_recorded(folder: Path) -> None:
    process = tap(folder, "/nonexistent/server")

    _, stderr = process.communicate(timeout=60)

    assert process.returncode == 127
    assert b"/nonexistent/server" in stderr
    assert only(folder).rows[-1].text.startswith(Happened.NOT_STARTED)


def test_signals_reach_the_server_once(folder: Path) -> None:
    process = python(
        folder,
        "import os, signal, sys\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"
        "os.write(1, b'ready\\n')\n"
        "signal.sigwait([signal.SIGTERM])\n"
        "os.write(1, b'got it\\n')\n"
        "sys.exit(3)",
    )
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"

    process.send_signal(signal.SIGTERM)

    assert process.stdout.read() == b"got it\n"
    assert process.wait(60) == 3
    assert next(only(folder).events(Happened.SIGNALLED)).text == Happened.SIGNALLED + "SIGTERM"


@pytest.mark.parametrize("reads", [True, False], ids=["read", "unread"])
def test_an_input_that_was_closed_before_a_signal_is_recorded_before_it(
    folder: Path, reads: bool
) -> None:
    # A tap that waits for a core sees both at once. It cannot even read if the server does not.
    process = python(
        folder, f"import time\nprint('ready', flush=True)\n{ECHO * reads}\ntime.sleep(99)"
    )
    assert process.stdin
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    stdin = process.stdin
    if not reads:
        os.set_blocking(stdin.fileno(), False)
        eventually(lambda: stdin.write(b"x\n" * 99_999) is None)
    close_and_end(process)

    found = only(folder).events(Happened.CLIENT_CLOSED, Happened.SIGNALLED)
    assert [row.happened for row in found] == [Happened.CLIENT_CLOSED, Happened.SIGNALLED]


def test_a_part_records_an_input_that_was_closed_before_a_signal(folder: Path) -> None:
    words = [sys.executable, "-m", "mcp_touchstone", "act", "tools_call", "--report", str(folder)]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    _started.append(process)
    assert process.stdin
    assert process.stdout
    process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
    assert process.stdout.readline()
    close_and_end(process)

    found = only(folder).events(Happened.CLIENT_CLOSED, Happened.SIGNALLED)
    assert [row.happened for row in found][:1] == [Happened.CLIENT_CLOSED]


def test_a_stand_in_passes_an_input_on_that_was_closed_before_a_signal() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = [
            sys.executable,
            "-I",
            "-S",
            stand_in.__file__,
            str(server.getsockname()[1]),
            "secret",
        ]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, bufsize=0)
        _started.append(process)
        line, _ = server.accept()
        with line:
            assert stand_in.exactly(line.recv, 6) == b"secret"
            assert process.stdin
            process.stdin.write(b"one")
            assert stand_in.next_frame(line.recv) == (stand_in.DATA, b"one")
            close_and_end(process)

            assert stand_in.next_frame(line.recv) == (stand_in.END, b"")
            assert stand_in.next_frame(line.recv) == (stand_in.SIGNAL, bytes([signal.SIGTERM]))


def close_and_end(process: Popen) -> None:
    """Close the input of a process and end it, while it has no core to see the first before."""
    assert process.stdin
    process.send_signal(signal.SIGSTOP)
    process.stdin.close()
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    process.wait(60)


def test_the_last_output_passes_to_a_slow_client(folder: Path) -> None:
    process = python(
        folder, "import os\nos.write(2, b'%d\\n' % os.getpid())\nos.write(1, b'x' * 65536 * 2)"
    )
    assert process.stdout
    assert process.stderr
    server = int(process.stderr.readline())
    eventually(lambda: not psutil.pid_exists(server))

    assert len(process.stdout.read()) == 65536 * 2
    assert process.wait(60) == 0


def test_a_child_that_keeps_the_output_open_does_not_hold_the_tap(folder: Path) -> None:
    process = python(
        folder,
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)",
    )
    assert process.stdout
    pid = int(process.stdout.readline())

    try:
        assert process.wait(60) == 0
        assert only(folder).rows[-1].text == Happened.EXITED + "0"
    finally:
        os.kill(pid, signal.SIGKILL)


def test_a_killed_tap_leaves_its_lines_and_no_server(folder: Path) -> None:
    process = python(folder, f"import os\nprint(os.getpid(), flush=True)\n{ECHO}")
    assert process.stdin
    assert process.stdout
    pid = int(process.stdout.readline())
    process.stdin.write(b"one line\n")
    assert process.stdout.readline() == b"one line\n"

    process.kill()

    assert process.stdout.read() == b""
    assert process.wait(60) == -signal.SIGKILL
    assert eventually(lambda: not _runs(pid))
    assert lines(only(folder), Side.CLIENT) == b"one line\n"


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


def test_each_side_sees_that_the_other_one_has_gone(folder: Path) -> None:
    process = python(folder, "import os\nos.close(1)\nos.read(0, 9)\n")
    assert process.stdin
    assert process.stdout

    assert process.stdout.read() == b""
    process.stdin.close()

    assert process.wait(60) == 0
    assert any(only(folder).events(Happened.SERVER_CLOSED))


def test_a_client_that_reads_no_more_stops_the_server(folder: Path) -> None:
    process = python(folder, "import os\nwhile True: os.write(1, b'x' * 999)")
    assert process.stdout
    process.stdout.read(10)

    process.stdout.close()

    assert process.wait(60) == 1
    assert b"BrokenPipeError" in lines(only(folder), Side.STDERR)


def test_a_recording_has_no_secret_of_the_environment_or_the_command(folder: Path) -> None:
    secret, token = "hunter2hunter2", "ghp_" + "a1B2" * 8
    code = "import os, sys\nprint(os.environ['API_KEY'])\nsys.stderr.write(os.environ['API_KEY'])"

    out, stderr = tap(folder, sys.executable, "-c", code, token, API_KEY=secret).communicate(
        timeout=60
    )

    assert secret.encode() in out
    assert secret.encode() in stderr
    written = only(folder).path.read_text()
    assert secret not in written
    assert token not in written
    assert "HIDDEN-API_KEY" in written


def test_secrets_of_arguments_are_hidden_in_messages_too(folder: Path) -> None:
    words = ["--password", "correcthorse", "--api-key=Zz01234567", "-H", "X-Auth: Yy01234567"]
    code = "import sys\nprint(sys.argv)\nsys.stderr.write(str(sys.argv) + ' token=Xx01234567')"

    tap(folder, sys.executable, "-c", code, *words, "--port", "8080").communicate(timeout=60)

    written = only(folder).path.read_text()
    for secret in ("correcthorse", "Zz01234567", "Yy01234567", "Xx01234567"):
        assert secret not in written
    assert only(folder).command[3] == "--password"
    assert only(folder).command[4].startswith("HIDDEN-SECRET_ARGUMENT_")
    assert only(folder).command[-2:] == ["--port", "8080"]


def test_a_full_disk_does_not_stop_the_conversation(folder: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full")
    code = (
        "import os, sys\nfrom pathlib import Path\n"
        "from mcp_touchstone.tap import recording, relay\n"
        "recorder = recording.Recorder(Path(sys.argv[1]), {}, {})\n"
        "os.dup2(os.open('/dev/full', os.O_WRONLY), recorder._file)\n"
        f"sys.exit(relay.run([sys.executable, '-c', {ECHO!r}], recorder, os.environ))"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, str(folder.with_suffix(".jsonl"))],
        input=ODD,
        capture_output=True,
        timeout=60,
        check=False,
    )

    assert process.stdout == ODD
    assert process.stderr.count(b"records no more") == 1


def test_a_last_line_that_was_cut_off_is_left_out(folder: Path) -> None:
    python(folder, ECHO).communicate(b"1\n2\n", timeout=60)
    path = only(folder).path
    path.write_bytes(path.read_bytes()[:-9])

    assert lines(only(folder), Side.CLIENT) == b"1\n2\n"


def test_other_files_are_no_recordings(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"a": 1}) + "\n")

    with pytest.raises(InputError, match="recording must be a whole number"):
        recording.read_all(tmp_path)
    with pytest.raises(InputError, match="no such file"):
        recording.read_all(tmp_path / "b" / "none.jsonl")


CONFINED = """
import os, subprocess, sys
print(os.environ["HOME"], len([name for name in os.listdir("/proc") if name.isdigit()]), flush=True)
subprocess.Popen(
    [sys.executable, "-c", "import time; time.sleep(120)", sys.argv[1]],
    start_new_session=True, env={}, stdin=-3, stdout=-3, stderr=-3,
)
sys.stdin.readline()
sys.exit(7)
"""


def running(mark: str) -> list[psutil.Process]:
    return [one for one in psutil.process_iter(["cmdline"]) if mark in (one.info["cmdline"] or ())]


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("name", list(sandbox.Method))
def test_a_server_in_a_sandbox_leaves_nothing(name: str, killed: bool, folder: Path) -> None:
    if why := sandbox.probe(sandbox.Method(name)):
        pytest.skip(why)
    mark = f"confined-{uuid.uuid4().hex}"
    options = ("--sandbox", name, "--report", str(folder))
    words = ("-m", "mcp_touchstone", "tap", *options, "--", sys.executable, "-c", CONFINED, mark)
    pipe = subprocess.PIPE
    process = subprocess.Popen([sys.executable, *words], stdin=pipe, stdout=pipe, bufsize=0)
    _started.append(process)
    assert process.stdin is not None
    assert process.stdout is not None

    home, count = process.stdout.readline().decode().split()
    assert int(count) == 2  # its own, and the one that starts it
    assert Path(home).exists()
    eventually(lambda: len(running(mark)) > 1)
    if killed:
        process.kill()
    else:
        process.stdin.write(b"\n")

    assert process.wait(60) == (-signal.SIGKILL if killed else 7)
    eventually(lambda: not running(mark))
    if killed:  # another run may have removed it already
        runner.tidy()
    assert not Path(home).parent.exists()


def test_a_sandbox_is_for_the_command_of_a_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tap", "--sandbox", "unshare", "--wrap", "file.json"]) == 2
    assert "for the command of a server after `--`" in capsys.readouterr().err
