"""The program: reads the arguments, protects the standard streams, handles signals.

Exit codes: 0 if every accepted request was answered (end of input, SIGTERM), 130 after SIGINT,
1 if the client left before its answers or the drain took too long, 2 for bad arguments. A signal
during the start ends the program at once (130 or 143).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

if __name__ == "__main__":  # before the other modules are loaded, which takes most of the start
    for each in (signal.SIGINT, signal.SIGTERM):
        signal.signal(each, lambda number, _frame: os._exit(128 + number))

from .operation.options import HELP, UsageError, read
from .protocol.errors import quote
from .protocol.identity import NAME, VERSION
from .server import ALL_ANSWERED, Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import FrameType
    from typing import NoReturn

    from .surface import Feature

_STDIN, _STDOUT, _STDERR = 0, 1, 2


def main(arguments: Sequence[str], features: Iterable[Feature] | None = None) -> int:
    """Run the server on the standard streams of the process."""
    if "-h" in arguments or "--help" in arguments:
        return _tell(_STDOUT, HELP.format(program=_program(), separator=os.pathsep), 0)
    if "--version" in arguments:
        return _tell(_STDOUT, f"{NAME} {VERSION}\n", 0)
    try:
        settings = read(arguments, os.environ)
        read_fd, write_fd = _take_standard_streams()
        try:
            server = Server(read_fd, write_fd, settings, features)
        except LookupError as error:
            raise UsageError(f"--feature {error}") from None
        except OSError as error:  # only this file is opened so early
            raise UsageError(
                f"--verbose-log {quote(settings.verbose_log or '')}: {error.strerror}"
            ) from None
    except UsageError as error:
        return _tell(_STDERR, f"{_program()}: {error}\n", 2)
    received = _handle_signals(server)
    code = server.run()
    return 128 + signal.SIGINT if code == ALL_ANSWERED and signal.SIGINT in received else code


def _program() -> str:
    """Return the name of the program as a user types it."""
    return sys.argv[0] if sys.argv[0].endswith(" serve") else "reference_server"


def _tell(descriptor: int, text: str, code: int) -> int:
    """Write a text for people before the server starts, and return the exit code."""
    with contextlib.suppress(OSError):
        os.write(descriptor, text.encode("ascii", "backslashreplace"))
    return code


def _take_standard_streams() -> tuple[int, int]:
    """Reserve the client's streams for the server, and return their new descriptors.

    The output of tools and libraries then goes to standard error, and their standard input is
    empty. Only the messages of this server can reach the client.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
    if nowhere < _STDERR:
        raise UsageError("standard input and output must be open")
    if nowhere == _STDERR:  # closed at the start; another file must not get this descriptor
        os.set_inheritable(_STDERR, True)
        nowhere = os.dup(nowhere)
    read_fd, write_fd = os.dup(_STDIN), os.dup(_STDOUT)
    os.dup2(nowhere, _STDIN)
    os.dup2(_STDERR, _STDOUT)
    os.close(nowhere)
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - exists on Windows only

        msvcrt.setmode(read_fd, os.O_BINARY)
        msvcrt.setmode(write_fd, os.O_BINARY)
    else:
        # The parent may have left its pipes non-blocking, which this server does not support.
        os.set_blocking(read_fd, True)
        os.set_blocking(write_fd, True)
    return read_fd, write_fd


def _handle_signals(server: Server) -> list[int]:
    """End gracefully on the first SIGTERM or SIGINT, at once on the second; return which came."""
    received: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        if received:
            os._exit(128 + number)
        received.append(number)
        server.stop()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    server.wake_on_signals()
    return received


def _leave(code: int) -> NoReturn:
    """End the process without the slow clean-up of the interpreter."""
    for stream in (sys.stdout, sys.stderr):  # output of libraries
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    _leave(main(sys.argv[1:]))
