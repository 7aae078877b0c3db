"""The script payloads of ``security_suite`` run against the server, and the server is killed."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from reference_server.features.cedarscript import engine
from tests.attack_field import CANARY_NAME, MARK, Field, payloads
from tests.reference_client import CHECKOUT, Spawned, modern
from tests.reference_server.cedarscript.client import WHY_NOT, Client

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.skipif(WHY_NOT is not None, reason=f"CEDARScript is not available: {WHY_NOT}"),
    pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX"),
    pytest.mark.slow,
]

SCRIPTS = [payload for payload in payloads("script") if payload["via"] == "script"]
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
HARMLESS = {"script.path-21", "script.path-22"}
"""Payloads that only look like an attack: the path is in a comment or in content."""


@pytest.fixture
def field(tmp_path: Path) -> Field:
    field = Field(tmp_path / "base")
    (field.root / "m.py").write_text("x = 1\n\n\ndef f():\n    return x\n\n\n# end\n")
    lines = [f"{'a' * length}!\n" for length in range(30, 51)]
    (field.root / "redos.txt").write_text("".join(lines))
    return field


def fill(field: Field, payload: str) -> str:
    line = f"{MARK}{field.canary}-"
    script = payload.replace("{canary_line}", line + CANARY_NAME)
    return field.fill(script.replace("{env_line}", line + ".env"))


def test_attack_scripts_reach_nothing_outside_the_root(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "RUN_SECONDS", 1.0)
    assert len(SCRIPTS) > 30
    before = field.forbidden()
    m, plain = field.root / "m.py", (field.root / "m.py").read_bytes()
    with Client(field.root, log_level="off") as client:
        for payload in SCRIPTS:
            script = fill(field, payload["payload"])
            for arguments in (
                {"name": "parse_cedarscript", "arguments": {"content": script}},
                {"name": "apply_cedarscript", "arguments": {"commands": script}},
                {
                    "name": "apply_cedarscript",
                    "arguments": {"commands": script, "dry_run": False},
                },
            ):
                answer = json.dumps(client.ask("tools/call", **arguments))
                # The tree of the commands repeats the text of the script.
                assert field.canary not in answer or field.canary in script, payload["id"]
            failed = '"isError": true' in answer
            assert failed is (payload["id"] not in HARMLESS), (payload["id"], answer)
            m.write_bytes(plain)
            assert field.forbidden() == before, payload["id"]
            assert field.laundered() == [], payload["id"]
        assert client.call("parse_cedarscript", content="RM FILE 'x'")["count"] == 1


@pytest.mark.parametrize(
    "form",
    [
        "UPDATE FILE 'redos.txt' DELETE LINE REGEX r'''{}'''",
        "UPDATE FILE 'redos.txt' REPLACE WHOLE WITH CASE WHEN REGEX r'''{}''' THEN REMOVE END",
        "UPDATE FILE 'redos.txt' REPLACE WHOLE WITH CASE WHEN PREFIX 'a' THEN SUB r'{}' r'' END",
    ],
)
def test_slow_patterns_are_stopped_by_the_time_limit(
    field: Field, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "RUN_SECONDS", 0.5)
    stopped = 0
    with Client(field.root, log_level="off") as client:
        for pattern in PATTERNS:
            begun = time.monotonic()
            params = {"name": "apply_cedarscript", "arguments": {"commands": form.format(pattern)}}
            result = client.ask("tools/call", **params)["result"]
            assert time.monotonic() - begun < 10, pattern
            stopped += result["structuredContent"].get("code") == "SCRIPT_TIMEOUT"
        assert client.preview("RM FILE 'm.py'")["affected_files"] == ["m.py"]
    assert stopped, "some of them are catastrophic"


# --- end of the server


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
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for child in psutil.Process(server.process.pid).children():
            if "cedarscript_worker" in " ".join(child.cmdline()):
                return child
        time.sleep(0.05)
    raise AssertionError("there is no worker")


def test_code_in_the_working_directory_is_not_run(
    field: Field, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    here = tmp_path / "here"
    here.mkdir()
    for name in ("version", "policy", "worker", "text_manipulation", "cedarscript_editor"):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()\n")
    with spawned(field.root, here) as server:
        server.send(apply("UPDATE FILE 'm.py' DELETE LINE 'x = 1'"))
        result = server.hear(60)["result"]
        server.end_input()
        assert server.rest() == [], "what the library prints stays off the wire"
        assert server.exit_code() == 0
    assert "isError" not in result
    assert not (tmp_path / "ran").exists()


def wait_for_worker_start(folder: Path) -> None:
    """Wait until the worker runs: it removes its working directory after the start."""
    end = time.monotonic() + 60
    while list(folder.glob("mcp-cedarscript-*")):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_worker_ends_if_the_server_is_killed(
    field: Field, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    hostile = apply("UPDATE FILE 'redos.txt' DELETE LINE REGEX r'^(a+)+$'")
    for message in (apply("UPDATE FILE 'm.py' DELETE LINE 'x = 1'"), hostile):
        short = "from reference_server.features.cedarscript import engine; engine.RUN_SECONDS = 2.0"
        with spawned(field.root, field.root, short) as server:
            server.send(message)
            worker = worker_of(server)
            if message is not hostile:
                server.hear(60)
            else:
                wait_for_worker_start(tmp_path)
                time.sleep(0.5)
            server.process.kill()
            server.process.wait(10)
            worker.wait(300)  # a limit of processor time ends it
    assert not list(tmp_path.glob("mcp-cedarscript-*")), "nothing is left behind"


def test_worker_ends_if_the_server_is_terminated(
    field: Field, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    with spawned(field.root, field.root) as server:
        server.send(apply("UPDATE FILE 'redos.txt' DELETE LINE REGEX r'^(a+)+$'"))
        worker = worker_of(server)
        time.sleep(0.5)
        server.process.terminate()
        server.process.wait(20)
        assert not worker.is_running()
