"""The table of advisories: its rows are complete, and say to which versions they apply."""

from pathlib import Path

import pytest

from mcp_touchstone.advisories import table
from mcp_touchstone.advisories.table import advisories, applying, by_name, load, seen_in
from mcp_touchstone.catalog.clause import CatalogueError
from mcp_touchstone.catalog.loader import BOTH, CLIENTS, rows
from mcp_touchstone.catalog.sdk import NPM, PYPI, Package
from mcp_touchstone.cli import main
from tests.cases import cases

ROW = """
[[advisory]]
id = "GHSA-1"
date = 2026-01-01
title = "a fault"
affected = [{registry = "npm", package = "server", from = "1.0.0", fixed = "1.2.0"}]
shown_by = ["ping-empty-response"]
source = "https://example.org/1"
read = 2026-01-02
"""
AUDIENCE, SUBJECT = "GHSA-w4fh-qvv9-3v23", "GHSA-jpw9-pfvf-9f58"


def ids(*packages: Package, side: str = "server") -> set[str]:
    return {advisory.id for advisory, _package in applying(packages, side)}


def test_every_rule_of_the_table_exists_and_has_the_side_of_its_advisory() -> None:
    catalogue = rows(BOTH)
    for advisory in advisories():
        sides = {
            "client" if catalogue[rule].group == CLIENTS else "server" for rule in advisory.shown_by
        }
        assert sides <= {advisory.side}, advisory.id


def test_every_id_and_alias_is_used_once() -> None:
    names = [name for advisory in advisories() for name in advisory.names]
    assert len(names) == len(set(names))


def test_rule_names_the_advisories_that_it_shows() -> None:
    assert seen_in("deny-alias") == ("CVE-2026-25724",)
    assert seen_in("ping-empty-response") == ()


@cases(
    ("1.9.0", False),
    ("1.10.0a1", False),
    ("1.10.0", True),
    ("1.29.1", True),
    ("2.0.0", True),
    ("2.1.1", True),
    ("2.2.0rc1", True),
)
def test_versions_between_introduction_and_correction_are_open(version: str, opened: bool) -> None:
    known = {one.id: one for one in advisories()}
    assert known[AUDIENCE].is_open_in(Package("mcp", version, PYPI)) is opened


@cases("1.30.0", "2.2.0", "3.0.0")
def test_correction_that_is_off_by_default_applies_to_corrected_versions(version: str) -> None:
    assert AUDIENCE in ids(Package("mcp", version, PYPI))


def test_correction_that_is_on_by_default_does_not_apply_to_corrected_versions() -> None:
    sessions = "GHSA-84m7-p3x7-pcfv"
    assert sessions in ids(Package("mcp", "2.1.1", PYPI))
    assert sessions not in ids(Package("mcp", "2.2.0", PYPI))


def test_range_of_versions_counts_as_its_first_one() -> None:
    assert "GHSA-w48q-cv73-mx4w" in ids(Package("@modelcontextprotocol/sdk", "^1.23.0", NPM))


def test_packages_of_another_registry_do_not_count() -> None:
    assert ids(Package("mcp", "1.9.0", NPM)) == set()


def test_advisories_on_clients_do_not_apply_to_servers() -> None:
    redirect, package = "GHSA-6prh-2h8m-c8cw", Package("@modelcontextprotocol/sdk", "1.31.0", NPM)

    assert redirect not in ids(package)
    assert redirect in ids(package, side="client")


@cases(
    ("sourc", "unknown key 'sourc'; did you mean 'source'?"),
    ("source", "source is missing"),
    ("shown_by", "exactly one of shown_by and untested is needed"),
    ("affected", "exactly one of affected and product is needed"),
    ("fixed", "fixed 'soon' is no version"),
    ("side", "side is neither 'server' nor 'client'"),
)
def test_wrong_row_is_an_error_that_names_it(tmp_path: Path, wrong: str, said: str) -> None:
    texts = {
        "sourc": ROW + 'sourc = "x"\n',
        "source": ROW.replace("https://example.org/1", ""),
        "shown_by": ROW + 'untested = "x"\n',
        "affected": ROW + 'product = "x"\n',
        "fixed": ROW.replace("1.2.0", "soon"),
        "side": ROW + 'side = "x"\n',
    }
    path = tmp_path / "one.toml"
    path.write_text(texts[wrong], "utf-8")

    with pytest.raises(CatalogueError) as error:
        load(path)

    assert str(error.value).startswith("advisories/one.toml: GHSA-1")
    assert said in str(error.value)


@cases("cve-2026-116684", "GHSA-w4fh-qvv9-3v23")
def test_explain_shows_an_advisory_by_any_of_its_ids(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["explain", name]) == 0

    said = capsys.readouterr().out
    assert "mcp from 1.10.0 before 1.30.0; mcp from 2.0.0 before 2.2.0" in said
    assert "AuthSettings(validate_token_resource=True); off by default" in said
    assert "--select authorization-audience -- COMMAND" in said


def test_explain_of_an_advisory_on_clients_runs_a_client(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["explain", "GHSA-rwrf-2pqf-9j8j"])

    assert "client --advisories --select client-ref-not-fetched" in capsys.readouterr().out


def test_explain_does_not_offer_the_list_for_a_fault_of_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "one.toml").write_text(ROW + 'sourc = "x"\n', "utf-8")
    monkeypatch.setattr(table, "HOME", tmp_path)
    advisories.cache_clear()
    by_name.cache_clear()
    try:
        assert main(["explain", "ping-empty-response"]) == 2
    finally:
        advisories.cache_clear()
        by_name.cache_clear()

    said = capsys.readouterr().err
    assert "unknown key 'sourc'; did you mean 'source'?" in said
    assert "list" not in said
