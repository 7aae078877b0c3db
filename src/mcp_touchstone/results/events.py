"""What happens in a run. The run is what its events come to."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mcp_touchstone.results.run import CaseResult, PlannedCase
from mcp_touchstone.results.verdict import Judgement

if TYPE_CHECKING:
    from mcp_touchstone.discovery.recon import ServerProfile


class Met(NamedTuple):
    """The server was opened in each revision; its tools were not called yet."""

    profile: "ServerProfile"


class Learnt(NamedTuple):
    """Discovery has ended."""

    profile: "ServerProfile"


class Planned(NamedTuple):
    """All cases are planned; some have ended."""

    cases: Sequence[PlannedCase]


class Started(NamedTuple):
    """A case begins."""

    case: PlannedCase


class Done(NamedTuple):
    """A case has ended."""

    result: CaseResult


class Repeated(NamedTuple):
    """The findings of a case were counted over its repetitions."""

    result: CaseResult


class Found(NamedTuple):
    """Findings of a case are certain: they appeared again, or it repeats its findings itself."""

    case: PlannedCase
    findings: Sequence[Judgement]


Event = Met | Learnt | Planned | Started | Done | Repeated | Found
OnEvent = Callable[[Event], None]


class RunLog:
    """The events of a run, and the results so far; several threads add events.

    Args:
        on_event: gets each event.

    Attributes:
        results: what came of each case that has ended.
    """

    def __init__(self, on_event: OnEvent = lambda _event: None) -> None:
        self.results: dict[PlannedCase, CaseResult] = {}
        self._on_event = on_event
        self._lock = threading.Lock()

    def add(self, event: Event) -> None:
        """Add an event."""
        if isinstance(event, Done | Repeated):
            with self._lock:
                self.results[event.result.planned] = event.result
        self._on_event(event)

    def of(self, cases: Sequence[PlannedCase]) -> list[CaseResult]:
        """Return the results of cases, in their order; an empty one for a case that goes on."""
        return [self.results.get(one) or CaseResult(one, done=False) for one in cases]
