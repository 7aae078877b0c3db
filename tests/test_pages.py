"""The generated pages say what the catalogue says."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import yaml

from mcp_touchstone.loader import load
from tests.conftest import HERE


def test_generated_pages_are_up_to_date() -> None:
    done = subprocess.run(
        [sys.executable, str(HERE.parent / "docs" / "generate.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr


def test_the_readme_counts_what_is_judged() -> None:
    catalogue = load().catalogue
    judged = [clause for clause in catalogue if clause.judged]
    readme = " ".join((HERE.parent / "README.md").read_text(encoding="utf-8").split())

    assert f"{len(judged)} of the {len(catalogue)} clauses" in readme
    assert f"in {len(catalogue.chapters)} chapters" in readme
    assert f"the other {len(catalogue) - len(judged)} " in readme


def test_every_page_has_a_place_on_the_site() -> None:
    """`tox -e docs` checks links too; this is what a new page forgets first."""

    def pages(entries: Iterable[Any]) -> Iterator[str]:
        for entry in entries:
            (value,) = entry.values()
            yield from [value] if isinstance(value, str) else pages(value)

    site = yaml.safe_load((HERE.parent / "mkdocs.yml").read_text("utf-8"))
    told = set(pages(site["nav"]))
    there = {path.name for path in (HERE.parent / "docs").glob("*.md")}

    assert there <= told, "name it under nav in mkdocs.yml"
