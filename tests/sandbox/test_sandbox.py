"""A sandboxed command behaves as without a sandbox, and cannot reach anything outside it."""

import contextlib
import gc
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from mcp_touchstone.sandbox import sandbox
from mcp_touchstone.sandbox.sandbox import Method, Sandbox, outer, probe, wrap
from tests.conftest import eventually

HOSTILE = Path(__file__).parents[1] / "sandbox_hostile.py"
PATIENCE = 300
PYTHON = os.path.realpath(sys.executable)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux has namespaces"),
    pytest.mark.slow,
]


@pytest.fixture(params=list(Method))
def method(request: pytest.FixtureRequest) -> Method:
    why = probe(request.param)
    if why:
        pytest.skip(f"{request.param}: {why}")
    return Method(request.param)


@pytest.fixture
def world(tmp_path: Path) -> Path:
    made = tmp_path / "world"
    made.mkdir()
    return made


@pytest.fixture
def box(method: Method, world: Path) -> Sandbox:
    return Sandbox(
        method=method,
        writable=(world,),
        readable=(Path(sys.base_prefix).resolve(), HOSTILE),
        processes=200,
    )


def start(
    box: Sandbox, *command: str, env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.Popen[bytes]:
    env = {"PATH": os.environ["PATH"]} if env is None else env
    folder = cwd or box.writable[0]
    return subprocess.Popen(
        wrap(box, command, cwd=folder, env=env),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=outer(env),
        start_new_session=True,
    )


def run(
    box: Sandbox, *command: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    process = start(box, *command, env=env)
    out, err = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(command, process.returncode, out.decode(), err.decode())


def attack(box: Sandbox, *words: str) -> list[str]:
    done = run(box, PYTHON, str(HOSTILE), *words)
    assert not done.stderr, done.stderr
    return done.stdout.splitlines()


def family_of(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Wait for a line of a command, and return the processes of its sandbox."""
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return psutil.Process(process.pid).children(recursive=True)


@contextlib.contextmanager
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_passes_bytes_through_unchanged(box: Sandbox) -> None:
    process = start(box, "cat")
    data = bytes(range(256)) * 5000
    out, err = process.communicate(data, timeout=PATIENCE)
    assert (out, err, process.returncode) == (data, b"", 0)


@pytest.mark.parametrize("status", [0, 143])
def test_ends_with_the_status_of_the_command(box: Sandbox, status: int) -> None:
    assert run(box, "sh", "-c", f"exit {status}").returncode == status


@pytest.mark.parametrize("name", ["SEGV", "TERM", "KILL"])
def test_ends_by_the_signal_that_ended_the_command(box: Sandbox, name: str) -> None:
    expected = -getattr(signal, f"SIG{name}")
    assert run(box, "sh", "-c", f"kill -{name} $$").returncode == expected


def test_sigterm_is_forwarded_once(box: Sandbox, world: Path) -> None:
    assert_sigterm_is_forwarded_once(box, world)


def assert_sigterm_is_forwarded_once(box: Sandbox, world: Path) -> None:
    script = "trap 'echo got >> caught; exit 7' TERM; echo ready; while :; do sleep 0.1; done"
    process = start(box, "sh", "-c", script)
    family_of(process)
    os.killpg(process.pid, signal.SIGTERM)
    assert process.wait(PATIENCE) == 7
    assert (world / "caught").read_text() == "got\n"
    process.communicate()


def test_sigterm_is_forwarded_when_the_command_is_faster(
    box: Sandbox, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(sandbox.FOLDER / "init", tmp_path / "init")
    slow = tmp_path / "init" / "outside.py"
    source = slow.read_text()
    first = "    os.close(report[1])\n"
    assert source.count(first) == 1
    slow.write_text(source.replace(first, f"    import time; time.sleep(2)\n{first}"))
    monkeypatch.setattr(sandbox, "FOLDER", tmp_path)
    assert_sigterm_is_forwarded_once(box, world)


def test_sigterm_ends_a_command_that_does_not_catch_it(box: Sandbox) -> None:
    process = start(box, "sh", "-c", "echo ready; exec sleep 600")
    family_of(process)
    process.terminate()
    assert process.wait(PATIENCE) == -signal.SIGTERM
    process.communicate()


def test_sigkill_ends_all_processes_of_the_sandbox(box: Sandbox) -> None:
    process = start(box, "sh", "-c", "sleep 600 & setsid sleep 600 & echo ready; wait")
    family = family_of(process)
    assert len(family) >= 4
    process.kill()
    assert process.wait(PATIENCE) == -signal.SIGKILL
    assert psutil.wait_procs(family, timeout=PATIENCE)[1] == []
    process.communicate()


def test_output_closed_by_the_command_reaches_its_end(box: Sandbox) -> None:
    process = start(box, "sh", "-c", "echo last; exec >&- 2>&-; read line")
    assert process.stdout is not None
    assert process.stdout.read() == b"last\n"
    assert process.poll() is None
    process.communicate(b"go\n", timeout=PATIENCE)


def test_writing_to_an_input_closed_by_the_command_fails(box: Sandbox) -> None:
    process = start(box, "sh", "-c", "exec <&-; echo closed; sleep 600")
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stdout.readline() == b"closed\n"
    end = process.stdin.fileno()
    with pytest.raises(BrokenPipeError):  # the sandbox closes its own copy a moment later
        eventually(lambda: not os.write(end, b"x"))
    process.kill()
    process.communicate()


def test_background_process_of_the_command_keeps_its_output(box: Sandbox) -> None:
    process = start(box, "sh", "-c", "exec 3<&0; (read line <&3; echo $line) & exit 4")
    assert process.wait(PATIENCE) == 4
    out, _ = process.communicate(b"still there\n", timeout=PATIENCE)
    assert out == b"still there\n"


def test_leaves_no_process_behind(box: Sandbox) -> None:
    process = start(box, "sh", "-c", "echo ready; read line")
    family = family_of(process)
    process.communicate(b"\n", timeout=PATIENCE)
    assert [one for one in family if one.is_running() and one.status() != "zombie"] == []


def test_command_gets_exactly_the_given_environment(box: Sandbox) -> None:
    env = {"PATH": os.environ["PATH"], "ODD": "a\nb=c", "PWD": "/as/given", "LD_X": ""}
    done = run(box, "env", "-0", env=env)
    assert dict(pair.split("=", 1) for pair in done.stdout.split("\0") if pair) == env


def ignored_signals(box: Sandbox) -> int:
    """Return the mask of ignored signals in a sandbox, without the two of the C library.

    ``posix_spawn`` of glibc ignores signals 32 and 33 in its child, and no function resets them.
    """
    words = run(box, "grep", "SigIgn", "/proc/self/status").stdout.split()
    return int(words[1], 16) & ~(0b11 << 31)


def test_command_has_its_own_session_and_default_signals(box: Sandbox) -> None:
    script = (
        "import os; print(os.getpid() == os.getpgrp() == os.getsid(0), os.listdir('/proc/self/fd'))"
    )
    done = run(box, PYTHON, "-I", "-c", script)
    assert done.stdout == "True ['0', '1', '2', '3']\n"  # the last one lists the folder
    assert ignored_signals(box) == 0


def test_signals_that_the_caller_ignores_are_not_ignored_by_the_command(box: Sandbox) -> None:
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        ignored = ignored_signals(box)
    finally:
        signal.signal(signal.SIGUSR1, before)

    assert ignored == 0


def test_starts_a_relative_program_in_its_folder(box: Sandbox, world: Path) -> None:
    (world / "tool").write_text('#!/bin/sh\necho "$0"; pwd\n')
    (world / "tool").chmod(0o755)
    assert run(box, "./tool").stdout.splitlines()[1] == str(world)


def test_missing_program_is_named(box: Sandbox) -> None:
    with pytest.raises(FileNotFoundError, match="no such program"):
        run(box, "no-such-program-anywhere")


def test_failed_sandbox_setup_reports_the_reason(
    method: Method, tmp_path: Path, world: Path
) -> None:
    done = run(Sandbox(method=method, writable=(world, tmp_path / "missing")), "true")
    assert done.returncode == 125
    assert "missing" in done.stderr


def test_failed_command_start_reports_the_reason(
    method: Method, tmp_path: Path, world: Path
) -> None:
    hidden = tmp_path / "hidden"
    hidden.write_text("#!/bin/sh\n")
    hidden.chmod(0o755)
    done = run(Sandbox(method=method, writable=(world,)), str(hidden))
    assert done.returncode == 127
    assert "not start" in done.stderr


def test_command_cannot_see_or_kill_other_processes(box: Sandbox) -> None:
    assert attack(box, "look") == ["[1, 2]"]
    with bystander() as innocent:
        before = {one.pid for one in psutil.Process().children()}
        assert attack(box, "kill_all")[-1:] in (["done"], [])
        assert innocent.poll() is None
        assert {one.pid for one in psutil.Process().children()} >= before


def test_command_cannot_read_user_files(box: Sandbox, tmp_path: Path) -> None:
    key = tmp_path / "home" / ".ssh" / "id"
    key.parent.mkdir(parents=True)
    key.write_text("secret")
    roots = ("", "/proc/1/root", "/proc/1/cwd", "/proc/self/root", "/proc/1/fd/3", "/old")
    for line in attack(box, "read", *(f"{root}{key}" for root in roots)):
        assert line.startswith("refused: ")
    assert attack(box, "read", "/etc/shadow", "/proc/1/environ")[0].startswith("refused: ")


def test_command_writes_only_in_its_world(box: Sandbox, tmp_path: Path, world: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "file").write_text("mine")
    shown = Sandbox(method=box.method, writable=box.writable, readable=(*box.readable, mine))
    system = ("/etc/passwd", "/usr/hostile", "/hostile", "/bin/hostile", "/sys/hostile")
    for line in attack(shown, "write", str(mine / "file"), str(mine / "new"), *system):
        assert line.startswith("refused: ")
    own = (world / "new", tmp_path / "beside", Path("/tmp/new"), Path("/dev/shm/new"))  # noqa: S108
    assert attack(shown, "write", *map(str, own)) == ["7"] * 4
    assert [path.exists() for path in own] == [True, False, False, False]
    assert [one.name for one in mine.iterdir()] == ["file"]
    assert (mine / "file").read_text() == "mine"


def test_own_file_systems_of_a_sandbox_have_a_size(box: Sandbox) -> None:
    small = replace(box, own=4 << 20, hidden=(Path.home(),))
    places = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  (those of the sandbox)
    script = (
        'for d in "$@"; do head -c 8M /dev/zero > $d/new; stat -c %s $d/new; done; '
        "for d in /dev /; do test -w $d && echo $d; done"
    )
    done = run(small, "sh", "-c", script, "sh", *places)
    sizes = [int(line) for line in done.stdout.split() if line.isdecimal()]

    assert done.stderr.count("No space left on device") == len(places)
    assert max(sizes) == 4 << 20
    assert box.method is Method.BWRAP or sum(sizes) == 4 << 20
    assert not [line for line in done.stdout.split() if line.startswith("/")]


def test_command_cannot_write_kernel_settings(box: Sandbox) -> None:
    """Root can write to /proc/sys in a user namespace, and bubblewrap allows it."""
    settings = [path for path in Path("/proc/sys").rglob("*_*") if path.stat().st_mode & 0o200]
    assert settings
    script = 'for f in "$@"; do test -w "$f" && echo "$f"; done; true'
    assert run(box, "sh", "-c", script, "sh", *map(str, settings)).stdout == ""


def test_command_cannot_trace_processes(box: Sandbox) -> None:
    with bystander() as innocent:
        assert attack(box, "trace", "1", str(innocent.pid)) == ["-1", "-1"]


HOLDER = """
import ctypes, subprocess, sys
add_key, keyctl = int(sys.argv[1]), int(sys.argv[1]) + 2
libc, session, user = ctypes.CDLL(None), ctypes.c_int(-3), ctypes.c_int(-4)
if libc.syscall(keyctl, 1, None) < 0:  # KEYCTL_JOIN_SESSION_KEYRING
    sys.exit(77)
libc.syscall(add_key, b"user", b"touchstone-session", b"secret 1", 8, session)
key = libc.syscall(add_key, b"user", b"touchstone-user", b"secret 2", 8, user)
status = subprocess.run(sys.argv[2:], timeout=300).returncode
libc.syscall(keyctl, 9, key, user)  # KEYCTL_UNLINK
sys.exit(status)
"""
"""A program that has a key in its session keyring and one in the user's, and runs a command."""


def test_command_cannot_read_keys_of_the_user(box: Sandbox) -> None:
    first = {"x86_64": 248, "aarch64": 217}.get(os.uname().machine)
    if first is None:
        pytest.skip("the numbers of the system calls are unknown")
    names = ("touchstone-session", "touchstone-user")
    attack = (PYTHON, str(HOSTILE), "keys", str(first + 2), *names)
    env = {"PATH": os.environ["PATH"]}

    def held(*command: str) -> list[str]:
        words = [sys.executable, "-c", HOLDER, str(first), *command]
        done = subprocess.run(words, capture_output=True, text=True, env=env, check=False)
        if done.returncode == 77:
            pytest.skip("the kernel has no keyrings")
        assert not done.stderr
        return done.stdout.splitlines()

    assert held(*attack) == ["secret 1", "secret 2"]
    assert held(*wrap(box, attack, cwd=box.writable[0], env=env)) == ["refused", "refused"]


def test_the_loader_obeys_the_variables_of_the_command_inside_only(
    box: Sandbox, tmp_path: Path
) -> None:
    places = (tmp_path, box.writable[0])  # the first is outside
    for place in places:
        env = {"PATH": os.environ["PATH"], "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": f"{place}/seen"}
        assert run(box, "sh", "-c", "echo $LD_DEBUG", env=env).stdout == "files\n"

    outside, inside = ([*place.glob("seen*")] for place in places)
    assert not outside
    if not inside:
        pytest.skip("the loader of this system has no LD_DEBUG")


def test_command_cannot_reach_the_host_network(box: Sandbox) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host, port = listener.getsockname()
        assert attack(box, "connect", host, str(port))[0].startswith("refused: ")
        open_box = Sandbox(
            method=box.method, writable=box.writable, readable=box.readable, network=True
        )
        assert attack(open_box, "connect", host, str(port)) == [f"('{host}', {port})"]


def test_command_can_use_its_own_loopback(box: Sandbox) -> None:
    script = (
        "import socket; s = socket.create_server(('127.0.0.1', 0));"
        "print(socket.create_connection(s.getsockname(), 9).getpeername()[0])"
    )
    assert run(box, PYTHON, "-I", "-c", script).stdout == "127.0.0.1\n"


def test_harness_can_listen_in_the_sandbox_network(box: Sandbox) -> None:
    process = start(box, "sh", "-c", f"read line; exec {PYTHON} {HOSTILE} connect 127.0.0.1 $line")
    with socket.create_server(("127.0.0.1", 0)) as ours:
        port = ours.getsockname()[1]
        assert process.stdout is not None
        pid = eventually(lambda: sandbox.command_pid(process.pid))
        with sandbox.listen(pid, "127.0.0.1", port) as inside:
            out, _ = process.communicate(f"{port}\n".encode(), timeout=PATIENCE)
            assert out.decode() == f"('127.0.0.1', {port})\n"
            inside.settimeout(PATIENCE)
            inside.accept()[0].close()
            ours.settimeout(0.01)
            with pytest.raises(TimeoutError):
                ours.accept()


def test_harness_can_add_addresses_to_the_sandbox_network(box: Sandbox) -> None:
    addresses = ["169.254.169.254", "10.11.12.13", "93.184.215.14"]
    script = f"read line; for a in $line; do {PYTHON} {HOSTILE} connect $a 80; done"
    process = start(box, "sh", "-c", script)
    pid = eventually(lambda: sandbox.command_pid(process.pid))
    with sandbox.listen(pid, "::", 80, addresses=addresses):
        out, _ = process.communicate(" ".join(addresses).encode() + b"\n", timeout=PATIENCE)
    assert out.decode().splitlines() == [f"('{address}', 80)" for address in addresses]


def test_harness_can_answer_datagrams_in_the_sandbox_network(box: Sandbox) -> None:
    code = (
        "import socket, sys; sys.stdin.readline(); s = socket.socket(type=socket.SOCK_DGRAM);"
        "s.sendto(b'asked', ('127.0.0.1', 53)); print(s.recv(9).decode())"
    )
    process = start(box, PYTHON, "-I", "-c", code)
    pid = eventually(lambda: sandbox.command_pid(process.pid))
    with sandbox.listen(pid, "127.0.0.1", 53, kind="udp") as ours:
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        ours.settimeout(PATIENCE)
        _, caller = ours.recvfrom(9)
        ours.sendto(b"answered", caller)
        out, _ = process.communicate(timeout=PATIENCE)
    assert out == b"answered\n"


def test_listen_fails_when_the_command_has_ended(box: Sandbox) -> None:
    done = start(box, "true")
    done.communicate()
    with pytest.raises(OSError, match=str(done.pid)):
        sandbox.listen(done.pid, "127.0.0.1", 9)


def test_fork_bomb_is_limited(box: Sandbox) -> None:
    if os.geteuid() == 0 and (box.method is Method.BWRAP or kernel() < (6, 14)):
        pytest.skip("root is not limited there")
    process = start(box, PYTHON, str(HOSTILE), "fork_bomb")
    assert process.stdout is not None
    assert 10 < int(process.stdout.readline()) < 600
    family = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    assert psutil.wait_procs(family, timeout=PATIENCE)[1] == []


def kernel() -> tuple[int, ...]:
    return tuple(int(part) for part in os.uname().release.split(".")[:2])


def test_command_cannot_mount(box: Sandbox) -> None:
    assert attack(box, "mount") == ["-1"] * 4


def test_file_size_is_limited(box: Sandbox, world: Path) -> None:
    small = Sandbox(method=box.method, writable=box.writable, file_size=4096)
    run(small, "sh", "-c", "head -c 100000 /dev/zero > big")
    assert (world / "big").stat().st_size == 4096


def test_sandbox_that_has_not_started_leaves_no_socket_open() -> None:
    def not_started() -> int:
        raise ConnectionRefusedError

    with pytest.raises(ConnectionRefusedError):
        sandbox.SandboxSockets(not_started).make(socket.AF_INET)

    gc.collect()  # an open socket warns here, and warnings are errors


def test_changes_to_a_copied_folder_stay_in_the_sandbox(
    method: Method, tmp_path: Path, world: Path
) -> None:
    cache = tmp_path / "ca,che:1"
    cache.mkdir()
    (cache / "old").write_text("old")
    shown = Sandbox(method=method, writable=(world,), copied=(cache,))
    script = f"cd '{cache}'; cat old; echo new > old && echo x > more; cat old"
    done = run(shown, "sh", "-c", script)
    assert done.stdout.startswith("old")
    if method is Method.UNSHARE:
        assert done.stdout == "oldnew\n"
    assert {one.name: one.read_text() for one in cache.iterdir()} == {"old": "old"}


def test_small_folder_is_copied_where_there_are_no_overlays(tmp_path: Path) -> None:
    from mcp_touchstone.sandbox.init import mounts  # noqa: PLC0415  (works on Linux only)

    source, target = tmp_path / "source", tmp_path / "target"
    (source / "below").mkdir(parents=True)
    (source / "below" / "file").write_text("x" * 100)
    (source / "link").symlink_to("below")
    target.mkdir()

    assert not mounts.copy(str(source), str(target), most=3000)
    assert [*target.iterdir()] == []
    assert mounts.copy(str(source), str(target), most=4000)
    assert (target / "below" / "file").read_text() == "x" * 100
    assert (target / "link").readlink() == Path("below")


def test_readable_links_and_hidden_folders_are_respected(
    method: Method, tmp_path: Path, world: Path
) -> None:
    home = tmp_path / "home"
    for name in ("secret", "tool"):
        (home / name).mkdir(parents=True)
        (home / name / "file").write_text(name)
    shown = Sandbox(
        method=method,
        writable=(world,),
        readable=(tmp_path, home / "tool"),
        hidden=(home,),
        links={tmp_path / "link": "ignored: its folder is readable"},
    )
    done = run(shown, "sh", "-c", f"ls {home} {tmp_path}; cat {home}/tool/file")
    assert done.stdout == f"{tmp_path}:\nhome\nworld\n\n{home}:\ntool\ntool"
    linked = Sandbox(method=method, writable=(world,), links={tmp_path / "link": str(world)})
    (world / "here").touch()
    assert run(linked, "ls", f"{tmp_path}/link").stdout == "here\n"


def test_probe_names_the_missing_requirement(monkeypatch: pytest.MonkeyPatch) -> None:
    probe.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "which", lambda *_, **__: None)
        assert probe(Method.BWRAP) == "bubblewrap (bwrap) is not installed"
        probe.cache_clear()
        patch.setattr(sys, "platform", "darwin")
        assert probe(Method.UNSHARE) == "only Linux has namespaces"
    probe.cache_clear()


def test_probe_reports_the_system_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions' >&2; exit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    probe.cache_clear()
    assert probe(Method.BWRAP) == "bwrap: No permissions"
    probe.cache_clear()


def test_sandbox_start_uses_little_cpu_time(box: Sandbox) -> None:
    """CPU time depends less on the load of the machine than real time does."""

    def spent() -> float:
        before = os.times()
        run(box, "true")
        after = os.times()
        return sum(after[2:4]) - sum(before[2:4])

    run(box, "true")
    assert min(spent() for _ in range(5)) < 0.2
