"""Values of the workspace: files that were read, names in a directory, planned changes."""

from __future__ import annotations

from .place import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from .paths import Location, Parts


class Snapshot:
    """A file as it was at one moment.

    Attributes:
        path: The path to it, with forward slashes.
        data: All its bytes.
    """

    def __init__(self, at: Location, data: bytes) -> None:
        self.at = at
        self.path = at.path
        self.data = data
        self._sha256: str | None = None

    @property
    def sha256(self) -> str:
        """SHA-256 of its bytes, in hex."""
        if self._sha256 is None:
            self._sha256 = sha256(self.data)
        return self._sha256


class Entry:
    """A name in a directory.

    Attributes:
        path: The path to it, with forward slashes.
        name: The last component of the path.
        kind: ``file``, ``directory``, ``link`` or ``other``.
        size: In bytes.
        mtime_ns: Time of its last change, in nanoseconds since 1970.
        look: Differs from an earlier value if the file may have changed.
    """

    def __init__(self, at: Location, found: os.stat_result) -> None:
        self.at = at
        self.path = at.path
        self.name = at.path.rpartition("/")[2]
        self.kind = kind_of(found.st_mode)
        self.size = found.st_size
        self.mtime_ns = found.st_mtime_ns
        self.look = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class Change:
    """The change of one file in an edit.

    Attributes:
        path: The path to it, with forward slashes.
        before: Its current bytes; None if the edit creates the file.
        after: Its new bytes; None if the edit removes the file.
        parts: The parts of its path below the root.
    """

    def __init__(self, at: Location, before: bytes | None, after: bytes | None) -> None:
        self.at = at
        self.path = at.path
        self.parts: Parts = at.parts
        self.before = before
        self.after = after


def sha256(data: bytes) -> str:
    """Return the SHA-256 of bytes, in hex."""
    import hashlib  # noqa: PLC0415 - loading OpenSSL takes as long as starting this server

    return hashlib.sha256(data).hexdigest()
