"""A hostile client leaves no process, reaches no file of ours, and takes a bounded share."""

import json
import os
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from mcp_touchstone.catalog.sdk import SdkIdentity
from mcp_touchstone.cli import main
from mcp_touchstone.discovery.packages import identity
from mcp_touchstone.sandbox import sandbox
from mcp_touchstone.tap import client_process
from tests.conftest import eventually
from tests.tap import hostile_client

if sys.platform != "linux":
    pytest.skip("a subreaper, namespaces", allow_module_level=True)

PROGRAM = str(Path(__file__).with_name("hostile_client.py"))
SANDBOXES = ["off", *sandbox.Method]
slow = pytest.mark.slow


class Hostile:
    """A run of a hostile client."""

    def __init__(self, tmp_path: Path, mode: str, *options: str, **variables: str) -> None:
        assert mode in hostile_client.MODES
        self.mark = f"hostile-{uuid.uuid4().hex}"
        self.file = tmp_path / "started"
        client = (sys.executable, PROGRAM, mode, self.mark, str(self.file), "{server}")
        usual = ("--scenario", "tools_call", "--timeout", "90", "--color", "never")
        words = ("-m", "mcp_touchstone", "client", *usual, *options, "--", *client)
        self.process = subprocess.Popen(
            [sys.executable, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **variables},
            cwd=tmp_path,
            start_new_session=True,
        )

    def said(self) -> str:
        """Wait for its end; return what it printed, on one line."""
        out, _ = self.process.communicate(timeout=120)
        return " ".join(out.decode().split())

    def processes(self) -> list[int]:
        """Return what runs of the client."""
        found = []
        for process in psutil.process_iter():
            try:
                if self.mark in process.cmdline() and process.pid != self.process.pid:
                    found.append(process.pid)
            except psutil.Error:
                continue
        hidden = self.file.with_name("started.pid")  # it has no command line any more
        pid = int(hidden.read_text() or 0) if hidden.exists() else 0
        return [*found, *[pid] * psutil.pid_exists(pid)] if pid else found

    def home(self) -> Path:
        """Wait until the client has started all; return its HOME."""
        eventually(self.file.exists)
        return Path(self.file.read_text(encoding="utf-8"))


@contextmanager
def hostile(tmp_path: Path, mode: str, *options: str, **variables: str) -> Iterator[Hostile]:
    """Run a hostile client; at the end nothing of it may run."""
    one = Hostile(tmp_path, mode, *options, **variables)
    try:
        yield one
        eventually(lambda: not one.processes())
    finally:
        one.process.kill()
        one.process.communicate()
        for pid in one.processes():
            os.kill(pid, signal.SIGKILL)


def in_sandbox(name: str) -> tuple[str, ...]:
    """Return the options of a sandbox."""
    if name == "off":
        return ()
    if why := sandbox.probe(sandbox.Method(name)):
        pytest.skip(why)
    return ("--sandbox", name)


@pytest.mark.parametrize("http", [(), ("--http",)], ids=["stdio", "http"])
def test_nothing_runs_on_after_the_end_of_a_client(http: tuple[str, ...], tmp_path: Path) -> None:
    with hostile(tmp_path, "leaves", *http) as one:
        assert "the client never connected (exit status 0)" in one.said()
        assert one.process.returncode == 2
        assert not one.home().parent.exists()


def test_nothing_runs_on_after_a_timeout(tmp_path: Path) -> None:
    with hostile(tmp_path, "stays", "--timeout", "5") as one:
        assert "the client did not end within 5 s" in one.said()


@pytest.mark.parametrize("http", [(), ("--http",)], ids=["stdio", "http"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_nothing_runs_on_after_a_signal(
    number: signal.Signals, http: tuple[str, ...], tmp_path: Path
) -> None:
    with hostile(tmp_path, "stays", *http) as one:
        home = one.home()
        one.process.send_signal(number)
        assert "interrupted" in one.said()
        assert one.process.returncode == 130
        assert not home.parent.exists()


@slow
def test_nothing_runs_on_if_we_are_killed_and_the_next_run_removes_the_folder(
    tmp_path: Path,
) -> None:
    with hostile(tmp_path, "stays") as one:
        home = one.home()
        one.process.kill()

    with hostile(tmp_path, "leaves") as after:
        after.said()

    assert not home.parent.exists()


@slow
@pytest.mark.parametrize("name", list(sandbox.Method))
@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGKILL])
def test_nothing_runs_on_in_a_sandbox(
    number: signal.Signals | None, name: str, tmp_path: Path
) -> None:
    options = in_sandbox(name)
    with hostile(tmp_path, "leaves" if number is None else "stays", *options) as one:
        if number is not None:
            eventually(lambda: len(one.processes()) > 3)
            one.process.send_signal(number)
        one.said()


@pytest.mark.parametrize("name", SANDBOXES)
def test_a_client_that_kills_its_parent_does_not_kill_us(name: str, tmp_path: Path) -> None:
    with hostile(tmp_path, "kills_its_parent", *in_sandbox(name)) as one:
        assert "the client was ended by SIGKILL" in (said := one.said()), said
        assert one.process.returncode == 2


@pytest.mark.parametrize("http", [(), ("--http",)], ids=["stdio", "http"])
def test_a_client_that_fills_its_folder_is_ended(http: tuple[str, ...], tmp_path: Path) -> None:
    with hostile(tmp_path, "fills", "--root-size", "8", *http) as one:
        assert "wrote more than 8 MiB to its throw-away folders" in (said := one.said()), said
        assert one.process.returncode == 2


@pytest.mark.parametrize("kind", ["sparse", "pipe", "odd", "pid", "link"])
def test_what_a_client_plants_is_no_recording(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "save" / "tools_call"
    folder.mkdir(parents=True)
    victim = tmp_path / "elsewhere" / "victim.jsonl"
    victim.parent.mkdir()
    victim.write_text('{"recording": 1, "scenario": "plain"}\n')
    about = {"PLANT_IN": str(folder), "PLANT": kind, "VICTIM": str(victim)}

    with hostile(tmp_path, "plants", "--save", str(tmp_path / "save"), **about) as one:
        assert "played" in one.said()

    assert victim.read_text() == '{"recording": 1, "scenario": "plain"}\n'
    (ours,) = folder.glob("tools_call-*.jsonl")
    assert json.loads(ours.read_text().splitlines()[0])["scenario"] == "tools_call"


@pytest.mark.parametrize("kind", ["ours", "folder"])
def test_a_recording_is_never_written_through_a_link(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "save" / "tools_call"
    folder.mkdir(parents=True)
    victim = tmp_path / "elsewhere" / "victim.jsonl"
    victim.parent.mkdir()
    victim.write_text("mine\n")
    about = {"PLANT_IN": str(folder), "PLANT": kind, "VICTIM": str(victim)}

    with hostile(tmp_path, "plants", "--save", str(tmp_path / "save"), **about) as one:
        said = one.said()

    assert "Traceback" not in said
    assert victim.read_text() == "mine\n"
    assert [path.name for path in victim.parent.iterdir()] == ["victim.jsonl"]


@slow
@pytest.mark.parametrize(
    ("mode", "option", "why"),
    [
        ("floods", "-v", "more than 4,096 KiB"),
        ("says_one_line", "-v", "more than 4,096 KiB"),
        ("posts", "--http", "more than 4,096 KiB"),
        ("connects", "-v", "the client connected more than 64 times"),
        ("speaks_for_a_stand_in", "-v", "the client connected and sent nothing"),
    ],
)
def test_what_a_client_says_is_bounded(mode: str, option: str, why: str, tmp_path: Path) -> None:
    with hostile(tmp_path, mode, option) as one:
        assert why in (said := one.said()), said
        assert one.process.returncode == 2


LAUNCHER = """
import os, pathlib, sys
home, python = pathlib.Path.home(), os.path.realpath(sys.executable)
site = home / "lib/python3.11/site-packages"
wait = "\\nimport pathlib, time\\nwhile not pathlib.Path.home().joinpath('seen').exists():"
for name, text in {
    home / "pyvenv.cfg": f"home = {os.path.dirname(python)}",
    home / "client.py": f"import mcp\\n{sys.argv[1]}{wait} time.sleep(0.01)\\n",
    site / "mcp/__init__.py": "",
    site / "mcp-9.8.7.dist-info/METADATA": "Name: mcp\\nVersion: 9.8.7",
}.items():
    name.parent.mkdir(parents=True, exist_ok=True)
    name.write_text(text)
(home / "bin").mkdir()
(home / "bin/python").symlink_to(python)
env = {**os.environ, "PATH": f"{home}/bin", "PYTHONPATH": str(site)}
os.execvpe("python", ["python", str(home / "client.py"), *sys.argv[2:]], env)
"""
"""Makes an environment in the home of the client, as ``uvx`` does in its cache."""


@slow
@pytest.mark.parametrize("name", SANDBOXES)
def test_the_sdk_that_a_launcher_installs_is_known(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.tap.test_drive import CLOSE, GOOD  # noqa: PLC0415  (its client)

    def looked_at(*about: Any) -> SdkIdentity:
        if (found := identity(*about)).sdks:
            Path(about[-1]["HOME"], "seen").touch()
        return found

    monkeypatch.setattr(client_process, "identity", looked_at)
    command = (sys.executable, "-c", LAUNCHER, GOOD + CLOSE, "{server}")
    words = ("client", "--scenario", "tools_call", *in_sandbox(name), "--", *command)

    assert main([*words]) == 0
    assert re.search(r"^  sdk +mcp 9\.8\.7: ", capsys.readouterr().out, re.MULTILINE)


@slow
@pytest.mark.parametrize("name", list(sandbox.Method))
@pytest.mark.parametrize("http", [(), ("--http",)], ids=["stdio", "http"])
def test_a_client_in_a_sandbox_is_judged_as_outside(
    http: tuple[str, ...], name: str, tmp_path: Path
) -> None:
    from tests.tap.test_drive import CLOSE, GOOD, TRANSPORT  # noqa: PLC0415  (its clients)

    code = TRANSPORT if http else GOOD + CLOSE
    words = ("client", "--scenario", "tools_call", *in_sandbox(name), *http)
    server = () if http else ("{server}",)
    command = (sys.executable, "-c", code, *server)
    done = subprocess.run(
        [sys.executable, "-m", "mcp_touchstone", *words, "--", *command],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
