"""What a run showed of the advisories on the packages of a server or client. Runs nothing."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from mcp_touchstone.advisories import table
from mcp_touchstone.advisories.known import KnownAdvisory, Scanned, State, remedy
from mcp_touchstone.advisories.table import Advisory
from mcp_touchstone.catalog.sdk import Package
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.results.verdict import Outcome

UNKNOWN: Final = (
    "its own packages are unknown, so no advisory on them is named: no file tells which SDK or "
    "package it runs on; --sdk 'NAME VERSION' names the SDK"
)


def shown(subject: Subject, rule: str) -> tuple[str, ...]:
    """Return a sentence for each advisory on the packages of a subject that a finding shows."""
    return tuple(
        f"{advisory.id}: {remedy(advisory, package)} ({package})"
        for advisory, package in table.applying(_packages(subject), subject.kind)
        if rule in advisory.shown_by
    )


def compared(run: Run, scanned: Scanned) -> Run:
    """Return a run with what it showed of each advisory on its packages.

    Args:
        scanned: what another program found in its folders.
    """
    packages = {
        (one.registry, one.name): one for one in [*scanned.packages, *_packages(run.subject)]
    }
    found = known(run, packages.values())
    notes = []
    if not _packages(run.subject):
        notes.append(UNKNOWN)
    if packages and not found:
        listed = ", ".join(map(str, packages.values()))
        notes.append(f"the table of advisories has nothing on its packages ({listed})")
    if scanned.others:
        notes.append(f"advisories in {scanned.file} that are not about MCP: {scanned.others}")
    execution = replace(run.execution, notes=(*run.execution.notes, *notes))
    return replace(run, advisories=found, execution=execution)


def known(run: Run, packages: Iterable[Package]) -> tuple[KnownAdvisory, ...]:
    """Return the advisories on packages, each with what a run showed of it."""
    worst: dict[str, Outcome] = {}
    for verdict in run.verdicts:
        outcome = worst.setdefault(verdict.clause.id, verdict.outcome)
        if verdict.outcome.rank < outcome.rank:
            worst[verdict.clause.id] = verdict.outcome
    return tuple(
        _known(advisory, package, worst, run)
        for advisory, package in table.applying(packages, run.subject.kind)
    )


def _packages(subject: Subject) -> tuple[Package, ...]:
    return (*subject.sdk.sdks, *subject.sdk.packages)


def _known(
    advisory: Advisory, package: Package, worst: Mapping[str, Outcome], run: Run
) -> KnownAdvisory:
    found = {
        outcome: tuple(rule for rule in advisory.shown_by if worst.get(rule) is outcome)
        for outcome in Outcome
    }
    if rules := (*found[Outcome.FAIL], *found[Outcome.WARN], *found[Outcome.NOTE]):
        return KnownAdvisory(advisory, package, State.OPEN, rules)
    if rules := found[Outcome.PASS]:
        state = State.BY_OPTION if advisory.is_optional_in(package) else State.CLOSED
        return KnownAdvisory(advisory, package, state, rules)
    return KnownAdvisory(advisory, package, State.UNTESTED, why=_why(advisory, worst, run))


def _why(advisory: Advisory, worst: Mapping[str, Outcome], run: Run) -> str:
    """Return the reason an advisory was not tested."""
    if advisory.untested:
        return advisory.untested
    for rule in advisory.shown_by:
        if rule in worst:
            return f"{rule}: {_UNSEEN[worst[rule]]}"
    reasons = {row.clause: row.why for row in run.absent if not row.by_choice}
    for rule in advisory.shown_by:
        if rule in reasons:
            return f"{rule}: {reasons[rule]}"
    return f"`mcp-touchstone explain {advisory.shown_by[0]}` says how to test it"


_UNSEEN = {
    Outcome.BROKEN: "it could not be checked",
    Outcome.UNSEEN: "it was never triggered",
}
