"""The README of the reference server: the promises name tests that exist, the examples work."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Final

import pytest

from reference_server.operation.options import HELP
from reference_server.settings import Settings
from tests.reference_client import CHECKOUT, PATIENCE, InProcess, modern

PAGE: Final = (CHECKOUT / "reference_server" / "README.md").read_text(encoding="utf-8")
TESTS: Final = Path(__file__).parent
DESIGNS: Final = ("CEDARScript adapter", "text editor", "patch-only gateway", "solutions server")


def table(heading: str) -> list[list[str]]:
    """Return the rows of the first table after a heading, as cells."""
    behind = PAGE[PAGE.index(f"\n{heading}\n") :]
    lines = behind[behind.index("\n| ") + 1 :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


KEPT: Final = table("## What was promised, and where it is tested")
NOT_KEPT: Final = table("### Not kept, or kept in another form, and why")


@cache
def names_in(file: str) -> set[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {one.name for one in functions if one.name.startswith("test_")}


def test_each_row_names_a_design_and_tests_that_exist() -> None:
    problems = []
    for promise, design, where in KEPT:
        named = re.findall(r"`([\w.]+)::(\w+)`", where)
        if not named or re.sub(r"`[\w.]+::\w+`", "", where).strip(", "):
            problems.append(f"{promise}: names no test, or more than tests")
        problems += [
            f"{promise}: there is no {file}::{name}"
            for file, name in named
            if not (TESTS / file).is_file() or name not in names_in(file)
        ]
        if design not in DESIGNS:
            problems.append(f"{promise}: no design is called {design}")

    assert problems == []


def test_every_design_has_more_than_ten_unique_promises() -> None:
    for design in DESIGNS:
        assert sum(row[1] == design for row in KEPT) > 10, design
    promises = [(row[0], row[1]) for row in (*KEPT, *NOT_KEPT)]
    assert len(promises) == len(set(promises))


def test_every_unkept_promise_has_a_reason() -> None:
    assert NOT_KEPT
    for promise, design, why in NOT_KEPT:
        assert promise
        assert design in DESIGNS
        assert why


def test_readme_lists_exactly_the_offered_tools(tmp_path: Path) -> None:
    listed = {name.strip("`") for name, *_rest in table("## The tools")}
    with InProcess(Settings([str(tmp_path)])) as client:
        client.send(modern(1, "tools/list"))
        offered = {tool["name"] for tool in client.hear()["result"]["tools"]}

    assert listed == offered | {"parse_cedarscript", "apply_cedarscript"}


def test_options_and_modules_in_the_readme_exist() -> None:
    for option in re.findall(r"`(--[\w-]+)", PAGE):
        assert option in HELP or option in {"--transport", "--http"}, option  # of `serve` alone
    for names, where in table("## Where to look"):
        assert names
        package = next(iter(re.findall(r"`(\w+)/`", where)), "")
        for name in re.findall(r"`(\w+)`", where):
            place = CHECKOUT / "reference_server"
            assert any((place / one / f"{name}.py").is_file() for one in (package, "")), name


def test_embedding_example_prints_its_documented_output() -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    said = re.findall(r"# (\{.*\})$", code, re.MULTILINE)
    assert done.stdout.split() == said
    assert done.stderr == ""


@pytest.mark.parametrize("page", ["README.md", "reference_server/README.md"])
def test_shell_example_prints_the_ping_answer(page: str) -> None:
    text = (CHECKOUT / page).read_text(encoding="utf-8")
    (line,) = re.findall(r"^echo .*$", text, re.MULTILINE)
    message, program = re.fullmatch(r"echo '(.*)' \| mcp-touchstone (.*)", line).groups()  # type: ignore[union-attr]
    done = subprocess.run(
        [sys.executable, "-m", "mcp_touchstone", *program.split()],
        input=message + "\n",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == '{"jsonrpc":"2.0","id":1,"result":{}}\n'
