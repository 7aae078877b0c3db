"""The initial contents of a root, and the cleanup after a killed run."""

import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import psutil
import pytest

from mcp_touchstone.bindings.canary import Area
from mcp_touchstone.catalog.loader import SECURITY, home, load
from mcp_touchstone.cli import main
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import judge, survey, tidy
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.scratch import NOTES, World, abandoned
from mcp_touchstone.security.fixture_tree import CONTROL, FixtureTree
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.transport.process import MARK
from tests.fakes.matrix import target_of

pytestmark = pytest.mark.skipif(os.name == "nt", reason="fixtures and signals are of POSIX")

FIXTURES = home() / "security_suite" / "fixtures.toml"

REPOSITORY_SERVER = """
import os, pathlib, sys
if not (pathlib.Path(sys.argv[-1]) / ".git" / "HEAD").is_file():
    sys.exit("no repository")
os.execv(sys.executable, [sys.executable, {fakes!r}, "Resolves", sys.argv[-1]])
"""


def server_needing_repository(tmp_path: Path) -> Target:
    """Return a server that starts only in a repository."""
    program = tmp_path / "picky.py"
    program.write_text(
        REPOSITORY_SERVER.format(fakes=str(Path(__file__).parents[1] / "fakes")), encoding="utf-8"
    )
    return Target(command=(sys.executable, str(program), ROOT))


def test_root_can_be_a_repository_with_a_commit(tmp_path: Path) -> None:
    with World(tmp_path, is_repository=True) as world:
        git = world.root / ".git"
        tip = (git / "refs/heads/main").read_text().strip()
        commit = zlib.decompress((git / "objects" / tip[:2] / tip[2:]).read_bytes())
        index = (git / "index").read_bytes()

    assert commit.startswith(b"commit ")
    assert index[:4] == b"DIRC"
    assert all(name.encode() in index for name in NOTES)


def test_git_accepts_the_repository(tmp_path: Path) -> None:
    def git(*words: str) -> str:
        done = subprocess.run(
            ["git", "-c", f"safe.directory={world.root}", *words],
            cwd=str(world.root),
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
            env={"PATH": os.environ["PATH"], "HOME": str(world.home), "LC_ALL": "C"},
        )
        return done.stdout + done.stderr

    with World(tmp_path, is_repository=True) as world:
        try:
            git("--version")
        except FileNotFoundError:
            pytest.skip("no git here")
        assert git("fsck", "--strict") == ""
        assert git("status", "--short") == ""
        assert git("ls-files").split() == sorted(NOTES)


def test_server_needing_a_repository_gets_one_automatically(tmp_path: Path) -> None:
    profile, _ = survey(server_needing_repository(tmp_path), words=())

    assert profile.spoken
    assert profile.bindings is not None
    assert profile.bindings.found


@pytest.mark.parametrize("is_kind", [True, False])
def test_server_that_refuses_the_place_of_our_folder_gets_one_below_the_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kind: bool
) -> None:
    allowed = tmp_path / "home"
    for folder in (allowed, tmp_path / "usual"):
        folder.mkdir()
    monkeypatch.setattr("mcp_touchstone.runtime.scratch.PLACES", (str(tmp_path / "usual"),))
    monkeypatch.setenv("HOME", str(allowed))
    target = server_needing_repository(tmp_path)
    program = Path(target.command[1])
    refusal = f"if {str(allowed if is_kind else tmp_path / 'x')!r} not in sys.argv[-1]: sys.exit(1)"
    program.write_text(program.read_text().replace("if not (", f"{refusal}\nif not ("))

    profile, _ = survey(target, words=())

    assert bool(profile.spoken) is is_kind
    assert not (allowed / ".cache" / "mcp-touchstone").exists()
    assert list((tmp_path / "usual").iterdir()) == []


def test_needed_repository_is_not_judged_as_damage(tmp_path: Path) -> None:
    run = judge(
        server_needing_repository(tmp_path), load(SECURITY), Choice(select=("traversal-absolute",))
    )

    assert [verdict.outcome for verdict in run.verdicts] == [Outcome.PASS]


def test_git_folder_of_the_root_is_searched_but_not_denied() -> None:
    trees = ("base", "siblings", "links", "denied")
    with FixtureTree(FIXTURES, trees, is_repository=True) as field:
        head = field.root / ".git" / "HEAD"
        assert head.read_text().startswith("ref:")
        assert field.canaries.at("root/sub/.git/config"), "a nested one is planted all the same"
        head.write_text("ref: refs/heads/other\n")
        assert field.damage() == []

        stolen = next(c for c in field.canaries.planted if c.area is Area.OUTSIDE)
        (field.root / ".git" / "objects" / "ab").mkdir()
        (field.root / ".git" / "objects" / "ab" / "cd").write_bytes(
            zlib.compress(stolen.content.encode())
        )
        assert [where for where, _ in field.laundered({Area.OUTSIDE})] == [
            "root/.git/objects/ab/cd"
        ]


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


def test_seed_is_copied_without_links_that_lead_out(tmp_path: Path, project: Path) -> None:
    with World(tmp_path, seed=project) as world:
        assert (world.root / "src/own.txt").read_text() == "mine\n"
        assert (world.root / "near").readlink() == "src/own.txt"
        for name in ("far", "absolute", "pipe"):
            assert not (world.root / name).exists(), name

    assert (project / "src" / "own.txt").is_file()


def test_attacks_run_in_a_copy_of_the_seed(project: Path) -> None:
    fake = target_of("NetworkShare")

    status = main(
        [
            "check",
            "-q",
            "--suite",
            "security",
            "--select",
            "traversal-absolute",
            "--root-from",
            str(project),
            "--",
            *fake.command,
        ]
    )

    assert status == 1
    assert Target(command=("x",), root_from=project).words()[:2] == ["--root-from", str(project)]
    assert sorted(path.name for path in project.iterdir()) == [
        "absolute",
        "far",
        "near",
        "pipe",
        "src",
    ]


def test_missing_root_from_folder_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["check", "--self", "--root-from", "/no/such/folder"])

    assert status == 2
    assert "no folder" in capsys.readouterr().err


def test_mend_does_not_write_through_symlinks(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    with FixtureTree(FIXTURES) as field:
        for name in (field.outside, field.root / "dir", field.root):
            name.rename(field.home / f"was-{name.name}")
            name.symlink_to(str(victim))
            field.restore()
            assert list(victim.iterdir()) == [], name
        assert (field.root / CONTROL).is_file()
        assert field.outside.is_dir()
        assert not field.outside.is_symlink()


def test_world_is_abandoned_only_after_its_process_ends(tmp_path: Path) -> None:
    made = (
        "import sys; from pathlib import Path; from mcp_touchstone.runtime.scratch import World; "
    )
    made += "w = World(Path(sys.argv[1])); print(w.path, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", made, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        path = Path(holder.stdout.readline().strip())
        assert path.is_dir()
        assert abandoned([tmp_path]) == []
        holder.kill()
        holder.wait()

    assert abandoned([tmp_path]) == [path]


def test_tidy_removes_world_and_servers_of_a_killed_run(tmp_path: Path) -> None:
    """After SIGKILL the servers and the world remain; the next run removes them."""
    pids = tmp_path / "pids"
    stubborn = (
        f"import os, time; print(os.getpid(), file=open({str(pids)!r}, 'a')); time.sleep(600)"
    )
    outside = ["--sandbox", "off"]  # in a sandbox it could not write its process id
    words = ["check", "--suite", "security", *outside, "--", sys.executable, "-c", stubborn, ROOT]
    with subprocess.Popen(
        [sys.executable, "-m", "mcp_touchstone", *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as run:
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
