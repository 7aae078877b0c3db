"""Begin lasting scenarios while a probe still looks for their example.

A call that takes seconds is searched by making it. Scenarios that need such a call start their
process and make the same call meanwhile. Their judgements count if the search then finds that call,
and that it takes as long as expected; otherwise they are dropped, and the scenarios begin again or
do not apply. Judges nothing.
"""

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Final

from mcp_touchstone.catalog.scenario import Scenario
from mcp_touchstone.client.server_profile import Example
from mcp_touchstone.engine.worker import Work, begin, hold
from mcp_touchstone.judging.talk import Talk
from mcp_touchstone.results.run import PlannedCase
from mcp_touchstone.runtime.timeouts import SLICE
from mcp_touchstone.transport.process import LaunchError

TOLERANCE: Final = 0.25
"""Greatest part by which a call may take more or less than the seconds that were expected."""


@dataclass(slots=True)
class _Early:
    """A scenario that has begun.

    Attributes:
        words: its words that are not decided.
        talk: its conversation; None before it begins and if its process could not be started.
        withdrawn: whether it no longer counts.
        ended: done when it has ended.
    """

    case: PlannedCase
    words: frozenset[str]
    talk: Talk | None = None
    withdrawn: bool = False
    ended: Future[None] | None = None


class HeadStart:
    """The scenarios of one run that have begun before their examples are proved.

    Args:
        threads: run one scenario each.
        most: greatest number of such scenarios; the other threads are for other scenarios.
        probable: (revision, word) -> the example that a probe tries first, when it is known; None
            if it tries none.
    """

    def __init__(
        self,
        work: Work,
        threads: ThreadPoolExecutor,
        most: int,
        probable: Callable[[str, str], Example | None],
    ) -> None:
        self._work = work
        self._most = most
        self._probable = probable
        self._threads = threads
        self._early: dict[tuple[str, str], _Early] = {}
        self._lock = threading.Lock()

    def begin(self, cases: Iterable[tuple[PlannedCase, frozenset[str]]]) -> None:
        """Begin cases, each with its words that are not decided, as long as there is room."""
        for case, words in cases:
            if len(self._early) >= self._most:
                return
            early = self._early[case.case.id, case.revision] = _Early(case, words)
            early.ended = self._threads.submit(self._hold, early)

    def take(self, case: PlannedCase) -> Talk | None:
        """Return the conversation of a planned case, after its end; None if it has to begin."""
        early = self._early.pop((case.case.id, case.revision), None)
        if early is None:
            return None
        if early.ended is None or early.ended.cancel():
            return None
        if not self._is_proved(early, case):
            self._withdraw(early)
            return None
        while wait([early.ended], SLICE).not_done:
            if self._work.stop.is_set():
                return None
        return early.talk

    def close(self) -> None:
        """End the scenarios that no planned case has taken."""
        for early in self._early.values():
            if early.ended is not None and not early.ended.cancel():
                self._withdraw(early)
        self._early.clear()

    def _is_proved(self, early: _Early, case: PlannedCase) -> bool:
        if early.case.clauses != case.clauses:
            return False
        spoken = self._work.profile.spoken[case.revision]
        return all(
            len(found := spoken.examples(word)) == 1
            and _is_same(found[0], spoken.probable.get(word))
            for word in early.words
        )

    def _hold(self, early: _Early) -> None:
        case, work = early.case, self._work
        assert isinstance(case.case, Scenario)  # noqa: S101  (the plan offers no other)

        def probable(word: str) -> Example | None:
            return self._probable(case.revision, word) if word in early.words else None

        try:
            talk = begin(case, case.case, case.revision, replace(work, probable=probable))
        except LaunchError:
            return
        with self._lock:
            early.talk = talk
            withdrawn = early.withdrawn
        if withdrawn:
            self._withdraw(early)
        hold(talk, case.case, work)

    def _withdraw(self, early: _Early) -> None:
        with self._lock:
            early.withdrawn = True
            talk = early.talk
        for connection in talk.server.connections if talk is not None else ():
            self._work.pool.discard(connection, polite=False)


def _is_same(found: Example, probable: Example | None) -> bool:
    """Return whether the call that was found is the probable one, and takes as long."""
    if probable is None:
        return False
    late = abs(found.seconds - probable.seconds)
    return (
        found.method == probable.method
        and found.params == probable.params
        and late <= TOLERANCE * probable.seconds
    )
