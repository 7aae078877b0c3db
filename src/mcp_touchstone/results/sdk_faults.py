"""Attribute each finding to the server or to its SDK. Runs nothing.

``sdk_faults.json`` has the findings of minimal servers on releases of SDKs, and
``client_sdk_faults.json`` those of minimal clients. A finding of a server is its SDK's if the
minimal server on that release has it too: the same clause and outcome, in the same revision and
scenario. Every other finding is the server's own. A server that is judged over HTTP also has the
faults that the minimal server has only there. The same holds for clients, over both transports.
"""

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from mcp_touchstone.catalog.clause import Clause, Transport
from mcp_touchstone.catalog.sdk import Package
from mcp_touchstone.results.run import Run, SdkFault, Verdict
from mcp_touchstone.results.verdict import Judgement, Outcome

TABLES: Final = {
    "server": Path(__file__).with_name("sdk_faults.json"),
    "client": Path(__file__).with_name("client_sdk_faults.json"),
}
"""The table of each side; ``scripts/sdk_table.py`` writes them."""

FINDINGS: Final = (Outcome.FAIL, Outcome.WARN)
"""The outcomes that the table has."""

LOGIN: Final = frozenset({"clients/authorization", "clients/registration", "clients/grants"})
"""The chapters on what a client does to get a token."""

SEARCH: Final = frozenset(
    f"client-auth-{rule}"
    for rule in ("metadata-url", "metadata-order", "server-metadata-order", "default-endpoints")
)
"""The rules on the search for metadata: code of a login breaks them, and no setting of its user.

A client that breaks one where the minimal client on its SDK keeps it has a login of its own, or
another part of it would be at fault in the SDK too. So nothing in ``LOGIN`` is the SDK's then.
"""


class KnownFinding(NamedTuple):
    """A finding of a minimal server: clause, scenario, revision, outcome."""

    clause: str
    scenario: str
    revision: str
    outcome: str


@dataclass(frozen=True, slots=True)
class Release:
    """A judged release of an SDK.

    Attributes:
        line: name of the series of releases; a successor may have another package name.
        revisions: the revisions it speaks.
        faults: the findings of the minimal server.
        chance: the clauses with a finding that depends on chance.
        answers: clause and scenario -> the kinds of answers in the findings; absent if unknown.
    """

    sdk: Package
    line: str
    revisions: frozenset[str]
    faults: frozenset[KnownFinding]
    chance: frozenset[str]
    answers: Mapping[tuple[str, str], frozenset[str]] = field(default_factory=dict)

    @property
    def order(self) -> tuple[int, ...]:
        """Its version, for comparisons."""
        return self.sdk.order


def kind_of_answer(text: str) -> str:
    """Return the kind of an answer: ``result``, ``isError`` or ``error CODE``.

    Args:
        text: a line of the server; one that is cut or no answer has no kind.
    """
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    if not isinstance(value, dict):
        return ""
    error, result = value.get("error"), value.get("result")
    if isinstance(error, dict):
        return f"error {error.get('code')}"
    if not isinstance(result, dict):
        return ""
    return "isError" if result.get("isError") is True else "result"


# --- the table


def read(
    document: Mapping[str, Any], renamed: Mapping[str, str], *, http: bool = False
) -> tuple[Release, ...]:
    """Read a table.

    Args:
        document: its JSON.
        renamed: ids merged since then -> the id they are part of now.
        http: whether to add what the minimal servers do over HTTP.
    """
    releases = []
    for row in document["releases"]:
        faults: set[KnownFinding] = set()
        answers: dict[tuple[str, str], frozenset[str]] = {}
        for part in (row, row.get("http", {}) if http else {}):
            faults |= {
                KnownFinding(renamed.get(clause, clause), scenario, revision, outcome)
                for clause, scenarios in part.get("faults", {}).items()
                for scenario, outcomes in scenarios.items()
                for outcome, revisions in outcomes.items()
                for revision in revisions
            }
            for clause, scenarios in part.get("answers", {}).items():
                for scenario, kinds in scenarios.items():
                    key = renamed.get(clause, clause), scenario
                    answers[key] = answers.get(key, frozenset()) | frozenset(kinds)
        releases.append(
            Release(
                Package(row["sdk"], row["version"], row["registry"]),
                row["line"],
                frozenset(row["revisions"]),
                frozenset(faults),
                frozenset(renamed.get(clause, clause) for clause in row["chance"]),
                answers,
            )
        )
    return tuple(releases)


@functools.cache
def releases(*, http: bool = False, side: str = "server") -> tuple[Release, ...]:
    """Return the judged releases, in the order of the table; see ``read``."""
    from mcp_touchstone.catalog.loader import (  # noqa: PLC0415  (if needed)
        CLIENTS,
        CONFORMANCE,
        renamed,
    )

    names = renamed(CLIENTS if side == "client" else CONFORMANCE)
    return read(json.loads(TABLES[side].read_text("utf-8")), names, http=http)


def judged(sdk: Package, table: Sequence[Release]) -> tuple[Release, ...]:
    """Return the releases whose common faults an SDK has: itself, or its neighbours.

    A version between two judged releases of its major version has the faults that both have. One
    that is newer than all of them has those of the newest. Others have none.
    A range such as ``^1.25.1`` has the faults that each judged release in it has. A neighbour that
    does not speak a revision says nothing about the faults there.
    """
    known = [one for one in table if (one.sdk.name, one.sdk.registry) == (sdk.name, sdk.registry)]
    wanted = sdk.order
    major = sorted((one for one in known if one.order[0] == wanted[0]), key=lambda one: one.order)
    same = [one for one in major if one.order == wanted]
    before = [one for one in major if one.order < wanted][-1:]
    after = [one for one in major if one.order > wanted][:1]
    if sdk.version.startswith("^"):
        return tuple([one for one in major if one.order >= wanted] or before)
    return tuple(same or (before and before + after))


# --- attributing


def attribute(run: Run, table: Sequence[Release] | None = None) -> Run:
    """Return a run whose findings say which of them are its SDK's.

    Args:
        table: the judged releases, in order; by default those of the package.
    """
    sdks, side = run.subject.sdk.sdks, run.subject.kind
    http = run.subject.transport is Transport.HTTP or side == "client"
    known = releases(http=http, side=side) if table is None else table
    layers = [(sdk, judged(sdk, known)) for sdk in sdks]
    is_unknown = not sdks and not run.subject.bundled
    found = [_attributed(one, layers, known, is_unknown=is_unknown) for one in run.verdicts]
    if any(map(functools.partial(_is_other_search, layers), found)):
        found = [replace(one, sdk=None) if one.clause.place in LOGIN else one for one in found]
    theirs = {one.clause.id for one in found if one.sdk is not None}
    # The run may have judged some revisions only, but the releases were judged in all of them.
    near = [release for _sdk, layer in layers for release in layer]
    places = [(fault.clause, fault.revision) for release in near for fault in release.faults]
    places += [(one.clause.id, one.revision) for one in found if one.sdk is not None]
    last = {clause: max(revision for one, revision in places if one == clause) for clause in theirs}
    newest = max(run.subject.revisions, default="")
    marked = (
        replace(one, sdk=replace(one.sdk, last=last[one.clause.id]))
        if one.sdk is not None and newest > last[one.clause.id]
        else one
        for one in found
    )
    return replace(run, verdicts=[*marked])


def is_of_sdk(sdks: Sequence[Package], clause: Clause, found: Judgement, *, http: bool) -> bool:
    """Return whether a finding of a run that goes on is the fault of one of its SDKs."""
    verdict = Verdict(clause, found.revision, found.outcome, found, [found])
    known = releases(http=http)
    layers = [(sdk, _speaking(found.revision, judged(sdk, known))) for sdk in sdks]
    return _layer(verdict, layers) is not None


def _attributed(
    verdict: Verdict,
    layers: Sequence[tuple[Package, tuple[Release, ...]]],
    known: Sequence[Release],
    *,
    is_unknown: bool,
) -> Verdict:
    """Return a verdict with the fault of the SDK that it is, or with SDKs that have it too."""
    if is_unknown and verdict.outcome in FINDINGS:
        names = [one.sdk.name for one in known if _has(one, verdict)]
        verdict = replace(verdict, alike=tuple(dict.fromkeys(names)))
    if verdict.gravest.outcome not in FINDINGS:
        return verdict
    there = [(sdk, _speaking(verdict.revision, near)) for sdk, near in layers]
    layer = _layer(verdict, there)
    if layer is None:
        return verdict
    fault = SdkFault(layer[0], _like(*layer), _fixed(verdict, there, known))
    return replace(verdict, sdk=fault)


def _is_other_search(layers: Sequence[tuple[Package, tuple[Release, ...]]], one: Verdict) -> bool:
    """Return whether a client breaks a rule on the search for metadata that its SDK keeps."""
    if one.clause.id not in SEARCH or one.gravest.outcome not in FINDINGS or one.sdk is not None:
        return False
    return any(_speaking(one.revision, near) for _sdk, near in layers)


_Layer = tuple[Package, tuple[Release, ...]]


def _speaking(revision: str, near: Iterable[Release]) -> tuple[Release, ...]:
    return tuple(one for one in near if revision in one.revisions)


def _layer(verdict: Verdict, layers: Iterable[_Layer]) -> _Layer | None:
    """Return the innermost SDK that has the findings of a verdict by itself."""
    found = [layer for layer in layers if layer[1] and all(_has(one, verdict) for one in layer[1])]
    return found[-1] if found else None


def _has(release: Release, verdict: Verdict) -> bool:
    """Return whether the minimal server has the finding, with the same kinds of answers.

    Of several judgements of a scenario, the first of the gravest counts: the table is made from
    reports, which show that one.
    """
    gravest = (j for j in reversed(verdict.judgements) if j.outcome is verdict.gravest.outcome)
    shown = {one.scenario: one for one in gravest}
    same = (
        _answers(one) <= release.answers.get((one.clause, one.scenario), _answers(one))
        for one in shown.values()
    )
    return _breaks(release, verdict) and all(same)


def _breaks(release: Release, verdict: Verdict) -> bool:
    """Return whether the minimal server breaks the clause there, whatever it answers."""
    gravest = verdict.gravest.outcome
    as_grave = FINDINGS[: FINDINGS.index(gravest) + 1] if gravest in FINDINGS else ()
    scenarios = {one.scenario for one in verdict.judgements if one.outcome is gravest}
    return bool(as_grave) and all(
        any(
            KnownFinding(verdict.clause.id, scenario, verdict.revision, str(outcome))
            in release.faults
            for outcome in as_grave
        )
        for scenario in scenarios
    )


def _answers(judgement: Judgement) -> frozenset[str]:
    lines = (kind_of_answer(line.text) for line in judgement.wire if line.guilty)
    return frozenset(filter(None, lines))


def _like(sdk: Package, known: Sequence[Release]) -> str:
    """Return the releases that represent an SDK whose version was not judged itself."""
    same = any(one.order == sdk.order for one in known)
    return "" if same else " and ".join(str(one.sdk) for one in known)


def _fixed(verdict: Verdict, layers: Sequence[_Layer], table: Sequence[Release]) -> str:
    """Return the first later release without the fault, of the outermost SDK that has it.

    A fault that depends on chance may be absent from a release by luck. It counts as fixed in a
    later major version of which no release has it.
    """
    for _, known in layers:
        if not known or not all(_has(one, verdict) for one in known):
            continue
        line = [one for one in table if one.line == known[-1].line]
        later = line[line.index(known[-1]) + 1 :]
        if verdict.sometimes or any(verdict.clause.id in one.chance for one in line):
            later = [one for one in later if one.order[0] > known[-1].order[0]]
        free = ""
        for release in reversed(later):
            if verdict.revision not in release.revisions or _breaks(release, verdict):
                break
            free = str(release.sdk)
        return free
    return ""
