"""The page of witnesses: what a run over HTTP adds, and what is not published."""

from typing import Any

from mcp_touchstone.catalog.loader import load
from scripts import pairs
from scripts.witnesses import distilled, page


def report(*found: tuple[str, str]) -> dict[str, Any]:
    verdicts = [
        {
            "clause": clause,
            "outcome": outcome,
            "revision": "2025-11-25",
            "judgements": [{"outcome": outcome, "expected": "a", "actual": "b", "wire": []}],
        }
        for clause, outcome in found
    ]
    return {"revisions": {"spoken": ["2025-11-25"]}, "verdicts": verdicts}


def written(**reports: dict[str, Any]) -> str:
    named = {name.replace("_", "-"): (name, one) for name, one in reports.items()}
    catalogue = load().catalogue
    return "\n".join(page(distilled(named, catalogue), catalogue))


def test_run_over_http_lists_what_stdio_did_not_find() -> None:
    both = ("jsonrpc-invalid-request", "warn")
    text = written(one=report(both), one_http=report(both, ("sessions-ended-404", "fail")))

    _, over_http = text.split("## one_http")
    assert "**FAIL `sessions-ended-404`**" in over_http
    assert "**warn `jsonrpc-invalid-request`**" not in over_http
    assert "`jsonrpc-invalid-request`" in over_http


def test_findings_that_could_be_used_against_a_server_are_neither_listed_nor_counted() -> None:
    found = [
        ("origin-refused", "fail"),
        ("streams-replay-own", "fail"),
        ("ping-empty-response", "pass"),
    ]
    text = written(one_http=report(*found))

    assert "| one_http | 2025-11-25 | 1 | 0 | 0 | 0 |" in text
    assert "origin-refused" not in text
    assert text.count("streams-replay-own") == 1, "only the sentence that leaves it out"
    assert "Nothing to report." in text


def test_the_page_of_pairs_says_who_talks_and_what_breaks() -> None:
    talked = {
        "client": "one",
        "server": "a",
        "transport": "stdio",
        "revision": "2025-11-25",
        "trouble": "",
        "client breaks": ["client-initialized"],
        "server breaks": [],
    }
    silent = {**talked, "server": "b", "revision": "", "trouble": "no", "client breaks": []}

    text = "\n".join(pairs.page([talked, silent]))

    assert "| client | a | b |" in text
    assert "| one | 2025-11-25, **1c** | no |" in text
    assert "- the client one breaks `client-initialized` with a" in text
