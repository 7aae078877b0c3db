"""An attacked server cannot fill the disk."""

import subprocess
import sys
from pathlib import Path

import pytest

from mcp_touchstone.security.rlimits import hold

ENDLESS = """
import sys
sys.stdin.read(1)
with open(sys.argv[1], "wb", buffering=0) as file:
    while True:
        file.write(bytes(65536))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits another process")
def test_endless_write_stops_at_the_file_size_limit(tmp_path: Path) -> None:
    victim = tmp_path / "zeros"
    command = [sys.executable, "-c", ENDLESS, str(victim)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        hold(process.pid, 1024 * 1024)
        process.communicate(b"x", timeout=60)

    assert process.returncode != 0
    assert victim.stat().st_size == 1024 * 1024


def test_limiting_an_ended_process_is_no_error() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()

    hold(process.pid)
