"""Greets on stdout, then never answers."""

import sys, time

print("Welcome to the demo server v1.2!", flush=True)
for _ in sys.stdin:
    pass
