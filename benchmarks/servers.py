"""The servers of a benchmark: the bundled one and those of the command line."""

import shlex
from collections.abc import Iterable

from mcp_touchstone.target.target import Target, absolute, reference


def named(pairs: Iterable[str]) -> dict[str, Target]:
    """Return the reference server and the server of each ``NAME=COMMAND``, by name."""
    targets = {"reference": reference()}
    for pair in pairs:
        name, _, command = pair.partition("=")
        targets[name] = Target(command=absolute(tuple(shlex.split(command))))
    return targets
