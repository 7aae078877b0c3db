"""Tokens of our own authorization server for a server that we start."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.transport.tokens import Tokens

if TYPE_CHECKING:
    from mcp_touchstone.issuer.server import Issuer

ISSUER: Final = "{issuer}"
KEYS: Final = "{jwks}"
AUDIENCE: Final = "{audience}"
UPSTREAM: Final = "{upstream}"
"""Replaced in a command and in variables: the URLs of the issuer, its keys, the server, and of a
service to which the server may pass requests on."""


class IssuerError(UserError, ValueError):
    """The issuer cannot be used; the message says why."""


def issuer() -> "Issuer":
    """Return the authorization server of this process, which the first call starts.

    Raises:
        IssuerError: a library is missing, or it cannot listen.
    """
    try:
        from mcp_touchstone.issuer.server import shared  # noqa: PLC0415  (an extra)
    except ImportError as error:
        raise IssuerError(
            f"--issuer mock needs {error.name}: pip install 'mcp-touchstone[http-auth]'"
        ) from error
    try:
        return shared()
    except OSError as error:
        raise IssuerError(f"--issuer mock: it cannot listen on loopback: {error}") from error


def check_placeholders(words: Iterable[str]) -> None:
    """Check that the words of a server name the issuer.

    Raises:
        IssuerError: none does.
    """
    if not any(name in word for word in words for name in (ISSUER, KEYS)):
        raise IssuerError(
            f"--issuer mock: write {ISSUER} or {KEYS} in the command or in --env, so that the "
            f"server knows whose tokens to accept; {AUDIENCE} is its own URL"
        )


def filled(text: str, audience: str) -> str:
    """Return a text with the URLs in place of the placeholders."""
    known = issuer()
    text = text.replace(ISSUER, known.url).replace(KEYS, known.jwks)
    return text.replace(AUDIENCE, audience).replace(UPSTREAM, known.url + _place(audience))


def _place(audience: str) -> str:
    """Return the path of the upstream service of a server, by its port."""
    return f"/upstream/{urlsplit(audience).port}"


class MintedTokens(Tokens):
    """Tokens for one server.

    Args:
        audience: the URL of the server.
        scope: the scopes of the tokens, with blanks between them.
    """

    option = "--issuer mock"

    def __init__(self, audience: str, scope: str) -> None:
        self._audience = audience
        self._scope = scope

    @cached_property
    def _tokens(self) -> tuple[str, ...]:
        from mcp_touchstone.issuer.mint import USERS  # noqa: PLC0415  (an extra)

        mint = issuer().mint
        return tuple(mint.token(self._audience, self._scope, user=user) for user in USERS)

    def own(self) -> str:
        """Return the token of the first user."""
        return self._tokens[0]

    def other(self) -> str:
        """Return the token of the second user."""
        return self._tokens[1]

    def minted(self, flaw: str, scope: str | None = None) -> str:
        """Return a token of the first user with a flaw, or with other scopes."""
        asked = self._scope if scope is None else scope
        return issuer().mint.token(self._audience, asked, flaw=flaw)

    def called_active(self, token: str) -> bool | None:
        """Return what the issuer told the server about a token; None if it did not ask."""
        return issuer().introspected.get(token)

    def upstream(self) -> list[bool]:
        """Return the requests that the server passed on: whether each had a token for it."""
        known, place = issuer(), _place(self._audience)
        return [
            any((known.mint.read(one) or {}).get("aud") == self._audience for one in tokens)
            for path, tokens in list(known.upstream)
            if path == place or path.startswith(f"{place}/")
        ]
