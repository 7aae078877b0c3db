"""A run as JUnit XML: a suite for each chapter, a case for each clause in each revision.

Uses the elements that Jenkins and GitLab both read (the Surefire dialect). A verdict that fails the
run is a failure, one that could not be checked an error; a known or untriggered one is skipped.
"""

from collections.abc import Iterator
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from mcp_touchstone.report.digest import counts_text, tally
from mcp_touchstone.report.finding import Finding
from mcp_touchstone.report.sections import in_full
from mcp_touchstone.report.sheet import WORDS
from mcp_touchstone.results.run import Run, Verdict
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.version import __version__

_SAID: Final = {Outcome.FAIL, Outcome.WARN, Outcome.NOTE}
_TALLIES: Final = {"failures": "failure", "errors": "error", "skipped": "skipped"}


def render(run: Run) -> str:
    """Render the file; only ``time`` differs between runs of an unchanged server."""
    root = Element("testsuites", name="mcp-touchstone")
    chapters: dict[str, list[Verdict]] = {}
    for verdict in run.verdicts:
        place = verdict.clause.place
        chapters.setdefault(place, []).append(verdict)
    seconds = _seconds(run)
    for name, verdicts in chapters.items():
        suite = _suite(root, name)
        for key, value in _properties(run):
            _set(SubElement(suite[0], "property"), name=key, value=value)
        for verdict in verdicts:
            _case(suite, run, verdict, seconds)
        _count(suite)
    _whole(root, run)
    for attribute in ("tests", "failures", "errors"):
        root.set(attribute, str(sum(int(suite.get(attribute, "0")) for suite in root)))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _suite(root: Element, name: str) -> Element:
    suite = SubElement(root, "testsuite", name=name)
    SubElement(suite, "properties")
    return suite


def _properties(run: Run) -> Iterator[tuple[str, str]]:
    yield "mcp-touchstone", __version__
    yield run.subject.kind, run.subject.name or run.subject.shown
    yield "command", run.subject.shown
    yield "revisions", ", ".join(run.subject.revisions)
    yield "sdk", str(run.subject.sdk)
    yield "counted", counts_text(tally(run), WORDS)


def _case(
    suite: Element, run: Run, verdict: Verdict, seconds: dict[tuple[str, str], float]
) -> None:
    clause, judgement = verdict.clause, verdict.gravest
    case = SubElement(suite, "testcase", classname=f"{clause.group}.{clause.chapter}")
    took = seconds.get((judgement.scenario, verdict.revision), 0.0)
    _set(case, name=f"{clause.id} [{verdict.revision}]", time=f"{took:.3f}")
    finding = Finding.of([verdict])
    message = finding.said
    if verdict.known:
        _set(SubElement(case, "skipped"), message=f"known: {verdict.known}")
    elif run.is_of_sdk(verdict):
        _set(SubElement(case, "skipped"), message=f"{finding.whose}: {message}")
    elif verdict.outcome is Outcome.BROKEN:
        error = SubElement(case, "error", type="not judged")
        _set(error, message=judgement.actual).text = _story(run, finding)
    elif run.counts(verdict):
        failure = SubElement(case, "failure", type=clause.grade)
        _set(failure, message=message).text = _story(run, finding)
    elif verdict.outcome is Outcome.FAIL:
        why = "not new" if run.since is not None else f"below --fail-on {' '.join(run.floor.words)}"
        _set(SubElement(case, "skipped"), message=f"{why}: {message}")
    elif verdict.outcome is Outcome.UNSEEN:
        _set(
            SubElement(case, "skipped"), message=f"the {run.subject.kind} never triggered this rule"
        )
    if verdict.outcome in _SAID and case.find("failure") is None:
        SubElement(case, "system-out").text = _story(run, finding)


def _story(run: Run, finding: Finding) -> str:
    """Render a finding in full, with the script that reproduces it."""
    text = "\n" + in_full(run, finding) + "\n"
    if finding.judgement.reproduction:
        text += f"\nreproduce without mcp-touchstone:\n\n{finding.judgement.reproduction}\n"
    return "\n".join(map(_legal, text.split("\n")))


def _whole(root: Element, run: Run) -> None:
    """Add a case for the run if it failed as a whole, and one for each stale baseline entry."""
    interrupted = run.execution.interrupted
    if run.trouble or interrupted:
        suite = _suite(root, "run")
        case = SubElement(
            suite, "testcase", classname="run", name=f"the {run.subject.kind} can be checked"
        )
        error = SubElement(case, "error", type="not judged")
        why = "interrupted before everything was checked" if interrupted else run.trouble
        _set(error, message=why).text = "\n".join(map(_legal, run.subject.stderr.split("\n")))
        _count(suite)
    if run.settled is not None:
        suite = _suite(root, "baseline")
        for entry in run.stale:
            case = SubElement(suite, "testcase", classname="baseline")
            where = ", ".join(entry.revisions) or "all revisions"
            _set(case, name=f"{entry.rule} [{where}]")
            failure = SubElement(case, "failure", type="stale")
            _set(failure, message=entry.why).text = _legal(f"its reason was: {entry.reason}")
        _count(suite)


def _count(suite: Element) -> None:
    suite.set("tests", str(len(suite.findall("testcase"))))
    for attribute, tag in _TALLIES.items():
        suite.set(attribute, str(len(suite.findall(f"testcase/{tag}"))))
    took = sum(float(case.get("time", "0")) for case in suite.findall("testcase"))
    suite.set("time", f"{took:.3f}")


def _seconds(run: Run) -> dict[tuple[str, str], float]:
    """Divide the time of each scenario among the clauses it judges."""
    return {
        (one.planned.case.id, one.planned.revision): one.seconds / max(1, len(one.planned.clauses))
        for one in run.results
    }


def _set(element: Element, **attributes: str) -> Element:
    for name, value in attributes.items():
        element.set(name, _legal(value))
    return element


def _legal(text: str) -> str:
    """Escape characters that XML cannot contain."""
    shown = safe(text)
    return shown.replace("\ufffe", "\\ufffe").replace("\uffff", "\\uffff")
