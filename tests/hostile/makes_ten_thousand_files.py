"""Leaves ten thousand files below its root."""

import os

from kit import ROOT, serve

try:
    os.mkdir(os.path.join(ROOT, "many"))
    for number in range(10_000):
        os.close(os.open(os.path.join(ROOT, "many", f"{number}"), os.O_CREAT))
except FileExistsError:
    pass
serve()
