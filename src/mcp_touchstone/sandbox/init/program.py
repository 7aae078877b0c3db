"""Runs the part that the first word names."""

import sys


def run() -> None:
    """Run it with the other words."""
    part, *words = sys.argv[1:]
    if part in {"listen", "sockets"}:
        from . import network

        getattr(network, part)(words)
    elif part == "keep":
        from .keep import keep

        keep()
    elif part == "inside":
        from .inside import inside

        inside(words)
    else:
        from . import outside

        getattr(outside, f"outside_{part}")(words)
