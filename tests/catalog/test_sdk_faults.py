"""Faults of an SDK are reported apart, and fail the gate only if the user wants it."""

import importlib.metadata
import importlib.util
import json
import os
import re
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from syrupy.assertion import SnapshotAssertion

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.loader import BOTH, CLIENTS, CONFORMANCE, load, rows
from mcp_touchstone.catalog.sdk import Package, SdkIdentity, version
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.fleet.entry import ListedServer, RegistryType
from mcp_touchstone.fleet.judge import _fill as fill
from mcp_touchstone.gate.baseline import HEADING, read
from mcp_touchstone.gate.settlement import UNEXPLAINED, renew, settle
from mcp_touchstone.report import badge, html, items, junit, machine, markdown, sarif, standing
from mcp_touchstone.report.digest import chapters, findings
from mcp_touchstone.report.sections import in_full, in_short
from mcp_touchstone.results import sdk_faults
from mcp_touchstone.results.comparison import compare
from mcp_touchstone.results.run import Run, Verdict
from mcp_touchstone.results.sdk_faults import TABLES, attribute, judged
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.results.threshold import Floor
from mcp_touchstone.results.verdict import Judgement, Outcome, WireLine
from mcp_touchstone.runtime.members import Members
from tests.cases import cases
from tests.conftest import HERE
from tests.fleets import row_of
from tests.goldens import scrubbed
from tests.runs import Found, run_of

NO_REMEDY = "nothing on your side; mcp has to fix it"
BATCH, PING, TOOL = "jsonrpc-batch-receive", "ping-empty-response", "tools-unknown-tool-error"
OLD, MID, NEW = "2024-11-05", "2025-03-26", "2025-11-25"


def row(
    name: str, number: str, *faults: str, line: str = "python", chance: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Return a row of the table; a fault is ``CLAUSE SCENARIO OUTCOME REVISION``."""
    found: dict[str, Any] = {}
    for clause, scenario, outcome, revision in map(str.split, faults):
        found.setdefault(clause, {}).setdefault(scenario, {}).setdefault(outcome, []).append(
            revision
        )
    return {
        "line": line,
        "sdk": name,
        "registry": "pypi",
        "version": number,
        "revisions": list(rev.ALL),
        "chance": list(chance),
        "faults": found,
    }


ROWS = [
    row("mcp", "1.10.0", f"{BATCH} s fail {MID}", f"{TOOL} s warn {NEW}", f"{PING} s fail {NEW}"),
    row("mcp", "1.20.0", f"{BATCH} s fail {MID}", f"{TOOL} s warn {NEW}"),
    row("mcp", "2.0.0", f"{TOOL} s warn {NEW}"),
    row("mcp", "2.1.0"),
    row("fastmcp", "3.0.0", f"{BATCH} s fail {MID}", f"{PING} t fail {NEW}", line="fastmcp"),
    row("fastmcp", "4.0.0", line="fastmcp"),
]
RELEASES = sdk_faults.read({"releases": ROWS}, {})


def run(
    found: Found,
    *sdks: str,
    scenario: str = "s",
    words: tuple[str, ...] = (),
    spoken: tuple[str, ...] = (OLD, MID, NEW),
    table: tuple[sdk_faults.Release, ...] = RELEASES,
) -> Run:
    """Return a run with these outcomes of a server on these SDKs, attributed."""
    named = [one.split("==") for one in sdks]
    subject = Subject(
        command=("./server",),
        reported={each: {"name": "notes"} for each in spoken},
        sdk=SdkIdentity(tuple(Package(name, number, "pypi") for name, number in named)),
        again=("check", "--", "./server"),
    )
    judgement = {"scenario": scenario, "actual": "nothing"}
    made = run_of(found, judgement, subject, floor=Floor.read(words))
    return attribute(made, table)


FAILING: Found = {
    (BATCH, MID): Outcome.FAIL,
    (PING, MID): Outcome.PASS,
    (TOOL, NEW): Outcome.WARN,
}


def owners(made: Run) -> list[str]:
    return [str(v.sdk.sdk) if v.sdk else "own" for v in made.verdicts]


def remedy(made: Run) -> str:
    fault = made.verdicts[0].sdk
    assert fault is not None
    return fault.remedy


BATCHES: Found = {(BATCH, MID): Outcome.FAIL}
PINGS_TOO: Found = {**BATCHES, (PING, NEW): Outcome.FAIL}
SDK = "mcp==1.20.0"


@cases(
    (FAILING, [SDK], ["mcp 1.20.0", "own", "mcp 1.20.0"]),
    ({(TOOL, NEW): Outcome.FAIL}, [SDK], ["own"]),
    ({(BATCH, MID): Outcome.WARN}, [SDK], ["mcp 1.20.0"]),
    (PINGS_TOO, ["mcp==1.15.0"], ["mcp 1.15.0", "own"]),
    (BATCHES, ["fastmcp==3.0.0", SDK], ["mcp 1.20.0"]),
    (BATCHES, ["fastmcp==3.0.0", "mcp==2.0.0"], ["fastmcp 3.0.0"]),
    (PINGS_TOO, ["mcp==^1.10.0"], ["mcp ^1.10.0", "own"]),
    (PINGS_TOO, ["mcp==^1.15.0"], ["mcp ^1.15.0", "own"]),
    (PINGS_TOO, ["mcp==^1.9.0"], ["mcp ^1.9.0", "own"]),
    ({(TOOL, NEW): Outcome.WARN}, ["mcp==^1.21.0"], ["mcp ^1.21.0"]),
    ids=[
        *("what the minimal server does", "graver than that", "less grave than that"),
        *("between two versions: what both do", "the innermost SDK", "only the outer SDK"),
        *("a range", "a range between two", "a range from an older one", "a range of a newer one"),
    ],
)
def test_a_finding_of_the_minimal_server_is_the_sdks(
    found: Found, sdks: list[str], whose: list[str]
) -> None:
    assert owners(run(found, *sdks)) == whose


@cases(
    ("mcp==1.20.0", "other", MID, Outcome.FAIL),
    ("mcp==1.20.0", "s", NEW, Outcome.FAIL),
    ("mcp==1.20.0", "s", MID, Outcome.BROKEN),
    ("mcp==1.20.0", "s", MID, Outcome.NOTE),
    ("mcp==2.0.0", "s", MID, Outcome.FAIL),
    ("mcp==1.9.4", "s", MID, Outcome.FAIL),
    ("mcp==3.0.0", "s", MID, Outcome.FAIL),
    ("other==1.20.0", "s", MID, Outcome.FAIL),
    ids=["scenario", "revision", "broken", "note", "major", "older", "newer-major", "sdk"],
)
def test_everything_else_is_the_servers_own(
    sdk: str, scenario: str, revision: str, outcome: Outcome
) -> None:
    assert owners(run({(BATCH, revision): outcome}, sdk, scenario=scenario)) == ["own"]


def test_a_clause_with_a_further_failing_scenario_is_the_servers_own() -> None:
    made = run({}, "mcp==1.20.0")
    both = [
        Judgement(clause=BATCH, revision=MID, outcome=Outcome.FAIL, scenario=name)
        for name in ("s", "mine")
    ]
    verdict = Verdict(load().catalogue[BATCH], MID, Outcome.FAIL, both[0], both)
    made = attribute(replace(made, verdicts=[verdict]), RELEASES)

    assert owners(made) == ["own"]


@cases(
    ("1.20.0", ["1.20.0"]),
    ("1.15.2", ["1.10.0", "1.20.0"]),
    ("1.21.0", ["1.20.0"]),
    ("1.20.0rc1", ["1.10.0", "1.20.0"]),
    ("1.9.4", []),
    ("3.0.0", []),
)
def test_a_version_that_was_not_judged_has_the_faults_of_its_neighbours(
    number: str, stand_in: list[str]
) -> None:
    found = judged(Package("mcp", number, "pypi"), RELEASES)

    assert [one.sdk.version for one in found] == stand_in


def test_versions_are_ordered() -> None:
    order = ["1.9.4", "1.10.0a1", "1.10.0", "1.10.0.post1", "2.0.0-beta.5", "2.0.0", "10.0"]

    assert list(map(version, order)) == sorted(map(version, order))
    assert version("1.10.0a1") < version("1.10.0") < version("1.10.1")
    assert version("1.30") == version("1.30.0")


def test_the_remedy_names_the_release_that_fixed_it_and_newer_revisions() -> None:
    assert remedy(run(BATCHES, SDK)) == (
        f"use mcp 2.0.0, where it is fixed, or offer only revisions newer than {MID}"
    )
    assert remedy(run(BATCHES, SDK, spoken=(MID,))) == "use mcp 2.0.0, where it is fixed"


def test_the_remedy_counts_faults_in_revisions_that_were_not_judged() -> None:
    faults = (f"{BATCH} s fail {MID}", f"{BATCH} t warn {NEW}")
    table = sdk_faults.read({"releases": [row("mcp", "1.20.0", *faults)]}, {})

    assert remedy(run(BATCHES, SDK, table=table)) == NO_REMEDY


def test_the_remedy_is_a_release_of_the_sdk_that_the_server_imports() -> None:
    made = run({(BATCH, MID): Outcome.FAIL}, "fastmcp==3.0.0", "mcp==1.20.0", spoken=(MID,))

    assert remedy(made) == "use fastmcp 4.0.0, where it is fixed"


def test_without_a_remedy_the_report_says_who_has_to_act() -> None:
    made = run(BATCHES, "mcp==1.22.0", spoken=(MID,), table=RELEASES[:2])

    fault = made.verdicts[0].sdk
    assert fault is not None
    assert fault.remedy == NO_REMEDY
    assert fault.proof == "mcp 1.22.0: a minimal program on mcp 1.20.0 does this too"


@cases(
    ((), ""),
    (("1.30.0",), ""),
    (("1.30.0", "2.0.0"), "mcp 2.0.0"),
    (("1.30.0", "2.0.0", "2.1.0!"), ""),
)
def test_a_fault_that_depends_on_chance_is_fixed_by_a_later_major_version_only(
    later: tuple[str, ...], fixed: str
) -> None:
    fault = f"{BATCH} s fail {MID}"
    rows = [row("mcp", "1.20.0", fault, chance=(BATCH,))]
    rows += [row("mcp", one.strip("!"), *([fault] if "!" in one else [])) for one in later]
    made = run(BATCHES, SDK, spoken=(MID,), table=sdk_faults.read({"releases": rows}, {}))

    found = made.verdicts[0].sdk
    assert found is not None
    assert found.fixed == fixed


def test_faults_over_http_count_over_http_only() -> None:
    fault = row("mcp", "1.20.0", f"{PING} s fail {NEW}")["faults"]
    table = {"releases": [{**ROWS[1], "http": {"faults": fault, "answers": {}}}]}

    def breaks(*, http: bool) -> set[str]:
        (release,) = sdk_faults.read(table, {}, http=http)
        return {one.clause for one in release.faults}

    assert breaks(http=False) == {BATCH, TOOL}
    assert breaks(http=True) == {BATCH, TOOL, PING}


@pytest.mark.parametrize("url", ["", "http://127.0.0.1:{port}/mcp"])
def test_the_table_of_a_run_is_that_of_its_transport(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def releases(*, http: bool, side: str) -> tuple[sdk_faults.Release, ...]:
        asked.append((http, side))
        return ()

    monkeypatch.setattr(sdk_faults, "releases", releases)
    attribute(Run(Subject(command=("./server",), url=url)))

    assert asked == [(bool(url), "server")]


@cases(((), 0), (("should",), 0), (("sdk",), 1), (("should", "sdk"), 1), (("never",), 0))
def test_a_fault_of_the_sdk_fails_the_gate_only_if_it_is_wanted(
    words: tuple[str, ...], status: int
) -> None:
    assert run(FAILING, "mcp==1.20.0", words=words).exit_code == status
    assert Floor.read(words).words == words


def test_a_fault_of_the_server_fails_the_gate_beside_one_of_the_sdk(
    golden: SnapshotAssertion,
) -> None:
    both = run({**FAILING, (PING, NEW): Outcome.FAIL}, "mcp==1.20.0")

    assert both.exit_code == 1
    assert scrubbed("{0}{2}".format(*standing.closing(both))) == golden(name="failed")
    assert scrubbed(in_short(both)) == golden(name="screen")
    assert [finding.clause.id for finding in findings(both, Outcome.FAIL)] == [PING]
    passed = standing.closing(run(FAILING, "mcp==1.20.0"))
    assert scrubbed("{0}{2}".format(*passed)) == golden(name="passed")


def test_a_fault_of_the_sdk_needs_no_entry_in_the_baseline() -> None:
    made = run(FAILING, "mcp==1.20.0")
    renewal = renew(read(HEADING, "b.toml"), made, load(), Choice(), load().catalogue)
    made = settle(renewal.baseline, made, load(), Choice())

    assert renewal.added == ()
    assert made.exit_code == 0


def test_an_entry_that_accepts_a_fault_of_the_sdk_is_kept_and_not_stale() -> None:
    made = run({(BATCH, MID): Outcome.FAIL}, "mcp==1.20.0")
    book = read(f'[[known]]\nclause = "{BATCH}"\nreason = "so it is"\n', "b.toml")
    renewal = renew(book, made, load(), Choice(), load().catalogue)
    made = settle(renewal.baseline, made, load(), Choice())

    assert renewal.removed == ()
    assert made.verdicts[0].known == "so it is"
    assert (made.stale, made.exit_code) == ([], 0)


def test_the_baseline_accepts_faults_of_the_sdk_if_they_count() -> None:
    made = run({(BATCH, MID): Outcome.FAIL}, "mcp==1.20.0", words=("sdk",))
    renewal = renew(read(HEADING, "b.toml"), made, load(), Choice(), load().catalogue)

    assert [str(entry) for entry in renewal.added] == [f"{BATCH} (all revisions)"]
    assert renewal.added[0].reason.startswith(UNEXPLAINED)


@pytest.mark.parametrize(("words", "status"), [((), 0), (("sdk",), 1)])
def test_a_new_fault_of_the_sdk_makes_a_run_worse_only_if_it_counts(
    words: tuple[str, ...], status: int
) -> None:
    old = machine.document(run({(BATCH, MID): Outcome.PASS}, "mcp==2.0.0"))
    new = machine.document(run({(BATCH, MID): Outcome.FAIL}, "mcp==1.20.0"))

    assert compare(old, new, name="old", floor=Floor.read(words)).exit_code == status


LINES = {
    "result": '{"id": 1, "result": {"content": []}}',
    "isError": '{"id": 1, "result": {"content": [], "isError": true}}',
    "error -32602": '{"id": 1, "error": {"code": -32602, "message": "no"}}',
    "": '{"id": 1, "result": {"content": …',
}


@pytest.mark.parametrize(("kind", "line"), LINES.items(), ids=["result", "tool", "error", "cut"])
def test_an_answer_of_another_kind_is_the_servers_own(kind: str, line: str) -> None:
    answers = {TOOL: {"s": ["isError"]}}
    table = sdk_faults.read({"releases": [{**ROWS[1], "answers": answers}, *ROWS[2:]]}, {})
    made = run({(TOOL, NEW): Outcome.WARN}, "mcp==1.20.0")
    (verdict,) = made.verdicts
    wire = (WireLine(1, "→", LINES["result"]), WireLine(2, "←", line, guilty=True))
    one = replace(verdict.gravest, wire=wire)
    verdict = replace(verdict, gravest=one, judgements=[one], sdk=None)
    made = attribute(replace(made, verdicts=[verdict]), table)

    assert sdk_faults.kind_of_answer(line) == kind
    assert owners(made) == ["mcp 1.20.0" if kind in {"isError", ""} else "own"]


def test_the_judgement_that_a_report_shows_is_compared() -> None:
    answers = {TOOL: {"s": ["isError"]}}
    table = sdk_faults.read({"releases": [{**ROWS[1], "answers": answers}, *ROWS[2:]]}, {})
    made = run({(TOOL, NEW): Outcome.WARN}, "mcp==1.20.0")
    (verdict,) = made.verdicts
    shown, further = (
        replace(verdict.gravest, wire=(WireLine(1, "←", LINES[kind], guilty=True),))
        for kind in ("isError", "result")
    )

    found = []
    for judgements in ([shown, further], [further, shown]):
        one = replace(verdict, gravest=judgements[0], judgements=judgements, sdk=None)
        found += owners(attribute(replace(made, verdicts=[one]), table))
    assert found == ["mcp 1.20.0", "own"]


def test_a_later_release_that_answers_differently_is_no_remedy() -> None:
    rows = [
        {**one, "answers": {TOOL: {"s": [kind]}}}
        for one, kind in zip(ROWS[1:3], ("isError", "result"), strict=True)
    ]
    table = sdk_faults.read({"releases": rows}, {})

    assert remedy(run({(TOOL, NEW): Outcome.WARN}, SDK, table=table)) == NO_REMEDY


@pytest.mark.parametrize("number", ["1.15.0", "^1.15.0"])
def test_a_neighbour_without_the_revision_says_nothing_about_it(number: str) -> None:
    before = {**row("mcp", "1.10.0"), "revisions": [OLD]}
    table = sdk_faults.read(
        {"releases": [before, row("mcp", "1.20.0", f"{PING} s fail {NEW}")]}, {}
    )
    found = {(PING, NEW): Outcome.FAIL, (PING, OLD): Outcome.FAIL}
    made = run(found, f"mcp=={number}", table=table)

    assert owners(made) == [f"mcp {number}", "own"]
    assert made.verdicts[0].sdk is not None
    assert made.verdicts[0].sdk.like == "mcp 1.20.0"


def test_a_finding_that_some_sdk_has_says_so_if_the_sdk_is_unknown() -> None:
    made = run(FAILING)

    assert made.verdicts[0].alike == ("mcp", "fastmcp")
    (finding,) = findings(made, Outcome.FAIL)
    assert finding.whose == (
        "yours, as the SDK is unknown; a minimal program on mcp or fastmcp does this too"
    )
    assert machine.document(made)["verdicts"][0]["alike"] == ["mcp", "fastmcp"]
    assert run(FAILING, "mcp==2.1.0").verdicts[0].alike == ()


def test_all_reports_count_alike() -> None:
    made = run({**FAILING, (PING, NEW): Outcome.FAIL}, "mcp==1.20.0")
    document = machine.document(made)
    counted = {key: count for key, count in document["summary"]["tally"].items() if count}
    said = "1 FAIL, 2 in the SDK"
    chips = re.findall(r'<li class="(\w+)"><b>(\d+)</b>', html.render(made))

    assert counted == {"fail": 1, "sdk": 2}
    assert f"checked in 2 revisions: 1 FAIL, 0 pass, {said[8:]}" in in_short(made)
    assert f"checked: {said.lower().replace('sdk', 'SDK')}." in markdown.render(made)
    assert f'<property name="counted" value="{said}" />' in junit.render(made)
    assert chips == [("fail", "1"), ("grade", "1"), ("known", "2")]
    assert [v["clause"] for v in document["verdicts"] if "counts" in v] == [PING]
    assert in_fleet(document) == ([PING], 1)  # the other one is a warning


def test_faults_of_the_sdk_are_no_failures_of_a_chapter() -> None:
    made = run(FAILING, "mcp==1.20.0")
    counted = [one.counts for one in chapters(made)]

    assert sum(one["sdk"] for one in counted) == 2
    assert not any(one["fail"] or one["warn"] for one in counted)
    assert "**" not in markdown.render(made).partition("### ")[0]


def test_a_run_has_the_faults_of_the_sdk_in_one_line() -> None:
    made = run(FAILING, "mcp==1.20.0")
    own = run({**FAILING, (PING, NEW): Outcome.FAIL}, "mcp==1.20.0")

    for one in (made, own):
        said = [line for line in in_short(one).splitlines() if line.startswith("sdk")]
        assert len(said) == 1
        assert "of mcp 1.20.0, not counted (-rx lists each, --mcp-strict counts each)" in said[0]
        assert TOOL not in in_short(one)


def test_pytest_names_the_options_of_pytest() -> None:
    warned = run({(PING, NEW): Outcome.WARN}, "mcp==2.1.0")

    assert "1 warning, which --" in standing.closing(warned)[2]
    assert "--mcp-" not in standing.closing(warned)[2]
    said = in_short(warned).splitlines()[-1]
    assert "1 warning, which --mcp-" in said


def test_the_line_on_the_sdk_fits_the_screen() -> None:
    text = in_short(run(FAILING, "mcp==1.20.0"), 60)

    at = next(n for n, line in enumerate(text.splitlines()) if line.startswith("sdk"))
    said = text.splitlines()[at : at + 2]
    assert max(map(len, said)) <= 60
    assert said[1].startswith("     ")
    assert said[1].strip()


def test_each_report_says_how_a_failure_is_usually_cured() -> None:
    name = "stdio-stdout-only-messages"
    cure = rows(BOTH)[name].cure.split()[0]
    made = run({(name, NEW): Outcome.FAIL})
    warned = run({(name, NEW): Outcome.WARN})
    (finding,) = findings(made, Outcome.FAIL)
    texts = [
        in_full(made, finding),
        html.render(made),
        markdown.render(made),
        junit.render(made),
    ]

    assert all("usual cure" in text and cure in text for text in texts)
    assert "Usual cure" in sarif.render(made)
    assert "usual cure" not in markdown.render(warned)


def in_fleet(document: dict[str, Any]) -> tuple[list[str], int]:
    """Return the own failures of a server in a fleet, and the number of those of its SDK."""
    row = row_of("a")
    fill(
        row,
        Members.of(document, "report"),
        ListedServer(name="a", registry=RegistryType.OCI, package="a"),
    )
    outcomes = [one.items() for one in row["verdicts"].values()]
    failed = {clause for one in outcomes for clause, outcome in one if outcome == "fail"}
    return sorted(failed - {*row["sdk_faults"]}), len(failed & {*row["sdk_faults"]})


def test_a_clause_that_fails_for_the_server_too_is_its_own_in_a_fleet() -> None:
    made = run({(PING, MID): Outcome.FAIL, (PING, NEW): Outcome.FAIL}, "mcp==1.10.0")

    assert owners(made) == ["own", "mcp 1.10.0"]
    assert in_fleet(machine.document(made)) == ([PING], 0)


def test_the_json_report_says_whose_a_finding_is() -> None:
    found = machine.document(run(FAILING, "fastmcp==3.0.0", "mcp==1.22.0"))
    schema = json.loads(machine.SCHEMA.read_text("utf-8"))
    jsonschema.validate(found, schema)

    assert [one["name"] for one in found["target"]["sdk"]] == ["fastmcp", "mcp"]
    assert found["gate"]["sdk"] == 2
    assert found["verdicts"][0]["sdk"] == {
        "name": "mcp",
        "version": "1.22.0",
        "registry": "pypi",
        "like": "mcp 1.20.0",
        "fixed": "fastmcp 4.0.0",
        "last": MID,
        "remedy": f"use fastmcp 4.0.0, where it is fixed, or offer only revisions newer than {MID}",
    }


def test_markdown_html_and_badge_say_whose_a_failure_is(golden: SnapshotAssertion) -> None:
    made = run(FAILING, "mcp==1.20.0")
    page, text, sign = html.render(made), markdown.render(made), badge.document(made)

    lines = [line for line in page.splitlines() if "mcp" in line]
    assert scrubbed("\n".join(lines)) == golden(name="html")
    assert f'id="{BATCH}-fail-{MID}"' in page
    assert scrubbed(text) == golden(name="markdown")
    assert sign["message"] == golden(name="badge")
    assert (sign["color"], sign["isError"]) == ("yellowgreen", False)


def test_junit_skips_and_sarif_suppresses_a_fault_of_the_sdk(golden: SnapshotAssertion) -> None:
    made = run(FAILING, "mcp==1.20.0")
    (case,) = ET.fromstring(junit.render(made)).findall(f".//testcase[@name='{BATCH} [{MID}]']")  # noqa: S314
    results = {one["ruleId"]: one for one in sarif.document(made)["runs"][0]["results"]}

    assert case.find("failure") is None
    skipped = case.find("skipped")
    assert skipped is not None
    assert skipped.attrib["message"] == golden(name="skipped")
    assert results[BATCH]["suppressions"][0]["justification"] == golden(name="suppressed")
    assert results[BATCH]["properties"]["sdk"] == "mcp 1.20.0"


def test_a_counted_fault_of_the_sdk_is_a_failure_that_names_its_owner(
    golden: SnapshotAssertion,
) -> None:
    made = run(FAILING, "mcp==1.20.0", words=("sdk",))
    result = sarif.document(made)["runs"][0]["results"][0]

    assert [finding.clause.id for finding in findings(made, Outcome.FAIL)] == [BATCH]
    assert "suppressions" not in result
    assert result["message"]["text"] == golden
    assert '<failure type="MUST"' in junit.render(made)


def test_a_pytest_item_expects_a_fault_of_the_sdk(golden: SnapshotAssertion) -> None:
    case = next(c for c in load().cases() if BATCH in {clause.id for clause in c.clauses})
    fault = row("mcp", "1.20.0", f"{BATCH} {case.id} fail {MID}")
    table = sdk_faults.read({"releases": [fault]}, {})
    made = run(BATCHES, SDK, scenario=case.id, table=table)
    known = items.results(made, [case])[case.id]
    made = replace(made, floor=Floor.read(("sdk",)))
    counted = items.results(made, [case])[case.id]

    assert known.outcome == items.KNOWN
    assert known.text == golden
    assert counted.outcome == items.FAIL


def document(side: str = "server") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(TABLES[side].read_text("utf-8"))
    return found


@cases(("server", CONFORMANCE), ("client", CLIENTS))
def test_the_table_names_clauses_and_scenarios_that_exist(side: str, suite: str) -> None:
    """If this fails, run scripts/sdk_table.py: CONTRIBUTING.md says how."""
    registry = load(suite)
    names = {case.id for case in registry.cases()} | {case.id for case in registry.ambients}
    unknown = {
        (clause, scenario)
        for one in document(side)["releases"]
        for clause, scenarios in one["faults"].items()
        for scenario in scenarios
        if clause not in registry.catalogue or scenario not in names
    }

    assert unknown == set()


ORDER, BOUND = "client-auth-server-metadata-order", "client-auth-token-method"
LOST = "client-http-session-lost"
OF_CLIENTS = sdk_faults.read(
    {
        "releases": [
            row("mcp", "1.20.0", f"{BOUND} s warn {NEW}", f"{LOST} s fail {NEW}"),
            row("mcp", "2.0.0", f"{BOUND} s warn {NEW}", f"{ORDER} s fail {NEW}"),
        ]
    },
    {},
)


@cases(
    ("mcp==1.20.0", {}, ["mcp 1.20.0"] * 2),
    ("mcp==1.20.0", {(ORDER, NEW): Outcome.PASS}, [*["mcp 1.20.0"] * 2, "own"]),
    ("mcp==1.20.0", {(ORDER, NEW): Outcome.FAIL}, ["own", "mcp 1.20.0", "own"]),
    ("mcp==1.20.0", {(ORDER, NEW): Outcome.WARN}, ["own", "mcp 1.20.0", "own"]),
    ("mcp==1.20.0", {("client-auth-scope", NEW): Outcome.WARN}, [*["mcp 1.20.0"] * 2, "own"]),
    ("mcp==2.0.0", {(ORDER, NEW): Outcome.FAIL}, ["mcp 2.0.0", "own", "mcp 2.0.0"]),
    ids=[
        *("not judged", "as the SDK does", "in another way", "in another way, mildly"),
        *("by what its user asked for", "as the SDK does, which is wrong"),
    ],
)
def test_client_that_looks_for_metadata_otherwise_has_a_login_of_its_own(
    sdk: str, more: Found, whose: list[str]
) -> None:
    found = {(BOUND, NEW): Outcome.WARN, (LOST, NEW): Outcome.FAIL, **more}
    made = run(found, sdk, table=())
    made = replace(made, subject=replace(made.subject, kind="client"))

    assert owners(attribute(made, OF_CLIENTS)) == whose


def test_rules_that_tell_a_login_of_its_own_exist() -> None:
    clauses = rows(CLIENTS)

    assert {clauses[one].place for one in sdk_faults.SEARCH} <= sdk_faults.LOGIN
    assert {clause.place for clause in clauses} >= sdk_faults.LOGIN


def test_a_client_has_the_faults_of_the_table_of_clients() -> None:
    made = run(FAILING, SDK, table=())
    made = replace(made, subject=replace(made.subject, kind="client"))

    assert owners(attribute(made, RELEASES)) == ["mcp 1.20.0", "own", "mcp 1.20.0"]
    assert owners(attribute(made)) == ["own"] * 3


@cases(
    ("fastmcp", "4.1.2", "authorization-insufficient-scope"),
    ("mcp", "2.3.0", "authorization-scope"),
    ("@modelcontextprotocol/sdk", "1.32.2", "logging-invalid-level-error-legacy"),
)
def test_the_table_has_what_an_sdk_does_behind_a_token_or_with_logging(
    name: str, number: str, clause: str
) -> None:
    faults = [
        one.faults
        for one in sdk_faults.releases(http=True)
        if (one.sdk.name, one.sdk.version) == (name, number)
    ]

    assert clause in {fault.clause for one in faults for fault in one}


@cases("server", "client")
def test_the_table_has_the_releases_that_the_script_judges(side: str) -> None:
    script = _script()
    wanted = [(one.line, one.name, one.version) for one in script.releases([], side)]

    assert [(o["line"], o["sdk"], o["version"]) for o in document(side)["releases"]] == wanted


def test_several_releases_of_each_sdk_are_judged() -> None:
    wanted = [(one.line, one.name, one.version) for one in _script().releases([])]
    for name in {name for _, name, _ in wanted}:
        assert sum(other == name for _, other, _ in wanted) >= 3, name


def test_a_later_run_keeps_the_faults_by_chance_of_an_earlier_one() -> None:
    old = {"chance": ["rare", "often"], "faults": {"rare": 1, "often": 1, "fixed": 1}}
    new = {"chance": ["often"], "faults": {"often": 2}}

    assert _script().with_chance(new, old) == {
        "chance": ["often", "rare"],
        "faults": {"often": 2, "rare": 1},
    }
    assert _script().with_chance(new, {}) == new


def _script() -> Any:
    path = HERE.parent / "scripts" / "sdk_table.py"
    spec = importlib.util.spec_from_file_location("sdk_table", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["sdk_table"] = module
    spec.loader.exec_module(module)
    return module


def _installed() -> tuple[str, str]:
    """Return the interpreter and the version of an installed ``mcp``; empty texts without one.

    ``MCP_SDK_PYTHON`` names another interpreter than the one that runs the tests.
    """
    named = os.environ.get("MCP_SDK_PYTHON", "")
    if named:
        folder = Path(named).parent.parent
        found = [path.name.split("-")[1] for path in folder.glob("lib/*/site-packages/mcp-*info")]
        return named, found[0].removesuffix(".dist") if found else ""
    try:
        return sys.executable, importlib.metadata.version("mcp")
    except importlib.metadata.PackageNotFoundError:
        return "", ""


def test_the_report_of_an_earlier_run_is_not_that_of_a_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, report = _script(), tmp_path / "report.json"
    report.write_text('{"summary": {}}')
    monkeypatch.setattr(sys, "executable", "false")  # it ends with status 1

    with pytest.raises(SystemExit, match="exit status 1"):
        script.judge("client", ["client"], report)


@pytest.mark.timeout(300)
def test_a_part_of_the_table_is_made_again(tmp_path: Path) -> None:
    interpreter, number = _installed()
    script = _script()
    release = next((o for o in script.releases(["mcp"]) if o.version == number), None)
    if release is None:
        pytest.skip(f"no judged release of mcp is installed here: {number or 'none'}")
    chapters = ("jsonrpc_errors", "jsonrpc_batches")
    options = ["--select", "jsonrpc", "--revision", MID, "--sandbox", "off"]
    server = [interpreter, str(script.HERE / release.program)]
    report = script.judge("server", server, tmp_path / "report.json", *options)
    known = next(o for o in document()["releases"] if (o["sdk"], o["version"]) == ("mcp", number))

    def part(faults: Any) -> set[tuple[str, str, str]]:
        return {
            (clause, scenario, outcome)
            for clause, scenarios in faults.items()
            for scenario, outcomes in scenarios.items()
            for outcome, revisions in outcomes.items()
            if scenario.startswith(tuple(f"conformance/basic/{one}.py" for one in chapters))
            and MID in revisions
        }

    assert part(script.row(release, report)["faults"]) == part(known["faults"]) != set()
    assert [str(one["version"]) for one in report["target"]["sdk"]] == [number]


def test_a_finding_that_depends_on_chance_counts_in_all_legacy_revisions() -> None:
    def verdict(clause: str, revision: str, outcome: str, **more: int) -> dict[str, Any]:
        one = {"scenario": "s", "outcome": outcome, **more}
        return {"clause": clause, "revision": revision, "judgements": [one]}

    report = {
        "revisions": {"spoken": [OLD, MID, "2026-07-28"]},
        "verdicts": [
            verdict(PING, OLD, "fail", tried=5, found=4),
            verdict(PING, MID, "pass"),
            verdict(BATCH, MID, "fail", tried=2, found=2),
            verdict(TOOL, OLD, "note"),
        ],
    }
    script = _script()

    assert script.chance(report) == {PING}
    assert script.faults(report, load().catalogue) == {
        PING: {"s": {"fail": [OLD, MID]}},
        BATCH: {"s": {"fail": [MID]}},
    }
