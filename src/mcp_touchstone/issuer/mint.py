"""Tokens of the authorization server: good ones, and those that a resource server must refuse.

Sources: RFC 7519 (claims), RFC 9068 (access tokens), RFC 8725 (attacks on signatures).
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import NameOID
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, RSAKey

USERS: Final = ("touchstone-one", "touchstone-two")
"""The two users, by their ``sub``."""

CLIENT: Final = "touchstone-client"
ELSEWHERE: Final = "https://elsewhere.invalid/mcp"
HOUR: Final = 3600
LONG: Final = 24 * HOUR
"""Seconds until a token expires: longer than a run."""

ALGORITHM: Final = "RS256"
CLIENTS: Final = "ES256"
"""Algorithm of the assertions of clients."""

SLASH: Final = "a slash after aud"
ID_JAG: Final = "oauth-id-jag+jwt"
"""Type of an identity assertion that is a grant, by the draft of the IETF for that."""


@dataclass(frozen=True, slots=True)
class TokenFlaw:
    """How a token differs from a good one.

    Attributes:
        claims: claims to replace; None removes one. ``{audience}`` and ``{issuer}`` are replaced
            in texts; numbers of ``iat``, ``nbf`` and ``exp`` are seconds from now.
        header: members of the JOSE header to replace, with the same placeholders.
        signer: ``own``, the key in the JWKS; ``stranger``, another with the same ``kid``;
            ``public``, HMAC with the public key as PEM; ``nobody``, no signature.
    """

    claims: Mapping[str, Any] = field(default_factory=dict)
    header: Mapping[str, Any] = field(default_factory=dict)
    signer: str = "own"


FLAWS: Final[dict[str, TokenFlaw]] = {
    # valid: a list of audiences may name other servers too (RFC 7519, section 4.1.3)
    "listed-audience": TokenFlaw({"aud": [ELSEWHERE, "{audience}"]}),
    # invalid
    "other-audience": TokenFlaw({"aud": ELSEWHERE}),
    "no-audience": TokenFlaw({"aud": None}),
    "other-list": TokenFlaw({"aud": [ELSEWHERE, "{issuer}"]}),
    "longer-audience": TokenFlaw({"aud": "{audience}-other"}),
    "nested-audience": TokenFlaw({"aud": ELSEWHERE + "?for={audience}"}),
    "id-token": TokenFlaw({"aud": CLIENT, "nonce": "n"}, {"typ": "JWT"}),
    "other-issuer": TokenFlaw({"iss": "https://elsewhere.invalid"}),
    "expired": TokenFlaw({"iat": -2 * HOUR, "nbf": -2 * HOUR, "exp": -HOUR}),
    "early": TokenFlaw({"nbf": HOUR}),
    "unsigned": TokenFlaw(header={"alg": "none"}, signer="nobody"),
    "unknown-key": TokenFlaw(signer="stranger"),
    "public-key": TokenFlaw(header={"alg": "HS256"}, signer="public"),
    "own-jwk": TokenFlaw(header={"jwk": "{jwk}"}, signer="stranger"),
    "own-jku": TokenFlaw(header={"jku": "{issuer}/stranger/jwks"}, signer="stranger"),
    "own-x5u": TokenFlaw(header={"x5u": "{issuer}/stranger/certificate"}, signer="stranger"),
    "revoked": TokenFlaw(),
    "no-scope": TokenFlaw({"scope": ""}),
}
"""Name of a flaw -> the token that has it."""


class Mint:
    """Keys, and the tokens that they sign.

    Args:
        issuer: the URL of the authorization server.

    Attributes:
        revoked: ``jti`` of the tokens that introspection calls inactive.
    """

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self.revoked: set[str] = set()
        named: Any = {"kid": secrets.token_hex(8), "use": "sig", "alg": ALGORITHM}
        self._named = named
        self._own = RSAKey.generate_key(2048, named)

    @cached_property
    def _stranger(self) -> RSAKey:
        return RSAKey.generate_key(2048, self._named)

    def jwks(self, *, stranger: bool = False) -> dict[str, Any]:
        """Return the public keys."""
        key = self._stranger if stranger else self._own
        return {"keys": [key.as_dict(private=False)]}

    def certificate(self) -> bytes:
        """Return a certificate of the stranger's key, which it signed itself, as PEM."""
        key: Any = self._stranger.private_key
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "touchstone")])
        now = datetime.now(UTC)
        made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        dated = made.not_valid_before(now - timedelta(1)).not_valid_after(now + timedelta(1))
        return dated.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)

    def token(
        self,
        audience: str | None,
        scope: str = "",
        *,
        user: str = USERS[0],
        flaw: str = "",
        kind: str = "at+jwt",
        **more: Any,
    ) -> str:
        """Return an access token.

        Args:
            audience: the server that it is for; None for none.
            scope: its scopes, with blanks between them.
            user: its subject.
            flaw: a name in ``FLAWS``; empty for a good token.
            kind: its type.
            more: claims that replace those of an access token.
        """
        row = FLAWS[flaw] if flaw else TokenFlaw()
        claims: dict[str, Any] = (
            {
                "iss": self.issuer,
                "sub": user,
                "aud": audience,
                "client_id": CLIENT,
                "azp": CLIENT,
                "jti": secrets.token_hex(8),
                "scope": scope,
                "iat": 0,
                "nbf": 0,
                "exp": LONG,
            }
            | dict(row.claims)
            | more
        )
        if flaw == "revoked":
            self.revoked.add(claims["jti"])
        now = int(datetime.now(UTC).timestamp())
        claims |= {name: now + claims[name] for name in ("iat", "nbf", "exp")}
        header = {"alg": ALGORITHM, "kid": self._own.kid, "typ": kind} | dict(row.header)
        filled = [_filled(one, self.issuer, audience or "") for one in (header, claims)]
        header, claims = filled[0], {k: v for k, v in filled[1].items() if v is not None}
        if header.get("jwk"):
            header["jwk"] = self._stranger.as_dict(private=False)
        return self._signed(header, claims, row.signer)

    def read(self, token: str) -> dict[str, Any] | None:
        """Return the claims of a token that is valid now; None for another."""
        try:
            claims = jwt.decode(token, self._own, algorithms=[ALGORITHM]).claims
            jwt.JWTClaimsRegistry(iss={"essential": True, "value": self.issuer}).validate(claims)
        except (JoseError, ValueError):
            return None
        return None if claims.get("jti") in self.revoked else claims

    def granted(self, assertion: str, **claims: str) -> str:
        """Return what is wrong with an identity assertion of ours as a grant; empty if nothing."""
        found = self.read(assertion)
        if found is None or jwt.decode(assertion, self._own).header.get("typ") != ID_JAG:
            return "no identity assertion (ID-JAG) of the identity provider"
        wrong = [name for name, value in claims.items() if found.get(name) != value]
        return f"another {wrong[0]}" if wrong else ""

    def _signed(self, header: dict[str, Any], claims: dict[str, Any], signer: str) -> str:
        if signer in {"own", "stranger"}:
            key = self._own if signer == "own" else self._stranger
            return jwt.encode(header, claims, key, algorithms=[ALGORITHM])
        # no library signs these: they are attacks on others (RFC 8725, sections 2.1 and 3.1)
        body = ".".join(_encoded(json.dumps(one).encode()) for one in (header, claims))
        secret = self._own.as_pem(private=False)
        made = hmac.new(secret, body.encode(), hashlib.sha256).digest()
        return f"{body}.{_encoded(made) if signer == 'public' else ''}"


def client_key() -> Any:
    """Return a new key of a client, for its assertions."""
    return ECKey.generate_key("P-256")


def assertion_fault(assertion: str, key: Any, client: str, audiences: Sequence[str]) -> str:
    """Return what is wrong with the assertion of a client (RFC 7523, section 3); empty if nothing.

    Args:
        key: the key of the client.
        client: its client id.
        audiences: the names of the authorization server.
    """
    try:
        claims = jwt.decode(assertion, key, algorithms=[CLIENTS]).claims
    except (JoseError, ValueError):
        return f"no JWT with a signature of the client ({CLIENTS})"
    wanted: Any = {"iss": client, "sub": client}
    wrong = [f"another {name}" for name in wanted if claims.get(name) != wanted[name]]
    named = claims.get("aud")
    given = {one for one in (named if isinstance(named, list) else [named]) if isinstance(one, str)}
    if not given & {*audiences}:
        near = {one.removesuffix("/") for one in given} & {*audiences}
        wrong.append(SLASH if near else "another aud")
    if not isinstance(claims.get("exp"), int | float):
        wrong.append("no exp")
    return ", ".join(wrong)


def _filled(members: dict[str, Any], issuer: str, audience: str) -> dict[str, Any]:
    def fill(value: Any) -> Any:
        if isinstance(value, list):
            return [fill(one) for one in value]
        if isinstance(value, str):
            return value.replace("{audience}", audience).replace("{issuer}", issuer)
        return value

    return {name: fill(value) for name, value in members.items()}


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
