"""Coverage: counted right, shown twice from the same data, and honest where mutants are absent."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from mcp_touchstone import loader
from mcp_touchstone.clause import Observable, load_catalogue
from mcp_touchstone.cli import main
from mcp_touchstone.report import coverage
from mcp_touchstone.scenario import Registry, collecting, scenario

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
class Sinner:
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
    made = Registry(load_catalogue(tmp_path), place="basic/tiny.py")
    collecting(made)

    @scenario("tiny-always", "tiny-sometimes")
    def answers_it(talk: object) -> None:
        """Answer it."""

    collecting(None)
    return made


MUTANTS = {"Sins": Sinner("Sins", ("tiny-always",), "2025-11-25")}


def test_shares_are_counted_by_what_a_client_can_see(registry: Registry) -> None:
    found = coverage.measure(registry, MUTANTS)

    assert str(found.share(Observable.YES)) == "1 of 1 (100 %)"
    assert str(found.share(Observable.CONDITIONAL)) == "1 of 2 (50 %)"
    assert str(found.share()) == "2 of 4 (50 %)"
    assert found.shares()[Observable.NO] == "1"
    assert found.survivors == ["tiny-sometimes"]


def test_a_share_is_never_rounded_up() -> None:
    assert str(coverage.Share(199, 200)) == "199 of 200 (99 %)"


def test_a_row_says_what_becomes_of_it_in_each_revision(registry: Registry) -> None:
    rows = coverage.measure(registry, MUTANTS).rows

    marks = {name: [row.mark(r) for r in ("2025-06-18", "2025-11-25", "2026-07-28")]
             for name, row in rows.items()}  # fmt: skip
    assert marks == {
        "tiny-always": ["", "●", "○"],
        "tiny-sometimes": ["", "○", "○"],
        "tiny-later": ["", "-", "-"],
        "tiny-never": ["", "-", "-"],
    }


def test_what_is_not_judged_stands_with_its_reason_on_page_and_terminal(
    registry: Registry,
) -> None:
    found = coverage.measure(registry, MUTANTS)

    for lines in (coverage.page(found), coverage.text(found)):
        shown = "\n".join(lines)
        for word in ("tiny-later", "nobody has come to it", "tiny-never", "it happens in the dark"):
            assert word in shown
        assert "1 mutant" in shown
        assert "tiny-sometimes" in shown


def test_absent_mutants_are_said_to_be_absent(registry: Registry) -> None:
    """In a wheel there is no tests folder: nothing is claimed about mutants there."""
    found = coverage.measure(registry, None)

    assert found.survivors == []
    assert coverage.NO_MUTANTS in "\n".join(coverage.text(found))
    assert coverage.NO_MUTANTS in "\n".join(coverage.page(found))


def test_the_loader_knows_no_mutants_outside_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loader, "home", lambda: tmp_path)

    assert loader.mutants() is None


def test_one_command_prints_the_same_counts_as_the_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["coverage"]) == 0

    shown = capsys.readouterr().out
    known = loader.mutants()  # none on a built wheel
    found = coverage.measure(loader.load(), known)
    page = "\n".join(coverage.page(found))
    last = next(line for line in shown.splitlines() if line.startswith("all chapters"))
    for share in found.shares().values():
        assert share in last
        assert f"| {share} |" in page
    assert (known is None) is not bool(re.search(r"\d+ mutants", shown))
    assert found.survivors == []
