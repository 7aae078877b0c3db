"""Values that fit a JSON Schema: arguments for a tool, content for a form. Pure, deterministic.

The candidates are few and obvious, the best first. The server decides whether one is valid. Paths
point into the world.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from math import isclose, isfinite
from typing import Any, Final, TypeGuard

from mcp_touchstone.samples.from_regex import text_for

CANDIDATES: Final = 4
"""Argument objects tried on one tool."""

DEEPEST: Final = 8

MOST_VALUES: Final = 2000
"""Greatest number of values made for one schema; further values are a short text."""

SIZE: Final = 100
"""Number of combined members that count as one value."""

PATTERN: Final = 10
"""Number of values that a text for a pattern counts as."""

LONGEST_REFERENCE: Final = 1000
"""Greatest length of a followed reference, in characters."""

MOST_BRANCHES: Final = 100
"""Greatest number of combined members of an ``allOf``."""

LONGEST: Final = 10_000
"""Greatest length of a text that is padded to a required length, in characters."""

LARGEST_AMOUNT: Final = 1e15
"""Bounds beyond this are ignored: floats are no longer exact there, and NaN is no bound."""

WORD: Final = "hello"

BRIEF: Final = 0.001
"""Seconds for a tool with a duration, if the call should be short."""

SHORT: Final = 0.1
"""Seconds for a tool with a duration; 1 if it accepts whole seconds only."""

_FOLDERS: Final = frozenset({"dir", "directory", "folder", "repo", "repository", "root", "cwd"})
_FILES: Final = frozenset({"path", "paths", "file", "files", "filename", "filepath"})
_TIMES: Final = frozenset({"duration", "delay", "sleep", "wait", "seconds", "secs", "ms", "millis"})
_MILLISECONDS: Final = frozenset({"ms", "millis", "milliseconds"})
_NAMES: Final = {
    "timezone": "UTC",
    "tz": "UTC",
    "time": "12:00",
    "date": "2026-01-02",
    "datetime": "2026-01-02",
    "timestamp": "2026-01-02T03:04:05Z",
    "language": "en",
    "locale": "en",
    "lang": "en",
    "country": "US",
    "currency": "EUR",
    "email": "user@example.com",
    "pattern": "*",
    "glob": "*",
    "regex": ".",
    "id": "1",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "revision": "HEAD",
    "branch": "HEAD",
    "ref": "HEAD",
    "commit": "HEAD",
    "name": "example",
    "title": "Example",
}
"""Last word of a property's name -> a text that is likely to be understood."""
_FORMATS: Final = {
    "email": "user@example.com",
    "idn-email": "user@example.com",
    "uri": "https://example.com/",
    "url": "https://example.com/",
    "uri-reference": "https://example.com/",
    "date": "2026-01-02",
    "date-time": "2026-01-02T03:04:05Z",
    "time": "03:04:05Z",
    "duration": "PT1S",
    "uuid": "00000000-0000-4000-8000-000000000000",
    "ipv4": "127.0.0.1",
    "ipv6": "::1",
    "hostname": "localhost",
    "regex": ".",
    "byte": "aGVsbG8=",
}


@dataclass(frozen=True, slots=True)
class Places:
    """The targets of generated paths.

    Attributes:
        folder: the root of the server, an absolute path.
        file: a text file in it, relative, with forward slashes.
        text: content of that file.
        seconds: wanted duration of a call, in seconds, if a tool accepts a duration.
    """

    folder: str = "."
    file: str = "README.md"
    text: str = ""
    seconds: float = SHORT

    @property
    def absolute(self) -> str:
        """The absolute path of the file."""
        return f"{self.folder}/{self.file}"

    def files(self) -> tuple[str, ...]:
        """Paths for an argument that names a file, the likeliest first."""
        return (self.absolute, self.file, self.folder, ".")

    def folders(self) -> tuple[str, ...]:
        """Paths for an argument that names a folder, the likeliest first."""
        return (self.folder, ".", self.absolute, self.file)


@lru_cache(maxsize=1024)
def words(name: str) -> tuple[str, ...]:
    """Split the name of a property: ``repoPath``, ``repo_path`` -> repo, path."""
    return tuple(word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", name))


def is_path(name: str) -> bool:
    """Return whether the name of a property suggests a path."""
    return bool({*words(name)} & (_FILES | _FOLDERS))


def is_time(name: str) -> bool:
    """Return whether the name of a property suggests a duration."""
    return bool({*words(name)} & _TIMES)


def candidates(schema: Any, places: Places | None = None) -> list[dict[str, Any]]:
    """Return argument objects for an ``inputSchema``: required members only, the best first."""
    found: list[dict[str, Any]] = []
    for turn in range(CANDIDATES):
        made = _Maker(schema, places or Places(), turn).value(schema, "", 0)
        if isinstance(made, dict) and made not in found:
            found.append(made)
    return found


def form(schema: Any) -> dict[str, Any]:
    """Return content for a ``requestedSchema``: every member, as a user who agrees."""
    made = _Maker(schema, Places(), 0, whole=True).value(schema, "", 0)
    return made if isinstance(made, dict) else {}


def required(schema: Any) -> list[str]:
    """Return the names of the required members of an object schema, as far as it is readable."""
    found = schema.get("required") if isinstance(schema, dict) else None
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def incomplete(schema: Any, good: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Omit a required member without a default; return its name and the other members."""
    for name in required(schema):
        if name in good and "default" not in _property(schema, name):
            return name, {key: value for key, value in good.items() if key != name}
    return None


def mistyped(schema: Any, good: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Replace a declared string, number or boolean by an object; return name and members."""
    for name in [*required(schema), *good]:
        kind = _property(schema, name).get("type")
        if name in good and kind in ("string", "number", "integer", "boolean"):
            return name, {**good, name: {"touchstone": True}}
    return None


def slowed(schema: Any, good: Mapping[str, Any], seconds: float) -> dict[str, Any] | None:
    """Set the duration of a tool that accepts one; None if it accepts none."""
    for name, kind in _timers(schema):
        return {**good, name: _time(name, kind, seconds)}
    return None


def prolonged(schema: Any, good: Mapping[str, Any], times: int) -> dict[str, Any] | None:
    """Multiply the duration in the arguments of a tool; None if there is none, or a bound on it."""
    for name, kind in _timers(schema):
        amount = good.get(name)
        if _is_amount(amount) and isclose(longer := _number(kind, amount * times), amount * times):
            return {**good, name: longer}
    return None


def counts(schema: Any) -> list[str]:
    """Return the names of the whole numbers of a tool that are neither durations nor listed."""
    return [
        name
        for name in _properties(schema)
        if _type(kind := _property(schema, name)) == "integer"
        and not is_time(name)
        and not {"enum", "const"} & set(kind)
    ]


def counted(schema: Any, good: Mapping[str, Any], name: str, amount: int) -> dict[str, Any]:
    """Set a whole number of a tool, as close to an amount as its bounds allow."""
    return {**good, name: _number(_property(schema, name), amount)}


def _properties(schema: Any) -> dict[str, Any]:
    found = schema.get("properties") if isinstance(schema, dict) else None
    return found if isinstance(found, dict) else {}


def _property(schema: Any, name: str) -> dict[str, Any]:
    found = _properties(schema).get(name)
    return found if isinstance(found, dict) else {}


def _timers(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for name in _properties(schema):
        kind = _property(schema, name)
        if is_time(name) and _type(kind) in {"number", "integer"}:
            yield name, kind


def _time(name: str, schema: Mapping[str, Any], seconds: float) -> float:
    return _number(schema, seconds * 1000 if {*words(name)} & _MILLISECONDS else seconds)


def _short(name: str, schema: Mapping[str, Any], seconds: float) -> float:
    whole_seconds = _type(schema) == "integer" and not {*words(name)} & _MILLISECONDS
    return _time(name, schema, 1 if whole_seconds else seconds)


def _number(schema: Mapping[str, Any], wish: float) -> float:
    """Return the number closest to a wish that the bounds allow."""
    whole = _type(schema) == "integer"
    gap = 1 if whole else 0.5
    value: float = wish
    for key, sign, distance in (
        ("minimum", 1, 0.0),
        ("exclusiveMinimum", 1, gap),
        ("maximum", -1, 0.0),
        ("exclusiveMaximum", -1, gap),
    ):
        bound = schema.get(key)
        if _is_amount(bound):
            limit = bound + sign * distance
            value = max(value, limit) if sign > 0 else min(value, limit)
    multiple = schema.get("multipleOf")
    if _is_amount(multiple) and multiple > 0:
        value = -(-value // multiple) * multiple
    if not isfinite(value):
        return wish
    if whole or float(value).is_integer():
        return -int(-value // 1)
    return value


def _is_amount(value: Any) -> TypeGuard[float]:
    """Return whether a JSON value is a number that a float can represent."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -LARGEST_AMOUNT <= value <= LARGEST_AMOUNT
    )


def _type(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((one for one in kind if isinstance(one, str) and one != "null"), "null")
    if isinstance(kind, str):
        return kind
    return "object" if "properties" in schema else "array" if "items" in schema else "string"


def _least(schema: Mapping[str, Any]) -> int:
    least = schema.get("minLength")
    return least if isinstance(least, int) and 0 < least <= LONGEST else 0


def _options(schema: Any) -> list[Any]:
    """Return the values of an enum, in either of its forms."""
    if not isinstance(schema, dict):
        return []
    found = schema.get("enum")
    if isinstance(found, list):
        return found
    branches = [*_objects(schema.get("anyOf")), *_objects(schema.get("oneOf"))]
    return [branch["const"] for branch in branches if "const" in branch]


class _Maker:
    """Maker of one value; ``turn`` chooses among paths, ``whole`` fills optional members too."""

    def __init__(self, root: Any, places: Places, turn: int, *, whole: bool = False) -> None:
        self._root = root
        self._places = places
        self._turn = turn
        self._whole = whole
        self._left = MOST_VALUES

    def value(self, schema: Any, name: str, depth: int) -> Any:
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            return WORD
        schema = self._plain(schema)
        if not schema:
            return self._text({}, name)
        kind = _type(schema)
        if (given := self._given(schema, kind, name)) is not None:
            return given
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, name, depth)
        return self._scalar(schema, kind, name)

    def _scalar(self, schema: Mapping[str, Any], kind: str, name: str) -> Any:
        if kind in {"number", "integer"}:
            return self._amount(schema, name)
        if kind == "boolean":
            return self._whole
        return None if kind == "null" else self._text(schema, name)

    def _given(self, schema: Mapping[str, Any], kind: str, name: str) -> Any:
        """Return a value that the schema itself contains; None if there is none."""
        for key in ("const", "default"):
            agrees = self._whole and schema.get(key) is False
            if schema.get(key) is not None and not agrees:
                return schema[key]
        options = _options(schema)
        if options:
            return options[0]
        if kind == "string" and is_path(name):
            return self._path(schema, name)
        examples = schema.get("examples")
        return examples[0] if isinstance(examples, list) and examples else None

    def _plain(self, schema: Any) -> dict[str, Any]:
        """Follow references inside the schema and take the first branch of each choice."""
        plain: dict[str, Any] = schema if isinstance(schema, dict) else {}
        for _ in range(DEEPEST):
            self._left -= _size(plain) // SIZE
            if self._left < 0:
                break
            merged = dict(plain)
            if isinstance(reference := merged.pop("$ref", None), str):
                merged = {**self._at(reference), **merged}
            for branch in _objects(merged.pop("allOf", None))[:MOST_BRANCHES]:
                self._left -= 1 + _size(merged) // SIZE
                if self._left < 0:
                    break
                merged = _both(merged, branch)
            for key in ("anyOf", "oneOf"):
                branches = [b for b in _objects(merged.pop(key, None)) if b.get("type") != "null"]
                if branches:
                    merged = _both(merged, branches[0])
            if merged == plain:
                break
            plain = merged
        return plain

    def _at(self, reference: str) -> dict[str, Any]:
        found = self._root
        if len(reference) > LONGEST_REFERENCE:
            return {}
        for step in reference.removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")  # noqa: PLW2901  (RFC 6901)
            found = found.get(step) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        named = _properties(schema)
        members = chain(required(schema), named if self._whole else ())
        wanted = list(islice(dict.fromkeys(members), max(0, self._left)))
        made = {name: self.value(named.get(name), name, depth + 1) for name in wanted}
        return made | {
            name: _short(name, kind, self._places.seconds) for name, kind in _timers(schema)
        }

    def _array(self, schema: Mapping[str, Any], name: str, depth: int) -> list[Any]:
        least = schema.get("minItems")
        count = least if isinstance(least, int) and 0 < least <= CANDIDATES else 1
        if schema.get("maxItems") == 0 or schema.get("items") is False:
            return []
        items = schema.get("items")
        options = _options(items)
        if len(options) >= count:
            return options[:count]
        one = self.value(items, name, depth + 1)
        if not schema.get("uniqueItems"):
            return [one] * count
        return [one, *(_another(one, number) for number in range(1, count))]

    def _path(self, schema: Mapping[str, Any], name: str) -> str:
        folder = {*words(name)} & _FOLDERS
        paths = self._places.folders() if folder else self._places.files()
        long_enough = [path for path in paths if len(path) >= _least(schema)] or list(paths)
        return long_enough[self._turn % len(long_enough)]

    def _amount(self, schema: Mapping[str, Any], name: str) -> float:
        if is_time(name):
            return _short(name, schema, self._places.seconds)
        return _number(schema, 1)

    def _text(self, schema: Mapping[str, Any], name: str) -> str:
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            self._left -= PATTERN
            if self._left > 0 and (text := text_for(pattern)) is not None:
                return text
        wanted = schema.get("format")
        text = _FORMATS.get(wanted, "") if isinstance(wanted, str) else ""
        if {*words(name)} & {"uri", "url"} and text in {"", _FORMATS["uri"]}:
            text = f"file://{self._places.absolute}" if self._places.text else _FORMATS["uri"]
        last = words(name)[-1:]
        text = text or (_NAMES.get(last[0], WORD) if last else WORD)
        least, most = _least(schema), schema.get("maxLength")
        if len(text) < least:
            text = (text * least)[:least]
        return text[:most] if isinstance(most, int) and most >= 0 else text


def _objects(value: Any) -> Sequence[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _size(schema: Mapping[str, Any]) -> int:
    return len(schema) + len(_properties(schema))


def _both(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**first, **second}
    one, two = first.get("properties"), second.get("properties")
    if isinstance(one, dict) and isinstance(two, dict):
        merged["properties"] = {**one, **two}
    if names := dict.fromkeys([*required(first), *required(second)]):
        merged["required"] = [*names]
    return merged


def _another(value: Any, number: int) -> Any:
    if isinstance(value, str):
        return f"{value}{number}"
    return value + number if isinstance(value, int) and not isinstance(value, bool) else value
