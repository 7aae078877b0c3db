"""A message that is almost an answer is explained if the answer is missing."""

import sys

import pytest

from mcp_touchstone.catalog.loader import load
from mcp_touchstone.engine.runner import Choice, judge
from mcp_touchstone.target.target import ROOT, Target
from tests.conftest import HERE

SERVER = str(HERE / "hostile" / "answers_beside_the_id.py")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("string", 'an answer under id "101" to a request under id 101'),
        ("null", "an answer under id null to a request under id 101"),
        ("missing", "an answer without an id"),
        ("capital", "an answer with misspelled members: Jsonrpc, Id, Result"),
        ("stderr", "it writes JSON-RPC to stderr, and nothing to stdout"),
    ],
)
def test_near_miss_answer_is_explained(kind: str, words: str) -> None:
    target = Target(command=(sys.executable, "-S", SERVER, ".", ROOT, ".", kind), startup=5.0)

    run = judge(target, load(), Choice(select=("ping",), revisions=("2025-11-25",)))

    assert words in run.trouble, run.trouble
