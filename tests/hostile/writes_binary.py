"""Writes noise without end."""

import os

noise = bytes(range(256)) * 256
try:
    while True:
        os.write(1, noise)
except BrokenPipeError:
    pass
