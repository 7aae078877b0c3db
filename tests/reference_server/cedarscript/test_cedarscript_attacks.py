"""Scripts that never end, and servers that end while a script runs."""

from __future__ import annotations

import itertools
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from reference_server.features.cedarscript import engine
from tests.conftest import eventually
from tests.reference_client import CHECKOUT, Spawned, modern
from tests.reference_server.cedarscript.client import NEEDS_LIBRARY, Client

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    NEEDS_LIBRARY,
    pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX"),
    pytest.mark.slow,
]

PATTERNS = (
    r"(a+)+$",
    r"(a|aa)+$",
    r"(.*a){25}",
    r"^(([a-z])+.)+[A-Z]([a-z])+$",
    r"(\w+\s?)*$",
    r"(?=(a+))\1b",
    r"a{0,65535}{0,65535}",
    "(" * 31 + "x" + ")?" * 31,
    r"[",
    r"(?P<n>",
    r"(?R)",
    r"(*COMMIT)",
    r"\p{Any}*\p{Any}*\p{Any}*x",
)
"""Catastrophic, invalid and foreign expressions."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    root.mkdir()
    (root / "m.py").write_text("x = 1\n\n\ndef f():\n    return x\n\n\n# end\n")
    lines = [f"{'a' * length}!\n" for length in range(30, 51)]
    (root / "redos.txt").write_text("".join(lines))
    return root


FORMS = (
    "UPDATE FILE 'redos.txt' DELETE LINE REGEX r'''{}'''",
    "UPDATE FILE 'redos.txt' REPLACE WHOLE WITH CASE WHEN REGEX r'''{}''' THEN REMOVE END",
    "UPDATE FILE 'redos.txt' REPLACE WHOLE WITH CASE WHEN PREFIX 'a' THEN SUB r'{}' r'' END",
)


def test_slow_patterns_are_stopped_by_the_time_limit(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "RUN_SECONDS", 0.5)
    stopped = set()
    with Client(root, log_level="off") as client:
        for pattern, form in zip(PATTERNS, itertools.cycle(FORMS), strict=False):
            begun = time.monotonic()
            params = {"name": "apply_cedarscript", "arguments": {"commands": form.format(pattern)}}
            result = client.ask("tools/call", **params)["result"]
            assert time.monotonic() - begun < 10, pattern
            if result["structuredContent"].get("code") == "SCRIPT_TIMEOUT":
                stopped.add(form)
        assert client.preview("RM FILE 'm.py'")["affected_files"] == ["m.py"]
    assert stopped == {*FORMS}


def spawned(root: Path, cwd: Path, before: str = "") -> Spawned:
    """Start the real program in the given directory."""
    program = (
        f"import sys\n{before}\n"
        "from reference_server.__main__ import main\nraise SystemExit(main(sys.argv[1:]))"
    )
    command = (sys.executable, "-c", program)
    return Spawned("--root", str(root), "--log-level", "off", command=command, cwd=cwd)


def apply(script: str, request_id: Any = 1) -> dict[str, Any]:
    arguments = {"commands": script}
    return modern(request_id, "tools/call", name="apply_cedarscript", arguments=arguments)


def worker_of(server: Spawned) -> psutil.Process:
    below = psutil.Process(server.process.pid).children
    found = eventually(lambda: [o for o in below() if "cedarscript_worker" in str(o.cmdline())])
    return found[0]  # type: ignore[no-any-return]


def wait_for_work(worker: psutil.Process) -> None:
    """Wait until it works: it has used a core for longer than its start takes."""
    began = worker.cpu_times().user
    eventually(lambda: worker.cpu_times().user > began + 0.3)


def test_code_in_the_working_directory_is_not_run(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    here = tmp_path / "here"
    here.mkdir()
    for name in ("version", "policy", "worker", "text_manipulation", "cedarscript_editor"):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    with spawned(root, here) as server:
        server.send(apply("UPDATE FILE 'm.py' DELETE LINE 'x = 1'"))
        result = server.hear(60)["result"]
        server.end_input()
        assert server.rest() == [], "what the library prints stays off the wire"
        assert server.exit_code() == 0
    assert "isError" not in result
    assert not (tmp_path / "ran").exists()


def wait_for_worker_start(folder: Path) -> None:
    """Wait until the worker runs: it removes its working directory after the start."""
    eventually(lambda: not list(folder.glob("mcp-cedarscript-*")))


def test_worker_ends_if_the_server_is_killed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    hostile = apply("UPDATE FILE 'redos.txt' DELETE LINE REGEX r'^(a+)+$'")
    for message in (apply("UPDATE FILE 'm.py' DELETE LINE 'x = 1'"), hostile):
        short = "from reference_server.features.cedarscript import engine; engine.RUN_SECONDS = 2.0"
        with spawned(root, root, short) as server:
            server.send(message)
            worker = worker_of(server)
            if message is not hostile:
                server.hear(60)
            else:
                wait_for_worker_start(tmp_path)
                wait_for_work(worker)
            server.process.kill()
            server.process.wait(10)
            worker.wait(300)  # a limit of processor time ends it
    assert not list(tmp_path.glob("mcp-cedarscript-*")), "nothing is left behind"


def test_worker_ends_if_the_server_is_terminated(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    with spawned(root, root) as server:
        server.send(apply("UPDATE FILE 'redos.txt' DELETE LINE REGEX r'^(a+)+$'"))
        worker = worker_of(server)
        wait_for_work(worker)
        server.process.terminate()
        server.process.wait(20)
        assert not worker.is_running()
