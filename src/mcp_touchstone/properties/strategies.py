"""What properties draw from: ids, texts, JSON, names, cursors, URIs, calls, interleavings.

Strategies of Hypothesis over plain values; the property says what a value becomes.
Texts are made of an alphabet that is small and awkward, so that a few examples meet every kind of
character, and shrink to the plainest one that will do. Imported with the first property that runs.
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
    properties_of,
    replaceable,
)
from mcp_touchstone.samples.from_schema import required

SAFE: Final = 2**53 - 1
"""The largest integer that every reader of JSON keeps (RFC 8259, section 6)."""

ALPHABET: Final = (
    "a0b1 zZ9_-./:\"'\\{}[](),;<>&%$#@!?*+=|~^`"
    "\0\x01\t\r\n\x1b\x7f\x80\xa0\xe9\xdf\u0130\u0301\u05d0\u0e33\u2028\u2029\ufeff\ufffd\ufffe"
    "\u4e2d\U0001d54f\U0001f600\U0010ffff"
)
"""ASCII with its controls, then Latin, combining, right to left, separators, and beyond the BMP."""

WORDS: Final = (
    "", " ", "0", "-1", "1e3", "null", "true", "NaN", "undefined", "None", "__proto__",
    "constructor", "toString", "__class__", "%s", "%00", "${x}", "{{x}}", "../..", "\0", "\r\n",
    "é", "e\u0301", "😀", "\ufeff",
)  # fmt: skip
"""Texts that programs have taken for something else."""


LONG: Final = 400
"""Characters of a text that repeats one."""

_TAKEN_IDS: Final = range(101, 100_000)


def texts(longest: int = 20) -> SearchStrategy[str]:
    """Draw texts without lone surrogates: a word that is often mistaken, or anything at all."""
    signs = st.sampled_from(ALPHABET)
    made = st.lists(signs, min_size=1, max_size=longest).map("".join)
    repeated = st.builds(mul, signs, st.integers(0, LONG))
    return st.one_of(made, st.sampled_from(WORDS), repeated)


def ids() -> SearchStrategy[str | int]:
    """Draw ids: strings, and integers that every reader of JSON keeps.

    The integers from 101 to 99999 are left to the requests around.
    """
    return st.one_of(texts(40), numbers().filter(lambda own: own not in _TAKEN_IDS))


def large_ids() -> SearchStrategy[int]:
    """Draw integer ids that some readers of JSON do not keep."""
    return st.builds(mul, st.sampled_from((1, -1)), st.integers(SAFE + 1, 2**80))


def any_ids() -> SearchStrategy[str | int]:
    """Draw ids that every reader of JSON keeps, and some that not every one does."""
    return ids() | large_ids()


def numbers() -> SearchStrategy[int]:
    """Draw integers that every reader of JSON keeps."""
    return st.integers(-SAFE, SAFE)


def values(largest: int = 6) -> SearchStrategy[Any]:
    """Draw JSON values, nested and small."""
    fractions = st.sampled_from((0.5, -0.0, 1e300, 5e-324))
    plain = st.one_of(st.none(), st.booleans(), numbers(), fractions, texts())
    return st.recursive(plain, _nested, max_leaves=largest)


def objects(largest: int = 4) -> SearchStrategy[dict[str, Any]]:
    """Draw JSON objects."""
    return st.dictionaries(texts(8), values(largest), max_size=3)


def _nested(inner: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(texts(8), inner, max_size=3)


# --- how a message is written


def spellings() -> SearchStrategy[Spelling]:
    """Draw ways to write JSON, with no sign that anybody takes for the end of a line."""
    return st.builds(
        Spelling,
        gap=st.sampled_from(("", " ", "\t", " \t ")),
        escape=st.sampled_from(("none", "beyond", "all")),
        slash=st.booleans(),
        upper=st.booleans(),
        turn=st.integers(0, 3),
    )


# --- what a server need not know


def extras() -> SearchStrategy[Extra]:
    """Draw members nobody defined; in ``_meta`` their names are in a foreign prefix."""
    letters = st.lists(st.sampled_from("ax0-_.Z"), max_size=10).map("".join)
    meta = st.builds(Extra, st.just("_meta"), letters.map(_meta_key), values())
    names = texts().filter(lambda name: name not in _TAKEN)
    return meta | st.builds(Extra, st.sampled_from(("params", "message")), names, values())


_TAKEN: Final = frozenset(
    {"jsonrpc", "id", "method", "params", "result", "error", "_meta", "cursor", "task"}
)


def _meta_key(letters: str) -> str:
    return f"org.example.touchstone/x{letters}x"


def methods(known: Sequence[str]) -> SearchStrategy[str]:
    """Draw names of methods that nobody defines: any text, or a known name with a slip."""
    slips = st.builds(_slip, st.sampled_from(tuple(known)), st.integers(0, 5))
    taken = frozenset(known)
    return (texts(12) | slips).filter(
        lambda name: name not in taken and name != "" and not name.startswith("notifications/")
    )


def _slip(name: str, kind: int) -> str:
    return (
        name + "x", f"{name}/", f" {name}", name.upper(), name.replace("/", "."), f"{name}\0",
    )[kind]  # fmt: skip


# --- what a server is asked for


def cursors(issued: Sequence[str] = ()) -> SearchStrategy[str]:
    """Draw cursors: any text, numbers, base64 of nothing, and issued ones with a change."""
    digits = numbers().map(str)
    coded = st.lists(st.sampled_from("AaZz09+/=-_"), max_size=16).map("".join)
    made = texts() | digits | coded
    if not issued:
        return made
    return made | st.builds(lambda one, cut: one[: len(one) * cut // 4], st.sampled_from(issued),
                            st.integers(0, 3))  # fmt: skip


def uris(listed: Sequence[str] = ()) -> SearchStrategy[str]:
    """Draw URIs of schemes nobody serves, broken ones, and listed ones with something behind."""
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
    """Draw arguments that fit a schema, in place of arguments that worked.

    Texts, choices, flags and small numbers only: what names a file, a page or a time stays as it
    was, and nothing is asked for a thousand times.

    Args:
        tools: inputSchema and good arguments of each.
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
    """Draw arguments that do not fit: a required one left out, or an object in place of a scalar.

    Args:
        tools: inputSchema and good arguments of each.
    """
    found: list[SearchStrategy[Edit]] = []
    for number, (schema, good) in enumerate(tools):
        properties = properties_of(schema)
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


# --- what goes on at once


def interleavings(requests: int, longest: int = 8) -> SearchStrategy[list[InterleavingStep]]:
    """Draw lines that are sent without waiting, at least one request among them.

    Args:
        requests: how many kinds of requests there are to choose from.
        longest: how many lines at most.
    """
    asks = st.builds(
        InterleavingStep, st.just("request"), st.integers(0, requests - 1), st.booleans()
    )
    notifications = st.builds(InterleavingStep, st.just("notification"), st.integers(0, 2))
    cancels = st.builds(InterleavingStep, st.just("cancel"), st.integers(0, 3))
    steps = st.lists(st.one_of(asks, asks, notifications, cancels), min_size=1, max_size=longest)
    return steps.filter(lambda made: any(step.kind == "request" for step in made))
