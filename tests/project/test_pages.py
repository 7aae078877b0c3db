"""The pages of the site: the navigation, the links, the generated pages."""

import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.text import Text

import mcp_touchstone
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.loader import BOTH, SECURITY, load, rows
from scripts import attacked, pairs, screen, witnesses
from scripts.pages import pages
from tests.conftest import HERE

ROOT = HERE.parent
WRITTEN = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").glob("*/*.md"),
    *(ROOT / name / "README.md" for name in ("reference_server", "security_suite")),
    HERE / "reference_server" / "README.md",
]
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)")


def test_the_readme_counts_what_is_judged_in_round_numbers() -> None:
    """A new clause or threat touches no page, until fifty are new."""
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    catalogue = [clause for clause in load().catalogue if not clause.draft]

    for word, known in (("clauses", catalogue), ("threats", load(SECURITY).catalogue)):
        said = int(re.findall(rf"more than (\d+) {word}", readme)[0])
        assert said < sum(row.judged for row in known) <= said + 50
    assert f"in {len({clause.place for clause in catalogue})} chapters" in readme


@pytest.mark.parametrize("page", ["README.md", "ARCHITECTURE.md"])
def test_first_pages_have_at_most_150_lines(page: str) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8").splitlines()) <= 150


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    return pages() | witnesses.pages() | attacked.pages() | pairs.pages()


def test_the_navigation_names_every_page(generated: dict[str, str]) -> None:
    def named(entries: Iterable[Any]) -> Iterator[str]:
        for entry in entries:
            (value,) = entry.values()
            yield from [value] if isinstance(value, str) else named(value)

    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    top = {name for name in generated if "/" not in name}

    docs = ROOT / "docs"
    written = {path.relative_to(docs).as_posix() for path in docs.glob("*/*.md")}

    assert written | top <= set(named(site["nav"]))


@pytest.mark.parametrize("page", WRITTEN, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_to_files_of_the_project(page: Path) -> None:
    targets = LINK.findall(page.read_text("utf-8"))

    assert [one for one in targets if not (page.parent / one).exists()] == []


def test_each_clause_and_threat_has_one_entry(generated: dict[str, str]) -> None:
    chapters = [
        text for name, text in generated.items() if name.startswith(("clauses/", "threats/"))
    ]
    entries = Counter(re.findall(r"(?m)^## (\S+)$", "\n".join(chapters)))

    assert entries == Counter(row.id for row in rows(BOTH))


def test_the_indexes_link_every_chapter(generated: dict[str, str]) -> None:
    for index, folders in {
        "clauses.md": ("clauses/", "sections/"),
        "threats.md": ("threats/",),
    }.items():
        linked = set(LINK.findall(generated[index]))
        assert linked == {name for name in generated if name.startswith(folders)}


def test_each_clause_is_on_the_page_of_sections_of_each_of_its_revisions(
    generated: dict[str, str],
) -> None:
    for clause in load().catalogue:
        for revision in clause.revisions:
            assert f"#{clause.id})" in generated[f"sections/{revision}.md"]


def test_committed_pages_are_wrapped() -> None:
    paths = [*(ROOT / "docs").glob("*/*.md"), ROOT / "security_suite" / "README.md"]
    paths += [ROOT / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")]
    long = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in paths
        for number, line in prose(path.read_text("utf-8"))
        if len(line) > 110
    ]

    assert long == []


def test_the_page_on_stability_agrees_with_the_package() -> None:
    page = (ROOT / "docs" / "reference" / "stability.md").read_text("utf-8")
    promises = dict(re.findall(r"(?m)^\| ([^|]+) \| (.+) \|$", page))
    schema = json.loads((ROOT / "src/mcp_touchstone/report/schema.json").read_text("utf-8"))
    report = schema["properties"]
    statuses = report["summary"]["properties"]["exit_code"]["enum"]

    assert f"`format` is {report['format']['const']}." in promises["`report.json`"]
    assert [int(one) for one in re.findall(r"\b\d+\b", promises["exit status"])] == statuses
    names = {
        one.removeprefix("mcp_touchstone.") for one in re.findall(r"`(.*?)`", promises["Python"])
    }
    assert names == set(mcp_touchstone.__all__)
    assert all(revision in page for revision in rev.ALL)


def prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield number and text of lines that are neither code nor part of a table."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        code ^= line.lstrip().startswith("```")
        if not code and not line.startswith(("|", "    ")):
            yield number, line


@pytest.mark.slow
def test_the_picture_of_the_screen_is_that_of_a_run() -> None:
    picture = screen.PICTURES[0]
    drawn = re.findall(r"<text[^>]*>([^<]*)</text>", picture.path.read_text("utf-8"))
    said = Text.from_ansi(f"$ {picture.line}\n{screen.printed(picture)}").plain

    def words(text: str) -> str:
        return re.sub(r"\d+", "1", re.sub(r"[\s\u00a0]", "", text))

    assert words(html.unescape("".join(drawn))) == words(said)
