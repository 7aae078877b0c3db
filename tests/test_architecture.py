"""Who may import whom: one table, read from the sources."""

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

import mcp_touchstone
from mcp_touchstone.loader import home

PACKAGE: Final = Path(mcp_touchstone.__path__[0])

PURE: Final = {
    "revision", "framing", "session", "transcript", "clause", "scenario", "verdict", "pace",
    "reply", "cost",
}  # fmt: skip
CLIENT: Final = {"answer", "client"}
WIRE: Final = {"process", "connection"}
DRIVING: Final = {"questions", "pending", "rounds", "tasks", "subscriptions"}
FIELD: Final = {"attack.canary", "attack.denied", "attack.payload", "attack.field", "attack.reach"}
KNOWN: Final = {"needs", "dossier"}
BRIDGING: Final = {"bridge.refusals", "bridge.streams", "bridge.exchanges", "bridge.child"}

ALLOWED: Final[dict[str, set[str]]] = {
    # values and rules, without a process in sight
    "revision": set(),
    "framing": set(),
    "mistake": set(),
    "clause": {"mistake", "revision"},
    "session": {"framing"},
    "transcript": {"framing", "session"},
    "verdict": {"transcript"},
    "scenario": {"clause", "revision"},
    "matchers": {"framing"},
    "patterns": set(),
    "arguments": {"patterns"},
    "uri_template": set(),
    "timestamps": set(),
    "pace": set(),
    "patience": set(),
    "cost": set(),
    "reply": {"framing"},
    "answer": {"arguments"},
    "client_tasks": {"answer"},
    "client": {"answer", "client_tasks"},
    "results": {"clause", "floor", "verdict"},
    "tier": set(),
    "threat": {"clause", "revision", "tier"},
    "floor": {"clause", "threat", "verdict"},
    "comparison": {"floor", "revision", "threat", "verdict"},
    "toml_text": set(),
    "expansion": set(),
    "scrubber": {"revision"},
    "difference": set(),
    "schema": {"expansion", "framing"},
    "dialect": {"schema"},
    # what is drawn for properties
    "dice": {"clause", "scenario", "tier"},
    "drawn": {"arguments"},
    "strategies": {"arguments", "drawn"},
    "drawing": {"dice"},
    "excerpt": {"framing", "revision", "transcript"},
    "properties": {
        *PURE, *WIRE, "ambient", "conversation", "dice", "drawing", "excerpt", "strategies",
    },
    # the world: programs and folders; these two know no MCP
    "feed": set(),
    "turns": {"patience"},
    "process": {"feed", "framing", "mistake", "patience", "turns", "transcript"},
    "strays": {"process"},
    "repository": set(),
    "seeding": set(),
    "world": {"repository", "seeding"},
    # one server
    "needs": set(),
    "dossier": {*PURE, "arguments", "attack.bindings", "needs", "uri_template"},
    "questions": {*PURE, "client"},
    "connection": {*PURE, *CLIENT, "patience", "process"},
    "pending": {*PURE, *WIRE, "dossier"},
    "rounds": {*PURE, *WIRE, "client", "dossier", "questions"},
    "tasks": {*PURE, *WIRE, "client_tasks", "dossier", "pending"},
    "task_states": {*PURE},
    "subscriptions": {*PURE, *WIRE, "dossier", "pending"},
    "talk": {*PURE, *WIRE, *DRIVING, "client", "dossier", "matchers"},
    "conversation": {*PURE, *WIRE, "dice", "dossier", "talk"},
    "ambient": {*PURE, "process", "recon"},
    "shapes": {*PURE, "ambient", "connection", "loader", "schema"},
    "listings": {*PURE, "ambient", "dossier", "talk"},
    "served": {"talk"},
    "recon": {*PURE, *WIRE, "dossier"},
    # what has to be tried on it
    "scout": {*PURE, *WIRE, *DRIVING, "arguments", "dossier", "target"},
    "examples": {"arguments", "dossier", "scout", "uri_template"},
    "traffic": {*DRIVING, "arguments", "dossier", "examples", "scout"},
    "asking": {
        *PURE, *DRIVING, "arguments", "client", "connection", "dossier", "examples", "scout",
    },
    "learning": {
        *PURE, *KNOWN, "arguments", "process", "recon", "target", "scout", "examples", "traffic",
        "asking",
    },
    "doorway": {"process"},
    "agenda": {"dossier", "needs", "plan", "results", "scenario", "traffic"},
    "schedule": {"lane", "pace", "plan", "results", "scenario"},
    "suite": {
        *PURE, *CLIENT, *WIRE, *DRIVING, *KNOWN, "client_tasks", "matchers", "recon", "talk",
        "conversation", "ambient", "schema", "dialect", "shapes", "arguments", "uri_template",
        "listings", "served", "world", "task_states", "timestamps", "attack.bindings",
        "attack.barrage", "attack.definitions", "attack.leaks", "attack.load",
        "attack.payload", "attack.shells",
        "attack.modes", "attack.patching", "attack.sizes", "attack.uris", "attack.siege", "drawn",
        "properties",
        "attack.swapping", "attack.reach", "attack.racing", "attack.wandering", "attack.crowding",
        "attack.injecting", "attack.scripting", "attack.walking", "attack.filling",
        "attack.killing", "attack.blocking", "attack.resembling", "attack.opening",
        "attack.auditing", "attack.trickling",
        "attack.fetching",
    },
    # attacks: trees with canaries; these know no MCP
    "offline": set(),
    "attack.limits": set(),
    "attack.canary": set(),
    "attack.snapshot": set(),
    "attack.denied": set(),
    "attack.payload": {"attack.denied", "tier"},
    "attack.field": {
        "attack.canary", "attack.denied", "attack.payload", "attack.snapshot", "repository",
        "world",
    },
    "attack.reach": {"attack.field", "attack.payload"},
    # what calls do to them
    "attack.slots": {"arguments"},
    "attack.bindings": {"attack.canary", "attack.slots", "framing", "uri_template"},
    "attack.rerun": {
        *FIELD, "attack.aimer", "attack.shells", "concealed", "revision", "target",
    },
    "attack.reproduction": {
        "attack.aimer", "attack.bindings", "attack.rerun", "attack.shells", "revision",
    },
    "attack.ways": {"arguments", "attack.slots"},
    "attack.told": {"attack.bindings", "attack.slots", "attack.ways", "clause"},
    # lines, and what becomes of who gets them
    "attack.shells": {"attack.payload"},
    # what it says of itself, and of what it should not
    "attack.leaks": {
        *PURE, *WIRE, *FIELD, "arguments", "attack.barrage", "attack.bindings", "attack.siege",
        "attack.tally", "attack.ways", "dossier", "repository", "matchers",
    },
    "attack.wording": set(),
    "attack.definitions": {
        *PURE, *FIELD, "arguments", "attack.binder", "attack.bindings", "attack.siege",
        "attack.snapshot", "attack.ways", "attack.wording", "dossier", "repository", "talk",
    },
    "attack.gauge": set(),
    "attack.barrage": {
        *PURE, *WIRE, *FIELD, "attack.bindings", "attack.reproduction", "attack.shells",
        "attack.siege", "attack.slots", "attack.tally", "talk",
    },
    "attack.load": {
        *PURE, *WIRE, "attack.barrage", "attack.gauge", "attack.shells", "attack.siege", "talk",
    },
    "attack.aimer": {*FIELD, "attack.bindings", "attack.slots"},
    "attack.tally": {*PURE, *WIRE, *FIELD, "attack.aimer", "attack.bindings"},
    "attack.binder": {
        *PURE, *WIRE, *FIELD, "arguments", "attack.bindings", "attack.slots", "attack.told",
        "attack.ways", "dossier", "repository",
    },
    "attack.siege": {
        *PURE, *WIRE, *FIELD, "attack.bindings", "attack.binder", "attack.reproduction",
        "attack.aimer", "attack.rerun", "attack.slots", "attack.snapshot", "attack.tally",
        "conversation", "talk", "target", "terms", "threat",
    },
    "attack.modes": {
        *PURE, *FIELD, "attack.aimer", "attack.binder", "attack.bindings", "attack.siege",
        "attack.slots", "attack.snapshot", "talk",
    },
    "attack.sizes": {
        *PURE, *FIELD, "attack.aimer", "attack.bindings", "attack.siege", "attack.slots", "talk",
    },
    "attack.uris": {*FIELD, "attack.aimer", "attack.bindings", "attack.siege"},
    "attack.newlines": set(),
    "attack.patching": {
        *PURE, *FIELD, "attack.aimer", "attack.bindings", "attack.newlines", "attack.siege",
        "attack.slots", "attack.snapshot", "talk",
    },
    "attack.injecting": {
        *FIELD, "arguments", "attack.aimer", "attack.bindings", "attack.siege", "attack.slots",
        "attack.tally", "attack.ways", "reply",
    },
    "attack.scripting": {
        *FIELD, "attack.aimer", "attack.bindings", "attack.siege", "attack.slots", "reply",
    },
    "attack.walking": {
        *FIELD, "arguments", "attack.aimer", "attack.bindings", "attack.siege", "attack.slots",
    },
    "attack.auditing": {
        "attack.bindings", "attack.siege", "attack.snapshot", "process", "reply", "talk",
        "transcript",
    },
    "attack.trickling": {"attack.barrage", "framing", "process", "turns"},
    "attack.lookout": set(),
    "attack.listener": {"process"},
    "attack.fetching": {
        "attack.aimer", "attack.bindings", "attack.listener", "attack.payload", "attack.siege",
        "attack.tally", "reply", "talk",
    },
    "attack.opening": {
        "attack.aimer", "attack.bindings", "attack.lookout", "attack.siege", "attack.tally",
        "reply", "talk",
    },
    "attack.filling": {"attack.bindings", "attack.limits", "attack.siege", "reply", "talk"},
    "attack.killing": {
        "attack.bindings", "attack.field", "attack.reproduction", "attack.siege", "attack.slots",
        "clause", "process", "reply",
    },
    "attack.blocking": {"attack.field", "attack.reproduction", "attack.siege", "talk"},
    "attack.resembling": {"attack.bindings", "attack.payload", "attack.siege", "talk"},
    "attack.crowding": {"attack.bindings", "attack.siege", "reply", "talk"},
    "attack.racing": {
        *FIELD, "attack.aimer", "attack.bindings", "attack.siege", "attack.tally", "talk",
    },
    "attack.wandering": {*FIELD, "attack.aimer", "attack.bindings", "attack.siege", "tier"},
    "attack.swapping": {*FIELD, "attack.aimer", "attack.bindings", "attack.siege"},
    "attack.grounds": {
        *PURE, *WIRE, *FIELD, "arguments", "attack.binder", "attack.bindings", "attack.limits",
        "attack.siege",
        "dossier", "loader", "pool", "results", "target", "threat", *CLIENT,
    },
    # one run
    "loader": {"clause", "scenario", "threat"},
    "terms": {"attack.denied", "clause", "threat"},
    "target": {"attack.denied", "attack.told", "loader", "terms"},
    "pool": {*PURE, *WIRE, "client", "doorway", "recon", "ambient", "strays", "target", "world"},
    "plan": {*PURE, "floor", "mistake", "needs", "results", "threat", "tier"},
    "baseline": {*PURE, "mistake", "plan", "results", "threat", "toml_text"},
    "config": {"clause", "mistake"},
    "sources": {"clause", "config"},
    "config_file": {"baseline", "config", "sources"},
    "init": {*PURE, "arguments", "dossier", "target", "toml_text", "world"},
    "baseline_file": {"baseline", "clause", "plan", "results", "scenario"},
    "options": {
        "attack.told", "baseline", "baseline_file", "clause", "command_line", "config",
        "config_file", "floor", "loader", "offline", "plan", "seeding", "target", "terms", "tier",
    },
    "lane": {
        *PURE, *WIRE, "attack.grounds", "client", "recon", "conversation", "dice",
        "doorway", "plan", "pool", "results",
    },
    "gate": {
        *PURE, *WIRE, *KNOWN, "recon", "ambient", "shapes", "target", "world", "pool", "results",
        "plan", "lane", "dice", "arguments", "attack.grounds", "scout", "learning", "strays",
        "agenda", "schedule", "schema",
    },
    "tour": {*PURE, *WIRE, "arguments", "dossier", "scrubber", "target"},
    "concealed": set(),
    "golden": {
        "concealed",
        "revision", "pace", "process", "connection", "dossier", "target", "world", "pool", "plan",
        "gate", "scrubber", "difference", "tour", "shelf",
    },
    "shelf": {"revision", "plan", "scrubber", "tour"},
    "interop": {
        "revision", "framing", "transcript", "process", "strays", "dossier", "target", "world",
        "plan", "gate",
    },
    # a program of its own: it runs under the interpreter that has the official client
    "interop_client": set(),
    "live": {"revision", *WIRE, "recon", "target", "world", "pool"},
    # a server in use, for scripts and for tests of others
    "using": {*PURE, *WIRE, "live", "target"},
    # a stdio server over HTTP; judges nothing
    "bridge.refusals": {"framing"},
    "bridge.headers": {"framing", "revision", "bridge.refusals"},
    "bridge.parameters": {"framing", "bridge.headers"},
    "bridge.streams": {"process"},
    "bridge.exchanges": {"framing", "bridge.streams"},
    "bridge.child": {"framing", "process", "strays", "report.text"},
    "bridge.sessions": {"framing", "process", *BRIDGING},
    "bridge.stateless": {
        "framing", "process", "revision", *BRIDGING, "bridge.headers", "bridge.parameters",
    },
    "bridge.responses": {"process", *BRIDGING, "bridge.headers"},
    "bridge.endpoint": {
        "framing", *BRIDGING, "bridge.headers", "bridge.responses", "bridge.sessions",
    },
    "bridge.listener": {"bridge.child", "bridge.endpoint", "bridge.sessions", "bridge.stateless"},
    # what people see; a report runs nothing
    "report.text": {"concealed", "revision"},
    "report.digest": {"clause", "threat", "tier", "verdict", "results"},
    "report.save": {"connection", "verdict", "report.text"},
    "report.comparison": {"comparison", "report.text"},
    "report.recorded": {"mistake", "report.machine"},
    "report.badge": {"results", "verdict", "report.digest", "report.standing", "report.text"},
    "report.junit": {"results", "verdict", "report.digest", "report.terminal", "report.text"},
    "report.markdown": {
        "results", "verdict", "report.comparison", "report.digest", "report.standing",
        "report.text",
    },
    "report.sarif": {
        "clause", "comparison", "threat", "results", "verdict", "report.digest", "report.text",
    },
    "report.html": {
        "revision", "loader", "threat", "results", "verdict", "report.comparison",
        "report.digest", "report.standing", "report.text",
    },
    "report.kinds": {
        "clause", "results", "report.badge", "report.html", "report.junit", "report.machine",
        "report.markdown", "report.recorded", "report.sarif", "report.save", "report.text",
    },
    "report.standing": {
        "results", "verdict", "report.comparison", "report.digest", "report.text",
    },
    "report.terminal": {
        "revision", "clause", "threat", "verdict", "recon", "results", "report.text",
        "cost", "report.digest", "report.progress", "report.standing",
    },
    "report.progress": set(),
    "report.items": {"report.digest", "report.terminal", "results", "scenario", "verdict"},
    "report.machine": {
        "revision", "clause", "threat", "verdict", "results", "report.text", "report.digest",
        "cost", "report.comparison",
    },
    "report.survey": {"attack.bindings", "revision", "framing", "needs", "dossier", "report.text"},
    "report.coverage": {"revision", "clause", "scenario", "report.text"},
    "report.interop": {"interop", "report.text"},
    "report.golden": {"revision", "difference", "tour", "golden", "report.text"},
    "report.catalogue": {
        "revision", "clause", "loader", "scenario", "threat", "tier", "report.text",
    },
    # the doors; nothing imports these but each other
    "plugin": {"live", "using", "pytest_suite", "pytest_jobs"},
    "pytest_sharing": set(),
    "pytest_jobs": {
        "baseline", "baseline_file", "clause", "command_line", "config", "config_file", "gate",
        "loader", "options", "scenario", "target",
    },
    "pytest_suite": {
        "gate", "loader", "process", "pytest_jobs", "pytest_sharing", "report", "scenario",
    },
    "command_line": {"attack.told", "revision", "terms", "threat", "tier"},
    "__main__": {"cli"},
    "cli": {
        "command_line", "options", "revision", "clause", "strays", "loader", "gate", "world",
        "golden", "interop", "report", "bridge", "comparison", "config_file", "init", "mistake",
    },
}  # fmt: skip
"""Module -> modules of the package it may import, at its top or inside a function. ``report``
stands for every module below it; ``__init__`` is open to all; imports for types are not counted."""

IMPURE: Final[dict[str, set[str]]] = {
    "subprocess": {"process", "offline"},
    "psutil": {"attack.gauge", "process", "strays", "pytest_sharing"},
    "signal": {"process", "cli"},
    "tempfile": {"world", "pytest_sharing"},
    "shutil": {"pytest_suite", "bridge.child"},
    "time": {"process", "pytest_sharing"},
    "socket": {"attack.listener", "bridge.responses"},
    "socketserver": {"bridge.listener"},
    "http": {"bridge.responses"},
    "select": {"bridge.responses", "feed", "process"},
    "multiprocessing": set(),
    "asyncio": {"interop_client"},
    "hypothesis": {"drawing", "strategies"},
}
"""Library -> the only modules that may touch it: ``process``, ``world``, the bridge, the doors."""

DOORS: Final = {"plugin", "pytest_suite", "pytest_jobs", "pytest_sharing", "cli", "__main__"}
PROGRAMS: Final = {"interop_client", "__main__"}


def imports(path: Path) -> Iterator[str]:
    """Give the names a file imports, those for types only left out."""
    yield from _walk(ast.parse(path.read_text(encoding="utf-8")))


def _walk(node: ast.AST) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            base = "." * child.level + (child.module or "")
            yield from (f"{base}.{alias.name}" for alias in child.names)
        else:
            yield from _walk(child)


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")


def name_in_package(path: Path) -> str:
    return name_of(path) if path.is_relative_to(PACKAGE) else ""


MODULES: Final = {
    name_of(path): path
    for path in PACKAGE.rglob("*.py")
    if path.name != "__init__.py" and "_suites" not in path.parts
}


def inside(name: str) -> set[str]:
    """Give the modules of the package that a module imports."""
    found = set()
    for imported in imports(MODULES[name]):
        dotted = imported.removeprefix("mcp_touchstone.")
        if dotted != imported:
            while dotted and dotted not in MODULES:
                dotted = dotted.rpartition(".")[0]
            found.add(dotted)
    return found - {""}


def outside(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)}


def files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((home() / folder).rglob("*.py"))]


# --- inside the package


def test_the_table_names_every_module_and_no_other() -> None:
    assert set(MODULES) == set(ALLOWED)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_module_imports_only_what_the_table_allows(name: str) -> None:
    allowed = ALLOWED.get(name, set())
    found = {m for m in inside(name) if m not in allowed and m.partition(".")[0] not in allowed}

    assert found == set()


def test_no_module_imports_itself_by_a_detour() -> None:
    graph = {name: inside(name) for name in MODULES}

    order = list(TopologicalSorter(graph).static_order())

    assert set(order) == set(MODULES)


def test_nothing_imports_the_doors_but_the_doors() -> None:
    for name in MODULES:
        assert name in DOORS or not inside(name) & DOORS, name


def test_nothing_imports_a_program_of_its_own() -> None:
    assert [name for name in MODULES if inside(name) & PROGRAMS] == []


def test_only_suite_files_use_the_vocabulary_made_for_them() -> None:
    assert [name for name in MODULES if "suite" in inside(name)] == []


@pytest.mark.parametrize("library", sorted(IMPURE))
def test_the_world_is_touched_in_few_places(library: str) -> None:
    users = {name for name, path in MODULES.items() if library in outside(path)}

    assert users <= IMPURE[library]


def test_the_table_is_read_from_real_imports() -> None:
    """A test that finds nothing to object to must be able to find something."""
    assert "process" in inside("connection")
    assert "report.text" in inside("report.save")
    assert "connection" not in inside("scenario"), "an import for types is not counted"
    assert "loader" in inside("target"), "an import inside a function is"


# --- around it


def test_suite_files_import_the_vocabulary_and_the_standard_library() -> None:
    for path in files("conformance", "security_suite"):
        ours = {name for name in imports(path) if name.startswith(("mcp_touchstone", "."))}
        assert all(name.startswith("mcp_touchstone.suite.") for name in ours), path
        foreign = {"subprocess", "socket", "psutil", "signal", "time", "threading", "os"}
        assert outside(path) & foreign == set(), path
        assert not outside(path) & {"conformance", "reference_server", "tests"}, path


def test_suite_folders_are_no_packages() -> None:
    """With an ``__init__.py`` they would collide with a user's own ``tests/conformance``."""
    assert [p for p in files("conformance", "security_suite") if p.name == "__init__.py"] == []


def test_the_reference_server_shares_nothing_with_its_judge() -> None:
    for path in files("reference_server"):
        names = outside(path)
        assert not names & {"mcp_touchstone", "conformance", "tests", "pytest"}, path
        assert "reference_server" not in names, f"{path}: it has two names; import relatively"


def test_nothing_of_ours_imports_the_official_sdk() -> None:
    """It would clash with the version the user's own server pins."""
    for path in files("src", "conformance", "security_suite", "reference_server"):
        assert "mcp" not in outside(path), path
        if name_in_package(path) not in PROGRAMS:
            assert "importlib.import_module(" not in path.read_text(encoding="utf-8"), path


def test_nothing_reads_beside_the_checkout() -> None:
    beside = re.compile(r"\.\./shared|/work" + r"/|\bseeds/")
    for path in files(
        "src", "conformance", "security_suite", "reference_server", "tests", "benchmarks"
    ):
        if path != Path(__file__):
            assert not beside.search(path.read_text(encoding="utf-8")), path


def test_the_harness_does_not_import_its_tests() -> None:
    for path in files("src"):
        assert not outside(path) & {"tests", "conformance", "reference_server"}, path
