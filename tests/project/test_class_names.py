"""A public name of a class stands for one thing in the whole package."""

import ast
from collections import defaultdict
from pathlib import Path
from typing import Final

import mcp_touchstone

PACKAGE: Final = Path(mcp_touchstone.__path__[0])

ALLOWED: Final = {
    # the part that our server plays, always read as ``parts.Part``; the part of a combined report
    "Part": {"parts.part", "report.combined"}
}
"""Name -> the modules that may each have a class of this name."""


def test_public_class_name_is_used_once() -> None:
    found = defaultdict(set)
    for path in PACKAGE.rglob("*.py"):
        module = path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")
        if not module.startswith("_suites"):
            for node in ast.parse(path.read_text("utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    found[node.name].add(module)

    assert {name: modules for name, modules in found.items() if len(modules) > 1} == ALLOWED
