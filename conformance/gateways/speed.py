"""gateways/speed: calls in flight at a time; the rule is about their answers, never about time."""

from collections import deque
from collections.abc import Iterator
from statistics import median
from typing import Final

from mcp_touchstone.gateway.suite import (
    ExchangeTalk,
    Seen,
    ambient,
    brief,
    exchange,
    hops,
)

LANES: Final = {1: 32, 8: 96, 64: 192}
"""Calls in flight -> calls."""


@exchange("speed", once=True)
def calls_many_times(talk: ExchangeTalk) -> None:
    """Call a tool with 1, 8 and 64 calls in flight, and look at each answer."""
    for flying, calls in LANES.items():
        open_: deque[tuple[str, int]] = deque()
        marks = deque(f"{flying}-{number}" for number in range(calls))
        taken: list[hops.ExchangeStep] = []
        while marks or open_:
            while marks and len(open_) < flying:
                mark = marks.popleft()
                line = talk.send("tools/call", talk.params("echo", text=mark, mark=mark))
                open_.append((mark, line))
            mark, line = open_.popleft()
            step = talk.take("last", line)
            taken.append(step)
            if hops.said(step) != mark:
                talk.steps.setdefault("wrong", step)
        talk.steps[f"lane-{flying}"] = taken[-1]
        talk.facts[str(flying)] = _measured(talk, taken)


def _measured(talk: ExchangeTalk, taken: list[hops.ExchangeStep]) -> tuple[float, float] | None:
    """Return the median of the seconds of a call, and calls a second; None if one got no answer."""
    lines = talk.first.transcript
    times = [(lines[one.asked].at, lines[one.entry].at) for one in taken if one.entry]
    if len(times) < len(taken):
        return None
    whole = max(end for _, end in times) - times[0][0]
    return median(end - begin for begin, end in times), len(times) / whole


@ambient("gateway-load-own", of="speed")
def answers_each_of_many_calls(pair: hops.Pair) -> Iterator[Seen]:
    """Each of 64 calls in flight gets its own answer."""
    if "wrong" not in pair.direct.steps:
        wrong = pair.through.steps.get("wrong")
        name = "last" if wrong is None else "wrong"
        actual = "" if wrong is None else wrong.why or brief(wrong.value)
        yield pair.judge("gateway-load-own", name, wrong is None, "the text of the call", actual)
