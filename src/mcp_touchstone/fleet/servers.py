"""Lists of servers: TOML, JSON Lines, CSV, registry records, files of MCP clients.

The records are ``server.json`` files of the MCP registry, schema 2025-12-11, alone, in a folder or
in an answer of a registry: https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json
"""

import csv
import json
import os
import re
import shlex
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.config import client_files
from mcp_touchstone.config.settings import ConfigError

ROOT: Final = "{root}"
"""Placeholder for the throw-away folder of a server, as in ``check``."""


class ListError(UserError, ValueError):
    """A list cannot be used; the message names the file and the place."""


class Registry(StrEnum):
    """The source of a server."""

    NPM = "npm"
    PYPI = "pypi"
    OCI = "oci"
    REMOTE = "remote"
    COMMAND = "command"


class Start(StrEnum):
    """The result of starting a server."""

    STARTED = "started"
    NOT_FOUND = "not-found"
    INSTALL_ERROR = "install-error"
    NEEDS_CONFIG = "needs-config"
    NEEDS_NETWORK = "needs-network"
    USAGE = "usage"
    CRASH = "crash"
    SILENT_EXIT = "silent-exit"
    HANG = "hang"
    UNSUPPORTED = "unsupported"
    OPTED_OUT = "opted-out"
    HARNESS = "harness"


@dataclass(frozen=True, slots=True)
class Trouble:
    """A reason why a server is not judged, with the line that shows it."""

    kind: Start
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One server of a list.

    Attributes:
        name: its name in the list.
        registry: its source.
        package: name of its package; empty without one.
        version: version of the package; empty for the newest.
        script: the program of the package; empty for the usual one.
        command: program and arguments, if it is no package.
        args: arguments after the program of the package.
        env: variables set for it.
        url: its URL, if it is remote.
        cwd: its working folder; None for a throw-away one.
        prefix: folder where its package is installed already; empty to install it.
        trouble: why it cannot be started, if that is known from the list.
        ignored: words of a record that have no effect here: options of a launcher.
        described: name, version and title in its registry record, as published.
        where: its place in the list.
    """

    name: str
    registry: Registry
    package: str = ""
    version: str = ""
    script: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    url: str = ""
    cwd: str | None = None
    prefix: str = ""
    trouble: Trouble | None = None
    ignored: tuple[str, ...] = ()
    described: Mapping[str, str] = field(default_factory=dict)
    where: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        """The identity of the server in results: two entries with one key are the same."""
        if self.registry is Registry.COMMAND:
            return f"{self.registry}:{self.name}"
        text = self.url or self.spec("@")
        return " ".join(
            [f"{self.registry}:{text}", *([shlex.join(self.args)] if self.args else ())]
        )

    @property
    def host(self) -> str:
        """The host of its URL in lower case; empty without one."""
        try:
            return urlsplit(self.url).hostname or ""
        except ValueError:
            return ""

    def spec(self, joint: str) -> str:
        """Return package and version as a package manager reads them."""
        return f"{self.package}{joint}{self.version}" if self.version else self.package

    @property
    def launch(self) -> tuple[str, ...]:
        """The command with which a client would start it."""
        if self.registry is Registry.NPM:
            named = ("-p", self.spec("@"), self.script) if self.script else (self.spec("@"),)
            return ("npx", "-y", *named, *self.args)
        if self.registry is Registry.PYPI:
            plain = re.sub(r"\[.*", "", self.package)
            return ("uvx", "--from", self.spec("=="), self.script or plain, *self.args)
        if self.registry is Registry.OCI:
            variables = [word for name in self.env for word in ("-e", name)]
            return ("docker", "run", "-i", "--rm", *variables, self.spec(":"), *self.args)
        return self.command


def read(path: Path, environment: Mapping[str, str] | None = None) -> Iterator[Entry]:
    """Yield the servers of a list; one that was there before is left out.

    Args:
        path: a file, or a folder of ``server.json`` records.
        environment: variables for the files of MCP clients; None for ours.

    Raises:
        ListError: it cannot be read, is of no known format, or has two servers of one name.
    """
    seen: dict[str, Entry] = {}
    for entry in _read(path, os.environ if environment is None else environment):
        first = seen.setdefault(entry.key, entry)
        if first is entry:
            yield entry
        elif not entry.described and replace(entry, name=first.name) != first:
            raise ListError(
                f"{entry.where}: {entry.key} is already another server at {first.where}; "
                "give it another name"
                if entry.registry is Registry.COMMAND
                else f"{entry.where}: {entry.key} is already listed with other settings at "
                f"{first.where}; remove one of them"
            )


def opt_outs(path: Path) -> frozenset[str]:
    """Return the hosts, names and packages in a file of servers that are left out, in lower case.

    Raises:
        ListError: it cannot be read.
    """
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise ListError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ListError(f"{path}: it is not UTF-8") from error
    words = (re.sub(r"(^|\s)#.*", "", line).strip().lower() for line in lines)
    return frozenset(word for word in words if word)


def without(entries: Iterable[Entry], names: Collection[str], path: Path) -> Iterator[Entry]:
    """Yield servers; those that opted out have a trouble that says so.

    A host stands for the hosts below it too: ``example.org`` for ``mcp.example.org``.

    Args:
        entries: the servers.
        names: hosts, names and packages in lower case.
        path: the file that has them.
    """
    for entry in entries:
        labels = entry.host.split(".")
        own = [".".join(labels[at:]) for at in range(len(labels))]
        own += [entry.name.lower(), entry.package.lower()]
        found = next((name for name in own if name in names), None)
        if found is None:
            yield entry
        else:
            yield replace(entry, trouble=Trouble(Start.OPTED_OUT, f"{found} is in {path.name}"))


def record_of(path: Path, given: Collection[str] = ()) -> Entry:
    """Return the server of one registry record.

    Args:
        path: the file with the record.
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
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ListError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ListError(f"{path}: it is no JSON: {error}") from error
    record = _record(document) if isinstance(document, dict) else None
    if record is None:
        raise ListError(f"{path}: it is no server.json of the MCP registry")
    return record


def differences(entry: Entry, server: Mapping[str, Any]) -> list[str]:
    """Return a line for each difference between a record and what the server says of itself.

    Args:
        entry: the server of a registry record.
        server: ``serverInfo`` of the server.
    """
    if not entry.described or not server:
        return []
    name, title = entry.described["name"], entry.described.get("title", "")
    plain = re.sub(r"\[.*", "", entry.package)
    known = {
        "name": {name, name.rpartition("/")[2], title, plain, plain.rpartition("/")[2]},
        "version": {entry.described["version"], entry.version},
    }
    return [
        f"{key}: the record has {entry.described[key]!r}, the server says {server.get(key)!r}"
        for key, values in known.items()
        if str(server.get(key)).lower() not in {value.lower() for value in values if value}
    ]


def _read(path: Path, environment: Mapping[str, str]) -> Iterator[Entry]:
    if path.is_dir():
        files = sorted(path.rglob("*.json"))
        if not files:
            raise ListError(f"{path}: there is no .json file in this folder")
        for file in files:
            yield from _json(file, environment)
        return
    readers = {".toml": _toml, ".csv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines}
    reader = readers.get(path.suffix)
    if reader is None:
        yield from _json(path, environment)
        return
    try:
        yield from reader(path)
    except OSError as error:
        raise ListError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ListError(f"{path}: it is not UTF-8") from error


def _toml(path: Path) -> Iterator[Entry]:
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ListError(f"{path}: {error}") from error
    tables = document.get("server")
    if not isinstance(tables, list):
        raise ListError(f"{path}: it has no [[server]] table")
    for number, table in enumerate(tables, 1):
        yield _entry(table, f"{path}: server {number}", path.parent)


def _json_lines(path: Path) -> Iterator[Entry]:
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise ListError(f"{path}:{number}: {error}") from error
                yield _entry(row, f"{path}:{number}", path.parent)


def _csv(path: Path) -> Iterator[Entry]:
    with path.open(encoding="utf-8", newline="") as lines:
        for number, row in enumerate(csv.DictReader(lines), 2):
            given = {name: value for name, value in row.items() if name and value}
            yield _entry(given, f"{path}:{number}", path.parent)


def _json(path: Path, environment: Mapping[str, str]) -> Iterator[Entry]:
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise ListError(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ListError(f"{path}: it is not UTF-8") from error
    try:
        document = json.loads(text)
    except ValueError:
        document = None  # a client's file may have comments
    if isinstance(document, dict) and isinstance(document.get("servers"), list):
        document = document["servers"]
    if isinstance(document, list):
        for number, row in enumerate(document, 1):
            yield _entry(row, f"{path}: entry {number}", path.parent)
    elif isinstance(document, dict) and (_record(document) or "name" in document):
        yield _entry(document, str(path), path.parent)
    else:
        try:
            yield from _client(path, text, environment)
        except ConfigError as error:
            raise ListError(str(error)) from error


def _entry(row: Any, where: str, folder: Path) -> Entry:
    """Read one server of a list.

    Raises:
        ListError: it is no server.
    """
    if not isinstance(row, dict):
        raise ListError(f"{where}: it is not a table with a server")
    record = _record(row)
    if record is not None:
        return from_record(record, where)
    found = replace(_flat(row, where, folder), where=where)
    if why := _refusal(found):
        raise ListError(f"{where}: {why}")
    return found


def _unless_refused(entry: Entry) -> Entry:
    why = _refusal(entry)
    return replace(entry, trouble=Trouble(Start.UNSUPPORTED, why)) if why else entry


def _refusal(entry: Entry) -> str:
    """Return why the words of an entry cannot be used, or would be misread; empty if neither."""
    given = (*entry.command, *entry.args, *entry.env, *entry.env.values(), entry.cwd or "")
    for word in given:
        if _NO_WORD.search(word):
            return f"{word!r} holds a character that no command can hold"
    words = {"package": entry.package, "version": entry.version, "program": entry.script}
    for what, word in words.items() if entry.registry in _ORDER else ():
        if word.startswith("-") or not word.isprintable() or re.search(r"\s", word):
            return f"the {what} {word!r} begins with `-`, or holds a blank or a control character"
    return ""


_NO_WORD: Final = re.compile("[\0\ud800-\udfff]")


def _record(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the registry record in a row; None if it has none."""
    inner = row.get("server")
    if isinstance(inner, dict):
        row = inner
    is_record = (
        "packages" in row or "remotes" in row or "server.schema.json" in row.get("$schema", "")
    )
    return row if is_record and isinstance(row.get("name"), str) else None


# --- rows of our own


_FLAT: Final = ("npm", "pypi", "oci", "command", "url")
_KEYS: Final = frozenset((*_FLAT, "name", "version", "args", "env", "script", "cwd", "prefix"))


def _flat(row: Mapping[str, Any], where: str, folder: Path) -> Entry:
    kinds = [kind for kind in _FLAT if row.get(kind)]
    unknown = next((name for name in row if name not in _KEYS), None)
    if unknown is not None:
        raise ListError(f"{where}: the key {unknown!r} is unknown; use {', '.join(sorted(_KEYS))}")
    if len(kinds) != 1:
        raise ListError(f"{where}: it needs one of {', '.join(_FLAT)}")
    kind, given = kinds[0], row[kinds[0]]
    env = row.get("env") or {}
    if isinstance(env, str):
        env = dict(word.partition("=")[::2] for word in shlex.split(env))
    if not isinstance(env, dict):
        raise ListError(f"{where}: env is no table")
    shared: dict[str, Any] = {
        "name": str(row.get("name") or (given if isinstance(given, str) else given[0])),
        "args": _words(row.get("args"), where),
        "env": {str(name): str(value) for name, value in env.items()},
        "script": str(row.get("script") or ""),
        "cwd": row.get("cwd"),
    }
    if kind == "command":
        shared["cwd"] = shared["cwd"] or str(folder.absolute())
        return _launched(_words(given, where), shared, folder)
    if kind == "url":
        return Entry(registry=Registry.REMOTE, url=str(given), **shared)
    package, version = _split(str(given), kind)
    return Entry(
        registry=Registry(kind),
        package=package,
        version=version or str(row.get("version") or ""),
        prefix=str(folder.absolute() / row["prefix"]) if row.get("prefix") else "",
        **shared,
    )


def _words(given: Any, where: str) -> tuple[str, ...]:
    if given is None:
        return ()
    if isinstance(given, str):
        try:
            return tuple(shlex.split(given))
        except ValueError as error:
            raise ListError(f"{where}: {given!r} cannot be read: {error}") from error
    if isinstance(given, list) and all(isinstance(word, str) for word in given):
        return tuple(given)
    raise ListError(f"{where}: write a command and its arguments as a string or strings")


def _split(text: str, kind: str) -> tuple[str, str]:
    """Split package and version: ``@scope/name@1.0``, ``name==1.0``, ``image:tag``."""
    if kind == "npm":
        name, _, version = text[1:].partition("@")
        return text[:1] + name, "" if version == "latest" else version
    if kind == "pypi":
        name, _, version = text.partition("==" if "==" in text else "@")
        return name.strip(), "" if version == "latest" else version.strip()
    name, colon, version = text.rpartition(":")
    return (name, version) if colon and "/" not in version else (text, "")


# --- commands of clients


def _client(path: Path, text: str, environment: Mapping[str, str]) -> Iterator[Entry]:
    """Yield the servers of a file of an MCP client.

    Raises:
        ConfigError: it is no such file.
    """
    folder = path.absolute().parent
    around = client_files.Surroundings(
        folder.parent if folder.name == ".vscode" else folder, Path.home(), environment
    )
    for name in client_files.names(text, str(path)):
        try:
            source = client_files.read(text, name, str(path), around)
        except ConfigError as error:
            line = str(error).removeprefix(f"{path}: ").partition("; ")[0]
            trouble = Trouble(Start.NEEDS_CONFIG, line)
            yield Entry(name=name, registry=Registry.COMMAND, trouble=trouble, where=str(path))
            continue
        if source.url:
            headers = ", ".join((*source.variables, *source.headers))
            why = f"{name}: headers are not sent by a fleet: {headers}"
            needs = Trouble(Start.NEEDS_CONFIG, why) if headers else None
            yield Entry(
                name=name, registry=Registry.REMOTE, url=source.url, trouble=needs, where=str(path)
            )
            continue
        shared = {
            "name": name,
            "env": source.env,
            "cwd": source.cwd or str(around.folder),
            "where": str(path),
        }
        yield _unless_refused(_launched(source.command, shared, folder))


_FLAGS: Final = {"npx": {"-y", "--yes", "-q", "--quiet"}, "uvx": {"-q", "--quiet", "--isolated"}}
_PACKAGE: Final = {"npx": ("-p", "--package"), "uvx": ("--from",)}
_REGISTRIES: Final = {"npx": Registry.NPM, "uvx": Registry.PYPI}


def _launched(command: Sequence[str], shared: Mapping[str, Any], folder: Path) -> Entry:
    """Return the package or image that a command starts with a launcher, or the command itself."""
    launcher = Path(command[0]).name
    words = list(command[1:])
    image = _image(words, shared) if launcher in {"docker", "podman"} else None
    if image is not None:
        return image
    if launcher not in _REGISTRIES:
        program = folder / command[0]
        if os.sep in command[0] and program.is_file():
            command = (str(program.absolute()), *command[1:])
        return Entry(registry=Registry.COMMAND, command=tuple(command), **shared)
    package = script = ""
    while words and words[0].startswith("-"):
        flag, equals, value = words.pop(0).partition("=")
        if flag in _PACKAGE[launcher] and (equals or words):
            package = value or words.pop(0)
        elif flag not in _FLAGS[launcher]:
            return Entry(registry=Registry.COMMAND, command=tuple(command), **shared)
    if words and package:
        script = words.pop(0)
    elif words:
        package = words.pop(0)
    registry = _REGISTRIES[launcher]
    if not package or re.search(r"[:+]|^\.{0,2}/", package):  # a folder, a URL, a repository
        return Entry(registry=Registry.COMMAND, command=tuple(command), **shared)
    name, version = _split(package, registry)
    return Entry(
        registry=registry,
        package=name,
        version=version,
        script=script,
        **{**shared, "args": (*words, *shared.get("args", ())), "cwd": None},
    )


def _image(command: Sequence[str], shared: Mapping[str, Any]) -> Entry | None:
    """Return the image that ``docker run`` starts; None if it has options such as mounts.

    Of the variables of a client, only those in the options are passed on.
    """
    words = list(command[1:]) if command[:1] == ["run"] else []
    env: dict[str, str] = {}
    while words and words[0].startswith("-"):
        flag, equals, value = words.pop(0).partition("=")
        if flag in {"-e", "--env"} and (equals or words):
            name, given, text = (value or words.pop(0)).partition("=")
            env |= {name: text} if given else {k: v for k, v in shared["env"].items() if k == name}
        elif flag not in {"-i", "--interactive", "--rm", "--init"}:
            return None
    if not words:
        return None
    package, version = _split(words.pop(0), Registry.OCI)
    args = (*words, *shared.get("args", ()))
    return Entry(
        registry=Registry.OCI,
        package=package,
        version=version,
        **{**shared, "env": env, "args": args, "cwd": None},
    )


# --- registry records


_ORDER: Final = (Registry.NPM, Registry.PYPI, Registry.OCI)


class _MissingError(Exception):
    """A required value without a default."""


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
        (one for one in packages if _type(one) == "stdio" and one.get("registryType") in [*_ORDER]),
        key=lambda one: _ORDER.index(one["registryType"]),
    )
    try:
        if local:
            return _unless_refused(_package(found, local[0]))
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
        name, version = _split(name, registry)
    base = replace(found, registry=registry, package=name, version=version)
    runtime = tuple(_arguments(package.get("runtimeArguments"), required=False))
    script, ignored = "", runtime
    if registry is Registry.PYPI and "--from" in runtime[:-1]:
        at = runtime.index("--from")
        base = replace(base, package=_split(runtime[at + 1], registry)[0])
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
            return replace(base, trouble=_needs(f"header {header.get('name')}"))
    return base


def _needs(what: str) -> Trouble:
    return Trouble(Start.NEEDS_CONFIG, f"{what} is required and has no default")


def _arguments(given: Any, *, required: bool = True) -> Iterator[str]:
    for one in given if isinstance(given, list) else ():
        label = str(one.get("name") or one.get("valueHint") or one.get("value") or "an argument")
        value = _given(one)
        if value is None and one.get("isRequired") and required:
            if one.get("type") != "named" or one.get("format") not in {None, "boolean"}:
                raise _MissingError(f"argument {label} is required and has no default")
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
            raise _MissingError(f"variable {one.get('name')} is required and has no default")
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
            raise _MissingError(f"variable {name} of {text!r} is required and has no default")
        return value or ""

    return re.sub(r"\{([^{}]+)\}", fill, text)
