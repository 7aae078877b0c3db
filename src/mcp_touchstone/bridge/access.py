"""Access tokens of an authorization server: which requests are served, and for whom.

Sources: basic/authorization of 2025-06-18 to 2026-07-28; RFC 9068 (tokens), RFC 9728 (metadata).
"""

import json
import threading
import urllib.request
from typing import Any, Final
from urllib.parse import urlsplit

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from mcp_touchstone.bridge.headers import WELL_KNOWN
from mcp_touchstone.http_server.hosts import LOOPBACK, Headers, value_of
from mcp_touchstone.http_server.refusals import NO_SESSION, Refusal
from mcp_touchstone.transport.process import now

RESOURCE: Final = WELL_KNOWN + "oauth-protected-resource"
METADATA: Final = ("oauth-authorization-server", "openid-configuration")
ALGORITHMS: Final = ["RS256", "PS256", "ES256"]
PATIENCE: Final = 10.0
"""Seconds that the authorization server may take."""

AGAIN: Final = 30.0
"""Seconds until the keys are read again for a token that names an unknown one."""

MOST: Final = 1 << 20
"""Bytes of a document that are read."""


class AuthorizationServerError(Exception):
    """The authorization server cannot be used; the message says why."""


class Access:
    """The tokens that are accepted: of one issuer, for one audience.

    Args:
        audience: the URL of our endpoint, as clients know it.
        scopes: scopes that each token must have.

    Raises:
        IssuerError: the authorization server does not answer, or has no keys.
    """

    def __init__(self, issuer: str, audience: str, scopes: tuple[str, ...] = ()) -> None:
        for url in (issuer, audience):
            local = {one.strip("[]") for one in LOOPBACK}
            if urlsplit(url).scheme != "https" and urlsplit(url).hostname not in local:
                raise AuthorizationServerError(f"{url}: write https://, except for loopback")
        self._issuer = issuer
        self._audience = audience
        self._scopes = scopes
        self._lock = threading.Lock()
        self._about = self._find()
        self._url = str(self._about["jwks_uri"])
        self._keys = self._read_keys()

    @property
    def documents(self) -> dict[str, dict[str, Any]]:
        """Path -> the metadata there: of the protected resource, and of its issuer."""
        scopes = {"scopes_supported": list(self._scopes)} if self._scopes else {}
        resource = {
            "resource": self._audience,
            "authorization_servers": [self._issuer],
            "bearer_methods_supported": ["header"],
            **scopes,
        }
        issuer = f"{WELL_KNOWN}{METADATA[0]}"  # clients of 2025-03-26 look for it here
        return {RESOURCE: resource, issuer: self._about}

    def user(self, headers: Headers) -> str:
        """Return the subject of the token of a request.

        Raises:
            Refusal: 401, there is no valid token; 403, it lacks a scope.
        """
        scheme, _, token = (value_of(headers, "Authorization") or "").partition(" ")
        claims = self._claims(token.strip()) if scheme.lower() == "bearer" else None
        if claims is None:
            error = "invalid_token" if token else ""
            raise Refusal(401, NO_SESSION, "a valid access token is needed", **self._asks(error))
        granted = str(claims.get("scope", "")).split()
        if not {*self._scopes} <= {*granted}:
            asks = self._asks("insufficient_scope")
            raise Refusal(403, NO_SESSION, "the token lacks a scope", **asks)
        return str(claims["sub"])

    def _claims(self, token: str) -> dict[str, Any] | None:
        rules = jwt.JWTClaimsRegistry(
            iss={"essential": True, "value": self._issuer},
            aud={"essential": True, "value": self._audience},
            exp={"essential": True},
            sub={"essential": True},
        )
        for fresh in (False, True):
            try:
                keys = self._read_again() if fresh else self._keys
                claims = jwt.decode(token, keys, algorithms=ALGORITHMS).claims
                rules.validate(claims)
            except (JoseError, AuthorizationServerError, ValueError):
                continue
            return claims
        return None

    def _asks(self, error: str) -> dict[str, str]:
        parts = urlsplit(self._audience)
        place = f"{parts.scheme}://{parts.netloc}{RESOURCE}{parts.path.rstrip('/')}"
        said = [f'error="{error}"'] if error else []
        said.append(f'resource_metadata="{place}"')
        said += [f'scope="{" ".join(self._scopes)}"'] if self._scopes else []
        return {"WWW-Authenticate": "Bearer " + ", ".join(said)}

    def _find(self) -> dict[str, Any]:
        parts = urlsplit(self._issuer)
        path = parts.path.rstrip("/")
        origin = f"{parts.scheme}://{parts.netloc}"
        places = [f"{origin}{WELL_KNOWN}{name}{path}" for name in METADATA]
        why = ""
        for place in [*places, f"{origin}{path}{WELL_KNOWN}{METADATA[1]}"]:
            try:
                found = _get(place)
            except AuthorizationServerError as error:
                why = why or str(error)
                continue
            if found.get("issuer") == self._issuer and isinstance(found.get("jwks_uri"), str):
                return found
            why = f"{place}: it is not the metadata of {self._issuer}, or names no keys"
        raise AuthorizationServerError(why)

    def _read_keys(self) -> KeySet:
        self._at = now()
        try:
            return KeySet.import_key_set(_get(self._url))  # type: ignore[arg-type]
        except (JoseError, ValueError, LookupError) as error:
            raise AuthorizationServerError(f"{self._url}: no keys of RFC 7517") from error

    def _read_again(self) -> KeySet:
        with self._lock:
            if now() - self._at < AGAIN:
                raise AuthorizationServerError("the keys were read just now")
            self._keys = self._read_keys()
            return self._keys


def _get(url: str) -> dict[str, Any]:
    if urlsplit(url).scheme not in {"http", "https"}:
        raise AuthorizationServerError(f"{url}: no URL of HTTP")
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:  # noqa: S310  (checked above)
            found = json.loads(answer.read(MOST))
    except (OSError, ValueError) as error:
        raise AuthorizationServerError(
            f"{url}: it does not answer with metadata: {error}"
        ) from error
    if not isinstance(found, dict):
        raise AuthorizationServerError(f"{url}: no JSON object")
    return found
