"""Points in time as text: RFC 3339, and the wider ISO 8601. Pure."""

import re
from datetime import datetime, timedelta
from typing import Final

_RFC3339: Final = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?"
    r"(?:[Zz]|[+-]\d\d:\d\d)",
    re.ASCII,
)
_LEAP: Final = re.compile(r"(?<=:)60(?=[.Zz+-]|$)")
_FRACTION: Final = re.compile(r"[.,](\d+)")


def is_rfc3339(text: str) -> bool:
    """Return whether a text is a date-time of RFC 3339, section 5.6."""
    return _RFC3339.fullmatch(text) is not None and instant(text) is not None


def instant(text: str) -> datetime | None:
    """Read a time of ISO 8601; None if it is invalid. A leap second counts as second 59."""
    try:
        return datetime.fromisoformat(_LEAP.sub("59", text.upper()))
    except ValueError:
        return None


def same_instant(first: str, second: str) -> bool:
    """Return whether two timestamps name one instant, to the precision of the coarser one.

    Timestamps that cannot be compared (one is invalid, or only one has an offset) count as equal.
    """
    one, other = instant(first), instant(second)
    if one is None or other is None or (one.tzinfo is None) != (other.tzinfo is None):
        return True
    digits = min(_digits(first), _digits(second))
    unit = timedelta(microseconds=10 ** (6 - min(digits, 6)))
    return abs(one - other) < unit


def is_earlier(first: str, second: str) -> bool:
    """Return whether the first timestamp is before the second; False if not comparable."""
    one, other = instant(first), instant(second)
    if one is None or other is None or (one.tzinfo is None) != (other.tzinfo is None):
        return False
    return one < other and not same_instant(first, second)


def _digits(text: str) -> int:
    found = _FRACTION.search(text)
    return len(found[1]) if found else 0
