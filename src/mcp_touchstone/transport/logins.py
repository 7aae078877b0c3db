"""Tokens that ``mcp-touchstone login`` stored: one file a server, for its user only."""

import hashlib
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.transport.tokens import TokenError

_KINDS: Final[dict[str, set[type]]] = {
    "url": {str},
    "expires": {float},
    "token": {str},
    "token_endpoint": {str},
    "refresh_token": {str, type(None)},
}
"""Member of a stored login -> its types."""


def path(url: str) -> Path:
    """Return the file for the URL of a server, in the folder of the user for states."""
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_STATE_HOME")
    folder = Path(base) if base else Path.home() / ".local" / "state"
    name = hashlib.sha256(url.encode()).hexdigest()[:32]
    return folder / "mcp-touchstone" / "logins" / f"{name}.json"


def command(url: str) -> str:
    """Return the command that prints the token of a server."""
    return shlex.join([sys.executable, "-m", "mcp_touchstone", "login", "--print-token", url])


def read(url: str) -> dict[str, Any] | None:
    """Return what was stored for a server; None for nothing.

    Raises:
        TokenError: the file cannot be read.
    """
    file = path(url)
    try:
        found = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise TokenError(f"{file}: it cannot be read; delete it: {error}") from error
    given = found if isinstance(found, dict) else {}
    for name, kind in _KINDS.items():
        if type(given.get(name)) not in kind:
            raise TokenError(f"{file}: `{name}` is not as `login` writes it; delete the file")
    return given if given["url"] == url else None


def write(url: str, login: dict[str, Any]) -> None:
    """Store a login; only the user may read the file."""
    file = path(url)
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    part = file.with_suffix(f".{os.getpid()}")
    part.unlink(missing_ok=True)
    number = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(number, "w", encoding="utf-8") as stream:
        json.dump({"url": url, **login}, stream)
    part.replace(file)


def forget(url: str) -> bool:
    """Delete the login of a server; return whether there was one."""
    file = path(url)
    known = file.exists()
    file.unlink(missing_ok=True)
    return known
