"""Clause coverage: counts, output, and missing mutants."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcp_touchstone.catalog import loader
from mcp_touchstone.catalog.clause import Observable, load_catalogue
from mcp_touchstone.catalog.scenario import Registry, collecting, scenario
from scripts import clause_coverage as coverage
from tests.conftest import HERE

ROW = """
[[clause]]
id = "tiny-{name}"
level = "MUST"
statement = "s"
how = "h"
source = {{ "2025-11-25" = "x", "2026-07-28" = "x" }}
{more}
"""


@dataclass
class StubMutant:
    name: str
    breaks: tuple[str, ...]
    revision: str


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    (tmp_path / "basic").mkdir()
    rows = {
        "always": "",
        "sometimes": "conditional = true",
        "later": 'conditional = true\ndeferred = "nobody has come to it"',
        "never": 'unobservable = "it happens in the dark"',
    }
    (tmp_path / "basic" / "tiny.toml").write_text(
        'title = "t"\nsummary = "s"\n'
        + "".join(ROW.format(name=name, more=more) for name, more in rows.items())
    )
    made = Registry(load_catalogue(tmp_path), file="basic/tiny.py")
    collecting(made)

    @scenario("tiny-always", "tiny-sometimes")
    def answers_it(talk: object) -> None:
        """Answer it."""

    collecting(None)
    return made


MUTANTS = {"Sins": StubMutant("Sins", ("tiny-always",), "2025-11-25")}


def test_shares_are_counted_by_observability(registry: Registry) -> None:
    found = coverage.measure(registry, MUTANTS)

    assert str(found.share(Observable.YES)) == "1 of 1 (100 %)"
    assert str(found.share(Observable.CONDITIONAL)) == "1 of 2 (50 %)"
    assert str(found.share()) == "2 of 4 (50 %)"
    assert found.shares()[Observable.NO] == "1"
    assert found.survivors == ["tiny-sometimes"]


def test_share_percentage_is_rounded_down() -> None:
    assert str(coverage.Share(199, 200)) == "199 of 200 (99 %)"


def test_row_has_a_mark_for_each_revision(registry: Registry) -> None:
    rows = coverage.measure(registry, MUTANTS).rows

    marks = {
        name: [row.mark(r) for r in ("2025-06-18", "2025-11-25", "2026-07-28")]
        for name, row in rows.items()
    }
    assert marks == {
        "tiny-always": ["", "●", "○"],
        "tiny-sometimes": ["", "○", "○"],
        "tiny-later": ["", "-", "-"],
        "tiny-never": ["", "-", "-"],
    }


def test_unjudged_clause_is_listed_with_its_reason(registry: Registry) -> None:
    shown = "\n".join(coverage.text(coverage.measure(registry, MUTANTS)))

    for word in ("tiny-later", "nobody has come to it", "tiny-never", "it happens in the dark"):
        assert word in shown
    assert "1 mutant" in shown
    assert "tiny-sometimes" in shown


def test_coverage_script_prints_the_shares_of_all_chapters() -> None:
    script = HERE.parent / "scripts" / "clause_coverage.py"
    shown = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=True
    ).stdout
    found = coverage.measure(loader.load(), coverage.mutants())
    last = next(line for line in shown.splitlines() if line.startswith("all chapters"))
    for share in found.shares().values():
        assert share in last
    assert f"{found.mutants} mutants" in shown
    assert found.survivors == []
