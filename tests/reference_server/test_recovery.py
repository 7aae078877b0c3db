"""Journals that a stranger has planted, and what an edit does when others move its directories."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from reference_server.failure import ToolError
from reference_server.settings import Settings
from reference_server.workspace import Workspace, place
from reference_server.workspace.entries import sha256
from reference_server.workspace.names import OURS
from tests.name_exchange import can_exchange, exchanging
from tests.reference_client import CHECKOUT, Spawned, modern

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links, FIFOs and descriptors of POSIX")

BAD = f"{OURS}abcdefabcdef"
GOOD = f"{OURS}ffffffffffff"


class Diary:
    """A log that remembers its events and its audit lines."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.written: list[str] = []

    def audit(self, _who: str, _request_id: str, changes: list[dict[str, Any]]) -> None:
        self.written += [change["path"] for change in changes]

    def warning(self, event: str, **facts: Any) -> None:
        self.events.append((event, facts))

    def record(self, _level: str, event: str, facts: dict[str, Any]) -> None:
        self.events.append((event, facts))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (root / "ok.txt").write_text("plain\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x.txt").write_text("CANARY")
    return root


def opened(root: Path) -> tuple[Workspace, Diary]:
    diary = Diary()
    return Workspace(Settings([str(root)]), diary), diary  # type: ignore[arg-type]


def journal(plan: Any, *, staged: bool = True) -> bytes:
    return json.dumps(plan).encode() + (b"\nstaged\n" if staged else b"\n")


def planned(**entry: Any) -> dict[str, Any]:
    known = {"parts": ["ok.txt"], "temporary": f"{BAD}-0", "before": "", "after": None}
    return {"made": [], "files": [{**known, **entry}]}


def write(data: bytes) -> Callable[[Path], Any]:
    return lambda path: path.write_bytes(data)


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(20 << 30)


SLOW_IMPORT = """
import builtins, time
plain = builtins.__import__
def slow(name, *more, **named):
    if name == "edit":  # the first import of the package workspace
        time.sleep(0.5)
    return plain(name, *more, **named)
builtins.__import__ = slow
"""


def test_recovery_and_a_first_call_may_import_at_the_same_time(root: Path, tmp_path: Path) -> None:
    (root / f"{BAD}.journal").write_bytes(b"")
    (tmp_path / "sitecustomize.py").write_text(SLOW_IMPORT, "utf-8")
    call = {"name": "file_read", "arguments": {"path": "ok.txt"}}
    request = modern(1, "tools/call", **call)
    done = subprocess.run(
        [sys.executable, "-m", "reference_server", "--root", str(root)],
        input=json.dumps(request) + "\n",
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        cwd=CHECKOUT,
        timeout=60,
        check=False,
    )

    assert (done.returncode, "plain" in done.stdout) == (0, True), done.stderr


PLANTED: dict[str, Callable[[Path], Any]] = {
    "deep": write(b"[" * 200_000 + b"\n"),
    "incomplete and deep": write(b"[" * 200_000),
    "NUL": write(journal(planned(parts=["a\0b"]))),
    "NUL, not staged": write(journal({"made": [["a\0b"]], "files": []}, staged=False)),
    "surrogate": write(journal(planned(parts=["\ud800"]))),
    "surrogate, not staged": write(journal({"made": [["\udc80"]], "files": []}, staged=False)),
    "dots": write(journal(planned(parts=["..", "outside", "x.txt"]))),
    "very long name": write(journal({"made": [["d"] * 10_000], "files": []}, staged=False)),
    "digits": write(b'{"made":' + b"9" * 10_000 + b"}\n"),
    "20 GB": sparse,
    "directory": lambda path: (path / "inside").mkdir(parents=True),
    "FIFO": lambda path: os.mkfifo(path, 0o600),
    "link": lambda path: path.symlink_to("../outside/x.txt"),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED)
def test_planted_journal_stops_no_start_and_no_other_recovery(root: Path, plant: Any) -> None:
    plant(root / f"{BAD}.journal")
    (root / f"{GOOD}-0").write_text("new\n")
    entry = {"parts": ["ok.txt"], "temporary": f"{GOOD}-0"}
    hashes = {"before": sha256(b"plain\n"), "after": sha256(b"new\n")}
    good = journal({"made": [], "files": [{**entry, **hashes}]})
    (root / f"{GOOD}.journal").write_bytes(good)

    with Spawned("--root", str(root)) as client:
        call = {"name": "file_read", "arguments": {"path": "ok.txt"}}
        client.send(modern(1, "tools/call", **call))
        client.end_input()
        answers = client.rest()
        status, said = client.exit_code(), client.stderr()
        assert (status, "Traceback" in said) == (0, False), said

    [answer] = answers
    assert answer["result"]["structuredContent"]["text"] == "new\n"
    assert not list(root.glob("*.journal"))
    assert not list(root.glob(f"{GOOD}*"))
    assert (root.parent / "outside" / "x.txt").read_text() == "CANARY"


def test_refused_journal_is_set_aside_and_named_in_the_log(root: Path) -> None:
    (root / f"{BAD}.journal").write_text("{}\n")

    _, diary = opened(root)

    assert diary.events == [("journal_refused", {"file": f"{BAD}.refused"})]
    assert (root / f"{BAD}.refused").read_text() == "{}\n"
    assert opened(root)[1].events == [], "a later start reads it again"


def test_journal_that_cannot_be_renamed_stays_and_is_named(root: Path) -> None:
    (root / f"{BAD}.journal").write_text("{}\n")
    (root / f"{BAD}.refused").mkdir()

    _, diary = opened(root)

    assert diary.events == [("journal_refused", {"file": f"{BAD}.journal"})]


def test_huge_target_of_a_journal_is_not_read(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sparse(root / "ok.txt")
    (root / f"{BAD}.journal").write_bytes(journal(planned()))
    monkeypatch.setattr(os, "fdopen", no_huge_file(os.fdopen))

    _, diary = opened(root)

    assert diary.events == [("recovered", {"edits": 1})]
    assert (root / "ok.txt").stat().st_size == 20 << 30


def no_huge_file(real: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``os.fdopen`` for files that fit into memory."""

    def fdopen(descriptor: int, mode: str) -> Any:
        assert os.fstat(descriptor).st_size < 1 << 30
        return real(descriptor, mode)

    return fdopen


def create(files: Workspace, *paths: str) -> None:
    edit = files.edit("t")
    for path in paths:
        edit.put(path, b"x")
    edit.commit()


@pytest.mark.parametrize("paths", [("d/new.txt",), ("d/new.txt", "d/made/more.txt")])
@pytest.mark.parametrize("moment", ["claim", "remove"])
def test_edit_is_whole_and_audited_if_its_directory_moves(
    root: Path, monkeypatch: pytest.MonkeyPatch, moment: str, paths: tuple[str, ...]
) -> None:
    """A link takes the place of the directory just before the rename, or just after it."""
    (root / "d").mkdir()
    files, diary = opened(root)
    real = getattr(place.Place, moment)

    def swap_first(*arguments: Any) -> Any:
        if not (root / "l").exists():
            (root / "d").rename(root / "l")
            (root / "d").symlink_to("../outside")
        return real(*arguments)

    monkeypatch.setattr(place.Place, moment, swap_first)
    create(files, *paths)

    assert {path.replace("d/", "l/", 1) for path in paths} <= {
        path.relative_to(root).as_posix() for path in root.rglob("*")
    }
    assert diary.written == list(paths)
    assert not [path for path in root.rglob("*") if OURS in path.name]
    assert [path.name for path in (root.parent / "outside").iterdir()] == ["x.txt"]


def test_edit_in_a_directory_that_was_replaced_is_undone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "d").mkdir()
    files, diary = opened(root)
    real = place.Place.create

    def replace_after(self: place.Place, name: str, mode: int) -> int:
        descriptor = real(self, name, mode)
        if name.endswith("-0"):
            (root / "d").rename(root / "old")
            (root / "d").mkdir()
        return descriptor

    monkeypatch.setattr(place.Place, "create", replace_after)
    with pytest.raises(ToolError) as caught:
        create(files, "d/new.txt")

    assert caught.value.code == "CHANGED"
    assert diary.written == []
    assert sorted(path.name for path in root.rglob("*")) == ["d", "ok.txt", "old"]


@pytest.mark.parametrize("paths", [("new.txt",), ("new.txt", "made/more.txt")])
def test_leftovers_after_the_rename_do_not_fail_the_edit(
    root: Path, monkeypatch: pytest.MonkeyPatch, paths: tuple[str, ...]
) -> None:
    files, diary = opened(root)

    def failing(*_: Any) -> None:
        raise NotADirectoryError

    with monkeypatch.context() as patch:
        patch.setattr(place.Place, "remove", failing)
        create(files, *paths)

    assert diary.written == list(paths)
    [(event, facts)] = diary.events
    assert event == "temporaries_left"
    assert len(facts["paths"]) == len(paths)
    opened(root)  # the journal is still there, so the next start removes the rest
    assert not [path for path in root.rglob("*") if OURS in path.name]
    assert (root / "new.txt").read_bytes() == b"x"


def test_changes_that_cannot_be_undone_are_audited(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, diary = opened(root)
    edit = files.edit("t")
    for path in ("a.txt", "b.txt"):
        edit.put(path, b"x")

    def failing(*_: Any) -> None:
        raise OSError

    real = place.Place.claim

    def claim(self: place.Place, name: str, new: str) -> None:
        if new == "b.txt":
            monkeypatch.setattr(place.Place, "remove", failing)
            raise OSError
        real(self, name, new)

    monkeypatch.setattr(place.Place, "claim", claim)
    with pytest.raises(ToolError) as caught:
        edit.commit()

    assert "a.txt" in caught.value.message
    assert diary.written == ["a.txt"]


def test_no_edit_fails_silently_while_its_directory_is_exchanged(root: Path) -> None:
    if not can_exchange(root):
        pytest.skip("this system does not exchange two names at once")
    (root / "d").mkdir()
    (root / "l").symlink_to("../outside")
    files, diary = opened(root)
    with exchanging(root / "d", root / "l"):
        for number in range(500):
            path = f"d/new{number}.txt"
            try:
                create(files, path)
            except ToolError:
                written = False
            else:
                written = True
            assert (path in diary.written) == written

    there = {path.name for top in ("d", "l") for path in (root / top).iterdir()} - {"x.txt"}
    assert there == {path.removeprefix("d/") for path in diary.written}
    assert not [path for path in root.rglob("*") if OURS in path.name]
    assert [path.name for path in (root.parent / "outside").iterdir()] == ["x.txt"]


def change(root: Path) -> Diary:
    files, diary = opened(root)
    edit = files.edit("t")
    edit.put("ok.txt", b"new\n", before=files.read("ok.txt"))
    edit.commit()
    assert (root / "ok.txt").read_bytes() == b"new\n"
    return diary


def refuse(*_: Any, **__: Any) -> None:
    raise PermissionError


def set_attribute(path: Path, name: str, value: bytes) -> None:
    if not hasattr(os, "setxattr"):
        pytest.skip("this system has no extended attributes")
    try:
        os.setxattr(path, name, value)
    except OSError:
        pytest.skip(f"this file system has no {name}")


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0 if os.name != "nt" else True, reason="needs root")


@AS_ROOT
def test_owner_and_set_id_bits_are_kept(root: Path) -> None:
    os.chown(root / "ok.txt", 1000, 1001)
    (root / "ok.txt").chmod(0o6755)

    assert change(root).events == []

    found = (root / "ok.txt").stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (1000, 1001, 0o6755)


@AS_ROOT
def test_set_id_bits_are_dropped_if_the_owner_changes(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.chown(root / "ok.txt", 1000, 1001)
    (root / "ok.txt").chmod(0o6755)
    monkeypatch.setattr(os, "fchown", refuse)

    [(event, facts)] = change(root).events

    assert stat.S_IMODE((root / "ok.txt").stat().st_mode) == 0o755
    assert event == "attributes_lost"
    assert facts["path"] == "ok.txt"
    assert facts["lost"] == ["owner", "group", "set-id bits"]


def test_extended_attributes_are_kept(root: Path) -> None:
    set_attribute(root / "ok.txt", "user.mime", b"text/plain")

    assert change(root).events == []

    assert os.getxattr(root / "ok.txt", "user.mime") == b"text/plain"


def test_lost_extended_attributes_are_logged(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_attribute(root / "ok.txt", "user.mime", b"text/plain")
    monkeypatch.setattr(os, "setxattr", refuse)

    [(event, facts)] = change(root).events

    assert event == "attributes_lost"
    assert facts["lost"] == ["user.mime"]


ACL = "system.posix_acl_access"
# version 2; owner rw, user 1000 r, group r, mask r, others nothing
GRANT = bytes.fromhex(
    "0200000001000600ffffffff02000400e803000004000400ffffffff10000400ffffffff20000000ffffffff"
)


def test_access_list_is_kept(root: Path) -> None:
    set_attribute(root / "ok.txt", ACL, GRANT)

    assert change(root).events == []

    assert os.getxattr(root / "ok.txt", ACL) == GRANT


def test_default_access_list_of_a_directory_is_not_given_to_an_edited_file(root: Path) -> None:
    set_attribute(root, "system.posix_acl_default", GRANT)

    assert change(root).events == []

    assert ACL not in os.listxattr(root / "ok.txt")
    assert stat.S_IMODE((root / "ok.txt").stat().st_mode) == 0o644
