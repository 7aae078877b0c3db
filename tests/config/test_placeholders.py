"""Words in braces that are none of ours: a misspelt one is refused, a doubtful one is named."""

import sys

import pytest

from mcp_touchstone.target.placeholders import doubts
from tests.commands import run_here
from tests.conftest import HERE


@pytest.mark.parametrize(
    ("word", "meant", "refused"),
    [
        ("{rot}", "{root}", True),
        ("{ROOT}", "{root}", True),
        ("--root={roots}", "{root}", True),
        ("{pyton}/bin", "{python}", True),
        ("{print}", "{port}", False),
        ("{workspace}", "", False),
        ("open('{rot}/a')", "{root}", False),
    ],
)
def test_a_word_in_braces_that_is_not_known(word: str, *, meant: str, refused: bool) -> None:
    (doubt,) = doubts(["node", word, word])

    assert (doubt.meant, doubt.refused) == (meant, refused)
    assert doubt.name in str(doubt)
    assert meant in str(doubt)


@pytest.mark.parametrize(
    "word",
    [
        "{root}/a",
        "--port={port}",
        '{"port": 1}',
        "awk '{x = 1}'",
        "f'{workspace} {x}'",
        "${HOME}x y",
    ],
)
def test_words_of_ours_and_of_other_languages_are_no_doubts(word: str) -> None:
    assert list(doubts([word])) == []


def test_a_misspelt_word_is_refused_and_a_doubtful_one_is_a_remark() -> None:
    wrong = run_here("check", "--", "node", "server.js", "{rot}")
    assert wrong.returncode == 2
    assert wrong.stderr.strip().endswith("there is no {rot}; did you mean {root}?")

    toy = [sys.executable, "-S", str(HERE / "toy_server.py"), "{root}", "echo", "{where}"]
    done = run_here("check", "--quick", "--select", "ping", "--", *toy)
    assert "{where} is none of {root}, {python}, {port}" in " ".join(done.stdout.split())
