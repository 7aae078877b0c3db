"""Races with links that are exchanged during access, and SIGKILL at random moments."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from reference_server.failure import ToolError
from reference_server.settings import Settings
from reference_server.workspace import Workspace, descent
from reference_server.workspace.entries import sha256
from reference_server.workspace.names import OURS
from reference_server.workspace.place import Root
from tests.conftest import eventually
from tests.name_exchange import can_exchange, exchanging
from tests.reference_client import CHECKOUT, Spawned, modern

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

READS = 4_000
KILLS = 50
CANARY = "CANARY-7f1c"

pytestmark = pytest.mark.skipif(os.name == "nt", reason="exchanges and SIGKILL of POSIX")


class Field:
    """A root whose directory ``d`` and file ``f`` are exchanged with links to the outside."""

    def __init__(self, top: Path) -> None:
        self.root = top / "root"
        outside = top / "outside"
        (self.root / "race" / "d").mkdir(parents=True)
        outside.mkdir()
        (outside / "x.txt").write_text(CANARY)
        (self.root / "race" / "d" / "x.txt").write_text("inside")
        (self.root / "race" / "l").symlink_to(outside)
        (self.root / "race" / "f").write_text("inside")
        (self.root / "race" / "lf").symlink_to(outside / "x.txt")
        self.outside = outside


@pytest.fixture
def field(tmp_path: Path) -> Field:
    if not can_exchange(tmp_path):
        pytest.skip("this system does not exchange two names at once")
    return Field(tmp_path)


PAIRS = [("d", "l", "race/d/x.txt"), ("f", "lf", "race/f")]


@pytest.mark.parametrize(("one", "other", "path"), PAIRS)
@pytest.mark.parametrize("way", ["openat2", "walk"])
def test_openat2_and_walk_stay_inside_the_root_during_an_exchange(
    field: Field, monkeypatch: pytest.MonkeyPatch, way: str, one: str, other: str, path: str
) -> None:
    if way == "walk":
        monkeypatch.setattr(descent, "_found", [None])
    files = Workspace(Settings([str(field.root)], read_only=True), Mock())
    race = field.root / "race"
    with exchanging(race / one, race / other):
        heard: set[str] = set()
        deadline = time.monotonic() + 20
        while not {"inside"} < heard and time.monotonic() < deadline:  # until the race was hit
            heard |= {
                attempt(lambda: str(files.read(path).data, "utf-8")) for _ in range(READS // 2)
            }

    assert {"inside"} < heard <= {"inside", "LINK", "NOT_DIRECTORY"}


@pytest.mark.parametrize(("one", "other", "path"), PAIRS)
def test_control_that_resolves_before_opening_leaks(
    field: Field, one: str, other: str, path: str
) -> None:
    """Control: the usual resolve-then-open check leaks in the same race."""

    def resolve_then_open() -> str:
        resolved = (field.root / path).resolve()
        if not resolved.is_relative_to(field.root.resolve()):
            raise ToolError("outside")
        return (field.root / path).read_text()

    race = field.root / "race"
    with exchanging(race / one, race / other):
        deadline = time.monotonic() + 20
        leaks = 0
        while not leaks and time.monotonic() < deadline:
            heard = [attempt(resolve_then_open) for _ in range(READS // len(PAIRS))]
            leaks = heard.count(CANARY)
    assert leaks


def test_writes_during_a_link_exchange_stay_inside_the_root(field: Field) -> None:
    race = field.root / "race"
    files = Workspace(Settings([str(field.root)]), Mock())

    def write(number: int) -> str:
        edit = files.edit("t")
        edit.put(f"race/d/new{number}.txt", b"x")
        edit.commit()
        return "written"

    with exchanging(race / "d", race / "l"):
        deadline = time.monotonic() + 20
        heard: list[str] = []
        while len(heard) < 200 or ("written" not in heard and time.monotonic() < deadline):
            heard.append(attempt(lambda: write(len(heard))))

    assert "written" in heard
    assert [path.name for path in field.outside.iterdir()] == ["x.txt"]
    assert (field.outside / "x.txt").read_text() == CANARY


def attempt(action: Callable[[], str]) -> str:
    try:
        return action()
    except ToolError as error:
        return error.code
    except OSError as error:
        return type(error).__name__


WRITER = """
import os, signal, sys, time
from unittest.mock import Mock
sys.path.insert(0, sys.argv[1])
from reference_server.operation.log import Log
from reference_server.settings import Settings
from reference_server.workspace import Workspace

def write_for_ever(root):
    settings = Settings([root])
    files = Workspace(settings, Log(settings))
    number = 0
    while True:
        number += 1
        data = (f"{os.getpid()}-{number} " * 4000).encode()
        alone = files.edit("writer")
        alone.put("alone.txt", data, before=files.read("alone.txt"))
        alone.commit()
        edit = files.edit("writer")
        for name in ("a.txt", "dir/b.txt", "dir/c.txt"):
            edit.put(name, data, before=files.read(name))
        edit.put(f"made{os.getpid()}-{number}/new.txt", data)
        edit.commit()
        last = files.edit("writer")
        last.remove(files.read(f"made{os.getpid()}-{number}/new.txt"))
        last.commit()

for line in sys.stdin:
    child = os.fork()
    if not child:
        write_for_ever(sys.argv[2])
    time.sleep(float(line))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    print("killed", flush=True)
"""


class Audits(set[str]):
    """The hashes of files of which a server that was killed, or a later start, logged a write."""

    def audit(self, _who: str, _request_id: str, changes: list[dict[str, Any]]) -> None:
        self.update(change["after"] for change in changes if change["after"])

    def record(self, *_event: Any) -> None: ...

    def read(self, log: Path) -> None:
        for line in log.read_text().splitlines():
            fact = json.loads(line)
            if fact["event"] == "write":
                self.audit("", "", [fact])


def seconds_of_an_edit(root: Path, names: Iterable[str]) -> float:
    begun = time.monotonic()
    files = Workspace(Settings([str(root)]), Mock())
    edit = files.edit("writer")
    for name in names:
        edit.put(name, b"begin " * 4000, before=files.read(name))
    edit.commit()
    return time.monotonic() - begun


def test_repeated_sigkill_leaves_no_torn_or_temporary_file(tmp_path: Path) -> None:
    """Several files change together; after SIGKILL and a restart all have the same version.

    One more changes alone. Each content that is there has a line in the audit.
    """
    root = tmp_path / "root"
    names = ("a.txt", "dir/b.txt", "dir/c.txt")
    every = (*names, "alone.txt")
    (root / "dir").mkdir(parents=True)
    for name in every:
        (root / name).write_text("start " * 4000)
    longest = max(0.03, 3 * seconds_of_an_edit(root, names))  # on a slow disk it takes longer
    chance = random.Random(7)  # noqa: S311 - when to kill, not a secret
    command = [sys.executable, "-c", WRITER, str(CHECKOUT), str(root)]
    log, audits = tmp_path / "log", Audits()
    audits |= {sha256((root / name).read_bytes()) for name in every}
    stories: set[str] = set()
    leftovers = 0
    enough = time.monotonic() + 20
    with (
        log.open("wb") as lines,
        subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=lines, text=True
        ) as process,
    ):
        assert process.stdin
        assert process.stdout
        for number in range(3 * KILLS):
            shown = leftovers and len(stories) > 1
            if shown and (number >= KILLS or time.monotonic() > enough):
                break  # fewer kills are enough on a slow disk
            if number >= KILLS:
                longest = min(1.1 * longest, 1.0)  # the machine became busy after the timed edit
            process.stdin.write(f"{chance.uniform(0.002, longest)}\n")
            process.stdin.flush()
            assert process.stdout.readline() == "killed\n"
            before_the_start = {name: (root / name).read_text() for name in every}
            assert all(len(set(text.split())) == 1 for text in before_the_start.values())
            leftovers += any(OURS in path.name for path in root.rglob("*"))

            Workspace(Settings([str(root)]), audits)  # type: ignore[arg-type]

            assert not [path for path in root.rglob("*") if OURS in path.name]
            audits.read(log)
            assert {sha256((root / name).read_bytes()) for name in every} <= audits
            contents = {(root / name).read_text() for name in names}
            assert len(contents) == 1
            stories |= contents
        process.stdin.close()

    assert leftovers, "no kill came in the middle of a write, so nothing was shown"
    assert len(stories) > 1


def test_next_start_removes_a_leftover_plan(tmp_path: Path) -> None:
    state = Path(Settings().state_folder)
    state.mkdir(parents=True, exist_ok=True)
    state.chmod(0o700)
    plan = state / f"{Root(str(tmp_path)).key}-00ff.json"
    plan.write_text('{"made": [], "files": [')
    with Spawned("--root", str(tmp_path)) as client:
        client.send(modern(1, "server/discover"))
        assert client.hear()["id"] == 1
        eventually(lambda: not plan.exists())
