"""Servers that write without enough space, with one fault each; and a good one."""

import signal
from pathlib import Path

from tests.fakes.crowds import AtOnce


class WritesANewFile(AtOnce, families=("storage",)):
    """Writes a new file and removes it if the write fails."""


class TruncatesFirst(WritesANewFile, trips={"storage-full"}):
    """Truncates the file, then writes as much as fits."""

    def put(self, place: Path, text: str) -> None:
        place.write_text(text, encoding="utf-8")


class LeavesHalves(WritesANewFile, trips={"storage-full"}):
    """Writes a new file, and leaves it there if the write fails."""

    def put(self, place: Path, text: str) -> None:
        beside = place.with_suffix(".part")
        beside.write_text(text, encoding="utf-8")
        beside.replace(place)


class DiesDuringTheWrite(LeavesHalves, trips=set()):
    """Is killed by a write without enough space, as is the default for programs."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
