"""Group the verdicts of a run by clause, finding and chapter, as reports show them."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from mcp_touchstone.catalog.attack_level import Tier, option
from mcp_touchstone.catalog.clause import Level
from mcp_touchstone.catalog.errors import OTHER_FOLDER, seems_refused
from mcp_touchstone.catalog.threat import Severity, Threat
from mcp_touchstone.report.finding import Finding
from mcp_touchstone.report.text import plural
from mcp_touchstone.results import advisories
from mcp_touchstone.results.run import Run, Verdict
from mcp_touchstone.results.verdict import Outcome

NOT_CACHED: Final = ("network was disabled", "ENOTCACHED")
"""What uv and npm print if a package is not in their cache and there is no network."""


@dataclass(frozen=True, slots=True)
class ChapterCount:
    """The tally of the clauses of a chapter."""

    name: str
    counts: dict[str, int]

    @property
    def troubled(self) -> bool:
        """Whether it counts a failure, a warning, or what could not be checked."""
        return any(self.counts[one] for one in (Outcome.FAIL, Outcome.WARN, Outcome.BROKEN))


def findings(
    run: Run, *outcomes: Outcome, known: bool = False, of_sdk: bool = False
) -> list[Finding]:
    """Group verdicts into findings, the most severe first; revisions of one finding are joined.

    Args:
        known: whether to list the failures the baseline accepts, or the others.
        of_sdk: whether to list those of the SDK that do not count, or the others.
    """
    groups: dict[tuple[str, ...], list[Verdict]] = {}
    for verdict in run.of(*outcomes):
        if bool(verdict.known) is not known or run.is_of_sdk(verdict) is not of_sdk:
            continue
        judgement = verdict.gravest
        kind = (verdict.clause.id, verdict.outcome, verdict.known, str(bool(verdict.sdk)))
        key = (*kind, judgement.scenario, judgement.expected)
        groups.setdefault(key, []).append(verdict)
    found = [
        Finding.of(group, advisories.shown(run.subject, group[-1].clause.id))
        for group in groups.values()
    ]
    return sorted(found, key=severity)


def severity(finding: Finding) -> tuple[int, int]:
    """Order findings: by outcome, then by the severity or level of their rule."""
    clause = finding.clause
    levels = tuple(Severity) if isinstance(clause, Threat) else tuple(Level)
    grade = clause.severity if isinstance(clause, Threat) else clause.level
    return finding.outcome.rank, levels.index(grade)


def by_clause(verdicts: Iterable[Verdict]) -> dict[str, Outcome]:
    """Return the worst outcome of each clause over its revisions."""
    outcomes: dict[str, Outcome] = {}
    for verdict in verdicts:
        known = outcomes.get(verdict.clause.id)
        if known is None or verdict.outcome.rank < known.rank:
            outcomes[verdict.clause.id] = verdict.outcome
    return outcomes


def excused(run: Run) -> Counter[Outcome]:
    """Count, for each outcome, the clauses whose worst findings the baseline accepts."""
    return _counted(run, lambda gravest: all(verdict.known for verdict in gravest))


def _counted(run: Run, holds: Callable[[list[Verdict]], bool]) -> Counter[Outcome]:
    """Count, for each outcome, the clauses of whose worst verdicts a condition is true."""
    return Counter(
        outcome
        for clause, outcome in by_clause(run.verdicts).items()
        if holds([verdict for verdict in run.of(outcome) if verdict.clause.id == clause])
    )


def of_sdks(run: Run, *outcomes: Outcome) -> dict[str, int]:
    """Count, for each SDK, the clauses with findings of the SDK that do not count."""
    counts: dict[str, set[str]] = {}
    for verdict in run.of(*outcomes):
        if verdict.sdk is not None and run.is_of_sdk(verdict):
            counts.setdefault(str(verdict.sdk.sdk), set()).add(verdict.clause.id)
    return {sdk: len(clauses) for sdk, clauses in counts.items()}


def sdk_failures(run: Run) -> str:
    """Return the failures of SDKs that do not count: ``1 failure of mcp 1.30.0``, or nothing."""
    counts = of_sdks(run, Outcome.FAIL)
    return " and ".join(f"{plural(n, 'failure')} of {sdk}" for sdk, n in counts.items())


def not_own(run: Run) -> Counter[Outcome]:
    """Count, for each outcome, the clauses whose worst findings are the SDK's and do not count."""

    def theirs(gravest: list[Verdict]) -> bool:
        return any(map(run.is_of_sdk, gravest)) and all(
            run.is_of_sdk(v) or v.known for v in gravest
        )

    return _counted(run, theirs)


def tally(run: Run) -> dict[str, int]:
    """Count clauses by worst outcome, as each report shows them.

    ``known`` are those whose worst findings the baseline accepts, ``sdk`` those whose worst
    findings are the SDK's and do not count. They are in no other number.
    """
    known, theirs = excused(run), not_own(run)
    outcomes = Counter(by_clause(run.verdicts).values())
    counts = {str(o): outcomes[o] - known[o] - theirs[o] for o in Outcome}
    return {**counts, "known": sum(known.values()), "sdk": sum(theirs.values())}


def counts_text(counts: Mapping[str, int], words: Mapping[Outcome, str]) -> str:
    """Return a tally as text: ``1 FAIL, 2 warn, 40 pass, 1 known, 5 in the SDK``."""
    names = {**{str(outcome): word for outcome, word in words.items()}, **_APART}
    shown = [f"{n} {names[key]}" for key, n in counts.items() if n]
    return ", ".join(shown)


_APART: Final = {"known": "known", "sdk": "in the SDK"}


def chapters(run: Run) -> list[ChapterCount]:
    """Count the clauses of each chapter, as the tally of the run does."""
    places: dict[str, list[Verdict]] = {}
    for verdict in run.verdicts:
        places.setdefault(verdict.clause.place, []).append(verdict)
    return [
        ChapterCount(name, tally(replace(run, verdicts=verdicts)))
        for name, verdicts in sorted(places.items())
    ]


def noun(run: Run) -> str:
    """Return the noun for the checked rules: clause, threat, or rule for both."""
    judged = [one.planned.case.clauses[0] for one in run.results] or [
        v.clause for v in run.verdicts
    ]
    kinds = {isinstance(clause, Threat) for clause in judged} or {False}
    return "rule" if len(kinds) > 1 else "threat" if True in kinds else "clause"


def starts(run: Run) -> str:
    """Return the number of processes, or of connections to a server that ran already."""
    if run.subject.kind == "client":
        return plural(run.execution.processes, "conversation")
    ran = run.subject.url and not run.subject.started
    return plural(run.execution.processes, "connection" if ran else "process")


def again(run: Run, finding: Finding) -> str:
    """Return the command that checks a finding again, by the scenario that showed it only.

    It is empty for a client in the process of its test, which no command of ours starts.
    """
    if not run.subject.again:
        return ""
    command, *rest = run.subject.again
    if not run.subject.checked:
        replay = finding.judgement.replay
        if run.subject.kind == "gateway":
            replay = ("--select", finding.clause.id, "--revision", finding.judgement.revision)
        return shlex.join(["mcp-touchstone", command, *replay, *rest])
    words = ["mcp-touchstone", "check", "-v"]
    name = finding.clause.id
    if isinstance(finding.clause, Threat):
        words += ["--suite", "security"]
        tier = finding.clause.tier
        words += option(tier).split() if tier is not Tier.CORE else []
    elif finding.among:
        name = finding.judgement.scenario
    words += ["--select", name, *finding.judgement.replay]
    words += ["--revision", finding.judgement.revision]
    if finding.sdk is not None:
        words += ["--fail-on", "sdk"]
    return shlex.join([*words, *rest])


def hint(run: Run) -> list[str]:
    """Return a line with the next step if the server could not be checked; else nothing."""
    subject = run.subject
    program = subject.command[0] if subject.command else ""
    if program.startswith("python") and "ModuleNotFoundError" in subject.stderr:
        return [
            f"hint: `{program}` is the first on PATH; {{python}} is the interpreter of this run"
        ]
    if subject.sandbox and "Read-only file system" in subject.stderr:
        if subject.sandbox == "bwrap" and "cache" in subject.stderr:
            return ["hint: caches are read-only in bubblewrap before 0.11; use --sandbox unshare"]
        return ["hint: in the sandbox it can write below {root} only; --cwd {root} starts it there"]
    if subject.sandbox and any(word in subject.stderr for word in NOT_CACHED):
        return ["hint: there is no network: run it once without the sandbox, to fill its cache"]
    if subject.rooted and not subject.revisions and seems_refused(subject.stderr):
        return [f"hint: {OTHER_FOLDER}"]
    return []
