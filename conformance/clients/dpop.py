"""clients/dpop: how a client shows that it has the key to which its token is bound.

``authorization.facts`` has what our server and its issuer compared of each proof.
"""

from collections.abc import Iterator

from mcp_touchstone.suite import Breach, Record, Seen, ambient, authorization, parts

EXPECTED = {
    "client-dpop-token-request": "a proof in the header DPoP",
    "client-dpop-scheme": "the scheme DPoP",
    "client-dpop-proof": "one header DPoP with a JWT",
    "client-dpop-unique": "a jti of its own",
    "client-dpop-type": "typ dpop+jwt",
    "client-dpop-algorithm": "an asymmetric alg",
    "client-dpop-key": "the public key as jwk",
    "client-dpop-signature": "a signature of the key in jwk",
    "client-dpop-method": "the method of the request as htm",
    "client-dpop-target": "the URL of the request as htu",
    "client-dpop-time": "an iat within 300 seconds of our clock",
    "client-dpop-token-hash": "the hash of the token as ath",
    "client-dpop-same-key": "the key of the token",
}
"""Clause, which ends with the name of a comparison -> what is expected there."""

PLACE = "/.well-known/oauth-protected-resource/mcp"
"""Of the metadata, for a client that looks there before it asks our server."""

parts.protected(
    "auth-dpop",
    official="auth/dpop",
    about="Ask for a token that is bound to a key, and for a proof with each request; the token is "
    "renewed once.",
    draft="dpop",
    place=PLACE,
    proofs=parts.PROOFS,
    then=parts.FORGETS,
)
parts.protected(
    "auth-dpop-nonce",
    official="auth/dpop-nonce",
    about="Ask for a token that is bound to a key, and for proofs with a nonce of each server.",
    draft="dpop",
    place=PLACE,
    proofs=parts.NONCES,
)


@ambient(*EXPECTED)
def proves_that_it_has_the_key(record: Record) -> Iterator[Seen]:
    """Each request of a client that sends proofs has one, and a good one."""
    proofs = authorization.facts(record, "proof")
    knows = any("token-request" not in facts["checked"] for _, _, facts in proofs)
    for n, _, facts in proofs if knows else ():
        faults = dict(one.partition(": ")[::2] for one in facts["faults"])
        checked = [*facts["checked"], *(["token-request"] if facts["at"] == "token" else [])]
        for clause, expected in EXPECTED.items():
            name = clause.removeprefix("client-dpop-")
            if name in checked:
                actual = f"{faults.get(name, '')} in a request to the {facts['at']}"
                yield Seen(clause, name not in faults, n, expected, actual)


@ambient("client-dpop-nonce")
def repeats_the_nonce_of_a_server(record: Record) -> Iterator[Seen]:
    """After use_dpop_nonce a proof has the nonce of that server."""
    proofs = [one for one in authorization.facts(record, "proof") if one.noted["nonce"]]
    for place in ("token", "server"):
        of = [(n, facts) for n, _, facts in proofs if facts["at"] == place]
        asked = [n for n, facts in of if facts["error"] == "use_dpop_nonce"]
        later = [(n, facts["nonce"]) for n, facts in of if asked and n > asked[0]]
        given = any(nonce == "given" for _, nonce in later)
        if asked and (later or authorization.has_ended(record)):
            at, nonce = later[-1] if later else (asked[0], "no further request")
            mild = None if later else Breach.WARN
            actual = f"{nonce} at the {place}"
            yield Seen(
                "client-dpop-nonce", given, at, "the nonce of that server", actual, mild=mild
            )
