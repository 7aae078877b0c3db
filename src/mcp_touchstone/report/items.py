"""The outcome of each pytest item: one for each scenario or rule, and two for the whole run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from mcp_touchstone.catalog.scenario import Case, Scenario
from mcp_touchstone.report.digest import findings, hint
from mcp_touchstone.report.finding import Finding
from mcp_touchstone.report.sections import in_full, in_short
from mcp_touchstone.report.standing import unattacked
from mcp_touchstone.report.text import last_lines
from mcp_touchstone.results.run import Run, Verdict
from mcp_touchstone.results.verdict import Outcome, worst

BASELINE: Final = "mcp-touchstone::the_baseline_is_true"
"""Id of the item that fails if an entry of the baseline is stale."""
JUDGED: Final = "mcp-touchstone::the_{kind}_can_be_judged"
"""Id of the item that fails if the server or client could not be started or judged to the end."""

PASS: Final = "pass"  # noqa: S105  (an outcome)
FAIL: Final = "fail"
SKIP: Final = "skip"
KNOWN: Final = "known"

_SAID: Final = (Outcome.FAIL, Outcome.BROKEN, Outcome.WARN, Outcome.NOTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemResult:
    """The result of one pytest item.

    Attributes:
        outcome: pass, fail, skip or known (a failure the baseline excuses).
        text: the full finding, or the reason.
        warnings: findings that do not fail the gate, one line each.
        properties: pairs of name and value for JUnit.
    """

    outcome: str = PASS
    text: str = ""
    warnings: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, document: dict[str, Any]) -> "ItemResult":
        """Read the JSON of its members."""
        pairs = tuple((name, value) for name, value in document["properties"])
        return cls(**{**document, "warnings": tuple(document["warnings"]), "properties": pairs})


def broken(why: str, names: Sequence[str], judged: str = "server") -> dict[str, ItemResult]:
    """Return results for what could not be checked: the first item fails, the rest skip."""
    properties = (("mcp_verdict", "broken"),)
    first = names[0]
    text = f"the {judged} could not be checked: see {first}"
    others = ItemResult(outcome=SKIP, text=text, properties=properties)
    fails = ItemResult(outcome=FAIL, text=f"BROKEN  {why}", properties=properties)
    return {**dict.fromkeys(names, others), first: fails}


def results(run: Run, cases: Iterable[Case], first: Sequence[str] = ()) -> dict[str, ItemResult]:
    """Return the results of the items: one for each case, and one for the baseline.

    Args:
        first: the id of the item `JUDGED`, if it is selected.
    """
    known = [*cases]
    found = {name: ItemResult(properties=(("mcp_verdict", "pass"),)) for name in first}
    found |= {case.id: _result(run, case) for case in known}
    found[BASELINE] = _baseline(run)
    if run.trouble:
        silent = [case.id for case in known if not _own(run, case).verdicts]
        why = "\n".join([run.trouble, *last_lines(run.subject.stderr, 3), *hint(run)])
        found |= broken(why, [*first, *silent, BASELINE], run.subject.kind)
    elif run.unattacked:
        found |= _unattacked(run, known, first)
    return found


def _unattacked(run: Run, cases: Iterable[Case], first: Sequence[str]) -> dict[str, ItemResult]:
    """Return a failure of the first item, or attack on files: a run without any is not a pass."""
    lacking = {row.clause for row in run.absent if run.unbound in row.why}
    attacks = [
        case.id
        for case in cases
        if isinstance(case, Scenario)
        and case.fixtures
        and lacking.intersection(clause.id for clause in case.clauses)
    ]
    text = (
        f"BROKEN  {unattacked(run)} Say what its tools do in [bindings] of the configuration, or "
        "pass --mcp-accept-unbound."
    )
    failed = ItemResult(outcome=FAIL, text=text, properties=(("mcp_verdict", "broken"),))
    return dict.fromkeys([*first, *attacks][:1], failed)


def summary(run: Run) -> list[str]:
    """Return the result of the whole run as lines for a person."""
    return [f"{run.subject.name or run.subject.shown}", *in_short(run).splitlines()]


def _result(run: Run, case: Case) -> ItemResult:
    own = _own(run, case)
    if not own.verdicts:
        return _absent(run, case)
    counted = [v for v in own.verdicts if own.counts(v) or v in own.unjudged]
    grave = findings(replace(own, verdicts=counted), *_SAID)
    lightly = [v for v in own.verdicts if v not in counted and not v.known and not own.is_of_sdk(v)]
    warned = findings(replace(own, verdicts=lightly), Outcome.FAIL, Outcome.WARN)
    warnings = tuple(map(_line, warned))
    excused = [*findings(own, *_SAID, known=True), *findings(own, Outcome.FAIL, of_sdk=True)]
    properties = _properties(own.verdicts, known=bool(excused) and not grave)
    if grave:
        text = "\n".join(in_full(run, finding) + "\n" for finding in grave)
        return ItemResult(outcome=FAIL, text=text, warnings=warnings, properties=properties)
    if excused:
        reasons = dict.fromkeys(f"{f.clause.id}: {_excuse(f)}" for f in excused)
        text = f"known: {'; '.join(reasons)}"
        return ItemResult(outcome=KNOWN, text=text, warnings=warnings, properties=properties)
    if all(verdict.outcome is Outcome.UNSEEN for verdict in own.verdicts):
        text = f"not seen: {own.verdicts[0].gravest.actual}"
        return ItemResult(outcome=SKIP, text=text, properties=properties)
    return ItemResult(warnings=warnings, properties=properties)


def _own(run: Run, case: Case) -> Run:
    """Narrow a run to the findings of one case, so that no graver case hides them."""
    found = []
    for verdict in run.verdicts:
        judgements = [j for j in verdict.judgements if j.scenario == case.id]
        if judgements:
            gravest = worst(judgements)
            raised = gravest.outcome is verdict.gravest.outcome
            outcome = verdict.outcome if raised else gravest.outcome
            known = verdict.known if outcome is verdict.outcome else ""
            sdk = verdict.sdk if outcome is verdict.outcome else None
            own = replace(verdict, outcome=outcome, gravest=gravest, judgements=judgements)
            found.append(replace(own, known=known, sdk=sdk))
    return replace(run, verdicts=found)


def _excuse(finding: Finding) -> str:
    """Return the reason that a failure does not count."""
    if finding.known or finding.sdk is None:
        return finding.known
    return f"{finding.sdk.proof} ({finding.sdk.remedy})"


def _absent(run: Run, case: Case) -> ItemResult:
    ids = {clause.id for clause in case.clauses}
    reasons = sorted({row.why for row in run.absent if row.clause in ids})
    spoken = ", ".join(run.subject.revisions)
    why = reasons[0] if reasons else f"the clause does not exist in {spoken}"
    return ItemResult(
        outcome=SKIP, text=f"not applicable: {why}", properties=(("mcp_verdict", "not applicable"),)
    )


def _baseline(run: Run) -> ItemResult:
    if not run.stale or run.settled is None:
        return ItemResult(properties=(("mcp_verdict", "pass"),))
    lines = [
        f"STALE  {entry.rule} ({', '.join(entry.revisions) or 'all revisions'}): {entry.why}"
        for entry in run.stale
    ]
    update = f"let `mcp-touchstone {run.subject.again[0]} --update-baseline`"
    advice = f"take it out of {run.settled.file}, or {update}"
    return ItemResult(
        outcome=FAIL, text="\n".join([*lines, advice]), properties=(("mcp_verdict", "stale"),)
    )


def _line(finding: Finding) -> str:
    return f"{finding.clause.id}: {finding.said} ({', '.join(finding.revisions)})"


def _properties(verdicts: list[Verdict], *, known: bool) -> tuple[tuple[str, str], ...]:
    """Return the clauses, the revisions and the most severe outcome."""
    gravest = min((v.outcome for v in verdicts), key=lambda outcome: outcome.rank)
    clauses = sorted({verdict.clause.id for verdict in verdicts})
    revisions = sorted({verdict.revision for verdict in verdicts})
    return (
        *(("mcp_clause", clause) for clause in clauses),
        ("mcp_verdict", KNOWN if known else str(gravest)),
        ("mcp_revisions", " ".join(revisions)),
    )
