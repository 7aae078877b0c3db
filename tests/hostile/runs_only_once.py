"""Only one of it may run, as with servers that hold a lock or a port.

Its argument says what a second one does: it leaves, waits for the first, kills it, or
runs beside it.
"""

import fcntl
import os
import signal
import sys

import kit

KIND = sys.argv[4]
lock = open(os.path.join(kit.OUTSIDE, "lock"), "a+")

if KIND == "kills":
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
elif KIND != "shares":
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | (fcntl.LOCK_NB if KIND == "leaves" else 0))
    except BlockingIOError:
        sys.exit("another one runs")
kit.serve()
