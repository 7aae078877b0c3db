"""The text of a finding: the fault, its place, its call, and how to reproduce it."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_touchstone.catalog.loader import SECURITY, home, load
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import judge
from mcp_touchstone.report import html, markdown, sarif
from mcp_touchstone.report.digest import findings
from mcp_touchstone.report.machine import document
from mcp_touchstone.report.sections import in_full
from mcp_touchstone.results.run import Verdict
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.security.payload import load as load_payloads
from tests.cases import cases
from tests.fakes.matrix import attacked, target_of
from tests.reproduction import shows_it_again

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX"), pytest.mark.slow]


def found(name: str, threat: str) -> Verdict:
    (verdict,) = attacked(name, (threat,)).verdicts
    assert verdict.outcome is not Outcome.PASS
    return verdict


def guilty(verdict: Verdict) -> str:
    (line,) = [line.text for line in verdict.gravest.wire if line.guilty]
    return line


def test_leaking_error_is_reported_with_its_call() -> None:
    verdict = found("NamesTheTargetOfALink", "secrets-errors")

    actual = verdict.gravest.actual
    assert actual.startswith("the error of read_file {")
    assert "…/outside/" in actual
    assert "lnk_" in actual.partition(" holds ")[0]
    assert "outside" in guilty(verdict)


def test_truncated_file_finding_states_bytes_and_cause() -> None:
    verdict = found("TruncatesFirst", "storage-full")

    assert "bytes were, after a write with room for 65536" in verdict.gravest.actual
    assert '"result"' in guilty(verdict)


def test_call_before_initialize_is_reported_with_its_effect_and_a_script(tmp_path: Path) -> None:
    verdict = found("RunsBeforeTheHandshake", "messages-early")

    assert verdict.gravest.actual.startswith("a file was made before initialize was sent: ")
    assert '"result"' in guilty(verdict)
    shows_it_again(verdict.gravest.reproduction, "FOUND: the root changed", tmp_path)


def test_deny_finding_of_full_weight_says_that_nothing_denied_may_come_back() -> None:
    run = attacked("DeniesOneLevel", ("deny-direct",))

    (finding,) = findings(run, Outcome.FAIL)
    assert "no denied" in " ".join(in_full(run, finding).split())
    assert {verdict.gravest.because for verdict in run.verdicts} == {""}


def test_payload_notes_do_not_refer_to_each_other() -> None:
    library = load_payloads(home() / "security_suite" / "payloads")

    leaning = [row.id for rows in library.values() for row in rows if "as above" in row.note]
    assert leaning == []


def unpromised(name: str, *select: str) -> dict[str, Verdict]:
    target = replace(target_of(name), promise={})
    run = judge(target, load(SECURITY), Choice(select=select, jobs=4))
    return {verdict.clause.id: verdict for verdict in run.verdicts}


def test_missing_deny_list_is_noted_once() -> None:
    found = unpromised("Resolves", "deny", "moves-denied")

    noted = {name for name, verdict in found.items() if verdict.outcome is Outcome.NOTE}
    assert noted == {"deny-direct"}
    assert found["deny-spelling"].outcome is Outcome.UNSEEN
    assert "see deny-direct" in found["deny-spelling"].gravest.actual
    assert Outcome.UNSEEN is found["moves-denied"].outcome is found["deny-write-only"].outcome
    assert found["deny-near-miss"].outcome is Outcome.PASS


def test_bypassed_unpromised_deny_list_is_a_note() -> None:
    found = unpromised("DeniesRelativePathsOnly", "deny-spelling", "deny-near-miss")

    assert found["deny-spelling"].outcome is Outcome.NOTE


def test_near_misses_are_not_judged_without_a_promised_deny_list() -> None:
    (verdict,) = unpromised("DeniesPrefixes", "deny-near-miss").values()

    assert verdict.outcome is Outcome.UNSEEN
    assert "any file" in verdict.gravest.actual


def test_every_report_explains_why_a_finding_is_only_a_note() -> None:
    target = replace(target_of("Resolves"), promise={})
    run = judge(target, load(SECURITY), Choice(select=("deny-direct",), jobs=4))
    why = "the server promised no deny-list; --promise deny-list makes it count"

    (finding,) = findings(run, Outcome.NOTE)
    assert f"why a note {why}" in " ".join(in_full(run, finding).split())
    (shown,) = document(run)["verdicts"]
    assert shown["judgements"][0]["because"] == why
    assert f"- why a note: {why}" in markdown.render(run)
    assert f"Why a note: {why}." in sarif.render(run)
    assert f"<dt>why a note</dt><dd>{why}</dd>" in html.render(run)


@cases(
    ("LogsRefusals", "load-stderr", "while nobody read its stderr"),
    ("OpensPipes", "special-pipes", "while 8 pipes are read"),
)
def test_unanswered_request_is_the_guilty_line(name: str, threat: str, part: str) -> None:
    verdict = found(name, threat)

    assert part in verdict.gravest.actual
    assert "got no answer: no answer" not in verdict.gravest.actual
    assert '"method"' in guilty(verdict)
