"""What the README shows is what one gets."""

import re
import shlex
from pathlib import Path

from tests.conftest import HERE, mutant_command
from tests.test_cli import touchstone


def shown(section: str) -> dict[str, list[str]]:
    """Give the commands of a section of the README, each with the lines it is shown to print."""
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


def gist(line: str) -> str:
    """Keep of a line what does not depend on the server."""
    line = re.sub(r"^(\d+ clauses? judged in) .*", r"\1", re.sub(r"\d+", "1", line))
    return re.sub(r"; --strict counts.*|^  \+ .*|s$", "", line)


def test_the_way_from_nothing_to_a_green_gate_is_as_shown(tmp_path: Path) -> None:
    told = shown("From nothing to a green gate")
    assert len(told) == 3

    for command, lines in told.items():
        words = shlex.split(command)
        assert words[0] == "mcp-touchstone"
        if words[1] == "init":
            words[words.index("--") :] = ["--", *mutant_command("RefusesPings")]
        else:
            words += ["--select", "ping", "--revision", "2025-11-25"]
        done = touchstone(*words[1:], cwd=tmp_path)

        assert (done.returncode, done.stderr) == (0, ""), command
        assert set(map(gist, done.stdout.splitlines())) == set(map(gist, lines)), command
