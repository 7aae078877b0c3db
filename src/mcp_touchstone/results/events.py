"""What happens in a run, as the progress and the screen follow it. Plain values."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from mcp_touchstone.results.run import PlannedCase
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

    case: PlannedCase


class Found(NamedTuple):
    """Findings of a case are certain: they appeared again, or it repeats its findings itself."""

    case: PlannedCase
    findings: Sequence[Judgement]


Event = Met | Learnt | Planned | Started | Done | Found
OnEvent = Callable[[Event], None]
