"""Pass planned cases to threads, as soon as they can be judged. Judges nothing."""

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from mcp_touchstone.catalog.scenario import Place, Scenario, Share
from mcp_touchstone.engine.worker import Worker
from mcp_touchstone.results.run import PlannedCase
from mcp_touchstone.runtime.timeouts import SLICE

Drive = Callable[[Iterable[PlannedCase]], None]
"""Function that runs the cases of one process, one after the other."""


class Schedule:
    """The lanes of a run.

    Args:
        threads: run one lane each.
        workers: threads for attacks, if not the same. An attack uses a core all the time while
            other conversations listen, so more attacks than cores would only slow each other down.
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
        self._lanes: dict[tuple[str, Share], Worker] = {}
        self._waiting: set[Future[None]] = set()

    def add(self, slots: Iterable[PlannedCase]) -> None:
        """Add cases that can be judged now, long ones first.

        A case that shares a process joins its lane. A case that needs an unused process is a lane
        of its own, or is the first of the lane whose process it opens. The lanes of the processes
        that discovery opened come first: a start ends them if one case runs after the other.
        """
        shared: dict[tuple[str, Share], list[PlannedCase]] = {}
        single: list[list[PlannedCase]] = []
        for slot in sorted(slots, key=lambda slot: slot.case.place is Place.FIRST, reverse=True):
            if not isinstance(slot.case, Scenario):
                continue
            key = slot.revision, slot.share
            is_first = slot.case.place is Place.FIRST
            leads = is_first and key not in self._lanes and key not in shared
            if slot.case.place.is_unused and not leads:
                single.append([slot])
            else:
                shared.setdefault(key, []).append(slot)
        for key, together in sorted(
            shared.items(), key=lambda one: one[0][1] is not Share.ORDINARY
        ):
            if key in self._lanes:
                self._lanes[key].add(together)
                continue
            lane = self._lanes[key] = Worker()
            lane.add(together)
            self._begin(self._threads, lane)
        single.sort(key=lambda lane: not lane[0].case.lasts)
        for alone in single:
            attack = alone[0].case.is_attack
            self._begin(self._workers if attack else self._threads, alone)

    @property
    def shares(self) -> Collection[tuple[str, Share]]:
        """The revision and the share of each process that a lane uses or has used."""
        return self._lanes.keys()

    def finish(self) -> None:
        """Wait for every lane; no case may be added afterwards.

        Raises:
            Exception: the error of a lane.
        """
        self.close()
        while self._waiting:
            done, self._waiting = wait(self._waiting, timeout=SLICE, return_when=FIRST_COMPLETED)
            for future in done:
                future.result()

    def close(self) -> None:
        """Close all lanes, so that none waits for more cases."""
        for lane in self._lanes.values():
            lane.close()

    def _begin(self, threads: ThreadPoolExecutor, lane: Iterable[PlannedCase]) -> None:
        self._waiting.add(threads.submit(self._drive, lane))
