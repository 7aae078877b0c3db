"""A security run changes no process of the machine and no file of the user.

``MCP_TOUCHSTONE_RELEASED`` names a file with commands of released servers, one in each line, to be
run too; each has to contain ``{root}``.
"""

import hashlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from mcp_touchstone.sandbox.sandbox import Method, probe
from mcp_touchstone.target.target import ROOT
from mcp_touchstone.transport.process import MARK
from tests.conftest import HERE
from tests.fakes.catalogue import FAKES, ODD
from tests.fakes.matrix import near

pytestmark = [
    pytest.mark.skipif(
        sys.platform != "linux" or bool(probe(Method.UNSHARE)), reason="needs a sandbox"
    ),
    pytest.mark.slow,
]

PATIENCE = 900

DEADLINE = "300"
"""Seconds of the attacks on a released server."""

TEN = (
    "WreaksHavoc",
    "Joined",
    "FetchesAnyScheme",
    "PassesOptionsOn",
    "QuotesByHand",
    "MovesIntoFolders",
    "CopiesTreesThroughLinks",
    "UndoesByName",
    "WalksThroughLinks",
    "ReadsFilters",
)
"""Fakes that write outside their root, run commands, or do whatever they can."""

CHECKED = re.compile(r"threats?\s+checked")

LISTED = os.environ.get("MCP_TOUCHSTONE_RELEASED", "")
RELEASED = Path(LISTED).read_text(encoding="utf-8").splitlines() if LISTED else []


def state(folder: Path) -> dict[str, tuple[object, ...]]:
    """Return kind, size, times and content of everything below a folder."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [folder, *sorted(folder.rglob("*"))]:
        facts = path.lstat()
        text = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
        target = str(path.readlink()) if path.is_symlink() else ""
        times = (facts.st_mtime_ns, facts.st_ctime_ns)
        found[str(path)] = (facts.st_mode, facts.st_ino, facts.st_size, *times, text, target)
    return found


def strays() -> list[psutil.Process]:
    """Return the processes that a run of ours started, from their environment."""
    found = []
    for one in psutil.process_iter():
        try:
            if one.environ().get("UNTOUCHED") == str(os.getpid()) and MARK in one.environ():
                found.append(one)
        except psutil.Error:
            continue
    return found


@contextmanager
def bystanders() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start programs of the user; the other jobs of a machine may end at any time by themselves."""
    names = ("node", "python3", "mcp-server", "sleep")
    with ExitStack() as stack:
        started = [
            stack.enter_context(
                subprocess.Popen([name, "600"], executable="/bin/sleep", start_new_session=True)
            )
            for name in names
        ]
        for one in started:
            stack.callback(one.kill)
        yield started


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The files of a user, with a project."""
    folder = tmp_path / "home"
    for name, text in {
        ".ssh/id_ed25519": "key\n",
        ".bashrc": "alias ls=ls\n",
        ".config/tool/settings.json": "{}\n",
        ".cache/npm/index": "cached\n",
        "project/main.py": "print()\n",
        "project/notes.txt": "notes\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "latest").symlink_to("project/main.py")
    return folder


def attack(home: Path, temporary: Path, command: list[str], *options: str) -> str:
    """Attack a server as a user does, from a project folder; return the output."""
    env = {**os.environ, "HOME": str(home), "TMPDIR": str(temporary), "UNTOUCHED": str(os.getpid())}
    words = [sys.executable, "-m", "mcp_touchstone", "check", "--suite", "security", *options]
    given = ["--env", f"HAVOC={home}", "--env", f"UNTOUCHED={os.getpid()}"]
    given += ["--world", str(temporary)]
    done = subprocess.run(
        [*words, "--color", "never", *given, "--", *command],
        env=env,
        cwd=home / "project",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode in {0, 1, 2}, done.stderr.decode()
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done.stdout.decode()


def compare(home: Path, command: list[str], *options: str) -> str:
    """Attack a server; return the output if nothing has changed."""
    temporary = home.parent / "tmp"
    temporary.mkdir()
    with bystanders() as started:
        before, above = state(home), psutil.Process().parents()
        out = attack(home, temporary, command, *options)
        after = state(home)
        assert [one.poll() for one in started] == [None] * len(started)
    assert [one for one in above if not one.is_running()] == []
    assert strays() == []
    assert after == before
    assert list(temporary.iterdir()) == []
    return out


@pytest.mark.parametrize("name", TEN)
def test_attacked_fake_changes_nothing_outside(home: Path, name: str) -> None:
    families = ("traversal",) if name in ODD else near(name)
    select = [word for family in families for word in ("--select", family)]
    fake = [sys.executable, str(HERE / "fakes"), name, ROOT]

    assert name in {**FAKES, **ODD}
    out = compare(home, fake, *select)

    assert "sandbox    unshare" in out
    assert CHECKED.search(out)


@pytest.mark.parametrize("command", RELEASED)
def test_attacked_released_server_changes_nothing_outside(home: Path, command: str) -> None:
    assert CHECKED.search(compare(home, shlex.split(command), "--deadline", DEADLINE))
