"""What a root begins with, and what is left of a run that was killed."""

import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import psutil
import pytest

from mcp_touchstone.attack.canary import Area
from mcp_touchstone.attack.field import CONTROL, Field
from mcp_touchstone.cli import main
from mcp_touchstone.gate import judge, survey, tidy
from mcp_touchstone.loader import SECURITY, home, load
from mcp_touchstone.plan import Choice
from mcp_touchstone.process import MARK
from mcp_touchstone.target import ROOT, Target
from mcp_touchstone.verdict import Outcome
from mcp_touchstone.world import NOTES, World, abandoned
from tests.fakes.matrix import target_of

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fixtures and signals are of POSIX")

FIXTURES = home() / "security_suite" / "fixtures.toml"

PICKY = """
import os, pathlib, sys
if not (pathlib.Path(sys.argv[-1]) / ".git" / "HEAD").is_file():
    sys.exit("no repository")
os.execv(sys.executable, [sys.executable, {fakes!r}, "Resolves", sys.argv[-1]])
"""


def picky(tmp_path: Path) -> Target:
    """Give a server that starts nowhere but in a repository."""
    program = tmp_path / "picky.py"
    program.write_text(PICKY.format(fakes=str(Path(__file__).parent / "fakes")), encoding="utf-8")
    return Target(command=(sys.executable, str(program), ROOT))


# --- repositories


def test_a_root_can_be_a_repository_with_a_commit(tmp_path: Path) -> None:
    with World(tmp_path, is_repository=True) as world:
        git = world.root / ".git"
        tip = (git / "refs/heads/main").read_text(encoding="ascii").strip()
        told = zlib.decompress((git / "objects" / tip[:2] / tip[2:]).read_bytes())
        index = (git / "index").read_bytes()

    assert told.startswith(b"commit ")
    assert index[:4] == b"DIRC"
    assert all(name.encode() in index for name in NOTES)


def test_git_agrees_that_it_is_one(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-c", f"safe.directory={world.root}", *words],
            cwd=world.root, capture_output=True, text=True, check=True, timeout=60,
            env={"PATH": os.environ["PATH"], "HOME": str(world.home), "LC_ALL": "C"},
        )  # fmt: skip
        return done.stdout + done.stderr

    with World(tmp_path, is_repository=True) as world:
        try:
            git("--version")
        except FileNotFoundError:
            pytest.skip("no git here")
        assert git("fsck", "--strict") == ""
        assert git("status", "--short") == ""
        assert git("ls-files").split() == sorted(NOTES)


def test_a_server_that_wants_a_repository_gets_one_without_a_word(tmp_path: Path) -> None:
    dossier, _ = survey(picky(tmp_path), words=())

    assert dossier.spoken
    assert dossier.bindings is not None
    assert dossier.bindings.found


def test_attacks_leave_the_repository_a_server_needs_alone(tmp_path: Path) -> None:
    run = judge(picky(tmp_path), load(SECURITY), Choice(select=("traversal-absolute",)))

    assert [verdict.outcome for verdict in run.verdicts] == [Outcome.PASS]


def test_what_git_keeps_is_no_denied_file_and_is_searched_for_canaries() -> None:
    trees = ("base", "siblings", "links", "denied")
    with Field(FIXTURES, trees, is_repository=True) as field:
        head = field.root / ".git" / "HEAD"
        assert head.read_text(encoding="ascii").startswith("ref:")
        assert field.canaries.at("root/sub/.git/config"), "a nested one is planted all the same"
        head.write_text("ref: refs/heads/other\n", encoding="ascii")
        assert field.damage() == []

        stolen = next(c for c in field.canaries.planted if c.area is Area.OUTSIDE)
        (field.root / ".git" / "objects" / "ab").mkdir()
        (field.root / ".git" / "objects" / "ab" / "cd").write_bytes(
            zlib.compress(stolen.content.encode())
        )
        assert [where for where, _ in field.laundered({Area.OUTSIDE})] == [
            "root/.git/objects/ab/cd"
        ]


# --- a folder of the user's


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "own.txt").write_text("mine\n", encoding="utf-8")
    (folder / "near").symlink_to("src/own.txt")
    (folder / "far").symlink_to(tmp_path)
    (folder / "absolute").symlink_to(folder / "src")
    os.mkfifo(folder / "pipe")
    return folder


def test_a_folder_is_copied_and_nothing_it_points_at(tmp_path: Path, project: Path) -> None:
    with World(tmp_path, seed=project) as world:
        assert (world.root / "near").read_text(encoding="utf-8") == "mine\n"
        assert (world.root / "near").is_symlink()
        for name in ("far", "absolute", "pipe"):
            assert not os.path.lexists(world.root / name), name

    assert (project / "src" / "own.txt").is_file()


def test_attacks_run_in_a_copy_of_it(project: Path) -> None:
    fake = target_of("NetworkShare")

    status = main([
        "check", "-q", "--suite", "security", "--select", "traversal-absolute",
        "--root-from", str(project), "--", *fake.command,
    ])  # fmt: skip

    assert status == 1
    assert Target(command=("x",), seed=project).words()[:2] == ["--root-from", str(project)]
    assert sorted(path.name for path in project.iterdir()) == [
        "absolute", "far", "near", "pipe", "src",
    ]  # fmt: skip


def test_a_folder_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["check", "--root-from", "/no/such/folder"])

    assert status == 2
    assert "is no folder; name one" in capsys.readouterr().err


# --- nothing outside is written, nothing stays


def test_mending_writes_nothing_where_a_server_has_put_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    with Field(FIXTURES) as field:
        for name in (field.outside, field.root / "dir", field.root):
            name.rename(field.home / f"was-{name.name}")
            name.symlink_to(victim)
            field.mend()
            assert list(victim.iterdir()) == [], name
        assert (field.root / CONTROL).is_file()
        assert field.outside.is_dir()
        assert not field.outside.is_symlink()


def test_a_world_is_held_as_long_as_its_process_lives(tmp_path: Path) -> None:
    made = "import sys; from pathlib import Path; from mcp_touchstone.world import World; "
    made += "w = World(Path(sys.argv[1])); print(w.path, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", made, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as holder:  # fmt: skip
        assert holder.stdout is not None
        path = Path(holder.stdout.readline().strip())
        assert path.is_dir()
        assert abandoned([tmp_path]) == []
        holder.kill()
        holder.wait()

    assert abandoned([tmp_path]) == [path]


def test_a_run_that_was_killed_is_cleared_away_by_the_next(tmp_path: Path) -> None:
    """SIGKILL in the middle: the server goes on, the world stays, and the next run ends both."""
    pids = tmp_path / "pids"
    stubborn = (
        f"import os, time; print(os.getpid(), file=open({str(pids)!r}, 'a')); time.sleep(600)"
    )
    words = ["check", "--suite", "security", "--", sys.executable, "-c", stubborn, ROOT]
    with subprocess.Popen(
        [sys.executable, "-m", "mcp_touchstone", *words],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as run:  # fmt: skip
        while not (pids.exists() and len(pids.read_text().split()) >= 5):
            assert run.poll() is None
        servers = [psutil.Process(int(pid)) for pid in pids.read_text().split()]
        world = Path(servers[0].environ()["HOME"]).parent
        assert MARK in servers[0].environ()
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert world.is_dir()

    tidy()

    assert not world.exists()
    _, alive = psutil.wait_procs(servers, timeout=30)
    assert not alive
