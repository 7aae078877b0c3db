"""A server that exchanges its files for links cannot make us read or change the user's files."""

import ctypes
import hashlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.attack_level import LEVELS, Tier, tiers
from mcp_touchstone.catalog.loader import CONFORMANCE, SECURITY, load
from mcp_touchstone.cli import main
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.report import html, machine, markdown
from mcp_touchstone.results.run import Run
from mcp_touchstone.sandbox.sandbox import Method, probe
from mcp_touchstone.target.target import ROOT, Target, reference
from tests.runs import learning

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "renameat2"),
        reason="needs renameat2 of Linux",
    ),
]

SERVER = Path(__file__).parents[1] / "swapping_server.py"
PRECIOUS = "precious-7f3a9c51e2d84b06"

NAMES = (
    "ok.txt",
    "control.txt",
    "existing.txt",
    "m.py",
    "new.txt",
    "p.txt",
    "edits.txt",
    "README.md",
    "canary-file.txt",
    "src.py",
)
"""Names of our files, which the folder of the user has too."""


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Return a folder of the user with names like those in a root."""
    top = tmp_path / "host"
    for folder in (top, *(top / name for name in ("dir", "probe", "root", "outside", "notes"))):
        folder.mkdir()
        for name in ("file", *NAMES):
            (folder / name).write_text(f"{PRECIOUS} {name}\n", encoding="utf-8")
    return top


def facts(folder: Path) -> dict[str, tuple[int, int, int, str]]:
    """Return the mode, time, number and digest of all that a folder has, and of the folder."""
    found = {}
    for path in sorted([folder, *folder.rglob("*")]):
        known = path.lstat()
        data = path.read_bytes() if path.is_file() else b""
        made = hashlib.sha256(data).hexdigest()
        found[str(path)] = (known.st_mode, known.st_mtime_ns, known.st_ino, made)
    return found


def swapping(how: str, host: Path, sandbox: Method | None) -> Target:
    """Return the reference server behind the swapping server."""
    own = reference()
    words = (sys.executable, "-S", str(SERVER), how, os.fsencode(host).hex(), ROOT, "--")
    return replace(own, command=(*words, *own.command), method=sandbox)


def said(run: Run) -> Iterator[str]:
    """Yield everything that a run shows or keeps."""
    yield json.dumps(machine.document(run))
    yield html.render(run)
    yield markdown.render(run)
    for connection in run.connections:
        yield connection.process.pipes.stderr_tail.decode("utf-8", "replace")
        for entry in connection.transcript:
            yield entry.raw.decode("utf-8", "replace")


LONG = {"deny", "injection", "stats", "traversal"}
"""Chapters with most of the payloads. They reach our files by the same code as the others."""


def chapters() -> tuple[str, ...]:
    """Return the chapters of the attacks in which our code reaches files, but for the long ones."""
    rows = load(SECURITY).catalogue
    groups = {"containment", "promises", "leaks"}
    return tuple(sorted({row.chapter for row in rows if row.group in groups} - LONG))


CASES = [
    ("off", "all", SECURITY),
    ("unshare", "inside", SECURITY),  # conformance has no attack, so nothing would be exchanged
    ("off", "all", CONFORMANCE),
    ("bwrap", "all", CONFORMANCE),
]


@pytest.mark.parametrize(("sandbox", "how", "suite"), CASES)
def test_run_leaves_the_files_of_the_user(host: Path, sandbox: str, how: str, suite: str) -> None:
    method = None if sandbox == "off" else Method(sandbox)
    if method is not None and (why := probe(method)):
        pytest.skip(why)
    levels = tuple(Tier) if method else LEVELS  # commands only in a sandbox
    before = facts(host)

    target = swapping(how, host, method)
    # Our code reaches files in the same way in every revision; attacks run in one anyway.
    choice = Choice(
        tiers=tiers(levels),
        revisions=(rev.LATEST_LEGACY,),
        select=chapters() if suite == SECURITY else (),
    )
    run, profile = learning(target, load(suite), choice)

    assert facts(host) == before
    for text in said(run):
        assert PRECIOUS not in text
    if suite == SECURITY and how == "inside":  # the tools are found, so all attacks run
        assert profile.bindings is not None
        assert len(profile.bindings.found) > 10
    assert len(run.verdicts) > 40


@pytest.mark.parametrize("words", [("recon",), ("golden", "record", "--folder", "{folder}")])
def test_command_leaves_the_files_of_the_user(
    host: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    before = facts(host)
    own = reference()
    command = (
        sys.executable,
        "-S",
        str(SERVER),
        "all",
        os.fsencode(host).hex(),
        ROOT,
        "--",
        *own.command,
    )
    env = [word for name, value in own.env.items() for word in ("--env", f"{name}={value}")]
    named = [word.replace("{folder}", str(tmp_path / "golden")) for word in words]

    main([*named, "--sandbox", "off", *env, "--", *command])

    assert facts(host) == before
    assert PRECIOUS not in "".join(capfd.readouterr())
    for path in (tmp_path / "golden").rglob("*.json"):
        assert PRECIOUS not in path.read_text(encoding="utf-8")
