"""The official client as a witness: what it says stands beside our verdict and changes none.

Most of it needs the SDK, in this environment or under the interpreter that MCP_TOUCHSTONE_SDK1 or
MCP_TOUCHSTONE_SDK2 names; what happens when the client misbehaves is shown with a stand-in.
"""

import json
import os
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mcp_touchstone import interop
from mcp_touchstone.cli import main
from mcp_touchstone.interop import Client, Interop, Step, Way, Word
from mcp_touchstone.plan import UsageError
from mcp_touchstone.process import LaunchError
from mcp_touchstone.report import interop as report
from mcp_touchstone.report.machine import SCHEMA
from mcp_touchstone.target import ROOT, Target, reference
from tests.conftest import HERE, mutant_command
from tests.test_process import lives, until

MODERN = "2026-07-28"
SESSION = "2025-11-25"


def sdk(major: int) -> Any:
    """Give a parameter: an interpreter with the SDK, skipped where there is none."""
    try:
        here = metadata.version("mcp").startswith(f"{major}.")
    except metadata.PackageNotFoundError:
        here = False
    python = os.environ.get(f"MCP_TOUCHSTONE_SDK{major}", sys.executable if here else "")
    reason = f"mcp {major}.x is not installed, and MCP_TOUCHSTONE_SDK{major} names no interpreter"
    return pytest.param(python, marks=pytest.mark.skipif(not python, reason=reason),
                        id=f"sdk{major}")  # fmt: skip


BOTH = pytest.mark.parametrize("python", [sdk(1), sdk(2)])


# --- with the SDK


@BOTH
def test_the_client_works_with_the_reference_server(python: str) -> None:
    client = interop.find(python)
    found = interop.ask(client, reference(startup=30.0))

    session, modern = found.ways
    assert (session.revision, modern.revision) == (SESSION, MODERN)
    assert session.word is Word.WORKS, session
    assert [step.name for step in session.steps] == [
        "initialize", "list tools", "list resources", "list resource templates", "list prompts",
        session.steps[-1].name,
    ]  # fmt: skip
    assert session.steps[-1].name.startswith("call ")
    if client.found["modern"]:
        assert modern.word is Word.WORKS, modern
        assert modern.steps[0].name == "server/discover"
    else:
        assert modern.word is Word.SILENT
        assert "does not know this revision" in modern.why


@BOTH
def test_what_the_client_raises_is_what_it_says_against_the_server(python: str) -> None:
    broken = Target(command=(sys.executable, str(HERE / "golden_server.py"), ROOT, "misshapen"),
                    startup=30.0)  # fmt: skip
    found = interop.ask(interop.find(python), broken)

    (way,) = found.ways
    assert way.word is Word.FAILS
    first = next(one for one in way.steps if not one.held)
    assert first.name == "list tools"
    assert "alidation" in first.told


@BOTH
def test_its_word_stands_beside_ours_and_changes_nothing(
    python: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "report.json"
    words = ["check", "--select", "ping", "--interop-python", python, "--json", str(path)]

    assert main([*words, "--", *mutant_command("RefusesPings")]) == 1

    shown = capsys.readouterr().out
    assert "not conforming" in shown
    assert f"{SESSION}  works: initialize ({SESSION})" in shown
    document = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.validate(document, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert document["interop"]["ways"][0]["word"] == "works"
    assert document["summary"]["exit_code"] == 1


# --- where there is none, or it misbehaves


def test_an_absent_client_is_one_line_before_anything_is_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(_name: str) -> str:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(metadata, "version", absent)

    assert main(["check", "--interop"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert "mcp-touchstone[interop]" in said.err
    assert "--interop-python" in said.err


def test_an_interpreter_without_it_is_named(tmp_path: Path) -> None:
    bare = tmp_path / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec "{sys._base_executable}" -I -S "$@"\n')  # type: ignore[attr-defined]
    bare.chmod(0o755)

    with pytest.raises(UsageError, match="bare-python has no official client"):
        interop.find(str(bare))
    with pytest.raises(LaunchError):
        interop.find(str(tmp_path / "none"))


@pytest.fixture
def stand_in(tmp_path: Path) -> Any:
    """Make an interpreter that does something else with the program it is given."""

    def make(body: str) -> Client:
        program = tmp_path / "stand_in.py"
        program.write_text(body)
        python = tmp_path / "python"
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}"\n')
        python.chmod(0o755)
        return Client(str(python), {"sdk": "9", "python": "3", "modern": True, "trouble": ""})

    return make


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("import sys; sys.exit('no such thing')", "left with status 1: no such thing"),
        ("print('hello'); print('[]'); print('{}')", "left with status 0: it wrote nothing"),
        ("import os; os.kill(os.getpid(), 9)", "left with status -9"),
    ],
)
def test_a_client_that_says_nothing_fails_in_words(stand_in: Any, body: str, told: str) -> None:
    assert told in stand_in(body).walk(None, 30.0)["trouble"]


def test_a_client_that_hangs_is_ended_with_what_it_started(stand_in: Any, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    client = stand_in(
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
        " start_new_session=True)\n"
        f"open({str(pid)!r}, 'w').write(str(child.pid))\n"
        "sys.stdin.read()\ntime.sleep(60)\n"
    )

    assert "did not come to an end" in client.walk(None, 3.0)["trouble"]
    assert until(lambda: not lives(int(pid.read_text())))


def test_trouble_on_the_way_is_a_failed_step(stand_in: Any) -> None:
    client = stand_in("import sys; sys.exit('no such thing')")

    (way,) = interop.ask(
        client, Target(command=(sys.executable, str(HERE / "golden_server.py"), ROOT), startup=20.0)
    ).ways

    assert way.word is Word.FAILS
    assert way.steps[0].name == "run"


def test_a_server_that_does_not_answer_loses_no_report(stand_in: Any) -> None:
    gone = Target(command=(sys.executable, str(HERE / "hostile" / "exits_at_once.py")), startup=9.0)

    for server in (gone, Target(command=(str(HERE / "none"),))):
        found = interop.ask(stand_in("pass"), server)
        assert found.ways == ()
        assert found.trouble
        assert f"was not asked: {found.trouble}" in "\n".join(report.text(found))


# --- what is shown


WAYS = (
    Way(SESSION, (Step("initialize", True, SESSION), Step("list tools", False, "Bad: \x1b[31m"))),
    Way(MODERN, (Step("server/discover", True, MODERN),), ("mcp: odd",)),
    Way(MODERN, why="mcp 1.30.0 does not know this revision"),
)


def test_what_it_says_is_shown_in_a_word_and_why() -> None:
    shown = "\n".join(report.text(Interop("2.3.0", "3.12.1", WAYS)))

    assert f"{SESSION}  fails at list tools (Bad: \\x1b[31m)" in shown
    assert f"{MODERN}  works, with complaints: server/discover" in shown
    assert "no tool was found that may be called" in shown
    assert "mcp: odd" in shown
    assert "not asked: mcp 1.30.0 does not know this revision" in shown
    assert "\x1b" not in shown


def test_what_it_says_fits_the_schema_of_the_report() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    part = {**schema["properties"]["interop"], "$defs": schema["$defs"]}

    jsonschema.validate(report.document(Interop("2.3.0", "3.12.1", WAYS)), part)
    assert report.document(Interop("2.3.0", "3.12.1"))["ways"] == []
