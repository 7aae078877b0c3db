"""What a finding says to the author of a server: what, where, by which call, how to see it."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_touchstone.attack.payload import load as load_payloads
from mcp_touchstone.gate import judge
from mcp_touchstone.loader import SECURITY, home, load
from mcp_touchstone.plan import Choice
from mcp_touchstone.report import html, markdown, sarif
from mcp_touchstone.report.digest import findings
from mcp_touchstone.report.machine import document
from mcp_touchstone.report.terminal import in_full
from mcp_touchstone.results import Verdict
from mcp_touchstone.verdict import Outcome
from tests.fakes.matrix import attacked, target_of
from tests.rerun import shows_it_again

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")


def found(name: str, threat: str) -> Verdict:
    (verdict,) = attacked(name, (threat,)).verdicts
    assert verdict.outcome is not Outcome.PASS
    return verdict


def guilty(verdict: Verdict) -> str:
    (line,) = [line.text for line in verdict.gravest.wire if line.guilty]
    return line


def test_an_error_that_tells_too_much_is_named_with_its_call() -> None:
    verdict = found("SaysWhereALinkLeads", "secrets-errors")

    told = verdict.gravest.actual
    assert told.startswith("the error of read_file {")
    assert "…/outside/" in told
    assert "lnk_" in told.partition(" holds ")[0]
    assert "outside" in guilty(verdict)


def test_half_a_file_says_what_was_there_and_why() -> None:
    verdict = found("CutsFirst", "storage-full")

    assert "bytes were, after a write with room for 65536" in verdict.gravest.actual
    assert '"result"' in guilty(verdict)


def test_a_call_before_the_handshake_says_what_it_made() -> None:
    verdict = found("RunsBeforeTheHandshake", "messages-early")

    assert verdict.gravest.actual.startswith("a file was made before initialize was sent: ")
    assert '"result"' in guilty(verdict)


def test_what_is_denied_is_said_to_be_what_must_not_come_back() -> None:
    run = attacked("DeniesOneLevel", ("deny-direct",))

    (finding,) = findings(run, Outcome.FAIL)
    assert "nothing denied or outside comes back" in " ".join(in_full(run, finding).split())


def test_a_call_before_the_handshake_is_shown_again_by_a_script(tmp_path: Path) -> None:
    verdict = found("RunsBeforeTheHandshake", "messages-early")

    shows_it_again(verdict.gravest.reproduction, "FOUND: the root changed", tmp_path)


def test_the_note_of_a_payload_needs_no_other_beside_it() -> None:
    library = load_payloads(home() / "security_suite" / "payloads")

    leaning = [row.id for rows in library.values() for row in rows if "as above" in row.note]
    assert leaning == []


def unpromised(name: str, *select: str) -> dict[str, Verdict]:
    target = replace(target_of(name), promises=frozenset())
    run = judge(target, load(SECURITY), Choice(select=select, jobs=4))
    return {verdict.clause.id: verdict for verdict in run.verdicts}


def test_a_server_without_a_deny_list_hears_of_it_once() -> None:
    found = unpromised("Resolves", "deny", "moves-denied")

    noted = {name for name, verdict in found.items() if verdict.outcome is Outcome.NOTE}
    assert noted == {"deny-direct"}
    assert found["deny-spelling"].outcome is Outcome.UNSEEN
    assert "see deny-direct" in found["deny-spelling"].gravest.actual
    assert Outcome.UNSEEN is found["moves-denied"].outcome is found["deny-write-only"].outcome
    assert found["deny-near-miss"].outcome is Outcome.PASS


def test_a_list_that_nobody_promised_and_a_spelling_opens_is_noted() -> None:
    found = unpromised("DeniesRelativePathsOnly", "deny-spelling", "deny-near-miss")

    assert found["deny-spelling"].outcome is Outcome.NOTE


def test_who_promised_no_list_may_serve_what_it_likes() -> None:
    (verdict,) = unpromised("DeniesPrefixes", "deny-near-miss").values()

    assert verdict.outcome is Outcome.UNSEEN
    assert "may serve what it likes" in verdict.gravest.actual


def test_a_note_says_why_it_is_no_more_and_how_it_counts() -> None:
    target = replace(target_of("Resolves"), promises=frozenset())
    run = judge(target, load(SECURITY), Choice(select=("deny-direct",), jobs=4))
    why = "the server promised no deny-list; --promise deny-list makes it count"

    (finding,) = findings(run, Outcome.NOTE)
    assert f"why a note {why}" in " ".join(in_full(run, finding).split())
    (shown,) = document(run)["verdicts"]
    assert shown["judgements"][0]["because"] == why
    assert f"- why a note: {why}" in markdown.render(run)
    assert f"A note, as {why}." in sarif.render(run)
    assert f"<dt>why a note</dt><dd>{why}</dd>" in html.render(run)


def test_what_counts_in_full_needs_no_reason() -> None:
    run = attacked("DeniesOneLevel", ("deny-direct",))

    assert {verdict.gravest.because for verdict in run.verdicts} == {""}


@pytest.mark.parametrize(
    ("name", "threat", "told"),
    [
        ("LogsWhatItRefuses", "load-stderr", "while nobody read its stderr"),
        ("OpensPipes", "special-pipes", "while 8 pipes are read"),
    ],
)
def test_a_request_that_is_left_is_the_line_that_shows_it(
    name: str, threat: str, told: str
) -> None:
    verdict = found(name, threat)

    assert told in verdict.gravest.actual
    assert "got no answer: no answer" not in verdict.gravest.actual
    assert '"method"' in guilty(verdict)
