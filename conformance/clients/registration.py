"""clients/registration: how a client is known to an issuer, and how it shows at the token endpoint.

``authorization.facts`` has what our server and its issuer saw of it.
"""

from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlsplit

from mcp_touchstone.suite import (
    Breach,
    Record,
    Seen,
    ambient,
    authorization,
    brief,
    is_loopback,
    parts,
)

DOCUMENTS = {"client_id_metadata_document_supported": True}
METHODS = "token_endpoint_auth_methods_supported"
OFFLINE = "offline_access"
KNOWN = ("auth-pre-registered", "auth-known")
"""Scenarios in which a client was given the client id of an authorization request."""

parts.protected(
    "auth-document",
    official="auth/basic-cimd",
    about="Ask for a token of an issuer that takes the URL of a metadata document as client id.",
    metadata=DOCUMENTS,
)
parts.protected(
    KNOWN[0],
    official="auth/pre-registration",
    about="Ask for a token of an issuer that knows the client, and registers no other.",
    grant="authorization_code",
    metadata={"registration_endpoint": None, METHODS: ["client_secret_basic"]},
)
parts.protected(
    KNOWN[1],
    official="",
    about="Ask for a token of an issuer that knows the client, and takes documents and "
    "registrations too.",
    grant="authorization_code",
    metadata={**DOCUMENTS, METHODS: ["client_secret_post", "none"]},
)
for _ending, _method in (
    ("basic", "client_secret_basic"),
    ("post", "client_secret_post"),
    ("none", "none"),
):
    parts.protected(
        f"auth-token-{_ending}",
        official=f"auth/token-endpoint-auth-{_ending}",
        about=f"Ask for a token of an issuer whose token endpoint knows {_method} only.",
        metadata={METHODS: [_method]},
    )
parts.protected(
    "auth-offline",
    official="auth/offline-access-scope",
    about="Ask for a token of an issuer that has the scope offline_access; it is renewed once.",
    metadata={"scopes_supported": ["read", OFFLINE]},
    then=parts.FORGETS,
)
parts.protected(
    "auth-no-offline",
    official="auth/offline-access-not-supported",
    about="Ask for a token of an issuer that has scopes, and not offline_access.",
    metadata={"scopes_supported": ["read", "write"]},
)


def _named(record: Record) -> Iterator[tuple[int, str]]:
    """Yield the client ids of authorization requests to the issuer that the server names."""
    for n, _, facts in authorization.facts(record, "authorize"):
        if not facts.get("issuer"):
            yield n, str(facts.get("client_id", ""))


def _is_url(client_id: str) -> bool:
    return client_id.startswith(("https:", "http:"))


@ambient("client-auth-document-id", "client-auth-document-support", "client-auth-pre-registered")
def chooses_the_first_kind_of_client_id(record: Record) -> Iterator[Seen]:
    """A client id that was given comes first, then the URL of a document, then a registration."""
    setup = authorization.setup(record)
    given, documents = setup.get("client_id"), setup.get("documents")
    if documents is None or setup.get("stranger"):  # older recordings lack it
        return
    for n, own in _named(record):
        actual = f"client_id {brief(own, 60)}"
        if given and record.scenario not in KNOWN:
            continue  # it was given for another grant, which the client does not use
        if given:
            expected = "the client_id that the client was given for this issuer"
            yield Seen("client-auth-pre-registered", own == given, n, expected, actual)
        elif documents:
            expected = "the URL of a metadata document"
            yield Seen("client-auth-document-id", _is_url(own), n, expected, actual)
        else:
            expected = "no URL, which the metadata of the issuer does not offer"
            yield Seen("client-auth-document-support", not _is_url(own), n, expected, actual)


@ambient("client-auth-document-url")
def names_a_document_by_a_fit_url(record: Record) -> Iterator[Seen]:
    """A client id that is a URL has https and a path, and nothing that a document may not have."""
    for n, own in _named(record):
        if _is_url(own):
            wrong = _wrong_in(own)
            expected = "https, a path, and no user, fragment or dots as a segment"
            actual = f"{wrong}: {brief(own, 60)}" if wrong else ""
            yield Seen("client-auth-document-url", not wrong, n, expected, actual)


def _wrong_in(url: str) -> str:
    """Return what is wrong in the URL of a metadata document; empty if nothing."""
    with suppress(ValueError):
        found = urlsplit(url)
        wrong = {
            "another scheme": found.scheme != "https",
            "no host": not found.hostname,
            "no path": found.path in {"", "/"},
            "dots as a segment": {".", ".."} & {*found.path.split("/")},
            "a fragment": "#" in url,
            "a user": "@" in found.netloc,
        }
        return next((name for name, is_so in wrong.items() if is_so), "")
    return "no URL"


@ambient(
    "client-auth-registration-offered",
    "client-auth-application-type-fits",
    "client-auth-refresh-grant",
)
def registers_as_what_it_is(record: Record) -> Iterator[Seen]:
    """A client registers where an issuer offers it, and says what it is and what it uses."""
    scopes = " ".join(
        str(f.get("scope", "")) for _, _, f in authorization.facts(record, "authorize")
    )
    renews = [
        facts.get("client_id")
        for _, _, facts in authorization.facts(record, "token")
        if facts.get("grant_type") == "refresh_token"
    ]
    for n, _, facts in authorization.facts(record, "register"):
        offered = facts.get("offered", True)
        expected = "no registration, as the metadata has no registration_endpoint"
        yield Seen("client-auth-registration-offered", offered, n, expected, "a registration")
        kind, fit = facts["application_type"], {*map(_fit, facts.get("redirect_uris", ()))}
        if kind in ("native", "web") and fit and "" not in fit:
            clause, expected = "client-auth-application-type-fits", " or ".join(sorted(fit))
            yield Seen(clause, kind in fit, n, f"{expected}, by its redirect URIs", kind)
        if "refreshes" in facts and (OFFLINE in scopes or facts.get("client_id") in renews):
            expected = "refresh_token among its grant_types"
            yield Seen("client-auth-refresh-grant", facts["refreshes"], n, expected, "not there")


def _fit(uri: object) -> str:
    """Return the type of an application with a redirect URI; empty for one that none may have."""
    with suppress(ValueError):
        found = urlsplit(str(uri))
        host = found.hostname or ""
        if found.scheme not in {"http", "https"} or host == "localhost" or is_loopback(host):
            return "native"
        return "web" if found.scheme == "https" else ""
    return ""


@ambient("client-auth-token-method")
def shows_itself_as_it_was_registered(record: Record) -> Iterator[Seen]:
    """A token request has one kind of credentials, which the issuer has or gave."""
    supported = authorization.setup(record).get("methods", [])
    defaults = authorization.setup(record).get("defaults")
    registered = {
        facts.get("client_id"): facts["method"]
        for _, _, facts in authorization.facts(record, "register")
        if "method" in facts and facts.get("offered")
    }
    for n, _, facts in authorization.facts(record, "token"):
        used = facts.get("methods", [])
        own = registered.get(facts.get("client_id"))
        fit = [own] if own else supported
        if used and not facts.get("issuer") and not defaults:
            several = len(used) > 1
            passed = not several and used[0] in fit
            actual, mild = " and ".join(used), None if several else Breach.WARN
            expected = " or ".join(map(str, fit))
            yield Seen("client-auth-token-method", passed, n, expected, actual, mild=mild)
