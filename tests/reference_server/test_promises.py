"""The promises of the reference server name tests that exist; the examples of its README work."""

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
PROMISES: Final = Path(__file__).with_name("promises.md").read_text(encoding="utf-8")
LONGEST_PAGE: Final = 150
WIDEST_LINE: Final = 110
DESIGNS: Final = ("CEDARScript adapter", "text editor", "patch-only gateway", "solutions server")


def table(page: str, heading: str) -> list[list[str]]:
    """Return the rows of the first table after a heading, as cells."""
    behind = page[page.index(f"\n{heading}\n") :]
    lines = behind[behind.index("\n| ") + 1 :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


KEPT: Final = table(PROMISES, "## Kept")
NOT_KEPT: Final = table(PROMISES, "## Not kept, or kept in another form")


@cache
def names_in(file: str) -> set[str]:
    """Return the names of the tests in a file below tests/, none if there is no such file."""
    path = CHECKOUT / "tests" / file
    if not path.is_file():
        return set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return {one.name for one in functions if one.name.startswith("test_")}


def test_each_row_names_a_design_and_tests_that_exist() -> None:
    problems = []
    for promise, design, where in KEPT:
        named = re.findall(r"`([\w./]+)::(\w+)`", where)
        if not named or re.sub(r"`[\w./]+::\w+`", "", where).strip(", "):
            problems.append(f"{promise}: names no test, or more than tests")
        problems += [
            f"{promise}: there is no {file}::{name}"
            for file, name in named
            if name not in names_in(file)
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
    listed = {name.strip("`") for name, *_rest in table(PAGE, "## The tools")}
    with InProcess(Settings([str(tmp_path)])) as client:
        client.send(modern(1, "tools/list"))
        offered = {tool["name"] for tool in client.hear()["result"]["tools"]}

    assert listed == offered | {"parse_cedarscript", "apply_cedarscript"}


def test_options_and_modules_in_the_readme_exist() -> None:
    for option in re.findall(r"`(--[\w-]+)", PAGE):
        assert option in HELP or option == "--http", option  # of `serve` alone
    for module in re.findall(r"`(\w+/\w*)`", PAGE[PAGE.index("## Read the code") :]):
        place = CHECKOUT / "reference_server" / module
        assert place.is_dir() or place.with_suffix(".py").is_file(), module


def test_readme_is_short() -> None:
    lines = PAGE.splitlines()

    assert len(lines) <= LONGEST_PAGE
    assert [line for line in lines if len(line) > WIDEST_LINE] == []


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


@pytest.mark.parametrize("page", ["reference_server/README.md"])
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
