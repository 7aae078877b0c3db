"""What an attacked server may use up: a copy of an endless device must not fill the disk."""

import contextlib
import sys
from collections.abc import Iterator
from typing import Final

LARGEST: Final = 256 * 1024 * 1024
"""Bytes a file may grow to; nothing an attack writes is near that."""


def hold(pid: int, largest: int = LARGEST) -> None:
    """Limit the files that a process and its later children may write, and let it dump no core.

    Beyond the limit a write fails with EFBIG, or SIGXFSZ ends the process (getrlimit(2)). Only
    Linux can limit another process; elsewhere nothing is limited.
    """
    if sys.platform == "linux":
        import resource  # noqa: PLC0415  (only POSIX has it)

        with contextlib.suppress(OSError, ValueError):
            for kind, wanted in ((resource.RLIMIT_FSIZE, largest), (resource.RLIMIT_CORE, 0)):
                _, hard = resource.prlimit(pid, kind)
                bound = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
                resource.prlimit(pid, kind, (bound, bound))


@contextlib.contextmanager
def narrowed(pid: int, largest: int) -> Iterator[bool]:
    """Limit the files that a process may write for a while; gives whether that could be done."""
    if sys.platform != "linux":
        yield False
        return
    import resource  # noqa: PLC0415  (only POSIX has it)

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
