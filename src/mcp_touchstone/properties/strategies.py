"""Hypothesis strategies for properties: ids, texts, JSON, names, URIs, calls, interleavings.

They draw plain values; a property turns a value into lines. Texts use a small alphabet of
difficult characters, so that a few examples contain every kind of character and shrink to the
simplest one. This module is imported when the first property runs.
"""

from collections.abc import Mapping, Sequence
from operator import mul
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from mcp_touchstone.properties.examples import (
    Edit,
    Extra,
    InterleavingStep,
    Spelling,
    replaceable,
)
from mcp_touchstone.samples.from_schema import required
from mcp_touchstone.wire.framing import object_in

SAFE: Final = 2**53 - 1
"""The largest integer that every JSON parser reads exactly (RFC 8259, section 6)."""

ALPHABET: Final = (
    "a0b1 zZ9_-./:\"'\\{}[](),;<>&%$#@!?*+=|~^`"
    "\0\x01\t\r\n\x1b\x7f\x80\xa0\xe9\xdf\u0130\u0301\u05d0\u0e33\u2028\u2029\ufeff\ufffd\ufffe"
    "\u4e2d\U0001d54f\U0001f600\U0010ffff"
)
"""ASCII with control characters, Latin, combining, right-to-left, separators, and non-BMP."""

WORDS: Final = (
    "",
    " ",
    "0",
    "-1",
    "1e3",
    "null",
    "true",
    "NaN",
    "undefined",
    "None",
    "__proto__",
    "constructor",
    "toString",
    "__class__",
    "%s",
    "%00",
    "${x}",
    "{{x}}",
    "../..",
    "\0",
    "\r\n",
    "é",
    "e\u0301",
    "😀",
    "\ufeff",
)
"""Texts that programs misinterpret, such as numbers and names of special values."""


LONG: Final = 400
"""Maximum length of a text that repeats one character."""

_TAKEN_IDS: Final = range(101, 100_000)


def texts(longest: int = 20) -> SearchStrategy[str]:
    """Draw texts without lone surrogates: random ones, ``WORDS``, and one character repeated."""
    signs = st.sampled_from(ALPHABET)
    made = st.lists(signs, min_size=1, max_size=longest).map("".join)
    repeated = st.builds(mul, signs, st.integers(0, LONG))
    return st.one_of(made, st.sampled_from(WORDS), repeated)


def ids() -> SearchStrategy[str | int]:
    """Draw ids: strings, and integers that every JSON parser reads exactly.

    The integers from 101 to 99999 are reserved for the other requests on the connection.
    """
    return st.one_of(texts(40), numbers().filter(lambda own: own not in _TAKEN_IDS))


def large_ids() -> SearchStrategy[int]:
    """Draw integer ids that some JSON parsers do not read exactly."""
    return st.builds(mul, st.sampled_from((1, -1)), st.integers(SAFE + 1, 2**80))


def any_ids() -> SearchStrategy[str | int]:
    """Draw ids of any size, including integers that some JSON parsers do not read exactly."""
    return ids() | large_ids()


def numbers() -> SearchStrategy[int]:
    """Draw integers that every JSON parser reads exactly."""
    return st.integers(-SAFE, SAFE)


def values(largest: int = 6) -> SearchStrategy[Any]:
    """Draw small nested JSON values."""
    fractions = st.sampled_from((0.5, -0.0, 1e300, 5e-324))
    plain = st.one_of(st.none(), st.booleans(), numbers(), fractions, texts())
    return st.recursive(
        plain,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts(8), inner, max_size=3),
        max_leaves=largest,
    )


def objects(largest: int = 4) -> SearchStrategy[dict[str, Any]]:
    """Draw JSON objects."""
    return st.dictionaries(texts(8), values(largest), max_size=3)


# --- encodings of a message


def spellings() -> SearchStrategy[Spelling]:
    """Draw ways to encode JSON, without characters that any program treats as a line end."""
    return st.builds(
        Spelling,
        gap=st.sampled_from(("", " ", "\t", " \t ")),
        escape=st.sampled_from(("none", "beyond", "all")),
        slash=st.booleans(),
        upper=st.booleans(),
        turn=st.integers(0, 3),
    )


# --- members and methods that a server need not know


def extras() -> SearchStrategy[Extra]:
    """Draw members that no specification defines; names in ``_meta`` have a foreign prefix."""
    letters = st.lists(st.sampled_from("ax0-_.Z"), max_size=10).map("".join)
    names = letters.map(lambda inner: f"org.example.touchstone/x{inner}x")
    meta = st.builds(Extra, st.just("_meta"), names, values())
    others = texts().filter(lambda name: name not in _TAKEN)
    return meta | st.builds(Extra, st.sampled_from(("params", "message")), others, values())


_TAKEN: Final = frozenset(
    {"jsonrpc", "id", "method", "params", "result", "error", "_meta", "cursor", "task"}
)


def methods(known: Sequence[str]) -> SearchStrategy[str]:
    """Draw names of undefined methods: any text, or a known name with an error."""
    slips = st.builds(_slip, st.sampled_from(tuple(known)), st.integers(0, 5))
    taken = frozenset(known)
    return (texts(12) | slips).filter(
        lambda name: name not in taken and name != "" and not name.startswith("notifications/")
    )


def _slip(name: str, kind: int) -> str:
    return (
        name + "x",
        f"{name}/",
        f" {name}",
        name.upper(),
        name.replace("/", "."),
        f"{name}\0",
    )[kind]


# --- params and arguments of requests


def cursors(issued: Sequence[str] = ()) -> SearchStrategy[str]:
    """Draw cursors: any text, numbers, base64 characters, and truncated cursors of the server."""
    digits = numbers().map(str)
    coded = st.lists(st.sampled_from("AaZz09+/=-_"), max_size=16).map("".join)
    made = texts() | digits | coded
    if not issued:
        return made
    return made | st.builds(
        lambda one, cut: one[: len(one) * cut // 4], st.sampled_from(issued), st.integers(0, 3)
    )


def uris(listed: Sequence[str] = ()) -> SearchStrategy[str]:
    """Draw URIs of unknown schemes, invalid ones, and listed ones with a suffix."""
    made = st.builds(
        "{}{}{}".format,
        st.sampled_from(("x-touchstone:", "x-touchstone://", "x-touchstone://host/", "", ":")),
        texts(),
        st.sampled_from(("", "#", "?", "?a=b", "%zz", "/", "//")),
    )
    if not listed:
        return made
    return made | st.builds("{}{}".format, st.sampled_from(listed), texts(8).map(lambda t: f"-{t}"))


def fitting(tools: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> SearchStrategy[Edit]:
    """Draw values that match the schema of an argument, to replace a value that worked.

    Only texts, enums, booleans and small integers are drawn. Names of files, pages and times are
    kept, and a small number cannot request a thousand results.

    Args:
        tools: inputSchema and valid arguments of each tool.
    """
    found = [
        st.builds(Edit, st.just(number), st.just(name), _fitting(kind))
        for number, (schema, good) in enumerate(tools)
        for name, kind in replaceable(schema, good).items()
    ]
    return st.one_of(found)


def _fitting(kind: Mapping[str, Any]) -> SearchStrategy[Any]:
    if "enum" in kind:
        return st.sampled_from(kind["enum"])
    if kind["type"] == "boolean":
        return st.booleans()
    if kind["type"] == "integer":
        return st.integers(max(kind.get("minimum", 0), -10), min(kind.get("maximum", 10), 10))
    least, most = kind.get("minLength", 0), kind.get("maxLength", LONG)
    return texts(20).filter(lambda text: least <= len(text) <= most)


def unfitting(tools: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> SearchStrategy[Edit]:
    """Draw invalid changes: a required argument is removed, or an object replaces a scalar."""
    found: list[SearchStrategy[Edit]] = []
    for number, (schema, good) in enumerate(tools):
        properties = object_in(schema, "properties")
        for name in required(schema):
            kind = properties.get(name)
            if name in good and isinstance(kind, dict) and "default" not in kind:
                found.append(st.just(Edit(number, name, gone=True)))
        for name, kind in properties.items():
            if isinstance(kind, dict) and kind.get("type") in _SCALARS:
                given = objects().filter(bool)
                found.append(st.builds(Edit, st.just(number), st.just(name), given))
    return st.one_of(found) if found else st.nothing()


_SCALARS: Final = ("string", "number", "integer", "boolean")


# --- concurrent requests


def interleavings(requests: int) -> SearchStrategy[list[InterleavingStep]]:
    """Draw lines that are sent without waiting; at least one is of these kinds of requests."""
    asks = st.builds(
        InterleavingStep, st.just("request"), st.integers(0, requests - 1), st.booleans()
    )
    notifications = st.builds(InterleavingStep, st.just("notification"), st.integers(0, 2))
    cancels = st.builds(InterleavingStep, st.just("cancel"), st.integers(0, 3))
    steps = st.lists(st.one_of(asks, asks, notifications, cancels), min_size=1, max_size=8)
    return steps.filter(lambda made: any(step.kind == "request" for step in made))
