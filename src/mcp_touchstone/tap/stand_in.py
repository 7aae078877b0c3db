"""The server that a client under test starts: it passes its pipes on to us, who play the part.

It runs alone, by its path, with the standard library: ``python -I -S stand_in.py ADDRESS SECRET``.
A frame is a byte for its kind, four for the length of its data, and the data.
"""

import contextlib
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable

DATA, END, SIGNAL, EXIT, LOG = b"D", b"E", b"S", b"X", b"L"
"""Bytes of a pipe; the end of the input; the number of a signal; the status to exit with; bytes for
standard error, and without data the question whether they were read, or the answer that they were.
"""

LONGEST = 1 << 16
"""Greatest length of the data of a frame."""

ENDING = ("SIGTERM", "SIGINT", "SIGHUP")
"""Signals that end it."""

PATIENCE = 1.0
"""Seconds to read what a pipe had when it was closed."""


def is_closed(descriptor: int) -> bool:
    """Whether the other end of a pipe is closed, also if there are bytes in it."""
    if not hasattr(select, "poll"):  # on Windows, where no client sends signals
        return False
    look = select.poll()
    look.register(descriptor, 0)
    return any(found & select.POLLHUP for _, found in look.poll(0))


def frame(kind: bytes, data: bytes = b"") -> bytes:
    """Return a frame."""
    return kind + len(data).to_bytes(4, "big") + data


def next_frame(receive: Callable[[int], bytes]) -> tuple[bytes, bytes]:
    """Return the kind and the data of the next frame.

    Args:
        receive: returns at most so many bytes; empty at the end.

    Raises:
        EOFError: there is none.
        ValueError: it is too long.
    """
    head = exactly(receive, 5)
    length = int.from_bytes(head[1:], "big")
    if length > LONGEST:
        raise ValueError("a frame is too long")
    return head[:1], exactly(receive, length)


def exactly(receive: Callable[[int], bytes], size: int) -> bytes:
    """Return the next bytes.

    Raises:
        EOFError: there are not so many.
    """
    found = b""
    while len(found) < size:
        more = receive(size - len(found))
        if not more:
            raise EOFError
        found += more
    return found


def connect(address: str) -> socket.socket:
    """Connect to a path of a socket, or to a port.

    The path may be longer than the system takes, so only its last part is used.
    """
    if address.isdecimal():
        return socket.create_connection(("127.0.0.1", int(address)))
    line = socket.socket(socket.AF_UNIX)
    os.chdir(os.path.dirname(address))  # noqa: PTH120  (it starts in 20 ms without pathlib)
    line.connect(os.path.basename(address))  # noqa: PTH119  (as above)
    return line


def main() -> None:
    """Pass everything on until we are told to exit."""
    address, secret = sys.argv[1:]
    sending = threading.Lock()
    status = 1
    with contextlib.suppress(OSError, EOFError), connect(address) as line:
        line.sendall(secret.encode())

        def send(kind: bytes, data: bytes = b"") -> None:
            with sending, contextlib.suppress(OSError):
                line.sendall(frame(kind, data))

        def take(number: int, _frame: object) -> None:
            # The input was closed before, but the listener may have had no core to read that.
            if listener.is_alive() and is_closed(0):
                listener.join(PATIENCE)
            send(SIGNAL, bytes([number]))
            os._exit(128 + number)

        def listen() -> None:
            if hasattr(signal, "pthread_sigmask"):  # the main thread is in a call that they end
                signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            with contextlib.suppress(OSError):
                while data := os.read(0, LONGEST):
                    send(DATA, data)
            send(END)

        listener = threading.Thread(target=listen, daemon=True)
        for name in ENDING:
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), take)
        listener.start()
        while True:
            kind, data = next_frame(line.recv)
            if kind == EXIT:
                status = data[0]
                break
            if kind == LOG and not data:
                send(LOG)
            with contextlib.suppress(OSError):
                while data:
                    data = data[os.write(2 if kind == LOG else 1, data) :]
    os._exit(status)


if __name__ == "__main__":
    main()
