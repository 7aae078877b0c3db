"""Find and import the suite files: they import the harness, and no module imports them.

In a checkout (or an editable install of one) the suites are at the root; in a wheel they
are in ``_suites`` inside the package. They have the same module names in both cases.
"""

import importlib.util
import sys
import types
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from mcp_touchstone.catalog.clause import Catalogue, CatalogueError, load_catalogue
from mcp_touchstone.catalog.home import HOME, NAMESPACE
from mcp_touchstone.catalog.scenario import Registry, collecting
from mcp_touchstone.catalog.threat import load_threats


def home() -> Path:
    """Return the folder of the suite directories."""
    return Path(HOME)


def suite_file(case_id: str) -> Path:
    """Return the file of a case id such as ``conformance/basic/ping.py::answers_a_ping``."""
    return home() / case_id.partition("::")[0]


_loaded: Final[dict[str, Registry]] = {}


CONFORMANCE: Final = "conformance"
CLIENTS: Final = "clients"
GATEWAYS: Final = "gateways"
"""The suites of rules on clients and on gateways, and their folders inside that of conformance."""

LENDERS: Final = {CLIENTS: (CONFORMANCE,), GATEWAYS: (CLIENTS, CONFORMANCE)}
"""Suite -> those whose rules judge its clauses with ``same_as``: a gateway is a client of its
server, and a server for its clients."""

SECURITY: Final = "security"
BOTH: Final = "all"
SUITES: Final = {CONFORMANCE: "conformance", SECURITY: "security_suite"}
"""Name of a suite -> its folder."""


def rows(suite: str) -> Catalogue:
    """Read the clauses or threats of a suite, or of all of them; imports no suite file.

    Raises:
        CatalogueError: a file is invalid.
    """
    if suite == BOTH:
        names = (*SUITES, CLIENTS, GATEWAYS)
        return Catalogue(tuple(chapter for name in names for chapter in rows(name).chapters))
    if suite == SECURITY:
        return _read(home() / SUITES[suite], load_threats)
    return _clauses(home() / CONFORMANCE, suite)


@cache
def _read(directory: Path, load: Callable[[Path], Catalogue]) -> Catalogue:
    return load(directory)


@cache
def _clauses(directory: Path, suite: str) -> Catalogue:
    """Return the chapters of one suite."""
    chapters = _read(directory, load_catalogue).chapters
    return Catalogue(tuple(chapter for chapter in chapters if suite_of(chapter.group) == suite))


def suite_of(group: str) -> str:
    """Return the suite that a folder inside that of conformance belongs to."""
    return group if group in {CLIENTS, GATEWAYS} else CONFORMANCE


def renamed(suite: str = BOTH) -> dict[str, str]:
    """Return the ids of merged clauses, each with the id of the clause it is part of now."""
    return {old: clause.id for clause in rows(suite) for old in clause.replaces}


def load(suite: str = CONFORMANCE) -> Registry:
    """Import every chapter of a suite once and return its declarations.

    Raises:
        CatalogueError: a clause file or a declaration is invalid.
    """
    if suite in _loaded:
        return _loaded[suite]
    if suite == BOTH:
        _loaded[suite] = _joined([load(name) for name in SUITES])
        return _loaded[suite]
    folder = SUITES.get(suite, CONFORMANCE)
    directory = home() / folder
    registry = Registry(rows(suite))
    for path in sorted(directory.glob("*/*.py")):
        if suite == SECURITY or suite_of(path.parent.name) == suite:
            _collect(registry, path, folder)
    for lender in LENDERS.get(suite, ()):
        _share(registry, directory, lender)
    declared = {clause.id for case in registry.cases() for clause in case.clauses}
    forgotten = [c.id for c in registry.catalogue if c.judged and c.id not in declared]
    if forgotten:
        raise CatalogueError(f"nobody judges {forgotten[0]}: write a scenario, or say why not")
    _loaded[suite] = registry
    return registry


def _collect(registry: Registry, path: Path, folder: str) -> None:
    """Import a suite file, and add what it declares."""
    registry.file = path.relative_to(home()).as_posix()
    collecting(registry)
    try:
        _import(path, folder)
    finally:
        collecting(None)


def _share(registry: Registry, directory: Path, lender: str) -> None:
    """Add the rules of another suite that judge clauses of this one too (``same_as``)."""
    own = rows(lender)
    twins = {clause.same_as: clause for clause in registry.catalogue if clause.same_as in own}
    other = _loaded.get(lender)
    if other is None:
        other = Registry(own)
        for place in sorted({other.catalogue[one].place for one in twins}):
            for path in sorted(directory.glob(f"{place}*.py")):
                _collect(other, path, CONFORMANCE)
        for further in LENDERS.get(lender, ()):
            _share(other, directory, further)
    for rule in other.ambients:
        judged = {clause.id: twins[clause.id] for clause in rule.clauses if clause.id in twins}
        if judged:
            registry.share(rule, judged)


def _joined(registries: list[Registry]) -> Registry:
    """Concatenate suites: one plan, one run, one report."""
    chapters = tuple(chapter for r in registries for chapter in r.catalogue.chapters)
    joined = Registry(Catalogue(chapters))
    for registry in registries:
        behind = len(joined.scenarios) + len(joined.ambients)
        joined.scenarios += [replace(s, order=s.order + behind) for s in registry.scenarios]
        joined.ambients += [replace(a, order=a.order + behind) for a in registry.ambients]
    return joined


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
