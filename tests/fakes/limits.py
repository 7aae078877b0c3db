"""Servers that promise limits, with one fault each; and good ones."""

import os
from pathlib import Path
from types import MappingProxyType

from tests.fakes.server import Guard, Refused, fakes, has

LARGEST = 8192
LONGEST = 4096


class Limited(Guard, promises=("size-limit",), families=("limits",)):
    """Reads and creates no file above its limit."""

    terms = MappingProxyType({"size-limit": {"limit": LARGEST}})

    def size(self, place: str) -> int:
        return os.stat(place).st_size

    def fits(self, size: int) -> bool:
        return size <= LARGEST

    def read_file(self, path: str) -> str:
        place = self.place(path, writing=False)
        if not self.fits(self.size(place)):
            raise Refused("that file is too large")
        return super().read_file(path)

    def write_file(self, path: str, content: str) -> str:
        if len(content.encode()) > LARGEST:
            raise Refused("that is too large")
        return super().write_file(path, content)

    def edit_file(self, path: str, old_text: str, new_text: str) -> str:
        before = Path(self.place(path, writing=True)).read_text(encoding="utf-8")
        if max(len(before), len(before) - len(old_text) + len(new_text)) > LARGEST:
            raise Refused("that would be too large")
        return super().edit_file(path, old_text, new_text)


class MeasuresTheLink(Limited, trips={"limits-size-alias"}):
    """Measures the path without following links."""

    def read_file(self, path: str) -> str:
        if os.lstat(os.path.join(self.root, path)).st_size > LARGEST:
            raise Refused("that file is too large")
        return Guard.read_file(self, path)


class LimitsTheSentTextOnly(Limited, trips={"limits-size-write"}):
    """Checks the size of the sent text and not of the resulting file."""

    def edit_file(self, path: str, old_text: str, new_text: str) -> str:
        if len(new_text) > LARGEST:
            raise Refused("that is too large")
        return Guard.edit_file(self, path, old_text, new_text)


class Brief(Guard, promises=("read-limit",), families=("limits",)):
    """Answers with at most the promised number of characters of a file."""

    terms = MappingProxyType({"read-limit": {"limit": LONGEST, "tools": ("read_file",)}})

    def read_file(self, path: str) -> str:
        text = super().read_file(path)
        if self.length(text) > LONGEST:
            raise Refused("that is too long for one answer")
        return text

    def length(self, text: str) -> int:
        return len(text)


fakes(__name__)(
    ReturnsTheBeginning=has(
        Limited,
        "Returns the beginning of a file above its limit.",
        read_file=lambda self, path: Guard.read_file(self, path)[:LARGEST],
    ),
    IsOffByOne=has(
        Limited,
        "Allows one byte more than its limit.",
        "limits-size-read",
        fits=lambda self, size: size <= LARGEST + 1,
    ),
    RefusesJustBelowTheLimit=has(
        Limited,
        "Reserves room for the rest of an answer.",
        "limits-size-served",
        fits=lambda self, size: size < LARGEST - 64,
    ),
    IgnoresItsReadLimit=has(
        Brief, "Ignores its limit.", "limits-answer", length=lambda self, text: 0
    ),
    CountsBytes=has(
        Brief,
        "Counts bytes in place of characters.",
        "limits-answer-served",
        length=lambda self, text: len(text.encode()),
    ),
)
