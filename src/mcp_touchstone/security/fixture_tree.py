"""The trees that payloads refer to, built from ``fixtures.toml`` around the root of a world.

The root, the folders around it and a home are in one temporary parent folder. Each file that must
not be read holds a canary. Each folder that must not be listed holds a file with a random name.
"""

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.bindings.canary import Area, Canaries, Canary
from mcp_touchstone.runtime import git_repo
from mcp_touchstone.runtime.open_folder import ReplacedError
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.runtime.scratch import World
from mcp_touchstone.security import documents
from mcp_touchstone.security.fixture_entries import Entries, names, read
from mcp_touchstone.security.payload import CANARY, Payload, filled
from mcp_touchstone.security.tree_snapshot import (
    SCAN,
    Fact,
    TreeChange,
    changes,
    fact,
    facts,
    take,
)
from mcp_touchstone.target.deny_list import DEFAULT, Denied

DENYING: Final = "denied"
"""Id of the fixture with the denied files and folders."""

ALWAYS: Final = ("base", "siblings", "links")
"""Ids of the fixtures that every payload may rely on."""

GIT: Final = ".git"
"""A repository at the top of the root; the server may use it if the root began with one."""

VARIABLE: Final = "MCP_CANARY_SECRET"
"""Environment variable of the server that holds a canary."""

CONTROL: Final = "control.txt"
"""A file of the root that the server may read."""

_BYTES: Final[Mapping[str, bytes]] = {
    "every-value": bytes(range(256)) * 4,
    "latin-1": b"caf\xe9",
    "utf-16": b"\xff\xfe" + "utf-16 control\n".encode("utf-16-le"),
    "nul": b"a\x00b",
}
SEARCHED: Final = 1 << 30
"""Greatest number of bytes in the root that are searched for canaries at a time."""

OVERLAP: Final = 4096
"""Bytes of a file that are searched twice: a canary may lie across two pieces."""

PLANTED: Final = 1_000_000_000
"""Modification time of planted files, in seconds since 1970.

It is long past, so a write in the same tick of the clock changes it.
"""


TreeState = tuple[dict[str, Fact], int, tuple[str, ...], dict[str, str], bool]
"""Facts by path, then the data of the ``FixtureTree`` that an attack may change."""


class FixtureTree(World):
    """A world with canaries in it.

    Attributes:
        names: values of the names in braces of a payload.
        denied: the deny list that trees and payloads refer to.
        made: shell lines that recreate the files an attack added outside, for reproductions.
    """

    def __init__(
        self,
        fixtures: Path,
        wanted: Iterable[str] = ALWAYS,
        denied: Denied = DEFAULT,
        *,
        suffixes: Iterable[str] = (),
        folders: Iterable[str] = (),
        **ground: Any,
    ) -> None:
        """Build the trees of a fixture file in a new folder.

        Args:
            wanted: ids of the fixtures to build, in this order.
            suffixes: suffixes of files; each text file gets a document beside it with each suffix.
            folders: folders of the root that hold the plain files and links of the root too.
            ground: keyword arguments of ``World``.
        """
        super().__init__(**ground)
        self.denied = denied
        # each look asks for hundreds of paths, and nearly all of them are the same
        self._is_denied = lru_cache(4096)(
            lambda path: denied.lists(path.split("/")[1:], writing=True)
        )
        self.documents = documents.load(fixtures.parent)
        self._own_git = (self.root / GIT).exists()
        self._wanted = tuple(wanted)
        self.made: list[str] = []
        self.canaries = Canaries()
        self.outside = self.path / "outside"
        self.sibling = self.path / f"{self.root.name}Evil"
        self._planted: dict[str, bytes | str] = {}
        self._kept: dict[str, Fact] = {}
        self._seen: dict[str, Fact] = {}
        self._places = {
            "outside": self.outside,
            "sibling": self.sibling,
            "base": self.path,
            "home": self.home,
            "upper": self.root.with_name(self.root.name.upper()),
        }
        self.names = names(self.root, self.outside, self.sibling)
        self._entries = Entries(self.names, denied, tuple(sorted(suffixes)), tuple(sorted(folders)))
        self.variable = self.canaries.plant(VARIABLE, Area.ENVIRONMENT)
        known = read(fixtures)
        for name in self._wanted:
            for entry in known[name]:
                for one in self._entries.expanded(entry):
                    self._build(one)
        self.control = self._control()
        self._plant_names()
        if self.is_repository:
            self._commit_outside()
        self._denies = DENYING in self._wanted
        self._before: dict[str, Fact] = {}
        self._before = self._forbidden()

    def env(self, ours: Mapping[str, str]) -> dict[str, str]:
        """Return the environment of a world, with a canary in it."""
        return {**super().env(ours), VARIABLE: self.variable.token}

    # --- building

    def each(self, payloads: Iterable[Payload]) -> Iterator[tuple[Payload, str]]:
        """Yield payloads with their texts on these trees; a payload may have several or none."""
        for payload in payloads:
            for text in filled(payload, self.names, self.denied):
                yield payload, text

    def _build(self, entry: Mapping[str, Any]) -> None:
        kind, where = entry["type"], entry.get("at", "")
        if where == "env" or kind == "name-canary":
            return
        place = self._places.get(where, self.root) / self._entries.filled(entry["path"])
        with contextlib.suppress(FileExistsError, ReplacedError):
            place.parent.mkdir(parents=True, exist_ok=True)
        if place.exists() or self._is_own(place) or not place.parent.is_dir():
            return  # two names of a deny list may need a file and a folder at the same path
        if kind in {"canary", "file"}:
            self._file(place, entry, kind)
        elif kind == "symlink":
            self._link(place, self._entries.filled(entry["target"]))
        elif kind == "symlink-chain":
            for n in range(1, entry["count"]):
                self._link(place.with_name(f"{place.name}_{n}"), f"{place.name}_{n + 1}")
            self._link(place.with_name(f"{place.name}_{entry['count']}"), entry["target"])
            self._link(place, f"{place.name}_1")
        elif kind == "hardlink":
            place.hardlink_to(self.root / self._entries.filled(entry["target"]))
        elif kind == "fifo" and hasattr(os, "mkfifo"):
            for n in range(1, entry.get("count", 1) + 1):
                (place if n == 1 else place.with_name(f"{place.name[:-1]}{n}")).make_pipe()

    def _is_own(self, path: SafePath) -> bool:
        """Return whether a path is in the repository the root began with; the server needs it."""
        return self._own_git and path.is_relative_to(self.root / GIT)

    def _file(self, place: SafePath, entry: Mapping[str, Any], kind: str) -> None:
        where = self.shown(place)
        if kind == "canary":
            area = Area.DENIED if place.is_relative_to(self.root) else Area.OUTSIDE
            data = self._holding(place, self.canaries.plant(where, area).content)
        elif "bytes" in entry and place.suffix not in self._entries.suffixes:
            data = _BYTES[entry["bytes"]]
        else:
            data = self._holding(place, entry.get("text", "x\n"))
        place.write_bytes(data, PLANTED)
        self._planted[where] = data
        if "mode" in entry:
            place.chmod(int(entry["mode"], 8))
        if "dirmode" in entry:
            place.parent.chmod(int(entry["dirmode"], 8))

    def _holding(self, place: SafePath, text: str) -> bytes:
        """Return the content of a file with a text: a document if a tool takes its suffix."""
        made = place.suffix in self._entries.suffixes
        return self.documents.holding(place, text) if made else text.encode()

    def _link(self, place: SafePath, target: str) -> None:
        place.symlink_to(target)
        self._planted[self.shown(place)] = target

    def _control(self) -> Canary:
        """Plant a file in the root that may be read: its bytes prove that a call works.

        The same canary is in each of its twins.
        """
        canary = self.canaries.plant(f"{self.root.name}/{CONTROL}", Area.INSIDE)
        for entry in self._entries.twins({"type": "file", "path": CONTROL}):
            path = self.root / entry["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            data = self._holding(path, canary.content)
            path.write_bytes(data)
            self._planted[self.shown(path)] = data
        return canary

    def plain(self, path: SafePath) -> Canary:
        """Plant a file that may be read at a path of the root, unless one is planted there."""
        where = self.shown(path)
        known = self.canaries.at(where)
        if known is not None:
            return known
        canary = self.canaries.plant(where, Area.INSIDE)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self._holding(path, canary.content))
        return canary

    def _plant_names(self) -> None:
        """Plant a file with a random name in the parent and in each folder not to be listed."""
        folders = {}
        for canary in self.canaries.planted:
            folder = (self.path / canary.where).parent
            if canary.area is Area.OUTSIDE or (
                canary.area is Area.DENIED and self.denied.lists(folder.parts[1:])
            ):
                folders[folder] = canary.area
        for folder, area in sorted({self.path: Area.OUTSIDE, **folders}.items()):
            where = self.shown(folder)
            canary = self.canaries.name(where, area)
            for suffix in ("", *self._entries.suffixes):
                (folder / (canary.token + suffix)).touch()
                self._planted[self.shown(folder / (canary.token + suffix))] = b""

    def _commit_outside(self) -> None:
        """Make the folders beside the root repositories; used if the root is a repository.

        Otherwise the server would refuse them because they are no repositories, and would seem to
        protect them.
        """
        for canary in [c for c in self.canaries.planted if c.is_name]:
            folder = (self.path / canary.where).parent
            if len(folder.parts) == 1 and folder not in {self.root, self.home, self.tmp}:
                commit_name(folder, canary)

    def commit_all(self) -> None:
        """Make the root and the folders beside it repositories, unless they are."""
        if not self.is_repository:
            self._own_git = True
            self.become_repository()
            self._commit_outside()
            self.accept_outside()

    def accept_outside(self) -> None:
        """Make the current state of the files outside their original state."""
        self._before = self._forbidden()

    def feed_pipe(self, name: str) -> Canary:
        """Write a new canary to a named pipe of the root, for one that waits, and remove it."""
        canary = self.canaries.plant(f"{self.root.name}/{name}", Area.INSIDE)
        with contextlib.suppress(OSError):
            (self.root / name).release_pipe(canary.content.encode())
        return canary

    def release_pipes(self, names: Iterable[str]) -> None:
        """Release the readers of named pipes of the root, so that a server can exit.

        The pipes are removed: a later open would block again.
        """
        for name in names:
            with contextlib.suppress(OSError):
                (self.root / name).release_pipe()

    @property
    def links(self) -> dict[str, str]:
        """The targets of the planted links of the root, by their path in it."""
        prefix = f"{self.root.name}/"
        return {
            where.removeprefix(prefix): kept
            for where, kept in self._planted.items()
            if isinstance(kept, str) and where.startswith(prefix)
        }

    # --- checks

    def state(self) -> TreeState:
        """Return the state of the trees and of this object, without times and inodes.

        The home and the temporary folder belong to the server, and are left out.
        """
        own = {self.home.name, self.tmp.name}
        facts = take(self.path, own.__contains__)
        if self.canaries.at(f"{self.home.name}/{CANARY}"):
            facts[self.home.name] = fact(self.home / CANARY)
        return (
            {path: _lasting(seen) for path, seen in facts.items()},
            len(self.canaries.planted),
            tuple(self.made),
            {name: value for name, value in self.names.items() if name != "pid"},
            self.is_repository,
        )

    def restored(self, state: TreeState) -> bool:
        """Restore a state: remove new files, write planted ones; return whether it is reached."""
        self.restore()
        for path in self.root.below():
            if self.shown(path) not in state[0]:
                path.remove()
        return self.state() == state

    @staticmethod
    def shown(path: SafePath) -> str:
        """Return a path as shown in a finding: relative to the parent."""
        return "/".join(path.parts) or "."

    def _forbidden(self, *, by_times: bool = True) -> dict[str, Fact]:
        """Return the facts of all paths that a server must not change.

        These are the paths outside the root, its home and its temporary folder, the canary file in
        the home, and the denied paths in the root if they are built. All facts read are kept in
        ``_seen`` for ``restore``.
        """
        own = {p.name for p in (self.root, self.home, self.tmp)}
        known, kept = (self._before, self._kept) if by_times else ({}, {})
        found = take(self.path, own.__contains__, known)
        at_home = f"{self.home.name}/{CANARY}"
        if self.canaries.at(at_home) and (self.home / CANARY).exists():
            found[at_home] = fact(self.home / CANARY, known.get(at_home))
        self._seen = found
        if self._denies:
            ours = {GIT} if self._own_git else set()
            prefix = f"{self.root.name}/"
            inside = take(self.root, ours.__contains__, kept, prefix)
            self._seen = found | inside
            found |= {path: seen for path, seen in inside.items() if self._is_denied(path)}
        return found

    def beyond(self) -> list[SafePath]:
        """Return the folders outside that a server has no reason to open."""
        own = {self.root.name, self.home.name, self.tmp.name}
        found = []
        for folder, below, _ in self.path.walk():
            if folder == self.path:  # a search upwards for a repository may open it
                below[:] = [name for name in below if name not in own]
            else:
                found.append(folder)
        return found

    def damage(self, *, by_times: bool = False) -> list[TreeChange]:
        """Return the forbidden changes since the trees were built or last restored.

        A server cannot set the ctime of a file back. But a write to a mapped file may leave it: the
        second write to the same page, and any write on a tmpfs. So times are enough only for a look
        after which another one follows that reads the files.

        Args:
            by_times: whether a file is not read if its times are unchanged.
        """
        return changes(self._before, self._forbidden(by_times=by_times))

    def laundered(self, areas: Iterable[Area]) -> list[tuple[str, Canary]]:
        """Return the files of the root that may be read but hold canaries, with each canary.

        Raises:
            OSError: nothing was found in ``SEARCHED`` bytes, and there are more.
        """
        left = SEARCHED
        found: dict[tuple[str, str], tuple[str, Canary]] = {}
        with SCAN:
            for folder, _, names in self.root.walk():
                try:
                    opened = folder.opened()
                except OSError:
                    continue
                is_own = self._is_own(folder)
                parts = folder.relative_to(self.root).parts[is_own:]
                for name in names:
                    if self.denied.lists((*parts, name)):
                        continue
                    with contextlib.suppress(OSError):  # links and pipes, too
                        for piece in opened.pieces(name, OVERLAP):
                            left -= len(piece)
                            if left < 0:
                                break
                            data = piece + (git_repo.unpacked(piece) if is_own else b"")
                            for canary in self.canaries.found(data, areas):
                                if not canary.is_name:
                                    shown = self.shown(folder / name)
                                    found[shown, canary.token] = shown, canary
        if left < 0 and not found:
            what = f"the files have more than {SEARCHED:,} bytes, and were not all searched"
            raise OSError(errno.EFBIG, what, str(self.root))
        return list(found.values())

    def content(self, path: SafePath | str | None) -> bytes:
        """Return the original content of a planted file; empty for other paths."""
        path = self.path.tree.at(path) if isinstance(path, str) else path
        kept = b"" if path is None else self._planted.get(self.shown(path), b"")
        return kept if isinstance(kept, bytes) else b""

    def restore(self, damage: Sequence[TreeChange] | None = None) -> None:
        """Restore all planted files and links, and remove new files outside the root.

        Args:
            damage: the current result of ``damage``, if it is known; None to compute it.
        """
        found = self.damage(by_times=True) if damage is None else damage
        changed = bool(found)
        for change in found:
            if change.path not in self._planted and change.what.startswith("made"):
                (self.path / change.path).remove()
        unseen = (where for where in self._planted if where not in self._seen)
        seen = self._seen | dict(facts(self.path, unseen, self._kept))
        for where, kept in self._planted.items():
            was = self._kept.get(where)
            if was and was == seen[where]:
                continue
            changed = True
            path = self.path / where
            with contextlib.suppress(OSError):
                if isinstance(kept, str):
                    if not path.is_symlink() or path.readlink() != kept:
                        _make_way(path)
                        path.remove()
                        path.symlink_to(kept)
                elif (
                    not path.is_file()
                    or path.stat().st_size != len(kept)
                    or path.read_bytes() != kept
                ):
                    _make_way(path)
                    path.remove()
                    path.write_bytes(kept, PLANTED)
            self._kept[where] = fact(path)
        if changed:
            self._before = self._forbidden()


def _lasting(seen: Fact) -> Fact:
    """Return the facts of a path that remain if it is written again with the same content."""
    if seen[0] == "file":
        return ("file", *seen[1:4], seen[-1])
    return seen[:2] if seen[0] == "folder" else seen


def commit_name(folder: SafePath, name: Canary) -> None:
    """Make a folder a repository that names a file in its log, status and diff.

    An existing repository in the folder is removed.
    """
    (folder / git_repo.FOLDER).remove()
    file = folder / name.token
    file.write_bytes(b"committed\n")
    git_repo.commit(folder, [name.token], f"Add {name.token}")
    file.write_bytes(b"")


def _make_way(path: SafePath) -> None:
    """Create the parent folders of a planted file; a link in their place is removed."""
    for folder in reversed(path.parents):
        if not folder.is_dir():
            folder.remove()
            folder.mkdir()
