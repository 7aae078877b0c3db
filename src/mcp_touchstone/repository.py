"""A folder made a git repository with one commit, without git: what some servers ask of a root.

Written after git's own documentation of its formats (gitformat-index(5), gitrepository-layout(5)).
"""

import hashlib
import stat
import struct
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

FOLDER: Final = ".git"
WHO: Final = "mcp-touchstone <mcp-touchstone@localhost> 1700000000 +0000"

_FILE: Final = 0o100644
_ALIGNED: Final = 8


def commit(folder: Path, names: Iterable[str], subject: str = "First commit") -> None:
    """Make a folder a repository whose only commit holds some of its files.

    Args:
        folder: no repository yet.
        names: paths of files below it, with forward slashes.
        subject: the message of the commit, one line.
    """
    git = folder / FOLDER
    for below in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks"):
        (git / below).mkdir(parents=True)
    blobs = {name: _keep(git, b"blob", (folder / name).read_bytes()) for name in sorted(names)}
    tree = _tree(git, {tuple(name.split("/")): blob for name, blob in blobs.items()})
    told = f"tree {tree.hex()}\nauthor {WHO}\ncommitter {WHO}\n\n{subject}\n"
    made = _keep(git, b"commit", told.encode())
    (git / "refs/heads/main").write_text(f"{made.hex()}\n", encoding="ascii")
    (git / "HEAD").write_text("ref: refs/heads/main\n", encoding="ascii")
    (git / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
        "[user]\n\tname = mcp-touchstone\n\temail = mcp-touchstone@localhost\n",
        encoding="ascii",
    )
    (git / "index").write_bytes(_index(folder, blobs))


def _keep(git: Path, kind: bytes, data: bytes) -> bytes:
    """Write an object and give its name."""
    whole = kind + b" %d\0" % len(data) + data
    name = hashlib.sha1(whole, usedforsecurity=False).digest()
    path = git / "objects" / name.hex()[:2] / name.hex()[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(whole))
    return name


def _tree(git: Path, files: dict[tuple[str, ...], bytes]) -> bytes:
    rows = {parts[0]: (b"100644", blob) for parts, blob in files.items() if len(parts) == 1}
    for name in {parts[0] for parts in files if len(parts) > 1}:
        below = {parts[1:]: blob for parts, blob in files.items() if parts[0] == name}
        rows[name] = (b"40000", _tree(git, below))
    # folders stand as if their names ended with a slash
    order = sorted(rows, key=lambda name: name + "/" * (rows[name][0] == b"40000"))
    data = b"".join(rows[n][0] + b" " + n.encode() + b"\0" + rows[n][1] for n in order)
    return _keep(git, b"tree", data)


def _index(folder: Path, blobs: dict[str, bytes]) -> bytes:
    data = b"DIRC" + struct.pack(">II", 2, len(blobs))
    for name, blob in sorted(blobs.items()):
        known = (folder / name).stat()
        executable = 0o111 if known.st_mode & stat.S_IXUSR else 0
        numbers = (
            int(known.st_ctime), known.st_ctime_ns % 10**9, int(known.st_mtime),
            known.st_mtime_ns % 10**9, known.st_dev, known.st_ino, _FILE | executable,
            known.st_uid, known.st_gid, known.st_size,
        )  # fmt: skip
        raw = name.encode()
        row = b"".join(struct.pack(">I", n & 0xFFFFFFFF) for n in numbers)
        row += blob + struct.pack(">H", min(len(raw), 0xFFF)) + raw
        data += row + b"\0" * (_ALIGNED - len(row) % _ALIGNED)
    return data + hashlib.sha1(data, usedforsecurity=False).digest()
