"""Echoes every line."""

import os, sys

for line in sys.stdin.buffer:
    os.write(1, line)
