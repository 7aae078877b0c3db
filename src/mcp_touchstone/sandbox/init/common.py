"""What several parts need: descriptors, the environment, and the end without a sandbox."""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import NoReturn
else:
    import _signal as signal  # the module signal imports enum: 5 to 10 ms

STDIO = (10, 11, 12)
"""Descriptors of the command's input, output and error output on the way through bubblewrap."""

STATUS, INFO = 13, 14
"""Descriptors of the pipe that reports the command's end, and of the one for bubblewrap's child."""

PASSED_ON = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
ALONE, LEFT = b"alone", b"left"
"""Whether the command was the last process of the sandbox when it ended."""

PER_FILE = 4096
"""Bytes of a file system of a sandbox for each file that it may have."""

FAILED = 125
"""Exit status when the sandbox could not be made; 126 and 127 when the command did not start."""


LOADER = ("LD_", "MALLOC_", "GLIBC_TUNABLES", "GCONV_PATH", "LOCPATH", "NLSPATH")
"""Beginnings of variables that the dynamic loader and the C library obey, see ld.so(8)."""

HELD = "MCP_TOUCHSTONE_HELD_"
"""Prefix of such variables of the command until it starts."""


def environment() -> dict[bytes, bytes]:
    """Return the initial environment of this process; Python adds to ``os.environ``."""
    data = read_all(os.open("/proc/self/environ", os.O_RDONLY))
    return dict(pair.split(b"=", 1) for pair in data.split(b"\0") if b"=" in pair)


def read_all(descriptor: int) -> bytes:
    """Read a descriptor to its end, and close it."""
    found = b""
    while data := os.read(descriptor, 65536):
        found += data
    os.close(descriptor)
    return found


def write(path: str, text: str) -> None:
    """Write a text to an existing file.

    Raises:
        OSError: it was refused.
    """
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def fail(error: OSError) -> "NoReturn":
    """Print the reason there is no sandbox, and exit."""
    os.write(2, f"mcp-touchstone: the sandbox could not be made: {error}\n".encode())
    os._exit(FAILED)
