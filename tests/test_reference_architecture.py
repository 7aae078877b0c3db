"""Which room of the reference server may import which: one table, read from the sources."""

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
    # what may be read and written; knows no protocol but the shape of an error
    "workspace": {"protocol.errors"},
    # lines, messages, requests, answers. A call can ask its client and tell it of progress; who
    # this server is, and how a stranger's word is shown, are two pure modules of the operator's
    "protocol": {
        *("client.asking", "client.progress", "client.required"),
        *("operation.identity", "operation.printable"),
    },
    # our side of the talk with the client: questions, confirmations, roots, log messages
    "client": {
        *("protocol.errors", "protocol.framing", "protocol.modern", "protocol.revisions"),
        *("protocol.workers", "operation.identity", "operation.printable"),
    },
    # the tools, and how they are listed, called, and called as tasks
    "tools": {
        *("protocol.errors", "protocol.framing", "protocol.revisions", "protocol.workers"),
        *("workspace.entries", "workspace.refusals", "content.pages"),
    },
    # resources, prompts, completions, subscriptions
    "content": {
        *("protocol.errors", "protocol.framing", "protocol.revisions"),
        *("workspace.refusals", "tools.editor", "tools.text"),
    },
    # one family of tools that has a library, and a process, of its own
    "cedarscript": {
        *("protocol.errors", "protocol.revisions", "workspace.refusals"),
        *("tools.schemas", "tools.text", "tools.toolbox"),
    },
    # what the operator gives and gets: options, logs, hooks
    "operation": {"protocol.errors", "settings"},
    # the rooms put together
    "settings": set(),
    "surface": {"protocol.methods", "tools.toolbox"},
    "features": {"protocol.legacy", "protocol.revisions", "tools.toolbox"},
    "server": {
        *("settings", "surface", "features", "operation.hooks", "operation.log"),
        *("protocol.connection", "protocol.reader", "protocol.source"),
        *("protocol.wire", "protocol.workers"),
    },
    "__main__": {"server", "operation.identity", "operation.options", "protocol.errors"},
}
"""Room, or module of the top -> modules outside of it that it imports, at any place; imports for
types are not counted. The table is exact in both directions."""

LATE: Final[dict[str, set[str]]] = {
    "features": {
        *("tools.files", "tools.patches", "tools.editor", "cedarscript", "tools.digest"),
        *("tools.tasks", "content.resources", "content.subscriptions", "content.prompts"),
        *("content.completion", "client.client_log", "client.roots"),
    },
    "surface": {"workspace"},
    "protocol": {"client.client_log"},
    "tools": {"client.confirm"},
    "content": {"content.prompts", "content.resources", "content.subscriptions"},
    "cedarscript": {"client.confirm", "cedarscript.engine"},
}
"""The same for parts that are named in a text and imported when they are first needed."""

LINES: Final = 350

_NAMED = re.compile(
    r"(?:\.part|later|surface\.module)\(\s*\"([\w.]+)\""
    r"|^_ENGINE = \"([\w.]+)\"|^FAMILIES = \(([^)]*)\)",
    re.MULTILINE,
)


def name_of(path: Path) -> str:
    """Give the dotted name of a module below the package; a package goes by its own."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES: Final = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}
ROOMS: Final = {name.partition(".")[0] for name in MODULES} - {""}


@cache
def imports(name: str) -> tuple[frozenset[str], frozenset[str]]:
    """Give the modules of the package that a module imports, and the libraries."""
    ours, theirs = set(), set()
    here = MODULES[name].relative_to(PACKAGE).parts[:-1]
    for node in _statements(ast.parse(MODULES[name].read_text("utf-8"))):
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


def _statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Give the imports at any place, those for types left out."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        else:
            yield from _statements(child)


def inside(name: str) -> frozenset[str]:
    return imports(name)[0]


def outside(name: str) -> set[str]:
    return {library.partition(".")[0] for library in imports(name)[1]}


def room_of(name: str) -> str:
    return name.partition(".")[0]


def of_room(room: str) -> list[str]:
    return [name for name in MODULES if name and room_of(name) == room]


def users(library: str) -> set[str]:
    return {name for name in MODULES if library in outside(name)}


# --- who imports whom


def test_the_table_names_every_room_and_no_other() -> None:
    assert set(ALLOWED) == ROOMS


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_a_room_imports_what_the_table_says(room: str) -> None:
    found = {other for name in of_room(room) for other in inside(name) if room_of(other) != room}

    assert found == ALLOWED[room]


@pytest.mark.parametrize("room", sorted(ALLOWED))
def test_parts_that_come_late_are_in_the_table_too(room: str) -> None:
    found = set()
    for name in of_room(room):
        for one, engine, families in _NAMED.findall(MODULES[name].read_text("utf-8")):
            found |= {one, engine, *re.findall(r"\"([\w.]+)\"", families)} - {""}

    assert found == LATE.get(room, set())
    assert found <= set(MODULES)


def test_no_module_imports_itself_by_a_detour() -> None:
    order = list(TopologicalSorter({name: inside(name) for name in MODULES}).static_order())

    assert set(order) == set(MODULES)


def test_the_worker_of_cedarscript_knows_no_protocol() -> None:
    """It is started with nothing of this server on its path but its own room."""
    reached, ahead = set(), ["cedarscript.worker"]
    while ahead:
        name = ahead.pop()
        reached.add(name)
        ahead += inside(name) - reached

    assert {room_of(name) for name in reached} == {"cedarscript"}
    assert "cedarscript.library" in reached


# --- what is touched


def test_nothing_but_the_standard_library_is_imported() -> None:
    foreign = {
        (name, library)
        for name in MODULES
        for library in outside(name) - set(sys.stdlib_module_names)
    }

    assert foreign == set()


def test_programs_are_started_in_one_place_and_sockets_opened_in_none() -> None:
    assert users("subprocess") == {"cedarscript.engine"}
    for library in ("socket", "socketserver", "ssl", "http", "asyncio", "multiprocessing"):
        assert users(library) == set()
    assert [name for name in MODULES if "urllib.request" in imports(name)[1]] == []
    starting = re.compile(r"\bos\.(system|popen|exec\w*|spawn\w*|posix_spawn\w*|fork\w*)\(")
    assert [
        name for name, path in MODULES.items() if starting.search(path.read_text("utf-8"))
    ] == []


def test_files_are_reached_through_the_workspace() -> None:
    """What a client says names a file there and nowhere else, so nothing else opens one by name."""
    opening = re.compile(
        r"(?<![\w.])open\(|\bos\.(open|remove|unlink|rename|replace|mkdir|makedirs|rmdir)\("
        r"|\.(read|write)_(text|bytes)\("
    )
    methods = re.compile(r"def (open|close)\(|self\.(_mark|close|open)\(")
    found = set()
    for name, path in MODULES.items():
        source = path.read_text("utf-8")
        if room_of(name) != "workspace" and opening.search(methods.sub("", source)):
            found.add(name)

    assert found == {
        "__main__",  # the null device
        "operation.verbose",  # the operator's own file
        "cedarscript.explain",  # a table of ours
        "cedarscript.engine",  # the worker's empty directory
        "cedarscript.worker",  # the null device
    }


# --- size


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_can_be_read_in_one_sitting(name: str) -> None:
    source = MODULES[name].read_text("utf-8")

    assert source.count("\n") <= LINES
    assert ast.get_docstring(ast.parse(source))


def test_the_table_is_read_from_real_imports() -> None:
    """A test that finds nothing to object to must be able to find something."""
    assert "protocol.reader" in inside("server")
    assert "client.rounds" in inside("client.asking"), "an import inside a function is counted"
    assert "surface" not in inside("client.roots"), "an import for types is not"
    assert "protocol.legacy" in inside("protocol.connection"), "from . import legacy"
    assert "threading" in outside("protocol.reader")
