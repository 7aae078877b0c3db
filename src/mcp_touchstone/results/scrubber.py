"""Comparable and readable answers: names in place of values of one run, and line breaks. Pure.

Golden files must not contain the folder of a run, the time of day, random ids or values of
somebody's environment.
"""

import json
import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.wire.framing import loads

WIDTH: Final = 100
"""Columns of ``pretty``."""

NAMED: Final = {
    "nextCursor": "cursor",
    "cursor": "cursor",
    "requestState": "state",
    "taskId": "task",
    "request_id": "request",
    "mcp-touchstone/request_id": "request",
}
"""Members with random values: each value gets a name, the same at every place."""

NEAR: Final = timedelta(days=2)
"""A time this close to now, in any time zone, is treated as the time of the run."""

TIME: Final = "<time>"
WEEKDAY: Final = "<weekday>"
AS_BEFORE: Final = "<as before>"
ENVIRONMENT: Final = "<environment>"
INSIDE: Final = "<JSON>"
LINES: Final = "<text>"

_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)
_DAY: Final = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH: Final = rf"(?P<name>{'|'.join(_MONTHS)})"
_CLOCK: Final = r"\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AP]M)?"
_ZONE: Final = r"(?: ?(?:Z|UTC|(?:GMT)?[+-]\d\d:?\d\d|GMT)(?: \([^()\n]*\))?)?"
_STAMPS: Final = tuple(
    re.compile(pattern + _ZONE)
    for pattern in (
        rf"(?P<year>\d{{4}})-(?P<month>\d\d)-(?P<day>\d\d)[T ]{_CLOCK}",
        rf"{_DAY} {_MONTH} (?P<day>\d\d?) (?P<year>\d{{4}}) {_CLOCK}",
        rf"{_DAY} {_MONTH} +(?P<day>\d\d?) {_CLOCK} (?P<year>\d{{4}})",
        rf"{_DAY}, (?P<day>\d\d?) {_MONTH} (?P<year>\d{{4}}) {_CLOCK}",
        rf"(?P<month>\d\d?)/(?P<day>\d\d?)/(?P<year>\d{{4}}),? {_CLOCK}",
    )
)
"""Formats of times: ISO 8601, JavaScript, C, e-mail, American."""

_SERVER: Final = rev.META + "serverInfo"
_SAME_VARIABLES: Final = 3
"""Least members in common with our environment that make an object a copy of it."""


class Scrubber:
    """Replacement of values that differ in each run by names, without repeated texts.

    Args:
        places: folders or secrets of one run -> their names.
        now: the time of the run, with a time zone.
        named: members with random values -> names for these values.
    """

    def __init__(
        self,
        places: Mapping[str, str],
        now: datetime,
        *,
        named: Mapping[str, str] = NAMED,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        longest_first = sorted(places.items(), key=lambda pair: -len(pair[0]))
        self._places = {text: name for text, name in longest_first if text}
        self._now = now
        self._members = named
        self._environment = environment or {}
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._server: Any = None

    def scrub(self, value: Any, member: str = "") -> Any:
        """Return a JSON value as it is written to a file."""
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self.scrub(inner, member) for inner in value]
        if isinstance(value, str):
            return self._string(value, member)
        if isinstance(value, int | float) and self._is_now(value):
            return TIME
        return value

    def _object(self, whole: dict[str, Any]) -> Any:
        same = [name for name, value in self._environment.items() if whole.get(name) == value]
        if len(same) >= _SAME_VARIABLES:
            return ENVIRONMENT
        shown = {name: self._member(name, inner, whole) for name, inner in whole.items()}
        if TIME in shown.values():
            # The day of the week beside a time only repeats that time.
            days = {name for name, value in shown.items() if value in _DAYS}
            shown = {name: WEEKDAY if name in days else value for name, value in shown.items()}
        return shown

    def _member(self, name: str, value: Any, whole: Mapping[str, Any]) -> Any:
        if name in ("serverInfo", _SERVER) and isinstance(value, dict):
            return self._about_server(value)
        if name == "text" and isinstance(value, str) and whole.get("type", "text") == "text":
            return self._content(value)
        return self.scrub(value, name)

    def _about_server(self, info: Any) -> Any:
        """Return the name and version of the server, or ``AS_BEFORE`` if they have not changed."""
        known, self._server = self._server == info, info
        return AS_BEFORE if known else {name: self.scrub(one, name) for name, one in info.items()}

    def _content(self, text: str) -> Any:
        """Return a text; one that is a serialized object is returned as an object."""
        try:
            inside = loads(text)
        except ValueError:
            inside = None
        return {INSIDE: self.scrub(inside)} if isinstance(inside, dict) else self.scrub(text)

    def _string(self, value: str, member: str) -> Any:
        if member in self._members and value:
            return self._name(self._members[member], value)
        return self.text(value)

    def text(self, value: str) -> str:
        """Return a text without the places and times of this run."""
        for place, name in self._places.items():
            value = value.replace(place, name)
        for stamp in _STAMPS:
            value = stamp.sub(self._moment, value)
        return value

    def _moment(self, found: re.Match[str]) -> str:
        parts = found.groupdict()
        month = parts.get("month") or str(_MONTHS.index(parts["name"]) + 1)
        try:
            day = datetime(
                int(parts["year"]), int(month), int(parts["day"]), tzinfo=self._now.tzinfo
            )
        except ValueError:
            return found[0]
        return TIME if abs(self._now - day) < NEAR else found[0]

    def _is_now(self, value: float) -> bool:
        """Return whether a number is the time in seconds or milliseconds since 1970."""
        then, off = self._now.timestamp(), NEAR.total_seconds()
        # The products are whole numbers of any size; a quotient of such a one overflows.
        return abs(value - int(then)) < off or abs(value - int(then * 1000)) < off * 1000

    def _name(self, kind: str, value: str) -> str:
        if value not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[value] = f"<{kind} {self._counts[kind]}>"
        return self._names[value]


# --- layout


def lined(value: Any) -> Any:
    """Replace each text of several lines by a list of its lines."""
    if isinstance(value, dict):
        return {name: lined(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [lined(inner) for inner in value]
    if isinstance(value, str) and "\n" in value[:-1]:
        return {LINES: value.split("\n")}
    return value


def pretty(value: Any, indent: int = 0) -> str:
    """Return a JSON value on as many lines as it needs, as does a text of several lines."""
    plain = json.dumps(value)
    if indent + len(plain) <= WIDTH:
        return plain
    pad = " " * (indent + 2)
    if isinstance(value, dict) and value:
        rows = [
            f"{pad}{json.dumps(name)}: {pretty(inner, indent + 2)}" for name, inner in value.items()
        ]
        return "{\n" + ",\n".join(rows) + "\n" + " " * indent + "}"
    if isinstance(value, list) and value:
        rows = [pad + pretty(inner, indent + 2) for inner in value]
        return "[\n" + ",\n".join(rows) + "\n" + " " * indent + "]"
    if isinstance(value, str) and "\n" in value[:-1]:
        return "".join(
            f"\n{pad}{json.dumps(part)}" for part in re.findall(r"[^\n]*\n|[^\n]+", value)
        )
    return plain
