"""Says back what it is told."""

import os, sys

for line in sys.stdin.buffer:
    os.write(1, line)
