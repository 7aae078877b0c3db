"""The imports between packages equal one table, in both directions."""

import ast
import importlib
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import pytest

import mcp_touchstone
from mcp_touchstone.catalog.loader import SECURITY, home, load

PACKAGE: Final = Path(mcp_touchstone.__path__[0])

ALLOWED: Final[dict[str, set[str]]] = {
    "version": set(),
    "catalog": set(),
    "wire": set(),
    "runtime": {"catalog", "wire"},
    "samples": set(),
    "advisories": {"catalog", "runtime"},
    "sandbox": {"catalog", "runtime"},
    "http_server": {"catalog", "runtime", "wire"},
    "issuer": {"http_server", "wire"},
    "transport": {"catalog", "wire", "sandbox"},
    "parts": {"catalog", "http_server", "runtime", "transport", "wire"},
    "bindings": {"catalog", "wire", "samples"},
    "connection": {
        "catalog",
        "runtime",
        "wire",
        "samples",
        "http_server",
        "transport",
        "bindings",
    },
    "target": {"catalog", "runtime", "wire", "issuer", "bindings", "transport", "sandbox"},
    "discovery": {
        "advisories",
        "catalog",
        "runtime",
        "wire",
        "samples",
        "transport",
        "connection",
        "target",
        "sandbox",
    },
    "profiles": {"catalog", "connection"},
    "results": {
        "advisories",
        "bindings",
        "catalog",
        "runtime",
        "wire",
        "connection",
        "target",
        "discovery",
        "profiles",
        "samples",
    },
    "judging": {
        "catalog",
        "runtime",
        "wire",
        "transport",
        "parts",
        "connection",
        "discovery",
        "results",
    },
    "properties": {"catalog", "wire", "samples", "transport", "connection", "judging"},
    "security": {
        "catalog",
        "http_server",
        "runtime",
        "wire",
        "samples",
        "transport",
        "bindings",
        "connection",
        "target",
        "judging",
        "results",
        "sandbox",
    },
    "engine": {
        "catalog",
        "runtime",
        "wire",
        "samples",
        "transport",
        "bindings",
        "connection",
        "target",
        "discovery",
        "results",
        "judging",
        "security",
        "sandbox",
        "profiles",
    },
    "suite": {
        "catalog",
        "runtime",
        "wire",
        "samples",
        "transport",
        "connection",
        "discovery",
        "judging",
        "properties",
        "parts",
    },
    "api": {
        "catalog",
        "runtime",
        "wire",
        "transport",
        "connection",
        "target",
        "discovery",
        "engine",
    },
    "gate": {"catalog", "runtime", "results", "engine"},
    "golden": {
        "catalog",
        "discovery",
        "runtime",
        "wire",
        "samples",
        "transport",
        "bindings",
        "connection",
        "target",
        "results",
        "engine",
    },
    "__init__": {"api"},
    "config": {
        "catalog",
        "runtime",
        "samples",
        "transport",
        "connection",
        "target",
        "results",
        "judging",
        "engine",
        "gate",
        "sandbox",
        "profiles",
        "parts",
    },
    "report": {
        "advisories",
        "catalog",
        "runtime",
        "wire",
        "connection",
        "discovery",
        "results",
        "gate",
        "config",
        "golden",
        "profiles",
    },
    "bridge": {"catalog", "runtime", "wire", "http_server", "transport", "report"},
    "tap": {
        "advisories",
        "discovery",
        "catalog",
        "http_server",
        "runtime",
        "wire",
        "transport",
        "connection",
        "target",
        "results",
        "judging",
        "engine",
        "report",
        "bridge",
        "issuer",
        "config",
        "sandbox",
        "parts",
    },
    "gateway": {
        "catalog",
        "runtime",
        "wire",
        "transport",
        "parts",
        "bridge",
        "connection",
        "target",
        "discovery",
        "results",
        "judging",
        "engine",
        "tap",
        "config",
    },
    "pytest_plugin": {
        "catalog",
        "runtime",
        "transport",
        "target",
        "engine",
        "api",
        "gate",
        "config",
        "report",
        "golden",
        "results",
        "tap",
        "gateway",
    },
    "server": {"catalog", "bridge"},
    "fleet": {"catalog", "runtime", "transport", "config", "sandbox", "target", "results"},
    "commands": {
        "advisories",
        "catalog",
        "runtime",
        "transport",
        "connection",
        "discovery",
        "target",
        "results",
        "engine",
        "gate",
        "golden",
        "config",
        "report",
        "bridge",
        "fleet",
        "sandbox",
        "tap",
        "gateway",
        "parts",
    },
    "cli": {"catalog", "runtime", "transport", "config", "commands", "server"},
    "__main__": {"cli"},
}
"""Package or top module -> what it imports: at the top, inside a function or for types only.
Each row names earlier rows only, so there is no cycle. ``version`` may be imported by all."""

IMPURE: Final[dict[str, set[str]]] = {
    "subprocess": {
        "fleet.child",
        "transport.family",
        "transport.pipes",
        "transport.process",
        "sandbox.sandbox",
        "transport.tokens",
        "runtime.no_network",
        "parts.stepper",
        "tap.relay",
        "sandbox.init.keep",
    },
    "psutil": {"security.resource_usage", "transport.family", "transport.orphans"},
    "signal": {
        "bridge.listener",
        "fleet.child",
        "transport.family",
        "transport.process",
        "transport.orphans",
        "sandbox.init.common",
        "sandbox.init.inside",
        "sandbox.init.outside",
        "runtime.interrupts",
        "commands.fleet",
        "server",
        "tap.stdio",
        "tap.relay",
        "sandbox.init.keep",
        "tap.stand_in",
    },
    "tempfile": {
        "fleet.child",
        "fleet.judge",
        "fleet.report",
        "runtime.scratch",
        "pytest_plugin.xdist",
    },
    "shutil": {
        "config.resolve",
        "runtime.own_file",
        "pytest_plugin.collect",
        "bridge.child",
        "fleet.containers",
        "fleet.install",
        "fleet.judge",
        "sandbox.sandbox",
        "sandbox.init.mounts",
    },
    "time": {
        "http_server.reading",
        "parts.stepper",
        "runtime.disk_limit",
        "sandbox.init.keep",
        "transport.process",
        "transport.family",
        "tap.faults",
        "commands.sides",
    },
    "socket": {
        "connection.checked_http",
        "security.http_caller",
        "security.http_listener",
        "security.name_server",
        "http_server.reading",
        "http_server.responses",
        "bridge.listener",
        "http_server.server",
        "gateway.http_upstream",
        "tap.proxy",
        "transport.http_endpoint",
        "transport.http_exchange",
        "transport.process",
        "sandbox.sandbox",
        "sandbox.init.network",
        "issuer.server",
        "parts.canary",
        "parts.part",
        "tap.client_process",
        "tap.guard",
        "tap.http_stage",
        "tap.stage",
        "tap.stand_in",
        "tap.stdio",
    },
    "ssl": {"connection.checked_http", "transport.http_endpoint", "transport.http_exchange"},
    "h11": {"transport.http_exchange"},
    "socketserver": {"http_server.server", "security.http_listener"},
    "http": {
        "tap.guard",
        "tap.http_stage",
        "connection.checked_http",
        "http_server.responses",
    },
    "select": {
        "http_server.responses",
        "transport.http_exchange",
        "transport.process",
        "transport.stdin_writer",
        "tap.stand_in",
        "tap.stdio",
        "tap.relay",
    },
    "multiprocessing": set(),
    "asyncio": set(),
    "hypothesis": {"properties.hypothesis_driver", "properties.strategies"},
}
"""Library -> the modules that import it."""

VOCABULARY: Final = {
    "conformance/gateways": "gateway.suite",
    "conformance": "suite",
    "security_suite": "security.suite",
}
"""Suite folder -> the one module of the package that its files import, apart from folders above."""

ENTRY_POINTS: Final = {"cli", "__main__", "pytest_plugin"}
PROGRAMS: Final = {"__main__"}


@cache
def imports(path: Path) -> tuple[str, ...]:
    """List the names a file imports, those for types included."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            found += (f"{base}.{alias.name}" for alias in node.names)
    return tuple(found)


def name_of(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".")


def name_in_package(path: Path) -> str:
    return name_of(path) if path.is_relative_to(PACKAGE) else ""


MODULES: Final = {
    name_of(path): path
    for path in PACKAGE.rglob("*.py")
    if "_suites" not in path.parts and (path.parent == PACKAGE or path.name != "__init__.py")
}


def imported_modules(name: str) -> set[str]:
    """List the modules of the package that a module imports."""
    found = set()
    for imported in imports(MODULES[name]):
        dotted = imported.removeprefix("mcp_touchstone.")
        if dotted != imported:
            while dotted and dotted not in MODULES:
                dotted = dotted.rpartition(".")[0]
            found.add(dotted)
    return found - {"", "version"}


def package_of(name: str) -> str:
    return name.partition(".")[0]


def imported_packages(package: str) -> set[str]:
    found = {
        package_of(imported)
        for name in MODULES
        if package_of(name) == package
        for imported in imported_modules(name)
    }
    return found - {package}


def outside(path: Path) -> set[str]:
    return {name.partition(".")[0] for name in imports(path)}


def files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((home() / folder).rglob("*.py"))]


def test_top_level_modules_are_entry_points_only() -> None:
    top = {name for name in MODULES if "." not in name}

    assert top == {"__init__", "__main__", "cli", "server", "suite", "version"}


def test_table_names_every_package() -> None:
    assert {package_of(name) for name in MODULES} == set(ALLOWED)


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_package_imports_equal_the_table(package: str) -> None:
    assert imported_packages(package) == ALLOWED[package]


def test_table_names_only_earlier_rows() -> None:
    earlier: set[str] = set()
    for package, allowed in ALLOWED.items():
        assert allowed <= earlier, package
        earlier.add(package)


def test_imports_are_acyclic() -> None:
    graph = {name: imported_modules(name) for name in MODULES}

    order = list(TopologicalSorter(graph).static_order())

    assert set(order) == set(MODULES)


def test_entry_points_are_not_imported() -> None:
    for package, allowed in ALLOWED.items():
        assert package == "__main__" or not allowed & ENTRY_POINTS, package


def test_programs_are_not_imported() -> None:
    assert [name for name in MODULES if imported_modules(name) & PROGRAMS] == []


def test_only_suite_files_import_the_suite_vocabulary() -> None:
    assert [package for package, allowed in ALLOWED.items() if "suite" in allowed] == []
    others = {"security.suite", "gateway.suite"}
    assert [name for name in MODULES if others & imported_modules(name)] == []


@pytest.mark.parametrize("library", sorted(IMPURE))
def test_library_is_imported_in_the_named_modules_only(library: str) -> None:
    users = {name for name, path in MODULES.items() if library in outside(path)}

    assert users == IMPURE[library]


def test_wire_leaves_threads_to_others_except_in_the_cache_of_schemas() -> None:
    wire = {name: path for name, path in MODULES.items() if name.startswith("wire.")}

    assert [name for name, path in wire.items() if "threading" in outside(path)] == ["wire.schema"]


def test_table_is_read_from_real_imports() -> None:
    assert "transport.process" in imported_modules("connection.connection")
    assert "connection.connection" in imported_modules("results.run"), "an import for types counts"
    assert "catalog.loader" in imported_modules("target.target"), "one inside a function counts"


PRINTERS: Final[dict[str, set[str]]] = {
    "runtime.console": {"print", "sys.stdout", "sys.stderr"},
    "report.sheet": {"console.print"},
    "pytest_plugin.collect": {"terminalreporter.section", "terminalreporter.write"},
    "cli": {"sys.stdout", "sys.stderr"},
    "server": {"sys.stdout"},
    "parts.stepper": {"sys.stderr"},
}
"""Module -> what it prints with. The first three escape each line. ``cli`` flushes and closes the
streams, and ``server`` writes the help of our own server. The standard error of ``parts.stepper``
is that of a client, which is escaped when it is shown."""

PRINTING: Final = re.compile(
    r"print|pprint|sys\.(__)?std(out|err)(__)?|(self\.)?_?console\.(print|log|out)"
    r"|terminalreporter\.(section|write|write_line|write_sep|line)"
)


def printers(path: Path) -> set[str]:
    """List the names in a file that print, or are the streams of the process."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    names = {ast.unparse(node) for node in nodes if isinstance(node, ast.Name | ast.Attribute)}
    return {name.removeprefix("self.") for name in names if PRINTING.fullmatch(name)}


def test_one_module_prints_and_escapes() -> None:
    """Words of servers reach a terminal escaped, because nothing else prints."""
    found = {name: printers(path) for name, path in MODULES.items()}

    assert {name: what for name, what in found.items() if what} == PRINTERS


def suite_files(folder: str) -> list[Path]:
    """List the files of a suite folder, but for those of a folder in it with its own vocabulary."""
    own = {path for other in VOCABULARY if other.startswith(f"{folder}/") for path in files(other)}
    return [path for path in files(folder) if path not in own]


@pytest.mark.parametrize(("folder", "vocabulary"), VOCABULARY.items())
def test_suite_files_import_the_vocabulary_and_the_standard_library(
    folder: str, vocabulary: str
) -> None:
    for path in suite_files(folder):
        ours = {name for name in imports(path) if name.startswith(("mcp_touchstone", "."))}
        assert all(name.startswith(f"mcp_touchstone.{vocabulary}.") for name in ours), path
        foreign = {"subprocess", "socket", "psutil", "signal", "time", "threading", "os", "ctypes"}
        assert outside(path) & foreign == set(), path
        assert not outside(path) & {"conformance", "reference_server", "tests"}, path


@pytest.mark.parametrize("folder", VOCABULARY)
def test_vocabulary_holds_only_names_that_suite_files_import(folder: str) -> None:
    vocabulary = f"mcp_touchstone.{VOCABULARY[folder]}"
    names = {name for path in suite_files(folder) for name in imports(path)}
    used = {name.removeprefix(f"{vocabulary}.") for name in names}

    assert set(importlib.import_module(vocabulary).__all__) <= used


def test_attack_is_in_the_file_of_its_threat_chapter() -> None:
    registry = load(SECURITY)

    for scenario in registry.scenarios:
        for threat in scenario.clauses:
            assert Path(scenario.path).with_suffix("").name == threat.chapter, threat.id


def test_suite_folders_are_not_packages() -> None:
    """With an ``__init__.py`` they would collide with a user's own ``tests/conformance``."""
    assert [p for p in files("conformance", "security_suite") if p.name == "__init__.py"] == []


def test_reference_server_imports_nothing_of_the_harness() -> None:
    for path in files("reference_server"):
        names = outside(path)
        assert not names & {"mcp_touchstone", "conformance", "tests", "pytest"}, path
        assert "reference_server" not in names, f"{path}: it has two names; import relatively"


def test_official_sdk_is_not_imported() -> None:
    """It would clash with the version the user's own server pins."""
    for path in files("src", "conformance", "security_suite", "reference_server"):
        assert "mcp" not in outside(path), path
        if name_in_package(path) not in PROGRAMS:
            assert "importlib.import_module(" not in path.read_text(encoding="utf-8"), path


def test_source_files_name_no_path_outside_the_checkout() -> None:
    beside = re.compile(r"\.\./shared|/work" + r"/|\bseeds/")
    for path in files(
        "src", "conformance", "security_suite", "reference_server", "tests", "benchmarks"
    ):
        if path != Path(__file__):
            assert not beside.search(path.read_text(encoding="utf-8")), path


def test_harness_does_not_import_its_tests() -> None:
    for path in files("src"):
        found = outside(path) & {"tests", "conformance", "reference_server"}
        # The public entry point to the reference server uses its types.
        assert found <= ({"reference_server"} if path.name == "server.py" else set()), path


def test_architecture_page_has_the_floors_of_the_table() -> None:
    floors: dict[str, int] = {}
    for name, below in ALLOWED.items():
        floors[name] = 1 + max((floors[one] for one in below), default=0)
    page = (Path(__file__).parents[2] / "ARCHITECTURE.md").read_text("utf-8")

    drawn = {
        name: int(floor) for floor, name in re.findall(r"^\| (\d+) \| `(\w+)` ", page, re.MULTILINE)
    }

    assert drawn == floors
    assert max(map(len, page.splitlines())) <= 110
