"""Validate messages against compact JSON Schemas, one file per revision. Pure.

A file is data of the suite (``conformance/schemas/<revision>.json``), JSON Schema 2020-12 written
by hand from the revision's schema.ts. A file with the member ``changes`` only has what differs from
the revision named there, as a JSON merge patch (RFC 7396): null removes a member. Beside ``$defs``
it has parts, each a table of method -> schema: ``results`` (the result of a request),
``notifications`` and ``requests`` (the whole message of the server), ``errors`` (the error object,
by its code), and where the revision has them ``input_required`` and ``tasks`` (permitted in place
of the result). Object members are open; enumerations and unions are not.

Three conventions, all of them plain annotations or assertions to any other validator:

- ``format``, ``multipleOf`` and ``not`` state requirements of the generated schema.json alone (uri,
  byte, whole numbers, a boolean as the schema of a property). A breach of them is mild.
- ``counted-by`` names the clauses that count a breach here, so that one event is one finding. The
  module ``schema_refs`` defines its words.
- ``anyOf`` is a union. Its members are distinguished by ``type`` and by the ``const`` of a member,
  so that a fault is reported inside the intended member.

``jsonschema`` is imported with the first message that may have a flaw.
"""

import base64
import binascii
import functools
import hashlib
import json
import marshal
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from mcp_touchstone.wire.framing import brief, type_name
from mcp_touchstone.wire.schema_refs import COUNTED_BY, NAME, expand

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator

MILD: Final = frozenset({"format", "multipleOf", "not"})
SHOWN: Final = 40
"""Characters of a value that a message quotes."""
MOST: Final = 200
"""Greatest number of flaws of one message."""
REMEMBERED: Final = 512
"""Greatest number of cached results: a server sends equal messages many times in a run."""
SHORT: Final = 2048
"""Bytes of a line from which the result for a message without a flaw is cached."""
ROOM: Final = 1 << 22
"""Bytes of all messages together whose results are cached."""

_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]*")
_WORD: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


@dataclass(frozen=True, slots=True)
class Flaw:
    """One place where a message violates its schema.

    Attributes:
        path: the place: ``result.tools[0].inputSchema.type``.
        why: the fault: ``"array" is not "object"``.
        mild: whether only the generated schema.json requires it.
        clause: the clause that counts it, by ``counted-by``; empty if none does.
    """

    path: str
    why: str
    mild: bool = False
    clause: str = ""

    @property
    def text(self) -> str:
        """Return it on one line."""
        return f"{self.path}: {self.why}"


@dataclass(frozen=True, slots=True)
class Look:
    """The result of validating one message.

    Attributes:
        flaws: its flaws, at most MOST.
        clauses: the clauses of ``counted-by`` that apply to a part of it, broken or not.
        start: the text with which each place begins.
        parts: definition -> place and value of each part that should match it, valid or not.
    """

    flaws: tuple[Flaw, ...]
    clauses: frozenset[str]
    start: str
    parts: Mapping[str, Sequence[tuple["Place", Any]]]

    def named(self, name: str) -> Iterator[tuple[str, Any]]:
        """Yield the places of a definition as text, with their values."""
        for place, value in self.parts.get(name, ()):
            yield path_text(self.start, place), value


class Schemas:
    """The schemas of a folder, read and compiled on first use.

    Args:
        folder: folder with the files ``<revision>.json``.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, dict[str, Any]] = {}
        self._expanded: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._compiled: dict[tuple[str, str, str], Validator] = {}
        self._tests: dict[tuple[str, str, str], Test] = {}
        self._walkers: dict[tuple[str, str, str], Walk | None] = {}
        self._seen = Remembered[Look]()

    def methods(self, revision: str, part: str = "results") -> tuple[str, ...]:
        """Return the methods with schemas in a part of a revision; empty if it lacks the part."""
        return tuple(self._file(revision).get(part, ()))

    def flaws(self, revision: str, part: str, method: str, value: Any) -> Iterator[Flaw]:
        """Yield the flaws of a message, lazily, so that a caller can stop early.

        Raises:
            KeyError: the part has no schema for the method.
        """
        if not self._surely_fits(revision, part, method)(value):
            yield from self._found(revision, part, method, value)

    def _found(self, revision: str, part: str, method: str, value: Any) -> Iterator[Flaw]:
        """Yield what the library finds."""
        start = _START.get(part, "result")
        for error in self._validator(revision, part, method).iter_errors(value):
            yield _flaw(error, start)

    def look(self, revision: str, part: str, method: str, value: Any, length: int = SHORT) -> Look:
        """Validate a whole message; one equal to an earlier one is not validated again.

        Args:
            length: that of its line in bytes; one that is short and surely fits is not remembered,
                because that takes longer than to look again.
        """
        fits = self._surely_fits(revision, part, method)(value)
        if fits and length < SHORT:
            return self._looked(revision, part, method, value, ())
        key = digest([revision, part, method, value])
        known = self._seen.get(key)
        if known is None:
            flaws = () if fits else self._found(revision, part, method, value)
            known = self._looked(revision, part, method, value, flaws)
            self._seen.keep(key, known)
        return known

    def _looked(
        self, revision: str, part: str, method: str, value: Any, flaws: Iterable[Flaw]
    ) -> Look:
        start = _START.get(part, "result")
        met: set[str] = set()
        parts: dict[str, list[tuple[Place, Any]]] = {}
        nodes: list[Node] = []
        if (walk := self._walker(revision, part, method)) is not None:
            walk(value, (), nodes)
        for clauses, name, path, one in nodes:
            met |= clauses
            if name:
                parts.setdefault(name, []).append((path, one))
        return Look(tuple(islice(flaws, MOST)), frozenset(met), start, parts)

    def expanded(self, revision: str, part: str, method: str) -> dict[str, Any]:
        """Return the schema of one method in one piece: no ``$ref``, ``counted-by`` resolved."""
        file = self._file(revision)
        found: dict[str, Any] = expand(file[part][method], file["$defs"])
        return found

    def _file(self, revision: str) -> dict[str, Any]:
        if revision not in self._files:
            path = self._folder / f"{revision}.json"
            file = json.loads(path.read_text(encoding="utf-8"))
            base = file.pop("changes", "")
            self._files[revision] = _patched(self._file(base), file) if base else file
        return self._files[revision]

    def _validator(self, revision: str, part: str, method: str) -> "Validator":
        key = (revision, part, method)
        if key not in self._compiled:
            self._compiled[key] = _dialect()(self._schema(*key))
        return self._compiled[key]

    def _surely_fits(self, revision: str, part: str, method: str) -> "Test":
        key = (revision, part, method)
        if key not in self._tests:
            self._tests[key] = surely_fits(self._schema(*key))
        return self._tests[key]

    def _walker(self, revision: str, part: str, method: str) -> "Walk | None":
        key = (revision, part, method)
        if key not in self._walkers:
            self._walkers[key] = _walker(self._schema(*key))
        return self._walkers[key]

    def _schema(self, revision: str, part: str, method: str) -> dict[str, Any]:
        key = (revision, part, method)
        if key not in self._expanded:
            self._expanded[key] = self.expanded(*key)
        return self._expanded[key]


def _patched(base: Any, patch: Any) -> Any:
    """Return the result of a JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    known = base if isinstance(base, dict) else {}
    merged = known | {name: _patched(known.get(name), one) for name, one in patch.items()}
    return {name: one for name, one in merged.items() if one is not None}


_START: Final = {"notifications": "", "requests": "", "errors": "error"}


_exact: Final = json.JSONEncoder(default=repr).encode


T = TypeVar("T")
Key = tuple[bytes, int]
"""The digest of a JSON value, and the bytes that it was made of."""


def digest(value: Any) -> Key | None:
    """Return the key of a JSON value; None if it is very long."""
    try:
        data = marshal.dumps(value, 2)  # a quarter of the time of JSON; later versions share parts
    except ValueError:  # a number of thousands of digits, or a very deep value
        data = _exact(value).encode("ascii")
    if len(data) > ROOM:
        return None
    return hashlib.blake2b(data, digest_size=16).digest(), len(data)


class Remembered(Generic[T]):
    """The newest results by the key of the message that each is about. Thread-safe.

    A result refers to parts of its message. So the number of results alone is no limit: the
    messages of runs that have ended would stay in the memory of a process that makes many runs.
    """

    def __init__(self) -> None:
        self._known: dict[Key, T] = {}
        self._length = 0
        self._lock = threading.Lock()

    def get(self, key: Key | None) -> T | None:
        """Return a result, if it is known."""
        return None if key is None else self._known.get(key)

    def keep(self, key: Key | None, result: T) -> None:
        """Store a result, and forget the oldest ones above the limits."""
        if key is None:
            return
        with self._lock:
            self._length += 0 if key in self._known else key[1]
            self._known[key] = result
            while len(self._known) > REMEMBERED or self._length > ROOM:
                oldest = next(iter(self._known))
                del self._known[oldest]
                self._length -= oldest[1]


# --- traversal


Place = tuple[str | int, ...]
"""The names and indexes that lead to a value."""

Node = tuple[frozenset[str], str, Place, Any]
"""The clauses and the name of a schema with annotations, the place of the value to which it
applies, and the value."""


Walk = Callable[[Any, Place, list[Node]], None]
"""Collects what has annotations in a value at a place."""


def _walker(schema: Any) -> Walk | None:
    """Return what traverses a value beside its schema, through the intended members of unions.

    None if nothing in the schema has annotations: most of a message need not be traversed.
    """
    if not isinstance(schema, dict):
        return None
    clauses, name_of = frozenset(schema.get(COUNTED_BY, {}).values()), schema.get(NAME, "")
    is_own = bool(clauses or name_of)
    members = [found for one in schema.get("allOf", ()) if (found := _walker(one))]
    union = [(one, _walker(one)) for one in schema.get("anyOf", ())]
    has_union = any(walk for _, walk in union)
    meant = _choice(union)
    known = {name: _walker(one) for name, one in schema.get("properties", {}).items()}
    rest, item = _walker(schema.get("additionalProperties")), _walker(schema.get("items"))
    has_named = rest is not None or any(known.values())
    if not (is_own or members or has_union or has_named or item):
        return None

    def walk(value: Any, path: Place, found: list[Node]) -> None:
        if is_own:
            found.append((clauses, name_of, path, value))
        for member in members:
            member(value, path, found)
        for one in meant(value) if has_union else ():
            if one is not None:
                one(value, path, found)
        if has_named and isinstance(value, dict):
            for name, below in value.items():
                if (inner := known.get(name, rest)) is not None:
                    inner(below, (*path, name), found)
        elif item is not None and isinstance(value, list):
            for index, below in enumerate(value):
                item(below, (*path, index), found)

    return walk


_TYPES: Final[Mapping[str, frozenset[type]]] = {
    "object": frozenset({dict}),
    "array": frozenset({list}),
    "string": frozenset({str}),
    "boolean": frozenset({bool}),
    "null": frozenset({type(None)}),
    "number": frozenset({int, float, Decimal}),
    "integer": frozenset({int}),
}
"""Type of JSON Schema -> the types of its values; 1.0 is an integer too, and true is no number."""
_BELOW: Final = frozenset({"properties", "additionalProperties", "items", "allOf", "anyOf"})
_SILENT: Final = frozenset({"title", COUNTED_BY, NAME})
MOST_WORDS: Final = 64
"""Greatest number of words of a member of a union that are looked up."""
_ABOUT: Final[Mapping[str, type]] = {"format": str, "multipleOf": float}
"""Keyword -> the only type that it is about."""


Test = Callable[[Any], bool]
"""Tells of a value whether it keeps a schema."""


def surely_fits(schema: Any) -> Test:
    """Return the test whether a value has no flaw, as the library would say.

    It is false if only the library can tell. It is twenty times as fast, and nearly all messages
    have no flaw: for them the library is not even imported.
    """
    if not isinstance(schema, dict):
        return lambda _value: schema is True
    tests = [*_plain(schema), *map(surely_fits, schema.get("allOf", ()))]
    if "anyOf" in schema:
        tests.append(_union([(one, surely_fits(one)) for one in schema["anyOf"]]))
    if (items := schema.get("items", True)) is not True:
        item = surely_fits(items)
        tests.append(lambda value: not isinstance(value, list) or all(map(item, value)))
    known = {name: surely_fits(one) for name, one in schema.get("properties", {}).items()}
    rest = schema.get("additionalProperties", True)
    if known or rest is not True:
        tests.append(_named(known, None if rest is True else surely_fits(rest)))
    return tests[0] if len(tests) == 1 else _both(tests)


def _both(tests: Sequence[Test]) -> Test:
    """Return the test whether a value passes several tests."""

    def fits(value: Any) -> bool:
        for test in tests:  # noqa: SIM110  (all() needs twice the time)
            if not test(value):
                return False
        return True

    return fits


def _union(members: Sequence[tuple[Mapping[str, Any], Test]]) -> Test:
    """Return the test whether a value fits the only member of a union that it can be."""
    choice = _choice(members)

    def fits(value: Any) -> bool:
        meant = choice(value)
        return len(meant) == 1 and meant[0](value)

    return fits


def _named(known: Mapping[str, Test], rest: Test | None) -> Test:
    """Return the test of the members of an object."""

    def fits(value: Any) -> bool:
        if isinstance(value, dict):
            for name, one in value.items():
                test = known.get(name, rest)
                if test is not None and not test(one):
                    return False
        return True

    return fits


def _plain(schema: Mapping[str, Any]) -> Iterator[Test]:
    """Yield the tests of all of a schema but what is below it."""
    for word, said in schema.items():
        if word == "type":
            yield _of(said)
        elif word == "not" and said.keys() - _SILENT == {"type"}:
            yield functools.partial(lambda of, value: not of(value), _of(said["type"]))
        elif word == "const":
            yield functools.partial(_is_same, constant=said)
        elif word == "enum":
            yield functools.partial(_is_one_of, constants=said)
        elif word == "required":
            yield functools.partial(_has_all, frozenset(said))
        elif word not in _BELOW | _SILENT:
            about = _ABOUT.get(word, object)
            yield functools.partial(lambda kind, value: not isinstance(value, kind), about)


def _has_all(names: frozenset[str], value: Any) -> bool:
    return not isinstance(value, dict) or names <= value.keys()


def _of(name: str | list[str]) -> Test:
    """Return the test whether a value has a type of JSON Schema, or one of several."""
    names = [name] if isinstance(name, str) else name
    kinds = frozenset[type]().union(*map(_TYPES.__getitem__, names))
    if "integer" in names and float not in kinds:
        return lambda value: type(value) in kinds or (type(value) is float and value.is_integer())
    return lambda value: type(value) in kinds


def _is_same(value: Any, constant: Any) -> bool:
    """Whether a value is a constant, and of its type: 1 is not true."""
    return type(value) is type(constant) and bool(value == constant)


def _is_one_of(value: Any, constants: Sequence[Any]) -> bool:
    return any(_is_same(value, one) for one in constants)


def prepare() -> None:
    """Import the library while there is nothing else to do."""
    _dialect()


@functools.cache
def _dialect() -> "type[Validator]":
    """Return the 2020-12 validator with the keywords that this module redefines."""
    from jsonschema import Draft202012Validator  # noqa: PLC0415  (a tenth of a second to import)
    from jsonschema.validators import extend  # noqa: PLC0415

    own = {"anyOf": _any_of, "format": _format, "multipleOf": _whole, "required": required}
    made: type[Validator] = extend(Draft202012Validator, own)  # type: ignore[no-untyped-call]
    return made


Errors = Iterator["ValidationError"]


def _error(message: str, *path: str) -> "ValidationError":
    from jsonschema import ValidationError  # noqa: PLC0415  (imported by now)

    return ValidationError(message, path=path)


def required(validator: "Validator", names: Any, value: Any, schema: Any) -> Errors:
    """Yield the errors of ``required``: one per missing member, at its place."""
    del validator, schema
    if isinstance(value, dict):
        for name in names:
            if name not in value:
                yield _error("is missing", name)


def _whole(validator: "Validator", step: int, value: Any, schema: Any) -> Errors:
    """Yield the errors of ``multipleOf: 1``; the library's own check raises on infinity (1e999)."""
    del step, schema
    if isinstance(value, float) and validator.is_type(value, "number") and not value.is_integer():
        yield _error(f"{brief(value, SHOWN)} is not a whole number")


def _format(validator: "Validator", name: str, value: Any, schema: Any) -> Errors:
    del validator, schema
    if isinstance(value, str):
        if name == "uri" and not _URI.fullmatch(value):
            yield _error(f"{brief(value, SHOWN)} is not a URI")
        if name == "byte" and not _is_base64(value):
            yield _error(f"{brief(value, SHOWN)} is not base64")


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


# --- unions


def _any_of(validator: "Validator", members: list[Any], value: Any, schema: Any) -> Errors:
    """Yield the errors of a union in its intended member; the other members cannot match."""
    meant = [member for member in members if _meant(member, value)]
    if not meant:
        if "type" not in schema or validator.is_type(value, schema["type"]):
            yield _other(members, value)
        return
    filled = [member for member in meant if _is_filled(member, value)]
    fitting = meant if len(meant) == 1 else filled
    if len(fitting) == 1:
        yield from _descend(validator, value, fitting[0])
        return
    found = [list(_descend(validator, value, member)) for member in fitting]
    if found and not all(found):
        return
    for errors in found:
        if all(map(_is_mild, errors)):
            yield from errors
            return
    yield _error(f"{brief(value, SHOWN)} is not {_titles(meant)}")


def _descend(validator: "Validator", value: Any, member: Any) -> Errors:
    errors: Errors = validator.descend(value, member)  # type: ignore[attr-defined]
    return errors


def _meant(member: Mapping[str, Any], value: Any) -> bool:
    """Return whether a value can be this member of a union, by its type and its constants."""
    return _meant_by(member)(value)


def _meant_by(member: Mapping[str, Any]) -> Test:
    """Return the test whether a value can be this member of a union."""
    of = _of(member["type"]) if "type" in member else None
    needed = frozenset(member.get("required", ()))
    constants = [*_constants(member)]

    def is_meant(value: Any) -> bool:
        if of is not None and not of(value):
            return False
        if isinstance(value, dict):
            for name, known in constants:
                if value[name] not in known if name in value else name in needed:
                    return False
        return True

    return is_meant


def _choice(members: Sequence[tuple[Mapping[str, Any], T]]) -> Callable[[Any], Sequence[T]]:
    """Return what tells of a value which members of a union it can be.

    Mostly one member of an object alone distinguishes them, such as ``type``: what it says is
    looked up.
    """
    tests = [(_meant_by(schema), one) for schema, one in members]
    names = {name for schema, _ in members for name, _ in _constants(schema)}
    name = names.pop() if len(names) == 1 else ""
    known: dict[str, Sequence[T]] = {}

    def choice(value: Any) -> Sequence[T]:
        said = value.get(name) if name and type(value) is dict else None
        found = known.get(said) if type(said) is str else None
        if found is None:
            found = [one for is_meant, one in tests if is_meant(value)]
            if found and type(said) is str and len(known) < MOST_WORDS:
                known[said] = found
        return found

    return choice


def _constants(member: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """Yield the distinguishing members of an object schema, with their permitted values."""
    for name, below in member.get("properties", {}).items():
        if "const" in below:
            yield name, [below["const"]]
        elif "enum" in below and name in member.get("required", ()):
            yield name, below["enum"]


def _is_filled(member: Mapping[str, Any], value: Any) -> bool:
    return not isinstance(value, dict) or all(n in value for n in member.get("required", ()))


def _other(members: list[Any], value: Any) -> "ValidationError":
    """Return the error for a value that no member of a union matches."""
    known: dict[str, list[Any]] = {}
    for member in members:
        for name, constants in _constants(member):
            known.setdefault(name, []).extend(constants)
    if isinstance(value, dict):
        for name, constants in known.items():
            if name not in value:
                return _error("is missing", name)
            if value[name] not in constants:
                return _error(f"{brief(value[name], SHOWN)} is {_none_of(constants)}", name)
    return _error(f"{brief(value, SHOWN)} is not {_titles(members)}")


def _titles(members: list[Any]) -> str:
    return " or ".join(str(member.get("title", "a member of a union")) for member in members)


# --- text of flaws


def _is_mild(error: "ValidationError") -> bool:
    return error.validator in MILD


def _flaw(error: "ValidationError", start: str) -> Flaw:
    schema: Any = error.schema
    clause = schema.get(COUNTED_BY, {}).get(error.validator, "")
    return Flaw(path_text(start, error.absolute_path), sentence(error), _is_mild(error), clause)


def path_text(start: str, steps: Iterable[str | int]) -> str:
    """Return a place in a message as text: ``result.tools[0].name``."""
    path = start
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif _WORD.fullmatch(step):
            path += f".{step}"
        else:
            path += f"[{brief(step, SHOWN)}]"
    return path.removeprefix(".")


def sentence(error: "ValidationError") -> str:
    """Return the fault at the place of an error as a sentence."""
    value: Any = error.instance
    asked: Any = error.validator_value
    say = _SENTENCES.get(str(error.validator))
    return f"{brief(value, SHOWN)} {say(asked, value)}" if say else error.message


_SENTENCES: Final[dict[str, Callable[[Any, Any], str]]] = {
    "type": lambda asked, value: f"is {_a(type_name(value))}, not {_either(asked)}",
    "const": lambda asked, _: f"is not {brief(asked)}",
    "enum": lambda asked, _: f"is {_none_of(asked)}",
    "minimum": lambda asked, _: f"is less than {asked}",
    "maximum": lambda asked, _: f"is more than {asked}",
    "maxItems": lambda asked, value: f"holds {len(value)} items, more than {asked}",
    "not": lambda _, value: f"is {_a(type_name(value))}",
}
"""Keyword -> function: its argument, the value -> the fault; other keywords use the library's."""


def _either(types: str | list[str]) -> str:
    return _a(types) if isinstance(types, str) else " or ".join(map(_a, types))


def _a(name: str) -> str:
    return name if name == "null" else f"an {name}" if name[0] in "aeio" else f"a {name}"


def _none_of(known: Iterable[Any]) -> str:
    names = list(dict.fromkeys(brief(one) for one in known))
    return f"not {names[0]}" if len(names) == 1 else f"none of {', '.join(names)}"
