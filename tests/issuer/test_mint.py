"""Tokens that a server must refuse: each has the flaw of its name, and would fool one mistake."""

import base64
import hashlib
import hmac
import json
from typing import Any

import pytest

pytest.importorskip("joserfc")

from joserfc import jws, jwt
from joserfc.jwk import RSAKey
from joserfc.jws import JWSRegistry

from mcp_touchstone.issuer.mint import ALGORITHM, FLAWS, Mint
from tests.cases import cases

SERVER = "http://127.0.0.1:5/mcp"
MINT = Mint("http://127.0.0.1:6")

FORGED = frozenset({"unsigned", "unknown-key", "public-key", "own-jwk", "own-jku", "own-x5u"})
"""Flaws of the signature."""

UNTRUE = frozenset({"other-issuer", "expired", "early", "revoked"})
"""Flaws that whoever knows the key of the issuer sees."""


def header(token: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(token.split(".", maxsplit=1)[0] + "=="))


@cases("", *FLAWS)
def test_the_issuer_knows_its_own_tokens_that_are_valid_now(flaw: str) -> None:
    found = MINT.read(MINT.token(SERVER, flaw=flaw))

    assert (found is None) is (flaw in FORGED | UNTRUE)


def test_each_signature_is_one_that_some_mistake_accepts() -> None:
    (public,) = MINT.jwks()["keys"]
    pem = RSAKey.import_key(public).as_pem(private=False)
    confused = MINT.token(SERVER, flaw="public-key")
    with_key = MINT.token(SERVER, flaw="own-jwk")
    (stranger,) = MINT.jwks(stranger=True)["keys"]

    signed, _, signature = confused.rpartition(".")
    made = hmac.new(pem, signed.encode(), hashlib.sha256).digest()
    assert signature == base64.urlsafe_b64encode(made).rstrip(b"=").decode()
    assert b"PRIVATE" not in pem
    assert MINT.token(SERVER, flaw="unsigned").endswith(".")
    registry = JWSRegistry(algorithms=[ALGORITHM])
    registry.max_header_length = 4096  # the library refuses a header with a key
    own = RSAKey.import_key(header(with_key)["jwk"])
    assert json.loads(jws.deserialize_compact(with_key, own, registry=registry).payload)["sub"]
    for flaw in ("unknown-key", "own-jku", "own-x5u"):
        token = MINT.token(SERVER, flaw=flaw)
        assert jwt.decode(token, RSAKey.import_key(stranger), algorithms=[ALGORITHM]).claims
        assert header(token)["kid"] == public["kid"]


def test_keys_are_published_without_their_private_part() -> None:
    for stranger in (False, True):
        (key,) = MINT.jwks(stranger=stranger)["keys"]
        assert not {"d", "p", "q", "dp", "dq", "qi"} & {*key}


def test_an_identity_assertion_is_a_grant_only_by_its_type_and_its_claims() -> None:
    own = MINT.token(SERVER, kind="oauth-id-jag+jwt")

    assert MINT.granted(own, aud=SERVER) == ""
    assert MINT.granted(own, aud="http://127.0.0.1:7") == "another aud"
    for other in (MINT.token(SERVER), MINT.token(SERVER, flaw="expired", kind="oauth-id-jag+jwt")):
        assert "no identity assertion" in MINT.granted(other, aud=SERVER)
