"""The pictures of the first page have the words of today; `python scripts/screen.py` makes them."""

import html
import re
from typing import Final

import pytest

from mcp_touchstone.report import install
from mcp_touchstone.results.abilities import Facts, Known, abilities
from mcp_touchstone.results.advice import Word
from scripts.screen import PICTURES, Picture
from tests.commands import CHECKOUT

SOURCE: Final = CHECKOUT / "docs" / "example" / "src" / "notes_server.py"
TEXT: Final = re.compile(r'<text[^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>([^<]*)</text>')


def words(picture: Picture) -> str:
    """Return the words of a picture, line by line, with one space between two."""
    rows: dict[float, dict[float, str]] = {}
    for x, y, text in TEXT.findall(picture.path.read_text("utf-8")):
        rows.setdefault(float(y), {})[float(x)] = html.unescape(text)
    lines = ("".join(text for _, text in sorted(rows[y].items())) for y in sorted(rows))
    return " ".join(" ".join(lines).split())


@pytest.mark.parametrize("picture", PICTURES, ids=lambda one: one.name)
def test_picture_is_small_and_on_the_first_page(picture: Picture) -> None:
    assert picture.path.stat().st_size < 40_000
    assert f"(docs/images/{picture.name}.svg)" in (CHECKOUT / "README.md").read_text("utf-8")
    assert words(picture).startswith(f"$ {picture.line} ")
    assert all(old in SOURCE.read_text("utf-8") for old, _ in picture.edits)


def test_answer_has_the_words_of_today() -> None:
    shown = words(PICTURES[1])

    assert f"{Word.REVIEW}: " in shown
    assert "it runs programs or code by design (execute_code ran Python)" in shown
    assert install.TITLE in shown
    for one in abilities(Facts()):
        assert re.search(rf"{one.power} ({'|'.join(Known)})", shown), one.power
    assert "not tried: what the code that it runs can do; without that, " in shown
