"""Exchange two file names repeatedly while calls are made."""

import contextlib
import ctypes
import os
import sys
import threading
from pathlib import Path
from typing import Final, Self

HERE: Final = -100  # AT_FDCWD, linux/fcntl.h
EXCHANGE: Final = 2  # RENAME_EXCHANGE, linux/fs.h


class NameExchanger:
    """Exchanges two names while its context is open, atomically if the system supports it.

    Attributes:
        turns: number of exchanges so far.
    """

    def __init__(self, one: Path, other: Path) -> None:
        self._names = os.fsencode(one), os.fsencode(other)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.turns = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        one, other = self._names
        rename = _renameat2()
        spare = one + b".spare"
        while not self._over.is_set():
            if rename is not None:
                rename(HERE, one, HERE, other, EXCHANGE)
            else:  # not atomic: in between, the name does not exist
                with contextlib.suppress(OSError):
                    os.rename(one, spare)  # noqa: PTH104  (bytes)
                    os.rename(other, one)  # noqa: PTH104
                    os.rename(spare, other)  # noqa: PTH104
            self.turns += 1


def _renameat2() -> "ctypes._NamedFuncPointer | None":
    if sys.platform != "linux":
        return None
    return getattr(ctypes.CDLL(None), "renameat2", None)
