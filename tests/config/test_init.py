"""The configuration written by ``init`` is valid and gives the same verdicts."""

import json
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

from mcp_touchstone.catalog.loader import home
from mcp_touchstone.config.toml_keys import choose, command, read
from tests.cases import cases
from tests.commands import run_here
from tests.conftest import HERE

pytestmark = pytest.mark.slow

TOY = [sys.executable, "-S", str(HERE / "toy_server.py"), "{root}"]


def test_init_writes_a_configuration_that_judges_the_server(tmp_path: Path) -> None:
    toy = [*TOY, "echo", "write", "read"]
    done = run_here(
        "init", "--env", "A=b c", "--call", 'write={"path": "x"}', "--", *toy, cwd=tmp_path
    )
    text = (tmp_path / "touchstone.toml").read_text("utf-8")
    settings = choose(read(tomllib.loads(text), "t"), None, "t")[1]

    assert done.returncode == 0, done.stderr
    assert list(command(settings)) == toy
    assert settings["env"] == {"A": "b c"}
    assert settings["call"] == {"write": {"path": "x"}}
    assert '# echo = { text = "hello" }' in text
    assert "mcp-touchstone-" not in text, "our own folder is called by its name"
    assert "mcp-touchstone check --config touchstone.toml\n" in done.stdout
    named = ("--config", "touchstone.toml")
    chosen = ("--select", "ping", "--revision", "2025-11-25")
    judged = run_here("check", *named, *chosen, cwd=tmp_path)
    assert judged.returncode == 0, judged.stdout + judged.stderr
    assert shlex.join(toy) in judged.stdout
    again = run_here("init", "--", *toy, cwd=tmp_path)
    assert (again.returncode, again.stderr.count("\n")) == (2, 1)


def test_commented_settings_are_valid_when_uncommented(tmp_path: Path) -> None:
    run_here("init", "--", *TOY, "echo", "write", cwd=tmp_path)
    lines = (tmp_path / "touchstone.toml").read_text("utf-8").splitlines()
    live = [line.removeprefix("# ") if " = " in line else line for line in lines]

    found = choose(read(tomllib.loads("\n".join(live)), "t"), None, "t")[1]

    assert {"command", "env", "revision", "fail-on", "call"} <= {*found}
    assert {"echo", "write"} <= {*found["call"]}


def test_written_configuration_gives_the_same_verdicts(tmp_path: Path) -> None:
    """Two chapters whose clauses depend on discovery are judged on the reference server."""
    server = [sys.executable, "-m", "reference_server", "--root", "{root}"]
    env = ["--env", f"PYTHONPATH={home()}", "--env", "PYTHONSAFEPATH=1"]
    chosen = ["-q", "--select", "tools", "--select", "resources", "--revision", "2025-11-25"]
    plain = run_here("check", *chosen, *env, "--json", "a.json", "--", *server, cwd=tmp_path)
    written = run_here("init", *env, "--", *server, cwd=tmp_path)
    judged = run_here("check", "--trust-config", *chosen, "--json", "b.json", cwd=tmp_path)

    assert (plain.returncode, written.returncode, judged.returncode) == (0, 0, 0), judged.stderr
    without, with_it = (
        {
            (verdict["clause"], verdict["revision"]): verdict["outcome"]
            for verdict in json.loads((tmp_path / name).read_text("utf-8"))["verdicts"]
        }
        for name in ("a.json", "b.json")
    )
    assert len(without) > 40
    assert without.items() <= with_it.items()


def test_secrets_of_a_client_file_are_not_copied(tmp_path: Path) -> None:
    entry = {"command": TOY[0], "args": [*TOY[1:], "echo"], "env": {"KEY": "s3cret"}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"toy": entry}}), "utf-8")
    done = run_here("init", "--config", ".mcp.json", "--target", "toy", cwd=tmp_path)
    text = (tmp_path / "touchstone.toml").read_text("utf-8")

    assert done.returncode == 0, done.stderr
    assert 'from = ".mcp.json"\nserver = "toy"' in text
    assert "s3cret" not in text
    judged = run_here("check", "--trust-config", "-q", "--select", "ping", cwd=tmp_path)
    assert judged.returncode == 0, judged.stdout + judged.stderr


@cases(
    (["init"], "write the command of your server"),
    (["init", "--output", "/no/such/x.toml", "--", "true"], "make it first"),
    (["init", "--timeout", "5", "--", sys.executable, "-c", "print('no')"], "does the command"),
)
def test_init_error_prints_one_line_and_writes_nothing(
    tmp_path: Path, words: list[str], message: str
) -> None:
    done = run_here(*words, cwd=tmp_path)

    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr
    assert list(tmp_path.iterdir()) == []
