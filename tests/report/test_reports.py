"""Reports for other programs: JUnit, SARIF, Markdown, HTML and badge."""

import base64
import hashlib
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from mcp_touchstone.report import badge, html, junit, kinds, machine, markdown, sarif
from mcp_touchstone.report.kinds import RENDERERS, Wanted, write
from mcp_touchstone.results.comparison import Change, ComparedFinding, Comparison
from mcp_touchstone.results.run import Execution, Run
from mcp_touchstone.results.threshold import Floor
from mcp_touchstone.results.verdict import Judgement, Outcome, WireLine
from tests.cases import cases
from tests.commands import run_here
from tests.conftest import mutant_command
from tests.runs import Found, run_of

pytestmark = pytest.mark.slow

PING, SHOULD, ESCAPE = "ping-empty-response", "meta-server-info", "traversal-dotdot"
NEW, OLD = "2025-11-25", "2024-11-05"
EVIL = (
    "</testcase>]]>\x1b[31m\x00\u202e\ufffe\ud800 ```\n````<script>alert(1)</script>"
    "<img src=x onerror=alert(1)> | [a](1) {0} &lt; ' \""
)


def run(found: Found, *, actual: str = "no answer", **more: Any) -> Run:
    """Return a run with these outcomes."""
    wire = (WireLine(3, "→", '{"id":1}'), WireLine(4, "←", actual, guilty=True))
    said = {"expected": "an empty result", "actual": actual, "wire": wire}
    return run_of(found, {"scenario": "s.py::s", **said}, **more)


MIXED: Found = {
    (PING, OLD): Outcome.FAIL,
    (PING, NEW): Outcome.FAIL,
    ("ping-before-initialized", NEW): Outcome.PASS,
    (SHOULD, "2026-07-28"): Outcome.WARN,
    ("lifecycle-initialize-result-shape", OLD): Outcome.BROKEN,
    ("lifecycle-initialize-result-shape", NEW): Outcome.UNSEEN,
    (ESCAPE, NEW): Outcome.FAIL,
}


def known(made: Run, rule: str, reason: str = "so it is") -> Run:
    verdicts = [
        replace(verdict, known=reason) if verdict.clause.id == rule else verdict
        for verdict in made.verdicts
    ]
    return replace(made, verdicts=verdicts)


def since(change: Change) -> Comparison:
    item = ComparedFinding(
        rule=PING,
        revision=NEW,
        change=change,
        was="pass",
        now="fail",
        grade="MUST",
        counts=change is Change.NEW,
        actual="no answer",
    )
    return Comparison("old.json", (item,), ("a", "a"), same=True)


def by_name(made: Run) -> dict[str, ET.Element]:
    root = ET.fromstring(junit.render(made))  # noqa: S314  (our own)
    return {case.get("name", ""): case for case in root.iter("testcase")}


def test_junit_fails_for_a_warning_that_counts_and_an_unchecked_server() -> None:
    strict = by_name(run(MIXED, floor=Floor.read(["should"])))

    assert [c.tag for c in strict[f"{SHOULD} [2026-07-28]"]] == ["failure"]
    assert "the server can be checked" in by_name(run({}, trouble="it did not start"))


def test_junit_skips_findings_that_are_not_new() -> None:
    found = by_name(run({(PING, NEW): Outcome.FAIL}, since=since(Change.OPEN)))

    assert {child.tag for child in found[f"{PING} [{NEW}]"]} == {"skipped", "system-out"}


def results(made: Run) -> dict[str, dict[str, Any]]:
    return {result["ruleId"]: result for result in sarif.document(made)["runs"][0]["results"]}


def test_sarif_fingerprint_depends_only_on_the_rule() -> None:
    before = results(run({(PING, NEW): Outcome.FAIL}))[PING]["partialFingerprints"]
    later = run({**MIXED, (PING, NEW): Outcome.WARN}, actual="something else")
    for number, verdict in enumerate(later.verdicts):
        gravest = Judgement(
            clause=verdict.clause.id,
            revision=verdict.revision,
            outcome=verdict.outcome,
            scenario="other.py::other",
            source="other.py:99",
        )
        later.verdicts[number] = replace(verdict, gravest=gravest)

    assert results(later)[PING]["partialFingerprints"] == before
    assert len({str(r["partialFingerprints"]) for r in results(later).values()}) == 3


def test_sarif_relates_each_threat_to_its_weaknesses_and_a_clause_to_none() -> None:
    attacked = run_of({("traversal-dotdot", NEW): Outcome.FAIL}, {"scenario": "s"})
    (log,) = sarif.document(attacked)["runs"]
    (rule,) = log["tool"]["driver"]["rules"]
    (taxonomy,) = log["taxonomies"]
    named = [one["target"]["id"] for one in rule["relationships"]]

    assert named == ["22", "23", "24", "27", "57"] == [one["id"] for one in taxonomy["taxa"]]
    assert rule["relationships"][0]["target"]["toolComponent"] == {"name": "CWE", "index": 0}
    assert log["tool"]["driver"]["supportedTaxonomies"] == [{"name": "CWE", "index": 0}]
    (log,) = sarif.document(run({(PING, NEW): Outcome.FAIL}))["runs"]
    assert "taxonomies" not in log
    assert "relationships" not in log["tool"]["driver"]["rules"][0]


def test_sarif_marks_new_findings() -> None:
    for change, word in ((Change.NEW, "new"), (Change.OPEN, "unchanged")):
        made = run({(PING, NEW): Outcome.FAIL}, since=since(change))
        assert results(made)[PING]["baselineState"] == word


def test_sarif_messages_escape_links_and_placeholders_of_the_server() -> None:
    text = results(run(MIXED, actual=EVIL))[PING]["message"]["text"]

    assert "\\[a\\](1)" in text
    assert "{{0}}" in text


def test_markdown_escapes_text_of_the_server() -> None:
    text = markdown.render(run(MIXED, actual=EVIL))
    outside = re.sub(r"(?ms)^(`{3,})\w+\n.*?^\1$", "", text)

    assert "<script>" not in outside
    assert "<img" not in outside
    assert "[a](1)" not in outside
    assert "\x1b" not in text
    assert text.count("</details>") == 4


def test_markdown_is_truncated_to_its_size_limit(
    monkeypatch: pytest.MonkeyPatch, golden: SnapshotAssertion
) -> None:
    monkeypatch.setattr(markdown, "ROOM", 2_000)

    text = markdown.render(run(MIXED))

    assert len(text) <= 2_000
    assert text.splitlines()[-3] == golden


class Page(HTMLParser):
    """The elements of a page, with their attributes and text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.inside: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        self._open.append("")

    def handle_data(self, data: str) -> None:
        self.inside.setdefault(self._open[-1] if self._open else "", []).append(data)

    def of(self, tag: str, **wanted: str) -> list[dict[str, str]]:
        return [a for t, a in self.elements if t == tag and wanted.items() <= a.items()]


def test_html_overview_has_a_square_without_findings() -> None:
    quiet = Page(html.render(run({(PING, NEW): Outcome.FAIL, (SHOULD, NEW): Outcome.UNSEEN})))
    assert quiet.of("span", title=f"basic/meta in {NEW}: 1 not seen")


def test_html_escapes_text_of_the_server() -> None:
    quiet = run({**MIXED, (PING, OLD): Outcome.FAIL}, trouble="x")
    loud = known(run(MIXED, actual=EVIL, trouble=EVIL), SHOULD, EVIL)
    quiet = known(quiet, SHOULD)
    quiet.verdicts[0] = replace(quiet.verdicts[0], gravest=loud.verdicts[0].gravest)

    text = html.render(loud)
    page, other = Page(text), Page(html.render(quiet))
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in other.elements]
    assert len(page.of("script")) == 1
    assert page.of("img") == []
    assert "alert(1)" not in "".join(page.inside["script"])
    assert "\x1b" not in text


def test_html_loads_no_resource_and_runs_one_script() -> None:
    page = Page(html.render(run(MIXED)))

    assert not {a for _, at in page.elements for a in at} & {"src", "srcset", "style", "onclick"}
    assert page.of("link") == []
    policy = page.of("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    digest = hashlib.sha256("".join(page.inside["script"]).encode()).digest()
    assert f"script-src 'sha256-{base64.b64encode(digest).decode()}'" in policy
    assert policy.startswith("default-src 'none'")


@cases(
    (lambda: run({(SHOULD, NEW): Outcome.PASS}), "passed, 1 clause", "b"),
    (lambda: run({(PING, NEW): Outcome.FAIL}), "failed, 1 of 1 clause broken", "red"),
    (
        lambda: known(run({(PING, NEW): Outcome.FAIL}), PING, "accepted"),
        "passed, 1 of 1 clause broken",
        "yellow",
    ),
    (lambda: run({}, trouble="it did not start"), "not checked", "lightgrey"),
)
def test_badge_shows_the_outcome_and_a_color(
    made: Callable[[], Run], message: str, color: str
) -> None:
    document = badge.document(made())

    assert document["schemaVersion"] == 1
    assert document["message"] == message
    assert re.fullmatch(r"MCP( security)?: \S.*", document["label"])
    assert document["color"].startswith(color)


@pytest.mark.parametrize("kind", sorted(RENDERERS))
def test_reports_render_any_server_text_without_control_characters(kind: str) -> None:
    for made in (
        run(MIXED, actual=EVIL),
        known(run(MIXED), PING, EVIL),
        run({}, trouble=EVIL),
        run({}, execution=Execution(interrupted=True)),
    ):
        text = RENDERERS[kind](made)
        assert text == RENDERERS[kind](made)
        assert not set(text.encode()) & {*range(9), *range(11, 32)}


def test_unwritable_report_does_not_prevent_other_reports(tmp_path: Path) -> None:
    bad = Wanted("junit", tmp_path / "gone" / "out.xml")
    good = [Wanted(kind, tmp_path / kind) for kind in kinds.KINDS]

    lost = write([bad, *good], run(MIXED))

    assert len(lost) == 1
    assert lost[0].startswith(f"{bad.path}: junit could not be written: ")
    assert {path.name for path in tmp_path.iterdir()} == set(kinds.KINDS)


def test_reports_mask_secrets_shown_by_the_server(tmp_path: Path) -> None:
    value = "hunter2<&>hunter2"
    made = run(MIXED, actual=json.dumps({"env": value}) + value)
    every = [Wanted(kind, tmp_path / kind) for kind in kinds.KINDS]

    assert write(every, made, {"MY_TOKEN": value, "MY_KEY": "x"}) == []
    for path in tmp_path.iterdir():
        assert "hunter2" not in path.read_text("utf-8"), path.name


VOLATILE = (
    (r' time="[\d.]+"', ""),
    (rf'"({"|".join(machine.VOLATILE)})": (\{{[^}}]*\}}|"[^"]*"|[\d.]+)', ""),
    (r"([\d-]+T[\d:]+\+00:00, )?(\d+ processes), [\d.]+ s", r"\2"),
)
"""What docs/guides/reports.md declares to differ from run to run."""


def test_reports_of_two_runs_differ_only_in_declared_fields(tmp_path: Path) -> None:
    made = []
    for number in "12":
        words = [w for k in kinds.KINDS for w in ("--report", f"{k}:{tmp_path / (k + number)}")]
        done = run_here(
            "check", "--select", "answers_a_ping", *words, "--", *mutant_command("RefusesPings")
        )
        assert done.returncode == 1, done.stderr
        texts = {kind: (tmp_path / (kind + number)).read_text("utf-8") for kind in kinds.KINDS}
        for kind, text in texts.items():
            for pattern, instead in VOLATILE:
                texts[kind] = re.sub(pattern, instead, texts[kind])
            assert text
        made.append({kind: text.replace(f"{kind}{number}", "") for kind, text in texts.items()})

    assert made[0] == made[1]
