"""What a run leaves to its scenarios: how much is drawn, from which seed, how far attacks go."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_touchstone.clause import Clause
from mcp_touchstone.scenario import Ambient
from mcp_touchstone.tier import Tier, tiers

Rules = Sequence[tuple[Ambient, tuple[Clause, ...]]]
"""Ambient rules of one revision, each with what it has to judge there."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What decides which examples are drawn.

    Attributes:
        name: whose they are; two names draw differently.
        number: how many are drawn; equal ones count once.
        seed: what the drawing starts from.
        home: where Hypothesis may keep files; None is its own default.
    """

    name: str
    number: int
    seed: int = 0
    home: Path | None = None


def _never() -> bool:
    return False


def _none(_revision: str) -> Rules:
    return ()


class Drawn:
    """The examples of a run so far: what is drawn for one revision is drawn for all.

    Drawing takes more of a processor than asking does, so one thread draws, for all others: in each
    thread that is new to it Hypothesis looks at every object of the process.
    """

    def __init__(self) -> None:
        self._found: dict[str, Sequence[Any]] = {}
        self._turn = threading.Lock()
        self._desk: ThreadPoolExecutor | None = None

    def give(self, key: str, draw: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """Give what was drawn under a key, drawing it where nobody has."""
        with self._turn:
            if key not in self._found:
                self._desk = self._desk or ThreadPoolExecutor(1, thread_name_prefix="draw")
                self._found[key] = self._desk.submit(draw).result()
            return self._found[key]

    def close(self) -> None:
        """End the thread that draws."""
        with self._turn:
            if self._desk is not None:
                self._desk.shutdown()
                self._desk = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Dice:
    """What a run lets its properties draw, and its attacks fire.

    Attributes:
        examples: how many for each property in each revision; 0 draws nothing.
        seed: what the drawing starts from; the same seed draws the same.
        rules: revision -> the ambient rules of the run, which look at each example; waits until it
            is known which these are.
        home: a folder where the drawing may keep what it works out; None is its own default.
        stopped: whether the run is over before its time.
        tiers: levels of attacks that are fired.
        drawn: the examples of the run so far.
    """

    examples: int = 0
    seed: int = 0
    rules: Callable[[str], Rules] = _none
    home: Path | None = None
    stopped: Callable[[], bool] = _never
    tiers: frozenset[Tier] = tiers()
    drawn: Drawn = field(default_factory=Drawn)
