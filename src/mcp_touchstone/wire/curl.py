"""An HTTP request of ours as shell lines with curl. Pure."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Final

from mcp_touchstone.wire.exchange import Exchange, SentRequest
from mcp_touchstone.wire.http_headers import SESSION

HIDDEN: Final = "(hidden)"
"""Replaces a secret in a record."""

SECONDS: Final = 30
"""Limit for a response: a stream may never end."""

_OURS: Final = frozenset({"content-length", "connection", "user-agent"})
_OF_CURL: Final = ("Accept", "Content-Type")
"""Headers that curl adds by itself if a request lacks them."""

_READ_SESSION: Final = "tr -d '\\r' | awk 'tolower($1) == \"mcp-session-id:\" {print $2}'"


def curl(exchanges: Sequence[Exchange], wanted: Exchange) -> str:
    """Return the lines of a shell that send a request again; empty if no shell could.

    A session is opened first, and its id is read from the answer. What the server wrote (an id, a
    cursor) is quoted, and never read by the shell as its own.

    Args:
        exchanges: those of the same connection, in their order.
    """
    session = wanted.said(SESSION) or ""
    opener = next((one for one in exchanges if session and one.header(SESSION) == session), wanted)
    if session and opener is wanted and not wanted.crafted:
        return ""
    commands = [_command(wanted, "" if opener is wanted else session)]
    if opener is not wanted:
        between = exchanges[exchanges.index(opener) + 1 : exchanges.index(wanted)]
        own = [one for one in between if one.said(SESSION) == session]
        steps = [*filter(_is_ready, own)][:1] + [one for one in own if one.verb == "DELETE"][-1:]
        commands = [_command(opener, ""), *(_command(one, session) for one in steps), *commands]
    if not all(commands):
        return ""
    if len(commands) > 1:
        commands[0] = f"SESSION=$({commands[0]} | {_READ_SESSION})"
    parts = wanted.request_parts
    if parts is not None and parts.started:
        commands.insert(0, f"SERVER={shlex.quote(parts.server)}   # where you started it")
    return "\n".join(commands)


def _is_ready(exchange: Exchange) -> bool:
    """Whether a request says that the session may be used."""
    request = exchange.request_parts
    return request is not None and b'"notifications/initialized"' in request.body


def _command(exchange: Exchange, session: str) -> str:
    """Return one command; empty if a part of the request cannot be written."""
    request = exchange.request_parts
    if request is None:
        return ""
    words = [f"curl -isSN -m {SECONDS} -X {exchange.verb}"]
    for name, value in exchange.sent:
        default = name.lower() == "host" and request.server.endswith(f"//{value}")
        if not default and name.lower() not in _OURS:
            words.append(f"-H {_header(name, value, session, request.variables)}")
    names = {name.lower() for name, _ in exchange.sent}
    words += [f"-H {name}:" for name in _OF_CURL if name.lower() not in names]
    try:
        body = request.body.decode().strip("\n")
    except UnicodeDecodeError:
        return ""
    words += [f"--data-binary {shlex.quote(body)}"] if body else []
    words += ["--path-as-is"] if "/." in request.target else []
    words.append(_url(request))
    return "" if any(HIDDEN in word for word in words) else " ".join(words)


def _header(name: str, value: str, session: str, variables: Mapping[str, str]) -> str:
    if name in variables:
        return f'{shlex.quote(f"{name}: ")}"${variables[name]}"'
    if session and name.lower() == SESSION.lower() and value == session:
        return f'"{SESSION}: $SESSION"'
    return shlex.quote(f"{name}: {value}" if value else f"{name};")


def _url(request: SentRequest) -> str:
    """Return the URL; the server that we started has another port for its user."""
    if request.started:
        return f'"$SERVER"{shlex.quote(request.target)}'
    return shlex.quote(request.server + request.target)
