"""Forked servers behave like started ones."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from mcp_touchstone.target.target import reference
from mcp_touchstone.transport import process
from tests.fork_server import MUTANTS, REFERENCE, SCRIPTS, Forked, ForkServer, forking, kind

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="servers are forked on Linux only")


def started(*words: str, cwd: Path) -> Any:
    return process._launch((sys.executable, *words), dict(os.environ), cwd, None)


def finished(server: Any) -> tuple[int, str, str]:
    server.stdin.close()
    out, err = server.stdout.read().decode(), server.stderr.read().decode()
    status = server.wait(20)
    server.stdout.close()
    server.stderr.close()
    return status, out, err


def test_forked_server_is_a_child_in_its_folder_and_session(tmp_path: Path) -> None:
    server = started(*MUTANTS, "RefusesPings", ".", cwd=tmp_path)
    found = psutil.Process(server.pid)
    facts = found.ppid(), found.cwd(), os.getsid(server.pid)

    assert finished(server)[0] == 0
    assert isinstance(server, Forked)
    assert facts == (os.getpid(), str(tmp_path), server.pid)


def test_forked_server_exits_with_the_status_and_the_output_of_its_program(tmp_path: Path) -> None:
    forked = finished(started(*MUTANTS, "NoSuchMutant", cwd=tmp_path))

    assert forked == (2, "", "no mutant is called NoSuchMutant\n")


def test_forked_reference_server_prints_the_same_help_as_a_started_one(tmp_path: Path) -> None:
    words = (*REFERENCE, "--help")
    env = {**os.environ, **reference().env}

    plain = subprocess.run(
        [sys.executable, *words], env=env, capture_output=True, check=True, timeout=60
    )

    assert finished(started(*words, cwd=tmp_path)) == (0, plain.stdout.decode(), "")


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda words: Path(words[-1]).stem)
def test_forked_script_answers_as_a_started_one(tmp_path: Path, script: tuple[str, ...]) -> None:
    server = started(*script, str(tmp_path), "echo", cwd=tmp_path)
    words = [sys.executable, *script, str(tmp_path), "echo"]
    asked = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    plain = subprocess.run(words, input=asked, capture_output=True, check=True, timeout=60)

    server.stdin.write(asked)

    assert isinstance(server, Forked)
    assert finished(server) == (0, plain.stdout.decode(), "")


def test_forked_server_that_is_killed_has_the_number_of_the_signal(tmp_path: Path) -> None:
    server = started(*MUTANTS, "RefusesPings", ".", cwd=tmp_path)

    os.killpg(server.pid, signal.SIGKILL)

    assert finished(server)[0] == -signal.SIGKILL


def test_other_commands_are_started(tmp_path: Path) -> None:
    assert kind([sys.executable, "-c", "pass"]) is None
    assert kind(["node", *MUTANTS]) is None
    assert finished(started("-c", "print(1)", cwd=tmp_path)) == (0, "1\n", "")


def test_dead_fork_server_is_named(tmp_path: Path) -> None:
    dead = ForkServer(lambda _orders: lambda: None)

    with pytest.raises(RuntimeError, match="fork server of the tests has ended"):
        dead.start([sys.executable, "-m", "reference_server"], {}, str(tmp_path))
    dead.close()


def test_fork_server_ends_with_its_block(tmp_path: Path) -> None:
    before = psutil.Process().children()
    with forking():
        finished(started(*MUTANTS, "NoSuchMutant", cwd=tmp_path))
        during = psutil.Process().children()

    assert len(during) == len(before) + 1
    assert psutil.Process().children() == before
