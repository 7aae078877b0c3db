"""Detects changes by other programs, by a check of the files about once a second.

It polls, because the standard library has no portable alternative. A check takes one ``stat`` for
each subscribed file and, for a subscriber to the list, one walk. In a large tree, the checks take
at most a tenth of the time, or half of it while this server writes.
"""

from __future__ import annotations

import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol, TypeAlias

    from ...surface import Surface

    Look: TypeAlias = tuple[int, ...] | None

    class Audience(Protocol):
        """The object that selects the files and receives the results."""

        def watched(self) -> tuple[frozenset[str], bool] | None:
            """Return the paths to check and whether to check the list; None ends the watch."""

        def compare(self, looks: dict[str, Look], listed: frozenset[str] | None) -> None: ...


PERIOD = 1.0
"""Seconds between two checks."""

_SHARE = 9
"""Length of the wait after a check, as a multiple of the check's duration."""

_MOMENT = 1.0
"""Seconds to wait for the thread at the end."""


class Watcher:
    """A thread that checks the files as long as there are subscribers."""

    def __init__(self, surface: Surface, audience: Audience) -> None:
        self._surface = surface
        self._log = surface.log
        self._audience = audience
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        self._hears_of_edits = False

    def start(self) -> None:
        """Start the watch if it is not running; the audience must not call this concurrently."""
        if self._thread or self._closing.is_set():
            return
        if not self._hears_of_edits:
            self._hears_of_edits = True
            self._surface.workspace.on_change(lambda _changes: self._wake.set())
        thread = threading.Thread(target=self._watch, name="mcp-watcher", daemon=True)
        thread.start()
        self._thread = thread

    def ended(self) -> None:
        """Record that the thread ends now, because its audience needs it no longer."""
        self._thread = None

    def close(self) -> None:
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
        """Check once and notify the audience; return False if the watch must end."""
        wanted = self._audience.watched()
        if wanted is None:
            return False
        paths, lists = wanted
        workspace = self._surface.workspace
        looks = {path: workspace.look(path) for path in paths}
        listed: frozenset[str] | None = None
        if lists:
            entries = self._surface.part("content.resources").files()
            listed = frozenset(entry.path for entry in entries)
        if self._closing.is_set():  # during a long check, the roots may have been removed
            return False
        self._audience.compare(looks, listed)
        return True
