"""Lists of servers: TOML, JSON Lines, CSV, registry records, files of MCP clients."""

import csv
import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.config import client_files
from mcp_touchstone.config.toml_keys import untrusted
from mcp_touchstone.fleet.entry import (
    ListedServer,
    ListError,
    RegistryType,
    Start,
    Trouble,
    refusal,
    split,
    unless_refused,
)
from mcp_touchstone.fleet.records import from_record, record_in
from mcp_touchstone.runtime.input_file import InputFile, parsed
from mcp_touchstone.runtime.members import Members
from mcp_touchstone.target.option import leaves


def read(
    path: Path, environment: Mapping[str, str] | None = None, *, trusted: bool = False
) -> Iterator[ListedServer]:
    """Yield the servers of a list; one that was there before is left out.

    Args:
        path: a file, or a folder of ``server.json`` records.
        environment: variables for the files of MCP clients; None for ours.
        trusted: whether files in a folder may have them too, and folders elsewhere.

    Raises:
        ListError: it cannot be read, is of no known format, or has two servers of one name.
    """
    seen: dict[str, ListedServer] = {}
    ours = os.environ if environment is None else environment
    for entry in _read(path, None if path.is_dir() and not trusted else ours):
        first = seen.setdefault(entry.key, entry)
        if first is entry:
            yield entry
        elif not entry.described and replace(entry, name=first.name) != first:
            raise ListError(
                f"{entry.where}: {entry.key} is already another server at {first.where}; "
                "give it another name"
                if entry.registry is RegistryType.COMMAND
                else f"{entry.where}: {entry.key} is already listed with other settings at "
                f"{first.where}; remove one of them"
            )


def opt_outs(path: Path) -> frozenset[str]:
    """Return the hosts, names and packages in a file of servers that are left out, in lower case.

    Raises:
        ListError: it cannot be read.
    """
    lines = InputFile(path).text().splitlines()
    words = (re.sub(r"(^|\s)#.*", "", line).strip().lower() for line in lines)
    return frozenset(word for word in words if word)


def without(
    entries: Iterable[ListedServer], names: Collection[str], path: Path
) -> Iterator[ListedServer]:
    """Yield servers; those that opted out have a trouble that says so.

    A host stands for the hosts below it too: ``example.org`` for ``mcp.example.org``.

    Args:
        names: hosts, names and packages in lower case.
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


def _read(path: Path, environment: Mapping[str, str] | None) -> Iterator[ListedServer]:
    named = not path.is_dir()
    files = [path] if named else sorted(path.rglob("*.json"))
    if not files:
        raise ListError(f"{path}: there is no .json file in this folder")
    readers = {".toml": _toml, ".csv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines}
    for file in files:
        reader = readers.get(file.suffix, partial(_json, environment))
        yield from reader(InputFile(file, "correct the list, or name another", named=named))


def _toml(file: InputFile) -> Iterator[ListedServer]:
    tables = file.toml().get("server")
    if not isinstance(tables, list):
        raise ListError(f"{file.path}: it has no [[server]] table")
    for number, table in enumerate(tables, 1):
        yield _entry(table, f"{file.path}: server {number}", file.path.parent)


def _json_lines(file: InputFile) -> Iterator[ListedServer]:
    for where, row in file.rows():
        yield _entry(row, where, file.path.parent)


def _csv(file: InputFile) -> Iterator[ListedServer]:
    rows = csv.DictReader(file.text().splitlines(keepends=True))
    while True:
        where = f"{file.path}:{rows.line_num + 1}"
        try:
            row = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise ListError(f"{where}: {error}; {file.cure}") from None
        given = {name: value for name, value in row.items() if name and value}
        yield _entry(given, where, file.path.parent)


def _json(environment: Mapping[str, str] | None, file: InputFile) -> Iterator[ListedServer]:
    path, text = file.path, file.text()
    document = parsed(client_files.plain(text), str(path), file.cure)  # a client's has comments
    if isinstance(document, dict) and isinstance(document.get("servers"), list):
        document = document["servers"]
    if isinstance(document, list):
        for number, row in enumerate(document, 1):
            yield _entry(row, f"{path}: entry {number}", path.parent)
    elif isinstance(document, dict) and (record_in(document) or "name" in document):
        yield _entry(document, str(path), path.parent)
    else:
        yield from _client(path, text, environment)


def _entry(row: Any, where: str, folder: Path) -> ListedServer:
    """Read one server of a list.

    Raises:
        ListError: it is no server.
    """
    members = Members.of(row, f"{where}: a server")
    record = record_in(members.value)
    if record is not None:
        return from_record(record, where)
    found = replace(_flat(Members(row, where), folder), where=where)
    if why := refusal(found):
        raise ListError(f"{where}: {why}")
    return found


# --- rows of our own


_FLAT: Final = ("npm", "pypi", "oci", "command", "url")
_KEYS: Final = frozenset((*_FLAT, "name", "version", "args", "env", "script", "cwd", "prefix"))


def _flat(row: Members, folder: Path) -> ListedServer:
    where = row.where
    kinds = [kind for kind in _FLAT if row.value.get(kind)]
    unknown = next((name for name in row.value if name not in _KEYS), None)
    if unknown is not None:
        raise ListError(f"{where}: the key {unknown!r} is unknown; use {', '.join(sorted(_KEYS))}")
    if len(kinds) != 1:
        raise ListError(f"{where}: it needs one of {', '.join(_FLAT)}")
    kind = kinds[0]
    command = _words(row.value["command"], where) if kind == "command" else (row.get(kind, str),)
    env = row.value.get("env") or {}
    if isinstance(env, str):
        env = dict(word.partition("=")[::2] for word in _words(env, where))
    table = Members.of(env, f"{where}: env")
    shared: dict[str, Any] = {
        "name": row.get("name", str, "") or " ".join(command[:1]),
        "args": _words(row.value.get("args"), where),
        "env": {name: table.word(name) for name in table.value},
        "script": row.get("script", str, ""),
        "cwd": row.get("cwd", str, "") or None,
    }
    if kind == "command":
        shared["cwd"] = shared["cwd"] or str(folder.absolute())
        return _launched(command, shared, folder)
    if kind == "url":
        return ListedServer(registry=RegistryType.REMOTE, url=command[0], **shared)
    package, version = split(command[0], kind)
    prefix = row.get("prefix", str, "")
    return ListedServer(
        registry=RegistryType(kind),
        package=package,
        version=version or row.word("version"),
        prefix=str(folder.absolute() / prefix) if prefix else "",
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


# --- commands of clients


def _client(path: Path, text: str, environment: Mapping[str, str] | None) -> Iterator[ListedServer]:
    """Yield the servers of a file of an MCP client.

    Raises:
        ConfigError: it is no such file.
    """
    folder = path.absolute().parent
    around = client_files.Surroundings(
        folder.parent if folder.name == ".vscode" else folder, Path.home(), environment
    )
    for name in client_files.names(text, str(path)):
        here: dict[str, Any] = {"name": name, "where": str(path)}
        try:
            source = client_files.read(text, name, str(path), around)
            if environment is None and source.cwd and leaves(source.cwd, around.folder):
                raise client_files.UntrustedError(f"{path}: {name}: cwd = {source.cwd}")
        except InputError as error:
            line = str(error).removeprefix(f"{path}: ")
            found = isinstance(error, client_files.UntrustedError)
            line = untrusted(line) if found else line.partition("; ")[0]
            trouble = Trouble(Start.NEEDS_CONFIG, line)
            yield ListedServer(registry=RegistryType.COMMAND, trouble=trouble, **here)
            continue
        if source.url:
            headers = ", ".join((*source.variables, *source.headers))
            why = f"{name}: headers are not sent by a fleet: {headers}"
            needs = Trouble(Start.NEEDS_CONFIG, why) if headers else None
            yield ListedServer(registry=RegistryType.REMOTE, url=source.url, trouble=needs, **here)
            continue
        shared = {**here, "env": source.env, "cwd": source.cwd or str(around.folder)}
        yield unless_refused(_launched(source.command, shared, folder))


_FLAGS: Final = {"npx": {"-y", "--yes", "-q", "--quiet"}, "uvx": {"-q", "--quiet", "--isolated"}}
_PACKAGE: Final = {"npx": ("-p", "--package"), "uvx": ("--from",)}
_REGISTRIES: Final = {"npx": RegistryType.NPM, "uvx": RegistryType.PYPI}


def _launched(command: Sequence[str], shared: Mapping[str, Any], folder: Path) -> ListedServer:
    """Return the package or image that a command starts with a launcher, or the command itself."""
    launcher = Path(command[0]).name
    words = list(command[1:])
    image = _image(words, shared) if launcher in {"docker", "podman"} else None
    if image is not None:
        return image
    program = folder / command[0]
    if os.sep in command[0] and program.is_file():
        command = (str(program.absolute()), *command[1:])
    own = ListedServer(registry=RegistryType.COMMAND, command=tuple(command), **shared)
    if launcher not in _REGISTRIES:
        return own
    package = script = ""
    while words and words[0].startswith("-"):
        flag, equals, value = words.pop(0).partition("=")
        if flag in _PACKAGE[launcher] and (equals or words):
            package = value or words.pop(0)
        elif flag not in _FLAGS[launcher]:
            return own
    if words and package:
        script = words.pop(0)
    elif words:
        package = words.pop(0)
    registry = _REGISTRIES[launcher]
    if not package or re.search(r"[:+]|^\.{0,2}/", package):  # a folder, a URL, a repository
        return own
    name, version = split(package, registry)
    return ListedServer(
        registry=registry,
        package=name,
        version=version,
        script=script,
        **{**shared, "args": (*words, *shared.get("args", ())), "cwd": None},
    )


def _image(command: Sequence[str], shared: Mapping[str, Any]) -> ListedServer | None:
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
    package, version = split(words.pop(0), RegistryType.OCI)
    args = (*words, *shared.get("args", ()))
    return ListedServer(
        registry=RegistryType.OCI,
        package=package,
        version=version,
        **{**shared, "env": env, "args": args, "cwd": None},
    )
