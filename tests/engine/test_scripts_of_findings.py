"""Reproduction scripts recreate the variables, folders, promises and files of a finding."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_touchstone.catalog.loader import SECURITY, load
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import judge
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.sandbox.sandbox import Method, probe
from mcp_touchstone.target.promises import PromiseTerms
from mcp_touchstone.target.target import Target
from tests.cases import cases
from tests.fakes.matrix import attacked, near, target_of
from tests.reproduction import script_of, shows_it_again

pytestmark = [pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX"), pytest.mark.slow]

FAKES = Path(__file__).parents[1] / "fakes"
CANARY = "FOUND: a canary came back"


def fake_command(words: str) -> tuple[str, ...]:
    """Return a shell command that starts a fake with these words."""
    return ("sh", "-c", f'exec "{sys.executable}" "{FAKES}" {words}')


def found(target: Target, threat: str) -> Run:
    return judge(target, load(SECURITY), Choice(select=(threat,), jobs=2))


def test_script_sets_variables_that_contain_the_root(tmp_path: Path) -> None:
    env = {"SERVED": "{root}", "ODD": 'it\'s "quoted" $HOME'}
    target = Target(command=fake_command('NetworkShare "$SERVED" "$ODD"'), env=env)

    shows_it_again(script_of(found(target, "traversal-absolute")), CANARY, tmp_path)


def test_script_works_for_a_server_that_lowercases_its_root(tmp_path: Path) -> None:
    folded = 'cd "$(echo "{root}" | tr A-Z a-z)" && exec'
    server = ("sh", "-c", f'{folded} "{sys.executable}" "{FAKES}" NetworkShare "$(pwd)"')
    (tmp_path / "run").mkdir()
    script = script_of(found(Target(command=server), "traversal-absolute"))

    shows_it_again(script, CANARY, tmp_path / "run")


def test_script_omits_the_value_of_a_secret_variable(tmp_path: Path) -> None:
    server = fake_command('NetworkShare "$(test -n "$API_KEY" && echo {root})"')
    target = Target(command=server, env={"API_KEY": "abcdef-12345"})
    script = script_of(found(target, "traversal-absolute"))

    assert "abcdef-12345" not in script
    shows_it_again(script, CANARY, tmp_path, API_KEY="abcdef-12345")


def test_script_recreates_the_working_folder_and_the_seeded_root(tmp_path: Path) -> None:
    (tmp_path / "seed" / "part").mkdir(parents=True)
    (tmp_path / "place").mkdir()
    target = Target(
        command=fake_command('NetworkShare "$(cd .. && pwd)"'),
        cwd="{root}/part",
        root_from=tmp_path / "seed",
    )

    shows_it_again(script_of(found(target, "traversal-absolute")), CANARY, tmp_path / "place")


def test_promise_is_judged_with_the_environment_it_declares() -> None:
    target = replace(
        target_of("ReadOnlyOnRequest"),
        command=fake_command('ReadOnlyOnRequest "{root}" $MODE'),
        promise={"read-only": PromiseTerms(env={"MODE": "--read-only"})},
    )

    assert [v.outcome for v in found(target, "modes-read-only").verdicts] == [Outcome.PASS]


def test_script_of_a_broken_promise_sets_its_environment(tmp_path: Path) -> None:
    target = replace(
        target_of("WritesWhenForced"),
        command=fake_command('WritesWhenForced "{root}" $MODE'),
        promise={"read-only": PromiseTerms(env={"MODE": "--read-only"})},
    )
    script = script_of(found(target, "modes-read-only-switch"))

    assert "MODE=--read-only" in script
    shows_it_again(script, "FOUND: the root changed", tmp_path)


@cases(
    ("ReadOnlyButForEdits", "modes-read-only", "FOUND: the root changed"),
    ("IgnoresItsSwitch", "modes-dry-run", "FOUND: the root changed"),
    ("DeniesOneLevel", "deny-direct", CANARY),
    ("DeniesItsOwnAtTheTop", "deny-direct", CANARY),
    ("ForgetsBuildOutputWhenMaking", "deny-write-only", "FOUND: a denied file changed"),
    ("WalksThroughLinks", "links-walk", CANARY),
    ("DiesOfLongNames", "traversal-hostile-names", "FOUND: the question at the end got no"),
    # named in a line
    ("ChecksTheFirstOfTwo", "messages-keys", CANARY),
    ("JoinsLists", "lines-values", CANARY),
    ("PrintsFiles", "messages-echoed", "FOUND: text inside a message was read as a message"),
    ("LooksForTheNextBrace", "messages-inside", "FOUND: text inside a message was read as"),
)
def test_script_recreates_the_files_of_a_call_and_of_a_line(
    tmp_path: Path, name: str, threat: str, said: str
) -> None:
    shows_it_again(script_of(attacked(name, (threat,))), said, tmp_path)


@pytest.mark.parametrize("name", ["NetworkShare", "RemovesTheOldFirst"])
def test_script_of_a_sandboxed_finding_runs_in_a_sandbox(name: str, tmp_path: Path) -> None:
    for method in Method:
        if probe(method):
            pytest.skip(f"{method}: {probe(method)}")
    script = script_of(attacked(name, near(name), Method.UNSHARE))

    assert "bwrap --die-with-parent --unshare-user" in script
    shows_it_again(script, "FOUND: ", tmp_path)
    shows_it_again(script, "FOUND: ", tmp_path, SANDBOX="off")


def test_script_reports_missing_bubblewrap(tmp_path: Path) -> None:
    if why := probe(Method.UNSHARE):
        pytest.skip(why)
    target = replace(target_of("NetworkShare"), method=Method.UNSHARE)
    script = script_of(found(target, "traversal-absolute"))
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": str(tmp_path)},
    )

    assert (done.returncode, done.stdout) == (
        2,
        "bubblewrap (bwrap) is missing: install it, or set SANDBOX=off\n",
    )
