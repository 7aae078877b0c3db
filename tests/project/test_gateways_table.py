"""The table of real gateways is what the script makes of its rows."""

from mcp_touchstone.catalog.loader import GATEWAYS, rows
from scripts import gateways


def test_the_page_has_the_present_table() -> None:
    text = gateways.PAGE.read_text("utf-8")

    assert gateways.page(text) == text


def test_each_row_names_clauses_that_exist() -> None:
    known = {clause.id for clause in rows(GATEWAYS)}

    assert all({*row["verdicts"]} <= known for row in gateways.rows())


def test_a_report_is_distilled_to_its_newest_revision() -> None:
    verdicts = [
        {"clause": "gateway-roots", "revision": revision, "outcome": outcome}
        for revision, outcome in (("2025-11-25", "warn"), ("2026-07-28", "pass"))
    ]

    row = gateways.distilled("a", "b", {"verdicts": verdicts})

    assert (row["revision"], row["verdicts"]) == ("2026-07-28", {"gateway-roots": "pass"})
