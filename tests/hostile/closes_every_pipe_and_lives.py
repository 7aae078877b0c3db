"""Closes all its pipes at once and stays."""

import os, signal, time

signal.signal(signal.SIGTERM, signal.SIG_IGN)
for descriptor in (0, 1, 2):
    os.close(descriptor)
time.sleep(600)
