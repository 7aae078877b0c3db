"""How long a dry run of one command takes, as a multiple of the library's own time, in one sitting.

    python -m benchmarks.cedarscript [--lines N] [--runs N]

Needs the extra ``cedarscript``. The library is measured in this process as it comes (with queries,
which its wheel lacks): one script parsed and carried out on a file on the disk. The server is
measured over its wire with a warm worker: the same script read, policed, parsed twice, carried out
on a copy, checked as Python before and after, and answered with diffs.
"""

import argparse
import contextlib
import io
import json
import logging
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import types
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from reference_server.features.cedarscript.tools import install
from reference_server.server import serve
from reference_server.settings import Settings
from reference_server.surface import Surface

SCRIPTS = {
    "replace a line in a function": (
        "UPDATE FUNCTION 'f{half}' FROM FILE 'm.py' REPLACE LINE 'y = x + {half}' "
        "WITH CONTENT '@0:y = x'"
    ),
    "insert after a line": (
        "UPDATE FILE 'm.py' INSERT AFTER LINE 'y = x + {half}' WITH CONTENT '@0:z = y'"
    ),
    "delete a function": "UPDATE FUNCTION 'f{half}' FROM FILE 'm.py' DELETE WHOLE",
}
_QUERY = """
({0}_definition name: (identifier) @_name (#match? @_name "^{1}$") body: (block) @{0}.body)
  @{0}.definition
(decorated_definition (decorator) @{0}.decorator
  definition: ({0}_definition name: (identifier) @_name (#match? @_name "^{1}$")))
"""
_REVISION = "2026-07-28"


def source(lines: int) -> str:
    """Return the source of a module with functions of five lines each.

    Args:
        lines: Approximate number of lines.
    """
    one = 'def f{0}(x):\n    """Say {0}."""\n    y = x + {0}\n    return y\n\n'
    return "".join(one.format(number) for number in range(lines // 5))


def timed(runs: int, work: Callable[[], object]) -> float:
    """Return the median time of some runs, in seconds. One warm-up run is not counted."""
    work()
    times = []
    for _ in range(runs):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return statistics.median(times)


class Library:
    """The unpatched library, with queries added."""

    def __init__(self) -> None:
        warnings.simplefilter("ignore")
        logging.disable(logging.CRITICAL)
        queries: Any = types.ModuleType("cedarscript_editor.tree_sitter_identifier_queries")
        queries.get_query = lambda _language: {
            kind: _QUERY.format(kind, "{name}") for kind in ("function", "class")
        }
        sys.modules[queries.__name__] = queries
        self._editor: Any = import_module("cedarscript_editor")

    def work(self, root: Path, text: str, script: str) -> None:
        """Write a text to a file and carry out a script on it."""
        (root / "m.py").write_text(text)
        with contextlib.redirect_stdout(io.StringIO()):
            commands = list(self._editor.find_commands(f"```CEDARScript\n{script}\n```"))
            self._editor.CEDARScriptEditor(root).apply_commands(commands)


class Server:
    """The server in a thread of this process, connected by two pipes."""

    def __init__(self, root: Path) -> None:
        theirs, self._out = os.pipe()
        read, write = os.pipe()
        self._in = os.fdopen(read, "rb")

        def offer(surface: Surface) -> None:
            surface.toolbox.later(lambda: install(surface))

        settings = Settings([str(root)], log_level="off")
        self._thread = threading.Thread(target=serve, args=(theirs, write, settings, [offer]))
        self._thread.start()
        self._meta = {
            "io.modelcontextprotocol/protocolVersion": _REVISION,
            "io.modelcontextprotocol/clientCapabilities": {},
        }

    def work(self, script: str) -> None:
        """Call ``apply_cedarscript`` with a script as a dry run and wait for the answer."""
        self.call("apply_cedarscript", commands=script)

    def call(self, tool: str, **arguments: object) -> None:
        """Call a tool and wait for the answer."""
        params = {"_meta": self._meta, "name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        os.write(self._out, json.dumps(message).encode() + b"\n")
        result = json.loads(self._in.readline())["result"]
        if result.get("isError"):
            raise SystemExit(result["content"][0]["text"])

    def end(self) -> None:
        """Close the connection and wait for the server to end."""
        os.close(self._out)
        self._thread.join()


def main() -> None:
    """Measure the times and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    text = source(options.lines)
    library = Library()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {options.lines} lines")
    print(f"{'command':<30}{'library ms':>12}{'dry run ms':>12}{'ratio':>8}")
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        (root / "served").mkdir()
        (root / "served" / "m.py").write_text(text)
        server = Server(root / "served")
        for name, form in SCRIPTS.items():
            script = form.format(half=options.lines // 10)
            theirs = timed(options.runs, lambda s=script: library.work(root, text, s))  # type: ignore[misc]
            ours = timed(options.runs, lambda s=script: server.work(s))  # type: ignore[misc]
            print(f"{name:<30}{theirs * 1e3:>12.1f}{ours * 1e3:>12.1f}{ours / theirs:>8.2f}")
        server.end()
        _promised(root / "served", SCRIPTS["replace a line in a function"], options.lines)


def _promised(root: Path, form: str, lines: int) -> None:
    """Print the times with a limit in the README of the reference server.

    A cold parse starts the worker, so it is also a multiple of the start of an interpreter.
    """
    start = timed(5, lambda: subprocess.run([sys.executable, "-P", "-c", ""], check=True))

    def cold() -> float:
        server = Server(root)
        begun = time.perf_counter()
        server.call("parse_cedarscript", content=form.format(half=1))
        taken = time.perf_counter() - begun
        server.end()
        return taken

    first = statistics.median(cold() for _ in range(5))
    halves = iter(range(lines // 5))
    server = Server(root)
    server.work(form.format(half=next(halves)))
    found = {
        "parse": timed(
            5, lambda: server.call("parse_cedarscript", content=form.format(half=next(halves)))
        ),
        "preview": timed(5, lambda: server.work(form.format(half=next(halves)))),
        "write": timed(
            5,
            lambda: server.call(
                "apply_cedarscript", commands=form.format(half=next(halves)), dry_run=False
            ),
        ),
    }
    server.end()
    print(f"{'first parse, cold':<30}{'':>12}{first * 1e3:>12.1f}{first / start:>8.2f} of Python")
    for name, seconds in found.items():
        print(f"{name:<30}{'':>12}{seconds * 1e3:>12.1f}")


if __name__ == "__main__":
    main()
