"""clients/authorization: how a client gets a token of our issuer, and what it does with it.

``authorization.facts`` has what our server and its issuer saw of it.
"""

import contextlib
from collections.abc import Iterator
from typing import Any
from urllib.parse import SplitResult, urlsplit

from mcp_touchstone.suite import (
    CREDENTIALS,
    Breach,
    Happened,
    Record,
    Seen,
    ambient,
    authorization,
    brief,
    is_loopback,
    parts,
)

ELSEWHERE = "https://elsewhere.invalid"
TENANT = "/tenant"
ROOT = "/.well-known/oauth-authorization-server"
OPENID = "/.well-known/openid-configuration"
RESOURCE = "/.well-known/oauth-protected-resource"
OPENINGS = (" initialize", " server/discover")
PROCEEDS = ("register", "authorize", "token")
CONFIDENTIAL = {
    "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"]
}
"""What an issuer of clients with secrets says in its metadata."""

CHALLENGED = 401
SHOWN = frozenset({"valid", "old", "foreign"})
"""What our server notes of a request with a token."""

REDIRECT = "a registered redirect_uri with https, or on localhost"
RETRIES = 3
"""Retries that are still a few, as in the official conformance suite."""


@parts.scenario("auth", official="auth/scope-from-www-authenticate")
class Auth(parts.Protected):
    """Ask for a token, with the metadata and the scope in the challenge."""

    protection = parts.Protection(supported=("read", "write", "admin"))


@parts.scenario("auth-2025-03-26", official="auth/2025-03-26-oauth-endpoint-fallback")
class AuthMarch(parts.Protected):
    """Ask for a token as a server of 2025-03-26 without metadata."""

    modern = both = False
    versions = ("2025-03-26",)
    protection = parts.Protection(scope="", defaults=True)


parts.protected(
    "auth-discovery",
    official="auth/scope-omitted-when-undefined",
    about="Ask for a token; the metadata is where a client looks last, and the token is renewed "
    "once.",
    place=RESOURCE,
    names_place=False,
    scope="",
    supported=("read", "write"),
    tenant=TENANT,
    places=(TENANT + OPENID,),
    then=parts.FORGETS,
)
parts.protected(
    "auth-step-up",
    official="auth/scope-step-up",
    about="Ask for a further scope in a call.",
    more="write",
)
parts.protected(
    "auth-refusals",
    official="auth/scope-retry-limit",
    about="Refuse the list, and a call, for want of a scope, whatever the token has.",
    scope="",
    more="write",
    never=True,
)
parts.protected(
    "auth-no-pkce",
    official="auth/scope-from-www-authenticate",
    about="Ask for a token of an issuer that does not say that it has PKCE.",
    metadata={"code_challenge_methods_supported": None},
)
parts.protected(
    "auth-resource",
    official="auth/resource-mismatch",
    about="Ask for a token with the metadata of another server.",
    resource=f"{ELSEWHERE}/mcp",
)
parts.protected(
    "auth-issuer",
    official="auth/metadata-issuer-mismatch",
    about="Ask for a token of an issuer whose metadata names another issuer.",
    tenant=TENANT,
    places=(ROOT + TENANT,),
    metadata={"issuer": ELSEWHERE},
)
parts.protected(
    "auth-iss",
    official="auth/iss-wrong-issuer",
    about="Answer an authorization request as another issuer.",
    response={"iss": ELSEWHERE},
)
parts.protected(
    "auth-iss-unexpected",
    official="auth/iss-unexpected",
    about="Answer an authorization request as another issuer, where no issuer was promised.",
    metadata={"authorization_response_iss_parameter_supported": None},
    response={"iss": ELSEWHERE},
)
parts.protected(
    "auth-no-iss",
    official="auth/iss-supported-missing",
    about="Answer an authorization request without the issuer that was promised.",
    response={"iss": None},
)
parts.protected(
    "auth-iss-slash",
    official="auth/iss-normalized",
    about="Answer an authorization request as an issuer that differs by a slash at the end only.",
    response={"iss": f"{parts.ISSUER}/"},
)
parts.protected(
    "auth-state",
    official="auth/scope-from-www-authenticate",
    about="Answer an authorization request with another state.",
    response={"state": "of-another-request"},
)
parts.variant(
    "auth-redirect",
    Auth,
    "Redirect each call with a token to another origin, with each status of a redirect.",
    official="",
    steps=parts.CALLS,
    http_fault=parts.REDIRECTS,
)
parts.protected(
    "auth-token-redirect",
    official="",
    about="Redirect requests to the token endpoint to another origin.",
    moved=("/token",),
)
parts.protected(
    "auth-register-redirect",
    official="",
    about="Redirect registrations to another origin.",
    moved=("/register",),
)
parts.protected(
    "auth-metadata-redirect",
    official="",
    about="Redirect requests for metadata of the issuer to another origin.",
    moved=(ROOT, OPENID),
)
parts.protected(
    "auth-document-redirect",
    official="",
    about="Redirect requests for metadata of our server to another origin.",
    moved=(Auth.protection.place,),
)
parts.protected(
    "auth-issuer-slash",
    official="",
    about="Ask for a token of an issuer whose metadata has a slash at the end of its name.",
    metadata={"issuer": f"{parts.ISSUER}/"},
)
parts.protected(
    "auth-machine",
    official="auth/client-credentials-basic",
    about="Ask for a token of an issuer that knows the client, by client credentials.",
    grant="client_credentials",
    metadata=CONFIDENTIAL,
)
parts.protected(
    "auth-machine-stranger",
    official="",
    about="Ask for a token by client credentials of another issuer than the one that gave them.",
    grant="client_credentials",
    stranger=True,
    metadata=CONFIDENTIAL,
)
parts.protected(
    "auth-stranger",
    official="",
    about="Ask for a token of another issuer than the one that knows the client.",
    grant="authorization_code",
    stranger=True,
    metadata=CONFIDENTIAL,
)
parts.protected(
    "auth-mix-up",
    official="",
    about="Ask for a code of the issuer that knows the client, and for its use at another one.",
    grant="authorization_code",
    stranger=True,
    metadata={**CONFIDENTIAL, "authorization_endpoint": f"{parts.ISSUER}/authorize"},
)
parts.protected(
    "auth-moves",
    official="auth/authorization-server-migration",
    about="Ask for a token of another issuer after the first call.",
    then=parts.MOVES,
)
parts.protected(
    "auth-moves-name",
    official="",
    about="Ask for a token of an issuer with another host name and the same port, after the first "
    "call.",
    then=parts.MOVES,
    renamed=True,
)
parts.protected(
    "auth-stranger-name",
    official="",
    about="Ask for a token of an issuer with another host name and the same port than the one that "
    "knows the client.",
    grant="authorization_code",
    stranger=True,
    renamed=True,
    metadata=CONFIDENTIAL,
)


def _split(url: str) -> SplitResult:
    """Split a URL; one that is none has no parts."""
    with contextlib.suppress(ValueError):
        return urlsplit(url)
    return urlsplit("")


def _scopes(facts: dict[str, Any]) -> set[str]:
    return set(str(facts.get("scope", "")).split())


def _redeemed(record: Record) -> authorization.Fact | None:
    """Return the first request that sent a code of ours to the token endpoint."""
    return next(
        (one for one in authorization.facts(record, "token") if one.noted.get("code")), None
    )


def _refuses(
    clause: str, record: Record, seen: str, places: tuple[str, ...], mild: Breach | None = None
) -> Iterator[Seen]:
    """Judge that a client that has read metadata does not go on to some places."""
    read = authorization.facts(record, seen)
    went = next(
        (one for one in authorization.facts(record, *places) if read and one.line > read[0].line),
        None,
    )
    if read:
        at = went.line if went else read[0].line
        actual = f"a request to the {went.place} endpoint" if went else "none"
        expected = "no registration, authorization or token request with this metadata"
        yield Seen(clause, went is None, at, expected, actual, mild=mild)


def _in_order(
    clause: str,
    record: Record,
    asked: list[tuple[int, str]],
    expected: list[str],
    mild: Breach | None = None,
) -> Iterator[Seen]:
    """Judge that paths were asked in an order, up to the last; others may be among them."""
    known = [(n, path) for n, path in asked if path in expected]
    order = list(dict.fromkeys(path for _, path in known))
    is_over = order == expected or authorization.has_ended(record)
    if asked and (is_over or order != expected[: len(order)]):
        at = known[-1][0] if known else asked[-1][0]
        wanted = " then ".join(expected)
        yield Seen(clause, order == expected, at, wanted, brief(order), mild=mild)


@ambient("client-auth-metadata-url", "client-auth-metadata-order")
def finds_the_metadata_of_the_server(record: Record) -> Iterator[Seen]:
    """The metadata of the server is read from the URL of the challenge, or from known paths."""
    setup = authorization.setup(record)
    asked = [(n, facts["path"]) for n, _, facts in authorization.facts(record, "document")]
    if not asked or setup["defaults"]:
        return
    if not setup["place"]:
        own = RESOURCE + _split(setup["resource"]).path
        yield from _in_order("client-auth-metadata-order", record, asked, [own, RESOURCE])
        return
    requests = authorization.facts(record, "request")
    challenge = next((n for n, _, facts in requests if facts.get("status") == CHALLENGED), None)
    asked = [one for one in asked if challenge is not None and one[0] > challenge]
    if not asked:  # no challenge, no URL in it
        return
    paths = [path for _, path in asked]
    late = Breach.WARN if setup["place"] in paths else None
    if paths[0] == setup["place"] or late or authorization.has_ended(record):
        expected = f"GET {setup['place']}, which the challenge names"
        passed, actual = paths[0] == setup["place"], f"GET {paths[0]}"
        yield Seen("client-auth-metadata-url", passed, asked[0][0], expected, actual, mild=late)


@ambient("client-auth-server-metadata-order")
def finds_the_metadata_of_the_issuer(record: Record) -> Iterator[Seen]:
    """The well-known paths of an issuer are asked in their order."""
    setup = authorization.setup(record)
    asked = [(n, facts["path"]) for n, _, facts in authorization.facts(record, "metadata")]
    tenant = setup.get("tenant", "")
    order = [ROOT + tenant, OPENID + tenant, *([tenant + OPENID] if tenant else [])]
    last = next((n for n, path in enumerate(order) if path in setup.get("places", ())), 0)
    clause = "client-auth-server-metadata-order"
    if record.revision == "2025-06-18":  # it knows RFC 8414 only
        last, mild = 0, None
    else:
        mild = None if tenant else Breach.WARN
    yield from _in_order(clause, record, asked, order[: last + 1], mild)


@ambient("client-auth-default-endpoints", "client-auth-metadata-version")
def falls_back_to_default_endpoints(record: Record) -> Iterator[Seen]:
    """Metadata at the root comes first; without it the default endpoints are used."""
    setup, facts = authorization.setup(record), authorization.facts(record)
    root = [(n, f["version"]) for n, p, f in facts if p == "document" and f["path"] == ROOT]
    used = [n for n, place, _ in facts if place in PROCEEDS]
    documents = [n for n, place, _ in facts if place == "document"]
    if not setup.get("defaults") or not (documents or used):
        return
    for n, version in root:
        clause = "client-auth-metadata-version"
        yield Seen(clause, bool(version), n, "MCP-Protocol-Version", version or "none")
    if used or authorization.has_ended(record):
        passed = bool(root and used and root[0][0] < used[0])
        expected = f"GET {ROOT}, then /register or /authorize"
        actual = "the endpoints without the metadata" if used else "neither endpoint"
        at = used[0] if used else documents[-1]
        yield Seen("client-auth-default-endpoints", passed, at, expected, actual)


@ambient("client-auth-resource")
def names_the_server_as_resource(record: Record) -> Iterator[Seen]:
    """Requests to the issuer name our URL as their resource."""
    setup = authorization.setup(record)
    for n, place, facts in authorization.facts(record, "authorize", "token") if setup else ():
        if setup["foreign"]:
            return  # another clause is about it
        if "grant" in facts:
            continue  # the assertion has the resource
        url, said = setup["resource"], str(facts.get("resource", ""))
        near = {url.removesuffix(_split(url).path), url}
        mild = Breach.WARN if said.rstrip("/") in near else None
        actual = f"{place} with resource={said}" if said else f"{place} without resource"
        yield Seen("client-auth-resource", said == url, n, f"resource={url}", actual, mild=mild)


@ambient("client-auth-pkce")
def uses_a_code_challenge(record: Record) -> Iterator[Seen]:
    """A code is asked for with a challenge, and redeemed with its verifier."""
    for n, place, facts in authorization.facts(record, "authorize", "token"):
        if place == "authorize":
            plain = facts["challenge"] == "plain" and record.revision < "2025-11-25"
            mild = Breach.WARN if plain else None
            passed, actual = facts["challenge"] == "S256", f"method {facts['challenge']}"
            yield Seen("client-auth-pkce", passed, n, "a challenge with S256", actual, mild=mild)
        elif facts.get("code"):
            yield Seen(
                "client-auth-pkce", facts.get("verified", False), n, "its verifier", "another"
            )


@ambient("client-auth-response-type")
def asks_for_a_code(record: Record) -> Iterator[Seen]:
    """An authorization request has response_type=code."""
    for n, _, facts in authorization.facts(record, "authorize"):
        if "response_type" in facts:  # older recordings lack it
            said = facts["response_type"]
            actual = f"response_type={brief(said, 60)}" if said else "none"
            yield Seen("client-auth-response-type", said == "code", n, "response_type=code", actual)


@ambient("client-auth-parameters", "client-auth-code-once")
def passes_parameters_as_oauth_says(record: Record) -> Iterator[Seen]:
    """A token request is a POST of a form; no secret is in a URL, and no code is used twice."""
    for n, place, facts in authorization.facts(record, "authorize", "token", "parameters"):
        wrong = place == "parameters"
        actual = f"{facts['at']} with {facts['fault']}" if wrong else ""
        yield Seen("client-auth-parameters", not wrong, n, "parameters as in OAuth 2.1", actual)
        if "again" in facts:
            expected, again = "a code that was not used", facts["again"]
            yield Seen("client-auth-code-once", not again, n, expected, "a code for a second time")


@ambient("client-auth-pkce-support", "client-auth-resource-match", "client-auth-issuer-match")
def refuses_unfit_metadata(record: Record) -> Iterator[Seen]:
    """Metadata of another server or issuer, or without PKCE, is not used."""
    setup = authorization.setup(record)
    if "code_challenge_methods_supported" in setup.get("metadata", ()):
        places = ("authorize", "token")
        yield from _refuses("client-auth-pkce-support", record, "metadata", places)
    if setup.get("foreign"):
        yield from _refuses("client-auth-resource-match", record, "document", PROCEEDS)
    if "issuer" in setup.get("metadata", ()):
        mild = Breach.WARN if record.revision < "2026-07-28" or "slash" in record.scenario else None
        yield from _refuses("client-auth-issuer-match", record, "metadata", PROCEEDS, mild)


@ambient("client-auth-iss", "client-auth-state")
def checks_the_authorization_response(record: Record) -> Iterator[Seen]:
    """A code is only redeemed if the response has the right issuer and state."""
    changed = authorization.setup(record).get("response", ())
    authorized, redeemed = authorization.facts(record, "authorize"), _redeemed(record)
    for n, _, facts in authorized:
        yield Seen("client-auth-state", facts["state"], n, "a state", "none")
    for clause, name in (("client-auth-iss", "iss"), ("client-auth-state", "state")):
        if authorized and (redeemed or (name in changed and authorization.has_ended(record))):
            passed = not (redeemed and name in changed)
            expected = f"no use of a code whose response has another {name}, or none"
            at = redeemed[0] if redeemed else authorized[-1].line
            yield Seen(clause, passed, at, expected, "the code in a token request")


def _redirect(n: int, url: str, *, strange: bool = False) -> Seen:
    """Judge a redirect URI, which is strange if the client registered others."""
    parts = _split(url)
    local = parts.hostname == "localhost" or is_loopback(parts.hostname or "")
    secure = parts.scheme == "https" or (parts.scheme == "http" and local)
    own = Breach.WARN if parts.scheme != "http" and not strange else None
    actual = f"{parts.scheme}://{parts.netloc}{', unregistered' if strange else ''}"
    passed = secure and not strange
    return Seen("client-auth-redirect-uri", passed, n, REDIRECT, actual, mild=own)


@ambient("client-auth-redirect-uri", "client-auth-application-type")
def registers_itself(record: Record) -> Iterator[Seen]:
    """The redirect URI is registered and ours or secure; the registration has a type."""
    for n, _, facts in authorization.facts(record, "authorize"):
        strange = facts["known"] and not facts["registered"]
        yield _redirect(n, facts.get("redirect_uri", ""), strange=strange)
    for n, _, facts in authorization.facts(record, "register"):
        urls = facts.get("redirect_uris", ())
        yield from (_redirect(n, str(url)) for url in urls)
        if not urls and facts.get("redirects"):
            yield Seen("client-auth-redirect-uri", False, n, REDIRECT, "a registration with none")
        kind = facts["application_type"]
        passed = kind in ("native", "web")
        yield Seen("client-auth-application-type", passed, n, "native or web", brief(kind))


@ambient("client-auth-client-id", "client-auth-registration")
def has_a_client_id_of_the_issuer(record: Record) -> Iterator[Seen]:
    """The client_id is registered, or the URL of its metadata, also where a code is redeemed."""
    stranger = authorization.setup(record).get("stranger")
    for n, place, facts in authorization.facts(record, "authorize", "token"):
        # client-auth-credentials-bound is about a second issuer
        by_code = place == "authorize" or facts.get("grant_type") == "authorization_code"
        if by_code and not (facts.get("issuer") or stranger):
            own = facts.get("client_id")
            has_documents = record.revision >= "2025-11-25" or place == "token"  # seen before
            is_document = has_documents and str(own).startswith("https://")
            actual = f"{place} with client_id {brief(own, 60)}, which the issuer never gave"
            for clause in ("client-auth-client-id", "client-auth-registration"):
                passed = facts["known"] or is_document
                yield Seen(clause, passed, n, "the client_id of a registration", actual)


@ambient("client-auth-token-header", "client-auth-foreign-token")
def sends_its_token_with_each_request(record: Record) -> Iterator[Seen]:
    """Each request has the token of our issuer, from the first one that has it."""
    has, requests = False, authorization.facts(record, "request")
    issued = [n for n, _, facts in authorization.facts(record, "token") if facts.get("issued")]
    with_token = [n for n, _, facts in requests if facts["token"] in SHOWN]
    if issued and not with_token and authorization.has_ended(record):
        for n, _, facts in requests:
            if n > issued[0]:
                actual = f"{facts['request']} without it, and no request with it"
                yield Seen("client-auth-token-header", False, n, "the token that it got", actual)
    for n, _, facts in requests:
        shown = facts["token"]
        if shown == "none":
            has &= not facts["request"].endswith(OPENINGS)
            if has:
                actual = f"{facts['request']} without it"
                yield Seen("client-auth-token-header", False, n, "an Authorization header", actual)
        else:
            expected, actual = "a token of our issuer", "another token"
            yield Seen("client-auth-foreign-token", shown != "foreign", n, expected, actual)
        if shown == "valid":
            yield Seen("client-auth-token-header", True, n)
        has = (has or shown == "valid") and facts.get("status") != 401


@ambient("client-auth-scope")
def asks_for_the_scopes_of_the_challenge(record: Record) -> Iterator[Seen]:
    """The first authorization request has the scopes of the challenge, or of the metadata."""
    setup, authorized = authorization.setup(record), authorization.facts(record, "authorize")
    if authorized and not setup["defaults"]:
        n, _, facts = authorized[0]
        offline = {"offline_access"} & {*setup.get("scopes", ())}
        passed = _scopes(facts) - offline == _scopes(setup) - offline
        said = facts.get("scope")
        expected = f"scope={setup['scope']}" if setup["scope"] else "no scope"
        yield Seen("client-auth-scope", passed, n, expected, f"scope={said}" if said else "none")


@ambient("client-auth-step-up", "client-auth-scope-union", "client-auth-retries")
def steps_up_after_a_missing_scope(record: Record) -> Iterator[Seen]:
    """After insufficient_scope the client asks for more scopes, a few times at most."""
    setup, authorized = authorization.setup(record), authorization.facts(record, "authorize")
    refused = [
        n
        for n, _, facts in authorization.facts(record, "request")
        if facts.get("status") in {403, 400}
    ]
    if not refused or not authorized:
        return
    first = _scopes(authorized[0].noted)
    again = next((one for one in authorized if one.line > refused[0]), None)
    more = _scopes(again.noted) if again else set()
    if again or authorization.has_ended(record):
        at, expected = again.line if again else refused[0], f"a request for {setup['more']}"
        yield Seen("client-auth-step-up", setup["more"] in more, at, expected, brief(sorted(more)))
    if again and first:
        expected = f"{' '.join(sorted(first))} too"
        actual = brief(sorted(more))
        yield Seen("client-auth-scope-union", first <= more, again.line, expected, actual)
    if len(refused) > RETRIES + 1 or authorization.has_ended(record):
        passed, actual = len(refused) <= RETRIES + 1, f"{len(refused)} refused requests"
        yield Seen("client-auth-retries", passed, refused[-1], "a few retries at most", actual)


@ambient("client-auth-credentials-origin")
def sends_no_credentials_to_another_origin(record: Record) -> Iterator[Seen]:
    """Another origin than their own gets no token, code, verifier, secret or session id."""
    clause, expected = "client-auth-credentials-origin", "no credentials there"
    for entry in record.transcript.events(Happened.FETCHED):
        path, _, named = entry.text.removeprefix(Happened.FETCHED).partition(CREDENTIALS)
        if path.startswith("/elsewhere/"):
            mild = Breach.WARN if named == "Mcp-Session-Id" else None
            yield Seen(clause, not named, entry.n, expected, entry.text, mild=mild)
    for exchange in record.transcript.exchanges:
        if exchange.status in parts.STATUSES:
            yield Seen(clause, True, exchange.line or None)
    for n, place, facts in authorization.facts(
        record, "metadata", "register", "authorize", "token"
    ):
        passed = not facts.get("bearer", False)
        actual = f"an access token to the {place} endpoint of the issuer"
        yield Seen(clause, passed, n, expected, actual)


@ambient("client-auth-credentials-bound")
def uses_no_credentials_of_another_issuer(record: Record) -> Iterator[Seen]:
    """What one issuer gave is not sent to another."""
    clause, expected = "client-auth-credentials-bound", "credentials of this issuer"
    mild = Breach.WARN if record.revision < "2026-07-28" else None
    went = [
        one for one in authorization.facts(record, "authorize", "token") if one.noted.get("issuer")
    ]
    for n, place, facts in went:
        portable = str(facts.get("client_id", "")).startswith("https://")
        bound = facts["known"] or portable
        has_code = any(one.place == "authorize" and one.line < n for one in went)
        of_first = {"client_id": not bound, "client_secret": not bound}
        of_first["refresh_token"] = facts.get("refresh_token") is False
        of_first["code"] = of_first["code_verifier"] = facts.get("code") is False and not has_code
        sent = {*facts.get("sent", ("refresh_token", "code")), *({"client_id"} & {*facts})}
        named = [name for name, is_first in of_first.items() if is_first and name in sent]
        actual = f"{place} with {', '.join(named)} of the first issuer"
        yield Seen(clause, not named, n, expected, actual, mild=mild)
    read = authorization.facts(record, "metadata")
    if (
        authorization.setup(record).get("stranger")
        and read
        and not went
        and authorization.has_ended(record)
    ):
        yield Seen(clause, True, read[-1].line)
