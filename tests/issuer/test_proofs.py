"""Proofs that a client has the key of its token: what our server finds wrong with them."""

import base64
import hashlib
import json
import time
from typing import Any

import pytest

pytest.importorskip("joserfc")

from joserfc import jwk, jwt

from mcp_touchstone.issuer.proofs import MOST_REFUSED, Proofs
from tests.cases import cases

KEY = jwk.ECKey.generate_key("P-256")
URL = "http://127.0.0.1:5/mcp"
PLAIN = {"typ": "dpop+jwt", "alg": "ES256", "jwk": KEY.as_dict(private=False)}


def claims(**more: Any) -> dict[str, Any]:
    known = {"jti": f"one-{time.monotonic_ns()}", "htm": "POST", "htu": URL, "iat": time.time()}
    return {k: v for k, v in (known | more).items() if v is not None}


def proof(header: dict[str, Any] = PLAIN, key: Any = KEY, **more: Any) -> str:
    return jwt.encode(header, claims(**more), key, algorithms=[str(header["alg"])])


def unsigned(header: object, body: object) -> str:
    parts = (json.dumps(one).encode() for one in (header, body))
    return ".".join(base64.urlsafe_b64encode(one).rstrip(b"=").decode() for one in parts) + "."


def faults(*sent: str, **more: Any) -> set[str]:
    found = Proofs(nonces=False).read(sent, "POST", URL, **more)
    assert bool(found.faults) is bool(found.error)
    return {one.partition(":")[0] for one in found.faults}


def test_a_good_proof_shows_its_key() -> None:
    token = "a.b.c"
    digest = base64.urlsafe_b64encode(hashlib.sha256(token.encode()).digest()).rstrip(b"=")
    sent = proof(ath=digest.decode())

    found = Proofs(nonces=False).read([sent], "POST", URL, token=token, bound=KEY.thumbprint())

    assert (found.faults, found.error, found.key) == ([], "", KEY.thumbprint())
    assert {"proof", "signature", "same-key", "token-hash", "unique"} <= {*found.checked}


@cases("HTTP://127.0.0.1:5/mcp", f"{URL}?a=1", f"{URL}#a")
def test_the_target_is_compared_as_a_url(url: str) -> None:
    assert faults(proof(htu=url)) == set()


@cases(
    ("http://127.0.0.1:5/", "target"),
    ("http://127.0.0.1:99999/mcp", "target"),
    ("/mcp", "target"),
    (5, "target"),
)
def test_another_target_is_found(url: object, fault: str) -> None:
    assert faults(proof(htu=url)) == {fault}


@cases(
    ({"jti": None}, "unique"),
    ({"jti": ["a"]}, "unique"),
    ({"htm": "GET"}, "method"),
    ({"iat": None}, "time"),
    ({"iat": "now"}, "time"),
    ({"iat": time.time() + 3000}, "time"),
)
def test_a_claim_that_is_wrong_is_found(change: dict[str, Any], fault: str) -> None:
    assert faults(proof(**change)) == {fault}


@pytest.mark.parametrize("algorithm", ["ES384", "RS256", "PS256"])
def test_each_asymmetric_algorithm_is_verified(algorithm: str) -> None:
    key: Any = jwk.ECKey.generate_key("P-384")
    key = key if algorithm == "ES384" else jwk.RSAKey.generate_key(2048)
    header = {**PLAIN, "alg": algorithm, "jwk": key.as_dict(private=False)}

    assert faults(proof(header, key)) == set()


def test_an_algorithm_that_we_do_not_know_is_refused_and_not_blamed() -> None:
    found = Proofs(nonces=False).read([unsigned({**PLAIN, "alg": "ML-DSA"}, claims())], "POST", URL)

    assert (found.faults, found.error) == ([], "invalid_dpop_proof")
    assert "signature" not in found.checked


@cases(
    ({**PLAIN, "alg": "none"}, {"algorithm"}),
    ({**PLAIN, "alg": ["ES256"]}, {"algorithm"}),
    ({**PLAIN, "typ": "at+jwt"}, {"type", "signature"}),
    ({"typ": "dpop+jwt", "alg": "ES256"}, {"key"}),
    ({**PLAIN, "jwk": [1]}, {"key"}),
    ({**PLAIN, "jwk": {"kty": "EC", "crv": "P-256", "x": 5, "y": {}}}, {"key"}),
    ({**PLAIN, "jwk": {"kty": "oct", "k": "AAAA"}}, {"key"}),
)
def test_a_header_that_is_wrong_is_found(header: dict[str, Any], found: set[str]) -> None:
    assert faults(unsigned(header, claims())) == found


@cases("", "a", "a.b.c", "....", unsigned(PLAIN, ["a"]), "é.b.c")
def test_what_is_no_jwt_is_no_proof(sent: str) -> None:
    assert faults(sent) == {"proof"}


def test_one_request_has_one_proof() -> None:
    assert faults() == faults(proof(), proof()) == {"proof"}


def test_a_private_key_is_found_and_still_verifies() -> None:
    assert faults(proof({**PLAIN, "jwk": KEY.as_dict(private=True)})) == {"key"}


def test_a_proof_that_comes_again_is_found() -> None:
    proofs, sent = Proofs(nonces=False), [proof()]

    assert [proofs.read(sent, "POST", URL).faults for _ in range(2)] == [
        [],
        ["unique: a jti that was used before"],
    ]


def test_a_nonce_is_wanted_a_few_times_and_then_for_good() -> None:
    proofs = Proofs(nonces=True)
    errors = [proofs.read([proof()], "POST", URL).error for _ in range(MOST_REFUSED + 1)]

    assert errors == ["use_dpop_nonce"] * MOST_REFUSED + ["invalid_dpop_proof"]
    assert proofs.read([proof(nonce="x")], "POST", URL).nonce == "other"
    assert proofs.read([proof(nonce=proofs.nonce)], "POST", URL).error == ""
