"""The servers a benchmark is told of, beside the bundled one."""

import shlex
from collections.abc import Iterable

from mcp_touchstone.target.target import Target, absolute, reference


def named(pairs: Iterable[str]) -> dict[str, Target]:
    """Give the reference server and what stands behind each ``NAME=COMMAND``."""
    targets = {"reference": reference()}
    for pair in pairs:
        name, _, command = pair.partition("=")
        targets[name] = Target(command=absolute(tuple(shlex.split(command))))
    return targets
