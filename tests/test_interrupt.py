"""Signals during the wait for a server."""

import os
import signal
import threading
import time
from concurrent.futures import Future

import pytest

from mcp_touchstone.discovery import recon

pytestmark = pytest.mark.skipif(os.name == "nt", reason="pthread_kill is of POSIX")


class SignalError(Exception):
    """Raised by the handler of a signal."""


def test_signal_to_another_thread_ends_the_wait_for_an_answer() -> None:
    def raises(_number: int, _frame: object) -> None:
        raise SignalError

    def receive() -> None:
        time.sleep(0.2)
        signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, raises)
    other = threading.Thread(target=receive)
    other.start()
    try:
        with pytest.raises(SignalError):
            recon._result(Future())
    finally:
        other.join()
        signal.signal(signal.SIGUSR1, before)
