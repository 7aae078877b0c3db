"""The packages of a server that advisories are about, besides its SDKs: found in files only.

What a server of Python or Node is started from is its own package; one of Node names the parts of
the protocol's SDKs that it is made of. In a folder of the author, pyproject.toml or a lock file has
the version. A program in Go has its modules with it.
"""

import contextlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from mcp_touchstone.advisories import table
from mcp_touchstone.catalog.sdk import GO, LAYERS, NPM, PYPI, Package, PackageOrigin, SdkIdentity
from mcp_touchstone.discovery.origin import Started, origin, origins
from mcp_touchstone.discovery.program_sdk import go_modules
from mcp_touchstone.discovery.sdk import (
    NODE,
    PYTHON,
    VERSION,
    collect,
    commands,
    identify,
    locked,
    node_place,
    version_in,
)
from mcp_touchstone.runtime.seen_files import SeenFiles, seen_by
from mcp_touchstone.transport.family import ProcessFacts


def identity(
    processes: Sequence[ProcessFacts], command: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> SdkIdentity:
    """Return the SDKs, packages and origin of processes, or else of a command, see ``commands``."""
    several = [*processes, *commands(command, cwd, env)]
    started = origins(several, env)
    found = identify(collect(several, env))
    return replace(found, packages=packages(started, env), origin=origin(command, started, env))


def packages(started: Started, env: Mapping[str, str]) -> tuple[Package, ...]:
    """Return the packages of a server that the table of advisories has, without its SDKs.

    Args:
        started: the processes of the server, the most likely first.
    """
    for process, its_origin in started:
        name = PurePath(process.argv[0]).name if process.argv else ""
        files = seen_by(process.pid)
        with contextlib.suppress(OSError, ValueError, RuntimeError):
            if PYTHON.fullmatch(name):
                found = tuple(_of_python(files, its_origin, process.cwd))
            elif NODE.fullmatch(name):
                found = tuple(_of_node(files, its_origin)) if its_origin else ()
            else:
                found = tuple(_of_go(process, env)) if name else ()
            if found:
                return found
    return ()


def _wanted(registry: str) -> frozenset[str]:
    return table.packages(registry) - {*LAYERS[registry]}


def _of_python(files: SeenFiles, started: PackageOrigin | None, cwd: Path) -> Iterator[Package]:
    if started is None or started.kind != PYPI:
        yield from _of_project(files, Path(started.folder) if started else cwd)
        return
    name = re.sub(r"[-_.]+", "-", started.name).lower()
    if name in _wanted(PYPI) and VERSION.fullmatch(started.version):
        yield Package(name, started.version, PYPI)


def _of_project(files: SeenFiles, place: Path) -> Iterator[Package]:
    """Yield the package of the folder of an author that a folder is in."""
    for folder in (place, *place.parents):
        head = files.beginning(folder / "pyproject.toml")
        if head:
            about = tomllib.loads(head).get("project")
            facts = about if isinstance(about, dict) else {}
            if facts.get("name") in _wanted(PYPI) and version_in(facts):
                yield Package(facts["name"], facts["version"], PYPI)
            return


def _of_go(process: ProcessFacts, env: Mapping[str, str]) -> Iterator[Package]:
    found = go_modules(process, env)
    for name in sorted(_wanted(GO).intersection(found)):
        yield Package(name, found[name], GO)


def _of_node(files: SeenFiles, started: PackageOrigin) -> Iterator[Package]:
    folder = Path(started.folder)
    own = files.json(folder / "package.json")
    if own.get("name") in _wanted(NPM) and (version := version_in(own)):
        yield Package(str(own["name"]), version, NPM)
    needed = own.get("dependencies")
    for name in sorted(_wanted(NPM).intersection(needed if isinstance(needed, dict) else ())):
        place = node_place(files, name, folder)
        facts = files.json(place / "package.json") if place else {}
        if version := version_in(facts) or locked(files, folder, name):
            yield Package(name, version, NPM)
