"""A line of code names the language that ran it, and no other one."""

import contextlib
import io
import json
import shutil
import sqlite3
import subprocess
from typing import Final

import pytest

from mcp_touchstone.security.bind_commands import CODE

A, B = "0a1b2", "c3d4e"
LINES: Final = [
    (language, line.replace("{a}", A).replace("{b}", B))
    for language, lines in CODE.items()
    for line in lines
]
NODE: Final = """
const vm = require("vm"), lines = JSON.parse(process.argv[1]);
for (const line of lines) {
  let said = "";
  const sandbox = {console: {log: (text) => (said += text)}};
  for (const code of [line, `(() => {${line}})()`]) {
    try { said += vm.runInNewContext(code, sandbox); } catch { }
  }
  process.stdout.write(JSON.stringify(said) + "\\n");
}
"""


def by_python(line: str) -> str:
    """Run a line as a statement, as an expression and as the body of a function."""
    said = io.StringIO()
    for code in (line, f"print({line})", f"def f():\n  {line}\nprint(f())"):
        with contextlib.suppress(Exception), contextlib.redirect_stdout(said):
            exec(code, {})  # noqa: S102  (lines of ours)
    return said.getvalue()


def by_sql(line: str) -> str:
    """Run a line as a statement of SQLite."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect("")) as base:
        return str(base.execute(line).fetchall())
    return ""


def by_shell(line: str) -> str:
    """Run a line in a shell."""
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=False)
    return done.stdout


def by_node(lines: list[str]) -> list[str]:
    """Run lines as scripts and as bodies of functions."""
    done = subprocess.run(
        [str(shutil.which("node")), "-e", NODE, json.dumps(lines)],
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(said) for said in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("interpreter", "language"), [(by_python, "Python"), (by_sql, "SQL"), (by_shell, "shell")]
)
def test_a_line_is_of_one_language(interpreter: object, language: str) -> None:
    assert callable(interpreter)
    ran = [known for known, line in LINES if A + B in interpreter(line)]

    assert ran
    assert {*ran} == {language}


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_line_of_javascript_is_of_no_other_language() -> None:
    said = by_node([line for _, line in LINES])
    ran = [known for (known, _), text in zip(LINES, said, strict=True) if A + B in text]

    assert ran == ["JavaScript"] * len(CODE["JavaScript"])
