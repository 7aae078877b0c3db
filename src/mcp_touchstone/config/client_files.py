"""Read server commands from the files of MCP clients: ``.mcp.json``, Claude Desktop, VS Code. Pure.

A client may ask its user for a value. Such a value is an error that names it, unless the user set
the variable.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.config.settings import ConfigError
from mcp_touchstone.runtime.input_file import parsed
from mcp_touchstone.target import values
from mcp_touchstone.transport.http_endpoint import check_header

_HTTP: Final = ("http", "streamable-http", "streamableHttp", "streamable_http")
"""Names of Streamable HTTP in such files; the first is the usual one."""

KINDS: Final = ("mcpServers", "servers")
_COMMENT: Final = re.compile(r'("(?:\\.|[^"\\])*(?:"|\Z))|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_COMMA: Final = re.compile(r'("(?:\\.|[^"\\])*(?:"|\Z))|,(?=\s*[}\]])')
_VARIABLE: Final = re.compile(r"\$\{([^}]*)\}")
_ONE_VARIABLE: Final = re.compile(r"\$\{(env:)?([A-Za-z_]\w*)\}", re.ASCII)


class UntrustedError(ConfigError):
    """A file reads a variable of the shell, and must not; the message names both."""


@dataclass(frozen=True, slots=True)
class ConfiguredServer:
    """The command and environment with which a client starts a server, or its URL.

    Attributes:
        command: program and arguments; empty for a server that runs already.
        env: variables set for the server.
        cwd: working folder; None if the file names none.
        url: the URL of a server that runs already; empty for a command.
        variables: header of each HTTP request -> variable of the shell with its value.
        headers: header of each HTTP request -> its value, if that is not one variable.
    """

    command: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None
    url: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The values of the variables in a client's file.

    Attributes:
        folder: the folder of the workspace.
        environment: variables of the shell; None if the file must not have them.
        given: names of variables and headers that the user set for the server; the file's entries
            for them are not read.
    """

    folder: Path
    home: Path
    environment: Mapping[str, str] | None
    given: Collection[str] = ()


def read(text: str, name: str | None, where: str, around: Surroundings) -> ConfiguredServer:
    """Read a client's file and return one of its servers.

    Args:
        text: the content of the file, JSON with comments.
        name: name of the server; None selects the only one.
        where: name of the file, for messages.
        around: the values of its variables.

    Raises:
        ConfigError: the file is of another kind, or the server is not found or cannot be started.
    """
    servers = _servers(text, where)
    if name is None:
        if len(servers) != 1:
            names = ", ".join(servers) or "no server"
            raise ConfigError(f"{where}: it names {names}; choose one with --target NAME")
        name = next(iter(servers))
    if name not in servers:
        names = ", ".join(servers)
        raise ConfigError(
            f"{where}: no server is called {name!r}{nearest(name, servers)}; it names {names}"
        )
    return _source(servers[name], f"{where}: {name}", around)


def names(text: str, where: str) -> tuple[str, ...]:
    """Return the names of the servers in a client's file.

    Raises:
        ConfigError: the file is of another kind.
    """
    return tuple(_servers(text, where))


def plain(text: str) -> str:
    """Return JSON with comments as plain JSON: each other character keeps its place."""
    blank = _COMMENT.sub(lambda m: m[1] or re.sub(r"[^\n]", " ", m[0]), text)
    return _COMMA.sub(lambda m: m[1] or " ", blank)


def _servers(text: str, where: str) -> dict[str, Any]:
    document = parsed(plain(text), where, "name a file of an MCP client")
    if isinstance(document, dict) and isinstance(document.get("mcp"), dict):
        document = document["mcp"]
    for kind in KINDS:
        servers = document.get(kind) if isinstance(document, dict) else None
        if isinstance(servers, dict):
            return servers
    raise ConfigError(
        f"{where}: it has neither mcpServers nor servers; name a .mcp.json, a Claude Desktop or "
        "VS Code file, or a .toml"
    )


def _source(server: Any, where: str, around: Surroundings) -> ConfiguredServer:
    if not isinstance(server, dict):
        raise ConfigError(f"{where}: it is not an object with a command")
    if "url" in server or server.get("type", "stdio") not in {"stdio", "local"}:
        return _remote(server, where, around)
    program, rest = server.get("command"), server.get("args", [])
    env, cwd = server.get("env") or {}, server.get("cwd")
    if not isinstance(program, str) or not program:
        raise ConfigError(f"{where}: it has no command; write the program there")
    if not isinstance(rest, list) or not all(isinstance(word, str) for word in rest):
        raise ConfigError(f"{where}: args is not an array of strings")
    if not isinstance(env, dict) or not (cwd is None or isinstance(cwd, str)):
        raise ConfigError(f"{where}: env is not an object, or cwd is not a string")
    if server.get("envFile"):
        raise ConfigError(f"{where}: envFile is not read; give its variables with --env NAME=VALUE")
    return ConfiguredServer(
        tuple(_filled(word, where, around) for word in (program, *rest)),
        {
            key: _filled(str(value), f"{where}: env.{key}", around, key)
            for key, value in env.items()
            if value is not None and key not in around.given
        },
        None if cwd is None else _filled(cwd, where, around),
    )


def _remote(server: dict[str, Any], where: str, around: Surroundings) -> ConfiguredServer:
    kind, url = server.get("type", _HTTP[0]), server.get("url")
    if kind == "sse":
        raise ConfigError(
            f"{where}: type sse is HTTP+SSE of 2024-11-05, which Streamable HTTP replaced; only "
            "that is checked"
        )
    if kind not in _HTTP or not isinstance(url, str):
        raise ConfigError(f"{where}: it has no url of a server that speaks HTTP; write it there")
    headers = server.get("headers") or {}
    if not isinstance(headers, dict) or not all(isinstance(one, str) for one in headers.values()):
        raise ConfigError(f"{where}: headers is not an object of strings")
    wanted = {name: text for name, text in headers.items() if name not in around.given}
    variables = {
        name: found[2]
        for name, text in wanted.items()
        if (found := _ONE_VARIABLE.fullmatch(text))
        and (found[1] or found[2] in (around.environment or ()))
    }
    filled = {
        name: _filled(text, f"{where}: headers.{name}", around, name, "--header {}=env:VARIABLE")
        for name, text in wanted.items()
        if name not in variables
    }
    address = _filled(url, where, around)
    try:
        for name in wanted:
            check_header(name)
        return ConfiguredServer((), {}, None, values.url(address), variables, filled)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error


def _filled(
    text: str, where: str, around: Surroundings, key: str = "", option: str = "--env {}=VALUE"
) -> str:
    def fill(match: re.Match[str]) -> str:
        advice = option.format(key) if key else "write a command with the value instead"
        return _value(match[1], where, around, advice)

    return _VARIABLE.sub(fill, text)


def _value(name: str, where: str, around: Surroundings, advice: str) -> str:
    folders = {
        "workspaceFolder": str(around.folder),
        "workspaceRoot": str(around.folder),
        "workspaceFolderBasename": around.folder.name,
        "userHome": str(around.home),
        "cwd": str(around.folder),
        "pathSeparator": "/" if str(around.folder).startswith("/") else "\\",
        "/": "/",
    }
    if name in folders:
        return folders[name]
    kind, colon, rest = name.partition(":")
    if kind == "input" and colon:
        raise ConfigError(f"{where} asks its user for ${{{name}}}; give it: {advice}")
    if around.environment is None:
        raise UntrustedError(f"{where}: ${{{name}}}")
    if kind == "env" and colon:
        return around.environment.get(rest, "")
    key, default, fallback = name.partition(":-")
    if key in around.environment:
        return around.environment[key]
    if default:
        return fallback
    if re.fullmatch(r"[A-Za-z_]\w*", key):
        raise ConfigError(f"{where} needs the variable {key}; set it, or {advice}")
    raise ConfigError(f"{where}: ${{{name}}} is unknown here; {advice}")
