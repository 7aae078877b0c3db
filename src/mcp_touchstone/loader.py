"""Find and import the suite files: leaves that import the harness and that nobody imports.

In a checkout (or an editable install of one) the suites stand at the root; in a wheel they
stand in ``_suites`` beside this file. They get the same module names in both cases.
"""

import importlib.util
import runpy
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.clause import CatalogueError, load_catalogue
from mcp_touchstone.scenario import Registry, collecting

HERE: Final = Path(__file__).resolve().parent
NAMESPACE: Final = "mcp_touchstone._suites"


def home() -> Path:
    """Give the folder that holds the suite directories."""
    shipped = HERE / "_suites"
    return shipped if shipped.is_dir() else HERE.parent.parent


def suite_file(case_id: str) -> Path:
    """Give the file of a case id such as ``conformance/basic/ping.py::answers_a_ping``."""
    return home() / case_id.partition("::")[0]


_loaded: Final[dict[str, Registry]] = {}


def load(suite: str = "conformance") -> Registry:
    """Import every chapter of a suite and give what it declares; imported once.

    Raises:
        CatalogueError: a clause file or a declaration is wrong.
    """
    if suite in _loaded:
        return _loaded[suite]
    directory = home() / suite
    registry = Registry(load_catalogue(directory))
    for path in sorted(directory.glob("*/*.py")):
        registry.place = path.relative_to(home()).as_posix()
        collecting(registry)
        try:
            _import(path, suite)
        finally:
            collecting(None)
    declared = {clause.id for case in registry.cases() for clause in case.clauses}
    forgotten = [c.id for c in registry.catalogue if c.judged and c.id not in declared]
    if forgotten:
        raise CatalogueError(f"nobody judges {forgotten[0]}: write a scenario, or say why not")
    _loaded[suite] = registry
    return registry


def mutants() -> Mapping[str, Any] | None:
    """Import the servers that break a clause on purpose; None where there is no checkout.

    Returns:
        name -> mutant, as ``tests/mutants/kit.py`` describes it, breaking what it breaks today.
    """
    program = home() / "tests" / "mutants" / "__main__.py"
    if not program.is_file():
        return None
    catalogue = load().catalogue
    known = runpy.run_path(str(program), run_name="mutants")["load"]()
    return {name: one.due(lambda c: catalogue[c].judged) for name, one in known.items()}


def _import(path: Path, suite: str) -> types.ModuleType:
    parts = (suite, *path.relative_to(home() / suite).with_suffix("").parts)
    package = NAMESPACE
    for part in ("", *parts[:-1]):
        package = f"{package}.{part}" if part else package
        if package not in sys.modules:
            module = types.ModuleType(package)
            below = package.removeprefix(NAMESPACE).strip(".").replace(".", "/")
            module.__path__ = [str(home() / below)]
            sys.modules[package] = module
    name = f"{NAMESPACE}.{'.'.join(parts)}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
