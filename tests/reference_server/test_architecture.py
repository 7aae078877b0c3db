"""Imports between the packages of the reference server: one table, checked by the sources."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Final

import pytest

from tests.reference_client import CHECKOUT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE: Final = CHECKOUT / "reference_server"

ALLOWED: Final[dict[str, set[str]]] = {
    # the one error that every part may raise
    "failure": set(),
    # the operator's decisions
    "settings": set(),
    # lines, messages, requests, answers; the questions and the progress of one call; how tools are
    # listed and called, and lists cut into pages
    "protocol": {"failure", "settings"},
    # the operator's interface: options, logs, hooks
    "operation": {*("settings", "protocol.calls", "protocol.errors", "protocol.toolbox")},
    # files that may be read and written; independent of the protocol
    "workspace": {"failure", "settings", "operation.log", "operation.verbose"},
    # the registry of features
    "surface": {
        *("settings", "protocol.calls", "protocol.connection", "protocol.methods"),
        *("protocol.toolbox", "operation.log", "workspace"),
    },
    # reading files; schemas and texts that all tools for files have in common
    "tools": {"failure", "protocol.calls", "protocol.toolbox", "surface", "workspace"},
    # resources and prompts
    "content": {
        *("failure", "protocol.calls", "protocol.envelope", "protocol.errors", "protocol.pages"),
        *("protocol.revisions", "workspace", "workspace.refusals", "surface", "tools.text"),
    },
    # features beside the core: the server works without each of them
    "features": set(),
    "features.client_log": {
        *("protocol.calls", "protocol.errors", "protocol.identity", "protocol.modern"),
        *("protocol.printable", "protocol.revisions", "surface"),
    },
    "features.roots": {
        *("protocol.answers", "protocol.calls", "protocol.errors", "protocol.questions"),
        *("protocol.workers", "surface"),
    },
    "features.subscriptions": {
        *("protocol.calls", "protocol.envelope", "protocol.errors", "protocol.framing"),
        *("protocol.messages", "surface", "content.resources", "content.uris"),
    },
    "features.completion": {
        *("failure", "protocol.calls", "protocol.envelope", "protocol.errors", "surface"),
        *("tools.text", "content.uris"),
    },
    "features.confirmation": {
        *("failure", "protocol.calls", "protocol.printable", "protocol.questions"),
        *("protocol.seal", "workspace", "surface"),
    },
    "features.patching": {
        *("failure", "protocol.calls", "protocol.toolbox", "surface", "tools.schemas"),
        "tools.text",
    },
    "features.text_editor": {
        *("failure", "settings", "protocol.calls", "protocol.errors", "protocol.toolbox"),
        *("workspace", "workspace.entries", "workspace.refusals", "surface", "tools.schemas"),
        *("tools.text", "content.media_types", "content.prompts", "content.uris"),
    },
    # it has a library, and a process, of its own
    "features.cedarscript": {
        *("failure", "protocol.calls", "protocol.revisions", "protocol.toolbox", "workspace"),
        *("workspace.refusals", "surface", "tools.schemas", "tools.text"),
    },
    "features.tasks": {
        *("protocol.calls", "protocol.envelope", "protocol.errors", "protocol.framing"),
        *("protocol.pages", "protocol.toolbox", "protocol.workers", "surface"),
    },
    "features.digest": {
        *("failure", "protocol.calls", "protocol.toolbox", "surface", "tools.schemas")
    },
    # extensions of the protocol, offered only if they are named
    "features.skills": {
        *("protocol.calls", "protocol.errors", "protocol.pages", "protocol.revisions", "surface")
    },
    "features.apps": {"protocol.calls", "protocol.revisions", "surface"},
    # the table of the features
    "bundle": {
        *("protocol.calls", "protocol.errors", "protocol.identity", "protocol.legacy"),
        *("protocol.messages", "protocol.revisions", "protocol.toolbox", "workspace.paths"),
        "surface",
    },
    "server": {
        *("settings", "protocol.connection", "protocol.reader", "protocol.source"),
        *("protocol.wire", "protocol.workers", "operation.hooks", "operation.log", "surface"),
        "bundle",
    },
    "__main__": {"protocol.errors", "protocol.identity", "operation.options", "surface", "server"},
}
"""Package or top-level module -> modules outside of it that it imports, at any place and for types
too. The table is exact in both directions; a package imports only packages listed above it."""

LATE: Final[dict[str, set[str]]] = {
    "bundle": {
        *("tools.files", "content.resources", "content.prompts", "features.subscriptions"),
        *("features.completion", "features.client_log", "features.roots"),
        *("features.patching.patches", "features.text_editor.editor"),
        *("features.text_editor.prompts", "features.cedarscript.tools", "features.digest"),
        "features.tasks",
    },
    "features.completion": {"content.prompts"},
    "features.subscriptions": {"content.resources"},
    "features.patching": {"features.confirmation"},
    "features.text_editor": {"features.confirmation"},
    "features.cedarscript": {"features.confirmation", "features.cedarscript.engine"},
}
"""The same for modules that are named in a string and imported on first use."""

LINES: Final = 400
CORE_LINES: Final = 8_500
"""Of all modules but those in ``features``."""
LONGEST_FUNCTION: Final = 60
MOST_METHODS: Final = 25

_NAMED = re.compile(
    r"(?:\.part|later|surface\.module)\(\s*\"([\w.]+)\"|_family\(surface, \"([\w.]+)\""
    r"|^_ENGINE = \"([\w.]+)\"",
    re.MULTILINE,
)


def name_of(path: Path) -> str:
    """Return the dotted name of a module below the root package."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES: Final = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def imports(name: str, *, types: bool = False) -> tuple[frozenset[str], frozenset[str]]:
    """Return the modules of this project that a module imports, and the libraries."""
    ours, theirs = set(), set()
    here = MODULES[name].relative_to(PACKAGE).parts[:-1]
    for node in _statements(ast.parse(MODULES[name].read_text("utf-8")), types=types):
        if isinstance(node, ast.Import):
            theirs |= {alias.name for alias in node.names}
        elif not node.level:
            theirs.add(node.module or "")
        else:
            base = [*here[: len(here) - node.level + 1], *(node.module or "").split(".")]
            above = ".".join(filter(None, base))
            named = {f"{above}.{alias.name}".strip(".") for alias in node.names}
            ours |= {one if one in MODULES else above for one in named}
    return frozenset(ours - {name}), frozenset(theirs - {"__future__"})


def _statements(node: ast.AST, *, types: bool) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports at any place, with or without imports for types."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test) and not types:
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        else:
            yield from _statements(child, types=types)


def inside(name: str, *, types: bool = False) -> frozenset[str]:
    return imports(name, types=types)[0]


def outside(name: str) -> set[str]:
    return {library.partition(".")[0] for library in imports(name)[1]}


def package_of(name: str) -> str:
    """Return the package of a module; each package in ``features`` counts by itself."""
    first, _, rest = name.partition(".")
    return f"{first}.{rest.partition('.')[0]}" if first == "features" and rest else first


PACKAGES: Final = {package_of(name) for name in MODULES} - {""}


def modules_of(package: str) -> list[str]:
    return [name for name in MODULES if name and package_of(name) == package]


def outside_of(package: str) -> set[str]:
    """Return the modules of other packages that a package imports, for types too."""
    found = {other for name in modules_of(package) for other in inside(name, types=True)}
    return {other for other in found if package_of(other) != package}


def users(library: str) -> set[str]:
    return {name for name in MODULES if library in outside(name)}


def test_table_names_exactly_the_packages() -> None:
    assert set(ALLOWED) == PACKAGES


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_package_imports_agree_with_the_table(package: str) -> None:
    assert outside_of(package) == ALLOWED[package]


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_late_imports_agree_with_the_table(package: str) -> None:
    found = set()
    for name in modules_of(package):
        for named in _NAMED.findall(MODULES[name].read_text("utf-8")):
            found |= {*named} - {""}

    assert found == LATE.get(package, set())
    assert found <= set(MODULES)


def test_package_imports_have_no_cycle_even_for_types() -> None:
    """Modules that a package loads by name on first use count as well."""
    graph = {
        package: {package_of(other) for other in outside_of(package) | LATE.get(package, set())}
        - {package}
        for package in PACKAGES
    }

    assert set(TopologicalSorter(graph).static_order()) == PACKAGES
    packages = list(ALLOWED)
    for package, others in graph.items():
        assert others <= set(packages[: packages.index(package)]), (
            f"{package} imports a package below it"
        )


def test_module_imports_have_no_cycle_even_for_types() -> None:
    graph = {name: inside(name, types=True) for name in MODULES}

    assert set(TopologicalSorter(graph).static_order()) == set(MODULES)


def test_cedarscript_worker_imports_only_its_own_package() -> None:
    """It is started with only its own package on its path."""
    reached, ahead = set(), ["features.cedarscript.worker"]
    while ahead:
        name = ahead.pop()
        reached.add(name)
        ahead += inside(name) - reached

    assert {package_of(name) for name in reached} == {"features.cedarscript"}
    assert "features.cedarscript.library" in reached


def test_only_the_standard_library_is_imported() -> None:
    foreign = {
        (name, library)
        for name in MODULES
        for library in outside(name) - set(sys.stdlib_module_names)
    }

    assert foreign == set()


def test_only_the_cedarscript_engine_starts_programs_and_no_module_opens_sockets() -> None:
    assert users("subprocess") == {"features.cedarscript.engine"}
    for library in ("socket", "socketserver", "ssl", "http", "asyncio", "multiprocessing"):
        assert users(library) == set()
    assert [name for name in MODULES if "urllib.request" in imports(name)[1]] == []
    starting = re.compile(r"\bos\.(system|popen|exec\w*|spawn\w*|posix_spawn\w*|fork\w*)\(")
    assert [
        name for name, path in MODULES.items() if starting.search(path.read_text("utf-8"))
    ] == []


def test_only_the_workspace_opens_client_files() -> None:
    """Only the workspace interprets paths of a client, so no other module opens them."""
    opening = re.compile(
        r"(?<![\w.])open\(|\bos\.(open|remove|unlink|rename|replace|mkdir|makedirs|rmdir)\("
        r"|\.(read|write)_(text|bytes)\("
    )
    methods = re.compile(r"def (open|close)\(|self\.(_mark|close|open)\(")
    found = set()
    for name, path in MODULES.items():
        source = path.read_text("utf-8")
        if package_of(name) != "workspace" and opening.search(methods.sub("", source)):
            found.add(name)

    assert found == {
        "__main__",  # the null device
        "operation.verbose",  # the operator's own file
        "features.cedarscript.explain",  # a table of ours
        "features.cedarscript.engine",  # the worker's empty directory
        "features.cedarscript.worker",  # the null device
    }


@pytest.mark.parametrize("name", sorted(MODULES))
def test_module_is_short_and_has_a_docstring(name: str) -> None:
    source = MODULES[name].read_text("utf-8")

    assert source.count("\n") <= LINES
    assert ast.get_docstring(ast.parse(source))


def test_core_is_small() -> None:
    core = [path for name, path in MODULES.items() if not name.startswith("features.")]

    assert sum(path.read_text("utf-8").count("\n") for path in core) < CORE_LINES


@pytest.mark.parametrize("name", sorted(MODULES))
def test_functions_and_classes_are_short(name: str) -> None:
    for node in ast.walk(ast.parse(MODULES[name].read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef):
            assert (node.end_lineno or 0) - node.lineno < LONGEST_FUNCTION, node.name
        elif isinstance(node, ast.ClassDef):
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            assert len(methods) <= MOST_METHODS, node.name


def test_import_scan_finds_known_imports() -> None:
    """The tests above could not fail if the scan found no imports."""
    assert "protocol.reader" in inside("server")
    assert "protocol.rounds" in inside("protocol.asking"), "an import inside a function is counted"
    assert "surface" not in inside("features.roots"), "an import for types is not"
    assert "surface" in inside("features.roots", types=True), "unless types are asked for"
    assert "protocol.modern" in inside("protocol.connection"), "from . import modern"
    assert "threading" in outside("protocol.reader")
