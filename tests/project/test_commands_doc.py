"""The commands, options and inputs in the documentation exist."""

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import yaml

from mcp_touchstone.config.commands import COMMANDS
from tests.commands import touchstone
from tests.conftest import HERE

ROOT = HERE.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*/*.md"), *ROOT.glob("*/README.md")]
NESTED = ("golden record", "golden verify", "fleet report", "tap show")
GROUP = "golden |fleet (?=report)|tap (?=show)"
COMMAND = re.compile(rf"\bmcp-touchstone ((?:{GROUP})?[a-z]+)\b([^`\n]*)")
SHORT = re.compile(rf"((?:{GROUP})?(?:{'|'.join((*COMMANDS, *NESTED))})) ([^`\n]*--[^`\n]*)")
"""A command in a code span without the name of the program: ``fleet --resume``."""

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
FOREIGN = frozenset(
    re.findall(
        r"\S+",
        """
        --ff --lf --junitxml --nthreads --build-arg --init --rm --user --cli --portable --only
        --arg --http-url --log-level --method --prompts --target
        --requirements --allow --api-key --busy --confirm-writes --deny --deny-write --deprecated
        --feature --http-name --http-token --log-format --read-only --root --stdio --token
        --verbose-log
        """,
    )
)
"""Options of other programs, of servers and of scripts of ours that pages name alone."""


@cache
def code() -> list[str]:
    """Return the lines of the code blocks of all pages, and the code spans."""
    found = []
    for page in PAGES:
        text = page.read_text("utf-8")
        for block in re.findall(r"(?ms)^```\w*\n(.*?)^```$", text):
            found += block.replace("\\\n", " ").splitlines()
        found += re.findall(r"`([^`\n]+)`", text)
    return found


def documented_commands() -> dict[str, set[str]]:
    """Find the commands in code spans and blocks, each with its options."""
    found: dict[str, set[str]] = defaultdict(set)
    for line in code():
        short = SHORT.fullmatch(line)
        for command, words in [*COMMAND.findall(line), *([short.groups()] if short else [])]:
            ours = re.split(r" -- | -- ?$|#", words)[0]
            found[command] |= set(OPTION.findall(ours))
    return found


@cache
def options(command: str) -> frozenset[str]:
    """Return the options of a command, from its help."""
    done = touchstone(*command.split(), "--help")
    assert done.returncode == 0, done.stderr
    return frozenset(OPTION.findall(done.stdout))


@pytest.mark.parametrize(("command", "used"), sorted(documented_commands().items()))
def test_documented_options_exist(command: str, used: set[str]) -> None:
    assert used - options(command) == set()


def test_documented_commands_are_found() -> None:
    assert {"check", "golden record", "serve", "explain", "fleet"} <= set(documented_commands())


def test_an_option_that_is_named_alone_exists_in_some_command() -> None:
    known = frozenset[str]().union(*map(options, [*COMMANDS, *NESTED])) | FOREIGN
    alone = {found[0] for line in code() if (found := OPTION.match(line))}

    assert {one for one in alone if not one.startswith("--mcp")} - known == set()


def test_documented_options_of_pytest_exist(request: pytest.FixtureRequest) -> None:
    parser = request.config._parser
    groups = [parser._anonymous, *parser._groups]
    known = {name for group in groups for option in group.options for name in option.names()}
    named = {one for line in code() for one in OPTION.findall(line)}
    used = {one for one in named if one.startswith("--mcp-") and one != "--mcp-"}

    assert "--mcp-server" in used
    assert used - known == set()


def steps(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the parts of a workflow that use something."""
    if isinstance(value, dict) and "uses" in value:
        yield value
    children = value.values() if isinstance(value, dict) else value
    for child in children if isinstance(value, dict | list) else ():
        yield from steps(child)


@pytest.mark.parametrize(
    ("uses", "file", "key"),
    [
        ("/mcp-touchstone@", "action.yml", "inputs"),
        ("/judge.yml@", ".github/workflows/judge.yml", "workflow_call"),
    ],
)
def test_documented_inputs_of_the_action_exist(uses: str, file: str, key: str) -> None:
    said = (ROOT / file).read_text("utf-8")
    head = said.partition(f"{key}:")[2].partition("\noutputs:")[0].partition("\njobs:")[0]
    known = set(re.findall(r"(?m)^ +([a-z-]+):$", head))
    used = set[str]()
    for page in PAGES:
        for block in re.findall(r"(?ms)^```yaml\n(.*?)^```$", page.read_text("utf-8")):
            for step in steps(yaml.safe_load(block)):
                used |= set(step.get("with", ())) if uses in step["uses"] else set()

    assert "command" in used
    assert used - known == set()
