"""Servers that write without enough space, with one fault each; and a good one."""

import signal
from pathlib import Path

from tests.fakes.crowds import AtOnce


class WritesANewFile(AtOnce):
    """Writes a new file and removes it if the write fails."""

    families = ("storage",)


class TruncatesFirst(WritesANewFile):
    """Truncates the file, then writes as much as fits."""

    trips = frozenset({"storage-full"})

    def put(self, place: Path, text: str) -> None:
        place.write_text(text, encoding="utf-8")


class LeavesHalves(WritesANewFile):
    """Writes a new file, and leaves it there if the write fails."""

    trips = frozenset({"storage-full"})

    def put(self, place: Path, text: str) -> None:
        beside = place.with_suffix(".part")
        beside.write_text(text, encoding="utf-8")
        beside.replace(place)


class DiesDuringTheWrite(LeavesHalves):
    """Is killed by a write without enough space, as is the default for programs."""

    trips: frozenset[str] = frozenset()

    def __init__(self, root: str) -> None:
        super().__init__(root)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
