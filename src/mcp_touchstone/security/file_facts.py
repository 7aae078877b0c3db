"""The size and the time of a planted file, and the search for them in an answer. Pure."""

import re
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Final

STEP: Final = 10_000
"""Minimum difference of the sizes of files, in bytes; the files stay small enough to read."""

UNITS: Final = (1000, 1024)
"""Bytes in a kilobyte."""

FORMS: Final = (
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%m/%d/%Y",
    "%d/%m/%Y",
    "%b %d %Y",
    "%d %b %Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%d %B %Y",
)
"""Forms in which a day may be shown."""


@dataclass(frozen=True)
class FileFacts:
    """The size and the time of a file.

    Attributes:
        size: in bytes; its first digits differ from those of all other planted files.
        time: modification time, in seconds since 1970: noon (UTC) of a day that no other file has.
    """

    size: int
    time: int

    @cached_property
    def sizes(self) -> tuple[str, ...]:
        """Regular expressions for the size: in bytes, with separators, and in kilobytes."""
        exact = (str(self.size), f"{self.size:,}", f"{self.size:_}")
        units = (
            rf"{self.size / unit:.{digits}f}".replace(".", "[.,]") + " ?[kK]"
            for unit in UNITS
            for digits in (1, 2)
        )
        return (*exact, *dict.fromkeys(units))

    @cached_property
    def times(self) -> tuple[str, ...]:
        """Regular expressions for the time: as a number, or the day in several forms."""
        day = datetime.fromtimestamp(self.time, UTC)
        shown = {day.strftime(form) for form in FORMS}
        shown |= {one.replace("/0", "/").removeprefix("0") for one in shown}
        return (f"{self.time}([0-9]{{3}}|[0-9]{{6}}|[0-9]{{9}})?", *map(re.escape, sorted(shown)))

    @property
    def stamp(self) -> str:
        """The time in UTC, as ``touch -t`` takes it."""
        return datetime.fromtimestamp(self.time, UTC).strftime("%Y%m%d%H%M")

    @property
    def pattern(self) -> str:
        """An extended regular expression for all forms."""
        return f"(^|[^0-9.,])({'|'.join((*self.sizes, *self.times))})($|[^0-9])"

    def shown_in(self, text: str) -> str:
        """Return ``size`` or ``time`` if a text contains it, otherwise an empty text."""
        for name, forms in (("size", self.sizes), ("time", self.times)):
            if re.search(rf"(?<![0-9.,])({'|'.join(forms)})(?![0-9])", text):
                return name
        return ""


def unique(number: int) -> FileFacts:
    """Return facts of a file; facts of different numbers, from 0 to 3, share no form."""
    size = (2 + 2 * number) * STEP + secrets.randbelow(STEP)
    year, month, day = 1981 + 4 * number, 1 + secrets.randbelow(12), 13 + secrets.randbelow(15)
    return FileFacts(size, int(datetime(year, month, day, 12, tzinfo=UTC).timestamp()))
