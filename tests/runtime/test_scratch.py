"""The temporary world of a server: its place, its environment and its removal."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from mcp_touchstone.runtime.scratch import (
    KEPT_FROM_HOME,
    PLACES,
    PREFIX,
    SECRET,
    World,
    at_home,
    traces,
)
from tests.commands import ran

NOBODY = 65534


def test_world_has_its_folders_and_is_removed() -> None:
    with World() as world:
        assert world.path.name.startswith(PREFIX)
        assert {p.name for p in world.path.iterdir()} == {"root", "home", "tmp", "outside"}
        assert (world.root / "README.md").is_file()
        assert str(world.path) == os.path.realpath(str(world.path))

    assert not os.path.lexists(str(world.path))


def test_worlds_have_distinct_paths() -> None:
    with World() as one, World() as other:
        assert one.path != other.path


def test_world_at_home_is_made_though_another_run_removes_the_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    make, others = tempfile.mkdtemp, [at_home().rmdir]

    def after_another_run(**words: str) -> str:
        if others:
            others.pop()()
        return make(**words)

    monkeypatch.setattr(tempfile, "mkdtemp", after_another_run)

    with World(parent=at_home()) as world:
        assert str(world.path).startswith(str(at_home()))

    assert not others
    assert not at_home().exists()


def test_canary_and_secret_are_unique_and_the_canary_is_outside_the_root() -> None:
    with World() as one, World() as other:
        assert not one.canary.is_relative_to(one.root)
        assert one.canary.read_text() != other.canary.read_text()
        assert one.canary.name != other.canary.name
        assert one.env({})[SECRET] == one.secret != other.secret


@pytest.mark.skipif(
    not any(os.access(place, os.W_OK) for place in PLACES), reason="no such place here"
)
def test_world_is_outside_temporary_home_and_hidden_folders() -> None:
    with World() as world:
        for place in ("/tmp", tempfile.gettempdir(), str(Path.home())):  # noqa: S108
            assert not Path(str(world.path)).is_relative_to(place)
        assert not any(part.startswith(".") for part in Path(str(world.path)).parts)


def test_world_falls_back_to_the_temporary_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("mcp_touchstone.runtime.scratch.PLACES", ("/no/such/place",))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with World() as world:
        assert Path(str(world.path)).parent == tmp_path


def test_home_and_temporary_folders_are_in_the_world(tmp_path: Path) -> None:
    ours = {"HOME": "/home/me", "TMPDIR": "/tmp/mine", "XDG_CONFIG_HOME": "/cfg", "LANG": "C"}  # noqa: S108

    with World(tmp_path) as world:
        env = world.env(ours)
        moved = ["HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"]
        moved += [f"XDG_{what}_HOME" for what in ("CONFIG", "CACHE", "DATA", "STATE")]

        assert all(Path(env[name]).is_relative_to(str(world.path)) for name in moved)
        assert env["LANG"] == "C"
    assert ours["HOME"] == "/home/me", "the user's own stays as it was"


def test_launchers_keep_their_cache_folders(tmp_path: Path) -> None:
    home = tmp_path / "me"
    (home / ".npm").mkdir(parents=True)
    (home / ".cache" / "uv").mkdir(parents=True)

    with World(tmp_path) as world:
        env = world.env({"HOME": str(home), "CARGO_HOME": "/opt/cargo"})

    assert env["npm_config_cache"] == str(home / ".npm")
    assert env["UV_CACHE_DIR"] == str(home / ".cache" / "uv")
    assert env["CARGO_HOME"] == "/opt/cargo", "what the user set is kept"
    assert set(KEPT_FROM_HOME) & set(env) == {"npm_config_cache", "UV_CACHE_DIR", "CARGO_HOME"}


def test_world_works_without_a_home_variable(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        assert world.env({})["HOME"] == str(world.home)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Return a folder that a link of the server may point at."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious").write_text("kept")
    (folder / "precious").chmod(0o640)
    folder.chmod(0o750)
    return folder


def test_links_are_removed_and_never_followed(tmp_path: Path, outside: Path) -> None:
    with World(tmp_path) as world:
        (world.root / "folder").symlink_to(str(outside))
        (world.root / "file").symlink_to(str(outside / "precious"))
        (world.root / "nowhere").symlink_to("/no/such")
        (world.home / "round").symlink_to(world.path)
        Path(str(world.tmp / "hard")).hardlink_to(outside / "precious")

    assert not os.path.lexists(str(world.path))
    assert (outside / "precious").read_text() == "kept"
    assert (outside / "precious").stat().st_mode & 0o777 == 0o640
    assert outside.stat().st_mode & 0o777 == 0o750


def test_link_replacing_a_world_folder_is_not_followed(tmp_path: Path, outside: Path) -> None:
    with World(tmp_path) as world:
        world.tmp.rmdir()
        world.tmp.symlink_to(str(outside))

    assert not os.path.lexists(str(world.path))
    assert (outside / "precious").exists()


def test_very_deep_tree_is_removed() -> None:
    """1,500 nested folders exceed the recursion limit and the longest path."""
    world = World()
    here = os.open(str(world.root), os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d" * 20, dir_fd=here)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)

    world.remove()

    assert not os.path.lexists(str(world.path))


def test_pipes_and_odd_names_are_removed(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        (world.root / "pipe").make_pipe()
        (world.root / "line\nfeed").mkdir()
        Path(os.fsdecode(os.fsencode(str(world.root)) + b"/\xff")).write_text("x")

    assert not os.path.lexists(str(world.path))


def test_removed_world_can_be_removed_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.remove()

    world.remove()


LOCKED = """
import os, sys
from pathlib import Path
from mcp_touchstone.runtime.scratch import World
if os.getuid() == 0:
    os.setgid({nobody}); os.setuid({nobody})
parent, target = Path(sys.argv[1]), Path(sys.argv[2])
own = parent / "own"
own.write_text("kept"); own.chmod(0o400)
world = World(parent)
for mode in (0o000, 0o100, 0o400, 0o500):
    locked = world.root / f"{{mode:o}}"
    (locked / "below").mkdir(parents=True)
    (locked / "below" / "file").write_text("x")
    (locked / "below" / "link").symlink_to(str(own))
    (locked / "link").symlink_to(str(target))
    (locked / "below").chmod(mode)
    locked.chmod(mode)
world.root.chmod(0)
world.path.chmod(0)
world.remove()
assert not os.path.lexists(str(world.path))
assert own.read_text() == "kept"
assert own.stat().st_mode & 0o777 == 0o400, oct(own.stat().st_mode)
print("gone")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_unreadable_folders_are_removed(outside: Path) -> None:
    """Runs as an ordinary user, because root ignores permissions."""
    parent = Path(tempfile.mkdtemp(prefix="touchstone-test-"))
    if os.getuid() == 0:
        os.chown(parent, NOBODY, NOBODY)
    try:
        done = ran([sys.executable, "-c", LOCKED.format(nobody=NOBODY), parent, outside])
    finally:
        (parent / "own").unlink(missing_ok=True)
        parent.rmdir()

    assert (done.stdout, done.stderr) == ("gone\n", "")
    assert (outside / "precious").read_text() == "kept"


def test_traces_find_new_and_changed_files() -> None:
    with World() as world:
        before = traces(world.root)
        assert traces(world.root) == before

        (world.root / "notes" / "new.txt").write_text("")
        new = traces(world.root)
        assert {*new} - {*before} == {str(world.root / "notes" / "new.txt")}

        (world.root / "README.md").append(b"more\n")
        assert traces(world.root) != new
