"""Settings of a run for its scenarios: number of examples, seed, levels of attacks."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_touchstone.catalog.attack_level import Tier, tiers
from mcp_touchstone.catalog.clause import Clause
from mcp_touchstone.catalog.scenario import Ambient

Rules = Sequence[tuple[Ambient, tuple[Clause, ...]]]
"""Ambient rules of one revision, each with its clauses."""


@dataclass(frozen=True, slots=True)
class DrawSettings:
    """The settings that determine the generated examples.

    Attributes:
        name: name of the scenario; each scenario gets its own examples.
        number: number of examples; equal ones count once.
        seed: seed of the generator.
        home: folder for files of Hypothesis, which does not matter to them; None for its default.
    """

    name: str
    number: int
    seed: int = 0
    home: Path | None = field(default=None, repr=False, compare=False)


class Drawn:
    """The examples of a run so far; all revisions share them.

    Generating takes more processor time than sending. One thread generates for all others, since in
    each new thread Hypothesis inspects every object of the process.
    """

    def __init__(self) -> None:
        self._found: dict[str, Sequence[Any]] = {}
        self._turn = threading.Lock()
        self._desk: ThreadPoolExecutor | None = None

    def give(self, key: str, draw: Callable[[], Sequence[Any]]) -> Sequence[Any]:
        """Return the examples of a key; generate them on first use."""
        with self._turn:
            if key not in self._found:
                self._desk = self._desk or ThreadPoolExecutor(1, thread_name_prefix="draw")
                self._found[key] = self._desk.submit(draw).result()
            return self._found[key]

    def close(self) -> None:
        """End the generating thread."""
        with self._turn:
            if self._desk is not None:
                self._desk.shutdown()
                self._desk = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """The settings of a run for its properties and its attacks.

    Attributes:
        examples: number of examples for each property in each revision; 0 for none.
        seed: seed of the examples; the same seed produces the same examples.
        rules: the ambient rules of the run in the revision of a property; they check each
            example.
        home: folder for files of the generator; None for its default.
        stop: set when the run ends early.
        tiers: levels of attacks to run.
        drawn: the examples of the run so far.
    """

    examples: int = 0
    seed: int = 0
    rules: Rules = ()
    home: Path | None = None
    stop: threading.Event = field(default_factory=threading.Event)
    tiers: frozenset[Tier] = tiers()
    drawn: Drawn = field(default_factory=Drawn)
