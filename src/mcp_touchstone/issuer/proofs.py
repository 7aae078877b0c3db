"""Proofs that a client has the key of its token, and what is wrong with one.

Source: RFC 9449, sections 4.2 (members), 4.3 (checks), 8 and 9 (nonces).
"""

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlsplit

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import import_key

from mcp_touchstone.wire.framing import brief

SCHEME: Final = "DPoP"
"""The scheme and the type of a token that is bound to a key; also the header with the proof."""

NONCE: Final = "DPoP-Nonce"
ALGORITHMS: Final = tuple(
    f"{kind}{bits}" for kind in ("ES", "RS", "PS") for bits in (256, 384, 512)
)
"""Those by which we verify a proof."""

SYMMETRIC: Final = ("none", "HS")
"""Beginnings of the names of algorithms that no proof may have."""

INVALID: Final = (JoseError, ValueError, TypeError, KeyError, RecursionError)
"""What a malformed key or token raises."""

_READ: Final = jws.JWSRegistry(algorithms=ALGORITHMS, strict_check_header=False)
_READ.max_header_length = 1 << 13
"""Characters of a header: its key may be a long one of RSA."""

WINDOW: Final = 300
"""Seconds by which two clocks may differ, by the profile for MCP."""

PRIVATE: Final = frozenset({"d", "dp", "dq", "k", "oth", "p", "q", "qi"})
"""Members of a JWK that are secret (RFC 7518, section 6)."""

MOST_REFUSED: Final = 8
"""Requests that are refused for want of a nonce; a further one is refused for good."""

PORTS: Final = {"http": 80, "https": 443}


@dataclass(slots=True)
class Proof:
    """What a request shows of a key.

    Attributes:
        key: the thumbprint of the key (RFC 7638); empty for no proof that can be read.
        checked: what was compared.
        faults: what of it is wrong, each followed by a colon and what is there.
        nonce: ``given``, by this server; ``other``; ``none``; or empty if it wants none.
        error: the code by which the request is refused; empty for a good one.
    """

    key: str = ""
    checked: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    nonce: str = ""
    error: str = ""

    def check(self, what: str, kept: bool, actual: object) -> None:
        """Note a comparison."""
        self.checked.append(what)
        if not kept:
            self.faults.append(f"{what}: {actual}")

    def facts(self, at: str) -> dict[str, Any]:
        """Return what is noted of it; ``at`` is the place that got it."""
        about = {"at": at, "checked": self.checked, "faults": self.faults}
        return about | {"nonce": self.nonce, "error": self.error}


class Proofs:
    """The proofs that one server gets.

    Args:
        nonces: whether it wants a nonce in each.

    Attributes:
        nonce: the one that it gives.
    """

    def __init__(self, *, nonces: bool) -> None:
        self.nonce = secrets.token_urlsafe(12) if nonces else ""
        self._refused = 0
        self._used: set[str] = set()

    def read(
        self, sent: Sequence[str], verb: str, url: str, *, token: str = "", bound: str = ""
    ) -> Proof:
        """Return what a request shows.

        Args:
            sent: the values of its headers with a proof.
            verb: its HTTP method.
            url: its URL, without a query.
            token: the access token in it; empty at a token endpoint.
            bound: the thumbprint of the key that it must be; empty for any key.
        """
        proof = Proof()
        header, claims = _opened(sent[0]) if len(sent) == 1 else (None, None)
        count = "no JWT" if len(sent) == 1 else f"{len(sent)} headers"
        proof.check("proof", header is not None, count)
        if header is not None and claims is not None:
            self._check_header(proof, header, sent[0])
            self._check_claims(proof, claims, (verb, url, token))
        if bound and proof.key:
            proof.check("same-key", proof.key == bound, "another key")
        proof.error = "invalid_dpop_proof" if proof.faults else ""
        if proof.key and not proof.faults and "signature" not in proof.checked:
            proof.error = "invalid_dpop_proof"  # asymmetric, and none that we verify
        if self.nonce and claims is not None:
            said = claims.get("nonce")
            proof.nonce = "given" if said == self.nonce else "none" if said is None else "other"
            if proof.nonce != "given" and not proof.error:
                self._refused += 1
                over = self._refused > MOST_REFUSED
                proof.error = "invalid_dpop_proof" if over else "use_dpop_nonce"
        return proof

    def answer(self, error: str) -> dict[str, str]:
        """Return the headers of the refusal for an error that tell a client how to go on."""
        return {NONCE: self.nonce} if error == "use_dpop_nonce" else {}

    @staticmethod
    def _check_header(proof: Proof, header: Mapping[str, Any], sent: str) -> None:
        proof.check("type", header.get("typ") == "dpop+jwt", f"typ {brief(header.get('typ'))}")
        algorithm, own = header.get("alg"), header.get("jwk")
        is_fit = isinstance(algorithm, str) and not algorithm.startswith(SYMMETRIC)
        proof.check("algorithm", is_fit, f"alg {brief(algorithm)}")
        members = own if isinstance(own, dict) else {}
        secret = sorted(PRIVATE & members.keys())
        try:
            key = import_key({k: v for k, v in members.items() if k not in PRIVATE})
            proof.key = key.thumbprint()
        except INVALID:
            key = None
        actual = f"{', '.join(secret)} in jwk" if secret else "no jwk with a key"
        proof.check("key", key is not None and not secret, actual)
        if key is not None and algorithm in ALGORITHMS:
            try:
                jwt.decode(sent.strip(), key, registry=_READ)
                kept = True
            except INVALID:
                kept = False
            proof.check("signature", kept, "one of another key")

    def _check_claims(
        self, proof: Proof, claims: Mapping[str, Any], asked: tuple[str, str, str]
    ) -> None:
        verb, url, token = asked
        own = claims.get("jti")
        own = own if isinstance(own, str) else ""
        actual = "a jti that was used before" if own else "no jti"
        proof.check("unique", bool(own) and own not in self._used, actual)
        self._used.add(own)
        proof.check("method", claims.get("htm") == verb, f"htm {brief(claims.get('htm'))}")
        named = claims.get("htu")
        proof.check("target", _place(named) == _place(url), f"htu {brief(named)}")
        since = claims.get("iat")
        now = datetime.now(UTC).timestamp()
        near = isinstance(since, int | float) and abs(now - since) <= WINDOW
        proof.check("time", near, f"iat {brief(since)}, where it is {int(now)}")
        if token:
            digest = hashlib.sha256(token.encode()).digest()
            wanted = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
            actual = "another ath" if "ath" in claims else "no ath"
            proof.check("token-hash", claims.get("ath") == wanted, actual)


def _opened(sent: str) -> tuple[dict[str, Any], dict[str, Any]] | tuple[None, None]:
    """Return the header and the claims of a proof without a look at its signature."""
    try:
        found = jws.extract_compact(sent.strip().encode(), registry=_READ)
        header, claims = found.headers(), json.loads(found.payload)
    except INVALID:
        return None, None
    return (header, claims) if isinstance(claims, dict) else (None, None)


def _place(url: object) -> tuple[str, str, int | None, str] | None:
    """Return what two URLs of the same place have in common (RFC 3986, section 6.2.3)."""
    try:
        parts = urlsplit(url if isinstance(url, str) else "")
        port = parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return None
    own = parts.scheme and parts.hostname
    return (parts.scheme, parts.hostname or "", port, parts.path or "/") if own else None
