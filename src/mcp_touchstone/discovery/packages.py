"""The packages of a server that advisories are about, besides its SDKs: found in files only.

Of the packages beside an interpreter only the one that is started is the server's: its list of
files names the module or the script. A script of Node belongs to the package above it, and that
names the parts of the protocol's SDKs that it is made of. In a folder of the author, pyproject.toml
or a lock file has the version. A program in Go has its modules with it.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from mcp_touchstone.advisories import table
from mcp_touchstone.catalog.sdk import GO, LAYERS, NPM, PYPI, Package, SdkIdentity
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
    node_start,
    python_path,
    python_start,
    read_json,
    read_text,
    version_in,
)
from mcp_touchstone.transport.family import ProcessFacts

_OTHER = re.compile(rf"(?!({PYTHON.pattern}|{NODE.pattern})$).*", re.IGNORECASE | re.DOTALL)


def identity(
    processes: Sequence[ProcessFacts], command: Sequence[str], cwd: Path, env: Mapping[str, str]
) -> SdkIdentity:
    """Return the SDKs and packages of processes, or else of a command, see ``commands``."""
    several = [*processes, *commands(command, cwd, env)]
    return replace(identify(collect(several, env)), packages=packages(several, env))


def packages(processes: Sequence[ProcessFacts], env: Mapping[str, str]) -> tuple[Package, ...]:
    """Return the packages of a server that the table of advisories has, without its SDKs.

    Args:
        processes: the processes of the server, the most likely first.
    """
    for process in processes:
        name = PurePath(process.argv[0]).name if process.argv else ""
        searches = ((PYTHON, _of_python), (NODE, _of_node), (_OTHER, _of_go))
        for matches, search in searches if process.argv else ():
            try:
                found = tuple(search(process, env)) if matches.fullmatch(name) else ()
            except (OSError, ValueError, RuntimeError):
                continue
            if found:
                return found
    return ()


def _of_python(process: ProcessFacts, env: Mapping[str, str]) -> Iterator[Package]:
    program, *words = process.argv
    start = python_start(words, process.cwd)
    if start is None or start[0] == "code":
        return
    kind, _folder, text = start
    top = text.partition(".")[0]
    own = (f"{top}/__init__.py", f"{top}.py") if kind == "module" else (f"/{PurePath(text).name}",)
    for name in sorted(table.packages(PYPI) - {*LAYERS[PYPI]}):
        distribution = re.sub(r"[-_.]+", "_", name)
        for folder in python_path(program, process.cwd, env):
            for metadata in sorted(folder.glob(f"{distribution}-*.dist-info/METADATA")):
                fields = dict(re.findall(r"(?m)^(Name|Version):[ \t]*(\S+)", read_text(metadata)))
                version = fields.get("Version", "")
                listed = (
                    line.partition(",")[0]
                    for line in read_text(metadata.with_name("RECORD")).splitlines()
                )
                if VERSION.fullmatch(version) and any(file.endswith(own) for file in listed):
                    yield Package(name, version, PYPI)
                    return
    yield from _of_project(Path(text) if kind == "file" else _folder / top)


def _of_project(place: Path) -> Iterator[Package]:
    """Yield the package of the folder of an author that a file or a package is in."""
    for folder in place.parents:
        head = read_text(folder / "pyproject.toml")
        if head:
            about = tomllib.loads(head).get("project")
            facts = about if isinstance(about, dict) else {}
            if facts.get("name") in table.packages(PYPI) - {*LAYERS[PYPI]} and version_in(facts):
                yield Package(facts["name"], facts["version"], PYPI)
            return


def _of_go(process: ProcessFacts, env: Mapping[str, str]) -> Iterator[Package]:
    found = go_modules(process, env)
    for name in sorted((table.packages(GO) - {*LAYERS[GO]}).intersection(found)):
        yield Package(name, found[name], GO)


def _of_node(process: ProcessFacts, _env: Mapping[str, str]) -> Iterator[Package]:
    script = node_start(process.argv[1:], process.cwd)
    if script is None:
        return
    wanted = table.packages(NPM) - {*LAYERS[NPM]}
    above = ((folder, read_json(folder / "package.json")) for folder in script.parents)
    folder, own = next((one for one in above if one[1].get("name")), (script.parent, {}))
    if own.get("name") in wanted and (version := version_in(own)):
        yield Package(str(own["name"]), version, NPM)
    needed = own.get("dependencies")
    for name in sorted(wanted.intersection(needed if isinstance(needed, dict) else ())):
        place = node_place(name, script.parent)
        facts = read_json(place / "package.json") if place else {}
        if version := version_in(facts) or locked(folder, name):
            yield Package(name, version, NPM)
