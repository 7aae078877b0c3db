"""SIGINT and SIGTERM end a run once, and not while folders or processes are made or removed."""

import contextlib
import signal
import threading
from collections.abc import Iterator

_depth = 0
_came = False
_due = False


def take() -> None:
    """Raise ``KeyboardInterrupt`` at the first SIGINT or SIGTERM; ignore later ones.

    A signal that the caller of the program ignores stays ignored.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _take)


def _take(_number: int, _frame: object) -> None:
    global _came, _due  # noqa: PLW0603  (a process has one set of signal handlers)
    if not _came:
        _came = _due = True
        _raise()


def _raise() -> None:
    global _due  # noqa: PLW0603  (as above)
    if _due and not _depth:
        _due = False
        raise KeyboardInterrupt


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Delay a signal until the end of the block, except in ``allowed`` blocks inside."""
    yield from _set_depth(1)


@contextlib.contextmanager
def allowed() -> Iterator[None]:
    """Deliver signals in this block, and one that came before, though it is in a ``held`` one."""
    yield from _set_depth(-_depth)


def _set_depth(step: int) -> Iterator[None]:
    """Change the depth during a block. Only the main thread gets signals."""
    global _depth  # noqa: PLW0603  (as above)
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before, _depth = _depth, _depth + step
    try:
        _raise()
        yield
    finally:
        _depth = before
        _raise()
