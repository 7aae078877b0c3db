"""Comparison of two reports: new, fixed, open, gone and newly judged findings."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from syrupy.assertion import SnapshotAssertion

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.report.comparison import document, markdown, text
from mcp_touchstone.report.machine import FORMAT, SCHEMA
from mcp_touchstone.report.recorded import load
from mcp_touchstone.results.comparison import Change, Comparison, compare, grouped
from mcp_touchstone.results.threshold import Floor
from tests.cases import cases

OLD, NEW = "2024-11-05", "2025-11-25"


def report(
    *verdicts: tuple[str, str, str],
    absent: tuple[tuple[str, str], ...] = (),
    spoken: tuple[str, ...] = (OLD, NEW),
    severity: str = "",
    version: str = "1",
    trouble: str = "",
) -> dict[str, Any]:
    """Return a report of (rule, revision, outcome); a trailing ``!`` marks a known failure."""
    rows = []
    for rule, revision, word in verdicts:
        row: dict[str, Any] = {
            "clause": rule,
            "group": "g",
            "chapter": "c",
            "level": "MUST",
            "revision": revision,
            "outcome": word.strip("!"),
            "spec": [],
            "judgements": [
                {
                    "scenario": "s",
                    "outcome": word.strip("!"),
                    "expected": "",
                    "count": 1,
                    "actual": f"it is {word}",
                    "source": "",
                    "process": "",
                    "wire": [],
                }
            ],
        }
        if word.endswith("!"):
            row["known"] = "so it is"
        if severity:
            row["threat"] = {
                "severity": severity,
                "promise": "containment",
                "effect": "",
                "cause": "",
                "cwe": [],
                "owasp": [],
                "seen_in": [],
            }
        rows.append(row)
    made = {
        "format": FORMAT,
        "tool": {"name": "mcp-touchstone", "version": "0"},
        "target": {
            "command": ["x"],
            "bundled": False,
            "server": {NEW: {"name": "it", "version": version}},
        },
        "revisions": {"spoken": list(spoken), "refused": {}},
        "summary": {
            "exit_code": 0,
            "interrupted": False,
            "trouble": trouble,
            "clauses": {},
            "planned": 0,
            "processes": 0,
            "strays": 0,
            "seconds": 0,
            "startup_seconds": 0,
        },
        "verdicts": rows,
        "not_applicable": [
            {"clause": rule, "revision": revision, "why": "no x"} for rule, revision in absent
        ],
    }
    jsonschema.validate(made, json.loads(SCHEMA.read_text("utf-8")))
    return made


def compared(old: dict[str, Any], new: dict[str, Any], **more: Any) -> Comparison:
    return compare(old, new, name="old.json", **more)


def report_with(word: str) -> dict[str, Any]:
    """Return a report in which one clause has this outcome."""
    if word == "absent":
        return report(absent=(("a-b", NEW),))
    return report(*([] if word == "unasked" else [("a-b", NEW, word)]))


@cases(
    ("pass", "fail", Change.NEW, 1),
    ("note", "fail", Change.NEW, 1),
    ("unseen", "fail", Change.NEW, 1),
    ("warn", "fail", Change.NEW, 1),
    ("absent", "fail", Change.NEW, 1),
    ("unasked", "fail", Change.NEWLY, 0),
    ("broken", "fail", Change.NEWLY, 0),
    ("fail", "fail", Change.OPEN, 0),
    ("fail", "fail!", Change.OPEN, 0),
    ("pass", "fail!", Change.NEW, 0),
    ("fail", "warn", Change.OPEN, 0),
    ("fail", "broken", Change.OPEN, 0),
    ("pass", "warn", Change.NEW, 0),
    ("warn", "warn", Change.OPEN, 0),
    ("pass", "broken", Change.NEW, 2),
    ("warn", "broken", Change.NEW, 2),
    ("broken", "broken", Change.OPEN, 0),
    ("unasked", "broken", Change.NEWLY, 0),
    ("fail", "pass", Change.FIXED, 0),
    ("warn", "note", Change.FIXED, 0),
    ("broken", "pass", Change.FIXED, 0),
    ("fail", "unseen", Change.GONE, 0),
    ("fail", "absent", Change.GONE, 0),
    ("fail", "unasked", Change.UNASKED, 0),
    ("pass", "unseen", Change.UNSEEN, 0),
    ("pass", "pass", None, 0),
    ("pass", "absent", None, 0),
    ("note", "unasked", None, 0),
    ("absent", "pass", None, 0),
)
def test_outcome_pair_determines_change_and_exit_code(
    was: str, now: str, change: Change | None, code: int
) -> None:
    found = compared(report_with(was), report_with(now))

    assert [item.change for item in found.items] == ([] if change is None else [change])
    assert found.exit_code == code


def with_tools(*tools: str) -> dict[str, Any]:
    """Return a report in which one threat fails in these tools: ``read`` or ``read(path)``."""
    made = report(("a-b", NEW, "fail"))
    places = [tool.rstrip(")").partition("(") for tool in tools]
    judgement = made["verdicts"][0]["judgements"][0]
    judgement["tools"] = {tool: 1 for tool, _, _ in places}
    judgement["arguments"] = {tool: {name: 1} for tool, _, name in places if name}
    jsonschema.validate(made, json.loads(SCHEMA.read_text("utf-8")))
    return made


@cases((["read"], ["read", "write"], "write"), (["read(path)"], ["read(to)"], "read(to)"))
def test_known_finding_in_another_tool_or_argument_is_new(
    old: list[str], new: list[str], place: str
) -> None:
    found = compared(with_tools(*old), with_tools(*new))

    assert [item.change for item in found.items] == [Change.NEW]
    assert found.items[0].actual.startswith(f"now also in {place}: ")
    assert found.exit_code == 1


@cases(
    (["read", "write"], "read"),
    (["read"], "read"),
    ([], "read"),
    (["read"], "read(to)"),
    (["read(to)"], "read"),
)
def test_known_finding_in_no_other_tool_is_open(old: list[str], new: str) -> None:
    """A report of an older version lists no tools, or no arguments."""
    found = compared(with_tools(*old), with_tools(new))

    assert [item.change for item in found.items] == [Change.OPEN]
    assert found.exit_code == 0


@pytest.mark.parametrize("other", ["fail", "pass", "unasked"])
def test_finding_that_appears_by_chance_never_counts(other: str) -> None:
    chance = report_with("fail")
    chance["verdicts"][0]["sometimes"] = True
    jsonschema.validate(chance, json.loads(SCHEMA.read_text("utf-8")))

    for old, new in ((chance, report_with(other)), (report_with(other), chance)):
        found = compared(old, new)
        assert [item.change for item in found.items] == [Change.SOMETIMES]
        assert found.exit_code == 0


def test_failure_in_a_dropped_revision_is_gone() -> None:
    (item,) = compared(report(("a-b", OLD, "fail")), report(spoken=(NEW,))).items

    assert item.change is Change.GONE
    assert item.actual == f"the server does not speak {OLD} any more"


def test_failure_in_a_newly_spoken_revision_is_new() -> None:
    found = compared(report(spoken=(OLD,)), report(("a-b", NEW, "fail")))

    assert [item.change for item in found.items] == [Change.NEW]


def test_merged_clause_is_compared_under_its_new_id() -> None:
    found = compared(
        report(("old-one", NEW, "fail"), ("old-two", NEW, "pass")),
        report(("a-b", NEW, "fail")),
        renamed={"old-one": "a-b", "old-two": "a-b"},
    )

    assert [(item.rule, item.change) for item in found.items] == [("a-b", Change.OPEN)]


@cases(
    (("should",), "warn", "", 1),
    (("never",), "fail", "", 0),
    (("never",), "broken", "", 0),
    (("critical",), "fail", "high", 0),
    (("high",), "fail", "high", 1),
)
def test_threshold_decides_the_exit_code(
    words: tuple[str, ...], now: str, severity: str, code: int
) -> None:
    old = report(("a-b", NEW, "pass"), severity=severity)
    new = report(("a-b", NEW, now), severity=severity)

    assert compared(old, new, floor=Floor.read(words)).exit_code == code


def test_failed_new_run_exits_with_status_2() -> None:
    assert compared(report(), report(trouble="it left")).exit_code == 2
    assert compared(report(), report(trouble="it left")).trouble == "it left"


def test_same_report_twice_shows_no_change() -> None:
    same = report(("a-b", NEW, "fail"), ("c-d", OLD, "pass"), absent=(("e-f", NEW),))

    found = compared(same, same)
    assert [item.change for item in found.items] == [Change.OPEN]
    assert found.exit_code == 0


def test_same_change_in_several_revisions_is_listed_once() -> None:
    found = compared(
        report(("a-b", OLD, "pass"), ("a-b", NEW, "pass")),
        report(("a-b", OLD, "fail"), ("a-b", NEW, "fail")),
    )

    assert [revisions for _, revisions in grouped(found.items)] == [(OLD, NEW)]
    assert found.count(Change.NEW) == 1


def mixed_comparison() -> Comparison:
    old = report(("a-b", NEW, "pass"), ("c-d", NEW, "fail"), ("e-f", NEW, "fail"))
    new = report(
        ("a-b", NEW, "fail"),
        ("c-d", NEW, "pass"),
        ("e-f", NEW, "fail"),
        ("g-h", NEW, "fail"),
        version="2",
    )
    return compared(old, new)


def test_text_lists_changes_by_kind(golden: SnapshotAssertion) -> None:
    assert "\n".join(text(mixed_comparison())) == golden


def test_markdown_escapes_server_text() -> None:
    new = report(("a-b", NEW, "fail"))
    new["verdicts"][0]["judgements"][0]["actual"] = "<img src=x> | `x` [a](b)\n# y \x1b[31m"

    lines = list(markdown(compared(report(("a-b", NEW, "pass")), new)))

    assert lines[0].startswith("**worse")
    assert lines[-1].count(" | ") == 5
    for raw in ("<img", "`x`", "[a](b)", "\x1b", "\n"):
        assert raw not in lines[-1]


def test_json_document_fits_the_schema() -> None:
    made = {**report(), "since": document(mixed_comparison())}

    jsonschema.validate(made, json.loads(SCHEMA.read_text("utf-8")))
    assert made["since"]["exit_code"] == 1


def test_report_is_loaded_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    path.write_text(json.dumps(report(("a-b", NEW, "fail"))), "utf-8")

    assert load(path) == report(("a-b", NEW, "fail"))


@cases(
    ("{", "1:2: invalid JSON"),
    ("[]", "name one that `check --json` wrote"),
    ("{}", "name one that `check --json` wrote"),
    (json.dumps({"format": FORMAT + 1}), "update mcp-touchstone"),
    (json.dumps({**report(), "verdicts": [3]}), r"\$\.verdicts\[0\] is not as in a report"),
)
def test_invalid_report_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "r.json"
    path.write_text(content, "utf-8")

    with pytest.raises(InputError, match=message):
        load(path)


def test_unreadable_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        load(tmp_path / "no.json")
    with pytest.raises(InputError, match="it is a folder"):
        load(tmp_path)
