"""The parts of the time of a run, and the least time it needs. Pure.

Each moment of a run belongs to the first part that applies: a process is starting, a conversation
waits for an answer, a conversation listens to a silent server, or our own work. So the four parts
add up to the wall time, even if many conversations run at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class WaitKind(IntEnum):
    """Kind of a wait; of simultaneous waits, the first kind counts."""

    STARTUP = 0
    ANSWER = 1
    SILENCE = 2


class Wait(NamedTuple):
    """One wait on one connection; times in seconds of one clock."""

    kind: WaitKind
    begun: float
    ended: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The parts of the wall time of a run, in seconds.

    Attributes:
        startup: a process was starting.
        answers: no process was starting, and a conversation waited for an answer.
        silence: neither, and a conversation was listening.
        ours: none of these: judging, reading, ending processes.
        floor: the least time these conversations need: the processor time of all servers, their
            start-ups and their answers, spread over all cores; or one start-up and the longest
            conversation, if that is longer.
    """

    startup: float
    answers: float
    silence: float
    ours: float
    floor: float

    @property
    def wall(self) -> float:
        """The sum of the parts: the wall time, in seconds."""
        return self.startup + self.answers + self.silence + self.ours

    @property
    def efficiency(self) -> float:
        """The floor as a share of the wall time; 1 is the best possible."""
        return min(1.0, self.floor / self.wall) if self.wall else 1.0


def account(
    conversations: Sequence[Sequence[Wait]],
    begun: float,
    ended: float,
    *,
    processor: float,
    cores: int,
) -> Cost:
    """Split the time from ``begun`` to ``ended`` into its parts.

    Args:
        conversations: the waits of each process.
        begun: start of the run, in seconds.
        ended: end of the run, in seconds.
        processor: processor time of all servers together, in seconds; 0 if unknown.
        cores: number of processes that can run at the same time.
    """
    waits = [wait for conversation in conversations for wait in conversation]
    spent = []
    for kind in WaitKind:
        inside = [(max(begun, w.begun), min(ended, w.ended)) for w in waits if w.kind <= kind]
        spent.append(_covered(inside))
    starts = [w.ended - w.begun for w in waits if w.kind is WaitKind.STARTUP]
    answering = (
        sum(wait.ended - wait.begun for wait in conversation if wait.kind is WaitKind.ANSWER)
        for conversation in conversations
    )
    shortest = min(starts, default=0.0)
    return Cost(
        startup=spent[0],
        answers=spent[1] - spent[0],
        silence=spent[2] - spent[1],
        ours=max(0.0, ended - begun - spent[2]),
        floor=max(processor / max(1, cores), shortest + max(answering, default=0.0)),
    )


def _covered(intervals: Sequence[tuple[float, float]]) -> float:
    """Return the length of the union of intervals."""
    total = 0.0
    reached = float("-inf")
    for begun, ended in sorted(intervals):
        if ended > max(begun, reached):
            total += ended - max(begun, reached)
            reached = ended
    return total
