"""The table of real gateways is what the script makes of its rows."""

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
