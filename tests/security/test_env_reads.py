"""Our modules in programs of Python and Node.js note each variable that the code asks for."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from mcp_touchstone.bindings.observed import Observed
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.security import env_reads
from mcp_touchstone.target.target import Target

PYTHON: Final = """
import os, pathlib, subprocess, sys
os.getenv("GETENV"), os.environ.get("GET"), "CONTAINS" in os.environ, os.environ.pop("POP", None)
try:
    os.environ["SUBSCRIPT"]
except KeyError:
    pass
os.environ["OWN_TOKEN"], os.environ["HOME"]
subprocess.run([sys.executable, "-c", "import os; os.getenv('CHILD')"])
"""
NODE: Final = """
const {env} = require("node:process");
const {DESTRUCTURED} = process.env;
env.NAMED; "CONTAINS" in process.env; process.env.OWN_TOKEN; process.env.HOME;
require("child_process").execFileSync(process.execPath, ["-e", "process.env.CHILD"]);
"""
WHOLE: Final = {
    "python": "import os; dict(os.environ); os.environ['OWN_TOKEN']; os.getenv('LATE')",
    "node": "({...process.env}); process.env.OWN_TOKEN; process.env.LATE",
}


@pytest.fixture
def world() -> Iterator[World]:
    """Return a throw-away world."""
    with World() as made:
        yield made


def seen(world: World, *command: str, **env: str) -> Observed:
    """Run a program in a world that is watched; return what was noted."""
    target = Target(command=command, env={"OWN_TOKEN": "x", **env})
    watched = env_reads.watched(target, world, {})
    subprocess.run(
        command,
        env={**world.env({"PATH": os.environ["PATH"]}), **watched.env},
        check=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
    )
    return env_reads.noted(Observed(watched=True), world)


def program(name: str) -> str:
    """Return an interpreter; the test is skipped without it."""
    found = sys.executable if name == "python" else shutil.which("node")
    if found is None:
        pytest.skip("node is not installed")
    return found


def test_each_way_to_ask_is_noted_in_python_and_below_it(world: World) -> None:
    found = seen(world, sys.executable, "-c", PYTHON)

    names = ("GETENV", "GET", "CONTAINS", "POP", "SUBSCRIPT", "OWN_TOKEN", "CHILD")
    assert found == Observed(watched=True, readers=("Python",), reads=names)


def test_each_way_to_ask_is_noted_in_node_and_below_it(world: World) -> None:
    found = seen(world, program("node"), "-e", NODE)

    names = ("DESTRUCTURED", "NAMED", "CONTAINS", "OWN_TOKEN", "CHILD")
    assert found == Observed(watched=True, readers=("Node.js",), reads=names)


@pytest.mark.parametrize("name", WHOLE)
def test_a_copy_of_all_is_said_and_names_none_of_them(world: World, name: str) -> None:
    flag = "-c" if name == "python" else "-e"
    found = seen(world, program(name), flag, WHOLE[name])

    assert (found.copied, found.reads) == (True, ("LATE",))


@pytest.mark.parametrize("words", [("-I", "-c"), ("-S", "-c"), ("-E", "-c")])
def test_an_interpreter_that_loads_nothing_of_ours_shows_nothing(
    world: World, words: tuple[str, ...]
) -> None:
    assert seen(world, sys.executable, *words, PYTHON.splitlines()[1]) == Observed(watched=True)


def test_what_the_user_set_for_the_interpreters_stays(world: World, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import os; os.getenv('OF_A_MODULE')", "utf-8")
    found = seen(world, sys.executable, "-c", "import own", PYTHONPATH=str(tmp_path))
    watched = env_reads.watched(Target(command=("x",)), world, {"NODE_OPTIONS": "--no-warnings"})

    assert found.reads == ("OF_A_MODULE",)
    assert watched.env["NODE_OPTIONS"].startswith("--no-warnings --require ")


def test_the_sitecustomize_of_the_installation_still_runs(world: World, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text("import os; os.getenv('OF_THE_SITE')", "utf-8")
    found = seen(world, sys.executable, "-c", "import sitecustomize", PYTHONPATH=str(tmp_path))

    assert found.reads == ("OF_THE_SITE",)


@pytest.mark.parametrize("kind", ["words", "link", "folder", "pipe"])
def test_notes_that_the_server_replaced_name_nothing_else(
    world: World, tmp_path: Path, kind: str
) -> None:
    env_reads.watched(Target(command=("x",)), world, {})
    notes = world.home / env_reads.FOLDER / env_reads.NOTES
    if kind == "words":
        notes.write_bytes(b"=\x1b[31m\n=A B\n=" + b"A" * 70 + b"\n\xff\n=OK_KEY\n" * 9000)
    elif kind == "link":
        (tmp_path / "x").write_text("Python\n=STOLEN", "utf-8")
        notes.symlink_to(str(tmp_path / "x"))
    elif kind == "folder":
        notes.mkdir()
    elif hasattr(os, "mkfifo"):
        notes.make_pipe()
    found = env_reads.noted(Observed(), world)

    assert replace(found, reads=()) == Observed()
    assert found.reads == (("OK_KEY",) if kind == "words" else ())
