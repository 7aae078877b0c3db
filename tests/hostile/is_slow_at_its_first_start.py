"""Answers at once, except the processes that were started within a second of the first one."""

import os, sys, time

import kit

MARK, SECONDS = os.path.join(kit.ROOT, "started"), float(sys.argv[4])

try:
    os.close(os.open(MARK, os.O_CREAT | os.O_EXCL))
except FileExistsError:
    pass
if time.time() - os.stat(MARK).st_mtime < 1:
    time.sleep(SECONDS)
kit.serve()
