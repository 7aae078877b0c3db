"""The checks of an access token that the servers of http_tokens make."""

import base64
import hashlib
import hmac
import json
import os
import time
import urllib.request
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import urlencode

from cryptography.x509 import load_pem_x509_certificate
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet, RSAKey
from joserfc.jws import JWSRegistry

Json = dict[str, Any]

ISSUER = "TOUCHSTONE_MUTANT_ISSUER"
KEYS = "TOUCHSTONE_MUTANT_JWKS"
AUDIENCE = "TOUCHSTONE_MUTANT_AUDIENCE"
UPSTREAM = "TOUCHSTONE_MUTANT_UPSTREAM"

REGISTRY = JWSRegistry()
REGISTRY.max_header_length = 4096  # a key in the header has more than the usual 512 bytes


@cache
def get(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310  (of the run)
        return bytes(answer.read())


def ask_upstream(path: str, headers: Json) -> None:
    """Send a request to the service of the run."""
    asked = urllib.request.Request(os.environ[UPSTREAM] + path, headers=headers)  # noqa: S310
    urllib.request.urlopen(asked, timeout=20).close()  # noqa: S310  (of the run)


def own_token() -> str:
    """Return a token for the server itself."""
    form = {"grant_type": "client_credentials", "client_id": "server", "resource": "https://a.test"}
    url = os.environ[ISSUER] + "/token"
    with urllib.request.urlopen(url, urlencode(form).encode(), timeout=20) as answer:  # noqa: S310
        return str(json.load(answer)["access_token"])


def own_keys() -> KeySet:
    return KeySet.import_key_set(json.loads(get(os.environ[KEYS])))


def checked(token: str, verify: Callable[[str, Json], bool]) -> tuple[Json, set[str]]:
    """Return the claims of a token and the claims at fault; raise ValueError if it is no JWT.

    Args:
        verify: returns whether the signature is right, given the header.
    """
    header, claims = (
        json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
        for part in token.split(".")[:2]
    )
    now = time.time()
    audience, own = claims.get("aud"), os.environ[AUDIENCE]
    right = {
        "signature": verify(token, header),
        "iss": claims.get("iss") == os.environ[ISSUER],
        "aud": own in (audience if isinstance(audience, list) else [audience]),
        "exp": claims.get("exp", 0) > now,
        "nbf": claims.get("nbf", 0) <= now,
        "jti": True,
    }
    return claims, {name for name, held in right.items() if not held}


def is_active(token: str) -> bool:
    """Return whether the issuer says that a token is active."""
    body = urlencode({"token": token}).encode()
    url = os.environ[ISSUER] + "/introspect"
    with urllib.request.urlopen(url, body, timeout=20) as answer:  # noqa: S310  (of the run)
        return bool(json.load(answer)["active"])


def verify(token: str, header: Json, keys: Any = None) -> bool:
    """Return whether the issuer, or another owner of keys, signed a token."""
    try:
        jwt.decode(token, keys or own_keys(), algorithms=["RS256"], registry=REGISTRY)
    except (JoseError, ValueError):
        return False
    return True


def verify_unless_unsigned(token: str, header: Json) -> bool:
    return header["alg"] == "none" or verify(token, header)


def verify_by_any_algorithm(token: str, header: Json) -> bool:
    body, _, signature = token.rpartition(".")
    secret = own_keys().keys[0].as_pem(private=False)  # type: ignore[union-attr]
    made = hmac.new(secret, body.encode(), hashlib.sha256).digest()
    same = base64.urlsafe_b64encode(made).rstrip(b"=").decode() == signature
    return verify(token, header) or (header["alg"] == "HS256" and same)


def verify_by_header(token: str, header: Json) -> bool:
    """Take the key from the header of the token."""
    keys: Any = None
    if "jwk" in header:
        keys = RSAKey.import_key(header["jwk"])
    return verify(token, header, keys)


def verify_by_url(token: str, header: Json) -> bool:
    """Take the keys from a URL in the header of the token."""
    keys = KeySet.import_key_set(json.loads(get(header["jku"]))) if "jku" in header else None
    return verify(token, header, keys)


def verify_by_certificate(token: str, header: Json) -> bool:
    """Take the key from a certificate at a URL in the header of the token."""
    if "x5u" not in header:
        return verify(token, header)
    key: Any = load_pem_x509_certificate(get(header["x5u"])).public_key()
    return verify(token, header, RSAKey.import_key(key))


def verify_nothing_with_a_known_key(token: str, header: Json) -> bool:
    """Compare the name of the key only."""
    known = header.get("kid") == own_keys().keys[0].kid
    plain = not {"jwk", "jku", "x5u"} & header.keys() and header["alg"] == "RS256"
    return verify(token, header) or (known and plain)
