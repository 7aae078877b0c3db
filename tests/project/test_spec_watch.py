"""The script that compares the specification with the catalogue."""

import runpy
from pathlib import Path

import pytest

from scripts import sentences
from tests.cases import cases
from tests.conftest import HERE

WATCH = runpy.run_path(str(HERE.parent / "scripts" / "spec_watch.py"))

KNOWN = {
    "docs/specification/draft/changelog.mdx": "# Changelog\n\nChanges will accumulate here.\n",
    "docs/docs.json": '["specification/2025-11-25/index", "specification/2026-07-28/index"]',
    "docs/extensions/overview.mdx": "[Apps](/extensions/apps/overview)",
    "docs/specification/2025-11-25/index.mdx": "",
    "docs/specification/2026-07-28/index.mdx": "",
}


@cases(
    ("", "", "nothing new"),
    (
        "docs/specification/draft/changelog.mdx",
        "## Major changes\n\n1. Remove sessions\n- Add events\n",
        "the draft changes: Remove sessions\nthe draft changes: Add events",
    ),
    ("docs/docs.json", '"specification/2027-01-01"', "a new revision: 2027-01-01"),
    (
        "docs/extensions/overview.mdx",
        "[Events](/extensions/events/overview)",
        "a new extension: events/overview",
    ),
    (
        "docs/specification/2026-07-28/index.mdx",
        "It MUST end.",
        "2026-07-28 index has a new sentence (5c3f1769c7): It MUST end.",
    ),
)
def test_watch_names_what_is_new(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    text: str,
    expected: str,
) -> None:
    monkeypatch.setattr(sentences, "rows", list)
    for name, content in {**KNOWN, **({path: text} if path else {})}.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, "utf-8")

    status = WATCH["main"]([str(tmp_path)])

    assert capsys.readouterr().out.strip() == expected
    assert status == (expected != "nothing new")


def test_watch_says_in_one_line_that_a_place_cannot_be_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert WATCH["main"]([str(tmp_path / "none")]) == 2
    assert len(capsys.readouterr().out.splitlines()) == 1
