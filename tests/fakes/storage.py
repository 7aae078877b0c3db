"""Servers that write where there may be no room, with one fault each; and a good one."""

import signal
from pathlib import Path

from tests.fakes.crowds import AtOnce


class WritesBeside(AtOnce):
    """Writes beside the file and clears away what could not be written."""

    families = ("storage",)


class CutsFirst(WritesBeside):
    """Cuts the file, then writes as much as there is room for."""

    trips = frozenset({"storage-full"})

    def put(self, place: Path, text: str) -> None:
        place.write_text(text, encoding="utf-8")


class LeavesHalves(WritesBeside):
    """Writes beside the file, and leaves that there where it fails."""

    trips = frozenset({"storage-full"})

    def put(self, place: Path, text: str) -> None:
        beside = place.with_suffix(".part")
        beside.write_text(text, encoding="utf-8")
        beside.replace(place)


class DiesBesideTheFile(LeavesHalves):
    """Is ended by a write it has no room for, as a program is that does not ask to be spared."""

    trips: frozenset[str] = frozenset()

    def __init__(self, root: str) -> None:
        super().__init__(root)
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
