"""Put the tap before the servers in a client's file, and take it out again. Pure.

Only the command and the first arguments of a server change; all else of the file keeps its bytes.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.config.client_files import KINDS, plain
from mcp_touchstone.config.settings import ConfigError

TAP: Final = ("-m", "mcp_touchstone", "tap", "--report")
"""The first arguments of a server behind the tap; the folder, ``--`` and its command follow."""

_ADDED: Final = ', "args" : ['
"""The beginning of the arguments of a server that had none."""

_DECODER: Final = json.JSONDecoder()
_SPACE: Final = re.compile(r"\s*")

Span = tuple[int, int]
Edit = tuple[Span, str]


def wrapped(text: str, where: str, name: str | None, report: Path) -> tuple[str, list[str]]:
    """Put the tap before one server, or before all that have a command.

    Args:
        text: the content of the file, JSON with comments.
        where: name of the file, for messages.
        name: name of the server; None for all.
        report: the folder of recordings; each server gets a folder of its own in it.

    Returns:
        the new content, and the names of the servers.

    Raises:
        ConfigError: there is no such server, or nothing to change.
    """

    def edits(found: dict[str, Span], own: str) -> Iterator[Edit]:
        command = json.loads(text[slice(*found["command"])])
        words = [*TAP, str(report / re.sub(r"[^\w-]", "_", own)), "--", command]
        inserted = json.dumps(words)[1:-1]
        yield found["command"], json.dumps(sys.executable)
        if "args" in found:
            start, end = found["args"]
            more = "" if not json.loads(plain(text[start:end])) else ", "
            yield (start + 1, start + 1), inserted + more
        else:
            yield (found["command"][1], found["command"][1]), f"{_ADDED}{inserted}]"

    return _edited(text, where, name, edits, behind=False)


def unwrapped(text: str, where: str, name: str | None) -> tuple[str, list[str]]:
    """Take the tap out again; see ``wrapped``.

    Raises:
        ConfigError: there is no such server, or none is behind the tap.
    """

    def edits(found: dict[str, Span], _own: str) -> Iterator[Edit]:
        start, end = found["args"]
        words = json.loads(plain(text[start:end]))
        own = words[len(TAP) + 2 :]
        inserted = json.dumps(words[: len(TAP) + 3])[1:-1] + (", " if own[1:] else "")
        yield found["command"], json.dumps(own[0])
        added = f"{_ADDED}{inserted}]"
        if text.startswith(added, found["command"][1]):
            yield (found["command"][1], found["command"][1] + len(added)), ""
        elif text.startswith(inserted, start + 1):
            yield (start + 1, start + 1 + len(inserted)), ""
        else:  # somebody formatted the file in the meantime
            yield (start, end), json.dumps(own[1:])

    return _edited(text, where, name, edits, behind=True)


def _edited(
    text: str,
    where: str,
    name: str | None,
    edits: Callable[[dict[str, Span], str], Iterator[Edit]],
    *,
    behind: bool,
) -> tuple[str, list[str]]:
    blank = plain(text)
    servers = _servers(blank, where)
    if name is not None and name not in servers:
        raise ConfigError(
            f"{where}: no server is called {name!r}{nearest(name, servers)}; "
            f"it names {', '.join(servers)}"
        )
    changes: list[Edit] = []
    names = []
    for own in servers if name is None else (name,):
        found = _members(blank, servers[own][0]) if blank[servers[own][0]] == "{" else {}
        command = json.loads(blank[slice(*found["command"])]) if "command" in found else None
        if isinstance(command, str) and _is_behind(blank, found) is behind:
            names.append(own)
            changes += edits(found, own)
    if not names:
        state = "is behind the tap" if behind else "has a command and is not behind the tap yet"
        raise ConfigError(f"{where}: no server {state}; for a URL use `tap --listen`")
    for (start, end), new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text, names


def _is_behind(text: str, found: dict[str, Span]) -> bool:
    words = json.loads(text[slice(*found["args"])]) if "args" in found else []
    return isinstance(words, list) and tuple(words[: len(TAP)]) == TAP and len(words) > len(TAP) + 2


def _servers(text: str, where: str) -> dict[str, Span]:
    try:
        json.loads(text)
        found = _members(text, _skip(text, 0))
        if "mcp" in found:
            found = _members(text, found["mcp"][0])
        for kind in KINDS:
            if kind in found:
                return _members(text, found[kind][0])
    except (ValueError, IndexError) as error:
        raise ConfigError(f"{where}: invalid JSON: {error}") from error
    raise ConfigError(f"{where}: it has neither mcpServers nor servers; name a client's file")


def _members(text: str, start: int) -> dict[str, Span]:
    """Return the places of the values of an object."""
    if text[start] != "{":
        raise ValueError(f"no object at character {start}")
    found: dict[str, Span] = {}
    at = _skip(text, start + 1)
    while text[at] != "}":
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        found[key] = at, end
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
    return found


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return at if found is None else found.end()
