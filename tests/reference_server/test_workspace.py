"""The workspace: reads, refusals, and edits that are applied whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from reference_server.failure import ToolError
from reference_server.settings import Settings
from reference_server.workspace import Workspace, descent, place
from reference_server.workspace.names import OURS, Names
from tests.cases import cases

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

POSIX_ONLY = pytest.mark.skipif(os.name == "nt", reason="links, pipes and descriptors of POSIX")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "dir" / "sub").mkdir(parents=True)
    (root / "ok.txt").write_text("plain\n")
    (root / "dir" / "sub" / "deep.txt").write_text("deep\n")
    (tmp_path / "rootEvil").mkdir()
    (tmp_path / "rootEvil" / "secret.txt").write_text("CANARY")
    (tmp_path / "outside.txt").write_text("CANARY")
    return root


@pytest.fixture(params=["openat2", "walk"])
def beneath(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with the kernel's own resolution and with the walk."""
    if request.param == "walk":
        monkeypatch.setattr(descent, "_found", [None])
    elif descent._beneath() is None:
        pytest.skip("this system has no openat2")
    return str(request.param)


def workspace(root: Path, **options: Any) -> Workspace:
    return Workspace(Settings([str(root)], **options), Mock())


def code(action: Callable[[], Any]) -> str:
    with pytest.raises(ToolError) as caught:
        action()
    return caught.value.code


def tree(top: Path) -> dict[str, Any]:
    """Return every name below a directory with its kind and content."""
    found: dict[str, Any] = {}
    for path in sorted(top.rglob("*")):
        name = path.relative_to(top).as_posix()
        if path.is_symlink():
            found[name] = ("link", str(path.readlink()))
        elif path.is_dir():
            found[name] = "directory"
        else:
            found[name] = (stat.S_IMODE(path.stat().st_mode), path.read_bytes())
    return found


def test_absolute_path_is_read_in_every_spelling_of_the_root(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    files = workspace(link)

    for spelling in (link, root.resolve()):
        assert files.read(f"{spelling}/ok.txt").path == "ok.txt"


@cases(
    ("../outside.txt", "OUTSIDE_ROOT"),
    ("dir/../ok.txt", "OUTSIDE_ROOT"),
    ("dir/../../outside.txt", "OUTSIDE_ROOT"),
    ("/etc/passwd", "OUTSIDE_ROOT"),
    ("{root}Evil/secret.txt", "OUTSIDE_ROOT"),
    ("{root}/../outside.txt", "OUTSIDE_ROOT"),
    ("..\\outside.txt", "INVALID_PATH"),
    ("ok.txt\0.png", "INVALID_PATH"),
    ("ok\n.txt", "INVALID_PATH"),
    ("%2e%2e/outside.txt", "NOT_FOUND"),
    ("~/x", "NOT_FOUND"),
    ("\udcff", "NOT_FOUND"),
    ("x" * 5000, "INVALID_PATH"),
    ("x/" * 200 + "x", "INVALID_PATH"),
    ("ok.txt/x", "NOT_DIRECTORY"),
    ("dir", "IS_DIRECTORY"),
    ("", "IS_DIRECTORY"),
)
def test_invalid_paths_are_refused_with_their_own_code(
    root: Path, beneath: str, path: str, why: str
) -> None:
    files = workspace(root)

    assert code(lambda: files.read(path.replace("{root}", str(root)))) == why


@POSIX_ONLY
def test_links_are_not_followed(root: Path, beneath: str) -> None:
    (root / "out").symlink_to(root.parent / "outside.txt")
    (root / "in").symlink_to("ok.txt")
    (root / "up").symlink_to("..")
    (root / "loop").symlink_to("loop")
    (root / "proc").symlink_to("/proc/self/root")
    files = workspace(root)

    for path in ("out", "in", "up/outside.txt", "up", "loop", "proc/etc/passwd"):
        assert code(lambda path=path: files.read(path)) == "LINK"  # type: ignore[misc]
        assert code(lambda path=path: files.edit("t").put(path, b"x")) == "LINK"  # type: ignore[misc]


def test_size_limit_is_inclusive_for_reads_and_writes(root: Path) -> None:
    (root / "full").write_bytes(b"x" * 10)
    (root / "over").write_bytes(b"x" * 11)
    files = workspace(root, max_file_size=10)

    assert len(files.read("full").data) == 10
    assert code(lambda: files.read("over")) == "TOO_LARGE"
    files.edit("t").put("new", b"x" * 10)
    assert code(lambda: files.edit("t").put("new", b"x" * 11)) == "TOO_LARGE"


def test_cwd_must_be_inside_the_root(root: Path) -> None:
    files = workspace(root)

    assert files.read("deep.txt", cwd="dir/sub").path == "dir/sub/deep.txt"
    assert files.read("ok.txt", cwd=str(root)).path == "ok.txt"
    for cwd in ("..", "/", str(root.parent), "dir/../.."):
        assert code(lambda cwd=cwd: files.read("outside.txt", cwd=cwd)) == "OUTSIDE_ROOT"  # type: ignore[misc]


def test_first_root_takes_precedence_and_receives_new_files(root: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    (second / "ok.txt").write_text("hidden behind the first\n")
    (second / "only.txt").write_text("second\n")
    files = Workspace(Settings([str(root), str(second)]), Mock())

    assert files.read("ok.txt").data == b"plain\n"
    assert files.read("only.txt").data == b"second\n"
    assert files.read(f"{second}/ok.txt").data.startswith(b"hidden")
    assert [entry.path for entry in files.walk()] == [
        *("root/dir/sub/deep.txt", "root/ok.txt", "second/ok.txt", "second/only.txt")
    ]
    edit = files.edit("t")
    edit.put("new.txt", b"new")
    edit.commit()
    assert (root / "new.txt").read_bytes() == b"new"
    both = files.edit("t")
    both.put("ok.txt", b"1", before=files.read("ok.txt"))
    assert code(lambda: both.put("only.txt", b"2", before=files.read("only.txt"))) == "SPANS_ROOTS"


@POSIX_ONLY
def test_root_stays_the_same_directory_after_a_rename(root: Path) -> None:
    files = workspace(root)
    moved = root.rename(root.parent / "moved")
    root.symlink_to(root.parent / "rootEvil")

    assert code(lambda: files.read("secret.txt")) == "NOT_FOUND"
    assert files.read("ok.txt").data == b"plain\n"
    edit = files.edit("t")
    edit.put("new.txt", b"new")
    edit.commit()
    assert (moved / "new.txt").read_bytes() == b"new"


DENIED = [
    ".git/config",
    "a/.git/hooks/x",
    "wt/.git",
    "node_modules/p/i.js",
    "v/node_modules/x",
    "__pycache__/m.pyc",
    ".env",
    "config/.env",
    ".vs/x",
]
NEAR = [
    ".gitignore",
    ".github/ci.yml",
    "my.git/config",
    "environment.txt",
    ".envrc",
    ".env.local",
    "node_modules_old/x.js",
    "__pycache__x/x",
    ".vscode/s.json",
    "binary.txt",
    "robin/x",
    "cabin/obj.txt",
    "a..b.txt",
    "x...y",
    "dir/.hidden",
]


def plant(root: Path, path: str, text: str = "CANARY") -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


@pytest.mark.parametrize("path", DENIED)
def test_denied_names_are_denied_at_every_depth_even_if_missing(root: Path, path: str) -> None:
    files = workspace(root)
    before = code(lambda: files.read(path))
    plant(root, path)

    assert code(lambda: files.read(path)) == before == "DENIED"
    assert code(lambda: files.edit("t").put(path + "/new", b"")) == "DENIED"
    assert path not in [entry.path for entry in files.walk()]


@pytest.mark.parametrize("path", NEAR)
def test_near_misses_of_denied_names_are_read_and_written(root: Path, path: str) -> None:
    plant(root, path, "fine")
    files = workspace(root)
    edit = files.edit("t")

    edit.put(path, b"changed", before=files.read(path))
    edit.commit()

    assert (root / path).read_text() == "changed"


@pytest.mark.parametrize("path", ["bin/app.txt", "src/obj/x.txt"])
def test_build_output_is_read_and_not_written(root: Path, path: str) -> None:
    plant(root, path, "built")
    files = workspace(root)
    found = files.read(path)

    assert code(lambda: files.edit("t").put(path, b"x", before=found)) == "WRITE_DENIED"
    assert code(lambda: files.edit("t").remove(found)) == "WRITE_DENIED"
    assert code(lambda: files.edit("t").put("bin/new", b"x")) == "WRITE_DENIED"


GITS = [
    ".GIT",
    ".gIt",
    ".g\u200cit",
    "\uff0egit",
    ".ｇit",
    ".git.",
    ".GIT . ",
    ".git. .",
    "git~1",
    "GIT~2",
    ".git::$INDEX_ALLOCATION",
    ".git:x",
]


@pytest.mark.parametrize("name", [".ENV", "NODE_MODULES", ".env.", "node_modules ", "NODE_M~1"])
def test_case_folding_volume_denies_every_spelling_of_a_name(name: str) -> None:
    names = Names([".git", ".env", "node_modules"], [], [])

    assert names.denies((name,), folds=True)
    assert not names.denies((name,), folds=False)


@pytest.mark.parametrize("name", GITS)
def test_every_spelling_of_git_is_denied_on_every_volume(name: str) -> None:
    for folds in (True, False):
        assert Names([".git"], [], []).denies(("dir", name, "config"), folds=folds)
        assert Names([".git"], [], []).denies((name,), folds=folds)
        assert not Names([".env"], [], []).denies((name,), folds=folds)


@pytest.mark.parametrize("name", [".git.x", " .git", ".gitx", "git", "git~", "git~x", "it~1"])
def test_names_that_no_volume_equates_with_git_are_allowed(name: str) -> None:
    for folds in (True, False):
        assert not Names([".git"], [], []).denies((name,), folds=folds)


PATTERNS = ["*.pem", ".ssh/", "private/**", "config/*.secret", "**/cache/v?", "a/**/z", "[kK]eys"]
PATTERNS += ["/top", "/*.cfg/"]


@cases(
    *("x.pem", "dir/.pem", "x.pem/inside.txt", ".ssh/id", "dir/.ssh/config", "private/a"),
    *("private/sub/a", "config/db.secret", "cache/v1/x", "dir/cache/v2", "a/z", "a/b/c/z/q"),
    *("keys", "dir/Keys/x", "top/a", "x.cfg"),
)
def test_pattern_denies_its_matches_and_everything_below(root: Path, path: str) -> None:
    plant(root, path)
    files = workspace(root, deny=PATTERNS)

    assert code(lambda: files.read(path)) == "DENIED"
    assert code(lambda: files.edit("t").put(path + "/new", b"")) == "DENIED"
    assert path not in [entry.path for entry in files.walk()]


@cases(
    *("x.pem.txt", "xpem", "ssh/id", "dir/private/a", "private.txt", "config/sub/db.secret"),
    *("dir/config/db.secret", "cache/v", "cache/v12", "cache/x/v1", "b/a/z", "keyss"),
    *("dir/top/a", "topx", "dir/x.cfg"),
)
def test_pattern_allows_paths_it_does_not_match(root: Path, path: str) -> None:
    plant(root, path, "fine")
    files = workspace(root, deny=PATTERNS)

    assert files.read(path).data == b"fine"
    assert path in [entry.path for entry in files.walk()]


def test_directory_with_denied_contents_is_listed_empty(root: Path) -> None:
    plant(root, "private/a")
    files = workspace(root, deny=PATTERNS)

    assert "private" in [entry.name for entry in files.entries()]
    assert files.entries("private") == []


def test_write_pattern_denies_only_writing(root: Path) -> None:
    plant(root, "dist/app.min.js", "built")
    files = workspace(root, deny_writes=["*.min.js"])
    found = files.read("dist/app.min.js")

    assert code(lambda: files.edit("t").put(found.path, b"x", before=found)) == "WRITE_DENIED"
    assert code(lambda: files.edit("t").put("new.min.js", b"x")) == "WRITE_DENIED"


def test_case_folding_volume_matches_every_spelling_of_a_pattern() -> None:
    names = Names(["*.pem", "Private/*"], [], [])

    for parts in (("X.PEM",), ("x.\uff50em",), ("x.p\u200cem",), ("x.pem. ",), ("PRIVATE", "a")):
        assert names.denies(parts, folds=True)
        assert not names.denies(parts, folds=False)


def test_pattern_with_many_stars_is_matched_quickly() -> None:
    names = Names(["/".join(["**", "a"] * 20) + "/end"], [], [])

    names.check(("a",) * 120, folds=False)  # backtracking over every star would hang


def test_case_folding_is_detected_on_the_volume(root: Path) -> None:
    folds = (root / "OK.TXT").exists()

    assert workspace(root).policy.roots[0].folds == folds


def test_allow_list_excludes_other_files(root: Path) -> None:
    (root / "a.py").write_text("a")
    files = workspace(root, allow=["*.py"])

    assert files.read("a.py").data == b"a"
    assert code(lambda: files.read("ok.txt")) == "NOT_ALLOWED"
    assert (files.look("ok.txt") is None, files.look("a.py") is None) == (True, False)
    assert code(lambda: files.edit("t").put("new.txt", b"")) == "NOT_ALLOWED"
    assert [entry.path for entry in files.walk()] == ["a.py"]


def test_read_only_server_writes_nothing(root: Path) -> None:
    files = workspace(root, read_only=True)
    before = tree(root)

    assert code(lambda: files.edit("t").put("new", b"")) == "READ_ONLY"
    assert code(lambda: files.edit("t").remove(files.read("ok.txt"))) == "READ_ONLY"
    assert tree(root) == before


def test_invalid_cwd_is_refused_and_not_created(root: Path) -> None:
    files = workspace(root)
    before = tree(root)
    for cwd, why in (("nodir", "NOT_FOUND"), ("ok.txt", "NOT_DIRECTORY"), (".git", "DENIED")):
        for action in (
            lambda cwd=cwd: files.edit("t").put("new.txt", b"", cwd=cwd),
            lambda cwd=cwd: files.read("ok.txt", cwd=cwd),
            lambda cwd=cwd: files.entries("", cwd=cwd),
            lambda cwd=cwd: list(files.walk("", cwd=cwd)),
            lambda cwd=cwd: files.policy.candidates("new/x", cwd, writing=True),
        ):
            with pytest.raises(ToolError) as refused:
                action()
            assert (refused.value.code, refused.value.field) == (why, "cwd")
            assert refused.value.context == {"file": cwd}

    assert tree(root) == before


def test_cwd_selects_the_root_that_contains_it(root: Path) -> None:
    second = root.parent / "second"
    (second / "lib").mkdir(parents=True)
    files = Workspace(Settings([str(root), str(second)]), Mock())
    edit = files.edit("t")

    edit.put("new.txt", b"here", cwd="lib")
    edit.commit()

    assert (second / "lib" / "new.txt").read_bytes() == b"here"
    assert not (root / "lib").exists()


def test_client_roots_narrow_and_never_widen_access(root: Path) -> None:
    files = workspace(root)
    files.policy.narrow([(root / "dir").as_uri()])

    assert files.read("dir/sub/deep.txt").data == b"deep\n"
    assert code(lambda: files.read("ok.txt")) == "OUTSIDE_CLIENT_ROOTS"
    assert code(lambda: files.edit("t").put("new.txt", b"")) == "OUTSIDE_CLIENT_ROOTS"
    assert [entry.path for entry in files.walk()] == ["dir/sub/deep.txt"]
    assert [entry.name for entry in files.entries()] == ["dir"]

    files.policy.narrow([root.parent.as_uri()])
    assert files.read("ok.txt").data == b"plain\n"
    assert code(lambda: files.read("../outside.txt")) == "OUTSIDE_ROOT"

    odd = ["https://example.com/", "file://[", "file:///a%00b"]
    files.policy.narrow([(root.parent / "rootEvil").as_uri(), *odd])
    assert code(lambda: files.read("ok.txt")) == "OUTSIDE_CLIENT_ROOTS"
    assert code(lambda: files.read("secret.txt")) == "OUTSIDE_CLIENT_ROOTS"

    files.policy.narrow(None)
    assert files.read("ok.txt").data == b"plain\n"


def test_edit_replaces_creates_and_removes_files_in_one_commit(root: Path) -> None:
    script = root / "run.sh"
    script.write_text("old")
    script.chmod(0o754)
    files = workspace(root)
    heard: list[str] = []
    files.on_change(lambda changes: heard.extend(change.path for change in changes))
    edit = files.edit("client 1")
    edit.put("run.sh", b"new", before=files.read("run.sh"))
    edit.put("made/for/it.txt", b"created")
    edit.remove(files.read("ok.txt"))

    assert (root / "ok.txt").exists()
    edit.commit()

    assert script.read_text() == "new"
    assert os.name == "nt" or stat.S_IMODE(script.stat().st_mode) == 0o754
    assert (root / "made/for/it.txt").read_bytes() == b"created"
    assert not (root / "ok.txt").exists()
    assert heard == ["run.sh", "made/for/it.txt", "ok.txt"]
    assert not [name for name in tree(root) if OURS in name]
    [(who, _request_id, lines)] = [one.args for one in files.log.audit.call_args_list]  # type: ignore[attr-defined]
    assert who == "client 1"
    assert [line["path"] for line in lines] == heard
    assert [line["before"] is None for line in lines] == [False, True, False]
    assert [line["after"] is None for line in lines] == [False, False, True]


def test_file_that_appeared_meanwhile_is_not_overwritten(root: Path) -> None:
    files = workspace(root)
    assert code(lambda: files.edit("t").put("ok.txt", b"")) == "EXISTS"
    edit = files.edit("t")
    edit.put("new.txt", b"mine")
    (root / "new.txt").write_text("yours")

    assert code(edit.commit) == "EXISTS"
    assert (root / "new.txt").read_text() == "yours"


@POSIX_ONLY
def test_directory_replaced_by_a_link_causes_no_write_outside(root: Path) -> None:
    files = workspace(root)
    edit = files.edit("t")
    edit.put("dir/new.txt", b"x")
    (root / "dir").rename(root / "was")
    (root / "dir").symlink_to(root.parent / "rootEvil")

    assert code(edit.commit) == "LINK"
    assert list(tree(root.parent / "rootEvil")) == ["secret.txt"]


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root may write everything")
def test_read_only_file_is_not_replaced(root: Path) -> None:
    (root / "ok.txt").chmod(0o444)
    files = workspace(root)
    edit = files.edit("t")
    edit.put("ok.txt", b"x", before=files.read("ok.txt"))

    assert code(edit.commit) == "NOT_PERMITTED"


def test_concurrent_edits_of_one_file_apply_once(root: Path) -> None:
    files = workspace(root)
    start = files.read("ok.txt")
    outcomes: list[str] = []

    def attempt(number: int) -> None:
        edit = files.edit(str(number))
        edit.put("ok.txt", str(number).encode(), before=start)
        try:
            edit.commit()
        except ToolError as error:
            outcomes.append(error.code)
        else:
            outcomes.append(str(number))

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)

    assert sorted(outcomes)[1:] == ["CHANGED"] * 15
    assert (root / "ok.txt").read_text() == min(outcomes)


class FailingDisk:
    """Makes the nth change of the disk fail; counts the changes."""

    OPERATIONS = ("create", "replace", "claim", "make_directory")

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
        self.left = number
        for name in self.OPERATIONS:
            monkeypatch.setattr(place.Place, name, self._failing(getattr(place.Place, name)))

    def _failing(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any) -> Any:
            self.left -= 1
            if self.left == 0:
                raise OSError(errno.ENOSPC, "the disk is full")
            return real(*arguments)

        return operation


@pytest.mark.parametrize("number", range(1, 12))
def test_disk_error_at_any_step_leaves_files_unchanged(
    root: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    files = workspace(root)
    edit = files.edit("t")
    edit.put("ok.txt", b"new", before=files.read("ok.txt"))
    edit.put("made/here.txt", b"created")
    edit.remove(files.read("dir/sub/deep.txt"))
    before = tree(root)
    with monkeypatch.context() as patch:
        disk = FailingDisk(patch, number)
        try:
            edit.commit()
        except ToolError as error:
            failed = error
        else:
            assert disk.left > 0 or number == 1  # an edit can be made without a plan
            assert (root / "ok.txt").read_bytes() == b"new"
            return
    assert failed.code == "WRITE_FAILED"
    assert str(root) not in str(failed.body())
    assert tree(root) == before


class Killed(BaseException):
    """Simulates SIGKILL: no operation of the disk follows it, not even of the undo."""


STEPS = ("create", "replace", "claim", "make_directory", "remove", "sync", "open")


def die_at(monkeypatch: pytest.MonkeyPatch, number: int) -> list[int]:
    """Raise Killed from the nth disk operation on; return the number of operations left."""
    left = [number]

    def dying(real: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*arguments: Any) -> Any:
            left[0] -= 1
            if left[0] <= 0:
                raise Killed
            return real(*arguments)

        return operation

    for name in STEPS:
        monkeypatch.setattr(place.Place, name, dying(getattr(place.Place, name)))
    return left


@pytest.mark.parametrize("number", range(1, 60))
def test_kill_at_any_step_leaves_all_old_or_all_new_after_a_restart(
    root: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    files = workspace(root)
    edit = files.edit("t")
    edit.put("ok.txt", b"new", before=files.read("ok.txt"))
    edit.put("made/here.txt", b"created")
    edit.remove(files.read("dir/sub/deep.txt"))
    before = tree(root)
    with monkeypatch.context() as patch:
        die_at(patch, number)
        with contextlib.suppress(Killed):
            edit.commit()
    torn = (root / "ok.txt").read_bytes()
    assert torn in (b"plain\n", b"new")

    workspace(root)

    after = tree(root)
    new = {**before, "ok.txt": (before["ok.txt"][0], b"new"), "made": "directory"}
    new["made/here.txt"] = (after.get("made/here.txt", (0,))[0], b"created")
    del new["dir/sub/deep.txt"]
    assert after in (before, new)


def change_one(files: Workspace, kind: str) -> None:
    edit = files.edit("t")
    if kind == "replace":
        edit.put("ok.txt", b"new", before=files.read("ok.txt"))
    elif kind == "create":
        edit.put("dir/created.txt", b"new")
    else:
        edit.remove(files.read("ok.txt"))
    edit.commit()


@pytest.mark.parametrize("kind", ["replace", "create", "remove"])
@pytest.mark.parametrize("number", range(1, 20))
def test_kill_during_a_single_file_edit_leaves_old_or_new_content(
    root: Path, monkeypatch: pytest.MonkeyPatch, kind: str, number: int
) -> None:
    before = tree(root)
    with monkeypatch.context() as patch:
        left = die_at(patch, number)
        with contextlib.suppress(Killed):
            change_one(workspace(root), kind)

    workspace(root)

    after = tree(root)
    new = dict(before)
    if kind == "remove":
        del new["ok.txt"]
    else:
        path = "ok.txt" if kind == "replace" else "dir/created.txt"
        new[path] = (before["ok.txt"][0], b"new")
    assert after in ((new,) if left[0] > 0 else (before, new))


@pytest.mark.parametrize("kind", ["replace", "create", "remove"])
def test_single_file_edit_calls_fsync_at_most_twice(
    root: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The bytes are synced before the rename and the directory after it; nothing else is."""
    done: list[str] = []

    def noting(module: Any, name: str) -> None:
        real = getattr(module, name)

        def operation(*arguments: Any, **more: Any) -> Any:
            done.append(name)
            return real(*arguments, **more)

        monkeypatch.setattr(module, name, operation)

    for module, name in ((os, "fsync"), (place.Place, "replace"), (place.Place, "claim")):
        noting(module, name)
    change_one(workspace(root), kind)
    expected = {
        "replace": ["fsync", "replace"],
        "create": ["fsync", "claim"],
        "remove": ["replace"],
    }
    assert done == [*expected[kind], "fsync"]
