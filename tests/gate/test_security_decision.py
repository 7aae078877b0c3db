"""The end of a security run says how grave the findings are, and what they mean."""

from mcp_touchstone.catalog.loader import load
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.report import html, markdown, standing
from mcp_touchstone.results.run import Absent, Run
from mcp_touchstone.results.verdict import Outcome
from tests.runs import run_of

NEW = "2025-11-25"
GRAVE, MEDIUM = "traversal-dotdot", "special-pipes"


def run(**found: Outcome) -> Run:
    outcomes = {(name.replace("_", "-"), NEW): outcome for name, outcome in found.items()}
    made = run_of(outcomes, {"scenario": "s", "actual": "it did"})
    made.absent.append(Absent("links-read", NEW, "no tool"))
    return made


def test_findings_are_counted_by_severity_and_their_effects_are_named() -> None:
    made = run(
        traversal_dotdot=Outcome.FAIL, special_pipes=Outcome.FAIL, traversal_absolute=Outcome.PASS
    )
    said = standing.decision(made)
    threat = load("security").catalogue[GRAVE]
    end = "3 threats were tried; 1 could not be tried on it. It ran without a sandbox."

    assert isinstance(threat, Threat)
    assert standing.severities(made) == {threat.grade: [GRAVE], "medium": [MEDIUM]}
    assert f"is open to 2 threats: 1 {threat.grade}, 1 medium" in standing.closing(made)[2]
    assert threat.effect in said
    assert said.endswith(end)
    assert end in html.render(made)
    assert end in markdown.render(made)


def test_a_run_without_findings_says_what_was_tried() -> None:
    said = standing.decision(run(traversal_absolute=Outcome.PASS))

    assert said.startswith("No attack succeeded. 1 threat was tried; 1 could not be tried")
