"""List the Python servers in the checkouts of repositories, for `mcp-touchstone fleet`.

``python scripts/census_list.py PYTHON CHECKOUT ... > list.jsonl``; docs/census.md has the rule.
PYTHON is the interpreter of an environment with the usual dependencies of servers. Nothing of the
checkouts is run.
"""

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final

MAKES_SERVER: Final = re.compile(r"FastMCP\(|(?<!\w)Server\(")
USES_SDK: Final = re.compile(r"\bmcp\b|fastmcp")
LEFT_OUT: Final = re.compile(
    r"/(tests?|examples?|templates?|node_modules|venv|\.venv|site-packages|scripts)/|/test_"
)
FIND: Final = """
import importlib.util, sys
for name in sys.argv[1:]:
    if importlib.util.find_spec(name):
        print(name)
"""


@dataclass(frozen=True, slots=True)
class Server:
    """A server in a checkout: its command, its folder, and the packages that it imports."""

    name: str
    command: tuple[str, ...]
    folder: Path
    paths: tuple[Path, ...]
    imports: frozenset[str]


def servers(python: str, checkout: Path) -> Iterator[Server]:
    """Yield the servers of a checkout: one for each project, and each file without a project."""
    seen: set[Path] = set()
    for file in sorted(checkout.rglob("*.py")):
        place = f"/{file.relative_to(checkout).as_posix()}"
        text = "" if LEFT_OUT.search(place) else file.read_text("utf-8", "replace")
        if not MAKES_SERVER.search(text) or not USES_SDK.search(text):
            continue
        above = [one for one in file.parents if one.is_relative_to(checkout)]
        project = next((one for one in above if (one / "pyproject.toml").is_file()), None)
        if project in seen:
            continue
        command: tuple[str, ...] = ()
        paths: tuple[Path, ...] = ()
        if project is not None:
            seen.add(project)
            paths = tuple(one for one in (project / "src", project) if one.is_dir())
            command = script(python, project, paths)
        if not command and "__main__" in text:
            command = (python, str(file))
        if command:
            folder = project or file.parent
            found = imports(text, [folder, folder / "src", *above[:3]])
            yield Server(f"{checkout.name}{place}", command, folder, paths, found)


def script(python: str, project: Path, paths: tuple[Path, ...]) -> tuple[str, ...]:
    """Return the command of the first script of a project; empty without one."""
    try:
        table = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    except tomllib.TOMLDecodeError:
        return ()
    for target in table.get("project", {}).get("scripts", {}).values():
        module, _, function = target.partition(":")
        file = module.replace(".", "/")
        if any((one / f"{file}.py").is_file() or (one / file).is_dir() for one in paths):
            code = f"import sys; from {module} import {function} as run; sys.exit(run())"
            return (python, "-c", code)
    return ()


def imports(text: str, near: list[Path]) -> frozenset[str]:
    """Return the packages that a file imports at its top, without its own and Python's."""
    try:
        body = ast.parse(text).body
    except SyntaxError:
        return frozenset()
    found = set()
    for node in body:
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    own = {name for name in found for one in near if any(one.glob(f"{name}*"))}
    return frozenset(found - own - sys.stdlib_module_names)


def main(python: str, checkouts: list[str]) -> None:
    """Print the servers whose imports the environment has, the repositories in turn."""
    found = [list(servers(python, Path(one).resolve())) for one in checkouts]
    names = sorted({name for group in found for one in group for name in one.imports})
    done = subprocess.run([python, "-c", FIND, *names], capture_output=True, text=True, check=True)
    there = {*done.stdout.split()}
    kept = [[one for one in group if one.imports <= there] for group in found]
    for row in zip_longest(*kept):
        for one in filter(None, row):
            env = {"PYTHONPATH": ":".join(map(str, one.paths))} if one.paths else {}
            entry = {"name": one.name, "command": one.command, "env": env, "cwd": str(one.folder)}
            print(json.dumps(entry))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
