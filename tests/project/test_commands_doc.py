"""The commands and options in the documentation exist."""

import re
from collections import defaultdict

import pytest

from tests.commands import touchstone
from tests.conftest import HERE

ROOT = HERE.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*/*.md"), *ROOT.glob("*/README.md")]
COMMAND = re.compile(
    r"\bmcp-touchstone ((?:golden |fleet (?=report)|tap (?=show))?[a-z]+)\b([^`\n]*)"
)
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


def documented_commands() -> dict[str, set[str]]:
    """Find the commands in code spans and blocks, each with its options."""
    found: dict[str, set[str]] = defaultdict(set)
    for page in PAGES:
        text = page.read_text("utf-8")
        code = re.findall(r"(?ms)^```\w*\n(.*?)^```$", text) + re.findall(r"`[^`\n]+`", text)
        for command, words in COMMAND.findall("\n".join(code).replace("\\\n", " ")):
            ours = re.split(r" -- | -- ?$|#", words)[0]
            found[command] |= set(OPTION.findall(ours))
    return found


@pytest.mark.parametrize(("command", "options"), sorted(documented_commands().items()))
def test_documented_options_exist(command: str, options: set[str]) -> None:
    done = touchstone(*command.split(), "--help")

    assert done.returncode == 0, done.stderr
    assert options - set(OPTION.findall(done.stdout)) == set()


def test_documented_commands_are_found() -> None:
    assert {"check", "golden record", "serve", "explain"} <= set(documented_commands())
