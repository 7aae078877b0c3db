"""Leaves what a tidy-up may stumble over: pipes, a socket, names that are no text, a deep tree."""

import os, socket

from kit import ROOT, serve

try:
    os.chdir(ROOT)
    os.mkfifo("pipe")
    socket.socket(socket.AF_UNIX).bind("socket")
    open(b"\xff\xfe\n\x1b[2J", "w").close()
    os.symlink("loop", "loop")
    os.symlink("/", "everything")
    for _ in range(1500):
        os.mkdir("deep")
        os.chdir("deep")
except OSError:
    pass
serve()
