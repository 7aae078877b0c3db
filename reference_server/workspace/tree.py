"""The files below the roots, under the policy. All tools access the disk through this module."""

from __future__ import annotations

import os
import stat
from contextlib import suppress

from .edit import Edit
from .entries import Change, Entry, Snapshot
from .paths import is_readable
from .plans import open_plans
from .policy import Policy
from .recovery import recover
from .refusals import IsDirectory, NotFound, NotRegular, Refusal, TooLarge, refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from ..operation.log import Log
    from ..settings import Settings
    from .paths import Location
    from .recovery import Recovered

_CHUNK = 256 * 1024


class Workspace:
    """The files that a client may read and write.

    Attributes:
        policy: Resolves paths to locations and checks whether a client may access them.
    """

    def __init__(self, settings: Settings, log: Log) -> None:
        self.settings = settings
        self.log = log
        self.policy = Policy(settings)
        self._listeners: list[Callable[[list[Change]], None]] = []
        if not settings.read_only:
            self._recover()

    def _recover(self) -> None:
        with suppress(OSError), open_plans(self.settings) as plans:
            for index, root in enumerate(self.policy.roots):
                with suppress(OSError), root.writing():  # in use: the other server recovers then
                    for found in recover(root, plans, self.policy.names, self.settings):
                        self._report(index, found)

    def _report(self, index: int, found: Recovered) -> None:
        if found.refused:  # as it is: masked it could not be found
            self.log.record("warning", "plan_refused", {"file": found.refused})
            return

        def path(parts: Iterable[str]) -> str:
            return self.policy.locate(index, tuple(parts)).path

        changes = [
            {"path": path(entry["parts"])}
            | {when: entry[when] and entry[when][0] for when in ("before", "after")}
            for entry in found.done
        ]
        if changes:
            self.log.audit(found.plan["who"], found.plan["request_id"], changes)
        facts = {"files": len(changes), "lost": [path(parts) for parts in found.lost]}
        self.log.record("warning", "recovered", facts)

    def close(self) -> None:
        for root in self.policy.roots:
            root.close()

    # --- reading

    def read(
        self, path: str, *, cwd: str = "", check: Callable[[], None] | None = None
    ) -> Snapshot:
        """Read a whole file.

        Args:
            check: Called between chunks; its exception ends the read.
        """
        found = self.find(path, cwd=cwd, check=check)
        if found is None:
            raise NotFound(path)
        return found

    def find(
        self, path: str, *, cwd: str = "", check: Callable[[], None] | None = None
    ) -> Snapshot | None:
        """Read a whole file; return None if it does not exist."""
        for at in self.policy.candidates(path, cwd):
            if not at.parts:
                raise IsDirectory(path or ".")
            self.policy.check_allowed(at)
            try:
                descriptor = self.policy.roots[at.root].open_file(at.parts)
            except (FileNotFoundError, UnicodeEncodeError):
                continue  # UnicodeEncodeError: the file system cannot encode the name
            except OSError as error:
                raise refusal(error, path) from None
            try:
                data = self._read_open(descriptor, path, check)
            except OSError as error:
                raise refusal(error, path) from None
            finally:
                os.close(descriptor)
            return Snapshot(at, data)
        return None

    def _read_open(self, descriptor: int, path: str, check: Callable[[], None] | None) -> bytes:
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
            if size > limit:  # it grew after fstat
                raise TooLarge(path, f"The file has more than {limit} bytes, which is the limit.")
        return b"".join(chunks)

    def look(self, path: str) -> tuple[int, ...] | None:
        """Return ``Entry.look`` of a file; None if ``read`` would refuse it."""
        try:
            for at in self.policy.candidates(path):
                if not at.parts:
                    return None
                self.policy.check_allowed(at)
                try:
                    with self.policy.roots[at.root].place(at.parts[:-1]) as place:
                        entry = Entry(at, place.lstat(at.parts[-1]))
                except (OSError, UnicodeEncodeError):
                    continue
                fits = entry.kind == "file" and entry.size <= self.settings.max_file_size
                return entry.look if fits else None
        except Refusal:
            return None
        return None

    def directory(self, path: str = "", *, cwd: str = "") -> tuple[str, list[Entry]]:
        """Return the path of a directory and its entries, sorted by name, without denied ones.

        If there are several roots, the path ``""`` is a directory that contains the roots.
        """
        places = self.policy.candidates(path, cwd, listing=True)
        if len(places) > 1 and not places[0].parts:
            return "", [self._entry_of_root(at) for at in places]
        for at in places:
            try:
                return at.path, self._entries(at)
            except (FileNotFoundError, UnicodeEncodeError):
                continue
            except OSError as error:
                raise refusal(error, path or ".") from None
        raise NotFound(path, "There is no such directory below the root.")

    def entries(self, path: str = "", *, cwd: str = "") -> list[Entry]:
        return self.directory(path, cwd=cwd)[1]

    def _entry_of_root(self, at: Location) -> Entry:
        with self.policy.roots[at.root].place(()) as place:
            return Entry(at, place.lstat("."))

    def _entries(self, directory: Location) -> list[Entry]:
        root = self.policy.roots[directory.root]
        found = []
        with root.place(directory.parts) as place:
            for name in place.names():
                inside = self.policy.locate(directory.root, (*directory.parts, name))
                if not is_readable(name) or not self.policy.shows(inside):
                    continue
                try:
                    name.encode()
                    entry = Entry(inside, place.lstat(name))
                except (OSError, UnicodeEncodeError):  # removed meanwhile, or not valid in JSON
                    continue
                if entry.kind != "file" or self.policy.names.allows(inside.parts):
                    found.append(entry)
        return found

    def walk(
        self, path: str = "", *, cwd: str = "", check: Callable[[], None] | None = None
    ) -> Iterator[Entry]:
        """Yield the files below a directory in the order of their paths, without following links.

        If several roots have such a directory, the files are grouped by root.
        """
        found = False
        nothing: Refusal = NotFound(path, "There is no such directory below the root.")
        for at in self.policy.candidates(path, cwd, listing=True):
            try:
                top = self._entries(at)
            except (FileNotFoundError, UnicodeEncodeError):
                continue
            except NotADirectoryError as error:
                nothing = refusal(error, path)
                continue
            except OSError as error:
                raise refusal(error, path or ".") from None
            found = True
            yield from self._files(top, check)
        if not found:
            raise nothing

    def _files(self, entries: list[Entry], check: Callable[[], None] | None) -> Iterator[Entry]:
        ahead = entries[::-1]
        while ahead:
            if check:
                check()
            entry = ahead.pop()
            if entry.kind == "file":
                yield entry
            elif entry.kind == "directory":
                try:
                    ahead.extend(self._entries(entry.at)[::-1])
                except OSError:  # removed meanwhile, or not permitted
                    continue

    # --- writing

    def edit(self, who: str, request_id: str = "") -> Edit:
        """Begin an edit; nothing is written until its ``commit``."""
        return Edit(
            self.settings,
            self.policy,
            self.find,
            self.log,
            self._tell,
            who=who,
            request_id=request_id,
        )

    def on_change(self, listener: Callable[[list[Change]], None]) -> None:
        """Call a function after each commit, on the thread that made it."""
        self._listeners.append(listener)

    def _tell(self, changes: list[Change]) -> None:
        for listener in self._listeners:
            listener(changes)
