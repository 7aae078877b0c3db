"""Records of the MCP registry: the server that one describes, and where a server differs from it.

They are ``server.json`` files, schema 2025-12-11, alone, in a folder or in an answer of a registry:
https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_touchstone.fleet.entry import (
    PACKAGES,
    ROOT,
    Entry,
    ListError,
    Registry,
    Start,
    Trouble,
    reading,
    split,
    unless_refused,
)


class _MissingError(Exception):
    """A required value without a default."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is required and has no default")


def record_of(path: Path, given: Collection[str] = ()) -> Entry:
    """Return the server of one registry record.

    Args:
        given: variables that the user sets; the record needs no value for them.

    Raises:
        ListError: it is no record, or the server cannot be started from it alone.
    """
    record = published(path)
    packages = [
        {
            **package,
            "environmentVariables": [
                one
                for one in package.get("environmentVariables") or ()
                if one.get("name") not in given
            ],
        }
        for package in record.get("packages") or ()
    ]
    entry = from_record({**record, "packages": packages}, str(path))
    if entry.trouble is not None:
        hint = "; give it with --env NAME=VALUE" if "variable" in entry.trouble.line else ""
        raise ListError(f"{path}: {entry.trouble.kind}: {entry.trouble.line}{hint}")
    return entry


def published(path: Path) -> Mapping[str, Any]:
    """Return a registry record as it was published.

    Raises:
        ListError: the file has none.
    """
    try:
        with reading(path):
            document = json.loads(path.read_text("utf-8"))
    except json.JSONDecodeError as error:
        raise ListError(f"{path}: it is no JSON: {error}") from error
    record = record_in(document) if isinstance(document, dict) else None
    if record is None:
        raise ListError(f"{path}: it is no server.json of the MCP registry")
    return record


def differences(entry: Entry, server: Mapping[str, Any]) -> list[str]:
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
        "packages" in row or "remotes" in row or "server.schema.json" in row.get("$schema", "")
    )
    return row if is_record and isinstance(row.get("name"), str) else None


def from_record(record: Mapping[str, Any], where: str) -> Entry:
    """Return the server of a registry record: its first package over stdio, or its URL.

    A required value without a default makes it ``needs-config``, except for paths: the server gets
    its throw-away folder.

    Raises:
        ListError: it is no record.
    """
    name = record.get("name")
    if not isinstance(name, str):
        raise ListError(f"{where}: the record has no name")
    packages = [one for one in record.get("packages") or () if isinstance(one, dict)]
    remotes = [one for one in record.get("remotes") or () if isinstance(one, dict)]
    found = Entry(
        name=name,
        registry=Registry.COMMAND,
        described={
            "name": name,
            "version": str(record.get("version") or ""),
            "title": str(record.get("title") or ""),
        },
        where=where,
    )
    local = sorted(
        (
            one
            for one in packages
            if _type(one) == "stdio" and one.get("registryType") in [*PACKAGES]
        ),
        key=lambda one: PACKAGES.index(one["registryType"]),
    )
    try:
        if local:
            return unless_refused(_package(found, local[0]))
        for one in remotes:
            if one.get("type") == "streamable-http":
                return _remote(found, one)
    except _MissingError as error:
        return replace(found, trouble=Trouble(Start.NEEDS_CONFIG, str(error)))
    kinds = [f"{one.get('registryType')} ({_type(one)})" for one in packages]
    kinds += [str(one.get("type")) for one in remotes]
    line = f"it has no package over stdio and no streamable-http: {', '.join(kinds) or 'nothing'}"
    return replace(found, trouble=Trouble(Start.UNSUPPORTED, line))


def _type(package: Mapping[str, Any]) -> str:
    transport = package.get("transport")
    return str(transport.get("type", "stdio")) if isinstance(transport, dict) else "stdio"


def _package(found: Entry, package: Mapping[str, Any]) -> Entry:
    registry = Registry(package["registryType"])
    name, version = str(package.get("identifier") or ""), str(package.get("version") or "")
    if registry is Registry.OCI and not version:
        name, version = split(name, registry)
    base = replace(found, registry=registry, package=name, version=version)
    runtime = tuple(_arguments(package.get("runtimeArguments"), required=False))
    script, ignored = "", runtime
    if registry is Registry.PYPI and "--from" in runtime[:-1]:
        at = runtime.index("--from")
        base = replace(base, package=split(runtime[at + 1], registry)[0])
        script, ignored = next(iter(runtime[at + 2 :]), ""), runtime[at + 3 :]
    try:
        args = tuple(_arguments(package.get("packageArguments")))
        env = _variables(package.get("environmentVariables"))
    except _MissingError as error:
        return replace(base, trouble=Trouble(Start.NEEDS_CONFIG, str(error)))
    flags = {"-y", "--yes", "-i", "--rm", name, base.spec("@"), base.spec("==")}
    ignored = tuple(word for word in ignored if word not in flags)
    return replace(base, args=args, env=env, script=script, ignored=ignored)


def _remote(found: Entry, remote: Mapping[str, Any]) -> Entry:
    url = _filled(str(remote.get("url") or ""), remote.get("variables") or {})
    base = replace(found, registry=Registry.REMOTE, url=url)
    for header in remote.get("headers") or ():
        if header.get("isRequired") and _given(header) is None:
            why = str(_MissingError(f"header {header.get('name')}"))
            return replace(base, trouble=Trouble(Start.NEEDS_CONFIG, why))
    return base


def _arguments(given: Any, *, required: bool = True) -> Iterator[str]:
    for one in given if isinstance(given, list) else ():
        label = str(one.get("name") or one.get("valueHint") or one.get("value") or "an argument")
        value = _given(one)
        if value is None and one.get("isRequired") and required:
            if one.get("type") != "named" or one.get("format") not in {None, "boolean"}:
                raise _MissingError(f"argument {label}")
            value = ""
        if one.get("type") == "named" and (value is not None or one.get("isRequired")):
            yield str(one.get("name"))
        if value:
            yield value


def _variables(given: Any) -> dict[str, str]:
    found = {}
    for one in given if isinstance(given, list) else ():
        value = _given(one)
        if value is None and one.get("isRequired"):
            raise _MissingError(f"variable {one.get('name')}")
        if value is not None:
            found[str(one["name"])] = value
    return found


def _given(one: Mapping[str, Any]) -> str | None:
    """Return the value of an input; None without one.

    Raises:
        _MissingError: a variable in it is required and has no default.
    """
    for key in ("value", "default"):
        if one.get(key) not in {None, ""}:
            return _filled(str(one[key]), one.get("variables") or {})
    return ROOT if one.get("isRequired") and one.get("format") == "filepath" else None


def _filled(text: str, variables: Mapping[str, Any]) -> str:
    def fill(match: re.Match[str]) -> str:
        name = match[1]
        if name not in variables:
            return match[0]
        value = _given(variables[name])
        if value is None and variables[name].get("isRequired"):
            raise _MissingError(f"variable {name} of {text!r}")
        return value or ""

    return re.sub(r"\{([^{}]+)\}", fill, text)
