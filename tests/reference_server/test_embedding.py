"""The reference server with custom features: embedded, and loaded from entry points."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import mcp_touchstone.server
from reference_server.bundle import ALL_FEATURES, tools
from reference_server.settings import Settings
from tests.cases import cases
from tests.reference_client import CHECKOUT, InProcess, Spawned, modern

if TYPE_CHECKING:
    from pathlib import Path

    from reference_server.surface import Feature

DOCUMENT = CHECKOUT / "docs" / "reference" / "operation.md"

FEATURE = """
from mcp_touchstone.server import Tool

seen = []

def feature(surface):
    schema = {"type": "object", "properties": {}}
    surface.toolbox.add(Tool("greet", title="Greet", description="Greets.", input_schema=schema,
                             output_schema=schema, annotations={},
                             work=lambda call, arguments: {"said": "hello", "seen": len(seen)}))
    surface.hooks.append(seen.append)
"""


def example() -> str:
    """Return the program from the documentation."""
    section = DOCUMENT.read_text("utf-8").partition("## In a program of your own")[2]
    found = re.search(r"```python\n(.*?)```\n.*?```\n(.*?)```", section, re.DOTALL)
    assert found
    return found[1]


def shown() -> str:
    """Return the documented output of the program."""
    section = DOCUMENT.read_text("utf-8").partition("## In a program of your own")[2]
    return section.partition("It prints\n\n```\n")[2].partition("```")[0]


def test_documented_program_prints_the_documented_output(tmp_path: Path) -> None:
    """It imports only public names, and not from the checkout."""
    program = example()
    assert "reference_server" not in program.replace("mcp_touchstone", "")
    (tmp_path / "notes.txt").write_text("one two three\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == shown()


@pytest.mark.parametrize("name", mcp_touchstone.server.__all__)
def test_every_public_name_is_importable(name: str) -> None:
    if name not in ("Feature", "Hook"):  # for types only
        assert callable(getattr(mcp_touchstone.server, name)) or name == "ALL_FEATURES"


@pytest.mark.parametrize("missing", ALL_FEATURES, ids=lambda one: one.__name__)
def test_server_works_without_any_one_feature(tmp_path: Path, missing: Feature) -> None:
    (tmp_path / "notes.txt").write_text("one")
    features = [one for one in ALL_FEATURES if one is not missing]
    lists = ("tools/list", "resources/list", "prompts/list", "server/discover")
    reading = {"name": "file_read", "arguments": {"path": "notes.txt"}}
    with InProcess(Settings([str(tmp_path)]), features) as client:
        for method in lists:
            client.send(modern(method, method))
            answer = client.hear()
            assert answer.get("error", {}).get("code") in (None, -32601), answer
        client.send(modern("read", "tools/call", **reading))
        answer = client.hear()
        assert missing is tools or answer["result"]["structuredContent"]["text"] == "one"


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError):
        _ = mcp_touchstone.server.nothing


def installed(place: Path, source: str) -> dict[str, str]:
    """Put a package with an entry point on the path; return the environment for it."""
    (place / "greeting.py").write_text(source)
    info = place / "greeting-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n")
    entry = "[mcp_touchstone.features]\ngreeting = greeting:feature\n"
    (info / "entry_points.txt").write_text(entry)
    return {"PYTHONPATH": str(place)}


def command(environment: dict[str, str]) -> tuple[str, ...]:
    pairs = [f"{name}={value}" for name, value in environment.items()]
    return ("env", *pairs, sys.executable, "-m", "mcp_touchstone", "serve")


POSIX_ONLY = pytest.mark.skipif(os.name == "nt", reason="starts the server through env")


@POSIX_ONLY
def test_feature_is_offered_only_if_its_entry_point_is_named(tmp_path: Path) -> None:
    environment = installed(tmp_path, FEATURE)
    names = {}
    for arguments in ((), ("--feature", "greeting")):
        with Spawned(*arguments, command=command(environment), cwd=tmp_path) as client:
            client.send(modern(1, "tools/list"))
            names[arguments] = {one["name"] for one in client.hear()["result"]["tools"]}
            if arguments:
                client.send(modern(2, "tools/call", name="greet"))
                said = client.hear()["result"]["structuredContent"]
    assert names["--feature", "greeting"] - names[()] == {"greet"}
    assert said["said"] == "hello"
    assert said["seen"] == 3, "its hook has heard of both requests, and of the end of the first"


@POSIX_ONLY
@cases(
    ("other", FEATURE, "'other': no such entry point is installed (apps, greeting, skills)"),
    ("greeting", "raise KeyError('secret')", "'greeting' does not load (KeyError)"),
    ("greeting", "", "'greeting' does not load (AttributeError)"),
)
def test_missing_or_broken_feature_stops_the_start(
    tmp_path: Path, name: str, source: str, words: str
) -> None:
    program = (*command(installed(tmp_path, source)), "--feature", name)
    done = subprocess.run(
        program, cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"mcp-touchstone serve: --feature {words}\n"


def test_serve_imports_no_judging_or_slow_module() -> None:
    """Each of these imports would slow down the start noticeably."""
    program = (
        "import json, os, sys\n"
        "from mcp_touchstone.cli import main\n"
        "code = main(['serve', '--log-level=off'])\n"
        "print(json.dumps([code, *sys.modules]), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input='{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
        capture_output=True,
        text=True,
        check=True,
    )
    code, *loaded = json.loads(done.stderr)
    assert code == 0
    assert json.loads(done.stdout)["id"] == 1
    ours = {one for one in loaded if one.startswith("mcp_touchstone") and "_suites" not in one}
    expected = {
        "",
        ".version",
        ".cli",
        ".commands",
        ".commands.output",
        ".server",
        ".catalog",
        ".catalog.home",
        ".runtime",
        ".runtime.console",
    }
    assert ours == {f"mcp_touchstone{name}" for name in expected}
    slow = {
        *("argparse", "typing", "pathlib", "inspect", "runpy", "importlib.metadata"),
        "dataclasses",
    }
    assert slow & set(loaded) == set()
