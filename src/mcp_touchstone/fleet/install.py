"""Install the package of a server into a throw-away folder. With the network, without our files."""

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from mcp_touchstone.fleet.child import Running, run
from mcp_touchstone.fleet.entry import ListedServer, RegistryType, Start, Trouble
from mcp_touchstone.runtime.disk_limit import DiskLimit
from mcp_touchstone.runtime.input_file import parsed
from mcp_touchstone.runtime.members import Members
from mcp_touchstone.runtime.safe_path import SafePath, Tree
from mcp_touchstone.sandbox.command_files import sandbox_for
from mcp_touchstone.sandbox.sandbox import Method, outer, variables, wrap
from mcp_touchstone.transport.process import now

LONGEST: Final = 300
"""Characters of a line of output that is quoted."""

PASSED: Final = re.compile(
    r"(?i)(https?|no|all)_proxy|PIP_(CERT|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS)"
    r"|UV_(INDEX|DEFAULT_INDEX)|npm_config_(registry|cafile)"
)
"""Variables that a package manager gets beside the usual ones, unless they hold a password."""

ABSENT: Final = re.compile(
    r"404|ETARGET|No matching version found|No matching distribution found"
    r"|was not found in the package registry|there is no version of"
)
"""Output of a package manager for a package that does not exist."""

TELLING: Final = re.compile(r"(?i)^(npm (error|ERR!)( code)?|ERROR:|error:)")


class InstallError(Exception):
    """A package cannot be installed or started."""

    def __init__(self, kind: Start, line: str) -> None:
        super().__init__(line)
        self.trouble = Trouble(kind, line)


@dataclass(frozen=True, slots=True)
class Installed:
    """An installed package: its program, and its version."""

    program: str
    version: str


def install(
    entry: ListedServer,
    prefix: Path,
    running: Running,
    *,
    method: Method | None,
    seconds: float,
    disk: DiskLimit | None = None,
) -> Installed:
    """Install the package of a server.

    Args:
        prefix: an empty folder; the only one that the installation may change in a sandbox.
        method: how the sandbox is made; None for none.
        disk: the limit of what the installation writes; None for none.

    Raises:
        InstallError: the package does not exist, does not install, or has no program.
    """
    until = now() + seconds
    for words in _steps(entry, prefix):
        left = max(until - now(), 1)
        _run(words, entry, prefix, running=running, method=method, seconds=left, disk=disk)
    return locate(entry, prefix)


def locate(entry: ListedServer, prefix: Path) -> Installed:
    """Find the program of an installed package.

    Raises:
        InstallError: it is not installed there, or has no program.
    """
    try:
        tree = Tree(prefix.resolve())
    except OSError as error:
        raise InstallError(Start.INSTALL_ERROR, f"{prefix}: {error.strerror}") from error
    find = _npm if entry.registry is RegistryType.NPM else _pypi
    return find(entry, prefix, tree)


def _steps(entry: ListedServer, prefix: Path) -> list[tuple[str, ...]]:
    if entry.registry is RegistryType.NPM:
        quiet = ("--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error")
        return [("npm", "install", "--prefix", str(prefix), *quiet, "--", entry.spec("@"))]
    python = os.path.realpath(sys.executable)
    interpreter = str(prefix / "bin" / "python")
    if shutil.which("uv"):
        return [
            ("uv", "venv", "--quiet", "--python", python, "--allow-existing", str(prefix)),
            ("uv", "pip", "install", "--quiet", "--python", interpreter, "--", entry.spec("==")),
        ]
    pip = ("-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check")
    return [
        (python, "-m", "venv", str(prefix)),
        (interpreter, *pip, "--", entry.spec("==")),
    ]


def _run(
    words: Sequence[str],
    entry: ListedServer,
    prefix: Path,
    *,
    running: Running,
    method: Method | None,
    seconds: float,
    disk: DiskLimit | None,
) -> None:
    env = _environment(os.environ, prefix)
    try:
        if method is not None:
            box = sandbox_for(
                method, words, world=prefix, cwd=prefix, env=env, home=Path.home(), network=True
            )
            words = wrap(box, words, cwd=prefix, env=env)
            env = outer(env)
        output, status = run(
            words,
            cwd=prefix,
            env=env,
            seconds=seconds,
            running=running,
            disk=disk,
            kills=True,
        )
    except FileNotFoundError as error:
        raise InstallError(Start.HARNESS, f"{error.filename}: {error.strerror}") from error
    if disk is not None and disk.met:
        raise InstallError(Start.INSTALL_ERROR, f"the installation was ended: {disk.met}")
    if status is None:
        line = f"the installation did not end within {seconds:.0f} s"
        raise InstallError(Start.INSTALL_ERROR, line)
    if status:
        raise _failure(output.replace(str(prefix), "{prefix}"), entry, status)


def _failure(output: str, entry: ListedServer, status: int) -> InstallError:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    if any("ENOSPC" in line or "No space left" in line for line in lines):
        return InstallError(Start.HARNESS, "no space left on the device")
    telling = [one for one in lines if TELLING.search(one) and "complete log" not in one]
    absent = [one for one in telling or lines if ABSENT.search(one)]
    plain = entry.plain.lower()
    own = [one for one in absent if {plain, plain.replace("/", "%2f")} & _words(one)]
    if own:
        return InstallError(Start.NOT_FOUND, own[-1][:LONGEST])
    shown = (absent or telling or lines or [f"exit status {status}"])[-1]
    return InstallError(Start.INSTALL_ERROR, shown[:LONGEST])


def _words(line: str) -> set[str]:
    """Return the package names in a line: parts of URLs and of requirements too."""
    parts = re.split(r"[\s'\"=<>~!]+|(?<=\w)@", line.lower())
    return {name for part in parts for name in (part, part.rpartition("/")[2])}


def _environment(env: Mapping[str, str], prefix: Path) -> dict[str, str]:
    home = prefix / "home"
    home.mkdir(exist_ok=True)
    passed = {
        name: value
        for name, value in env.items()
        if PASSED.fullmatch(name) and not re.search(r"//[^/]*@", value)
    }
    places = {
        "HOME": home,
        "npm_config_cache": home / ".npm",
        "UV_CACHE_DIR": home / ".uv",
        "PIP_CACHE_DIR": home / ".pip",
        "XDG_CACHE_HOME": home / ".cache",
    }
    plain = {
        name: value
        for name, value in variables(env, network=True).items()
        if name not in {"PYTHONPATH", "NODE_PATH", "VIRTUAL_ENV"}
    }
    # The check cannot write bytecode into the package, so each start would compile it again.
    compiled = {"UV_COMPILE_BYTECODE": "1"}
    return {**plain, **passed, **compiled, **{name: str(place) for name, place in places.items()}}


# --- the program of a package


def _npm(entry: ListedServer, prefix: Path, tree: Tree) -> Installed:
    try:
        text = _within(tree, f"node_modules/{entry.package}/package.json").read_text()
        package = Members.of(parsed(text, "package.json", "it is no package"), "package.json")
        plain = entry.package.rpartition("/")[2]
        is_one = isinstance(package.value.get("bin"), str)
        given = Members({plain: package.value["bin"]}, "bin") if is_one else package.object("bin")
        programs = {name: given.get(name, str) for name in given.value}
        version = package.get("version", str, "")
    except (OSError, ValueError) as error:
        raise InstallError(Start.INSTALL_ERROR, f"package.json: {error}"[:LONGEST]) from error
    name = entry.script or _chosen(plain, programs)
    if name not in programs:
        line = f"npx: could not determine executable to run: {', '.join(programs) or 'no bin'}"
        raise InstallError(Start.NOT_FOUND, line)
    program = prefix / "node_modules" / ".bin" / name
    return Installed(str(program), version)


def _pypi(entry: ListedServer, prefix: Path, tree: Tree) -> Installed:
    plain = entry.plain
    found = _distribution(tree, plain)
    if found is None:
        raise InstallError(Start.INSTALL_ERROR, f"{plain}: no metadata after the installation")
    programs = {one.name: one.value for one in found.entry_points if one.group == "console_scripts"}
    name = entry.script or _chosen(plain, programs)
    if name not in programs:
        line = f"uvx: the package provides {', '.join(sorted(programs)) or 'no executable'}"
        raise InstallError(Start.NOT_FOUND, line)
    return Installed(str(prefix / "bin" / name), found.version)


def _within(tree: Tree, below: str) -> SafePath:
    """Return a path of an installation without links; these must not lead out of it.

    Raises:
        OSError: it is missing, or elsewhere.
    """
    found = tree.at(tree.real(f"{tree.path}/{below}"))
    if found is None:
        raise OSError(f"{below} is a link that leads out of the installation")
    return found


class _Distribution(metadata.Distribution):
    """The metadata of an installed package; its installation may have left links anywhere."""

    def __init__(self, folder: SafePath) -> None:
        self._folder = folder

    def read_text(self, filename: str) -> str | None:
        """Return a file of the metadata; None if it is missing or no file."""
        try:
            return (self._folder / filename).read_text()
        except (OSError, ValueError):
            return None

    def locate_file(self, path: object) -> Path:
        """Return the path of a file of the package."""
        return Path(str(self._folder.parent), str(path))


def _distribution(tree: Tree, package: str) -> _Distribution | None:
    """Return the metadata of a Python package in a virtual environment; None if there is none."""
    wanted = _plain(package)
    for place in tree.top.matches("lib/python*/site-packages/*.dist-info"):
        folder = tree.at(place)
        if folder is not None and _plain(folder.name.partition("-")[0]) == wanted:
            return _Distribution(folder)
    return None


def _plain(name: str) -> str:
    """Return the normalised name of a Python package."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _chosen(package: str, programs: Mapping[str, str]) -> str:
    """Choose a program as launchers do: the only one, or the one with the name of the package."""
    if len({*programs.values()}) == 1:
        return next(iter(programs))
    same = {_plain(name): name for name in programs}
    return same.get(_plain(package), "")
