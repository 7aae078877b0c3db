"""The SDK of a compiled server, from what its compiler wrote into the program. Runs nothing.

Go writes the modules of a program into it, and cargo-auditable its crates into the section
``.dep-v0`` of an ELF file. Maven writes ``pom.properties`` into each jar, also of a jar inside a
jar. .NET writes ``NAME.deps.json`` beside the program. Each file may be anybody's, so sizes,
entries and unpacked bytes have limits, and what cannot be read says nothing.
"""

import contextlib
import io
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.catalog.sdk import CRATES, GO, LAYERS, MAVEN, NUGET
from mcp_touchstone.runtime.input_file import parsed
from mcp_touchstone.runtime.open_folder import Folder
from mcp_touchstone.runtime.seen_files import SeenFiles, seen_by
from mcp_touchstone.sandbox.sandbox import find_program
from mcp_touchstone.transport.family import ProcessFacts

MOST_PROGRAM: Final = 512 << 20
"""Greatest size of a program that is searched, in bytes."""

MOST_JAR: Final = 64 << 20
"""Greatest size of a jar that is read, in bytes."""

MOST_ENTRIES: Final = 50_000
"""Greatest number of files in a jar."""

MOST_INFO: Final = 4 << 20
"""Greatest size of a list of modules, in bytes, unpacked or not."""

MOST_SECTIONS: Final = 4096

MOST_SEARCHED: Final = 64
"""Programs of which the modules are remembered."""

MOST_FOLDERS: Final = 200
"""Folders of the PATH of a process in which its program is looked for."""

_BEGIN: Final = bytes.fromhex("3077af0c9274080241e1c107e6d618e6")
_END: Final = bytes.fromhex("f932433186182072008242104116d8f2")
"""What Go writes before and after the list of modules (cmd/go/internal/modload)."""

_MODULE: Final = re.compile(r"(mod|dep|=>)\t(\S+)\t(v\S+)")
_ELF: Final = b"\x7fELF\x02\x01"
"""The beginning of an ELF file of 64 bits in little-endian order."""

_POM: Final = re.compile(r"META-INF/maven/([^/]+)/([^/]+)/pom\.properties")
_JAVA: Final = re.compile(r"javaw?(\.exe)?", re.IGNORECASE)
_DOTNET: Final = re.compile(r"dotnet(\.exe)?", re.IGNORECASE)
_VERSION: Final = re.compile(r"[\w.!+~^-]{1,64}")

_UNREADABLE: Final = (
    OSError,
    ValueError,
    RuntimeError,
    InputError,
    NotImplementedError,
    struct.error,
    zlib.error,
    zipfile.BadZipFile,
)

Versions = dict[str, str]
"""Name of a package -> its version."""


def sdk_of_program(process: ProcessFacts, env: Mapping[str, str]) -> tuple[str, Versions]:
    """Return the registry and the SDKs, with versions, that the program of a process names."""
    program, *words = process.argv
    files = seen_by(process.pid)
    path, name = program_of(files, process, env), Path(program).name
    searches: list[tuple[str, Callable[[SeenFiles, Path], Versions], list[Path]]] = [
        (GO, _go, [path]),
        (CRATES, _rust, [path]),
        (NUGET, _dotnet, [path]),
    ]
    if _JAVA.fullmatch(name):
        searches = [(MAVEN, _java, list(_jars(files, words, process.cwd)))]
    elif _DOTNET.fullmatch(name):
        dlls = [process.cwd / word for word in words if word.lower().endswith(".dll")]
        searches = [(NUGET, _dotnet, dlls[:1])]
    for registry, search, places in searches:
        found: Versions = {}
        for place in places:
            with contextlib.suppress(*_UNREADABLE):
                found |= search(files, files.resolve(place))
        known = {
            name: version
            for name, version in found.items()
            if name in LAYERS[registry] and _VERSION.fullmatch(version)
        }
        if known:
            return registry, known
    return "", {}


def go_modules(process: ProcessFacts, env: Mapping[str, str]) -> Versions:
    """Return the modules, with versions, that Go has written into the program of a process."""
    files = seen_by(process.pid)
    with contextlib.suppress(*_UNREADABLE):
        return _go(files, files.resolve(program_of(files, process, env)))
    return {}


def program_of(files: SeenFiles, process: ProcessFacts, env: Mapping[str, str]) -> Path:
    """Return where the program of a process is, among the files that it sees.

    A launcher such as ``uvx`` starts ``python`` by its name, and has put the folder of it on the
    PATH of that process only.

    Args:
        env: the environment with the PATH of a process of which none is known.
    """
    name = process.argv[0]
    if os.sep not in name:
        for folder in process.path.split(os.pathsep, MOST_FOLDERS)[:MOST_FOLDERS]:
            if folder and files.is_file(place := process.cwd / folder / name):
                return place
    return Path(find_program(name, process.cwd, env) or process.cwd / name)


def _slice(files: SeenFiles, path: Path, start: int, size: int) -> bytes:
    """Return some bytes of a program; fewer if it ends before, none if they are too many."""
    folder, name = files.opened(path)
    if size > MOST_INFO or folder.stat(name).st_size > MOST_PROGRAM:
        return b""
    return folder.slice(name, start, size)


# --- Go


def _go(files: SeenFiles, path: Path) -> Versions:
    """Return the modules of a program. Each file is searched once: it may have 300 MB."""
    folder, name = files.opened(path)
    found = folder.stat(name)
    key = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    if key not in _searched:
        if len(_searched) >= MOST_SEARCHED:
            _searched.clear()
        _searched[key] = _search(folder, name) if found.st_size <= MOST_PROGRAM else {}
    return _searched[key]


_searched: Final[dict[tuple[int, ...], Versions]] = {}
"""Device, inode, size and times of a file -> the modules that were found in it."""


def _search(folder: Folder, name: str) -> Versions:
    start = read = 0
    for piece in folder.pieces(name, len(_BEGIN)):
        start = max(read - len(_BEGIN), 0)
        read = start + len(piece)
        begin = piece.find(_BEGIN)
        if begin >= 0:
            data = folder.slice(name, start + begin + len(_BEGIN), MOST_INFO)
            if (end := data.find(_END)) >= 0:
                return _modules(data[:end].decode("utf-8", "replace"))
    return {}


def _modules(text: str) -> Versions:
    """Read a list of modules: ``mod`` or ``dep NAME VERSION``, and what replaces it."""
    found: Versions = {}
    last = ""
    for line in text.splitlines():
        match = _MODULE.match(line)
        if match is not None:
            last = last if match[1] == "=>" else match[2]
            found[last] = match[3]
    return found


# --- Rust


def _rust(files: SeenFiles, path: Path) -> Versions:
    data = _section(files, path, b".dep-v0")
    text = zlib.decompressobj().decompress(data, MOST_INFO).decode()
    value = parsed(text, str(path), "") if text else {}
    packages = value.get("packages") if isinstance(value, dict) else None
    return {
        str(one.get("name")): str(one.get("version"))
        for one in (packages if isinstance(packages, list) else ())
        if isinstance(one, dict) and one.get("kind") != "build"
    }


def _section(files: SeenFiles, path: Path, name: bytes) -> bytes:
    """Return the bytes of a section of an ELF file; none if there is no such section."""
    head = _slice(files, path, 0, 64)
    if not head.startswith(_ELF):
        return b""
    (table,) = struct.unpack_from("<Q", head, 0x28)
    size, count, names = struct.unpack_from("<HHH", head, 0x3A)
    if count > MOST_SECTIONS or names >= count:
        return b""
    data = _slice(files, path, table, size * count)
    rows = [struct.unpack_from("<I20xQQ", data, size * n) for n in range(count)]
    texts = _slice(files, path, *rows[names][1:])
    for start, offset, length in rows:
        if texts[start : texts.find(b"\0", start)] == name:
            return _slice(files, path, offset, length)
    return b""


# --- Java


def _jars(files: SeenFiles, words: Sequence[str], cwd: Path) -> Iterator[Path]:
    """Yield the jars that a command line of Java names and that may have an SDK."""
    rest = iter(words)
    for word in rest:
        if word == "-jar":
            yield cwd / next(rest, "")
            return
        if word in {"-cp", "-classpath", "--class-path"}:
            for part in next(rest, "").split(":")[:MOST_SECTIONS]:
                if part.endswith("*"):
                    yield from files.matching(cwd / part[:-1], "*mcp*.jar")
                elif "mcp" in Path(part).name and part.endswith(".jar"):
                    yield cwd / part


def _java(files: SeenFiles, path: Path) -> Versions:
    folder, name = files.opened(path)
    return _in_jar(folder.read(name, MOST_JAR), depth=1)


def _in_jar(data: bytes, depth: int) -> Versions:
    if data.count(b"PK\x01\x02") > MOST_ENTRIES:
        return {}
    found: Versions = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            pom = _POM.fullmatch(name)
            if pom is not None and f"{pom[1]}:{pom[2]}" in LAYERS[MAVEN]:
                text = _unpacked(archive, name, MOST_INFO).decode("utf-8", "replace")
                version = re.search(r"(?m)^version\s*[=:]\s*(\S+)", text)
                found |= {f"{pom[1]}:{pom[2]}": version[1]} if version else {}
            elif depth and name.endswith(".jar") and "mcp" in name.rpartition("/")[2]:
                found |= _in_jar(_unpacked(archive, name, MOST_JAR), depth - 1)
    return found


def _unpacked(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    with archive.open(name) as file:
        return file.read(most)


# --- .NET


def _dotnet(files: SeenFiles, path: Path) -> Versions:
    stem = re.sub(r"\.(dll|exe)$", "", path.name, flags=re.IGNORECASE)
    libraries = files.json(path.parent / f"{stem}.deps.json").get("libraries")
    pairs = (name.partition("/") for name in (libraries if isinstance(libraries, dict) else ()))
    return {name: version for name, _, version in pairs}
