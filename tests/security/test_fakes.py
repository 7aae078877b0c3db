"""Every bad fake fails exactly its declared threats, and no good fake fails one."""

import json
import os
from collections.abc import Callable, Collection

import pytest

from mcp_touchstone.catalog.loader import SECURITY, SUITES, home, load
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import judge
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.sandbox.sandbox import Method, choose
from mcp_touchstone.target.target import reference
from tests.conftest import RETRIED
from tests.fakes.catalogue import FAKES
from tests.fakes.matrix import attacked, near, proofs, tripped, unproven

PROOFS = proofs()

NAMED = os.environ.get("MCP_TOUCHSTONE_SANDBOX")
SANDBOX = Method(NAMED) if NAMED else None
"""Where the fakes run: the verdicts are the same in each sandbox and outside, without exception."""

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX"), pytest.mark.slow]


def outcomes(run: Run, threats: Collection[str]) -> str:
    """Return the outcomes of threats that were expected to fail, for the message of a test."""
    judged = (v for v in run.verdicts if v.clause.id in threats)
    shown = [f"{v.clause.id} {v.outcome}: {v.gravest.actual}" for v in judged]
    return "; ".join(shown) or run.trouble or "not judged"


@pytest.mark.parametrize("name", FAKES)
def test_fake_trips_exactly_its_declared_threats(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    if FAKES[name].sandboxed and choose("auto")[0] is None:
        pytest.skip("its attacks need a sandbox")
    expected = FAKES[name].trips
    run = attacked(name, near(name), SANDBOX)
    found = tripped(run)
    if set(found) < expected:  # a busy machine may hide an effect; a surplus finding fails at once
        record_property(RETRIED, f"{name} ({outcomes(run, expected - set(found))})")
        run = attacked(name, near(name), SANDBOX)
        found = tripped(run)

    assert set(found) == expected, found or outcomes(run, expected)
    assert unproven(run) == {}
    assert PROOFS.get(name, set()) <= run.fired, "python tests/fakes --proofs"


def test_reference_server_withstands_every_attack() -> None:
    run = judge(reference(timeout=60.0), load(SECURITY), Choice())

    assert (tripped(run), run.exit_code) == ({}, 0)


def test_finding_names_the_judging_line_of_the_suite() -> None:
    (found,) = attacked("LosesConcurrentEdits", ("crowds-confirmed",)).of(Outcome.FAIL)

    name, _, line = found.gravest.source.partition(":")
    text = (home() / SUITES[SECURITY] / "promises" / name).read_text(encoding="utf-8")
    assert "session.judge.conclude(" in text.splitlines()[int(line) - 1]


def test_failure_of_a_plain_path_is_not_counted_for_other_threats() -> None:
    run = attacked("JoinedWithMore", ("lines-strings", "messages-keys"))

    assert [verdict.outcome for verdict in run.verdicts] == [Outcome.PASS] * 2
    for verdict in run.verdicts:
        assert "plain path" in verdict.judgements[0].actual


def test_deafness_after_a_blank_line_is_not_counted_for_other_lines() -> None:
    run = attacked("DeafAfterABlankLine", ("lines-depth", "lines-strings", "messages-keys"))

    assert {v.clause.id: v.outcome for v in run.verdicts} == {
        "lines-depth": Outcome.PASS,
        "lines-strings": Outcome.PASS,
        "messages-keys": Outcome.PASS,
    }


def test_crash_on_an_invalid_request_is_not_a_smuggled_message() -> None:
    run = attacked("LeavesOnInvalidRequests", ("messages-inside", "messages-echoed"))

    assert run.of(Outcome.FAIL, Outcome.WARN) == []


def test_threat_needing_a_created_file_does_not_apply_without_create() -> None:
    run = attacked("EditsOnly", ("messages-keys", "messages-without-id", "messages-early"))

    assert [verdict.clause.id for verdict in run.verdicts] == ["messages-keys"]
    assert {one.clause for one in run.absent} == {"messages-without-id", "messages-early"}


def test_second_answer_to_a_cancelled_request_is_in_the_evidence() -> None:
    (found,) = attacked("AnswersWhatIsCancelledAgain", ("load-cancel",)).of(Outcome.FAIL)

    answers = [
        json.loads(line.text)["id"] for line in found.gravest.wire if '"result"' in line.text
    ]
    assert any(answers.count(one) > 1 for one in answers)
