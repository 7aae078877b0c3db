"""The pure modules use no processes, no sockets and no clock."""

import subprocess
import sys
import textwrap
from pathlib import Path

import mcp_touchstone

SOURCE = Path(mcp_touchstone.__file__).parents[1]

PURE = (
    *("catalog.errors", "catalog.revision", "catalog.attack_level", "catalog.clause"),
    *("wire.framing", "wire.lifecycle", "wire.near_miss", "wire.allowance", "wire.transcript"),
    *("wire.spread", "wire.events"),
    *("wire.curl", "wire.exchange", "wire.sse", "wire.http_headers", "transport.http_session"),
    *("results.tool_use", "results.verdict", "catalog.scenario", "catalog.sdk", "wire.matchers"),
    *("samples.from_regex", "samples.from_schema", "samples.uri_template", "runtime.timeouts"),
    *("wire.reply", "connection.answers", "connection.client_tasks", "connection.profile"),
    *("connection.server_requests", "catalog.needs", "bindings.canary", "bindings.argument_roles"),
    "bindings.call_variants",
    *("bindings.file_naming", "bindings.binding", "bindings.observed", "catalog.threat"),
    *("results.lock", "results.threshold"),
    *("connection.server_profile", "profiles.rule", "profiles.measure", "profiles.load"),
    *(
        "profiles.notes",
        "results.budgets",
        "results.played",
        "results.run",
        "engine.choice",
        "engine.plan",
    ),
    *("version", "target.command_text", "results.subject", "results.advisories"),
    *("advisories.table", "advisories.known"),
    *("runtime.printable", "runtime.secrets"),
    *("report.finding", "report.text", "report.digest"),
)
"""Bytes and values in, values out. ``clause``, ``load`` and ``table`` read only files of rules;
``transcript`` has a lock and gets the time from its caller."""

LOCKING = ("mcp_touchstone.wire.transcript", "mcp_touchstone.wire.allowance")

FOREIGN = (
    "asyncio",
    "concurrent",
    "ctypes",
    "multiprocessing",
    "os",
    "psutil",
    "pytest",
    "random",
    "rich",
    "selectors",
    "shutil",
    "signal",
    "socket",
    "ssl",
    "subprocess",
    "sys",
    "tempfile",
    "time",
    "urllib",
    "uuid",
)
"""Modules that a pure module must not import. Only LOCKING may import ``threading``; every module
may import ``urllib.parse``, which handles text only."""

GUARD = f"""
import builtins, sys
sys.path.insert(0, {str(SOURCE)!r})
FOREIGN = {FOREIGN!r}
asked = builtins.__import__

def guarded(name, globals=None, *rest, **more):
    importer = (globals or {{}}).get("__name__", "")
    if importer.startswith("mcp_touchstone"):
        top = name.partition(".")[0]
        alone = top == "threading" and importer not in {LOCKING!r}
        if (top in FOREIGN and name != "urllib.parse") or alone:
            raise AssertionError(importer + " imports " + name)
    return asked(name, globals, *rest, **more)

builtins.__import__ = guarded
"""

BLOCKED = """
import os, socket, subprocess, threading, time

def refuse(*_, **__):
    raise AssertionError("a pure module touched the world")

for module, names in {
    os: ("system", "fork", "kill", "popen", "pipe", "posix_spawn", "getenv"),
    socket: ("socket", "create_connection"),
    subprocess: ("Popen", "run"),
    time: ("time", "monotonic", "perf_counter", "sleep", "time_ns", "monotonic_ns"),
    threading.Thread: ("start",),
}.items():
    for name in names:
        setattr(module, name, refuse)
"""

CONVERSATION = """
from mcp_touchstone.wire.framing import LineSplitter, encode
from mcp_touchstone.wire.transcript import Transcript
from mcp_touchstone.results.verdict import evidence
from mcp_touchstone.report.text import safe
import itertools

ticks = itertools.count()
record = Transcript("2025-11-25", clock=lambda: next(ticks))
ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize"}
record.said(encode(ask), ask)
splitter = LineSplitter()
for byte in b'hello\\n{"jsonrpc":"2.0","id":1,\\n"result":{}}\\n{"id":1,"error":{}}':
    for line in splitter.feed(bytes([byte])):
        record.heard(line)
record.heard(splitter.close())
record.happened("the end")
record.finished()
assert len(record) == 6, len(record)
roles = [str(m.role) for e in record for m in e.messages]
assert roles == ["answer", "second answer"], roles
assert record.session.phase.name == "AGREED"
assert [safe(w.text) for w in evidence(list(record), 5)][-1].startswith('{"id"')
"""


def fresh(*code: str) -> subprocess.CompletedProcess[str]:
    """Run code in an interpreter with as few imported modules as possible."""
    text = "\n".join(map(textwrap.dedent, code))
    command = [sys.executable, "-I", "-S", "-c", text]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_pure_modules_import_no_io_module() -> None:
    done = fresh(
        GUARD,
        *(f"import mcp_touchstone.{name}" for name in PURE),
        "print(*sorted(m for m in sys.modules if m.startswith('mcp_touchstone.')))",
        "reached = {'subprocess', 'socket', 'psutil', 'signal', 'asyncio'} & set(sys.modules)",
        "print(*sorted(reached))",
    )

    assert done.returncode == 0, done.stderr
    ours, reached = done.stdout.split("\n")[:2]
    assert {m.removeprefix("mcp_touchstone.") for m in ours.split()} == {
        *PURE,
        *(name.partition(".")[0] for name in PURE),
    }
    assert reached == ""


def test_pure_modules_process_a_conversation_without_io() -> None:
    done = fresh(f"import sys; sys.path.insert(0, {str(SOURCE)!r})", BLOCKED, CONVERSATION)

    assert done.returncode == 0, done.stderr


def test_import_guard_detects_an_impure_module() -> None:
    done = fresh(GUARD, "import mcp_touchstone.transport.process")

    assert "AssertionError: mcp_touchstone.transport.process imports" in done.stderr


def test_importing_the_package_imports_nothing_else() -> None:
    """The pytest plugin is imported in every session of its user."""
    done = fresh(
        f"import sys; sys.path.insert(0, {str(SOURCE)!r}); before = set(sys.modules)",
        "import mcp_touchstone",
        "print(*sorted(set(sys.modules) - before))",
    )

    assert done.stdout.split() == ["mcp_touchstone", "mcp_touchstone.version"]
