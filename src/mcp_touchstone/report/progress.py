"""The progress of a run: steps under way and time left. Pure except for its clock."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from mcp_touchstone.results.events import Done, Event, Found, Met, Planned, Started
from mcp_touchstone.results.sdk_faults import is_of_sdk
from mcp_touchstone.results.verdict import Outcome

if TYPE_CHECKING:
    from mcp_touchstone.catalog.sdk import Package

_ENOUGH: Final = 5.0
"""Seconds after which the pace so far permits an estimate."""

HEARTBEAT: Final = 15.0
"""Seconds between two lines of a run that has no terminal."""

_PART: Final = 4
"""The part of the steps that must be done before: the first ones are quick."""

_MINUTE: Final = 60
_STEP: Final = 5
"""Step in seconds to which an estimate is rounded up."""


class Progress:
    """Counter of finished steps, and the clauses that certainly fail; several threads report.

    Args:
        clock: returns seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._begun = clock()
        self._planned = 0
        self._done = 0
        self._under_way: list[str] = []
        self._failed: dict[str, None] = {}
        self._sdks: Sequence[Package] = ()
        self._shown = 0.0
        self._lock = threading.Lock()

    def on_event(self, event: Event) -> None:
        """Count an event of the runner."""
        if isinstance(event, Planned):
            self.plan(len(event.cases))
        elif isinstance(event, Started | Done):
            case = event.case if isinstance(event, Started) else event.result.planned
            place = case.case.id.partition("::")[0].removesuffix(".py")
            if not case.support:
                (self.start if isinstance(event, Started) else self.done)(
                    f"{place}  {case.revision}"
                )
        elif isinstance(event, Met):
            self._sdks = event.profile.sdk.sdks
        elif isinstance(event, Found):
            rows = {clause.id: clause for clause in event.case.clauses}
            with self._lock:
                self._failed |= {
                    one.clause: None
                    for one in event.findings
                    if one.outcome is Outcome.FAIL
                    and not is_of_sdk(self._sdks, rows[one.clause], one, http=True)
                }

    def plan(self, count: int) -> None:
        """Set the number of steps; some may be done already."""
        self._planned = count

    def start(self, step: str) -> None:
        """Begin a step; several may be under way."""
        with self._lock:
            self._under_way.append(step)

    def done(self, step: str) -> None:
        """End a step."""
        with self._lock:
            self._done += 1
            if step in self._under_way:
                self._under_way.remove(step)

    def text(self, between: str = "  ") -> str:
        """Return ``12/340  basic/ping  2025-11-25  about 40 s left  failed so far: ping-id``.

        Args:
            between: separates the steps from what failed.
        """
        with self._lock:
            parts = [f"{self._done}/{self._planned or '…'}", *self._under_way[-1:], self._left()]
            failed = f"failed so far: {', '.join(self._failed)}" if self._failed else ""
        return between.join(filter(None, ["  ".join(filter(None, parts)), failed]))

    def _left(self) -> str:
        """Return the time left; nothing while it would grow, as more steps are planned."""
        elapsed = self._clock() - self._begun
        if elapsed < _ENOUGH or not self._done or self._done >= self._planned:
            return ""
        if self._done < self._planned / _PART:
            return ""
        seconds = elapsed / self._done * (self._planned - self._done)
        if self._shown and seconds > self._shown + _STEP:
            return ""
        self._shown = seconds
        if seconds >= 2 * _MINUTE:
            return f"about {round(seconds / _MINUTE)} min left"
        return f"about {-(-int(seconds + 1) // _STEP) * _STEP} s left"


class Heartbeat:
    """Printer of the elapsed time and progress of a run, for output that is no terminal.

    Args:
        clock: returns seconds.
        say: prints one line.
        text: returns the progress of the run.
    """

    def __init__(
        self, clock: Callable[[], float], say: Callable[[str], None], text: Callable[[], str]
    ) -> None:
        self._clock = clock
        self._say = say
        self._text = text
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Print a line every few seconds from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Stop printing, and wait until the line that is being printed is complete."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join(1.0)

    def _beat(self) -> None:
        begun = self._clock()
        while not self._over.wait(HEARTBEAT):
            self._say(f"{self._clock() - begun:.0f} s: {self._text()}")
