"""The user's files that a command needs: program, interpreter, packages, scripts. Runs nothing.

A sandboxed command sees only the files found here. So this rather includes too many packages and
projects, but never a home folder or a folder above it.

Anybody may have written these files: one that is no regular file, or no JSON, says nothing. What a
file of a repository names outside of it, such as the target of a link, is not shown for that:
whoever wrote the repository would choose what its server sees.
"""

import contextlib
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain, takewhile
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.runtime.input_file import InputFile
from mcp_touchstone.sandbox.sandbox import SYSTEM, Method, Sandbox, find_program

PROJECT_MARKS: Final = (
    "package.json",
    "pyproject.toml",
    "setup.py",
    "deno.json",
    "Cargo.toml",
    "go.mod",
    "Gemfile",
    "composer.json",
    "pom.xml",
    "build.gradle",
    ".git",
)
"""Files at the top of a project: a script may need the whole project."""

PREFIX_MARKS: Final = ("pyvenv.cfg", "conda-meta", "lib/node_modules", "Cellar")
"""Files in a folder whose ``bin`` needs the whole folder."""

SEARCHED: Final = ("PYTHONPATH", "NODE_PATH", "LD_LIBRARY_PATH", "CLASSPATH", "GOROOT", "JAVA_HOME")
"""Variables that name files a command needs."""

_UV: Final = (
    "UV_CACHE_DIR:.cache/uv",
    "UV_TOOL_DIR:.local/share/uv/tools",
    "UV_PYTHON_INSTALL_DIR:.local/share/uv/python",
)
LAUNCHERS: Final[Mapping[str, tuple[str, ...]]] = {
    "npx": ("npm_config_cache:.npm",),
    "npm": ("npm_config_cache:.npm",),
    "yarn": ("YARN_CACHE_FOLDER:.cache/yarn", "COREPACK_HOME:.cache/node/corepack"),
    "pnpm": ("PNPM_HOME:.local/share/pnpm", "COREPACK_HOME:.cache/node/corepack"),
    "bun": ("BUN_INSTALL:.bun",),
    "bunx": ("BUN_INSTALL:.bun",),
    "deno": ("DENO_DIR:.cache/deno",),
    "uv": _UV,
    "uvx": _UV,
    "pipx": ("PIPX_HOME:.local/share/pipx", "PIPX_HOME:.local/pipx"),
    "cargo": ("RUSTUP_HOME:.rustup",),
    "go": ("GOPATH:go", "GOCACHE:.cache/go-build"),
    "dotnet": ("DOTNET_ROOT:.dotnet", "NUGET_PACKAGES:.nuget/packages"),
}
"""Program -> the folders it keeps packages in: a variable, and a place below the home."""

VERSION_MANAGERS: Final = ("shims", "libexec")
"""Folders of programs that search for the real programs in the folder above."""

PACKAGES: Final = ("node_modules", "python3*/site-packages", "python3*/dist-packages")
"""Folders below ``lib`` with installed servers, some of which write beside their code."""

SHEBANG: Final = 256
"""Bytes of a script that may hold the name of its interpreter."""


@dataclass(slots=True)
class Needs:
    """The files a command needs.

    Attributes:
        readable: files and folders it reads.
        copied: folders it also writes to: caches and the working folder.
        links: symbolic links on the way to them, with their targets.
        skipped: named paths that are left out: home folders, folders above, and what a file of a
            repository names outside of it.
    """

    readable: dict[Path, None] = field(default_factory=dict)
    copied: dict[Path, None] = field(default_factory=dict)
    links: dict[Path, str] = field(default_factory=dict)
    skipped: dict[Path, None] = field(default_factory=dict)


def needs(command: Sequence[str], *, cwd: Path | None, env: Mapping[str, str], home: Path) -> Needs:
    """Find the files that a command needs.

    Args:
        cwd: the folder it is started in, absolute; None for a temporary one.
        env: its environment: PATH, and variables that name folders of packages.
        home: the user's home, which is left out, as is every folder above it.
    """
    search = _Search(cwd or Path("/"), env, home)
    if cwd is not None:
        search.add_folder(cwd, search.found.copied)
    for word in _words(command):
        search.add_word(word)
    for name in SEARCHED:
        for part in filter(None, env.get(name, "").split(os.pathsep)):
            search.add_path((cwd or Path("/")) / part)
    return search.found


def named(command: Sequence[str], cwd: Path) -> Iterator[Path]:
    """Yield the files and folders that the words of a command name, relative to a folder."""
    for word in _words(command):
        yield from _paths(word, cwd)


def _words(command: Sequence[str]) -> Iterator[str]:
    """Yield the words of a command, and those of a script in one of them."""
    yield from command
    for word in command:
        if any(character.isspace() for character in word):
            with contextlib.suppress(ValueError):
                yield from shlex.split(word)


def _paths(word: str, cwd: Path) -> Iterator[Path]:
    """Yield the paths in a word, which may be an option with paths; they need not exist."""
    for part in re.split(rf"[=,;{os.pathsep}]", word):
        path = cwd / part
        if _is_path(path) and (os.sep in part or path.is_file()):
            yield path


def _is_path(path: Path) -> bool:
    """Return whether a path exists or could; not if the system refuses it, as it is too long."""
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False
    return True


def sandbox_for(
    method: Method,
    command: Sequence[str],
    *,
    world: Path,
    cwd: Path,
    env: Mapping[str, str],
    home: Path,
    network: bool = False,
) -> Sandbox:
    """Return the sandbox in which a command can work in its world.

    Args:
        world: the folder it may change; absolute.
        cwd: the folder it is started in. One outside the world is copied.
    """
    outside = tuple("" if str(world) in word else word for word in command)
    names = {"PATH", *SEARCHED, *(entry.partition(":")[0] for entry in chain(*LAUNCHERS.values()))}
    given = sorted((name, env[name]) for name in names & {*env})
    known = tuple((name, value) for name, value in given if str(world) not in value)
    found = _needs(outside, None if cwd.is_relative_to(world) else cwd, known, home)
    folders = {path for path in found.readable if path.is_dir()}  # some write beside their code
    return Sandbox(
        method=method,
        writable=(world,),
        readable=tuple(path for path in found.readable if path not in folders),
        copied=(*found.copied, *sorted(folders)),
        links=found.links,
        hidden=(home,),
        network=network,
    )


@lru_cache
def _needs(
    command: tuple[str, ...], cwd: Path | None, env: tuple[tuple[str, str], ...], home: Path
) -> Needs:
    return needs(command, cwd=cwd, env=dict(env), home=home)


class _Search:
    """A search for the files of one command."""

    def __init__(self, cwd: Path, env: Mapping[str, str], home: Path) -> None:
        self.found = Needs()
        self._cwd = cwd
        self._env = env
        self._home = home
        self._done: set[Path] = set()

    def add_word(self, word: str) -> None:
        """Add the file that a word of the command names, with or without an option."""
        name = Path(word).name
        for entry in LAUNCHERS.get(name, ()):
            variable, _, below = entry.partition(":")
            folder = Path(self._env.get(variable) or self._home / below)
            if folder.is_dir():
                self._show(folder, self.found.copied)
        program = find_program(word, self._cwd, self._env) if word else None
        if program is not None:
            self.add_program(Path(program))
        for path in _paths(word, self._cwd):
            self.add_path(path)

    def add_program(self, path: Path) -> None:
        """Add a program with all files it needs."""
        for step in self._steps(path):
            if step in self._done:
                continue
            self._done.add(step)
            self._show(step, self.found.readable)
            self._add_prefix(step)
            if step.is_file() and not step.is_symlink():
                self._add_interpreter(step)

    def add_path(self, path: Path) -> None:
        """Add a file or folder that was named, with the project it belongs to."""
        path = Path(os.path.normpath(path))
        if not self._allows(path.parent, path):
            return
        if not path.exists() or _is_system(path):
            project = self._project(path.parent)
            if any((project / mark).exists() for mark in PROJECT_MARKS):
                self._copy_system(project)
            return
        if path.is_dir():
            self.add_folder(path, self.found.readable)
        else:
            self._show(path, self.found.readable)
            self.add_folder(path.resolve().parent, self.found.readable)
            self.add_program(path)

    def add_folder(self, path: Path, among: dict[Path, None]) -> None:
        """Add a folder with the project it belongs to, unless it is the home or above it."""
        if self._is_too_much(path):
            self.found.skipped[path] = None
            return
        project = self._project(path.resolve())
        self._show(path, among)
        self._show(project, among)
        for name in (".venv", "venv"):
            if self._allows(project, project / name):
                self.add_environment(project / name)
        for folder in (project, *project.parents):
            modules = folder / "node_modules"
            if self._is_too_much(folder) or not modules.is_dir():
                continue
            if self._allows(folder, modules):
                self._show(modules, self.found.readable)
                self._add_linked(modules)

    def add_environment(self, prefix: Path) -> None:
        """Add a virtual environment: its interpreter and the projects installed as editable."""
        if not (prefix / "pyvenv.cfg").is_file() or prefix in self._done:
            return
        self._done.add(prefix)
        self._show(prefix, self.found.readable)
        for name in ("python", "python3"):
            program = find_program(str(prefix / "bin" / name), self._cwd, self._env)
            if program is not None:
                self.add_program(Path(program))
        for packages in prefix.glob("lib*/python*/site-packages"):
            self._add_editable(prefix, packages)

    # --- programs

    def _add_interpreter(self, path: Path) -> None:
        first = b""
        with contextlib.suppress(InputError):
            first = InputFile(path).beginning(SHEBANG).partition(b"\n")[0]
        if first.startswith(b"#!"):
            for word in first[2:].decode("utf-8", "replace").split():
                if not word.startswith("-"):
                    program = find_program(word, self._cwd, self._env)
                    if program is not None:
                        self.add_program(Path(program))

    def _add_prefix(self, path: Path) -> None:
        """Add the folder around ``bin`` of an interpreter, a package manager or an environment."""
        folder, prefix = path.parent, path.parent.parent
        for packages in PACKAGES if _is_system(path) else ():
            for found in prefix.glob(f"lib/{packages}"):
                self._copy_system(found)
        if folder.name in VERSION_MANAGERS and not self._is_too_much(prefix):
            self._show(prefix, self.found.readable)
        if folder.name not in {"bin", "sbin"} or self._is_too_much(prefix):
            return
        self.add_environment(prefix)
        is_shared = prefix == self._home / ".local"
        if not is_shared and any((prefix / mark).exists() for mark in PREFIX_MARKS):
            self._show(prefix, self.found.readable)
            self._add_linked(prefix / "lib" / "node_modules")
        for library in prefix.glob("lib/python3*"):
            self._show(library if is_shared else prefix, self.found.readable)
            self._add_editable(prefix, library / "site-packages")

    def _add_editable(self, prefix: Path, packages: Path) -> None:
        for folder in _editable(packages):
            if self._allows(prefix.parent, folder):
                self.add_path(folder)

    def _add_linked(self, modules: Path) -> None:
        """Add the packages that ``npm link`` put into a folder of packages."""
        for pattern in ("*", "@*/*"):
            for entry in modules.glob(pattern) if modules.is_dir() else ():
                target = entry.resolve()
                if entry.is_symlink() and entry.exists() and target not in self._done:
                    self._done.add(target)
                    if self._allows(modules.parent, target):
                        self.add_path(target)

    # --- paths

    def _project(self, folder: Path) -> Path:
        """Return the top folder of a folder's project, or the folder itself without one."""
        for above in (folder, *folder.parents):
            if self._is_too_much(above):
                break
            if any((above / mark).exists() for mark in PROJECT_MARKS):
                return above
        return folder

    def _allows(self, place: Path, path: Path) -> bool:
        """Return whether a file or link in a folder may name a path: no repository names others."""
        top, target = self._repository(place), path.resolve()
        if top is None or target.is_relative_to(top) or _is_system(target):
            return True
        self.found.skipped[path] = None
        return False

    def _repository(self, folder: Path) -> Path | None:
        """Return the top of the repository of a folder, or else its project or working folder.

        The programs that a user keeps in a hidden folder of the home are no repository: a link
        there is the user's, as of ``npm link`` or ``pip install -e``.
        """
        here = self._cwd.resolve()
        is_inside = folder.is_relative_to(here) and not self._is_too_much(here)
        below = folder.relative_to(self._home).parts if folder.is_relative_to(self._home) else ()
        if "".join(below[:1]).startswith(".") and not is_inside:
            return None
        above = [one for one in (folder, *folder.parents) if not one.is_symlink()]
        near = [*takewhile(lambda one: not self._is_too_much(one), above)]
        for marks in ((".git",), PROJECT_MARKS):
            for one in near:
                if any((one / mark).exists() for mark in marks):
                    return one.resolve()
        return here if is_inside else None

    def _is_too_much(self, folder: Path) -> bool:
        """Return whether a folder is the home, or contains it, or is the root."""
        homes = {self._home, self._home.resolve()}
        temporary = {Path("/tmp"), Path("/var/tmp"), Path("/dev/shm")}  # noqa: S108
        return folder in temporary or any(
            home.is_relative_to(one) for home in homes for one in (folder, folder.resolve())
        )

    def _show(self, path: Path, among: dict[Path, None]) -> None:
        """Add a path, and the links that lead to it."""
        if path.is_dir() and self._is_too_much(path):
            return
        *_, last = self._steps(path)
        if last.is_symlink():
            last = last.resolve()
        if last.exists() and not _is_system(last):
            among[last] = None

    def _copy_system(self, folder: Path) -> None:
        """Add a folder of the system that the user may change."""
        if _is_system(folder) and folder.is_dir() and os.access(folder, os.W_OK):
            self.found.copied[folder.resolve()] = None

    def _steps(self, path: Path) -> Iterator[Path]:
        """Resolve a path; record the links on the way.

        Yields the path with links resolved above its last part, once for each link that is last.
        """
        for _ in range(40):  # Linux follows as many links
            real = path.parent.resolve() / path.name
            self._remember_links(path)
            yield real
            if not real.is_symlink():
                return
            self.found.links.setdefault(real, str(real.readlink()))
            path = real.parent / real.readlink()

    def _remember_links(self, path: Path) -> None:
        for above in reversed(path.parents):
            if above.is_symlink() and not _is_system(above):
                real = above.parent.resolve() / above.name
                self.found.links.setdefault(real, str(above.readlink()))
                target = real.parent / above.readlink()
                if above not in self._done:
                    self._done.add(above)
                    self._remember_links(target / "x")


def _is_system(path: Path) -> bool:
    return any(path.is_relative_to(one) for one in SYSTEM)


def _editable(packages: Path) -> Iterator[Path]:
    """Yield the source folders of packages installed with ``pip install -e``."""
    for file in packages.glob("*.pth"):
        lines: list[str] = []
        with contextlib.suppress(InputError):
            lines = InputFile(file).text().splitlines()
        paths = (Path(line) for line in lines if line.startswith("/"))
        yield from (path for path in paths if _is_path(path) and path.is_dir())
    for file in packages.glob("*.dist-info/direct_url.json"):
        try:
            record = InputFile(file).json()
            url = urlsplit(record["url"])
            is_editable = record.get("dir_info", {}).get("editable")
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if url.scheme == "file" and is_editable and _is_path(Path(unquote(url.path))):
            yield Path(unquote(url.path))
