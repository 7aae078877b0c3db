"""Several servers of one configuration, judged by one command."""

import json
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

from mcp_touchstone import options
from mcp_touchstone.command_line import parser
from mcp_touchstone.config import ConfigError
from tests.conftest import mutant_command

TWO = "[targets.one]\ncommand = 'x'\n[targets.two]\ncommand = 'y'\n"
CLIENT = json.dumps({"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def each(*words: str) -> list[Namespace]:
    said = ["check", *words]
    return options.each(parser().parse_args(said), said)


def test_all_targets_are_judged_or_those_that_are_named(here: Path) -> None:
    (here / "touchstone.toml").write_text(TWO)

    assert [(one.target, one.server) for one in each()] == [("one", ["x"]), ("two", ["y"])]
    assert [one.server for one in each("two", "--select", "ping", "--jobs", "1")] == [["y"]]
    assert [one.target for one in each("two", "one", "two")] == ["two", "one"]
    assert [one.server for one in each("--target", "one")] == [["x"]]


def test_a_command_is_a_command(here: Path) -> None:
    (here / "touchstone.toml").write_text(TWO)

    assert [one.server for one in each("--", "one")] == [["one"]]
    assert [one.server for one in each("./one")] == [["./one"]]
    assert [one.server for one in each("node", "one.js")] == [["node", "one.js"]]
    (here / "touchstone.toml").write_text("no toml")
    assert [one.server for one in each("./one")] == [["./one"]]


def test_servers_of_a_client_are_judged_only_by_name(here: Path) -> None:
    (here / ".mcp.json").write_text(CLIENT)

    assert [one.server for one in each("--config", ".mcp.json", "b", "a")] == [["y"], ["x"]]
    with pytest.raises(ConfigError, match="names a, b; choose one"):
        each("--config", ".mcp.json")


def test_each_has_files_of_its_own(here: Path) -> None:
    (here / "touchstone.toml").write_text("baseline = 'known-{target}.toml'\n" + TWO)
    words = ("--report", "html:{target}.html", "--save", "wire/{target}", "--json", "{target}.json")

    one, two = each(*words)

    assert (one.report, two.report) == (["html:one.html"], ["html:two.html"])
    assert (one.save, two.json) == (Path("wire/one"), Path("two.json"))
    assert (one.baseline, two.baseline) == (Path("known-one.toml"), Path("known-two.toml"))
    assert (one.usual, two.usual) == (
        Path("touchstone-baseline-one.toml"), Path("touchstone-baseline-two.toml"),
    )  # fmt: skip


def test_the_gravest_exit_status_is_that_of_all(here: Path) -> None:
    commands = {
        name: json.dumps(mutant_command(mutant))
        for name, mutant in (("good", "SaysNothingWrong"), ("bad", "RefusesPings"))
    }
    tables = "".join(f"[targets.{name}]\ncommand = {one}\n" for name, one in commands.items())
    missing = "[targets.gone]\ncommand = 'no-such-program'\n"
    (here / "touchstone.toml").write_text(
        f"select = 'ping'\nrevision = '2025-11-25'\n{tables}{missing}"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mcp_touchstone", "check", "--json", "{target}.json"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )

    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.endswith(
        "  good  passes\n  bad   fails the gate\n  gone  could not be judged\n"
    )
    assert sorted(path.name for path in here.glob("*.json")) == ["bad.json", "good.json"]
