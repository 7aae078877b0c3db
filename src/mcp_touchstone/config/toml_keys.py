"""Check the keys of a configuration file, and turn them into a layer of settings.

The keys are the options of the command line without the dashes. A table ``targets`` names several
servers; keys outside it apply to every target. Each function raises ``ConfigError`` if a key or a
value is invalid. Reads no file.
"""

import json
import os
import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.config.settings import (
    OPTIONS,
    ConfigError,
    Layer,
    fail_on,
    field_of,
)
from mcp_touchstone.config.settings import key as key_of
from mcp_touchstone.sandbox.command_files import named
from mcp_touchstone.target.option import LEAVES, Option, OptionType, Risk, leaves

TABLE: Final = "mcp-touchstone"
"""Name of the table below ``tool`` in pyproject.toml."""

TARGETS: Final = "targets"

_USE: Final = "a table of arguments, an array of such tables, or true to have them generated"
_MEMBER: Final[Mapping[str, str]] = {OptionType.TABLE: OptionType.TEXT, OptionType.USES: _USE}


def _names_private(command: Sequence[str], folder: Path, given: Mapping[str, Any]) -> bool:
    """Return whether a command names what the user hides: its sandbox shows that to it.

    Keys and settings of programs are in hidden files and folders of the home. Programs may be too.
    """
    home = os.path.realpath(Path.home())
    try:
        found = {*named(command, folder / (given.get("cwd") or ""))}
        places = {os.path.realpath(path) for path in found if path.exists()}
    except (OSError, ValueError):  # no text of a path
        return True
    return any(
        os.path.relpath(place, home).startswith(".")
        and not leaves(place, Path(home))
        and leaves(place, folder)
        and not (Path(place).is_file() and os.access(place, os.X_OK))
        for place in places
    )


_PRIVATE: Final = Risk("a hidden file or folder of your home", _names_private)

KEYS: Final[Mapping[str, Option]] = {
    "command": Option(
        kind=OptionType.TEXTS, commands=(), help="program and arguments", risk=_PRIVATE
    ),
    "from": Option(
        kind=OptionType.TEXT, commands=(), help="file of a client with the command", risk=LEAVES
    ),
    "server": Option(kind=OptionType.TEXT, commands=(), help="name of the server in that file"),
    "client": Option(
        kind=OptionType.TEXTS, commands=(), help="program and arguments of a client", risk=_PRIVATE
    ),
    "gateway": Option(
        kind=OptionType.TEXTS, commands=(), help="program and arguments of a gateway", risk=_PRIVATE
    ),
    **{key_of(name): row for name, row in OPTIONS.items() if row.in_files},
}
"""All keys of a target. ``from`` and ``server`` name a client's file and a server in it."""

OTHERS: Final = ("client", "gateway")
"""Keys whose value is the command of a client or of a gateway."""

_SOURCES: Final = ("command", "from", "server")
_MERGED: Final = ("env", "header", "call", "prompt", "bindings")
"""Keys of a target that are added to the common ones."""

Table = dict[str, Any]
"""Key -> value of the right shape, for one target."""


def untrusted(what: str, path: Path | None = None) -> str:
    """Return what to do about a part of a file that the user neither named nor trusts.

    Args:
        path: the file, if ``--config`` can name it.
    """
    other = "" if path is None else f" or --config {shlex.quote(str(path))}"
    return (
        f"{what} is not used, as you did not name this file; if you have read it and trust it, "
        f"add --trust-config{other}"
    )


def read(table: Mapping[str, Any], where: str) -> dict[str, Table]:
    """Check a table and return the keys of each target, by name; an unnamed target is ""."""
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
        if not name or name in {".", ".."} or {*name} & {"/", "\\", "\0"}:
            raise ConfigError(f"{place}: this is no name of a file; it names the baseline")
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
        if not _fits(value, KEYS[key].kind):
            raise ConfigError(f"{where}: {_wrong(key, value, KEYS[key].kind)}")
    if "command" in table and "from" in table:
        raise ConfigError(f"{where}: command and from exclude each other; keep one")
    for key in ("command", *OTHERS):
        try:
            empty = key in table and not command(table, key)
        except ValueError as error:
            message = str(error)[:1].lower() + str(error)[1:]
            raise ConfigError(f"{where}: {key}: {message}; close it, or write an array") from error
        if empty:
            raise ConfigError(f"{where}: {key} is empty; write program and arguments")


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
        OptionType.TEXT: isinstance(value, str),
        OptionType.TEXTS: isinstance(value, str) or texts,
        OptionType.NUMBER: isinstance(value, (int, float)) and not isinstance(value, bool),
        OptionType.FLAG: isinstance(value, bool),
        OptionType.TABLE: isinstance(value, dict)
        and all(_fits(v, OptionType.TEXT) for v in value.values()),
        OptionType.PROMISES: isinstance(value, str)
        or texts
        or all(terms is True or isinstance(terms, dict) for terms in named),
        OptionType.USES: isinstance(value, dict) and all(_fits(v, _USE) for v in value.values()),
        OptionType.BINDINGS: isinstance(value, dict)
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


def command(table: Mapping[str, Any], key: str = "command") -> tuple[str, ...]:
    """Return a command as words, by default that of the server; empty if none is named."""
    found = table.get(key, ())
    return tuple(shlex.split(found)) if isinstance(found, str) else tuple(found)


def layer(table: Mapping[str, Any], where: str) -> Layer:
    """Build a layer of settings from the keys of one target, without commands and their source.

    Args:
        table: the keys, with values of the right shapes.
        where: name of the file, for messages.
    """
    found: dict[str, Any] = {}
    for key, value in table.items():
        if key not in (*_SOURCES, *OTHERS):
            try:
                read = found[field_of(key)] = _value(KEYS[key], value)
                if key == "fail-on" and read:
                    fail_on(*read)
            except ValueError as error:
                raise ConfigError(f"{where}: {key}: {error}") from error
    return found


def _value(row: Option, value: Any) -> Any:
    kind = row.kind
    if kind is OptionType.FLAG:
        return value
    if kind in {OptionType.TEXT, OptionType.NUMBER}:
        return row.read(str(value))
    if kind is OptionType.TABLE:
        return dict(row.read(f"{name}={one}") for name, one in value.items())
    if isinstance(value, dict):
        given = [_text(name, one) for name, uses in value.items() for one in _several(uses)]
    else:
        given = _several(value)
    found = tuple(map(row.read, given))
    return dict(found) if kind is OptionType.PROMISES else found


def _several(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _text(name: str, given: Any) -> str:
    return name if given is True else f"{name}={json.dumps(given, default=str)}"
