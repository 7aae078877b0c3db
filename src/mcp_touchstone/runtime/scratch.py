"""The temporary tree a server works on: a root and a home. Knows no MCP.

Some servers reject roots below the temporary folder or the user's home; others allow both folders
beside their root. So the world is outside both if the system has such a place.
"""

import contextlib
import os
import re
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from mcp_touchstone.runtime import copy_root, git_repo
from mcp_touchstone.runtime.disk_limit import DiskLimit
from mcp_touchstone.runtime.open_folder import Folder, open_folder
from mcp_touchstone.runtime.safe_path import SafePath, Tree

if sys.platform != "win32":
    import fcntl

PREFIX: Final = "mcp-touchstone-"

HELD: Final = re.compile(rf"{PREFIX}held_\w+")
"""Name of a temporary folder that is locked as long as its process lives."""

PLACES: Final = ("/Users/Shared", "/var/tmp", "/dev/shm")  # noqa: S108  (outside /tmp is the point)
"""Folders every user may write to that are neither the temporary one nor a home.

``/dev/shm`` is memory, so a disk is preferred: a server that fills it harms nobody's processes.
"""

KEPT_FROM_HOME: Final = {
    "npm_config_cache": ".npm",
    "npm_config_userconfig": ".npmrc",
    "COREPACK_HOME": ".cache/node/corepack",
    "YARN_CACHE_FOLDER": ".cache/yarn",
    "PNPM_HOME": ".local/share/pnpm",
    "BUN_INSTALL": ".bun",
    "DENO_DIR": ".cache/deno",
    "VOLTA_HOME": ".volta",
    "NVM_DIR": ".nvm",
    "UV_CACHE_DIR": ".cache/uv",
    "UV_TOOL_DIR": ".local/share/uv/tools",
    "UV_PYTHON_INSTALL_DIR": ".local/share/uv/python",
    "PIP_CACHE_DIR": ".cache/pip",
    "PIPX_HOME": ".local/share/pipx",
    "PYENV_ROOT": ".pyenv",
    "CARGO_HOME": ".cargo",
    "RUSTUP_HOME": ".rustup",
    "GOPATH": "go",
    "GOCACHE": ".cache/go-build",
    "DOTNET_ROOT": ".dotnet",
    "NUGET_PACKAGES": ".nuget/packages",
    "GEM_HOME": ".gem",
}
"""Launchers keep their programs and caches below the user's home. Without these an ``npx`` or
``uvx`` command would download the server again at each start."""

NOTES: Final = {
    "README.md": "# A small project\n\nMade by mcp-touchstone for one run, then removed.\n",
    "src/main.py": 'def greet(name: str) -> str:\n    return f"hello {name}"\n',
    "notes/today.txt": "one\ntwo\nthree\n",
}


NOTE: Final = "notes/today.txt"
"""The file of the root that generated paths name."""

SECRET: Final = "MCP_TOUCHSTONE_API_KEY"  # noqa: S105  (its name, not its value)
"""Environment variable of the server with an unused credential."""


class World:
    """A temporary folder with ``root``, ``home`` and ``tmp`` in it; removed at the end.

    A server changes what is in it at any moment, so all its paths are ``SafePath``.

    Attributes:
        limit: the limit of what a server adds to it.
        ground: keyword arguments for another one of the same run.
        canary: a file beside the root, with a unique name and content.
        canary_text: its only line.
        secret: a random credential, in the server's environment.
    """

    def __init__(
        self,
        parent: Path | None = None,
        *,
        isolated: bool = True,
        seed: Path | None = None,
        is_repository: bool = False,
        limit: DiskLimit | None = None,
    ) -> None:
        """Create the tree.

        Args:
            parent: the folder to create it in; by default the first suitable place.
            isolated: whether the server gets a home and a temporary folder of its own; otherwise
                it keeps the user's.
            seed: a folder whose content is copied into the root.
            is_repository: whether the root is a git repository with a commit.
            limit: the limit of what a server adds to it and to other worlds; by default its own.
        """
        self.limit = limit or DiskLimit()
        self.ground: dict[str, Any] = {
            "parent": parent,
            "isolated": isolated,
            "seed": seed,
            "limit": self.limit,
        }
        self._isolated = isolated
        self._seed = seed
        self.is_repository = is_repository
        self.secret = f"sk-touchstone-{secrets.token_hex(12)}"
        self._make(parent or _place())

    @property
    def placeholders(self) -> dict[str, str]:
        """Each text that differs between runs, with the name that replaces it in a recording."""
        return {
            str(self.root): "{root}",
            str(self.home): "{home}",
            str(self.tmp): "{tmp}",
            str(self.path): "{world}",
            self.path.name: "{world}",
            self.canary.name: "<canary>",
            self.canary_text: "<canary>",
        }

    def _make(self, parent: Path) -> None:
        """Make the tree in a folder."""
        self._tree = _made_at_home() if parent == at_home() else _made(parent)
        self.path = self._tree.top
        self.root = self.path / "root"
        self.home = self.path / "home"
        self.tmp = self.path / "tmp"
        for folder in (self.root, self.home, self.tmp):
            folder.mkdir()
        for name, text in NOTES.items():
            file = self.root / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text)
        if self._seed is not None:
            copy_root.copy(self._seed, self.root)
        if self.is_repository:
            self.become_repository()
        self.canary = self.path / "outside" / f"canary-{secrets.token_hex(6)}.txt"
        self.canary.parent.mkdir()
        self.canary_text = f"canary {secrets.token_hex(12)}"
        self.canary.write_text(f"{self.canary_text}\n")
        self.limit.watch(self._tree)

    def move(self, parent: Path) -> None:
        """Remove the tree, and make it again in another folder."""
        self.remove()
        self.ground["parent"] = parent
        self._make(parent)

    def become_repository(self) -> None:
        """Make the root a git repository with a commit, unless the user's folder is one."""
        self.is_repository = True
        if not (self.root / git_repo.FOLDER).exists():
            git_repo.commit(self.root, NOTES)

    def env(self, ours: Mapping[str, str]) -> dict[str, str]:
        """Return our environment with home, temporary and XDG folders moved into the world."""
        if not self._isolated:
            return dict(ours)
        home = Path(ours.get("HOME") or ours.get("USERPROFILE") or "~").expanduser()
        env = dict(ours)
        for name, below in KEPT_FROM_HOME.items():
            if name not in env and (home / below).exists():
                env[name] = str(home / below)
        env["HOME"] = env["USERPROFILE"] = str(self.home)
        for name in ("TMPDIR", "TEMP", "TMP"):
            env[name] = str(self.tmp)
        for name, below in {
            "XDG_CONFIG_HOME": ".config",
            "XDG_CACHE_HOME": ".cache",
            "XDG_DATA_HOME": ".local/share",
            "XDG_STATE_HOME": ".local/state",
        }.items():
            env[name] = str(self.home / below)
        env[SECRET] = self.secret
        return env

    def remove(self) -> None:
        """Remove the tree."""
        self.limit.forget(self._tree)
        self._tree.remove()
        if self.ground["parent"] == at_home():
            with contextlib.suppress(OSError):  # another run may use it
                at_home().rmdir()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


SKIPPED: Final = {".git", "node_modules", ".venv", "venv", "__pycache__", ".tox"}
"""Folders that are not searched for new files of a server."""

LOOKED_AT: Final = 10_000
"""Greatest number of entries read from a folder."""


def entries(folder: Path) -> frozenset[str] | None:
    """Return the names of all files below a folder; None if there are too many.

    Caches, packages, repositories and other hidden folders are skipped.
    """
    found: list[str] = []
    for place, below, names in os.walk(folder):
        below[:] = [name for name in below if name not in SKIPPED and not name.startswith(".")]
        if "pyvenv.cfg" in names:  # a virtual environment of any name
            below.clear()
        beside = os.path.relpath(place, folder)  # once for each folder: it is slow
        found += names if beside == "." else [f"{beside}{os.sep}{name}" for name in names]
        if len(found) + len(below) > LOOKED_AT:
            return None
    return frozenset(found)


def traces(folder: SafePath) -> dict[str, tuple[int, int]]:
    """Return the size in bytes and the modification time in ns of every file below a folder."""
    found = {}
    for file in folder.below():
        with contextlib.suppress(OSError):
            known = file.stat()
            if not stat.S_ISDIR(known.st_mode):
                found[str(file)] = (known.st_size, known.st_mtime_ns)
    return found


def abandoned(places: Iterable[Path] | None = None) -> list[Path]:
    """Return the temporary folders whose process was killed before it could remove them."""
    if sys.platform == "win32":
        return []
    found = []
    for place in places or {*map(Path, (*PLACES, tempfile.gettempdir())), at_home()}:
        with contextlib.suppress(OSError):
            found += [
                Path(entry.path)
                for entry in os.scandir(place)
                if HELD.fullmatch(entry.name)
                and entry.is_dir(follow_symlinks=False)
                and not _is_held(Path(entry.path))
            ]
    return found


def at_home() -> Path:
    """Return a folder below the user's home, for servers that refuse what everybody may write."""
    home = os.environ.get("HOME") or os.environ.get("USERPROFILE") or "~"
    return Path(home).expanduser() / ".cache" / "mcp-touchstone"


def private() -> Tree:
    """Make a temporary folder in which no server has business; its owner removes it."""
    return _made(Path(tempfile.gettempdir()))


@contextmanager
def held(parent: Path | None = None, limit: DiskLimit | None = None) -> Iterator[Path]:
    """Make a temporary folder, and remove it at the end.

    If the process is killed before that, ``abandoned`` finds the folder.

    Args:
        parent: the folder to make it in; None for the usual temporary folder.
        limit: counts what is written to it; None if nobody does.
    """
    tree = private() if parent is None else _made(parent)
    if limit is not None:
        limit.watch(tree)
    try:
        yield tree.path
    finally:
        if limit is not None:
            limit.forget(tree)
        tree.remove()


def _is_held(path: Path) -> bool:
    """Return whether a live process has locked a folder; assume so if that is unknown."""
    if sys.platform == "win32":
        return True
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _made(parent: Path) -> Tree:
    """Make a folder, lock it, and only then give it the name that `abandoned` looks for."""
    path = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=parent)).resolve()
    plain = path.name.removeprefix(f".{PREFIX}")
    if sys.platform != "win32":
        lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX)
            held = path.rename(path.with_name(f"{PREFIX}held_{plain}"))
            return Tree(held, Folder(lock, str(held)))
        os.close(lock)
    return Tree(path.rename(path.with_name(f"{PREFIX}{plain}")))


def _made_at_home() -> Tree:
    """Make a folder in that below the user's home, which another run may remove while it is empty.

    Raises:
        OSError: it cannot be made.
    """
    for _ in range(9):
        at_home().mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            return _made(at_home())
    return _made(at_home())


def clear(path: Path) -> None:
    """Remove a folder and everything in it; follow no link."""
    with contextlib.suppress(OSError):
        Tree(path, open_folder(path)).remove()


def _place() -> Path:
    for place in PLACES:
        if os.access(place, os.W_OK | os.X_OK):
            return Path(place)
    return Path(tempfile.gettempdir())
