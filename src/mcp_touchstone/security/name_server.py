"""A small DNS server (RFC 1035) whose answers change from question to question."""

import contextlib
import socket
import threading
from collections.abc import Sequence
from typing import Final

LARGEST: Final = 512
"""Maximum number of bytes of a question."""

HEADER: Final = 12
A: Final = (1).to_bytes(2, "big")
"""The type of a question for an IPv4 address."""

MOST: Final = 100
"""Names that are remembered."""

PATIENCE: Final = 1.0
"""Seconds to wait for the thread at the end."""


class NameServer:
    """Answers questions for IPv4 addresses until it is closed; each answer is valid once.

    Args:
        listening: the datagram socket; ``close`` closes it.

    Attributes:
        asked: the names it was asked for, in lower case, as keys; at most ``MOST``.
    """

    def __init__(self, listening: socket.socket) -> None:
        self._socket = listening
        self.asked: dict[str, None] = {}
        self._names: dict[str, list[str]] = {}
        self._closed = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def add(self, name: str, addresses: Sequence[str]) -> None:
        """Add a name in lower case with its addresses, one for each question; the last repeats."""
        self._names[name] = list(addresses)

    def close(self) -> None:
        """Stop answering."""
        self._closed = True
        self._thread.join(PATIENCE)
        self._socket.close()

    def _serve(self) -> None:
        self._socket.settimeout(PATIENCE / 10)  # closing a socket does not wake recvfrom
        while not self._closed:
            with contextlib.suppress(OSError, IndexError):
                question, caller = self._socket.recvfrom(LARGEST)
                self._socket.sendto(self._answer(question), caller)

    def _answer(self, question: bytes) -> bytes:
        """Return the answer to one question.

        Raises:
            IndexError: the question is cut off.
        """
        labels, at = [], HEADER
        while length := question[at]:
            labels.append(question[at + 1 : at + 1 + length].decode("latin-1"))
            at += 1 + length
        asked = question[HEADER : at + 5]
        name = ".".join(labels).lower()
        if len(self.asked) < MOST:
            self.asked[name] = None
        addresses = self._names.get(name)
        found = b""
        if addresses and asked[-4:-2] == A:
            address = addresses.pop(0) if len(addresses) > 1 else addresses[0]
            # the name by a pointer to the question; type, class; valid for 0 seconds; length
            found = b"\xc0\x0c" + A + A + bytes(4) + b"\x00\x04" + socket.inet_aton(address)
        flags = b"\x85\x80" if addresses else b"\x85\x83"  # NXDOMAIN for unknown names
        counts = b"\x00\x01" + len(found[:1]).to_bytes(2, "big") + bytes(4)
        return question[:2] + flags + counts + asked + found
