"""Verdicts on both sides of recorded conversations, by the rules on all traffic."""

import contextlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Clause, Transport
from mcp_touchstone.catalog.errors import our_fault
from mcp_touchstone.catalog.loader import CLIENTS, load
from mcp_touchstone.catalog.scenario import Ambient, Registry
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.stages import fold
from mcp_touchstone.judging import ambient
from mcp_touchstone.judging.ambient import Record
from mcp_touchstone.parts.scenarios import find
from mcp_touchstone.results.run import CaseResult, Execution, PlannedCase, Run, unasked
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.tap.breaches import CLIENT, SERVER, SUITES, trouble_of
from mcp_touchstone.tap.recording import Recording
from mcp_touchstone.tap.replay import Replay, named_revision, replay
from mcp_touchstone.wire.events import Happened, Side


def judge(  # noqa: PLR0917  (two callers)
    recordings: Sequence[Recording],
    side: str,
    choice: Choice,
    again: Sequence[str] = (),
    trouble: str = "",
    command: Sequence[str] = (),
) -> Run:
    """Judge one side of recorded conversations.

    Args:
        recordings: the conversations, with one server or one client.
        side: SERVER or CLIENT.
        choice: what to judge, and what counts.
        again: words of the command that does this again.
        trouble: the reason that not all could be judged, if it is known already.
        command: the command of a client that we ran; empty for recordings of others.
    """
    registry = load(SUITES[side])
    replays = _replays(recordings)
    url = "" if command else next((one.url for one in recordings), "")
    command = command or next((one.command for one in recordings if one.command), [])
    trouble = trouble or trouble_of(recordings, replays)
    if side == CLIENT:
        talks = [one.source.scenario for one in replays if not one.source.probes]
        for one in replays:
            one.alone = talks.count(one.source.scenario) <= 1
        replays += _eras(replays)
    for one in replays:
        names = (one.source.scenario, one.named_in) if again[:1] == ("client",) else ()
        one.client.repeat_by(tuple(word for name in names if name for word in _played(name)))
    results: list[CaseResult] = []
    for revision, transport in itertools.product(rev.ALL, Transport):
        of = [r for r in replays if r.revision == revision and r.transport is transport]
        records = [one.server_record() if side == SERVER else one.client_record() for one in of]
        if records and (not choice.revisions or revision in choice.revisions):
            results += results_of(registry, choice, (revision, transport), records)
    return Run(
        _subject(replays, side, command=tuple(command), url=url, again=tuple(again)),
        results=results,
        verdicts=fold(results, registry, choice, partial=bool(trouble)),
        trouble=trouble,
        execution=Execution(
            processes=len(recordings),
            seconds=sum(one.rows[-1].at for one in recordings if one.rows),
            started=str(recordings[0].about.get("started", "")) if recordings else "",
        ),
        floor=choice.floor,
    )


def _replays(recordings: Sequence[Recording]) -> list[Replay]:
    """Read recordings of one client.

    One that only looked for a token named no revision. It speaks there what it named elsewhere: the
    newest revision of our server's era, or else of the other one.
    """
    named = [named_revision(one) for one in recordings]
    shown = {one: source.scenario for one, source in zip(named, recordings, strict=True) if one}
    found = []
    for source, revision in zip(recordings, named, strict=True):
        near = [one for one in shown if rev.is_modern(one) is rev.is_modern(source.offered)]
        other = max(near or shown, default="") if source.offered and not revision else ""
        found.append(replay(source, min(other, source.offered) if near else other))
        found[-1].named_in = shown.get(other, "")
    return found


def broken(recordings: Sequence[Recording], choice: Choice) -> dict[str, set[str]]:
    """Return the rules on clients that the recordings of each scenario break, as they count."""
    registry, found = load(CLIENTS), dict[str, set[str]]()
    replays = _replays(recordings)
    for one in (*replays, *_eras(replays)):
        record = one.client_record()
        for case, clauses in _rules(registry, choice, one.revision, one.transport):
            with contextlib.suppress(Exception):  # the verdict of the rule says so
                names = {clause for clause, _line in ambient.breaches(case, record, clauses)}
                found.setdefault(one.source.scenario, set()).update(names)
    return found


def _played(name: str) -> tuple[str, ...]:
    """Return the options that play a scenario; one of a draft must be selected."""
    draft = find(name).draft
    return ("--scenario", name, *(("--select", draft, "--select", CLIENTS) if draft else ()))


def _eras(replays: Sequence[Replay]) -> list[Replay]:
    """Return what clients said before they fell back to initialize, as conversations.

    Each conversation of 2026-07-28 gets an event if the client fell back, there or elsewhere. It
    may ask one process for its eras and talk to another.
    """
    again = (one.source.fallback for one in replays)
    parts = [replay(one, rev.LATEST_MODERN) for one in again if one]
    modern = [r for r in replays if rev.is_modern(r.revision)]
    legacy = [r for r in replays if r.opening.asked and not rev.is_modern(r.revision)]
    named, apart = ({r.source.scenario for r in of} for of in (modern, legacy))
    both = (named & apart) - {""}
    asked = {r.source.scenario for r in modern if _probes_first(r)}
    for one in modern if parts or both else ():
        name = one.source.scenario
        if _probes_first(one) or name not in asked:  # else it asked in another process before
            one.client.happened(Happened.FELL_BACK if name in both else Happened.FALLS_BACK)
    return parts


def _probes_first(one: Replay) -> bool:
    """Whether a client began with the question for the eras."""
    return [asked.method for asked in one.server.session.asked[:1]] == ["server/discover"]


def results_of(
    registry: Registry,
    choice: Choice,
    where: tuple[str, Transport],
    records: Sequence[Record],
) -> Iterator[CaseResult]:
    """Yield what the rules of a suite find in records of one revision and transport."""
    revision, transport = where
    for case, clauses in _rules(registry, choice, revision, transport):
        planned = PlannedCase(case, revision, clauses)
        try:
            judged = ambient.judge(case, records, clauses)
        except Exception as error:  # noqa: BLE001  (a fault of a rule must not lose the others)
            judged = [unasked(planned, clause, our_fault(error)) for clause in clauses]
        # What nobody did in front of us is not judged; only a check can provoke it.
        unseen = (one.outcome is Outcome.BROKEN and not one.count for one in judged)
        judgements = (
            replace(
                one,
                outcome=Outcome.UNSEEN if nothing else one.outcome,
                replay=() if one.replay[:1] == ("--select",) else one.replay,
            )
            for one, nothing in zip(judged, unseen, strict=True)
        )
        yield CaseResult(planned, tuple(judgements))


def _rules(
    registry: Registry, choice: Choice, revision: str, transport: Transport
) -> Iterator[tuple[Ambient, tuple[Clause, ...]]]:
    """Yield the selected rules with their clauses that apply."""
    for case in filter(choice.selects, registry.ambients):
        clauses = tuple(
            clause
            for clause in case.clauses
            if revision in clause.revisions
            and transport in clause.transports
            and choice.takes(case, clause)
        )
        if clauses:
            yield case, clauses


def _subject(replays: Iterable[Replay], side: str, **known: Any) -> Subject:
    """Return what reports say of the judged side: its name, the revisions, its last words."""
    reported, stderr = dict[str, Mapping[str, Any]](), ""
    for one in replays:
        if one.revision:
            reported[one.revision] = one.client_info if side == CLIENT else one.server_info
        else:
            stderr = "\n".join(row.text for row in one.source.rows if row.side is Side.STDERR)
    return Subject(kind=side, reported=reported, stderr=stderr, **known)
