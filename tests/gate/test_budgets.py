"""Budgets of tokens: measured from transcripts, held against a file, updated like a baseline."""

import json
import sys
from pathlib import Path

import pytest

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.cli import main
from mcp_touchstone.gate import budget_file
from mcp_touchstone.results.budgets import Budgets, tokens
from tests.cases import cases

LISTS = ("check", "--self", "--quick", "--select", "tools-list-result-shape")


def costs(**found: int) -> Budgets:
    return Budgets(found)


def test_tokens_are_a_quarter_of_the_bytes_rounded_up() -> None:
    assert [tokens(0), tokens(1), tokens(4), tokens(5)] == [0, 1, 1, 2]


@cases((100, 0), (105, 0), (106, 1), (40, 0), ids=["same", "within", "over", "less"])
def test_budget_is_exceeded_beyond_the_allowance(tmp_path: Path, now: int, over: int) -> None:
    path = tmp_path / "budgets.toml"
    budget_file.update(costs(tools=100), path)

    assert len(budget_file.hold(costs(tools=now), path).over) == over


def test_update_keeps_the_allowance_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "budgets.toml"
    path.write_text("allowance = 0.5\ntools = 10\n", "utf-8")

    budget_file.update(costs(tools=20), path)

    assert budget_file.load(path) == {"allowance": 0.5, "tools": 20}


@cases(
    ("tool = 3", "unknown key 'tool'; did you mean 'tools'?"),
    ("tools = 'x'", "tools must be a number that is not negative"),
    ("tools = -1", "tools must be a number that is not negative"),
    ("tools = ", "Invalid value"),
)
def test_wrong_budget_file_is_an_error_in_one_line(
    tmp_path: Path, text: str, expected: str
) -> None:
    path = tmp_path / "budgets.toml"
    path.write_text(text, "utf-8")

    with pytest.raises(UserError) as error:
        budget_file.load(path)

    assert expected in str(error.value)
    assert "\n" not in str(error.value)


def test_run_fails_when_the_lists_have_grown(tmp_path: Path) -> None:
    path, report = tmp_path / "budgets.toml", tmp_path / "report.json"
    assert main([*LISTS, "--budget", str(path), "--update-budget"]) == 0
    assert main([*LISTS, "--budget", str(path)]) == 0
    path.write_text("tools = 10\n", "utf-8")

    status = main([*LISTS, "--budget", str(path), "--json", str(report)])

    found = json.loads(report.read_text("utf-8"))["budgets"]
    assert status == 1
    assert found["file"] == "budgets.toml"
    assert found["over"] == [
        f"tools: {found['tokens']['tools']} tokens, 10 and 5% more are allowed"
    ]


def test_missing_budget_file_is_an_error_that_names_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main([*LISTS, "--budget", str(tmp_path / "none.toml")])

    assert status == 2
    assert "--update-budget writes the file" in capsys.readouterr().err


def test_wrong_budget_file_is_refused_before_the_server_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b.toml").write_text("tokens = 3\n")
    command = [sys.executable, "-c", f"open({str(tmp_path / 'started')!r}, 'w')"]

    assert main(["check", "--budget", str(tmp_path / "b.toml"), "--", *command]) == 2

    assert "unknown key 'tokens'; the keys are tools, " in capsys.readouterr().err
    assert not (tmp_path / "started").exists()


def test_trouble_of_the_server_is_shown_though_there_is_no_budget_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--budget", str(tmp_path / "b.toml"), "--update-budget"]

    assert main(["check", *words, "--", sys.executable, "-c", "raise SystemExit(3)"]) == 2

    assert "the server left (status 3)" in capsys.readouterr().out
