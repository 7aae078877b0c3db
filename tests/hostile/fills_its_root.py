"""Fills the disk below its root, as far as it can and 64 MiB at most, and never tidies up."""

import os

from kit import ROOT, serve

try:
    for number in range(64):
        with open(os.path.join(ROOT, f"full-{number}"), "wb") as file:
            file.write(b"\xa5" * 2**20)
except OSError:
    pass
serve()
