"""clients/workload: how a client without a user gets a token by the JWT of its platform.

``authorization.facts`` has what our server and its issuer saw of it.
"""

from collections.abc import Iterator

from mcp_touchstone.suite import Breach, Record, Seen, ambient, authorization, parts

AUDIENCE, EXPIRED = "another aud", "expired"
METADATA = {
    "grant_types_supported": [parts.BEARER],
    "token_endpoint_auth_methods_supported": ["none"],
    "registration_endpoint": None,
}

parts.protected(
    "auth-workload",
    official="auth/wif-jwt-bearer",
    about="Ask for a token by the JWT of the platform on which the client runs.",
    draft="workload",
    grant=parts.WORKLOAD,
    metadata=METADATA,
)
parts.protected(
    "auth-workload-stranger",
    official="",
    about="Ask for a token of another issuer than the one in the JWT of the platform.",
    draft="workload",
    grant=parts.WORKLOAD,
    stranger=True,
    metadata=METADATA,
)


@ambient("client-workload-grant", "client-workload-audience")
def asks_by_the_jwt_of_its_platform(record: Record) -> Iterator[Seen]:
    """A token request has the JWT that the platform gave, and goes where its aud points."""
    used = [one for one in authorization.facts(record, "token") if "workload" in one.noted]
    for n, _, facts in used:
        fault = facts["workload"]
        mild = Breach.WARN if fault == EXPIRED else None
        expected, own = f"{parts.BEARER} with the JWT of the platform", fault in {"", AUDIENCE}
        yield Seen("client-workload-grant", own, n, expected, fault, mild=mild)
        if own:
            expected = "a JWT for this token endpoint"
            yield Seen("client-workload-audience", not fault, n, expected, fault)
    read = authorization.facts(record, "document")
    stranger = record.scenario == "auth-workload-stranger"
    if read and not used and stranger and authorization.has_ended(record):
        yield Seen("client-workload-audience", True, read[-1].line)
