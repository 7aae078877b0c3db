"""Where the bearer token of a request comes from."""

import base64
import json
import shlex
import subprocess
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.http_headers import AUTHORIZATION, VALUE

MARGIN: Final = 30.0
"""Seconds before its expiry in which a token is not used any more."""

OPAQUE: Final = 60.0
"""Seconds that a token without a time of expiry is used."""

RETRY: Final = 10.0
"""Seconds until a token that the server refused is replaced."""

PATIENCE: Final = 60.0
"""Seconds that a command may take to print a token."""


class TokenError(UserError, ValueError):
    """A command gave no token that can be used; the message says why."""


class Tokens:
    """The tokens of the user, of another user, and those that a server must refuse; here none.

    Attributes:
        option: the option that they come from, for messages.
    """

    option = f"--header {AUTHORIZATION}"

    def own(self) -> str:
        """Return the token of the user; empty for none. May raise ``TokenError``."""
        return ""

    def other(self) -> str:
        """Return the token of another user; empty for none. May raise ``TokenError``."""
        return ""

    def refused(self) -> None:
        """Take note of a 401 for the token of the user."""

    def minted(self, flaw: str, scope: str | None = None) -> str:  # noqa: ARG002  (a subclass has some)
        """Return a token with a flaw, see ``issuer.mint``, or with other scopes; empty for none."""
        return ""

    def called_active(self, token: str) -> bool | None:  # noqa: ARG002  (as above)
        """Return what the issuer told the server about a token; None if it did not ask."""
        return None

    def upstream(self) -> list[bool]:
        """Return the requests that the server passed on to us: whether each had a token for it."""
        return []


@dataclass(eq=False)
class TokenCommand:
    """A command that prints a token, which is used until it expires.

    Attributes:
        option: the option that names it.
        command: its words, as in a shell; no shell runs it. Without words there is no token.
    """

    option: str
    command: str
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _token: str = ""
    _read: float = 0.0
    _until: float = 0.0

    def token(self) -> str:
        """Return a token that has not expired.

        Raises:
            TokenError: the command fails, or prints none.
        """
        with self._lock:
            if self.command and now() >= self._until:
                self._token = self._run()
                left = _seconds_left(self._token)
                if left is not None and left <= 0:
                    raise TokenError(f"{self.option}: it printed a token that has expired")
                self._read = now()
                self._until = self._read + (OPAQUE if left is None else max(left - MARGIN, 1.0))
            return self._token

    def refused(self) -> None:
        """Read another token soon: the server refused this one."""
        with self._lock:
            self._until = min(self._until, self._read + RETRY)

    def _run(self) -> str:
        try:
            words = shlex.split(self.command)
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                timeout=PATIENCE,
                check=False,
            )
        except (OSError, ValueError, IndexError) as error:
            why = getattr(error, "strerror", None) or "it is no command"
            raise TokenError(f"{self.option}: it cannot be run: {why}") from error
        except subprocess.TimeoutExpired:
            raise TokenError(f"{self.option}: it took more than {PATIENCE:g} s") from None
        if done.returncode:
            raise TokenError(f"{self.option}: it ended with status {done.returncode}")
        token = done.stdout.decode("utf-8", "replace").strip()
        if not token:
            raise TokenError(f"{self.option}: it printed nothing")
        if not VALUE.fullmatch(token) or len(token.split()) != 1:
            raise TokenError(f"{self.option}: it printed more than a token, or other characters")
        return token


command: Final = cache(TokenCommand)
"""Return the one ``TokenCommand`` of an option and a command: all processes share its token."""


class CommandTokens(Tokens):
    """Tokens that commands of the user print.

    Args:
        own: the command for the user; empty for none.
        other: the command for another user; empty for none.
    """

    option = "--token-command"

    def __init__(self, own: str, other: str) -> None:
        self._own = command("--token-command", own)
        self._other = command("--other-token-command", other)

    def own(self) -> str:
        """Return the token of the user."""
        return self._own.token()

    def other(self) -> str:
        """Return the token of another user."""
        return self._other.token()

    def refused(self) -> None:
        """Read another token of the user soon."""
        self._own.refused()


def _seconds_left(token: str) -> float | None:
    """Return the seconds until a JWT expires; None if the token does not say so."""
    try:
        part = token.split(".")[1]
        claims: Any = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        return float(claims["exp"]) - datetime.now(UTC).timestamp()
    except (LookupError, TypeError, ValueError):
        return None


__all__ = ["AUTHORIZATION", "CommandTokens", "TokenCommand", "TokenError", "Tokens"]
