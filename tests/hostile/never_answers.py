"""Reads everything, answers nothing."""

import sys

for _ in sys.stdin:
    pass
