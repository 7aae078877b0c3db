"""The throw-away tree a server is let loose on: a root, and a home of its own. Knows no MCP.

Some servers refuse roots below the temporary folder or the user's home, others allow those on top
of the root they were given; so the world lies outside both where the system has such a place.
"""

import contextlib
import itertools
import os
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Final, Self

PREFIX: Final = "mcp-touchstone-"

PLACES: Final = ("/dev/shm", "/Users/Shared")  # noqa: S108  (outside /tmp is the point)
"""Folders every user may write to that are neither temporary nor a home, by platform."""

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
"""The file of the root that paths point at."""

SECRET: Final = "MCP_TOUCHSTONE_API_KEY"  # noqa: S105  (its name, not its value)
"""Environment variable of the server that holds a credential nobody uses."""


class World:
    """A folder of our own with ``root``, ``home`` and ``tmp`` in it; removed at the end.

    Attributes:
        canary: a file beside the root, with a name and a content that stand nowhere else.
        secret: a random credential, in the server's environment.
    """

    def __init__(self, parent: Path | None = None, *, isolated: bool = True) -> None:
        """Make the tree below ``parent``, by default below the first fitting place.

        Not isolated, a server that lives in it keeps the user's home and temporary folder.
        """
        self._isolated = isolated
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=parent or _place())).resolve()
        self.root = self.path / "root"
        self.home = self.path / "home"
        self.tmp = self.path / "tmp"
        for folder in (self.root, self.home, self.tmp):
            folder.mkdir()
        for name, text in NOTES.items():
            file = self.root / name
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
        self.secret = f"sk-touchstone-{secrets.token_hex(12)}"
        self.canary = self.path / "outside" / f"canary-{secrets.token_hex(6)}.txt"
        self.canary.parent.mkdir()
        self.canary.write_text(f"canary {secrets.token_hex(12)}\n", encoding="utf-8")

    def env(self, ours: Mapping[str, str]) -> dict[str, str]:
        """Give our environment with home, temporary and XDG folders moved into the world."""
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
        """Remove the tree, also what the server made unreadable or very deep; follows no link.

        Folders are moved up before they are emptied: no path grows too long, no call too deep.
        """
        numbers = itertools.count()
        folders = [self.path]
        while folders:
            folder = folders.pop()
            with contextlib.suppress(OSError):
                folder.chmod(0o700)
                for entry in list(os.scandir(folder)):
                    if not entry.is_dir(follow_symlinks=False):
                        _unlink(entry)
                        continue
                    with contextlib.suppress(OSError):
                        Path(entry.path).chmod(0o700)
                        moved = self.path / f"{next(numbers)}-{self.path.name}"
                        folders.append(Path(entry.path).rename(moved))
                if folder != self.path:
                    folder.rmdir()
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def __enter__(self) -> Self:
        """Use as a context manager."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the tree."""
        self.remove()


def traces(folder: Path) -> dict[str, tuple[int, int]]:
    """Give size in bytes and time of the last change in ns of every file below a folder."""
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                file = Path(place, name)
                known = file.lstat()
                found[str(file)] = (known.st_size, known.st_mtime_ns)
    return found


def _unlink(entry: os.DirEntry[str]) -> None:
    try:
        os.unlink(entry.path)  # noqa: PTH108  (a DirEntry is at hand)
    except PermissionError:
        with contextlib.suppress(OSError):
            if not entry.is_symlink():
                Path(entry.path).chmod(0o600)
            os.unlink(entry.path)  # noqa: PTH108
    except OSError:
        pass


def _place() -> Path:
    for place in PLACES:
        if os.access(place, os.W_OK | os.X_OK):
            return Path(place)
    return Path(tempfile.gettempdir())
