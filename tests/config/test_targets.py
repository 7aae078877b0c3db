"""Several servers of one configuration, judged by one command."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from mcp_touchstone.config import resolve
from mcp_touchstone.config.parser import parse
from mcp_touchstone.config.settings import ConfigError, Settings
from tests.commands import run_here
from tests.conftest import mutant_command

pytestmark = pytest.mark.slow

TWO = "[targets.one]\ncommand = 'x'\n[targets.two]\ncommand = 'y'\n"
CLIENT = json.dumps({"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}})


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def each(*words: str) -> list[Settings]:
    return resolve.settings(parse(["check", *words]))


def test_all_targets_are_selected_unless_some_are_named(here: Path) -> None:
    (here / "touchstone.toml").write_text(TWO)

    assert [(one.name, one.command) for one in each()] == [("one", ("x",)), ("two", ("y",))]
    assert [one.command for one in each("two", "--select", "answers_a_ping", "--jobs", "1")] == [
        ("y",)
    ]
    assert [one.name for one in each("two", "one", "two")] == ["two", "one"]
    assert [one.command for one in each("--target", "one")] == [("x",)]


def test_explicit_command_is_not_a_target_name(here: Path) -> None:
    (here / "touchstone.toml").write_text(TWO)

    assert [one.command for one in each("--", "one")] == [("one",)]
    assert [one.command for one in each("./one")] == [("./one",)]
    assert [one.command for one in each("node", "one.js")] == [("node", "one.js")]
    (here / "touchstone.toml").write_text("no toml")
    assert [one.command for one in each("./one")] == [("./one",)]


def test_servers_of_a_client_configuration_must_be_named(here: Path) -> None:
    (here / ".mcp.json").write_text(CLIENT)

    assert [one.command for one in each("--config", ".mcp.json", "b", "a")] == [("y",), ("x",)]
    with pytest.raises(ConfigError, match="names a, b; choose one"):
        each("--config", ".mcp.json")


def test_target_placeholder_gives_each_target_its_own_files(here: Path) -> None:
    (here / "touchstone.toml").write_text("baseline = 'known-{target}.toml'\n" + TWO)
    words = ("--report", "html:{target}.html", "--save", "wire/{target}", "--json", "{target}.json")

    one, two = each(*words)

    assert (one.report, two.report) == (("html:one.html",), ("html:two.html",))
    assert (one.save, two.json) == (Path("wire/one"), Path("two.json"))
    assert (one.baseline, two.baseline) == (Path("known-one.toml"), Path("known-two.toml"))
    assert (one.usual_baseline, two.usual_baseline) == (
        Path("touchstone-baseline-one.toml"),
        Path("touchstone-baseline-two.toml"),
    )


def test_several_targets_give_the_worst_exit_status_and_one_report(here: Path) -> None:
    commands = {
        name: json.dumps(mutant_command(mutant))
        for name, mutant in (("good", "SaysNothingWrong"), ("bad", "RefusesPings"))
    }
    tables = "".join(f"[targets.{name}]\ncommand = {one}\n" for name, one in commands.items())
    missing = "[targets.gone]\ncommand = 'no-such-program'\n"
    (here / "touchstone.toml").write_text(
        f"select = 'ping'\nrevision = '2025-11-25'\n{tables}{missing}"
    )
    reports = ["badge:b.json", "html:{target}.html", "junit:j.xml", "markdown:m.md", "sarif:s.json"]
    words = [word for report in reports for word in ("--report", report)]
    done = run_here("check", "--json", "out.json", *words, cwd=here)

    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stdout.endswith("  good  passed\n  bad   failed\n  gone  not checked\n")
    assert {path.name for path in here.iterdir()} == {
        "touchstone.toml",
        "out-good.json",
        "out-bad.json",
        "good.html",
        "bad.html",
        "b.json",
        "j.xml",
        "m.md",
        "s.json",
    }
    badge = json.loads((here / "b.json").read_text("utf-8"))
    assert badge["message"] == "1 of 3 targets failed, 1 of 3 targets not checked"
    assert badge["isError"] is True
    suites = ET.parse(here / "j.xml").getroot()  # noqa: S314  (our own)
    errors = {suite.get("name"): suite.get("errors") for suite in suites}
    assert errors["gone"] == "1"
    assert {name.partition(":")[0] for name in errors if name} == {"good", "bad", "gone"}
    assert (suites.get("failures"), suites.get("errors")) == ("1", "1")
    page = (here / "m.md").read_text("utf-8")
    assert [line for line in page.splitlines() if line.startswith("# ")] == [
        "# good",
        "# bad",
        "# gone",
    ]
    runs = json.loads((here / "s.json").read_text("utf-8"))["runs"]
    assert [run["automationDetails"]["id"] for run in runs] == [
        "mcp-touchstone/good/",
        "mcp-touchstone/bad/",
        "mcp-touchstone/gone/",
    ]
    assert [run["invocations"][0]["executionSuccessful"] for run in runs] == [True, True, False]


def test_files_of_several_targets_get_the_target_name(here: Path) -> None:
    (here / "touchstone.toml").write_text(TWO)

    one, two = each(
        "--json",
        "out.json",
        "--attest",
        "proof.json",
        "--save",
        "wire",
        "--since",
        "old.json",
        "--report",
        "html:a/b.html",
        "--report",
        "junit:j.xml",
    )

    assert (one.json, two.json) == (Path("out-one.json"), Path("out-two.json"))
    assert (one.attest, two.attest) == (Path("proof-one.json"), Path("proof-two.json"))
    assert (one.save, two.since) == (Path("wire-one"), Path("old-two.json"))
    assert one.report == ("html:a/b-one.html", "junit:j.xml")
    (single,) = each("one", "--json", "out.json")
    assert single.json == Path("out.json")
