"""A git repository with one commit, made without git: some servers require one as their root.

Written after git's own documentation of its formats (gitformat-index(5), gitrepository-layout(5)).
"""

import hashlib
import stat
import struct
import zlib
from collections.abc import Iterable
from typing import Final

from mcp_touchstone.runtime.safe_path import SafePath

FOLDER: Final = ".git"
WHO: Final = "mcp-touchstone <mcp-touchstone@localhost> 1700000000 +0000"

LARGEST: Final = 1 << 20
"""Greatest number of bytes read from an object."""

_FILE: Final = 0o100644
_ALIGNED: Final = 8
_HEADER: Final = struct.Struct(">4sII")
_KNOWN: Final = 62
"""Length of an index entry before its name, in bytes."""


def commit(folder: SafePath, names: Iterable[str], subject: str = "First commit") -> None:
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
    text = f"tree {tree.hex()}\nauthor {WHO}\ncommitter {WHO}\n\n{subject}\n"
    made = _keep(git, b"commit", text.encode())
    (git / "refs/heads/main").write_text(f"{made.hex()}\n")
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
        "[user]\n\tname = mcp-touchstone\n\temail = mcp-touchstone@localhost\n",
    )
    (git / "index").write_bytes(_index(folder, blobs))


def newest(folder: SafePath) -> str:
    """Return the name of the newest commit of a repository that `commit` made."""
    return (folder / FOLDER / "refs/heads/main").read_text().strip()


def keeps(folder: SafePath, data: bytes) -> bool:
    """Return whether the repository of a folder contains these bytes, unpacked."""
    return _object(folder / FOLDER, b"blob", data)[1].exists()


def staged(folder: SafePath) -> dict[str, bytes]:
    """Return the index of a repository: name -> mode and blob; empty if there is none.

    The cached file times are left out: reading a repository with git updates them.
    """
    try:
        data = (folder / FOLDER / "index").read_bytes()
    except OSError:
        return {}
    found, here = {}, _HEADER.size
    kind, version, count = _HEADER.unpack_from(data)
    if (kind, version) != (b"DIRC", 2):
        return {"": data}
    for _ in range(count):
        end = data.index(b"\0", here + _KNOWN)
        name = data[here + _KNOWN : end].decode("utf-8", "replace")
        found[name] = data[here + 24 : here + 28] + data[here + 40 : here + 60]
        here += (_KNOWN + len(data[here + _KNOWN : end])) // _ALIGNED * _ALIGNED + _ALIGNED
    return found


def unpacked(data: bytes) -> bytes:
    """Return the content of a repository object; empty if it is not an object."""
    try:
        return zlib.decompressobj().decompress(data, LARGEST)
    except zlib.error:
        return b""


def _object(git: SafePath, kind: bytes, data: bytes) -> tuple[bytes, SafePath]:
    """Return the name and the path of an object."""
    whole = kind + b" %d\0" % len(data) + data
    name = hashlib.sha1(whole, usedforsecurity=False).digest()
    return name, git / "objects" / name.hex()[:2] / name.hex()[2:]


def _keep(git: SafePath, kind: bytes, data: bytes) -> bytes:
    """Write an object and return its name."""
    name, path = _object(git, kind, data)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(kind + b" %d\0" % len(data) + data))
    return name


def _tree(git: SafePath, files: dict[tuple[str, ...], bytes]) -> bytes:
    rows = {parts[0]: (b"100644", blob) for parts, blob in files.items() if len(parts) == 1}
    for name in {parts[0] for parts in files if len(parts) > 1}:
        below = {parts[1:]: blob for parts, blob in files.items() if parts[0] == name}
        rows[name] = (b"40000", _tree(git, below))
    # git sorts folders as if their names ended with a slash
    order = sorted(rows, key=lambda name: name + "/" * (rows[name][0] == b"40000"))
    data = b"".join(rows[n][0] + b" " + n.encode() + b"\0" + rows[n][1] for n in order)
    return _keep(git, b"tree", data)


def _index(folder: SafePath, blobs: dict[str, bytes]) -> bytes:
    data = b"DIRC" + struct.pack(">II", 2, len(blobs))
    for name, blob in sorted(blobs.items()):
        known = (folder / name).stat()
        executable = 0o111 if known.st_mode & stat.S_IXUSR else 0
        numbers = (
            int(known.st_ctime),
            known.st_ctime_ns % 10**9,
            int(known.st_mtime),
            known.st_mtime_ns % 10**9,
            known.st_dev,
            known.st_ino,
            _FILE | executable,
            known.st_uid,
            known.st_gid,
            known.st_size,
        )
        raw = name.encode()
        row = b"".join(struct.pack(">I", n & 0xFFFFFFFF) for n in numbers)
        row += blob + struct.pack(">H", min(len(raw), 0xFFF)) + raw
        data += row + b"\0" * (_ALIGNED - len(row) % _ALIGNED)
    return data + hashlib.sha1(data, usedforsecurity=False).digest()
