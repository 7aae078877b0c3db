"""Never ends the line it began."""

import os

try:
    while True:
        os.write(1, b"x" * 65536)
except BrokenPipeError:
    pass
