"""Records of the MCP registry: the server that one describes, and where a server differs from it.

They are ``server.json`` files, schema 2025-12-11, alone, in a folder or in an answer of a registry:
https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.fleet.entry import (
    PACKAGES,
    ROOT,
    ListedServer,
    ListError,
    RegistryType,
    Start,
    Trouble,
    split,
    unless_refused,
)
from mcp_touchstone.runtime.input_file import InputFile
from mcp_touchstone.runtime.members import Members

LONGEST: Final = 1 << 17
"""Greatest length of a word of a command line, as in Linux (MAX_ARG_STRLEN)."""


STARTED: Final = (
    "only a package of npm, pypi or oci on stdio, or a URL of streamable-http, can be started"
)


class _MissingError(Exception):
    """A required value without a default."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is required and has no default")


def record_of(path: Path, given: Collection[str] = ()) -> ListedServer:
    """Return the server of one registry record.

    Args:
        given: variables that the user sets; the record needs no value for them.

    Raises:
        InputError: it is no record, or the server cannot be started from it alone.
    """
    entry = from_record(published(path), str(path), given)
    if entry.trouble is not None:
        hint = "; give it with --env NAME=VALUE" if "variable" in entry.trouble.line else ""
        raise ListError(f"{path}: {entry.trouble.kind}: {entry.trouble.line}{hint}")
    return entry


def published(path: Path) -> Mapping[str, Any]:
    """Return a registry record as it was published.

    Raises:
        InputError: the file has none.
    """
    cure = "name a server.json of the MCP registry"
    record = record_in(Members.of(InputFile(path, cure).json(), f"{path}: a record").value)
    if record is None:
        raise ListError(f"{path}: it is no server.json of the MCP registry")
    return record


def differences(entry: ListedServer, server: Mapping[str, Any]) -> list[str]:
    """Return a line for each difference between a record and what the server says of itself.

    Args:
        server: ``serverInfo`` of the server.
    """
    if not entry.described or not server:
        return []
    name, title = entry.described["name"], entry.described.get("title", "")
    plain = entry.plain
    known = {
        "name": {name, name.rpartition("/")[2], title, plain, plain.rpartition("/")[2]},
        "version": {entry.described["version"], entry.version},
    }
    return [
        f"{key}: the record has {entry.described[key]!r}, the server says {server.get(key)!r}"
        for key, values in known.items()
        if str(server.get(key)).lower() not in {value.lower() for value in values if value}
    ]


def record_in(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the registry record in a row; None if it has none."""
    inner = row.get("server")
    if isinstance(inner, dict):
        row = inner
    is_record = (
        "packages" in row or "remotes" in row or "server.schema.json" in str(row.get("$schema", ""))
    )
    return row if is_record and isinstance(row.get("name"), str) else None


def from_record(record: Mapping[str, Any], where: str, given: Collection[str] = ()) -> ListedServer:
    """Return the server of a registry record: its first package over stdio, or its URL.

    A required value without a default makes it ``needs-config``, except for paths: the server gets
    its throw-away folder. A member of a wrong type makes it ``unsupported``.

    Args:
        given: variables that need no value.

    Raises:
        InputError: it has no name.
    """
    members = Members(record, where)
    found = ListedServer(name=members.get("name", str), registry=RegistryType.COMMAND, where=where)
    try:
        described = {name: members.get(name, str, "") for name in ("name", "version", "title")}
        return unless_refused(_server(replace(found, described=described), members, given))
    except InputError as error:
        why = str(error).removeprefix(f"{where}: ")
        return replace(found, trouble=Trouble(Start.UNSUPPORTED, why))


def _server(found: ListedServer, record: Members, given: Collection[str]) -> ListedServer:
    packages, remotes = [*record.objects("packages")], [*record.objects("remotes")]
    local = sorted(
        (
            one
            for one in packages
            if _type(one) == "stdio" and one.get("registryType", str, "") in [*PACKAGES]
        ),
        key=lambda one: PACKAGES.index(RegistryType(one.get("registryType", str))),
    )
    try:
        if local:
            return _package(found, local[0], given)
        for one in remotes:
            if one.get("type", str, "") == "streamable-http":
                return _remote(found, one)
    except _MissingError as error:
        return replace(found, trouble=Trouble(Start.NEEDS_CONFIG, str(error)))
    kinds = [f"{one.get('registryType', str, '')} ({_type(one)})" for one in packages]
    kinds += [one.get("type", str, "") for one in remotes]
    line = f"{STARTED}; it has {', '.join(kinds) or 'nothing'}"
    return replace(found, trouble=Trouble(Start.UNSUPPORTED, line))


def _type(package: Members) -> str:
    return package.object("transport").get("type", str, "stdio")


def _package(found: ListedServer, package: Members, given: Collection[str]) -> ListedServer:
    registry = RegistryType(package.get("registryType", str))
    name, version = package.get("identifier", str, ""), package.get("version", str, "")
    if registry is RegistryType.OCI:
        name, tag = split(name, registry)
        version = tag or version
    base = replace(found, registry=registry, package=name, version=version)
    runtime = tuple(_arguments(package, "runtimeArguments", required=False))
    script, ignored = "", runtime
    if registry is RegistryType.PYPI and "--from" in runtime[:-1]:
        at = runtime.index("--from")
        base = replace(base, package=split(runtime[at + 1], registry)[0])
        script, ignored = next(iter(runtime[at + 2 :]), ""), runtime[at + 3 :]
    try:
        args = tuple(_arguments(package, "packageArguments"))
        env = _variables(package, given)
    except _MissingError as error:
        return replace(base, trouble=Trouble(Start.NEEDS_CONFIG, str(error)))
    flags = {"-y", "--yes", "-i", "--rm", name, base.spec("@"), base.spec("==")}
    ignored = tuple(word for word in ignored if word not in flags)
    return replace(base, args=args, env=env, script=script, ignored=ignored)


def _remote(found: ListedServer, remote: Members) -> ListedServer:
    url = _filled(remote.get("url", str, ""), remote)
    base = replace(found, registry=RegistryType.REMOTE, url=url)
    for header in remote.objects("headers"):
        if _is_required(header) and _given(header) is None:
            why = str(_MissingError(f"header {header.get('name', str, '')}"))
            return replace(base, trouble=Trouble(Start.NEEDS_CONFIG, why))
    return base


def _arguments(package: Members, name: str, *, required: bool = True) -> Iterator[str]:
    for one in package.objects(name):
        words = (one.word(key) for key in ("name", "valueHint", "value"))
        label = next(filter(None, words), "an argument")
        value, named = _given(one), one.get("type", str, "") == "named"
        if value is None and _is_required(one) and required:
            if not named or one.get("format", str, "boolean") != "boolean":
                raise _MissingError(f"argument {label}")
            value = ""
        if named and (value is not None or _is_required(one)):
            yield one.get("name", str)
        if value:
            yield value


def _variables(package: Members, given: Collection[str]) -> dict[str, str]:
    found = {}
    for one in package.objects("environmentVariables"):
        name = one.get("name", str)
        value = None if name in given else _given(one)
        if value is None and _is_required(one) and name not in given:
            raise _MissingError(f"variable {name}")
        if value is not None:
            found[name] = value
    return found


def _is_required(one: Members) -> bool:
    return one.get("isRequired", bool, False)


def _given(one: Members) -> str | None:
    """Return the value of an input; None without one.

    Raises:
        _MissingError: a variable in it is required and has no default.
    """
    value = one.word("value") or one.word("default")
    if value:
        return _filled(value, one)
    return ROOT if _is_required(one) and one.get("format", str, "") == "filepath" else None


def _filled(text: str, one: Members) -> str:
    """Fill in the variables of an input; a variable has no variables of its own."""
    variables, room = one.object("variables"), LONGEST - len(text)

    def fill(match: re.Match[str]) -> str:
        nonlocal room
        name = match[1]
        if name not in variables.value:
            return match[0]
        own = variables.object(name)
        value = own.word("value") or own.word("default")
        if not value and _is_required(own):
            if own.get("format", str, "") != "filepath":
                raise _MissingError(f"variable {name} of {text!r}")
            value = ROOT
        room -= len(value)
        if room < 0:
            raise ListError(f"{one.where} has more than {LONGEST:,} characters")
        return value

    return re.sub(r"\{([^{}]+)\}", fill, text)
