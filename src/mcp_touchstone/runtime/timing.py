"""What the time of a run went into, and what it could not have done without. Pure.

At each moment of a run some process may be starting, else some conversation may be waiting for an
answer, else some may be listening to a server that has nothing to say; what is left is ours. So the
four add up to the wall time, however many conversations there are at once.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple


class Kind(IntEnum):
    """What is waited for; of two at a time the first counts."""

    STARTUP = 0
    ANSWER = 1
    SILENCE = 2


class Wait(NamedTuple):
    """One wait on one connection; times in seconds of one clock."""

    kind: Kind
    begun: float
    ended: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Where the wall time of a run went, in seconds.

    Attributes:
        startup: some process was starting.
        answers: none was, and some answer was waited for.
        silence: neither, and some conversation was listening.
        ours: none of these: judging, reading, ending processes.
        floor: what no judge could do without who has these conversations: the processor time of all
            servers, their start-ups and their answers, spread over all cores; or one start-up and
            the longest conversation, if that is longer.
    """

    startup: float
    answers: float
    silence: float
    ours: float
    floor: float

    @property
    def wall(self) -> float:
        """All of it."""
        return self.startup + self.answers + self.silence + self.ours

    @property
    def efficiency(self) -> float:
        """The floor as a share of the wall time; 1 is the best there is."""
        return min(1.0, self.floor / self.wall) if self.wall else 1.0


def account(
    conversations: Sequence[Sequence[Wait]],
    begun: float,
    ended: float,
    *,
    processor: float,
    cores: int,
) -> Cost:
    """Split the time from ``begun`` to ``ended`` into what it was spent on.

    Args:
        conversations: the waits of each process.
        begun: when the run began.
        ended: when it was over.
        processor: processor time of all servers together, in seconds; 0 where nobody knows.
        cores: how many processes can run at a time.
    """
    waits = [wait for conversation in conversations for wait in conversation]
    spent = []
    for kind in Kind:
        inside = [(max(begun, w.begun), min(ended, w.ended)) for w in waits if w.kind <= kind]
        spent.append(_covered(inside))
    starts = [w.ended - w.begun for w in waits if w.kind is Kind.STARTUP]
    longest = max((_answering(conversation) for conversation in conversations), default=0.0)
    shortest = min(starts, default=0.0)
    return Cost(
        startup=spent[0],
        answers=spent[1] - spent[0],
        silence=spent[2] - spent[1],
        ours=max(0.0, ended - begun - spent[2]),
        floor=max(processor / max(1, cores), shortest + longest),
    )


def _answering(conversation: Iterable[Wait]) -> float:
    return sum(wait.ended - wait.begun for wait in conversation if wait.kind is Kind.ANSWER)


def _covered(intervals: Sequence[tuple[float, float]]) -> float:
    """Measure the union of intervals."""
    total = 0.0
    reached = float("-inf")
    for begun, ended in sorted(intervals):
        if ended > max(begun, reached):
            total += ended - max(begun, reached)
            reached = ended
    return total
