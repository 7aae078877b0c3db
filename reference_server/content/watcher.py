"""Notices changes by other programs: looks at the files about once a second while needed.

Polling, because the standard library has no other way on any system. A look costs one ``stat``
for each file subscribed to and, if new files are of interest, one walk. However large the tree
is, looking takes at most a tenth of the time, or half of it while this server writes.
"""

from __future__ import annotations

import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol, TypeAlias

    from ..surface import Surface
    from ..workspace import Workspace

    Look: TypeAlias = tuple[int, ...] | None

    class Audience(Protocol):
        """Whom the watcher works for."""

        def watched(self) -> tuple[frozenset[str], bool] | None:
            """Give the paths to look at, and whether the list matters; None ends the watch."""

        def compare(self, looks: dict[str, Look], listed: frozenset[str] | None) -> None:
            """Take what was seen."""


PERIOD = 1.0
"""Seconds from one look to the next."""

_SHARE = 9
"""Times as long as a look took is waited before the next one."""

_MOMENT = 1.0
"""Seconds to wait for the thread at the end."""


def look(workspace: Workspace, path: str) -> Look:
    """Give what changes when a file does, without reading it; None if it is no resource."""
    entry = workspace.look(path)
    return entry.look if entry else None


class Watcher:
    """A thread that looks, while there is something to look for.

    Args:
        surface: Where the files are.
        audience: Says what to look for and takes what was seen.
    """

    def __init__(self, surface: Surface, audience: Audience) -> None:
        self._surface = surface
        self._log = surface.log
        self._audience = audience
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._hears_of_edits = False

    def start(self) -> None:
        """Watch, if that is not done already; the audience does not call this twice at once."""
        if self._thread or self._closing.is_set():
            return
        if not self._hears_of_edits:
            self._hears_of_edits = True
            self._surface.workspace.on_change(lambda _changes: self._wake.set())
        thread = threading.Thread(target=self._watch, name="mcp-watcher", daemon=True)
        thread.start()
        self._thread = thread

    def ended(self) -> None:
        """Note that the thread ends now, at the request of its audience."""
        self._thread = None

    def close(self) -> None:
        """End the watch."""
        self._closing.set()
        self._wake.set()
        thread = self._thread
        if thread:
            thread.join(_MOMENT)

    def _watch(self) -> None:
        cost = 0.0
        while not self._closing.wait(cost):
            self._wake.wait(max(PERIOD, _SHARE * cost))
            self._wake.clear()
            started = time.monotonic()
            try:
                if self._closing.is_set() or not self._look():
                    return
            except Exception as defect:  # noqa: BLE001 - one odd file must not end the watch
                self._log.error("defect", type=type(defect).__name__)
            cost = time.monotonic() - started

    def _look(self) -> bool:
        """Look once and tell the audience; False if there is nothing to look for any more."""
        wanted = self._audience.watched()
        if wanted is None:
            return False
        paths, lists = wanted
        workspace = self._surface.workspace
        looks = {path: look(workspace, path) for path in paths}
        listed: frozenset[str] | None = None
        if lists:
            entries = self._surface.part("content.resources").files()
            listed = frozenset(entry.path for entry in entries)
        if self._closing.is_set():  # a look that took long may have lost its roots on the way
            return False
        self._audience.compare(looks, listed)
        return True
