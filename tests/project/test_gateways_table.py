"""The table of real gateways is what the script makes of its rows."""

import json
from pathlib import Path

import pytest

from mcp_touchstone.catalog.loader import GATEWAYS, rows
from scripts import gateways


def test_the_page_has_the_present_table() -> None:
    text = gateways.PAGE.read_text("utf-8")

    assert gateways.page(text) == text


def test_each_row_names_clauses_that_exist() -> None:
    known = {clause.id for clause in rows(GATEWAYS)}

    assert all({*row["verdicts"]} <= known for row in gateways.rows())


def test_a_report_is_distilled_to_the_gravest_outcome_of_each_clause() -> None:
    verdicts = [
        {"clause": clause, "revision": revision, "outcome": outcome}
        for clause, revision, outcome in (
            ("gateway-roots", "2025-11-25", "warn"),
            ("gateway-roots", "2026-07-28", "pass"),
            ("gateway-tools-many", "2025-11-25", "warn"),
            ("gateway-tools-many", "2026-07-28", "unseen"),
        )
    ]

    row = gateways.distilled("a", "b", {"verdicts": verdicts})

    assert row["revision"] == "2025-11-25, 2026-07-28"
    assert row["verdicts"] == {"gateway-roots": "warn", "gateway-tools-many": "warn"}


def test_a_report_of_some_rules_replaces_what_a_row_has_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gateways, "ROWS", tmp_path / "rows.jsonl")

    def judged(word: str, **outcomes: str) -> object:
        verdicts = [
            {"clause": f"gateway-{name}", "revision": "2025-11-25", "outcome": outcome}
            for name, outcome in outcomes.items()
        ]
        report = tmp_path / "report.json"
        report.write_text(json.dumps({"verdicts": verdicts}))
        gateways.main([word, "a", "b", str(report)])
        return [row["verdicts"] for row in gateways.rows()]

    assert judged("add", roots="warn", sampling="pass") == [
        {"gateway-roots": "warn", "gateway-sampling": "pass"}
    ]
    assert judged("more", roots="pass") == [{"gateway-roots": "pass", "gateway-sampling": "pass"}]
    assert judged("add", roots="warn") == [{"gateway-roots": "warn"}]
