"""The printed command of a finding and the node id of its rule reproduce it.

The tests use a few mutants that break rules on all traffic. They use all mutants, and take hours,
if MCP_TOUCHSTONE_WHOLE is set.
"""

import os
import shlex

import pytest

from mcp_touchstone.catalog.scenario import DISCOVERY, Ambient
from mcp_touchstone.engine.choice import Traffic
from mcp_touchstone.engine.runner import Choice, Run, judge
from mcp_touchstone.report.digest import again, findings
from mcp_touchstone.results.verdict import Outcome
from tests.commands import run_here
from tests.mutants.judged import MUTANTS, REGISTRY, run_mutant, target_of

pytestmark = pytest.mark.slow

RULES = {clause.id: rule for rule in REGISTRY.ambients for clause in rule.clauses}
BROKEN = (Outcome.FAIL, Outcome.WARN, Outcome.NOTE)


def sample() -> list[str]:
    """List the mutants to run: one for each of a few chapters, or all."""
    breaking = [name for name, one in MUTANTS.items() if {*one.breaks} & RULES.keys()]
    if "MCP_TOUCHSTONE_WHOLE" in os.environ:
        return [name for name, one in MUTANTS.items() if one.breaks]
    chapters: dict[str, str] = {}
    for name in breaking:
        clause = next(c for c in MUTANTS[name].breaks if c in RULES)
        chapters.setdefault(REGISTRY.catalogue[clause].chapter, name)
    return [chapters[chapter] for chapter in sorted(chapters)][::4]


def found(run: Run) -> set[str]:
    return {verdict.clause.id for verdict in run.of(*BROKEN)}


@pytest.mark.parametrize("name", sample())
def test_printed_command_reproduces_the_finding(name: str) -> None:
    run = run_mutant(MUTANTS[name])

    missed = []
    for finding in findings(run, *BROKEN):
        words = [w for w in shlex.split(again(run, finding)) if w != "mcp-touchstone"]
        words[words.index("check") + 1 : words.index("check") + 1] = ["--strict", "--no-baseline"]
        done = run_here(*words)
        if finding.clause.id not in done.stdout:
            missed.append((" ".join(words), done.stdout + done.stderr))

    assert found(run)
    assert missed == []


@pytest.mark.parametrize("name", sample())
def test_rule_node_id_reproduces_the_finding(name: str) -> None:
    mutant = MUTANTS[name]
    clause = next(c for c in mutant.breaks if c in RULES or "MCP_TOUCHSTONE_WHOLE" in os.environ)
    cases = frozenset(
        case.id for case in REGISTRY.cases() if clause in {one.id for one in case.clauses}
    )

    run = judge(
        target_of(mutant),
        REGISTRY,
        Choice(cases=cases, revisions=(mutant.revision,), examples=mutant.examples, repeats=0),
    )

    assert clause in found(run)
    assert {one.planned.case.id for one in run.results} <= cases, (
        "what only feeds a rule is not reported"
    )


def test_rule_selected_alone_judges_the_traffic_of_all_scenarios() -> None:
    rule = RULES["stdio-stdout-only-messages"]
    assert isinstance(rule, Ambient)

    assert Choice(select=(rule.id,)).traffic(REGISTRY) is Traffic.WHOLE
    assert Choice(cases=frozenset({rule.id})).traffic(REGISTRY) is Traffic.WHOLE


def test_chapter_selection_judges_discovery_traffic_and_over_http_all() -> None:
    assert Choice(select=("ping",)).traffic(REGISTRY) is Traffic.DISCOVERED
    assert Choice(select=("http/streams",)).traffic(REGISTRY) is Traffic.WHOLE
    assert Choice(select=(DISCOVERY, "ping-not-excessive")).traffic(REGISTRY) is Traffic.DISCOVERED


def test_named_scenario_or_full_selection_adds_no_traffic() -> None:
    named = ("stdio-stdout-only-messages", "answers_a_ping")

    assert Choice(select=named).traffic(REGISTRY) is Traffic.SELECTED
    assert Choice().traffic(REGISTRY) is Traffic.SELECTED
    assert Choice(select=("answers_a_ping",)).traffic(REGISTRY) is Traffic.SELECTED
