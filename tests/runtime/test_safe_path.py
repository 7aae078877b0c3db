"""Files below a folder whose names another process replaces by links, pipes and other files."""

import contextlib
import itertools
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mcp_touchstone.runtime import open_folder
from mcp_touchstone.runtime.open_folder import Folder, OutsideError, ReplacedError
from mcp_touchstone.runtime.safe_path import SafePath, Tree
from tests.name_exchange import can_exchange, exchanging

if sys.platform != "win32":
    import fcntl

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs descriptors of folders")


@pytest.fixture(params=["openat2", "parts"])
def top(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> SafePath:
    """Return a folder, opened in one step or part by part."""
    monkeypatch.setattr(open_folder, "_has_openat2", request.param == "openat2")
    (tmp_path / "top").mkdir()
    return Tree(tmp_path / "top").top


@pytest.fixture
def host(tmp_path: Path) -> Path:
    """Return a folder beside it, which must never be read or changed."""
    folder = tmp_path / "host"
    (folder / "below").mkdir(parents=True)
    (folder / "file").write_text("precious")
    (folder / "below" / "file").write_text("precious")
    return folder


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_mode,
            path.read_text() if path.is_file() else "",
        )
        for path in sorted(folder.rglob("*"))
    }


CHANGES: dict[str, Callable[[SafePath], object]] = {
    "write": lambda path: path.write_bytes(b"x"),
    "append": lambda path: path.append(b"x"),
    "sparse": lambda path: path.make_sparse(100, b"x"),
    "touch": lambda path: path.touch(),
    "mkdir": lambda path: path.mkdir(exist_ok=True),
    "parents": lambda path: (path / "new" / "newer").mkdir(parents=True, exist_ok=True),
    "link": lambda path: path.symlink_to("elsewhere"),
    "pipe": lambda path: path.make_pipe(),
    "release": lambda path: path.release_pipe(),
    "mode": lambda path: path.chmod(0o600),
    "unlink": lambda path: path.unlink(),
    "rmdir": lambda path: path.rmdir(),
    "remove": lambda path: path.remove(),
    "clear": lambda path: path.opened().clear(),
    "read": lambda path: path.read_bytes(),
    "pieces": lambda path: list(path.parent.opened().pieces(path.name, 8)),
    "list": lambda path: path.iterdir(),
    "walk": lambda path: list(path.walk()),
}


@pytest.mark.parametrize("name", sorted(CHANGES))
@pytest.mark.parametrize("aim", ["file", "below"])
def test_link_in_place_of_a_name_is_not_followed(
    top: SafePath, host: Path, name: str, aim: str
) -> None:
    before = contents(host)
    (top / "name").symlink_to(str(host / aim))

    with contextlib.suppress(OSError):
        found = CHANGES[name](top / "name")
        assert "precious" not in str(found)

    assert contents(host) == before


@pytest.mark.parametrize("name", sorted(CHANGES))
@pytest.mark.parametrize("aim", ["file", "below", "new"])
def test_link_in_place_of_a_folder_is_an_error(
    top: SafePath, host: Path, name: str, aim: str
) -> None:
    before = contents(host)
    (top / "folder").symlink_to(str(host))

    if name in {"remove", "walk"}:
        assert not CHANGES[name](top / "folder" / aim)
    else:
        with pytest.raises(ReplacedError, match="in place of a folder"):
            CHANGES[name](top / "folder" / aim)

    assert contents(host) == before


def test_tree_that_nobody_uses_is_closed_at_once(tmp_path: Path) -> None:
    folder = Tree(tmp_path).top.tree.folder
    used = folder.handle

    del folder

    assert not os.path.lexists(used)


def test_pipe_in_place_of_a_file_is_not_waited_for(top: SafePath) -> None:
    (top / "file").make_pipe()

    for use in (CHANGES[name] for name in ("read", "pieces", "append")):
        with pytest.raises(ReplacedError, match="a named pipe is in place of our file"):
            use(top / "file")
    with pytest.raises(ReplacedError, match="a named pipe"):
        (top / "file").write_bytes(b"x")


def test_file_is_replaced_with_its_mode_and_a_hard_link_keeps_the_old(top: SafePath) -> None:
    (top / "file").write_text("old")
    (top / "file").chmod(0o640)
    (top / "other").hardlink_to(top / "file")

    (top / "file").write_bytes(b"new", 1_000_000_000)

    assert (top / "file").read_text() == "new"
    assert (top / "other").read_text() == "old"
    assert stat.S_IMODE((top / "file").stat().st_mode) == 0o640
    assert (top / "file").stat().st_mtime == 1_000_000_000
    assert {path.name for path in top.iterdir()} == {"file", "other"}


def test_appending_keeps_the_inode_and_refuses_a_second_name(top: SafePath) -> None:
    (top / "file").write_text("one\n")
    before = (top / "file").stat().st_ino

    (top / "file").append(b"two\n")

    assert (top / "file").read_text() == "one\ntwo\n"
    assert (top / "file").stat().st_ino == before
    (top / "other").hardlink_to(top / "file")
    with pytest.raises(ReplacedError):
        (top / "file").append(b"three\n")


def test_size_is_checked_before_a_file_is_read(top: SafePath) -> None:
    (top / "file").make_sparse(1 << 40, b"end")

    with pytest.raises(OSError, match="more than 10 bytes"):
        (top / "file").read_bytes(10)
    assert top.opened().read("file", 10, whole=False) == bytes(10)


def test_pieces_overlap_so_that_a_word_across_two_is_found(top: SafePath) -> None:
    (top / "file").write_bytes(bytes((1 << 20) - 2) + b"word" + bytes(1 << 20))

    pieces = list(top.opened().pieces("file", 8))

    assert len(pieces) > 1
    assert any(b"word" in piece for piece in pieces)


def test_folder_with_too_many_names_is_not_listed(
    top: SafePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(12):
        (top / str(number)).touch()
    monkeypatch.setattr(open_folder, "MOST", 10)

    with pytest.raises(OSError, match="more than 10 names"):
        top.iterdir()
    top.opened().clear()
    monkeypatch.setattr(open_folder, "MOST", 100)
    assert top.iterdir() == []


def test_removal_ends_although_a_server_makes_a_file_for_each_that_is_removed(
    top: SafePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    unlink, numbers = Folder.unlink, itertools.count()

    def refilled(folder: Folder, name: str) -> None:
        unlink(folder, name)
        folder.write(f"again{next(numbers)}", b"")

    for number in range(3):
        (top / str(number)).touch()
    monkeypatch.setattr(open_folder, "MOST", 3)
    monkeypatch.setattr(open_folder, "REMOVED", 50)
    monkeypatch.setattr(Folder, "unlink", refilled)

    top.opened().clear()

    assert 3 <= next(numbers) <= 50


@pytest.mark.parametrize("name", ["..", "a/b", "a\0b", "\ud800"])
def test_odd_names_are_errors_of_the_system(top: SafePath, name: str) -> None:
    with pytest.raises(OSError, match="no name of a file"):
        SafePath(top.tree, (name,)).write_bytes(b"x")
    assert not SafePath(top.tree, (name, "below")).exists()


@pytest.mark.parametrize("text", ["../x", "a/../../x", "/etc/passwd"])
def test_path_that_leaves_the_tree_cannot_be_made(top: SafePath, text: str) -> None:
    with pytest.raises(OutsideError, match=r"climbs|is not below"):
        top / text


def test_moved_tree_is_removed_where_it_is_now(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "host").mkdir()
    (tmp_path / "host" / "file").touch()
    tree = Tree(tmp_path / "tree")
    (tree.top / "below").mkdir()
    (tmp_path / "tree").rename(tmp_path / "moved")
    (tmp_path / "tree").symlink_to("host")

    tree.remove()

    assert sorted(path.name for path in tmp_path.iterdir()) == ["host", "tree"]
    assert (tmp_path / "host" / "file").exists()


SET_FLAGS, IMMUTABLE = 0x40086602, 0x10
"""FS_IOC_SETFLAGS and FS_IMMUTABLE_FL of linux/fs.h."""


@pytest.mark.skipif(sys.platform != "linux", reason="flags of Linux")
def test_unchangeable_files_are_removed(tmp_path: Path) -> None:
    (tmp_path / "tree" / "folder").mkdir(parents=True)
    (tmp_path / "tree" / "folder" / "file").touch()
    for place in (tmp_path / "tree" / "folder" / "file", tmp_path / "tree" / "folder"):
        opened = os.open(place, os.O_RDONLY)
        try:
            fcntl.ioctl(opened, SET_FLAGS, IMMUTABLE.to_bytes(8, "little"))
        except OSError as error:
            pytest.skip(f"no such flag here: {error}")
        finally:
            os.close(opened)

    Tree(tmp_path / "tree").remove()

    assert not (tmp_path / "tree").exists()


def test_real_path_is_that_of_the_system(top: SafePath, host: Path) -> None:
    (top / "a").mkdir()
    (top / "a" / "file").touch()
    (top / "near").symlink_to("a/file")
    (top / "up").symlink_to("..")
    (top / "out").symlink_to(str(host))
    (top / "round").symlink_to("round")
    for text in (
        *("a/file", "near", "up", "up/host", "out/below/file", "a/../near", "a//./file", "."),
    ):
        path = f"{top}/{text}"
        assert top.tree.real(path) == os.path.realpath(path), text
    for text in ("round", "never", "a/never/x", "out/never"):
        with pytest.raises(OSError):  # noqa: PT011  (as realpath)
            os.path.realpath(f"{top}/{text}", strict=True)
        with pytest.raises(OSError):  # noqa: PT011
            top.tree.real(f"{top}/{text}")
    assert top.tree.likely(f"{top}/out/never/x") == f"{host}/never/x"


def test_patterns_match_as_those_of_glob_but_list_no_folder_outside(
    top: SafePath, host: Path
) -> None:
    (top / "a").mkdir()
    (top / "a" / "one.txt").touch()
    (top / "a" / ".hidden").touch()
    (top / "b.txt").touch()
    (top / "out").symlink_to(str(host))

    def found(pattern: str) -> list[str]:
        return sorted(path.removeprefix(f"{top}/") for path in top.matches(pattern))

    assert found("*.txt") == ["b.txt"]
    assert found("*/*.txt") == ["a/one.txt"]
    assert found("a/*") == ["a/one.txt"]
    assert found("a/.*") == ["a/.hidden"]
    assert found("a/../?.txt") == ["b.txt"]
    assert found(f"{top}/[ab].txt") == ["b.txt"]
    assert found("out/*") == []
    assert found("out/file") == [str(host / "file")]


@pytest.mark.parametrize("name", sorted(CHANGES))
def test_nothing_outside_is_reached_while_names_are_exchanged(
    top: SafePath, host: Path, name: str
) -> None:
    before = contents(host)
    place = Path(str(top))
    if not can_exchange(place):
        pytest.skip("needs renameat2")
    (place / "folder").mkdir()
    (place / "link").symlink_to(host)

    with exchanging(place / "folder", place / "link"):
        for number in range(300):
            for path in (top / "folder" / "file", top / "folder" / f"new{number}", top / "folder"):
                with contextlib.suppress(OSError):
                    found = CHANGES[name](path)
                    assert "precious" not in str(found)
                    assert "below" not in str(found)

    assert contents(host) == before
