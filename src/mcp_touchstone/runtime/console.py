"""The lines that this program prints: only this module writes to stdout and stderr."""

import sys


def say(*lines: str, error: bool = False, flush: bool = False) -> None:
    """Print escaped lines, one for each argument, or else an empty line.

    Args:
        error: whether they go to stderr.
        flush: whether a reader of a pipe gets them at once.
    """
    from mcp_touchstone.runtime.printable import safe  # noqa: PLC0415  (`serve` prints nothing)

    stream = sys.stderr if error else sys.stdout
    if stream is not None:  # a program without a console
        print("\n".join(map(safe, lines)), file=stream, flush=flush)


def relay(text: str) -> None:
    """Print a part of what a server writes to stderr, escaped; line feeds stay."""
    from mcp_touchstone.runtime.printable import printable  # noqa: PLC0415  (as above)

    if sys.stderr is not None:
        print(printable(text), end="", file=sys.stderr, flush=True)
