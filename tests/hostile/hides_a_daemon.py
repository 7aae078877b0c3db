"""Leaves a daemon that has another session, no pipes of ours and no environment."""

import os, sys

from kit import serve

if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    os.execve(sys.executable, ["cron", "-S", "-c", code, *sys.argv[1:]], {})
os.wait()
serve()
