"""Promises about the whole reference server or about several servers, tested on the wire."""

from __future__ import annotations

import os
import re
import sys
import threading
import time
import tomllib
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from mcp_touchstone import __version__
from reference_server.failure import ToolError
from reference_server.features.cedarscript.library import VERSIONS
from reference_server.protocol.advice import advised
from reference_server.protocol.identity import VERSION
from reference_server.settings import MEBIBYTE, Settings
from reference_server.tools.text import LONGEST_TEXT
from tests.cases import cases
from tests.reference_client import (
    CHECKOUT,
    InProcess,
    Message,
    Spawned,
    ask,
    modern,
)
from tests.reference_server.cedarscript.client import NEEDS_LIBRARY

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))
POSIX_ONLY = pytest.mark.skipif(os.name == "nt", reason="starts the server through env")
LINUX_ONLY = pytest.mark.skipif(sys.platform != "linux", reason="reads the peak from /proc")


def call(client: InProcess | Spawned, tool: str, **arguments: Any) -> Message:
    """Return the result of a call."""
    client.send(modern("call", "tools/call", name=tool, arguments=arguments))
    found: Message = client.hear(60)["result"]
    return found


def test_every_tool_has_title_description_and_read_only_hint(tmp_path: Path) -> None:
    for read_only in (False, True):
        with InProcess(Settings([str(tmp_path)], read_only=read_only)) as client:
            client.send(modern(1, "tools/list"))
            tools = client.hear()["result"]["tools"]
        writing = {t["name"] for t in tools if not t["annotations"]["readOnlyHint"]}
        assert all(tool["title"] and tool["description"] for tool in tools)
        assert writing <= {"file_apply_patch_only", "text_editor", "apply_cedarscript"}
        assert bool(writing) is not read_only


def codes() -> set[str]:
    """Return the tool error codes in the sources, except script errors, which are in a table."""
    found = set()
    for path in (CHECKOUT / "reference_server").rglob("*.py"):
        if path.parent.name != "cedarscript":
            source = path.read_text("utf-8")
            found |= set(re.findall(r'\b(?:code=|CODE = )"([A-Z_]+)"', source))
            found |= set(re.findall(r'"(CLIENT_[A-Z]+)",', source))
    return found


def test_every_error_has_recovery_steps_and_names_only_listed_tools() -> None:
    assert codes() > {"NOT_FOUND", "INVALID_ARGUMENTS", "NO_MATCH", "CLIENT_SILENT", "READ_ONLY"}
    for code in sorted(codes()):
        body = advised(ToolError("It fails.", code=code), {"file_read", "text_editor"})
        assert body.get("recovery_steps"), code
        assert set(body.get("related_tools", ())) <= {"file_read", "text_editor"}
        assert "related_tools" not in advised(ToolError("It fails.", code=code), ())


def test_suggestions_of_an_error_are_kept() -> None:
    own = ToolError(
        "No.", code="NOT_FOUND", suggestions=["Try a.txt."], related_tools=["file_read"]
    )

    body = advised(own, {"file_read", "text_editor"})

    assert body["suggestions"] == ["Try a.txt."]
    assert "recovery_steps" not in body
    assert body["related_tools"] == ["file_read"]


@POSIX_ONLY
def test_server_without_arguments_serves_its_working_directory(tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("found it")
    command = ("env", f"PYTHONPATH={CHECKOUT}", sys.executable, "-m", "reference_server")
    with Spawned(command=command, cwd=tmp_path) as client:
        assert call(client, "file_read", path="here.txt")["structuredContent"]["text"] == "found it"
        client.end_input()
        assert client.exit_code() == 0
        assert client.stderr() == ""


@POSIX_ONLY
@pytest.mark.parametrize(("word", "offered"), [("false", False), ("true", True), (None, True)])
def test_text_editor_is_offered_unless_disabled(
    tmp_path: Path, word: str | None, offered: bool
) -> None:
    variables = [] if word is None else [f"TEXT_EDITOR_MCP_ENABLED={word}"]
    command = ("env", *variables, sys.executable, "-m", "reference_server")
    with Spawned("--root", str(tmp_path), command=command) as client:
        client.send(modern(1, "tools/list"), modern(2, "server/discover"))
        heard = {one["id"]: one["result"] for one in (client.hear(), client.hear())}
    names = [tool["name"] for tool in heard[1]["tools"]]
    assert ("text_editor" in names) is ("prompts" in heard[2]["capabilities"]) is offered


def test_idle_server_uses_no_cpu_time(tmp_path: Path) -> None:
    with Spawned("--root", str(tmp_path)) as client:
        client.open("2025-11-25")
        client.send(ask("2025-11-25", 1, "tools/list"))
        client.hear()
        process = psutil.Process(client.process.pid)
        before = process.cpu_times()
        time.sleep(1)
        after = process.cpu_times()
    assert (after.user - before.user) + (after.system - before.system) <= 0.02


def peak(pid: int) -> int:
    """Return the peak memory of a process in bytes."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:  # noqa: PTH123
        line = next(line for line in status if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024


@LINUX_ONLY
@cases(
    ("workspace_digest", {}, (MEBIBYTE, 9 * MEBIBYTE), 3),
    ("file_read", {"path": "big.txt"}, (LONGEST_TEXT // 10, LONGEST_TEXT), 12),
    (
        "file_read_range",
        {"path": "big.txt", "startLine": 1, "endLine": 1},
        (MEBIBYTE, 9 * MEBIBYTE),
        6,
    ),
)
def test_memory_grows_linearly_with_file_size(
    tmp_path: Path, tool: str, arguments: Message, sizes: tuple[int, int], most: int
) -> None:
    def peak_at(size: int) -> int:
        line = b"0123456789" * 7 + b"012345678\n"
        (tmp_path / "big.txt").write_bytes((line * (size // len(line) + 1))[:size])
        with Spawned("--root", str(tmp_path)) as client:
            assert "isError" not in call(client, tool, **arguments)
            return peak(client.process.pid)

    small, large = sizes
    assert peak_at(large) - peak_at(small) < most * (large - small)


@LINUX_ONLY
@NEEDS_LIBRARY
def test_parser_memory_grows_linearly_with_script_size(tmp_path: Path) -> None:
    def peak_at(size: int) -> int:
        content = f"CREATE FILE 'a.txt' WITH CONTENT '''\n{'x' * size}\n'''"
        with Spawned("--root", str(tmp_path)) as client:
            assert call(client, "parse_cedarscript", content=content)["structuredContent"]["count"]
            (worker,) = psutil.Process(client.process.pid).children()
            return peak(worker.pid)

    sizes = (25_000, 50_000, 100_000)
    first, second, third = map(peak_at, sizes)
    assert third - second < 3 * (second - first) + MEBIBYTE


def test_concurrent_patches_of_two_servers_apply_once(tmp_path: Path) -> None:
    """Two servers patch each file with the hash of its old text; only the first succeeds."""
    names = [f"{number}.txt" for number in range(20)]
    won: dict[str, list[str]] = {name: [] for name in names}
    codes: set[str] = set()

    def work(who: str) -> None:
        with Spawned("--root", str(tmp_path), "--log-level=off") as client:
            ready.wait()
            for name in names:
                old = hash_of[name]
                diff = f"--- a/{name}\n+++ b/{name}\n@@ -1,1 +1,1 @@\n-old\n+{who}\n"
                given = {"path": name, "expectedHash": old, "diffText": diff}
                answer = call(client, "file_apply_patch_only", **given)["structuredContent"]
                if answer.get("applied"):
                    won[name].append(who)
                else:
                    codes.add(answer["code"])

    for name in names:
        (tmp_path / name).write_text("old\n")
    with InProcess(Settings([str(tmp_path)])) as client:
        read = {name: call(client, "file_read", path=name) for name in names}
    hash_of = {name: read[name]["structuredContent"]["sha256"] for name in names}
    ready = threading.Barrier(2)
    threads = [threading.Thread(target=work, args=(who,)) for who in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)

    assert [name for name in names if len(won[name]) != 1] == []
    assert {name: (tmp_path / name).read_text() for name in names} == {
        name: f"{who}\n" for name, (who,) in won.items()
    }
    assert codes <= {"HASH_MISMATCH", "CHANGED"}
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_server_version_equals_package_version() -> None:
    assert __version__ == VERSION


def test_cedarscript_extra_pins_the_reviewed_versions() -> None:
    extra = PROJECT["project"]["optional-dependencies"]["cedarscript"]
    pinned = dict(line.partition(";")[0].strip().split("==") for line in extra)
    assert {name: pinned.get(name) for name in VERSIONS} == VERSIONS
