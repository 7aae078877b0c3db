"""What a baseline excuses in a run, which entries are stale, and how it is updated. Pure."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Catalogue
from mcp_touchstone.catalog.scenario import Registry
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.gate.baseline import (
    HEADER,
    HEADING,
    Baseline,
    BaselineError,
    KnownFailure,
    meet,
    read,
    renamed,
    unknown,
)
from mcp_touchstone.results.played import PlayedScenario, ScenarioOutcome
from mcp_touchstone.results.run import Run, Settlement, Stale, Verdict
from mcp_touchstone.results.verdict import Outcome

_REASON: Final = 140
"""Characters of a finding used as a preliminary reason."""


UNEXPLAINED: Final = "unexplained: "
"""Prefix of a reason that a person must still write."""


@dataclass(frozen=True, slots=True)
class Renewal:
    """The result of updating a baseline."""

    baseline: Baseline
    added: tuple[KnownFailure, ...]
    removed: tuple[KnownFailure, ...]


def settle(baseline: Baseline, run: Run, registry: Registry, choice: Choice) -> Run:
    """Return a run whose known failures are marked, with the stale entries of the baseline.

    Rules that the choice excludes are neither known nor stale.
    """
    played = tuple(_expected(one, baseline) for one in run.scenarios)
    verdicts = [_marked(one, baseline, run) for one in run.verdicts]
    marked = replace(run, verdicts=verdicts, scenarios=played)
    view = _View(marked, registry, choice)
    stale = [
        Stale(entry.rule, entry.revisions, entry.reason, why)
        for entry in baseline.entries
        if (why := view.stale(entry))
    ]
    return replace(marked, settled=Settlement(baseline.name, len(baseline.entries), stale))


def _marked(verdict: Verdict, baseline: Baseline, run: Run) -> Verdict:
    counted = run.floor.counts(verdict.clause, verdict.outcome)
    if not counted and verdict.outcome is not Outcome.BROKEN:
        return verdict
    reasons = [entry.reason for entry in baseline.entries if entry.covers(verdict)]
    return replace(verdict, known=reasons[-1]) if reasons else verdict


def _expected(played: PlayedScenario, baseline: Baseline) -> PlayedScenario:
    reasons = [entry.reason for entry in baseline.entries if entry.expects(played)]
    return replace(played, known=reasons[-1]) if reasons else played


class _View:
    """The verdicts of a run, as they concern the entries of a baseline."""

    def __init__(self, run: Run, registry: Registry, choice: Choice) -> None:
        self._run = run
        self._outcomes = {(v.clause.id, v.revision): v.outcome for v in run.verdicts}
        self._absent = {(row.clause, row.revision): row.why for row in run.absent}
        one_revision = any(one.revision for one in run.scenarios)
        self.narrowed = bool(choice.revisions) or choice.quick or one_revision
        self._whole = {clause.id for case in registry.cases() for clause in case.clauses}
        for case in registry.cases():
            for clause in case.clauses:
                left_out = choice.cases is not None and case.id not in choice.cases
                draws = choice.draws(case) and choice.fires(clause)
                if left_out or not draws or not choice.takes(case, clause):
                    self._whole.discard(clause.id)
        self._holds = {clause.id: clause.revisions for clause in registry.catalogue}

    def judged(self, rule: str) -> list[str]:
        """Return the revisions in which a rule has a verdict."""
        known = {revision for name, revision in (*self._outcomes, *self._absent) if name == rule}
        return [revision for revision in rev.ALL if revision in known]

    def stale(self, entry: KnownFailure) -> str:
        """Return the reason an entry is stale; empty if it still applies or was not checked."""
        if entry.expires and self._run.execution.started[:10] > str(entry.expires):
            return f"it expired on {entry.expires}" + (f"; ask {entry.owner}" * bool(entry.owner))
        if entry.scenario:
            return self._other_outcome(entry)
        if entry.sometimes or self._run.partial or entry.rule not in self._whole:
            return ""
        judged = self.judged(entry.rule)
        subject = self._run.subject
        silent = {*subject.asked} - {*subject.revisions}
        concerned = [r for r in self._holds[entry.rule] if r not in silent]
        if not entry.revisions:
            if self.narrowed and not set(concerned) <= set(judged):
                return ""
            if not concerned:
                return "the server speaks no revision in which it holds"
        said = {r: self._gone(entry, r, judged) for r in entry.revisions or judged}
        return next(iter(said.values())) if said and all(said.values()) else ""

    def _other_outcome(self, entry: KnownFailure) -> str:
        """Return what came of the scenario of an entry; empty if it is as expected or unknown."""
        came = [one for one in self._run.scenarios if entry.concerns(one)]
        played = [one for one in came if one.outcome is not ScenarioOutcome.LEFT_OUT]
        over = played and not any(map(entry.expects, played))
        return f"what came of the scenario now: {played[-1].outcome}" if over else ""

    def trimmed(self, entry: KnownFailure) -> KnownFailure:
        """Return an entry without the tools and arguments in which its failure is gone."""
        found = _places(
            verdict
            for verdict in self._run.verdicts
            if replace(entry, tools=(), arguments={}).covers(verdict)
        )
        still = tuple(tool for tool in entry.tools if tool in found)
        if not still or entry.sometimes:
            return entry
        arguments = {
            tool: tuple(n for n in names if n in found[tool]) or names
            for tool, names in entry.arguments.items()
            if tool in still
        }
        return replace(entry, tools=still, arguments=arguments)

    def _gone(self, entry: KnownFailure, revision: str, judged: list[str]) -> str:
        outcome = self._outcomes.get((entry.rule, revision))
        if outcome is Outcome.PASS:
            return "it passes now"
        if outcome is not None:
            findings = {Outcome.FAIL, Outcome.WARN, Outcome.NOTE}
            return "it can be judged now" if entry.broken and outcome in findings else ""
        if (entry.rule, revision) in self._absent:
            return self._absent[entry.rule, revision]
        subject = self._run.subject
        if revision in subject.asked and revision not in subject.revisions:
            return f"the server does not speak {revision}"
        return "" if self.narrowed else f"it is not judged in {revision}" if judged else ""


def renew(
    baseline: Baseline, run: Run, registry: Registry, choice: Choice, catalogue: Catalogue
) -> Renewal:
    """Return a baseline that excuses exactly the present failures and keeps its reasons.

    Entries of rules that the choice excludes are kept. An entry of an unknown rule is removed;
    an entry whose clause was merged into another is renamed.
    """
    view = _View(run, registry, choice)
    names = renamed(catalogue)
    kept: list[KnownFailure | None] = []
    for entry in baseline.entries:
        moved = replace(entry, rule=names.get(entry.rule, entry.rule))
        if any(verdict.sometimes and moved.covers(verdict) for verdict in run.verdicts):
            moved = replace(moved, sometimes=True, revisions=())
        meets = any(other is not None and meet(moved, other) for other in kept)
        kept.append(None if meets or unknown(moved, catalogue) else _trimmed(moved, view))
    added: list[KnownFailure] = []
    for fresh in _unexcused([entry for entry in kept if entry], run, view):
        at = next(
            (
                n
                for n, entry in enumerate(kept)
                if entry
                and (entry.rule, entry.broken, entry.scenario)
                == (fresh.rule, fresh.broken, fresh.scenario)
            ),
            None,
        )
        added.append(fresh)
        if at is None:
            kept.append(fresh)
        else:
            entry = kept[at] or fresh
            both = {*entry.revisions, *fresh.revisions}
            each = entry.revisions and fresh.revisions
            wide = tuple(r for r in rev.ALL if r in both) if each else ()
            tools = {*entry.tools, *fresh.tools} if entry.tools else set[str]()
            arguments = {
                tool: tuple(sorted({*entry.arguments.get(tool, ()), *names}))
                for tool, names in sorted({**entry.arguments, **fresh.arguments}.items())
                if tool not in entry.tools or tool in entry.arguments
            }
            kept[at] = replace(
                entry,
                revisions=wide,
                tools=tuple(sorted(tools)),
                arguments=arguments if tools else {},
                sometimes=entry.sometimes or fresh.sometimes,
            )
    removed = tuple(e for e, now in zip(baseline.entries, kept, strict=False) if now is None)
    text = _text(baseline, kept)
    entries = tuple(entry for entry in kept if entry)
    return Renewal(Baseline(baseline.name, entries, text), tuple(added), removed)


def _trimmed(entry: KnownFailure, view: _View) -> KnownFailure | None:
    if not entry.revisions:
        return None if view.stale(entry) else view.trimmed(entry)
    still = tuple(r for r in entry.revisions if not view.stale(replace(entry, revisions=(r,))))
    return view.trimmed(replace(entry, revisions=still)) if still else None


def _unexcused(entries: list[KnownFailure], run: Run, view: _View) -> Iterator[KnownFailure]:
    for one in run.scenarios if run.scenarios_count else ():
        if not (one.outcome.is_whole or any(entry.expects(one) for entry in entries)):
            only = (one.revision,) if one.revision else ()
            why = UNEXPLAINED + one.why
            yield KnownFailure(rule=one.name, scenario=one.outcome, revisions=only, reason=why)
    groups: dict[tuple[str, bool], list[Verdict]] = {}
    for verdict in run.verdicts:
        broken = verdict.outcome is Outcome.BROKEN
        red = broken or run.floor.counts(verdict.clause, verdict.outcome)
        if (
            red
            and not run.is_of_sdk(verdict)
            and not any(entry.covers(verdict) for entry in entries)
        ):
            groups.setdefault((verdict.clause.id, broken), []).append(verdict)
    for (rule, broken), verdicts in groups.items():
        where = [verdict.revision for verdict in verdicts]
        everywhere = not view.narrowed and where == view.judged(rule)
        actual = " ".join((verdicts[-1].gravest.actual or "see the report").split())
        shown = actual if len(actual) <= _REASON else actual[: _REASON - 1] + "…"
        chance = any(verdict.sometimes for verdict in verdicts)
        places = _places(verdicts)
        yield KnownFailure(
            rule=rule,
            threat=isinstance(verdicts[-1].clause, Threat),
            revisions=() if everywhere or chance else tuple(where),
            broken=broken,
            tools=tuple(places),
            arguments={tool: names for tool, names in places.items() if names},
            sometimes=chance,
            reason=UNEXPLAINED + shown,
        )


def _places(verdicts: Iterable[Verdict]) -> dict[str, tuple[str, ...]]:
    """Return the tools in which verdicts were found, each with its arguments, all sorted."""
    found: dict[str, frozenset[str]] = {}
    for verdict in verdicts:
        for tool, names in verdict.tools.items():
            found[tool] = found.get(tool, frozenset()) | names
    return {tool: tuple(sorted(names)) for tool, names in sorted(found.items())}


def _text(baseline: Baseline, kept: list[KnownFailure | None]) -> str:
    """Return the new text; unchanged entries keep their wording and their comments."""
    head, *blocks = _blocks(baseline.text)
    wanted = tuple(entry for entry in kept if entry)
    if len(blocks) == len(baseline.entries):
        pieces = [head]
        for number, now in enumerate(kept):
            before = baseline.entries[number] if number < len(blocks) else None
            if now is not None:
                old = blocks[number] if number < len(blocks) else ""
                comments = old.partition(HEADER)[0]
                pieces.append(old if now == before else comments + now.text())
        text = _joined(pieces)
        try:
            if read(text, baseline.name).entries == wanted:
                return text
        except BaselineError:
            pass
    return _joined([HEADING, *(entry.text() for entry in wanted)])


def _blocks(text: str) -> list[str]:
    """Split a text before each header; comments right above a header belong to it."""
    blocks: list[list[str]] = [[]]
    for line in text.splitlines():
        if line.strip().startswith(HEADER):
            above: list[str] = []
            while blocks[-1] and blocks[-1][-1].lstrip().startswith("#"):
                above.insert(0, blocks[-1].pop())
            blocks.append([*above, line])
        else:
            blocks[-1].append(line)
    return ["\n".join(block) for block in blocks]


def _joined(pieces: list[str]) -> str:
    return "\n\n".join(piece.strip("\n") for piece in pieces if piece.strip()) + "\n"
