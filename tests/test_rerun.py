"""A finding is shown again as it was run: with its variables, folder, promises and trees."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_touchstone.gate import judge
from mcp_touchstone.loader import SECURITY, load
from mcp_touchstone.plan import Choice
from mcp_touchstone.results import Run
from mcp_touchstone.target import Target
from mcp_touchstone.terms import Terms
from mcp_touchstone.verdict import Outcome
from tests.fakes.matrix import attacked, target_of
from tests.rerun import script_of, shows_it_again

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")

FAKES = Path(__file__).parent / "fakes"
CANARY = "FOUND: a canary came back"


def told(words: str) -> tuple[str, ...]:
    """Give the command of a shell that starts a fake with these words."""
    return ("sh", "-c", f'exec "{sys.executable}" "{FAKES}" {words}')


def found(target: Target, threat: str) -> Run:
    return judge(target, load(SECURITY), Choice(select=(threat,), jobs=2))


def test_a_variable_that_names_the_root_is_set_again(tmp_path: Path) -> None:
    env = {"SERVED": "{root}", "ODD": 'it\'s "quoted" $HOME'}
    target = Target(command=told('NetworkShare "$SERVED" "$ODD"'), env=env)

    shows_it_again(script_of(found(target, "traversal-absolute")), CANARY, tmp_path)


def test_a_server_that_folds_the_name_of_its_root_finds_it_again(tmp_path: Path) -> None:
    folded = 'cd "$(echo "{root}" | tr A-Z a-z)" && exec'
    server = ("sh", "-c", f'{folded} "{sys.executable}" "{FAKES}" NetworkShare "$(pwd)"')
    (tmp_path / "run").mkdir()
    script = script_of(found(Target(command=server), "traversal-absolute"))

    shows_it_again(script, CANARY, tmp_path / "run")


def test_a_variable_that_looks_secret_is_asked_for_and_not_written_down(tmp_path: Path) -> None:
    server = told('NetworkShare "$(test -n "$API_KEY" && echo {root})"')
    target = Target(command=server, env={"API_KEY": "abcdef-12345"})
    script = script_of(found(target, "traversal-absolute"))

    assert "abcdef-12345" not in script
    shows_it_again(script, CANARY, tmp_path, API_KEY="abcdef-12345")


def test_the_folder_it_was_started_in_and_what_the_root_began_with_are_there(
    tmp_path: Path,
) -> None:
    (tmp_path / "seed" / "part").mkdir(parents=True)
    (tmp_path / "place").mkdir()
    target = Target(
        command=told('NetworkShare "$(cd .. && pwd)"'),
        cwd="{root}/part",
        seed=tmp_path / "seed",
    )

    shows_it_again(script_of(found(target, "traversal-absolute")), CANARY, tmp_path / "place")


def test_a_promise_is_kept_as_it_is_started_for_it() -> None:
    target = replace(
        target_of("ReadOnlyOnRequest"),
        command=told('ReadOnlyOnRequest "{root}" $MODE'),
        terms={"read-only": Terms(env={"MODE": "--read-only"})},
    )

    assert [v.outcome for v in found(target, "modes-read-only").verdicts] == [Outcome.PASS]


def test_a_promise_that_is_broken_is_broken_again_as_it_was_started(tmp_path: Path) -> None:
    target = replace(
        target_of("WritesWhenForced"),
        command=told('WritesWhenForced "{root}" $MODE'),
        terms={"read-only": Terms(env={"MODE": "--read-only"})},
    )
    script = script_of(found(target, "modes-read-only-switch"))

    assert "MODE=--read-only" in script
    shows_it_again(script, "FOUND: the root changed", tmp_path)


@pytest.mark.parametrize(
    ("name", "threat", "said"),
    [
        ("ReadOnlyButForEdits", "modes-read-only", "FOUND: the root changed"),
        ("ForgetsItsSwitch", "modes-dry-run", "FOUND: the root changed"),
        ("DeniesOneLevel", "deny-direct", CANARY),
        ("DeniesItsOwnAtTheTop", "deny-direct", CANARY),
        ("ForgetsBuildOutputWhenMaking", "deny-write-only", "FOUND: what is denied changed"),
        ("WalksThroughLinks", "links-walk", CANARY),
        ("DiesOfLongNames", "traversal-hostile-names", "FOUND: the question at the end got no"),
    ],
)
def test_what_a_call_meets_is_there(name: str, threat: str, said: str, tmp_path: Path) -> None:
    shows_it_again(script_of(attacked(name, (threat,))), said, tmp_path)


@pytest.mark.parametrize(
    ("name", "threat", "said"),
    [
        ("ChecksTheFirstOfTwo", "messages-keys", CANARY),
        ("JoinsLists", "lines-values", CANARY),
        ("PrintsWhatItReads", "messages-echoed", "FOUND: what stood inside a message came as one"),
        ("LooksForTheNextBrace", "messages-inside", "FOUND: what stood inside a message came as"),
    ],
)
def test_what_a_line_speaks_of_is_there(name: str, threat: str, said: str, tmp_path: Path) -> None:
    shows_it_again(script_of(attacked(name, (threat,))), said, tmp_path)
