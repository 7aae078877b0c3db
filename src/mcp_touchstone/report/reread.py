"""A finished run from its JSON report, so that other reports can be made of it later."""

from pathlib import Path
from typing import Any, Final

from mcp_touchstone.advisories import table
from mcp_touchstone.advisories.known import KnownAdvisory, State
from mcp_touchstone.catalog.clause import Catalogue, CatalogueError, Clause
from mcp_touchstone.catalog.loader import BOTH, renamed, rows
from mcp_touchstone.catalog.sdk import Package, SdkIdentity
from mcp_touchstone.catalog.threat import Severity
from mcp_touchstone.report import clients
from mcp_touchstone.report.machine import SIDES
from mcp_touchstone.report.recorded import ReportError, load
from mcp_touchstone.results.abilities import Ability
from mcp_touchstone.results.comparison import Change, ComparedFinding, Comparison
from mcp_touchstone.results.lock import Locked
from mcp_touchstone.results.played import PlayedScenario
from mcp_touchstone.results.run import Absent, Execution, Run, SdkFault, Settlement, Stale, Verdict
from mcp_touchstone.results.subject import CHECK, Subject
from mcp_touchstone.results.threshold import Floor
from mcp_touchstone.results.tool_use import ToolUse
from mcp_touchstone.results.verdict import AffectedTool, Judgement, Outcome, WireLine, worst

_ARROWS: Final = {side: arrow for arrow, side in SIDES.items()}

Json = dict[str, Any]


def read(path: Path) -> Run:
    """Read the run of a report that ``check --json`` wrote.

    The conversations and the scenarios of the run are not in a report, so its ``connections`` and
    ``results`` are empty.

    Raises:
        ReportError: it is no such report, or has a rule that this version does not have.
    """
    document = load(path)
    if "conclusion" not in document["summary"]:
        raise ReportError(f"{path}: an older version wrote it; run `check --json` again")
    try:
        return _run(document)
    except CatalogueError as error:
        raise ReportError(f"{path}: {error}; another version wrote it") from error
    except (LookupError, TypeError, ValueError) as error:
        raise ReportError(
            f"{path}: it is not as `check --json` writes it ({error}); run that again"
        ) from error


def _run(document: Json) -> Run:
    catalogue, names = rows(BOTH), renamed()
    summary = document["summary"]
    verdicts = [_verdict(one, catalogue, names) for one in document["verdicts"]]
    settled, since = document.get("baseline"), document.get("since")
    return Run(
        _subject(document),
        absent=[
            Absent(row["clause"], row["revision"], row["why"], row.get("by_choice", False))
            for row in document["not_applicable"]
        ],
        verdicts=verdicts,
        trouble=summary["trouble"],
        execution=Execution(
            interrupted=summary["interrupted"],
            quick=summary.get("quick", ""),
            processes=summary["processes"],
            strays=summary["strays"],
            notes=tuple(summary.get("notes", ())),
            seconds=summary["seconds"],
            started=summary.get("started", ""),
        ),
        floor=Floor.read(document["gate"]["fail_on"]),
        settled=None if settled is None else _settlement(settled),
        since=None if since is None else _comparison(since, summary["trouble"]),
        unbound=summary.get("unbound", ""),
        unattacked=summary.get("unattacked", False),
        tools=ToolUse.read(document.get("tools", {})),
        advisories=tuple(_advisory(one) for one in document.get("advisories", ())),
        clients=clients.read(document.get("clients")),
        scenarios=tuple(map(PlayedScenario.read, document.get("scenarios", ()))),
        abilities=tuple(map(Ability.read, document.get("installation", {}).get("abilities", ()))),
        locked=Locked.read(document["lock"]) if "lock" in document else None,
        selected=document.get("installation", {}).get("selected", False),
        scenarios_count=bool(document["gate"].get("scenarios")),
    )


def _subject(document: Json) -> Subject:
    target, summary = document["target"], document["summary"]
    again = tuple(target["again"])
    return Subject(
        kind=target.get("judged", "server"),
        reported={r: target["server"].get(r, {}) for r in document["revisions"]["spoken"]},
        refused=document["revisions"]["refused"],
        silent=document["revisions"].get("silent", False),
        command=tuple(target["command"]),
        url=target.get("url", ""),
        bundled=target["bundled"],
        sandbox=target.get("sandbox", ""),
        sdk=SdkIdentity(
            tuple(Package(**one) for one in target["sdk"]),
            target.get("sdk_hint", ""),
            packages=tuple(Package(**one) for one in target.get("packages", ())),
        ),
        startup=summary["startup_seconds"],
        unbound=tuple(summary.get("unbound_tools", ())),
        again=again if "judged" in target else (CHECK, *again),
    )


def _verdict(one: Json, catalogue: Catalogue, names: dict[str, str]) -> Verdict:
    name: str = one["clause"]
    clause = catalogue[names.get(name, name)]
    judgements = [_judgement(row, clause, one["revision"]) for row in one["judgements"]]
    sdk = one.get("sdk")
    return Verdict(
        clause,
        one["revision"],
        Outcome(one["outcome"]),
        worst(judgements),
        judgements,
        known=one.get("known", ""),
        sdk=None if sdk is None else _fault(sdk),
        alike=tuple(one.get("alike", ())),
    )


def _advisory(row: Json) -> KnownAdvisory:
    return KnownAdvisory(
        table.by_name()[row["id"]],
        Package(**row["package"]),
        State(row["state"]),
        tuple(row.get("rules", ())),
        row.get("why", ""),
    )


def _fault(row: Json) -> SdkFault:
    sdk = Package(row["name"], row["version"], row["registry"])
    return SdkFault(sdk, row.get("like", ""), row.get("fixed", ""), row.get("last", ""))


def _judgement(row: Json, clause: Clause, revision: str) -> Judgement:
    return Judgement(
        clause=clause.id,
        revision=revision,
        outcome=Outcome(row["outcome"]),
        scenario=row["scenario"],
        expected=row["expected"],
        actual=row["actual"],
        wire=tuple(
            WireLine(
                line["line"],
                _ARROWS[line["from"]],
                line["text"],
                line["guilty"],
                line.get("http", ""),
            )
            for line in row["wire"]
        ),
        count=row["count"],
        source=row["source"],
        process=row["process"],
        reproduction=row.get("reproduction", ""),
        replay=tuple(row.get("replay", ())),
        because=row.get("because", ""),
        origin=row.get("origin", ""),
        raced=row.get("raced", False),
        severity=Severity(row["severity"]) if "severity" in row else None,
        tried=row.get("tried", 1),
        found=row.get("found", 1),
        tools=tuple(
            AffectedTool(name, count, tuple(row.get("arguments", {}).get(name, {}).items()))
            for name, count in row.get("tools", {}).items()
        ),
    )


def _settlement(row: Json) -> Settlement:
    stale = [
        Stale(one["rule"], tuple(one["revisions"]), one["reason"], one["why"])
        for one in row["stale"]
    ]
    return Settlement(row["file"], row["entries"], stale)


def _comparison(row: Json, trouble: str) -> Comparison:
    items = tuple(
        ComparedFinding(**{**item, "change": Change(item["change"])}) for item in row["items"]
    )
    return Comparison(row["old"], items, ("", ""), same=True, trouble=trouble)
