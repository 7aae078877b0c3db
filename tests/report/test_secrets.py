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


def test_no_output_of_a_check_contains_a_secret_argument(tmp_path: Path) -> None:
    planted = "correct-horse-7-battery"
    program = "import sys; sys.stderr.write(sys.argv[2]); print(sys.argv[2], flush=True); input()"
    kinds = ("html", "json", "junit", "markdown", "sarif", "badge")
    words = [word for kind in kinds for word in ("--report", f"{kind}:{tmp_path / kind}")]
    options = ("--timeout", "2", "--select", "ping", "--save", str(tmp_path / "wire"))
    server = (sys.executable, "-c", program, "--token", planted)

    done = touchstone("check", "-v", *options, *words, "--", *server)

    written = {path: path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file()}
    assert "--token HIDDEN-SECRET_ARGUMENT_1" in done.stdout
    assert "HIDDEN-SECRET_ARGUMENT_1" in written[tmp_path / "json"]
    assert planted not in done.stdout + done.stderr
    assert [path.name for path, text in written.items() if planted in text] == []


def test_other_reports_of_an_older_report_lack_its_secret_arguments(tmp_path: Path) -> None:
    planted, hidden = "correct-horse-7-battery", "HIDDEN-SECRET_ARGUMENT_1"
    program = (
        "import sys; sys.stderr.write(sys.argv[2]); print(sys.argv[2], flush=True); "
        "sys.stdin.read()"
    )
    server = (sys.executable, "-c", program, "--token", planted)
    new, old, other = tmp_path / "new.json", tmp_path / "old.json", tmp_path / "other.json"
    touchstone("check", "--timeout", "2", "--select", "stdio", "--json", str(new), "--", *server)
    old.write_text(new.read_text("utf-8").replace(hidden, planted), "utf-8")
    other.write_text(old.read_text("utf-8").replace('"fail"', '"pass"'), "utf-8")
    kinds = ("html", "junit", "markdown", "sarif")

    touchstone("report", str(old), *(word for k in kinds for word in (f"--{k}", str(tmp_path / k))))
    compared = [
        touchstone("diff", *more, str(other), str(old)) for more in ((), ("--format=json",))
    ]

    written = [(tmp_path / kind).read_text("utf-8") for kind in kinds]
    assert hidden in "".join(written)
    assert all(hidden in one.stdout for one in compared)
    assert planted not in "".join([*written, *(one.stdout + one.stderr for one in compared)])


def test_no_output_of_client_contains_a_secret_argument(tmp_path: Path) -> None:
    planted = "correct-horse-7-battery"
    program = (
        "import json, sys, subprocess; sys.stderr.write(sys.argv[2])\n"
        "params = {'protocolVersion': '2025-06-18', 'capabilities': {}}\n"
        "params['clientInfo'] = {'name': sys.argv[2], 'version': '1'}\n"
        "text = json.dumps({'jsonrpc': '2.0', 'id': 1, 'method': 'initialize', 'params': params})\n"
        "subprocess.run(sys.argv[3:], input=text.encode() + b'\\n', stdout=subprocess.DEVNULL)\n"
    )
    options = ("--scenario", "tools_call", "--save", str(tmp_path / "wire"), "-v")
    report = ("--json", str(tmp_path / "report.json"))
    command = (sys.executable, "-c", program, "--token", planted, "{server}")

    done = touchstone("client", *options, *report, "--", *command)

    written = {path: path.read_text("utf-8") for path in tmp_path.rglob("*") if path.is_file()}
    assert len(written) > 1
    assert any("HIDDEN-SECRET_ARGUMENT_1" in text for text in written.values())
    assert planted not in done.stdout + done.stderr
    assert [path.name for path, text in written.items() if planted in text] == []


def test_middle_of_a_long_value_is_left_out() -> None:
    text = "a" * 500 + "b" * 500

    assert middle(text, 1000) == text
    assert middle(text, 90) == "a" * 60 + " … (1,000 characters) … " + "b" * 30
