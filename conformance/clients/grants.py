"""clients/grants: how a client gets a token without its user: extensions of authorization.

``authorization.facts`` has what our server, its issuer and an identity provider of ours saw of it.
"""

from collections.abc import Iterator

from mcp_touchstone.suite import Breach, Record, Seen, ambient, authorization, brief, parts

METHODS = "token_endpoint_auth_methods_supported"
JAG = "urn:ietf:params:oauth:token-type:id-jag"
SLASH = "a slash after aud"
SUBJECTS = (
    "urn:ietf:params:oauth:token-type:id_token",
    "urn:ietf:params:oauth:token-type:saml2",
)

parts.protected(
    "auth-machine-jwt",
    official="auth/client-credentials-jwt",
    about="Ask for a token by client credentials, with an assertion that the client signs.",
    grant="client_credentials",
    metadata={
        METHODS: ["private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": ["ES256"],
    },
)
parts.protected(
    "auth-enterprise",
    official="auth/enterprise-managed-authorization",
    about="Ask for a token by the assertion of an identity provider, at which a user logged in.",
    place="/.well-known/oauth-protected-resource/mcp",  # for a client that looks before it asks
    grant=parts.BEARER,
    metadata={"grant_types_supported": [parts.BEARER], METHODS: ["client_secret_basic"]},
)


@ambient("client-auth-machine-authenticated", "client-auth-assertion", "client-auth-jag")
def shows_what_it_is(record: Record) -> Iterator[Seen]:
    """A token request without a user has a secret or an assertion, and a right one."""
    setup = authorization.setup(record)
    for n, _, facts in authorization.facts(record, "token"):
        used = facts.get("methods", [])
        if facts.get("grant_type") == "client_credentials" and used:
            clause, actual = "client-auth-machine-authenticated", brief(used)
            yield Seen(clause, used != ["none"], n, "a secret or an assertion", actual)
        if "assertion" in facts:
            fault = facts["assertion"]
            expected = "a signed JWT with the client id as iss and sub, the issuer as aud, and exp"
            mild = Breach.WARN if fault == SLASH else None
            yield Seen("client-auth-assertion", not fault, n, expected, fault, mild=mild)
        if "grant" in facts and setup:
            fault = facts["grant"]
            expected = "the assertion that the identity provider gave for this issuer and client"
            yield Seen("client-auth-jag", not fault, n, expected, fault)


@ambient("client-auth-exchange")
def exchanges_its_id_token(record: Record) -> Iterator[Seen]:
    """The request for a grant names the issuer, the server, and the token of the user."""
    setup = authorization.setup(record)
    for n, _, facts in authorization.facts(record, "exchange"):
        wanted = {
            "requested_token_type": (JAG,),
            "subject_token_type": SUBJECTS,
            "audience": (setup.get("audience"),),
            "resource": (setup.get("resource"),),
        }
        wrong = [name for name, values in wanted.items() if facts.get(name) not in values]
        slash = wrong == ["audience"] and facts["audience"].rstrip("/") == setup.get("audience")
        wrong += [] if facts["known"] else ["subject_token"]
        actual = f"another {', '.join(wrong)}"
        expected = "the types, the issuer as audience, our server as resource, and the ID token"
        mild = Breach.WARN if slash else None
        yield Seen("client-auth-exchange", not wrong, n, expected, actual, mild=mild)
