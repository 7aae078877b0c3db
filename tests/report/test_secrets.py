"""Secrets of the environment: which values count, and that no output contains them."""

import io
import sys
from pathlib import Path

from rich.console import Console

from mcp_touchstone.report.terminal import Terminal
from mcp_touchstone.report.text import middle
from mcp_touchstone.runtime.secrets import secrets
from tests.cases import cases
from tests.commands import touchstone


@cases(
    ("NPM_TOKEN", "plain-words", ["plain-words"]),
    ("API_KEY", "short", []),
    ("MY_URL", "pg://u:hunter2secret@db", ["pg://u:hunter2secret@db", "hunter2secret"]),
    ("MY_URL", "https://example.com/path", []),
    ("OTHER", "aB3dE5gH7jK9mN1pQ3sT5vW7", ["aB3dE5gH7jK9mN1pQ3sT5vW7"]),
    ("OTHER", "ghp_abcdefghijklmnop", ["ghp_abcdefghijklmnop"]),
    ("PATH", "/usr/local/bin:/usr/bin:/bin", []),
    ("LANG", "en_US.UTF-8", []),
)
def test_secrets_are_found_by_name_and_by_form(name: str, value: str, hidden: list[str]) -> None:
    assert [one for _, one in secrets({name: value})] == hidden


def test_terminal_hides_secrets_of_the_environment() -> None:
    console = Console(file=io.StringIO(), width=200)
    terminal = Terminal(console, environment={"NPM_TOKEN": "npm_supersecretvalue42"})

    terminal.say("again  --env NPM_TOKEN=npm_supersecretvalue42")

    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "again  --env NPM_TOKEN=HIDDEN-NPM_TOKEN\n"


def test_no_output_of_a_check_contains_a_planted_secret(tmp_path: Path) -> None:
    planted = "npm_supersecretvalue42"
    program = f"import sys; sys.stderr.write({planted!r}); print({planted!r}, flush=True); input()"
    kinds = ("html", "json", "junit", "markdown", "sarif", "badge")
    words = [word for kind in kinds for word in ("--report", f"{kind}:{tmp_path / kind}")]

    done = touchstone(
        "check",
        "-v",
        "--timeout",
        "2",
        "--select",
        "ping",
        "--env",
        f"NPM_TOKEN={planted}",
        "--save",
        str(tmp_path / "wire"),
        *words,
        "--",
        sys.executable,
        "-c",
        program.replace(planted, "'+__import__('os').environ['NPM_TOKEN']+'"),
    )

    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > len(kinds)
    assert any("HIDDEN-NPM_TOKEN" in path.read_text("utf-8") for path in written)
    assert planted not in done.stdout + done.stderr
    assert [path.name for path in written if planted in path.read_text("utf-8")] == []


def test_middle_of_a_long_value_is_left_out() -> None:
    text = "a" * 500 + "b" * 500

    assert middle(text, 1000) == text
    assert middle(text, 90) == "a" * 60 + " … (1,000 characters) … " + "b" * 30
