"""The first sentence of a security report: may I install this? One word of five, with reasons.

It is built on what the run came to (``Run.conclusion`` and ``Run.gap``), on the threats to which
the server is open, and on what it can do by design. ``docs/guides/install.md`` has the same table.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from mcp_touchstone.catalog.threat import Severity, Threat
from mcp_touchstone.results.abilities import Ability, Known, Power
from mcp_touchstone.results.run import Conclusion, Run
from mcp_touchstone.results.verdict import Outcome

SHOWN: Final = 4
"""Threats that a reason names."""


class Word(StrEnum):
    """The answer. There is no number and no grade."""

    DO_NOT = "do not install"
    NOT_JUDGED = "not judged"
    REVIEW = "not without review"
    ONLY_IF = "only if"
    NO_FINDING = "no finding"


@dataclass(frozen=True, slots=True)
class Advice:
    """The answer, and its reasons or conditions."""

    word: Word
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the sentence."""
        colon = " " if self.word is Word.ONLY_IF else ": "
        joint = ", and " if self.word is Word.ONLY_IF else "; "
        return f"{self.word}{colon}{joint.join(self.reasons)}" if self.reasons else self.word


def advice(run: Run) -> Advice | None:
    """Return the answer for a run with attacks; None for any other. The first rule that fits."""
    if not run.attacks:
        return None
    for word, reasons in (
        (Word.DO_NOT, [*_open(run, Severity.CRITICAL)]),
        (Word.REVIEW, [*_review(run)]),
        (Word.NOT_JUDGED, [*_gaps(run)]),
        (Word.ONLY_IF, [*_conditions(run)]),
    ):
        if reasons and word is Word.REVIEW:
            reasons += [f"not all was judged: {gap}" for gap in _cuts(run)]
        if reasons:
            return Advice(word, tuple(dict.fromkeys(reasons)))
    tried = len({threat.id for threat in _threats(run)})
    return Advice(
        Word.NO_FINDING,
        (f"{tried} threat{'s were' if tried != 1 else ' was'} tried on it, and none was found",),
    )


def _threats(run: Run, *severities: Severity) -> Iterator["Threat"]:
    """Yield the threats that were tried; those to which it is open, if severities are given.

    What the baseline accepts is accepted here too. A fault of the SDK is a hole all the same.
    """
    for verdict in run.verdicts:
        threat = verdict.clause
        if isinstance(threat, Threat) and verdict.outcome is not Outcome.UNSEEN:
            is_open = verdict.outcome is Outcome.FAIL and not verdict.known
            if not severities or (is_open and threat.severity in severities):
                yield threat


def _open(run: Run, *severities: Severity) -> Iterator[str]:
    ids = list(dict.fromkeys(threat.id for threat in _threats(run, *severities)))
    if ids:
        more = f" and {len(ids) - SHOWN} more" if len(ids) > SHOWN else ""
        yield f"attacks succeeded: {', '.join(ids[:SHOWN])}{more}"


def _cuts(run: Run) -> Iterator[str]:
    """Yield what keeps a run from being one on all threats."""
    if run.conclusion is Conclusion.INTERRUPTED:
        yield "the run was interrupted"
    elif run.gap:
        yield run.gap
    elif run.execution.quick:
        yield "a quick run"
    elif run.selected:
        yield "only some threats were chosen"


def _gaps(run: Run) -> Iterator[str]:
    cuts = list(_cuts(run))
    yield from cuts
    if run.trouble:
        yield from (one.text for one in _had(run, Power.SECRETS))
    if not cuts:
        outside = (one for one in run.abilities if one.power is Power.OUTSIDE)
        yield from (one.text for one in outside if one.known is Known.NOT_TRIED)


def _review(run: Run) -> Iterator[str]:
    yield from _open(run, Severity.HIGH)
    for one in _had(run, Power.CODE):
        seen = one.known is Known.SEEN
        yield f"it runs programs or code {'by design' if seen else 'as it declares'} ({one.text})"


def _conditions(run: Run) -> Iterator[str]:
    for found in _open(run, Severity.MEDIUM, Severity.LOW):
        yield f"you accept that {found}"
    for power, condition in _CONDITIONS.items():
        if had := [one.text for one in _had(run, power)]:
            yield f"{condition} ({'; '.join(had)})"


_CONDITIONS: Final = {
    Power.OUTSIDE: "a sandbox or container shows it only what it may read and change",
    Power.NETWORK: "the hosts it may reach are limited, or the network is off",
    Power.DELETES: "what it can delete is kept elsewhere, too",
    Power.STAYS: "somebody ends the processes that it leaves",
    Power.SECRETS: "its secrets are made for it alone",
    Power.CLIENT: "you see what it asks your client",
}
"""Ability -> the condition under which the server is installed. To keep state is none."""


def _had(run: Run, power: Power) -> Iterable[Ability]:
    return (one for one in run.abilities if one.power is power and one.has)
