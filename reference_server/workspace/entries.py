"""Values of the workspace: files that were read, names in a directory, planned changes."""

from __future__ import annotations

from .place import kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os

    from .paths import Location, Parts


class Snapshot:
    """A file as it was at one moment."""

    def __init__(self, at: Location, data: bytes) -> None:
        self.at = at
        self.path = at.path
        self.data = data
        self._sha256: str | None = None

    @property
    def sha256(self) -> str:
        if self._sha256 is None:
            self._sha256 = sha256(self.data)
        return self._sha256


class Entry:
    """A name in a directory.

    Attributes:
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
        before: Its current bytes; None if the edit creates the file.
        after: Its new bytes; None if the edit removes the file.
    """

    def __init__(self, at: Location, before: bytes | None, after: bytes | None) -> None:
        self.at = at
        self.path = at.path
        self.parts: Parts = at.parts
        self.before = before
        self.after = after


def sha256(data: bytes) -> str:
    import hashlib  # noqa: PLC0415 - loading OpenSSL takes as long as starting this server

    return hashlib.sha256(data).hexdigest()
