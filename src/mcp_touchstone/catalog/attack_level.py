"""Levels of attacks: one always runs, the others only on request. Facts."""

from enum import StrEnum
from typing import Final


class Tier(StrEnum):
    """A level of attacks; a threat or a payload belongs to one."""

    CORE = "core"
    DEEP = "deep"
    RACE = "race"
    PLATFORM = "platform"
    COMMANDS = "commands"


MEANING: Final = {
    Tier.CORE: "always fired: the same in each run, about a minute on a slow server",
    Tier.DEEP: "further payloads, and attacks that take minutes or much memory",
    Tier.RACE: "attacks that must win a race: never a pass by chance, seldom the same result twice",
    Tier.PLATFORM: "paths with a meaning on other systems: forms of Windows and macOS",
    Tier.COMMANDS: "tools that run programs; only in a sandbox",
}

LEVELS: Final = tuple(tier for tier in Tier if tier is not Tier.COMMANDS)
"""Levels that ``--attacks`` selects."""


def option(tier: Tier) -> str:
    """Return the option of the command line that selects a level."""
    return f"--attacks {tier}" if tier in LEVELS else f"--attack-{tier}"


def tiers(asked: tuple[str, ...] = ()) -> frozenset[Tier]:
    """Return the levels to run: the requested ones, and always core."""
    return frozenset({Tier.CORE, *map(Tier, asked)})
