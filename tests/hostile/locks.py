"""A server that holds a lock."""

import fcntl, os, signal, sys

from kit import ARGUMENT, OUTSIDE, serve


def runs_only_once():
    """Only one of it may run, as with servers that hold a lock or a port.

    Its argument says what a second one does: it leaves, waits for the first, kills it, or
    runs beside it.
    """
    lock = open(os.path.join(OUTSIDE, "lock"), "a+")
    if ARGUMENT == "kills":
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        for other in lock.read().split():
            try:
                os.kill(int(other), signal.SIGKILL)
            except ProcessLookupError:
                pass
        lock.write(f"{os.getpid()}\n")
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_UN)
    elif ARGUMENT != "shares":
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if ARGUMENT == "leaves" else 0))
        except BlockingIOError:
            sys.exit("another one runs")
    serve()
