"""Recovery after a kill, plans that a stranger has planted, and edits whose directories move."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from reference_server.failure import ToolError
from reference_server.settings import Settings
from reference_server.workspace import Workspace, place
from reference_server.workspace.entries import sha256
from reference_server.workspace.journal import Journal
from reference_server.workspace.names import OURS
from tests.name_exchange import can_exchange, exchanging
from tests.reference_client import CHECKOUT, Spawned, modern

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links, FIFOs and descriptors of POSIX")

STRANGER = f"{OURS}abcdefabcdef"
STATE = Path(Settings().state_folder).name


class Killed(BaseException):
    """Simulates SIGKILL: no code of an edit runs after it."""


class Diary:
    """A log that remembers its events and its audit lines."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.written: list[str] = []
        self.audits: list[tuple[str, str, list[dict[str, Any]]]] = []

    def audit(self, who: str, request_id: str, changes: list[dict[str, Any]]) -> None:
        self.audits.append((who, request_id, changes))
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


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of plans, which does not exist yet."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "mcp-touchstone" / STATE


def opened(*roots: Path, **options: Any) -> tuple[Workspace, Diary]:
    diary = Diary()
    return Workspace(Settings(list(map(str, roots)), **options), diary), diary  # type: ignore[arg-type]


def kill_in(step: str, root: Path, changes: Mapping[str, bytes | None], **options: Any) -> None:
    """Make an edit that ends where a method of the journal begins."""
    files, _ = opened(root, **options)
    edit = files.edit("client 1.0 #5", "req_5")
    for path, data in changes.items():
        before = files.find(path)
        if data is not None:
            edit.put(path, data, before=before)
        elif before is not None:
            edit.remove(before)

    def die(*_: Any) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        for name in (step, "_undo", "close"):
            patch.setattr(Journal, name, property(die) if name == "done" else die)
        with pytest.raises(Killed):
            edit.commit()


def content(folder: Path) -> dict[str, Any]:
    """Return the files below a folder: their bytes, or what links and others are."""
    return {
        path.relative_to(folder).as_posix(): str(path.readlink())
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file() and path.stat().st_size < 1 << 20
        else stat.S_IFMT(path.lstat().st_mode)
        for path in folder.rglob("*")
    }


def journal(plan: Any, *, staged: bool = True) -> bytes:
    return json.dumps(plan).encode() + (b"\nstaged\n" if staged else b"\n")


def planned(**entry: Any) -> dict[str, Any]:
    known = {"parts": ["ok.txt"], "temporary": f"{STRANGER}-0", "before": None, "after": None}
    about = {"who": "", "request_id": "", "rules": [True, True]}
    return {**about, "made": [], "files": [{**known, **entry}]}


def hashed(data: bytes) -> list[Any]:
    return [sha256(data), len(data)]


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


def test_recovery_and_a_first_call_may_import_at_the_same_time(
    root: Path, state: Path, tmp_path: Path
) -> None:
    state.mkdir(parents=True)
    (state / "0-0-0.json").write_bytes(b"")
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


PLAIN = {"before": hashed(b"plain\n")}
WELL_FORMED: dict[str, Callable[[Path], Any]] = {
    "deletes": write(journal(planned(**PLAIN))),
    "replaces": write(journal(planned(**PLAIN, after=hashed(b"new\n")))),
    "creates": write(journal(planned(parts=["new.txt"], after=hashed(b"new\n")))),
    "removes a folder": write(journal({**planned(), "made": [["empty"]]}, staged=False)),
}
DAMAGED: dict[str, Callable[[Path], Any]] = {
    "deep": write(b"[" * 200_000 + b"\n"),
    "incomplete and deep": write(b"[" * 200_000),
    "NUL": write(journal(planned(parts=["a\0b"]))),
    "surrogate": write(journal(planned(parts=["\ud800"]))),
    "dots": write(journal(planned(parts=["..", "outside", "x.txt"]))),
    "no plan": write(b"[]\nstaged\n"),
    "20 GB": sparse,
    "directory": lambda path: (path / "inside").mkdir(parents=True),
    "FIFO": lambda path: os.mkfifo(path, 0o600),
    "link": lambda path: path.symlink_to("../outside/x.txt"),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
}


PLANTED = {**WELL_FORMED, **DAMAGED}


@pytest.mark.parametrize("temporary", ["file", "link"])
@pytest.mark.parametrize("plant", PLANTED.values(), ids=PLANTED)
def test_plan_in_a_root_is_never_used(root: Path, state: Path, plant: Any, temporary: str) -> None:
    key = place.Root(str(root)).key
    names = (f"{STRANGER}.journal", f"{STRANGER}.json", f"{key}-abcdefabcdef.json")
    for name in (*names, f"{STRANGER}-1.journal"):
        plant(root / name)
    (root / "empty").mkdir()
    if temporary == "file":
        (root / f"{STRANGER}-0").write_text("new\n")
    else:
        (root / f"{STRANGER}-0").symlink_to("../outside/x.txt")
    before = content(root.parent)

    with Spawned("--root", str(root)) as client:
        client.send(modern(1, "tools/call", name="file_read", arguments={"path": "ok.txt"}))
        client.end_input()
        [answer] = client.rest()
        assert (client.exit_code(), client.stderr()) == (0, "")

    assert answer["result"]["structuredContent"]["text"] == "plain\n"
    assert content(root.parent) == before
    assert not state.exists()


def test_plan_that_was_copied_into_a_root_is_not_used_there(root: Path, state: Path) -> None:
    """From another root with the same files, or an older one of the same root."""
    kill_in("_rename", root, {"ok.txt": b"new\n", "more/b.txt": b"b"})
    [plan] = state.iterdir()
    other = root.parent / "other"
    shutil.copytree(root, other)
    data = plan.read_bytes()
    opened(root)
    (root / "ok.txt").write_bytes(b"plain\n")
    for temporary in other.glob(f"{OURS}*"):
        shutil.copy(temporary, root)
    for path in (root, other):
        (path / f"{STRANGER}.journal").write_bytes(data)
        (path / plan.name).write_bytes(data)
    before = content(root), content(other)

    _, diary = opened(root, other)

    assert (content(root), content(other)) == before
    assert (diary.events, diary.written) == ([], [])


@pytest.mark.parametrize("plant", DAMAGED.values(), ids=DAMAGED)
def test_damaged_plan_stops_no_start_and_no_other_recovery(
    root: Path, state: Path, plant: Any
) -> None:
    kill_in("_rename", root, {"ok.txt": b"new\n", "b.txt": b"b"})
    key = place.Root(str(root)).key
    plant(state / f"{key}-000000000000.json")
    plant(state / f"{key}-gggggggggggg.json")
    plant(state / "0-00000000-000000000000.json")

    _, diary = opened(root)

    assert diary.written == ["ok.txt", "b.txt"]
    assert (root / "ok.txt").read_text() == "new\n"
    assert not [path for path in root.rglob(f"{OURS}*") if path.name != f"{STRANGER}-0"]
    assert (root.parent / "outside" / "x.txt").read_text() == "CANARY"
    assert [path.name for path in state.glob("*.json")] == ["0-00000000-000000000000.json"]


def test_plan_that_is_refused_is_set_aside_and_named_in_the_log(root: Path, state: Path) -> None:
    key = place.Root(str(root)).key
    state.mkdir(parents=True)
    (state / f"{key}-1.json").write_text("{}\n")

    _, diary = opened(root)

    assert diary.events == [("plan_refused", {"file": f"{key}-1.refused"})]
    assert (state / f"{key}-1.refused").read_text() == "{}\n"
    assert opened(root)[1].events == [], "a later start reads it again"


def test_huge_file_in_place_of_an_old_one_is_not_read(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kill_in("_rename", root, {"ok.txt": b"new\n", "b.txt": b"b"})
    sparse(root / "ok.txt")
    monkeypatch.setattr(os, "fdopen", no_huge_file(os.fdopen))

    opened(root)

    assert (root / "ok.txt").stat().st_size == 20 << 30
    assert [path.name for path in root.iterdir()] == ["ok.txt"]


def no_huge_file(real: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``os.fdopen`` for files that fit into memory."""

    def fdopen(descriptor: int, mode: str) -> Any:
        assert os.fstat(descriptor).st_size < 1 << 30
        return real(descriptor, mode)

    return fdopen


IN_PLACE_OF_A_TEMPORARY: dict[str, Callable[[Path], Any]] = {
    "nothing": lambda _path: None,
    "other bytes": write(b"evil"),
    "more bytes": sparse,
    "link to the bytes": lambda path: path.symlink_to("../outside/new.txt"),
    "link to a device": lambda path: path.symlink_to("/dev/zero"),
    "FIFO": lambda path: os.mkfifo(path, 0o600),
    "directory": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("plant", IN_PLACE_OF_A_TEMPORARY.values(), ids=IN_PLACE_OF_A_TEMPORARY)
def test_temporary_without_the_promised_bytes_undoes_the_edit(root: Path, plant: Any) -> None:
    (root.parent / "outside" / "new.txt").write_bytes(b"new\n")
    (root / "gone.txt").write_bytes(b"gone")
    kill_in("_rename", root, {"b/b.txt": b"b", "ok.txt": b"new\n", "gone.txt": None})
    [temporary] = root.glob(f"{OURS}*-1")
    temporary.unlink()
    plant(temporary)

    _, diary = opened(root)

    assert diary.written == []
    assert diary.events == [("recovered", {"files": 0, "lost": []})]
    if temporary.is_dir():
        temporary.rmdir()  # a directory is not ours
    assert content(root) == {"ok.txt": b"plain\n", "gone.txt": b"gone"}


def test_edit_that_others_have_changed_half_way_is_finished_without_their_files(
    root: Path,
) -> None:
    changes = {"ok.txt": b"new\n", "b.txt": b"b", "c.txt": b"c"}
    kill_in("_rename", root, changes)
    next(root.glob(f"{OURS}*-0")).replace(root / "ok.txt")
    (root / "b.txt").write_bytes(b"others")

    _, diary = opened(root)

    assert content(root) == {"ok.txt": b"new\n", "b.txt": b"others", "c.txt": b"c"}
    assert diary.written == ["ok.txt", "c.txt"]
    assert diary.events == [("recovered", {"files": 2, "lost": ["b.txt"]})]


@pytest.mark.parametrize("step", ["_rename", "_tidy", "done"])
def test_recovered_write_has_the_audit_line_of_its_request(root: Path, step: str) -> None:
    """Before the renames, after them, and just before the audit of the server that was killed."""
    (root / "gone.txt").write_bytes(b"gone")
    kill_in(step, root, {"ok.txt": b"new\n", "d/b.txt": b"b", "gone.txt": None})

    _, diary = opened(root)

    assert content(root) == {"ok.txt": b"new\n", "d": stat.S_IFDIR, "d/b.txt": b"b"}
    lines = [
        {"path": "ok.txt", "before": sha256(b"plain\n"), "after": sha256(b"new\n")},
        {"path": "d/b.txt", "before": None, "after": sha256(b"b")},
        {"path": "gone.txt", "before": sha256(b"gone"), "after": None},
    ]
    assert diary.audits == [("client 1.0 #5", "req_5", lines)]
    assert opened(root)[1].audits == []


def test_edit_of_one_file_that_was_killed_before_its_audit_has_a_line(root: Path) -> None:
    kill_in("done", root, {"ok.txt": b"new\n"})
    assert opened(root)[1].written == ["ok.txt"]

    kill_in("_rename", root, {"ok.txt": b"newer\n"})
    assert opened(root)[1].written == []
    assert content(root) == {"ok.txt": b"new\n"}


def test_read_only_server_recovers_nothing(root: Path, state: Path) -> None:
    kill_in("_rename", root, {"ok.txt": b"new\n", "b.txt": b"b"})
    before = content(root), content(state)

    _, diary = opened(root, read_only=True)
    with Spawned("--root", str(root), "--read-only") as client:
        client.send(modern(1, "tools/call", name="file_read", arguments={"path": "ok.txt"}))
        assert client.hear()["result"]["structuredContent"]["text"] == "plain\n"
        client.end_input()
        assert (client.exit_code(), client.stderr()) == (0, "")

    assert (content(root), content(state)) == before
    assert (diary.events, diary.written) == ([], [])
    assert opened(root)[1].written == ["ok.txt", "b.txt"]


STRICTER: dict[str, dict[str, Any]] = {
    "asks the user": {"confirm_writes": True},
    "patches only": {"text_editor": False},
    "denies": {"deny": ["ok.txt"]},
    "denies writes": {"deny_writes": ["*.txt"]},
    "allows others": {"allow": ["*.py"]},
    "smaller files": {"max_file_size": 3},
}


@pytest.mark.parametrize("options", STRICTER.values(), ids=STRICTER)
def test_edit_that_the_rules_now_forbid_is_not_finished(
    root: Path, state: Path, options: dict[str, Any]
) -> None:
    kill_in("_rename", root, {"ok.txt": b"new\n", "b.txt": b"b"})

    _, diary = opened(root, **options)

    assert (root / "ok.txt").read_bytes() == b"plain\n"
    assert not (root / "b.txt").exists()
    assert [event for event, _ in diary.events] == ["plan_refused"]
    assert diary.written == []
    assert [path.suffix for path in state.iterdir()] == [".refused"]


def test_edit_that_the_user_has_confirmed_is_finished(root: Path) -> None:
    kill_in("_rename", root, {"ok.txt": b"new\n", "b.txt": b"b"}, confirm_writes=True)

    assert opened(root, confirm_writes=True)[1].written == ["ok.txt", "b.txt"]


def test_each_root_has_its_own_plans(root: Path, state: Path) -> None:
    other = root.parent / "other"
    shutil.copytree(root, other)
    for path in (root, other):
        kill_in("_rename", path, {"ok.txt": b"new\n", "b.txt": b"b"})

    assert opened(other)[1].written == ["ok.txt", "b.txt"]
    assert (root / "ok.txt").read_bytes() == b"plain\n"
    assert len(list(state.iterdir())) == 1
    _, diary = opened(other, root)
    assert diary.written == ["root/ok.txt", "root/b.txt"]
    assert list(state.iterdir()) == []


def in_the_root(root: Path, state: Path) -> None:
    state.parent.parent.symlink_to(root / "home")
    (root / "home").mkdir()


def of_others(_root: Path, state: Path) -> None:
    state.mkdir(parents=True)
    state.chmod(0o777)


def linked(root: Path, state: Path) -> None:
    state.parent.mkdir(parents=True)
    (root.parent / "elsewhere").mkdir()
    state.symlink_to(root.parent / "elsewhere")


def no_folder(_root: Path, state: Path) -> None:
    state.parent.parent.write_text("a file")


UNSAFE = {
    "below the root": (in_the_root, "the state folder is below a root"),
    "writable for others": (of_others, "others may write in the state folder"),
    "a link": (linked, None),
    "not to be made": (no_folder, None),
}


@pytest.mark.parametrize(("make", "reason"), UNSAFE.values(), ids=UNSAFE)
def test_unsafe_state_folder_is_not_used_and_edits_are_made_without_plans(
    root: Path, state: Path, make: Callable[[Path, Path], None], reason: str | None
) -> None:
    make(root, state)
    before = content(root.parent)
    files, diary = opened(root)

    create(files, "one.txt")
    assert diary.events == []
    create(files, "two.txt", "three.txt")

    assert diary.written == ["one.txt", "two.txt", "three.txt"]
    [(event, facts)] = diary.events
    assert event == "edit_unplanned"
    assert facts["reason"] == reason or (reason is None and facts["reason"])
    made = {f"root/{path}": b"x" for path in diary.written}
    assert content(root.parent) == {**before, **made}


def test_plan_in_a_state_folder_below_the_root_is_not_used(root: Path, state: Path) -> None:
    """As if a repository were the home of its user; or a client of another root wrote the plan."""
    kill_in("_rename", root, {"ok.txt": b"new\n", "b.txt": b"b"})

    _, diary = opened(root, state.parent.parent)

    assert (root / "ok.txt").read_bytes() == b"plain\n"
    assert diary.written == []


@pytest.mark.parametrize("name", [STATE, STATE.upper(), f"{OURS.title()}x.json"])
def test_no_client_sees_or_writes_the_folder_of_plans(root: Path, name: str) -> None:
    files, _ = opened(root)
    path = f"home/{name}/plan.json"
    with pytest.raises(ToolError) as reading:
        files.find(path)
    with pytest.raises(ToolError) as writing:
        files.edit("t").put(path, b"x")
    assert (reading.value.code, writing.value.code) == ("DENIED", "DENIED")


def test_state_folder_of_a_user_without_a_home_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "relative")
    assert Settings().state_folder == ""

    monkeypatch.setenv("HOME", "/home/u")
    assert Settings().state_folder == f"/home/u/.local/state/mcp-touchstone/{STATE}"


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
    opened(root)  # the plan is still there, so the next start removes the rest
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
