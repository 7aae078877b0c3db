"""Hand what can be judged to the threads that judge it, as soon as it can be. Judges nothing."""

from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from mcp_touchstone.lane import Lane
from mcp_touchstone.pace import SLICE
from mcp_touchstone.plan import is_attack, share
from mcp_touchstone.results import Slot
from mcp_touchstone.scenario import Scenario, Share

Drive = Callable[[Iterable[Slot]], None]
"""Runs the slots of one process, one behind the other."""


class Schedule:
    """The lanes of a run.

    Args:
        threads: run one lane each.
        drive: runs a lane.
        workers: run attacks, if not the same threads do. An attack works all the time where another
            conversation listens, so more of them than cores only get into each other's way.
    """

    def __init__(
        self,
        threads: ThreadPoolExecutor,
        drive: Drive,
        workers: ThreadPoolExecutor | None = None,
    ) -> None:
        self._threads = threads
        self._workers = workers or threads
        self._drive = drive
        self._lanes: dict[tuple[str, Share], Lane] = {}
        self._waiting: set[Future[None]] = set()

    def add(self, slots: Iterable[Slot]) -> None:
        """Take slots that can be judged now, those that last long first.

        What shares a process joins its lane; what needs a virgin one is a lane of its own.
        """
        shared: dict[tuple[str, Share], list[Slot]] = {}
        single: list[list[Slot]] = []
        for slot in slots:
            if not isinstance(slot.case, Scenario):
                continue
            if slot.case.fresh:
                single.append([slot])
            else:
                shared.setdefault((slot.revision, share(slot)), []).append(slot)
        for key, together in shared.items():
            if key in self._lanes:
                self._lanes[key].add(together)
                continue
            lane = self._lanes[key] = Lane()
            lane.add(together)
            self._begin(self._threads, lane)
        single.sort(key=lambda lane: not _lasts(lane[0]))
        for alone in single:
            attack = is_attack(alone[0].case)
            self._begin(self._workers if attack else self._threads, alone)

    def finish(self) -> None:
        """Wait for every lane; nothing more is added.

        Raises:
            Exception: what went wrong in one of them.
        """
        self.close()
        while self._waiting:
            done, self._waiting = wait(self._waiting, timeout=SLICE, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()

    def close(self) -> None:
        """Let no lane wait for more."""
        for lane in self._lanes.values():
            lane.close()

    def _begin(self, threads: ThreadPoolExecutor, lane: Iterable[Slot]) -> None:
        self._waiting.add(threads.submit(self._drive, lane))


def _lasts(slot: Slot) -> bool:
    return isinstance(slot.case, Scenario) and slot.case.lasts
