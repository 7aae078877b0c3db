"""Check the keys of a configuration file, and turn them into a layer of settings.

The keys are the options of the command line without the dashes. A table ``targets`` names several
servers; keys outside it apply to every target. Pure; reads no file.
"""

import json
import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.config import values
from mcp_touchstone.config.settings import ConfigError, Layer

TABLE: Final = "mcp-touchstone"
"""Name of the table below ``tool`` in pyproject.toml."""

TARGETS: Final = "targets"

_TEXT: Final = "a string"
_TEXTS: Final = "a string or an array of strings"
_NUMBER: Final = "a number"
_FLAG: Final = "true or false"
_ENV: Final = "a table of strings"
_USES: Final = "a table: the arguments for each name, or true to have them generated"
_USE: Final = "a table of arguments, an array of such tables, or true to have them generated"
_PROMISES: Final = "a string, an array of strings, or a table: the terms for each name, or true"
_BINDS: Final = "a table: tool, path and so on for each operation, or an array of such tables"
_MEMBER: Final = {_ENV: _TEXT, _USES: _USE}


@dataclass(frozen=True, slots=True)
class Key:
    """The accepted values of one key.

    Attributes:
        shape: description of the required type, for messages.
        read: converts the text of the value, or of one member of an array or table.
    """

    shape: str
    read: Callable[[str], Any] = str


KEYS: Final[Mapping[str, Key]] = {
    "command": Key(_TEXTS),
    "from": Key(_TEXT),
    "server": Key(_TEXT),
    "url": Key(_TEXT, values.url),
    "header": Key(_ENV, values.header),
    "ca-file": Key(_TEXT, Path),
    "intrusive": Key(_FLAG),
    "rate": Key(_NUMBER, values.whole(1, values.MOST_REQUESTS)),
    "sdk": Key(_TEXT, values.sdk),
    "env": Key(_ENV),
    "cwd": Key(_TEXT),
    "root-from": Key(_TEXT, Path),
    "world": Key(_TEXT, Path),
    "offline": Key(_FLAG),
    "sandbox": Key(_TEXT, values.sandbox),
    "online": Key(_FLAG),
    "timeout": Key(_NUMBER, values.seconds),
    "call": Key(_USES, values.use),
    "prompt": Key(_USES, values.use),
    "resource": Key(_TEXTS),
    "promise": Key(_PROMISES, values.promise),
    "suite": Key(_TEXT, values.suite),
    "select": Key(_TEXTS),
    "revision": Key(_TEXTS, values.revision),
    "level": Key(_TEXTS, values.level),
    "strict": Key(_FLAG),
    "attacks": Key(_TEXTS, values.attacks),
    "attack-commands": Key(_FLAG),
    "bindings": Key(_BINDS, values.binding),
    "quick": Key(_FLAG),
    "fail-on": Key(_TEXTS, values.fail_on),
    "baseline": Key(_TEXT, Path),
    "accept-unbound": Key(_FLAG),
    "deadline": Key(_NUMBER, values.deadline),
    "jobs": Key(_NUMBER, values.whole(1, values.MOST_JOBS)),
    "examples": Key(_NUMBER, values.whole(0, values.MOST_EXAMPLES)),
    "seed": Key(_NUMBER, values.whole(0, values.MOST_EXAMPLES)),
}
"""All keys of a target. ``from`` and ``server`` name a client's file and a server in it."""

_SOURCES: Final = ("command", "from", "server")
_MERGED: Final = ("env", "header", "call", "prompt", "bindings")

Table = dict[str, Any]
"""Key -> value of the right shape, for one target."""


def read(table: Mapping[str, Any], where: str) -> dict[str, Table]:
    """Check a table and return the keys of each target, by name; an unnamed target is "".

    Raises:
        ConfigError: a key is unknown, or a value is invalid.
    """
    named = table.get(TARGETS)
    if named is not None and not isinstance(named, dict):
        raise ConfigError(f"{where}: {TARGETS} is no table; write [{TARGETS}.NAME]")
    shared = {key: value for key, value in table.items() if key != TARGETS}
    _check(shared, where, (*KEYS, TARGETS))
    if not named:
        return {"": shared}
    found = {}
    for name, own in named.items():
        place = f"{where}: {TARGETS}.{name}"
        if not isinstance(own, dict):
            raise ConfigError(f"{place} is no table; write [{TARGETS}.{name}]")
        _check(own, place, KEYS)
        found[name] = _merged(shared, own)
    return found


def _merged(shared: Table, own: Table) -> Table:
    if any(key in own for key in _SOURCES):
        shared = {key: value for key, value in shared.items() if key not in _SOURCES[:2]}
    both = {**shared, **own}
    for key in _MERGED:
        if key in shared and key in own:
            both[key] = {**shared[key], **own[key]}
    return both


def _check(table: Mapping[str, Any], where: str, known: Collection[str]) -> None:
    for key, value in table.items():
        if key not in KEYS:
            raise ConfigError(f"{where}: unknown key {key!r}{_hint(key, known)}")
        if not _fits(value, KEYS[key].shape):
            raise ConfigError(f"{where}: {_wrong(key, value, KEYS[key].shape)}")
    if "command" in table and "from" in table:
        raise ConfigError(f"{where}: command and from exclude each other; keep one")
    try:
        empty = "command" in table and not command(table)
    except ValueError as error:
        message = str(error)[:1].lower() + str(error)[1:]
        raise ConfigError(f"{where}: command: {message}; close it, or write an array") from error
    if empty:
        raise ConfigError(f"{where}: command is empty; write program and arguments")


def _wrong(key: str, value: Any, kind: str) -> str:
    """Describe the invalid value; in a table, the first invalid member."""
    if kind not in _MEMBER or not isinstance(value, dict):
        return f"{key} is {_kind(value)}; write {kind}"
    name, member = next((n, v) for n, v in value.items() if not _fits(v, _MEMBER[kind]))
    message = f"{key}.{name} is {_kind(member)}; write {_MEMBER[kind]}"
    return message + (f", or move it above [{key}]" if name in KEYS else "")


def _hint(key: str, known: Collection[str]) -> str:
    plain = key.lower().replace("_", "-")
    for guess in (plain, plain.removesuffix("s"), {"args": "command"}.get(plain, "")):
        if guess in known:
            return f"; did you mean {guess!r}?"
    return nearest(plain, known) or f"; the keys are {', '.join(known)}"


def _fits(value: Any, kind: str) -> bool:
    texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
    tables = isinstance(value, list) and all(isinstance(one, dict) for one in value)
    named = [*value.values()] if isinstance(value, dict) else [None]
    return {
        _TEXT: isinstance(value, str),
        _TEXTS: isinstance(value, str) or texts,
        _NUMBER: isinstance(value, (int, float)) and not isinstance(value, bool),
        _FLAG: isinstance(value, bool),
        _ENV: isinstance(value, dict) and all(_fits(v, _TEXT) for v in value.values()),
        _PROMISES: isinstance(value, str)
        or texts
        or all(terms is True or isinstance(terms, dict) for terms in named),
        _USES: isinstance(value, dict) and all(_fits(v, _USE) for v in value.values()),
        _BINDS: isinstance(value, dict)
        and all(_fits(one, _USE) and one is not True for one in named),
        _USE: isinstance(value, dict) or value is True or (tables and bool(value)),
    }[kind]


def _kind(value: Any) -> str:
    kinds = {str: "a string", bool: "true or false", list: "an array", dict: "a table"}
    if isinstance(value, dict) and value:
        return "a table with other values"
    if isinstance(value, list) and value:
        return "an array of other values"
    if value == []:
        return "an empty array"
    return kinds.get(type(value), "a number" if isinstance(value, (int, float)) else "a date")


def choose(found: Mapping[str, Table], name: str | None, where: str) -> tuple[str, Table]:
    """Return the name and keys of the target the user named, or of the only one.

    Raises:
        ConfigError: no target has that name, or there are several and none was named.
    """
    names = ", ".join(one for one in found if one)
    if name is None:
        if len(found) > 1:
            raise ConfigError(f"{where}: it names {names}; choose one with --target NAME")
        return next(iter(found.items()))
    if name not in found:
        if not names:
            raise ConfigError(f"{where}: it names no targets; leave --target {name} out")
        raise ConfigError(
            f"{where}: no target is called {name!r}{nearest(name, found)}; it names {names}"
        )
    return name, found[name]


def command(table: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the command as words; empty if none is named."""
    found = table.get("command", ())
    return tuple(shlex.split(found)) if isinstance(found, str) else tuple(found)


def layer(table: Mapping[str, Any], where: str) -> Layer:
    """Build a layer of settings from the keys of one target, without the command and its source.

    Args:
        table: the keys, with values of the right shapes.
        where: name of the file, for messages.

    Raises:
        ConfigError: a value is invalid.
    """
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _SOURCES:
            try:
                read = found[key.replace("-", "_")] = _value(KEYS[key], value)
                if key == "fail-on" and read:
                    values.fail_on(*read)
            except ValueError as error:
                raise ConfigError(f"{where}: {key}: {error}") from error
    return found


def _value(key: Key, value: Any) -> Any:
    if key.shape == _ENV and key.read is not str:
        return dict(key.read(f"{name}={one}") for name, one in value.items())
    if key.shape in {_ENV, _FLAG}:
        return value
    if key.shape in {_TEXT, _NUMBER}:
        return key.read(str(value))
    if isinstance(value, dict):
        pairs = [(name, one) for name, given in value.items() for one in _several(given)]
        found = [key.read(_text(name, given)) for name, given in pairs]
        return dict(found) if key.shape == _PROMISES else tuple(found)
    found = [key.read(text) for text in _several(value)]
    return dict(found) if key.shape == _PROMISES else tuple(found)


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(name: str, given: Any) -> str:
    return name if given is True else f"{name}={json.dumps(given, default=str)}"
