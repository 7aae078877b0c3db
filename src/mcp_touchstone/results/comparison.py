"""Comparison of two reports: new, fixed and open findings. Pure; works on JSON.

It considers findings only: failures, warnings and rules not judged, in either report.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.threat import Severity
from mcp_touchstone.results.threshold import DEFAULT, Floor
from mcp_touchstone.results.verdict import Outcome

ABSENT: Final = "not applicable"
UNASKED: Final = "not judged"

_FINDINGS: Final = {str(o): o for o in (Outcome.FAIL, Outcome.BROKEN, Outcome.WARN)}
_HELD: Final = {str(Outcome.PASS), str(Outcome.NOTE)}


class Change(StrEnum):
    """The change of a finding between two reports."""

    NEW = "new"
    """It fails now; before, it passed or did not apply."""

    NEWLY = "newly judged"
    """It was not judged before: the suite grew, less was chosen, or it could not be judged."""

    OPEN = "still open"
    FIXED = "fixed"
    GONE = "no longer applicable"
    """It was found before, and the server no longer has the feature of the rule."""

    SOMETIMES = "sometimes"
    """One of the reports found it by chance: not in each repetition. It never counts."""

    UNSEEN = "not seen now"
    """It passed before, and now the server did nothing that the rule is about. It never counts."""

    UNASKED = "not judged now"
    """It was found before, and is not checked now: less was chosen, or the rule was retired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFinding:
    """One finding of two reports.

    Attributes:
        rule: id of the clause or threat.
        revision: the revision it was found in.
        was: outcome in the old report, or that it did not apply or was not judged.
        now: the same in the new report.
        grade: level of the clause, or severity of the threat.
        counts: whether it makes the result worse: new, severe enough, not in the baseline, not
            the SDK's.
        actual: behaviour of the server in the new or else the old report, or the reason it
            no longer applies.
    """

    rule: str
    revision: str
    change: Change
    was: str
    now: str
    grade: str
    counts: bool
    actual: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes from one report to another.

    Attributes:
        old: name of the old report.
        items: findings of both reports, in the order of the new report, then of the old.
        servers: the name the server gave in the old report and in the new one.
        same: whether both reports used the same command.
        trouble: the reason the new run could not judge everything; empty if it could.
    """

    old: str
    items: tuple[ComparedFinding, ...]
    servers: tuple[str, str]
    same: bool
    trouble: str = ""

    def of(self, *changes: Change) -> list[ComparedFinding]:
        """Return the items with one of these changes."""
        return [item for item in self.items if item.change in changes]

    def count(self, change: Change) -> int:
        """Return the number of rules; several revisions of a rule count once."""
        return len({item.rule for item in self.of(change)})

    @property
    def exit_code(self) -> int:
        """0 not worse than before, 1 worse, 2 a rule was judged before and not now."""
        worse = [item for item in self.items if item.counts]
        if any(item.now != str(Outcome.BROKEN) for item in worse):
            return 1
        return 2 if worse or self.trouble else 0

    def makes_worse(self, rule: str, revision: str) -> bool:
        """Return whether a finding of the new report counts."""
        return any(i.counts and (i.rule, i.revision) == (rule, revision) for i in self.items)


@dataclass(frozen=True, slots=True)
class _State:
    """The state of one rule in one revision of one report."""

    word: str
    grade: str = ""
    severity: Severity | None = None
    actual: str = ""
    known: bool = False
    is_sdks: bool = False
    sometimes: bool = False
    tools: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def found(self) -> bool:
        return self.word in _FINDINGS

    def became_unseen(self, now: "_State | None") -> bool:
        """Return whether a rule that was kept is not seen now."""
        return self.word in _HELD and now is not None and now.word == str(Outcome.UNSEEN)

    @property
    def rank(self) -> int:
        return Outcome(self.word).rank


class _Report:
    def __init__(self, document: Mapping[str, Any], renamed: Mapping[str, str]) -> None:
        self.spoken = set(document["revisions"]["spoken"])
        self.states: dict[tuple[str, str], _State] = {}
        for row in document["not_applicable"]:
            key = renamed.get(row["clause"], row["clause"]), row["revision"]
            self.states[key] = _State(ABSENT, actual=row["why"])
        for row in document["verdicts"]:
            key = renamed.get(row["clause"], row["clause"]), row["revision"]
            known, state = self.states.get(key), _state(row)
            if known is None or known.word == ABSENT or state.rank < known.rank:
                self.states[key] = state


def _state(row: Mapping[str, Any]) -> _State:
    threat = row.get("threat")
    gravest = min(row["judgements"], key=lambda one: Outcome(one["outcome"]).rank)
    return _State(
        row["outcome"],
        threat["severity"] if threat else row["level"],
        Severity(threat["severity"]) if threat else None,
        gravest["actual"],
        bool(row.get("known")),
        bool(row.get("sdk")),
        bool(row.get("sometimes")),
        _tools(row),
    )


def _tools(row: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Return the tools of a finding, each with its known arguments."""
    found: dict[str, frozenset[str]] = {}
    for judgement in row["judgements"]:
        for tool in judgement.get("tools", ()) if judgement["outcome"] == row["outcome"] else ():
            names = judgement.get("arguments", {}).get(tool, ())
            found[tool] = found.get(tool, frozenset()) | frozenset(names)
    return found


def compare(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    *,
    name: str,
    floor: Floor = DEFAULT,
    renamed: Mapping[str, str] | None = None,
) -> Comparison:
    """Compare two reports.

    Args:
        old: the older report, as JSON.
        new: the newer one.
        name: name of the older report.
        floor: the least severity of a new finding that makes the result worse.
        renamed: ids merged since then -> the id they are part of now.
    """
    before, after = _Report(old, renamed or {}), _Report(new, renamed or {})
    keys = dict.fromkeys([*after.states, *before.states])
    summary = new["summary"]
    return Comparison(
        name,
        tuple(_items(keys, before, after, floor)),
        (_server(old), _server(new)),
        old["target"]["command"] == new["target"]["command"],
        "the run was interrupted" if summary["interrupted"] else summary["trouble"],
    )


def _server(document: Mapping[str, Any]) -> str:
    infos = document["target"]["server"]
    info = infos[max(infos)] if infos else {}
    return f"{info.get('name', '')} {info.get('version', '')}".strip()


def _items(
    keys: Iterable[tuple[str, str]], before: _Report, after: _Report, floor: Floor
) -> Iterator[ComparedFinding]:
    for rule, revision in keys:
        was, now = before.states.get((rule, revision)), after.states.get((rule, revision))
        shown = now if now and now.found else was
        if shown is None or not (shown.found or shown.became_unseen(now)):
            continue
        change, why = _change(was, now, revision, before, after)
        grave = shown.found and floor.admits(_FINDINGS[shown.word], shown.severity)
        broken = shown.word == str(Outcome.BROKEN) and not floor.never
        yield ComparedFinding(
            rule=rule,
            revision=revision,
            change=change,
            was=was.word if was else UNASKED,
            now=now.word if now else UNASKED,
            grade=shown.grade,
            counts=change is Change.NEW
            and not shown.known
            and (floor.sdk or not shown.is_sdks)
            and (grave or broken),
            actual=why or shown.actual,
        )


def _change(
    was: _State | None, now: _State | None, revision: str, before: _Report, after: _Report
) -> tuple[Change, str]:
    """Return the change of a finding, and its reason if that is not obvious."""
    if any(one is not None and one.found and one.sometimes for one in (was, now)):
        return Change.SOMETIMES, ""
    if now is not None and now.found:
        return _found(was, now, revision in before.spoken)
    if now is None:
        gone = Change.GONE, f"the server does not speak {revision} any more"
        return (Change.UNASKED, "") if revision in after.spoken else gone
    if now.word in _HELD:
        return Change.FIXED, ""
    if was is not None and was.became_unseen(now):
        return Change.UNSEEN, now.actual
    return Change.GONE, now.actual or "the server did nothing it speaks of"


def _found(was: _State | None, now: _State, spoken: bool) -> tuple[Change, str]:
    if was is None:
        return (Change.NEWLY if spoken else Change.NEW), ""
    if was.word == now.word:
        fresh = _fresh(was, now) if was.tools else []
        if fresh:
            return Change.NEW, f"now also in {', '.join(fresh)}: {now.actual}"
        return Change.OPEN, ""
    if was.word == str(Outcome.BROKEN):
        return Change.NEWLY, ""
    return (Change.OPEN if was.word == str(Outcome.FAIL) else Change.NEW), ""


def _fresh(was: _State, now: _State) -> list[str]:
    """Return the tools, and the arguments of known tools, in which a finding is new."""
    found = []
    for tool, arguments in sorted(now.tools.items()):
        if tool not in was.tools:
            found.append(tool)
        elif was.tools[tool]:  # else the argument was not known
            found += [f"{tool}({name})" for name in sorted(arguments - was.tools[tool])]
    return found


def grouped(items: Iterable[ComparedFinding]) -> list[tuple[ComparedFinding, tuple[str, ...]]]:
    """Group equal changes of a rule in several revisions; return the newest and all of them."""
    groups: dict[tuple[str, ...], list[ComparedFinding]] = {}
    for item in items:
        groups.setdefault((item.rule, item.change, item.was, item.now), []).append(item)
    return [
        (group[-1], tuple(r for r in rev.ALL if r in {item.revision for item in group}))
        for group in groups.values()
    ]
