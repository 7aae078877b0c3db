"""The SDK that a server runs on: found in files only, so that none of its code runs here.

The processes of a server name an interpreter and a script. Its imports are followed through the
files where that interpreter would look, until one of them is an SDK. The version is in the metadata
beside the SDK. An SDK that is installed and not imported is not the server's. A bundle of Node
imports none: the ``package.json`` above it names the SDK, with its version or the range of it.
``program_sdk`` reads the programs of other languages.

Anybody may have written these files. One that cannot be read says nothing, and each has limits.
"""

import contextlib
import os
import re
import shlex
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.sdk import (
    FOR_CLIENTS,
    FOR_SERVERS,
    LAYERS,
    NPM,
    PYPI,
    Package,
    SdkIdentity,
)
from mcp_touchstone.discovery.program_sdk import program_of, sdk_of_program
from mcp_touchstone.runtime.seen_files import SYSTEM, SeenFiles, seen_by
from mcp_touchstone.sandbox.sandbox import find_program
from mcp_touchstone.transport.family import ProcessFacts

HINTS: Final = (
    (re.compile(r'"(?:text|message)": ?"MCP error -\d+: '), "the TypeScript SDK"),
    (re.compile(r'"text": ?"Error executing tool '), "the Python SDK"),
)
"""Error texts that come from an SDK, as they are in a line; servers may copy them."""

MOST_FILES: Final = 400
"""Files of a server that are read."""

MOST_NAMES: Final = 500
"""Imports of one file that are followed, and lines of it that are read as folders."""

LONGEST: Final = 200
"""Characters of a name of a module."""

PYTHON: Final = re.compile(r"(python|pypy)[\d.]*t?(\.exe)?", re.IGNORECASE)
NODE: Final = re.compile(r"(node|nodejs|bun|tsx|ts-node)(\.exe)?", re.IGNORECASE)
_PYTHON_IMPORT: Final = re.compile(
    r"^[ \t]*(?:from[ \t]+(?P<of>[.\w]+)[ \t]+import[ \t]*(?P<names>\([^)]{0,8192}\)|[^\n#;]*)"
    r"|import[ \t]+(?P<modules>[^\n#;]+))",
    re.MULTILINE,
)
_NODE_IMPORT: Final = re.compile(
    r"""(?:\bfrom|\bimport|\brequire)\s{0,32}\(?\s{0,32}["']([^"'\n]{1,512})["']"""
)
VERSION: Final = re.compile(r"[\w.!+~^-]{1,64}")
_PYTHON_VALUED: Final = {"-W", "-X", "--check-hash-based-pycs"}
_NODE_VALUED: Final = {
    "-r",
    "--require",
    "--import",
    "--loader",
    "--experimental-loader",
    "-C",
    "--conditions",
    "--env-file",
}
_NODE_ENDS: Final = (
    "",
    ".js",
    ".mjs",
    ".cjs",
    ".ts",
    ".mts",
    ".cts",
    "/index.js",
    "/index.mjs",
    "/index.ts",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SdkFacts:
    """The facts from which an SDK is identified.

    Attributes:
        registry: the registry of the packages; empty if the interpreter is unknown.
        imported: names of the SDKs that files of the server import.
        installed: SDK -> its version, where the interpreter of the server finds it.
        lines: lines of the server, of which errors are looked at.
    """

    registry: str = ""
    imported: frozenset[str] = frozenset()
    installed: Mapping[str, str] = field(default_factory=dict)
    lines: Iterable[str] = ()


# --- deciding


def identify(facts: SdkFacts) -> SdkIdentity:
    """Identify the SDK of a server. Pure.

    An SDK counts if the server imports it and its version is known. The SDKs that it is built on
    follow, if they are installed.
    """
    order = LAYERS.get(facts.registry, ())
    outer = next((name for name in order if {name} & facts.imported & {*facts.installed}), None)
    if outer is None:
        hints = (name for line in facts.lines for sign, name in HINTS if sign.search(line))
        return SdkIdentity(hint=next(hints, ""))
    below = order[order.index(outer) :]
    return SdkIdentity(
        tuple(Package(n, facts.installed[n], facts.registry) for n in below if n in facts.installed)
    )


# --- collecting


def collect(processes: Sequence[ProcessFacts], env: Mapping[str, str]) -> SdkFacts:
    """Collect the facts from files: of the first process whose files import an SDK.

    Args:
        processes: the processes of a server, the most likely first.
    """
    for process in processes:
        if not process.argv:
            continue
        name = Path(process.argv[0]).name
        for matches, search in ((PYTHON, _python), (NODE, _node)):
            if matches.fullmatch(name):
                # a name may be too long for the system, and links may form a circle
                with contextlib.suppress(OSError, ValueError, RuntimeError):
                    found = search(process, env)
                    if found.imported:
                        return found
                break
        else:
            registry, versions = sdk_of_program(process, env)
            if versions:
                return SdkFacts(registry=registry, imported=frozenset(versions), installed=versions)
    return SdkFacts()


def commands(command: Sequence[str], cwd: Path, env: Mapping[str, str]) -> list[ProcessFacts]:
    """Return the process that a command would be, if processes cannot be looked at.

    The first line of a script names its interpreter.
    """
    words = list(command)
    program = find_program(words[0], cwd, env) if words else None
    if program is None:
        return []
    first = SYSTEM.beginning(Path(program)).partition("\n")[0]
    if first.startswith("#!"):
        try:
            shebang = shlex.split(first[2:])
        except ValueError:
            shebang = []
        if shebang and Path(shebang[0]).name == "env":
            shebang = [word for word in shebang[1:] if word != "-S" and "=" not in word]
        words = [*shebang, program, *words[1:]]
    return [ProcessFacts(tuple(words), cwd)]


# --- Python


def _python(process: ProcessFacts, env: Mapping[str, str]) -> SdkFacts:
    files = seen_by(process.pid)
    start = python_start(files, process.argv[1:], process.cwd)
    if start is None:
        return SdkFacts()
    kind, folder, text = start
    search = _PythonSearch(files, python_path(files, process, env), folder)
    installed = search.installed()
    imported = search.imported(kind, text, installed) if installed else frozenset()
    return SdkFacts(registry=PYPI, imported=imported, installed=installed)


def python_start(files: SeenFiles, words: Sequence[str], cwd: Path) -> tuple[str, Path, str] | None:
    """Return what an interpreter runs: ``module``, ``code`` or ``file``, its folder, and it."""
    rest = iter(words)
    for word in rest:
        if re.fullmatch(r"-[A-Za-z]*m", word):
            return "module", cwd, next(rest, "")
        if re.fullmatch(r"-[A-Za-z]*c", word):
            return "code", cwd, next(rest, "").replace(";", "\n")
        if word in _PYTHON_VALUED:
            next(rest, "")
        elif not word.startswith("-"):
            script = cwd / word
            if files.is_dir(script):
                return "file", script, str(script / "__main__.py")
            return "file", files.resolve(script).parent, str(script)
    return None


def python_path(files: SeenFiles, process: ProcessFacts, env: Mapping[str, str]) -> list[Path]:
    """Return the folders where the interpreter of a process looks for packages."""
    folders = [process.cwd / part for part in env.get("PYTHONPATH", "").split(os.pathsep) if part]
    interpreter = program_of(files, process, env)
    prefix = interpreter.parent.parent
    marker = files.beginning(prefix / "pyvenv.cfg")
    places = [*_site(files, prefix, "")]
    if not marker or re.search(r"(?mi)^include-system-site-packages\s*=\s*true", marker):
        real = files.resolve(interpreter)
        version = real.name.removesuffix(".exe") if re.search(r"\d\.\d", real.name) else ""
        home = Path(env.get("HOME") or Path.home())
        for base in (real.parent.parent, Path("/usr/local"), Path("/usr"), home / ".local"):
            places += _site(files, base, version)
    for place in dict.fromkeys(places):
        folders += [place, *_added(files, place)]
    return list(dict.fromkeys(folders))


def _site(files: SeenFiles, prefix: Path, version: str) -> Iterator[Path]:
    for name in ("site-packages", "dist-packages"):
        yield from files.matching(prefix, f"lib*/{version or 'python3*'}/{name}")
    yield from (
        p
        for p in (prefix / "Lib/site-packages", prefix / "lib/python3/dist-packages")
        if files.is_dir(p)
    )


def _added(files: SeenFiles, site: Path) -> Iterator[Path]:
    """Yield the folders that ``.pth`` files add: editable installs, and layers of uv."""
    for file in files.matching(site, "*.pth")[:MOST_FILES]:
        for line in files.beginning(file).splitlines()[:MOST_NAMES]:
            named = re.search(r"""addsitedir\(\s*["']([^"']+)["']""", line)
            text = named.group(1) if named else line.strip()
            if text and not text.startswith(("import ", "import\t", "#")):
                folder = site / text
                if files.is_dir(folder):
                    yield folder


class _PythonSearch:
    """A search through the modules of one server."""

    def __init__(self, files: SeenFiles, path: list[Path], own: Path) -> None:
        self._seen = files
        self._path = [own, *path]

    def installed(self) -> dict[str, str]:
        """Return the SDKs in the search path, each with its version."""
        found: dict[str, str] = {}
        for name in LAYERS[PYPI]:
            for folder in self._path:
                for metadata in self._seen.matching(folder, f"{name}-*.dist-info/METADATA"):
                    head = self._seen.beginning(metadata).partition("\n\n")[0]
                    fields = dict(re.findall(r"(?m)^(Name|Version):[ \t]*(\S+)", head))
                    if fields.get("Name") == name and VERSION.fullmatch(fields.get("Version", "")):
                        found.setdefault(name, fields["Version"])
        return found

    def imported(self, kind: str, text: str, installed: Mapping[str, str]) -> frozenset[str]:
        """Return the SDKs that modules of the server import."""
        found: set[str] = set()
        queue: deque[tuple[str, Path | None]] = deque()
        seen: set[Path] = set()

        def add(module: str) -> None:
            for name, file in self._files(module):
                if file not in seen:
                    seen.add(file)
                    queue.append((name, file))

        if kind == "module":
            add(text)
            add(f"{text}.__main__")
        elif kind == "file":
            queue.append(("", Path(text)))
        else:
            queue.append((text, None))
        read = 0
        while queue and read < MOST_FILES:
            module, file = queue.popleft()
            read += 1
            source = module if file is None else self._seen.beginning(file)
            package = _package(module, file) if file else ""
            for name in islice(dict.fromkeys(_python_imports(source, package)), MOST_NAMES):
                top = name.partition(".")[0]
                if top in installed and not self._is_own(top):
                    found.add(top)
                    if top == next(one for one in LAYERS[PYPI] if one in installed):
                        return frozenset(found)
                else:
                    add(name)
        return frozenset(found)

    def _is_own(self, top: str) -> bool:
        """Return whether a module of the server itself has the name of an SDK."""
        folder = self._path[0]
        return self._seen.is_file(folder / f"{top}.py") or (
            self._seen.is_dir(folder / top)
            and not self._seen.matching(folder, f"{top}-*.dist-info")
        )

    def _files(self, module: str) -> Iterator[tuple[str, Path]]:
        """Yield the module and the packages around it, each with its file."""
        parts = module.split(".")
        if not all(parts) or len(module) > LONGEST:
            return
        for folder in self._path:
            if not may_hold(self._seen, folder, parts[0]):
                continue
            for size in range(1, len(parts) + 1):
                place = folder.joinpath(*parts[:size])
                for file in (place / "__init__.py", place.with_name(f"{place.name}.py")):
                    if self._seen.is_file(file):
                        yield ".".join(parts[:size]), file
            return


def may_hold(files: SeenFiles, folder: Path, module: str) -> bool:
    """Return whether a folder has a module with this name."""
    return files.is_dir(folder / module) or files.is_file(folder / f"{module}.py")


def _package(module: str, file: Path) -> str:
    return module if file.name == "__init__.py" else module.rpartition(".")[0]


def _python_imports(source: str, package: str) -> Iterator[str]:
    for match in _PYTHON_IMPORT.finditer(source):
        if match["modules"]:
            for part in match["modules"].split(","):
                yield from part.split()[:1]
            continue
        base = match["of"]
        dots = len(base) - len(base.lstrip("."))
        if dots:
            above = package.split(".") if package else []
            above = above[: len(above) - dots + 1]
            base = ".".join([*above, *filter(None, [base.lstrip(".")])])
        if not base:
            continue
        yield base
        for name in (match["names"] or "").strip("()\\ ").split(","):
            word = name.split()
            if word and word[0].isidentifier():
                yield f"{base}.{word[0]}"


# --- Node


def _node(process: ProcessFacts, _env: Mapping[str, str]) -> SdkFacts:
    files = seen_by(process.pid)
    start = node_start(files, process.argv[1:], process.cwd)
    if start is None:
        return SdkFacts()
    found: dict[str, str] = {}
    queue, seen = deque([start]), {start}
    while queue and len(seen) < MOST_FILES and not found:
        file = queue.popleft()
        for name in islice(dict.fromkeys(_NODE_IMPORT.findall(files.beginning(file))), MOST_NAMES):
            if name.startswith("."):
                other = _node_file(files, file.parent / name)
                if other is not None and other not in seen:
                    seen.add(other)
                    queue.append(other)
            elif not name.startswith(("node:", "/")):
                package = "/".join(name.split("/")[: 2 if name.startswith("@") else 1])
                found.update(_node_sdks(files, package, file.parent))
    found = found or _node_declared(files, start)
    return SdkFacts(registry=NPM, imported=frozenset(found), installed=found)


def _node_declared(files: SeenFiles, script: Path) -> dict[str, str]:
    """Return the SDK that the package of a bundle was built with, and its version.

    Beside the one for servers, that for clients counts too.
    """
    for folder in script.parents:
        facts = files.json(folder / "package.json")
        if not facts.get("name"):
            continue
        needed: dict[str, Any] = {}
        for kind in ("devDependencies", "dependencies"):
            members = facts.get(kind)
            needed |= members if isinstance(members, dict) else {}
        first = next((one for one in LAYERS[NPM] if one in needed), "")
        names = [one for one in (FOR_SERVERS, FOR_CLIENTS) if one in needed]
        found: dict[str, str] = {}
        for name in names if first in names else filter(None, [first]):
            found |= _node_written(files, folder, name, needed[name])
        return found
    return {}


def _node_written(files: SeenFiles, folder: Path, name: str, text: object) -> dict[str, str]:
    """Return an SDK that a package names, and its version.

    A folder of the author has the installed version, or a lock file. A published package has the
    range of versions that its author wrote: ``^1.25.1``.
    """
    if "node_modules" not in folder.parts:
        if node_place(files, name, folder) is not None:
            return _node_sdks(files, name, folder)
        if version := locked(files, folder, name):
            return {name: version}
    written = re.fullmatch(r"([~^]?)(\d+\.\d+\.\d+)", str(text))
    return {name: f"{written[1] and '^'}{written[2]}"} if written else {}


def locked(files: SeenFiles, folder: Path, name: str) -> str:
    """Return the version of a package in a lock file of npm, pnpm or yarn; empty if not sure."""
    packages = files.json(folder / "package-lock.json").get("packages")
    found = packages.get(f"node_modules/{name}") if isinstance(packages, dict) else None
    if isinstance(found, dict) and (version := version_in(found)):
        return version
    for file, pattern in _LOCKED.items():
        text = files.text(folder / file)
        versions = set(re.findall(pattern.format(re.escape(name)), text, re.MULTILINE))
        if len(versions) == 1:
            return str(versions.pop())
    return ""


_LOCKED: Final = {
    "pnpm-lock.yaml": r"^ +'?/?{}[@/](\d+\.\d+\.\d+)[^\n:]*:",
    "yarn.lock": r'^"?{}@[^\n]*:\n +version:? "?(\d+\.\d+\.\d+)',
}
"""Lock file -> the pattern of the versions of a package in it."""


def node_start(files: SeenFiles, words: Sequence[str], cwd: Path) -> Path | None:
    """Return the script that Node runs; None if it runs none."""
    rest = iter(words)
    for word in rest:
        if word in _NODE_VALUED:
            next(rest, "")
        elif word in {"-e", "--eval", "-p", "--print"}:
            return None
        elif not word.startswith("-") and word != "run":
            return _node_file(files, cwd / word)
    return None


def _node_file(files: SeenFiles, path: Path) -> Path | None:
    bases = (path, path.with_suffix("")) if path.suffix in {".js", ".mjs", ".cjs"} else (path,)
    for base in bases:
        for end in _NODE_ENDS:
            file = Path(f"{base}{end}")
            if files.is_file(file):
                return files.resolve(file)
    return None


def _node_sdks(files: SeenFiles, name: str, folder: Path) -> dict[str, str]:
    """Return the SDK that a package is, or those that it depends on, with their versions."""
    place = node_place(files, name, folder)
    if place is None:
        return {}
    facts = files.json(place / "package.json")
    order = LAYERS[NPM]
    found = {name: version_in(facts)} if name in order else {}
    needed = facts.get("dependencies")
    for other in order[order.index(name) + 1 :] if found else order:
        if isinstance(needed, dict) and other in needed:
            found.update(_node_sdks(files, other, place))
    return found


def node_place(files: SeenFiles, name: str, folder: Path) -> Path | None:
    """Return the folder of a package that a script in this folder would import."""
    for above in (folder, *folder.parents):
        place = above / "node_modules" / name
        if files.is_file(place / "package.json"):
            return files.resolve(place)
    return None


def version_in(facts: Mapping[str, Any]) -> str:
    """Return the version of a package; empty if it is none."""
    version = facts.get("version")
    return version if isinstance(version, str) and VERSION.fullmatch(version) else ""
