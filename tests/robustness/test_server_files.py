"""Files of a server are reached through ``SafePath`` only, which follows no link."""

import ast
import os
import shutil
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest

import mcp_touchstone
from mcp_touchstone.catalog.loader import home
from mcp_touchstone.runtime.safe_path import Tree

PACKAGES: Final = (
    *("security", "bindings", "golden", "engine", "runtime", "discovery", "judging"),
)

FUNCTIONS: Final = frozenset(
    {
        "access",
        "chmod",
        "chown",
        "close",
        "copyfile",
        "fchmod",
        "fsencode",
        "link",
        "listdir",
        "lstat",
        "makedirs",
        "mkdir",
        "mkfifo",
        "mknod",
        "open",
        "read",
        "readlink",
        "realpath",
        "remove",
        "removedirs",
        "rename",
        "renames",
        "replace",
        "rmdir",
        "scandir",
        "stat",
        "symlink",
        "truncate",
        "unlink",
        "utime",
        "walk",
        "write",
        "exists",
        "isdir",
        "isfile",
        "islink",
        "lexists",
        "getsize",
    }
)
"""Functions of ``os`` and ``os.path`` that take a path or a descriptor."""

MODULES: Final = frozenset({"shutil", "glob", "tempfile", "io", "fileinput", "mmap"})
"""Modules whose functions take paths."""

ALLOWED: Final[dict[str, dict[str, int]]] = {
    # the door itself
    "runtime/open_folder.py": {
        "Path": 1,
        "open": 1,
        "os.chmod": 2,
        "os.close": 4,
        "os.fchmod": 1,
        "os.fsencode": 4,
        "os.link": 1,
        "os.lstat": 1,
        "os.mkdir": 1,
        "os.mkfifo": 1,
        "os.open": 9,
        "os.read": 1,
        "os.readlink": 1,
        "os.replace": 1,
        "os.rmdir": 1,
        "os.scandir": 2,
        "os.stat": 2,
        "os.symlink": 1,
        "os.unlink": 1,
        "os.utime": 1,
        "os.write": 3,
    },
    # the folder of the tree is removed; links outside the tree are computed, not followed
    "runtime/safe_path.py": {"Path": 1, "os.lstat": 1, "os.readlink": 2, "os.rmdir": 2},
    # open files of processes, by their descriptors
    "runtime/disk_limit.py": {"Path": 1, "glob.iglob": 1},
    # files that the user names, and those found beside them
    "runtime/input_file.py": {"Path": 1},
    # the list of forms of secrets, which is ours
    "runtime/secrets.py": {"Path": 1},
    # the folder of the world is made and found in a folder that no server can change; the
    # user's working folder is listed, and its links are not entered
    "runtime/scratch.py": {
        "Path": 23,
        "os.access": 1,
        "os.close": 2,
        "os.open": 2,
        "os.scandir": 1,
        "os.walk": 1,
        "tempfile.gettempdir": 3,
        "tempfile.mkdtemp": 1,
    },
    # names the folder that throw-away folders are made in, for runtime/scratch.py
    "engine/process_pool.py": {"Path": 1},
    # a configuration of the user, which no server runs beside
    "runtime/own_file.py": {
        "Path": 2,
        "open": 1,
        "os.close": 1,
        "os.open": 2,
        "os.path.realpath": 1,
        "os.utime": 1,
        "shutil.copystat": 1,
    },
    # the size of the user's own folder is taken before any server is started
    "runtime/copy_root.py": {"Path": 4, "os.walk": 1},
    # files of the suite
    "security/attack_session.py": {"Path": 1},
    "security/documents.py": {"Path": 1, "io.BytesIO": 1},
    "security/fixture_entries.py": {"Path": 1},
    "security/fixture_tree.py": {"Path": 1},
    "security/payload.py": {"Path": 2},
    "engine/attack_setup.py": {"Path": 1},
    "security/env_reads.py": {"Path": 1},
    # runs in the server, and writes in the folder that it is in
    "security/preload/python.py": {"os.close": 1, "os.open": 1, "os.write": 1},
    # a descriptor of inotify, and the handle of an open folder
    "runtime/inotify.py": {"os.close": 1, "os.fsencode": 1, "os.read": 1},
    # files of the system
    "security/resource_usage.py": {"Path": 1},
    "security/watch.py": {"Path": 3},
    "security_suite/containment/urls.py": {"Path": 1},
    # whether a word of the user's command names a file or a folder
    "runtime/word_paths.py": {"Path": 2, "os.path.isdir": 1, "os.path.isfile": 1},
    # recordings in the user's folder
    "golden/recorder.py": {"Path": 8},
    "golden/lock_file.py": {"Path": 3},
    "golden/store.py": {"Path": 4},
    # the program of the server and its packages: in folders of the user, or through the door
    "runtime/seen_files.py": {"Path": 16},
    "discovery/sdk.py": {"Path": 34},
    "discovery/program_sdk.py": {"Path": 14, "io.BytesIO": 1},
    "discovery/origin.py": {"Path": 12},
    "discovery/packages.py": {"Path": 5},
    # names of the user's folders, which are given to a process or searched for new files
    "engine/launcher.py": {"Path": 4},
    "engine/runner.py": {"Path": 2},
    "engine/stages.py": {"Path": 2},
    "judging/run_settings.py": {"Path": 2},
}
"""Module -> what it may use, and how often; a comment says why it reaches no file of a server."""


def used(path: Path) -> Counter[str]:
    """Count the names by which a module can reach a file without a ``SafePath``."""
    found: Counter[str] = Counter()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and node.id in {"open", "Path"}:
            found[node.id] += not isinstance(node.ctx, ast.Store)
        elif isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value)
            if (owner in {"os", "os.path"} and node.attr in FUNCTIONS) or owner in MODULES:
                found[f"{owner}.{node.attr}"] += 1
        elif isinstance(node, ast.ImportFrom) and (node.module in MODULES or node.module == "os"):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def modules() -> dict[str, Path]:
    package = Path(mcp_touchstone.__file__).parent
    found = {
        path.relative_to(package).as_posix(): path
        for name in PACKAGES
        for path in (package / name).rglob("*.py")
    }
    for suite in ("conformance", "security_suite"):
        found |= {p.relative_to(home()).as_posix(): p for p in (home() / suite).rglob("*.py")}
    return found


def test_modules_reach_files_only_as_the_table_says() -> None:
    found = {name: dict(used(path)) for name, path in modules().items()}

    assert {name: calls for name, calls in found.items() if calls} == ALLOWED


def test_search_finds_each_kind_of_access(tmp_path: Path) -> None:
    lines = (
        "open(place)",
        "Path(place).read_bytes()",
        "os.unlink(place)",
        "shutil.rmtree(place)",
        "from os import scandir",
        "from glob import glob",
        "os.path.realpath(place)",
    )
    for line in lines:
        (tmp_path / "module.py").write_text(line, encoding="utf-8")
        assert used(tmp_path / "module.py"), line


def test_no_function_of_the_system_takes_a_safe_path(tmp_path: Path) -> None:
    place: Any = Tree(tmp_path).top / "file"
    place.write_text("x")

    for function in (open, Path, os.fspath, os.lstat, shutil.rmtree, os.chdir):
        with pytest.raises(TypeError):
            function(place)
