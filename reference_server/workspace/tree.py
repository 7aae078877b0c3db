"""The files below the roots, under the policy: the one way any tool reaches a disk."""

from __future__ import annotations

import os
import stat

from .boundary import Boundary
from .edit import Edit
from .entries import Entry, Snapshot
from .journal import recover
from .names import Names
from .paths import cut, is_readable
from .place import Root
from .refusals import (
    IsDirectory,
    NotFound,
    NotRegular,
    OutsideClientRoots,
    OutsideRoot,
    Refusal,
    TooLarge,
    refusal,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..operation.log import Log
    from ..settings import Settings
    from .edit import Change
    from .paths import Parts

_CHUNK = 256 * 1024


class Workspace:
    """What may be read and written.

    With several roots a relative path means the first root that has such a file; a new file goes
    to the first root.

    Args:
        settings: The operator's decisions.
        log: For the audit of writes.
    """

    def __init__(self, settings: Settings, log: Log) -> None:
        self.settings = settings
        self.log = log
        self.roots = [Root(path) for path in settings.roots]
        self.names = Names(settings.deny, settings.deny_writes, settings.allow)
        self._boundary = Boundary(None)
        self._listeners: list[Callable[[list[Change]], None]] = []
        if self.writable:
            self._recover()

    def _recover(self) -> None:
        for root in self.roots:
            try:
                with root.writing():
                    count = recover(root, self.names)
            except OSError:  # not ours to write in, or in use: whoever writes there recovers
                continue
            if count:
                self.log.warning("recovered", edits=count)

    @property
    def writable(self) -> bool:
        """Whether this server writes at all."""
        return not self.settings.read_only

    def close(self) -> None:
        """Let go of the roots."""
        for root in self.roots:
            root.close()

    # --- reading

    def read(
        self, path: str, *, cwd: str = "", check: Callable[[], None] | None = None
    ) -> Snapshot:
        """Read a whole file.

        Args:
            path: Relative to ``cwd``, or absolute and below a root.
            cwd: Directory below a root.
            check: Called between chunks; what it raises ends the reading.

        Raises:
            Refusal: One of its kinds.
        """
        found = self.find(path, cwd=cwd, check=check)
        if found is None:
            raise NotFound(path)
        return found

    def find(
        self, path: str, *, cwd: str = "", check: Callable[[], None] | None = None
    ) -> Snapshot | None:
        """Read a whole file, or give None if there is nothing of that name.

        Raises:
            Refusal: As ``read``.
        """
        for index, parts in self.candidates(path, cwd):
            if not parts:
                raise IsDirectory(path or ".")
            self.names.check_allowed(parts)
            try:
                descriptor = self.roots[index].open_file(parts)
            except (FileNotFoundError, UnicodeEncodeError):
                continue  # the second: a name this file system has no bytes for
            except OSError as error:
                raise refusal(error, path) from None
            try:
                data, mode = self._read_open(descriptor, path, check)
            except OSError as error:
                raise refusal(error, path) from None
            finally:
                os.close(descriptor)
            return Snapshot(index, parts, data, mode)
        return None

    def _read_open(
        self, descriptor: int, path: str, check: Callable[[], None] | None
    ) -> tuple[bytes, int]:
        found = os.fstat(descriptor)
        if stat.S_ISDIR(found.st_mode):
            raise IsDirectory(path)
        if not stat.S_ISREG(found.st_mode):
            raise NotRegular(path)
        limit = self.settings.max_file_size
        if found.st_size > limit:
            raise TooLarge(path, f"The file has {found.st_size} bytes; the limit is {limit}.")
        chunks: list[bytes] = []
        size = 0
        while chunk := os.read(descriptor, _CHUNK):
            if check:
                check()
            chunks.append(chunk)
            size += len(chunk)
            if size > limit:  # it grew after its size was looked at
                raise TooLarge(path, f"The file has more than {limit} bytes, which is the limit.")
        return b"".join(chunks), stat.S_IMODE(found.st_mode)

    def look(self, path: str) -> Entry | None:
        """Look at a file without reading it; None if ``read`` would refuse it."""
        try:
            for index, parts in self.candidates(path):
                self.names.check_allowed(parts)
                try:
                    with self.roots[index].place(parts[:-1]) as place:
                        entry = Entry(parts, place.lstat(parts[-1]))
                except (OSError, UnicodeEncodeError):
                    continue
                fits = entry.kind == "file" and entry.size <= self.settings.max_file_size
                return entry if fits else None
        except Refusal:
            return None
        return None

    def entries(self, path: str = "", *, cwd: str = "") -> list[Entry]:
        """Give what a directory holds, by name; what is denied is left out.

        Raises:
            Refusal: One of its kinds.
        """
        for index, parts in self.candidates(path, cwd, listing=True):
            try:
                return self._entries(index, parts)
            except (FileNotFoundError, UnicodeEncodeError):
                continue
            except OSError as error:
                raise refusal(error, path or ".") from None
        raise NotFound(path, "There is no such directory below the root.")

    def _entries(self, index: int, parts: Parts) -> list[Entry]:
        root = self.roots[index]
        found = []
        with root.place(parts) as place:
            for name in place.names():
                inside = (*parts, name)
                if (
                    not is_readable(name)
                    or self.names.denies(name, folds=root.folds)
                    or not self._boundary.shows(index, inside)
                ):
                    continue
                try:
                    name.encode()
                    entry = Entry(inside, place.lstat(name))
                except (OSError, UnicodeEncodeError):  # gone meanwhile, or no name in JSON
                    continue
                if entry.kind != "file" or self.names.allows(inside):
                    found.append(entry)
        return found

    def walk(
        self, path: str = "", *, cwd: str = "", check: Callable[[], None] | None = None
    ) -> Iterator[Entry]:
        """Give the files below a directory in the order of their paths; no link is followed.

        A file that a root before has under the same path is left out, as no path reaches it.

        Raises:
            Refusal: The directory itself is refused.
        """
        seen: set[str] = set()
        starts = list(self.candidates(path, cwd, listing=True))
        several = len(starts) > 1
        found = False
        nothing: Refusal = NotFound(path, "There is no such directory below the root.")
        for index, parts in starts:
            try:
                top = self._entries(index, parts)
            except (FileNotFoundError, UnicodeEncodeError):
                continue
            except NotADirectoryError as error:
                nothing = refusal(error, path)
                continue
            except OSError as error:
                raise refusal(error, path or ".") from None
            found = True
            for entry in self._files(index, top, check):
                if entry.path not in seen:
                    yield entry
                if several:
                    seen.add(entry.path)
        if not found:
            raise nothing

    def _files(
        self, index: int, entries: list[Entry], check: Callable[[], None] | None
    ) -> Iterator[Entry]:
        ahead = entries[::-1]
        while ahead:
            if check:
                check()
            entry = ahead.pop()
            if entry.kind == "file":
                yield entry
            elif entry.kind == "directory":
                try:
                    ahead.extend(self._entries(index, entry.parts)[::-1])
                except OSError:  # gone, or not ours to look into
                    continue

    # --- writing

    def edit(self, who: str) -> Edit:
        """Begin an edit; nothing happens until its ``commit``.

        Args:
            who: For the audit.
        """
        return Edit(self, who)

    def on_change(self, listener: Callable[[list[Change]], None]) -> None:
        """Have a function called after each commit, on the thread that made it."""
        self._listeners.append(listener)

    def changed(self, changes: list[Change]) -> None:
        """Tell the listeners; for ``Edit``."""
        for listener in self._listeners:
            listener(changes)

    # --- which root

    def narrow(self, uris: Iterable[str] | None) -> None:
        """Take the client's roots: what is below none of them is refused from now on.

        They narrow our roots and never widen them. None takes the boundary away.
        """
        self._boundary = Boundary.of(uris, self.roots)

    def contains(self, index: int, parts: Parts) -> bool:
        """Tell whether the client's roots have this place; without any, they all do."""
        return self._boundary.contains(index, parts)

    def candidates(
        self, path: str, cwd: str = "", *, listing: bool = False, writing: bool = False
    ) -> list[tuple[int, Parts]]:
        """Give the places a path may mean, as index of a root and parts, in order.

        Raises:
            Refusal: The path is not one, leads out, or holds a denied name.
        """
        index, parts = self._cut(path)
        if index is None and cwd:
            index, start = self._cut(cwd)
            parts = (*start, *parts)
        indexes = range(len(self.roots)) if index is None else (index,)
        found = []
        refused: Refusal | None = None
        for each in indexes:
            self.names.check(parts, folds=self.roots[each].folds, writing=writing)
            inside = self._boundary.shows if listing else self._boundary.contains
            if inside(each, parts):
                found.append((each, parts))
            else:
                refused = OutsideClientRoots(path)
        if refused and not found:
            raise refused
        return found

    def _cut(self, path: str) -> tuple[int | None, Parts]:
        spellings = [
            (index, parts) for index, root in enumerate(self.roots) for parts in root.spellings
        ]
        try:
            which, parts = cut(path, [parts for _, parts in spellings])
        except OutsideRoot as error:
            raise OutsideRoot(path, error.message) from None
        return (None if which is None else spellings[which][0]), parts
