"""The package that a server is started from, and the digests of its files. None of it runs here.

Anybody may have written these files, so each is read within limits and through the one door.
"""

import hashlib
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Final

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.catalog.sdk import NPM, PYPI, PackageOrigin
from mcp_touchstone.discovery.sdk import (
    NODE,
    PYTHON,
    may_hold,
    node_start,
    python_path,
    python_start,
    version_in,
)
from mcp_touchstone.runtime.open_folder import open_folder
from mcp_touchstone.runtime.seen_files import SeenFiles, seen_by
from mcp_touchstone.sandbox.sandbox import find_program
from mcp_touchstone.transport.family import ProcessFacts
from mcp_touchstone.wire.framing import object_in

MOST_FILES: Final = 5000
"""Files of a package that are read."""

MOST_BYTES: Final = 256 << 20
"""Bytes of a package that are read."""

FILES: Final = "files"
IMAGE: Final = "image"

_ENGINES: Final = frozenset({"docker", "podman", "nerdctl"})
_PINNED: Final = re.compile(r"(?P<name>[\w./:-]+)@(?P<digest>sha256:[0-9a-f]{64})")
_CODE: Final = frozenset(
    [
        ".py",
        ".pyi",
        ".so",
        ".js",
        ".mjs",
        ".cjs",
        ".ts",
        ".mts",
        ".cts",
        ".wasm",
        ".node",
        ".jar",
        ".dll",
    ]
)
_BY_INSTALLERS: Final = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
"""Files beside the metadata of a distribution that differ between installations of it."""

_BESIDE: Final = frozenset({"node_modules", "__pycache__", "venv", "site-packages"})


Started = Sequence[tuple[ProcessFacts, PackageOrigin | None]]
"""The processes of a server, each with the package that it is started from; None if unknown."""


def origins(processes: Iterable[ProcessFacts], env: Mapping[str, str]) -> Started:
    """Return the package that each process is started from; equal processes are looked up once.

    A process in a sandbox differs from one outside with the same command: it sees other files.
    """
    unlike: dict[tuple[ProcessFacts, int], ProcessFacts] = {}
    for process in processes:
        unlike.setdefault((process, process.pid), process)
    return [(process, origin_of(process, env)) for process in unlike.values()]


def origin(
    command: Sequence[str], started: Started, env: Mapping[str, str]
) -> PackageOrigin | None:
    """Return the package that a server is started from; None if it is unknown.

    Args:
        command: the command that starts it.
        started: its processes, the most likely first.
    """
    if command and PurePath(command[0]).name in _ENGINES:
        pinned = next(filter(None, map(_PINNED.fullmatch, command)), None)
        name = pinned["name"] if pinned else ""
        return PackageOrigin(IMAGE, name, "", "", (), pinned["digest"] if pinned else "")
    if found := next((package for _, package in started if package), None):
        return found
    for facts, _ in started[-1:]:
        program = find_program(facts.argv[0], facts.cwd, env) if facts.argv else None
        if program is not None:
            place = Path(program).resolve()
            return PackageOrigin(FILES, place.name, "", str(place.parent), (place.name,))
    return None


def origin_of(facts: ProcessFacts, env: Mapping[str, str]) -> PackageOrigin | None:
    """Return the package that a process of Python or Node is started from; None if unknown."""
    name = PurePath(facts.argv[0]).name if facts.argv else ""
    try:
        if PYTHON.fullmatch(name):
            return _of_python(facts, env)
        return _of_node(facts) if NODE.fullmatch(name) else None
    except (OSError, ValueError, RuntimeError):
        return None


def _of_node(facts: ProcessFacts) -> PackageOrigin | None:
    files = seen_by(facts.pid)
    script = node_start(files, facts.argv[1:], facts.cwd)
    if script is None:
        return None
    for folder in script.parents:
        package = files.json(folder / "package.json")
        if package.get("name"):
            name, above = str(package["name"]), folder
            while above.name != "node_modules" and above != above.parent:
                above = above.parent
            if above.name != "node_modules":
                return PackageOrigin(FILES, name, version_in(package), str(folder))
            lock = files.json(above / ".package-lock.json")
            row = object_in(lock, "packages", folder.relative_to(above.parent).as_posix())
            sealed = row.get("integrity")
            seal = sealed if isinstance(sealed, str) else ""
            return PackageOrigin(NPM, name, version_in(package), str(folder), (), seal)
    return PackageOrigin(FILES, script.name, "", str(script.parent), (script.name,))


def _of_python(facts: ProcessFacts, env: Mapping[str, str]) -> PackageOrigin | None:
    files = seen_by(facts.pid)
    start = python_start(files, facts.argv[1:], facts.cwd)
    if start is None or start[0] == "code":
        return None
    kind, folder, text = start
    top = text.partition(".")[0]
    script = files.resolve(Path(text))
    if kind == "module" and files.is_dir(folder / top):
        return PackageOrigin(FILES, top, "", str(files.resolve(folder / top)))
    if kind == "module" and files.is_file(folder / f"{top}.py"):
        return PackageOrigin(FILES, top, "", str(files.resolve(folder)), (f"{top}.py",))
    for place in python_path(files, facts, env):
        if not (
            may_hold(files, place, top) if kind == "module" else _is_near(files, place, script)
        ):
            continue
        for record in files.matching(place, "*.dist-info/RECORD")[:MOST_FILES]:
            names = [line.partition(",")[0] for line in files.beginning(record).splitlines()]
            starts = (n for n in names if n in {f"{top}/__init__.py", f"{top}.py"})
            if kind == "file":
                alike = (n for n in names if PurePath(n).name == script.name)
                starts = (n for n in alike if files.resolve(Path(place, n)) == script)
            if next(starts, None) is not None:
                return _distribution(files, place, record, names)
    return None if kind == "module" else PackageOrigin(FILES, script.name, "", str(script.parent))


def _is_near(files: SeenFiles, place: Path, script: Path) -> bool:
    """Return whether a distribution in a folder may have a script.

    To read what each one lists takes longer than all else that is asked before a run.
    """
    above = files.resolve(place).parents
    return script.is_relative_to(above[min(2, len(above) - 1)])  # it has bin, too


def _distribution(
    files: SeenFiles, place: Path, record: Path, names: Sequence[str]
) -> PackageOrigin:
    """Return an installed distribution; files outside its folder and compiled ones are left out.

    So are files that an installer adds: the same distribution has the same files everywhere.
    """
    head = files.beginning(record.with_name("METADATA"))
    known = dict(re.findall(r"(?m)^(Name|Version):[ \t]*(\S+)", head))
    listed = (name for name in names if name and not name.startswith((".", "/")))
    own = {f"{record.parent.name}/{name}" for name in _BY_INSTALLERS}
    kept = tuple(name for name in listed if not (name.endswith(".pyc") or name in own))
    return PackageOrigin(PYPI, known.get("Name", ""), known.get("Version", ""), str(place), kept)


def digests(known: PackageOrigin | None) -> dict[str, str]:
    """Return the SHA-256 of each file of a package, by its path in it; empty for an image.

    Raises:
        UserError: they cannot be had: the package is unknown, too large, in a sandbox only, or an
            image without one.
    """
    if known is None:
        raise UserError("the package of the server is unknown, so it has no digest to lock")
    if known.kind == IMAGE:
        if not known.seal:
            raise UserError("the image has no digest offline: write IMAGE@sha256:… in the command")
        return {}
    if not Path(known.folder).is_dir():
        raise UserError(
            f"{known.folder}: the package is in the sandbox only, where its server may change it: "
            "install it (`uv tool install`, `npm install`) and name its program as the command"
        )
    found: dict[str, str] = {}
    left = MOST_BYTES
    for name in known.files or sorted(_files(Path(known.folder), "")):
        path = Path(known.folder, name)
        try:
            data = open_folder(path.parent).read(path.name, MOST_BYTES)
        except OSError as error:
            if known.files:  # its list names it; that it is gone is a change
                found[name] = "cannot be read"
                continue
            raise UserError(f"{path}: it has no digest: {error.strerror or error}") from None
        left -= len(data)
        if left < 0 or len(found) >= MOST_FILES:
            raise UserError(f"{known.folder}: the package is too large for a lock of its files")
        found[name] = hashlib.sha256(data).hexdigest()
    return found


def _files(folder: Path, below: str) -> Iterator[str]:
    """Yield the files with code below a folder, relative to the first one; links are left out."""
    place = open_folder(folder)
    folders, others = place.parted()
    names = {name for name in others if Path(name).suffix in _CODE or name == "package.json"}
    yield from (below + name for name in names if stat.S_ISREG(place.stat(name).st_mode))
    for name in folders:
        if not name.startswith(".") and name not in _BESIDE:
            yield from _files(folder / name, f"{below}{name}/")
