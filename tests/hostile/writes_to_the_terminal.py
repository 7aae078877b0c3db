"""Goes past its pipes: writes to the terminal it was started from."""

from kit import serve

try:
    with open("/dev/tty", "wb", buffering=0) as terminal:
        terminal.write(b"\x1b[2Jowned\n")
except OSError:
    pass
serve()
