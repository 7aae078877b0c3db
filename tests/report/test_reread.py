"""Reports that are made of a saved JSON report."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from mcp_touchstone.cli import main
from mcp_touchstone.report import kinds, machine
from mcp_touchstone.report.recorded import ReportError
from mcp_touchstone.report.reread import read
from mcp_touchstone.report.terminal import Terminal
from mcp_touchstone.results.run import Execution, Run
from tests import canned
from tests.cases import cases
from tests.mutants.judged import MUTANTS, run_mutant
from tests.runs import SERVER

SAVED = "AnswersPingsWithAPong"


@pytest.fixture(scope="module")
def run() -> Run:
    return run_mutant(MUTANTS[SAVED])


def timeless(text: str) -> str:
    """Remove the durations of scenarios, which a report does not have."""
    return re.sub(r' time="[^"]*"', "", text)


@pytest.mark.parametrize("kind", sorted(kinds.RENDERERS))
def test_report_of_a_saved_run_equals_that_of_the_run(kind: str, run: Run, tmp_path: Path) -> None:
    saved = tmp_path / "run.json"
    saved.write_text(json.dumps(machine.document(run)), "utf-8")

    made = kinds.RENDERERS[kind](read(saved))

    assert timeless(made) == timeless(kinds.RENDERERS[kind](run))


def test_note_on_the_run_is_on_the_screen_and_in_the_saved_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = canned.run()
    made = replace(made, verdicts=[], absent=[])
    made = replace(made, execution=Execution(notes=("the server uses a whole core\x1b[2J",)))
    saved = tmp_path / "run.json"
    saved.write_text(json.dumps(machine.document(made)))

    Terminal(Console(), quiet=True).finish(made)

    assert read(saved).execution.notes == made.execution.notes
    assert "note       the server uses a whole core\\x1b[2J" in capsys.readouterr().out


def test_silence_of_a_server_is_known_without_its_words(tmp_path: Path) -> None:
    saved = tmp_path / "run.json"
    subject = replace(SERVER, refused={"2025-11-25": "nothing came"}, silent=True)
    saved.write_text(json.dumps(machine.document(Run(subject, trouble="nothing came"))))

    assert "Does it speak stdio?" in kinds.RENDERERS["markdown"](read(saved))


def test_command_writes_each_named_kind(run: Run, tmp_path: Path) -> None:
    saved, page, table = tmp_path / "run.json", tmp_path / "a.html", tmp_path / "a.md"
    saved.write_text(json.dumps(machine.document(run)), "utf-8")

    code = main(["report", str(saved), "--html", str(page), "--markdown", str(table)])

    assert code == 0
    assert page.read_text("utf-8").startswith("<!doctype html>")
    assert table.read_text("utf-8").startswith("## MCP")


@cases(
    (lambda document: document["summary"].pop("conclusion"), "an older version wrote it"),
    (lambda document: document["verdicts"][0].update(clause="no-rule"), "no-rule"),
    (lambda document: document.update(format=99), "newer"),
    (lambda document: document["verdicts"][0].update(judgements=[]), "is not as in a report"),
    (lambda document: document.pop("gate"), "run that again"),
)
def test_unusable_report_is_one_line(run: Run, tmp_path: Path, change: Any, said: str) -> None:
    document = machine.document(run)
    change(document)
    saved = tmp_path / "run.json"
    saved.write_text(json.dumps(document))

    with pytest.raises(ReportError, match=said):
        read(saved)


def test_command_without_a_kind_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", str(tmp_path / "run.json")]) == 2
    assert "--badge, --html" in capsys.readouterr().err
