"""Limit the resources of an attacked server: a copy of an endless device must not fill the disk."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Final

if sys.platform == "linux":
    import resource

LARGEST: Final = 256 * 1024 * 1024
"""Maximum size of a file, in bytes. Attacks write far smaller files."""


def hold(pid: int, largest: int = LARGEST) -> None:
    """Limit the file size of a process and its later children, and disable their core dumps.

    Beyond the limit a write fails with EFBIG, or SIGXFSZ ends the process (getrlimit(2)). Only
    Linux can limit another process; on other systems nothing is limited.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, ValueError):
            for kind, wanted in ((resource.RLIMIT_FSIZE, largest), (resource.RLIMIT_CORE, 0)):
                _, hard = resource.prlimit(pid, kind)
                bound = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
                resource.prlimit(pid, kind, (bound, bound))


@contextlib.contextmanager
def narrowed(pid: int, largest: int) -> Iterator[bool]:
    """Limit the file size of a process temporarily; yield whether the limit was set."""
    if sys.platform != "linux":
        yield False
        return
    try:
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (largest, before[1]))
    except (OSError, ValueError):
        yield False
        return
    try:
        yield True
    finally:
        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)
