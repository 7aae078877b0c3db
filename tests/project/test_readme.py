"""The commands in the README print what the README shows."""

import re
import shlex
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.commands import touchstone
from tests.conftest import HERE, mutant_command

pytestmark = pytest.mark.slow


def commands_in(section: str) -> dict[str, list[str]]:
    """Return the commands of a section of the README, each with the lines it is shown to print."""
    text = (HERE.parent / "README.md").read_text("utf-8")
    body = text.split(f"\n## {section}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"(?ms)^```\n(\$ .*?)^```$", body)
    found: dict[str, list[str]] = {}
    for line in "".join(blocks).splitlines():
        if line.startswith("$ "):
            found[line[2:]] = []
        else:
            found[list(found)[-1]].append(line)
    return found


def normalized(lines: Iterable[str]) -> str:
    """Reduce an output to what does not depend on the server or on the width of the terminal."""
    text = re.sub(r"\d+", "1", " ".join(" ".join(lines).split()))
    of_sdk = "is conforming but for 1 failures? of [^;]+"
    text = re.sub(
        rf"(1 clauses? checked in) .*? (passed:) .*? (?:has no new failure|{of_sdk})",
        r"\1 \2",
        text,
    )
    text = re.sub(r"; 1 warnings?, which --[a-z -]+ counts?", "", text)
    text = re.sub(r"\b1 known failures\b", "1 known failure", text)
    return re.sub(r" \+ [\w-]+ \(.*?\)", "", text)


def test_quick_start_commands_print_the_output_shown_in_the_readme(tmp_path: Path) -> None:
    expected = commands_in("From nothing to a green gate")
    assert len(expected) == 3

    for command, lines in expected.items():
        words = shlex.split(command)
        assert words[0] == "mcp-touchstone"
        if words[1] == "init":
            words[words.index("--") :] = ["--", *mutant_command("RefusesPings")]
        else:
            words += ["--select", "ping", "--revision", "2025-11-25"]
        done = touchstone(*words[1:], cwd=tmp_path)

        assert (done.returncode, done.stderr) == (0, ""), command
        assert normalized(done.stdout.splitlines()) == normalized(lines), command
