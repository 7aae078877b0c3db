"""What a project writes down once: its server, and how it is judged. Pure; reads no file.

The words are those of the command line without the dashes, so that there is one list of them. A
table ``targets`` names several servers; what stands above it holds for each.
"""

import json
import shlex
from collections.abc import Collection, Mapping
from typing import Any, Final

from mcp_touchstone.clause import nearest
from mcp_touchstone.mistake import Mistake

TABLE: Final = "mcp-touchstone"
"""Below ``tool`` in pyproject.toml."""

TARGETS: Final = "targets"

_TEXT: Final = "a string"
_TEXTS: Final = "a string or an array of strings"
_NUMBER: Final = "a number"
_FLAG: Final = "true or false"
_ENV: Final = "a table of strings"
_USES: Final = "a table of arguments for each name, or true where we may make them up"
_USE: Final = "a table of arguments, an array of such tables, or true where we may make them up"
_PROMISES: Final = "a string, an array of strings, or a table of terms (or true) for each name"
_BINDS: Final = "a table of tool, path and the like for each operation, or an array of such tables"
_MEMBER: Final = {_ENV: _TEXT, _USES: _USE}

KEYS: Final = {
    "command": _TEXTS, "from": _TEXT, "server": _TEXT,
    "env": _ENV, "cwd": _TEXT, "root-from": _TEXT, "offline": _FLAG, "timeout": _NUMBER,
    "call": _USES, "prompt": _USES, "resource": _TEXTS, "promise": _PROMISES,
    "suite": _TEXT, "select": _TEXTS, "revision": _TEXTS, "level": _TEXTS, "strict": _FLAG,
    "attacks": _TEXTS, "bindings": _BINDS, "quick": _FLAG,
    "fail-on": _TEXTS, "baseline": _TEXT, "jobs": _NUMBER, "examples": _NUMBER, "seed": _NUMBER,
}  # fmt: skip
"""Key -> what its value is. ``from`` and ``server`` name a client's file and a server in it."""

_SOURCES: Final = ("command", "from", "server")
_MERGED: Final = ("env", "call", "prompt", "bindings")

Settings = dict[str, Any]
"""Key -> value, checked, for one target."""


class ConfigError(Mistake, ValueError):
    """A configuration cannot be used; the message names file and key, and how to mend it."""


def read(table: Mapping[str, Any], where: str) -> dict[str, Settings]:
    """Check a table and give what holds for each target; one without a name is called "".

    Raises:
        ConfigError: a key is unknown, or a value not what it should be.
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


def _merged(shared: Settings, own: Settings) -> Settings:
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
        if not _fits(value, KEYS[key]):
            raise ConfigError(f"{where}: {_wrong(key, value, KEYS[key])}")
    if "command" in table and "from" in table:
        raise ConfigError(f"{where}: command and from exclude each other; keep one")
    try:
        empty = "command" in table and not command(table)
    except ValueError as error:
        told = str(error)[:1].lower() + str(error)[1:]
        raise ConfigError(f"{where}: command: {told}; close it, or write an array") from error
    if empty:
        raise ConfigError(f"{where}: command is empty; write program and arguments")


def _wrong(key: str, value: Any, kind: str) -> str:
    """Say which value is wrong, of a table the first."""
    if kind not in _MEMBER or not isinstance(value, dict):
        return f"{key} is {_kind(value)}; write {kind}"
    name, member = next((n, v) for n, v in value.items() if not _fits(v, _MEMBER[kind]))
    told = f"{key}.{name} is {_kind(member)}; write {_MEMBER[kind]}"
    return told + (f", or move it above [{key}]" if name in KEYS else "")


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


def choose(found: Mapping[str, Settings], name: str | None, where: str) -> tuple[str, Settings]:
    """Give the target the user named, or the only one.

    Raises:
        ConfigError: there is none of that name, or several and none was named.
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


def command(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Give the command; empty where none is named."""
    found = settings.get("command", ())
    return tuple(shlex.split(found)) if isinstance(found, str) else tuple(found)


def takes(key: str, told: Any) -> bool:
    """Whether a key counts beside what the command line says; lists there replace those here.

    Args:
        key: the key.
        told: what the command line says; ``...`` where the command has no such option.
    """
    replaced = isinstance(told, list) and bool(told) and key not in _MERGED
    return told is not ... and not replaced


def words(settings: Mapping[str, Any], known: Collection[str]) -> list[str]:
    """Give settings as the words of a command line.

    Args:
        settings: the settings.
        known: the keys the command knows, or the user has not said otherwise; others are left out.
    """
    found: list[str] = []
    for key, value in settings.items():
        if key in _SOURCES or key not in known:
            continue
        option = f"--{key}"
        if KEYS[key] in {_USES, _BINDS}:
            for name, given in value.items():
                several = given if isinstance(given, list) else [given]
                found += [f"{option}={_use(name, one)}" for one in several]
        elif KEYS[key] == _PROMISES and isinstance(value, dict):
            found += [f"{option}={_use(name, given)}" for name, given in value.items()]
        elif KEYS[key] == _ENV:
            found += [f"{option}={name}={text}" for name, text in value.items()]
        elif KEYS[key] == _FLAG:
            found += [option] if value else []
        else:
            several = value if isinstance(value, list) else [value]
            found += [f"{option}={one}" for one in several]
    return found


def _use(name: str, given: Any) -> str:
    return name if given is True else f"{name}={json.dumps(given, default=str)}"
