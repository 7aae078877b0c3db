"""What only gateways need is counted in lines of Python outside tests; only new rules add to it.

A line is a line of a file, blank or not. A file counts whole if only gateways import it: the rules
on gateways and their vocabulary, the package that judges them, and each module that nothing else
imports. In all other modules those functions count whose names say that they are of gateways.
Without gateways all of these lines could go, and no others: clients and servers use the rest.
"""

import ast
from pathlib import Path
from typing import Final

from tests.project.test_architecture import MODULES, PACKAGE, files, imported_modules, package_of

MOST: Final = 4552
"""A ceiling that falls: whoever needs fewer lines writes the lower number. Only a new rule, a
defence against a gateway, or a clearer name raises it."""

SLACK: Final = 20
"""Lines by which the number may be lower before it must be written here."""

DOOR: Final = ("config.settings", "judging.expected")
"""The import, inside a function, by which the option ``--expects`` is read."""


def own_modules() -> set[str]:
    """Return the modules that nothing but gateways imports."""
    own = {name for name in MODULES if package_of(name) == "gateway"}
    importers: dict[str, set[str]] = {}
    for name in MODULES:
        for one in imported_modules(name):
            importers.setdefault(one, set()).update({name} if (name, one) != DOOR else ())
    while further := {name for name, of in importers.items() if of <= own} - own:
        own |= further
    return own


def of_gateways(path: Path) -> int:
    """Count the lines of the functions of a module that are of gateways by their names."""
    return sum(
        (node.end_lineno or 0) - node.lineno + 1
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and "gateway" in node.name
    )


def test_what_only_gateways_need_becomes_no_more() -> None:
    own = own_modules()
    script = Path(__file__).parents[2] / "scripts" / "gateways.py"
    whole = [PACKAGE / "gateway" / "__init__.py", script, *files("conformance/gateways")]
    whole += [MODULES[name] for name in own]

    count = sum(len(path.read_text("utf-8").splitlines()) for path in whole)
    count += sum(of_gateways(path) for name, path in MODULES.items() if name not in own)

    assert {
        "gateway.scene",
        "judging.hops",
        "judging.gateway_talk",
        "judging.expected",
        "parts.upstream",
    } <= own
    assert MOST - SLACK < count <= MOST
