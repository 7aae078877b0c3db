"""Atomic exchange of two names in a loop, which defeats a check before an open."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_HERE = -100
_EXCHANGE = 2

_LOOP = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
a, b = (os.fsencode(path) for path in sys.argv[1:3])
sys.stdout.write("ready\\n"); sys.stdout.flush()
while True:
    libc.renameat2(-100, a, -100, b, 2)
"""


def can_exchange(directory: Path) -> bool:
    """Return whether this system can exchange two names atomically."""
    if sys.platform != "linux":
        return False
    one, other = directory / ".one", directory / ".other"
    one.mkdir()
    other.mkdir()
    libc = ctypes.CDLL(None)
    done = hasattr(libc, "renameat2") and not libc.renameat2(
        _HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE
    )
    one.rmdir()
    other.rmdir()
    return done


@contextmanager
def exchanging(a: Path, b: Path) -> Iterator[None]:
    """Exchange two names as fast as a process can, until the block ends."""
    command = [sys.executable, "-c", _LOOP, str(a), str(b)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        try:
            yield
        finally:
            process.kill()
