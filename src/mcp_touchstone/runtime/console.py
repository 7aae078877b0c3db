"""The lines that this program prints: only this module writes to stdout and stderr."""

import sys

from mcp_touchstone.runtime.printable import printable, safe


def say(*lines: str, error: bool = False, flush: bool = False) -> None:
    """Print escaped lines, one for each argument, or else an empty line.

    Args:
        lines: the lines.
        error: whether they go to stderr.
        flush: whether a reader of a pipe gets them at once.
    """
    stream = sys.stderr if error else sys.stdout
    if stream is not None:  # a program without a console
        print("\n".join(map(safe, lines)), file=stream, flush=flush)


def relay(text: str) -> None:
    """Print a part of what a server writes to stderr, escaped; line feeds stay."""
    if sys.stderr is not None:
        print(printable(text), end="", file=sys.stderr, flush=True)
