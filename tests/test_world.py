"""The throw-away tree: where it stands, what it moves, and that nothing of it stays."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from mcp_touchstone.world import KEPT_FROM_HOME, PLACES, PREFIX, SECRET, World, traces

NOBODY = 65534


def test_a_world_has_a_root_a_home_and_a_tmp_and_goes_away() -> None:
    with World() as world:
        assert world.path.name.startswith(PREFIX)
        assert {p.name for p in world.path.iterdir()} == {"root", "home", "tmp", "outside"}
        assert (world.root / "README.md").is_file()
        assert world.path == world.path.resolve()

    assert not world.path.exists()


def test_two_worlds_are_two_places() -> None:
    with World() as one, World() as other:
        assert one.path != other.path


def test_what_is_planted_stands_outside_the_root_and_nowhere_twice() -> None:
    with World() as one, World() as other:
        assert not one.canary.is_relative_to(one.root)
        assert one.canary.read_text(encoding="utf-8") != other.canary.read_text(encoding="utf-8")
        assert one.canary.name != other.canary.name
        assert one.env({})[SECRET] == one.secret != other.secret


@pytest.mark.skipif(
    not any(os.access(place, os.W_OK) for place in PLACES), reason="no such place here"
)
def test_a_world_stands_outside_what_servers_refuse_or_allow_by_name() -> None:
    with World() as world:
        for place in ("/tmp", "/var", tempfile.gettempdir(), str(Path.home())):  # noqa: S108
            assert not world.path.is_relative_to(place)
        assert not any(part.startswith(".") for part in world.path.parts)


def test_a_world_falls_back_on_the_temporary_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("mcp_touchstone.world.PLACES", ("/no/such/place",))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    with World() as world:
        assert world.path.parent == tmp_path


# --- the environment


def test_home_and_temporary_folders_lie_in_the_world(tmp_path: Path) -> None:
    ours = {"HOME": "/home/me", "TMPDIR": "/tmp/mine", "XDG_CONFIG_HOME": "/cfg", "LANG": "C"}  # noqa: S108

    with World(tmp_path) as world:
        env = world.env(ours)
        moved = ["HOME", "USERPROFILE", "TMPDIR", "TEMP", "TMP"]
        moved += [f"XDG_{what}_HOME" for what in ("CONFIG", "CACHE", "DATA", "STATE")]

        assert all(Path(env[name]).is_relative_to(world.path) for name in moved)
        assert env["LANG"] == "C"
    assert ours["HOME"] == "/home/me", "the user's own stays as it was"


def test_launchers_keep_their_programs_and_caches(tmp_path: Path) -> None:
    home = tmp_path / "me"
    (home / ".npm").mkdir(parents=True)
    (home / ".cache" / "uv").mkdir(parents=True)

    with World(tmp_path) as world:
        env = world.env({"HOME": str(home), "CARGO_HOME": "/opt/cargo"})

    assert env["npm_config_cache"] == str(home / ".npm")
    assert env["UV_CACHE_DIR"] == str(home / ".cache" / "uv")
    assert env["CARGO_HOME"] == "/opt/cargo", "what the user set is kept"
    assert set(KEPT_FROM_HOME) & set(env) == {"npm_config_cache", "UV_CACHE_DIR", "CARGO_HOME"}


def test_a_user_without_a_home_has_a_world(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        assert world.env({})["HOME"] == str(world.home)


# --- removal


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Something a link of the server may point at."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious").write_text("kept")
    (folder / "precious").chmod(0o640)
    folder.chmod(0o750)
    return folder


def test_links_are_removed_and_never_followed(tmp_path: Path, outside: Path) -> None:
    with World(tmp_path) as world:
        (world.root / "folder").symlink_to(outside)
        (world.root / "file").symlink_to(outside / "precious")
        (world.root / "nowhere").symlink_to("/no/such")
        (world.home / "round").symlink_to(world.path)
        (world.tmp / "hard").hardlink_to(outside / "precious")

    assert not world.path.exists()
    assert (outside / "precious").read_text() == "kept"
    assert (outside / "precious").stat().st_mode & 0o777 == 0o640
    assert outside.stat().st_mode & 0o777 == 0o750


def test_a_link_in_place_of_a_folder_of_ours_is_not_followed(tmp_path: Path, outside: Path) -> None:
    with World(tmp_path) as world:
        world.tmp.rmdir()
        world.tmp.symlink_to(outside)

    assert not world.path.exists()
    assert (outside / "precious").exists()


def test_a_tree_of_any_depth_is_removed() -> None:
    """No call too deep, no path too long: 1,500 folders, one inside the other."""
    world = World()
    here = os.open(world.root, os.O_RDONLY)
    for _ in range(1500):
        os.mkdir("d" * 20, dir_fd=here)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)

    world.remove()

    assert not world.path.exists()


def test_odd_entries_are_removed(tmp_path: Path) -> None:
    with World(tmp_path) as world:
        os.mkfifo(world.root / "pipe")
        (world.root / "line\nfeed").mkdir()
        Path(os.fsdecode(os.fsencode(world.root) + b"/\xff")).write_text("x")

    assert not world.path.exists()


def test_a_world_that_is_gone_is_removed_without_complaint(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.remove()

    world.remove()


LOCKED = """
import os, sys
from pathlib import Path
from mcp_touchstone.world import World
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
    (locked / "below" / "link").symlink_to(own)
    (locked / "link").symlink_to(target)
    (locked / "below").chmod(mode)
    locked.chmod(mode)
world.root.chmod(0)
world.path.chmod(0)
world.remove()
assert not world.path.exists(), list(world.path.rglob("*"))
assert own.read_text() == "kept"
assert own.stat().st_mode & 0o777 == 0o400, oct(own.stat().st_mode)
print("gone")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_what_the_server_made_unreadable_is_removed(outside: Path) -> None:
    """As an ordinary user: root is held up by no permission."""
    parent = Path(tempfile.mkdtemp(prefix="touchstone-test-"))
    if os.getuid() == 0:
        os.chown(parent, NOBODY, NOBODY)
    try:
        done = subprocess.run(
            [sys.executable, "-c", LOCKED.format(nobody=NOBODY), parent, outside],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    finally:
        (parent / "own").unlink(missing_ok=True)
        parent.rmdir()

    assert (done.stdout, done.stderr) == ("gone\n", "")
    assert (outside / "precious").read_text() == "kept"


def test_a_trace_is_a_file_that_is_new_or_changed() -> None:
    with World() as world:
        before = traces(world.root)
        assert traces(world.root) == before

        (world.root / "notes" / "new.txt").write_text("", encoding="utf-8")
        new = traces(world.root)
        assert {*new} - {*before} == {str(world.root / "notes" / "new.txt")}

        with (world.root / "README.md").open("a", encoding="utf-8") as file:
            file.write("more\n")
        assert traces(world.root) != new
