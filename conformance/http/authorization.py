"""http/authorization: requests without a valid token, and the metadata of the resource."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from mcp_touchstone.suite import (
    UNANSWERED,
    Breach,
    Change,
    Conversation,
    HttpAnswer,
    Record,
    Seen,
    ambient,
    attempt,
    challenged,
    guarded,
    harmless_requests,
    is_loopback,
    list_in,
    loads,
    object_in,
    scenario,
    value_in,
)

SESSION = "Mcp-Session-Id"
UNAUTHORIZED = 401
FORBIDDEN = 403
BAD_REQUEST = 400
NOT_FOUND = 404
NOT_ALLOWED = 405
OK = 200
SUCCESS = range(200, 300)
FEW = 3
"""Greatest number of authorization servers that are asked."""

OFFLINE = "offline_access"
AUTHORIZATION_SERVER = "/.well-known/oauth-authorization-server"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
"""The code challenge of RFC 7636, appendix B."""
FAR = 4_102_444_800
"""A time in the year 2100, as in the claims of a JWT."""
PAST = 946_684_800
"""A time in the year 2000."""

GARBAGE = "touchstone-garbage-5f0c1d7e9b"
CLAIMS = {"iss": "https://touchstone.invalid", "sub": "touchstone", "exp": FAR, "iat": PAST}


def encoded(data: bytes) -> str:
    """Return Base64 for URLs, as in a JWT."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def web_token(header: dict[str, Any], claims: dict[str, Any]) -> str:
    """Return a JWT; one of HS256 is signed with a key of ours."""
    parts = [encoded(json.dumps(one).encode()) for one in (header, claims)]
    signature = b""
    if header["alg"] != "none":
        signature = hmac.new(b"touchstone", ".".join(parts).encode(), hashlib.sha256).digest()
    return ".".join([*parts, encoded(signature)])


def altered(token: str) -> str | None:
    """Return a JWT with another time of expiry and its old signature; None if it is no JWT."""
    parts = token.split(".")
    try:
        raw = base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))
        claims = loads(raw)
    except (IndexError, ValueError):
        return None
    if len(parts) != 3 or not isinstance(claims, dict):
        return None
    changed = encoded(json.dumps({**claims, "exp": PAST}).encode())
    return ".".join([parts[0], changed, parts[2]])


@scenario("authorization-missing-401")
def wants_a_token_with_401(talk: Conversation) -> None:
    """A request without a token is answered by 401."""
    answer = challenged(talk, "authorization-missing-401")
    if answer is not None:
        talk.judge.expect(
            answer, "authorization-missing-401", answer.status == UNAUTHORIZED, "401 Unauthorized"
        )


@scenario("authorization-each-request")
def wants_a_token_with_each_request(talk: Conversation) -> None:
    """Each request without a token, or with garbage for one, is answered by 401."""
    clause = "authorization-each-request"
    if challenged(talk, clause) is None:
        return
    if request := guarded(talk):
        talk.judge.unseen(clause, f"it guards some requests only: {request['method']}")
        return
    tokens = {"no token": None, "an invalid token": f"Bearer {GARBAGE}"}
    if attempt(talk, tokens["an invalid token"]).status != UNAUTHORIZED:
        del tokens["an invalid token"]  # authorization-garbage-401 counts it
    for flaw, what in FLAWED.items():
        own = talk.http.flawed(flaw)
        if own and attempt(talk, f"Bearer {own}").status == UNAUTHORIZED:
            tokens[what] = (
                f"Bearer {own}"  # otherwise authorization-expired-401 and others count it
            )
    for what, token in tokens.items():
        for where, answer in places(talk, {"Authorization": token}):
            light = token is not None and answer.status == BAD_REQUEST
            talk.judge.expect(
                answer,
                clause,
                answer.status == UNAUTHORIZED,
                f"401 Unauthorized for {where} with {what}",
                mild=Breach.WARN if light else None,
                because="400 is for malformed requests",
            )
    if talk.http.session_id is not None:
        for where, answer in places(talk, {"Authorization": None, SESSION: None}):
            talk.judge.expect(
                answer,
                clause,
                answer.status not in SUCCESS,
                f"a refusal of {where} before a session and without a token",
            )


def places(talk: Conversation, change: dict[str, Change]) -> Iterator[tuple[str, HttpAnswer]]:
    """Send each kind of request with other headers; yield what it is."""
    messages = harmless_requests(talk)
    if not talk.modern:
        messages += UNANSWERED.values()
    for message in messages:
        yield str(message.get("method", "a response")), talk.http.post(message, change)
    if talk.modern:
        return
    opening = talk.http.first_request()
    own = {SESSION: opening.header(SESSION), **change}
    stream, ended = talk.http.get(own), talk.http.delete(own)
    stream.close()
    if stream.status != NOT_ALLOWED:
        yield "a GET", stream
    if talk.http.end_session(opening) or ended.status in SUCCESS:
        yield "a DELETE", ended


FLAWED = {
    "expired": "a token that has expired",
    "other-audience": "a token for another server",
    "unknown-key": "a token that a stranger signed",
}
"""Flaw of a token of our issuer -> what it is called."""

INVALID = (
    "authorization-garbage-401",
    "authorization-unsigned-401",
    "authorization-self-signed-401",
    "authorization-altered-401",
)


MALFORMED = ("Bearer", GARBAGE, f"Basic {encoded(b'touchstone:touchstone')}")
"""Authorization headers without a Bearer token."""


def invalid_tokens(talk: Conversation) -> Iterator[tuple[str, str | None]]:
    """Yield each clause on invalid tokens, and its token; None if there can be none."""
    own = (talk.http.credentials() or "").rpartition(" ")[2]
    tokens = (
        GARBAGE,
        web_token({"alg": "none", "typ": "JWT"}, CLAIMS),
        web_token({"alg": "HS256", "typ": "JWT"}, CLAIMS),
        altered(own),
    )
    return iter(zip(INVALID, tokens, strict=True))


@scenario(*INVALID)
def refuses_invalid_tokens_with_401(talk: Conversation) -> None:
    """Invalid tokens are answered by 401."""
    if challenged(talk, *INVALID) is None:
        return
    for clause, token in invalid_tokens(talk):
        if not talk.judge.covers(clause):
            continue
        if token is None:
            talk.judge.unseen(clause, "the token of the user is no JWT")
            continue
        answer = attempt(talk, f"Bearer {token}")
        talk.judge.expect(
            answer,
            clause,
            answer.status == UNAUTHORIZED,
            "401 Unauthorized for an invalid token",
            mild=Breach.WARN if answer.status == BAD_REQUEST else None,
            because="400 is for malformed requests",
        )
    for header in MALFORMED if talk.judge.covers(INVALID[0]) else ():
        answer = attempt(talk, header)
        talk.judge.expect(
            answer,
            INVALID[0],
            answer.status in {UNAUTHORIZED, BAD_REQUEST},
            f"400 or 401 for the header Authorization: {header}",
        )


@scenario("authorization-other-paths", "authorization-scheme-case")
def guards_its_path_in_each_spelling(talk: Conversation) -> None:
    """Other spellings of the path need a token too, and bearer may be written in any case."""
    paths, scheme = "authorization-other-paths", "authorization-scheme-case"
    if challenged(talk, paths, scheme) is None:
        return
    for path in spellings(talk.http.path):
        answer = attempt(talk, None, path)
        talk.judge.expect(
            answer, paths, answer.reply.result is None, f"no service without a token at {path}"
        )
    own = talk.http.credentials() or ""
    name, _, token = own.partition(" ")
    if name.lower() != "bearer":
        talk.judge.unseen(scheme, "the header of the user is no Bearer token")
        return
    for spelt in ("bearer", "BEARER"):
        answer = attempt(talk, f"{spelt} {token}")
        talk.judge.expect(
            answer,
            scheme,
            answer.status not in {UNAUTHORIZED, FORBIDDEN, BAD_REQUEST},
            f"service for the header Authorization: {spelt} …, as for {name}",
        )


def spellings(target: str) -> list[str]:
    """Return other spellings of the path of a target, which a server may take for the same."""
    path, mark, query = target.partition("?")
    bare = path.rstrip("/")
    found = [f"{bare}/", bare, f"/{path}", f"/.{path}", f"{bare}/.", f"{path};touchstone"]
    found += [path.swapcase(), f"{path}%20", f"{path}?touchstone=1"]
    found += [f"/touchstone/..{path}", f"{bare}//", f"{bare}/touchstone"]
    if bare:
        found.append(f"{bare[:-1]}%{ord(bare[-1]):02x}")
    own = dict.fromkeys(one for one in found if one.startswith("/") and one != path)
    return [one if "?" in one else f"{one}{mark}{query}" for one in own]


@scenario("authorization-token-in-query")
def ignores_a_token_in_the_query(talk: Conversation) -> None:
    """A token in the query of the URL is not accepted."""
    if challenged(talk, "authorization-token-in-query") is None:
        return
    token = (talk.http.credentials() or "").rpartition(" ")[2]
    mark = "&" if "?" in talk.http.path else "?"
    answer = attempt(talk, None, f"{talk.http.path}{mark}access_token={token}")
    talk.judge.expect(
        answer,
        "authorization-token-in-query",
        answer.reply.result is None,
        "no service for a token in the query",
    )


# --- the challenge and the metadata


def documents(talk: Conversation, answer: HttpAnswer) -> Iterator[str]:
    """Yield the paths at which the metadata can be; none if they are on another host."""
    named = answer.exchange.challenge.get("resource_metadata")
    own = urlsplit(f"//{talk.http.authority}")
    if named is not None:
        parts = urlsplit(named)
        if parts.netloc in {"", own.netloc}:
            yield parts.path + (f"?{parts.query}" if parts.query else "")
        return
    path = urlsplit(talk.http.path).path
    if path != "/":
        yield f"/.well-known/oauth-protected-resource{path}"
    yield "/.well-known/oauth-protected-resource"


BARE: dict[str, Change] = {
    "Authorization": None,
    SESSION: None,
    "MCP-Protocol-Version": None,
    "Accept": "application/json",
}
"""The changes of a request for a document: it has no token."""


def fetch(talk: Conversation, path: str) -> HttpAnswer:
    """GET a document without a token."""
    return talk.http.get(BARE, path=path)


def read(answer: HttpAnswer) -> Any:
    """Return the JSON value of a document; None if it has none."""
    try:
        return loads(answer.exchange.body)
    except ValueError:
        return None


@ambient("authorization-challenge", "authorization-www-authenticate")
def challenges_with_each_401(record: Record) -> Iterator[Seen]:
    """Each 401 of a server that takes the user's token has a challenge."""
    exchanges = record.transcript.exchanges
    if not any(one.said("Authorization") and one.status in SUCCESS for one in exchanges):
        return
    for exchange in exchanges:
        if exchange.status != UNAUTHORIZED:
            continue
        said = exchange.header("WWW-Authenticate") or ""
        for clause, passed, expected in (
            (
                "authorization-challenge",
                "resource_metadata" in exchange.challenge,
                "resource_metadata",
            ),
            ("authorization-www-authenticate", "bearer" in said.lower(), "the scheme Bearer"),
        ):
            yield Seen(
                clause,
                passed,
                exchange.line or exchange.event_line or None,
                f"WWW-Authenticate with {expected} in each 401",
                said or "no WWW-Authenticate",
            )


@scenario("authorization-challenge", "authorization-scope")
def says_what_to_ask_for(talk: Conversation) -> None:
    """The challenge of a 401 names the metadata and the scope."""
    clauses = ("authorization-challenge", "authorization-scope")
    answer = challenged(talk, *clauses)
    if answer is None:
        return
    found = answer.exchange.challenge
    if answer.status != UNAUTHORIZED:
        talk.judge.unseen(clauses, f"there is no 401: {answer}")
        return
    talk.judge(
        "authorization-challenge",
        "resource_metadata" in found,
        expected="WWW-Authenticate with resource_metadata",
        actual=answer.header("WWW-Authenticate") or "no WWW-Authenticate",
        at=answer.line,
    )
    said = answer.header("WWW-Authenticate") or ""
    if "bearer" not in said.lower():
        talk.judge.unseen("authorization-scope", "there is no Bearer challenge")
        return
    talk.judge(
        "authorization-scope",
        "scope" in found,
        expected="WWW-Authenticate with scope",
        actual=said,
        at=answer.line,
    )


METADATA = (
    "authorization-metadata-found",
    "authorization-metadata-document",
    "authorization-metadata-servers",
    "authorization-https",
    "authorization-metadata-resource",
    "authorization-no-offline-access",
    "authorization-server-found",
)


@scenario(*METADATA)
def publishes_its_metadata(talk: Conversation) -> None:
    """The metadata of the resource are found, and name their authorization servers."""
    refusal = challenged(talk, *METADATA)
    if refusal is None:
        return
    elsewhere = True
    found: HttpAnswer | None = None
    for path in documents(talk, refusal):
        elsewhere = False
        found = fetch(talk, path)
        if found.status == OK:
            break
    missing = not elsewhere and (found is None or found.status != OK)
    talk.judge(
        "authorization-metadata-found",
        not missing,
        expected="the metadata of the resource",
        actual=found or "no document",
        at=refusal.line if found is None else found.line,
    )
    if elsewhere or missing or found is None:
        why = "the document is on another host" if elsewhere else "there is no document"
        talk.judge.unseen(METADATA[1:], why)
        return
    _judge_document(talk, refusal, found)


def _judge_document(talk: Conversation, refusal: HttpAnswer, found: HttpAnswer) -> None:
    document = read(found)
    members = document if isinstance(document, dict) else {}
    resource = members.get("resource")
    whole = isinstance(document, dict) and isinstance(resource, str)
    typed = found.exchange.kind == "application/json"
    talk.judge(
        "authorization-metadata-document",
        whole and typed,
        expected="a JSON object with a text under resource, as application/json",
        actual=f"{found}; resource {resource!r}" if isinstance(document, dict) else found,
        at=found.line,
        mild=Breach.WARN if whole else None,
        because="clients read it whatever its type",
    )
    urls = list_in(members, "authorization_servers")
    talk.judge(
        "authorization-metadata-servers",
        bool(urls) and all(isinstance(one, str) and urlsplit(one).scheme for one in urls),
        expected="at least one URL in authorization_servers",
        actual=f"authorization_servers {members.get('authorization_servers')!r}",
        at=found.line,
    )
    plain = [one for one in urls if isinstance(one, str) and _is_plain(one)]
    talk.judge(
        "authorization-https",
        not plain,
        expected="https, except for loopback",
        actual=f"authorization_servers {plain!r}",
        at=found.line,
    )
    _judge_servers(talk, found, [one for one in urls if isinstance(one, str)][:FEW])
    if whole:
        talk.judge(
            "authorization-metadata-resource",
            _is_own(talk, str(resource)),
            expected="the URL of the server, or a part of it",
            actual=f"resource {resource}",
            at=found.line,
        )
    else:
        talk.judge.unseen("authorization-metadata-resource", "there is no resource")
    if talk.judge.covers("authorization-no-offline-access"):
        scopes = refusal.exchange.challenge.get("scope", "").split()
        scopes += list_in(members, "scopes_supported")
        talk.judge(
            "authorization-no-offline-access",
            OFFLINE not in scopes,
            expected=f"no {OFFLINE}",
            actual=f"the scopes {', '.join(map(str, scopes))}",
            at=found.line,
        )


def _judge_servers(talk: Conversation, found: HttpAnswer, urls: list[str]) -> None:
    """Judge whether one of the authorization servers of a document has metadata."""
    clause = "authorization-server-found"
    if not talk.judge.covers(clause):
        return
    known = [talk.http.has_metadata(one) for one in urls]
    if None in known or not known:
        talk.judge.unseen(clause, "the authorization servers cannot be asked from here")
        return
    talk.judge(
        clause,
        any(known),
        expected="an authorization server with metadata at a well-known URI",
        actual=f"none at {', '.join(urls)}",
        at=found.line,
    )


def _is_plain(url: str) -> bool:
    """Whether a URL is of http and not of loopback."""
    parts = urlsplit(url)
    return parts.scheme == "http" and not is_loopback(parts.hostname or "")


def _is_own(talk: Conversation, resource: str) -> bool:
    """Whether a resource is the URL of the server or a parent of it."""
    parts = urlsplit(resource)
    path = urlsplit(talk.http.path).path.rstrip("/")
    said = parts.path.rstrip("/")
    same_host = parts.netloc.lower() == talk.http.authority.lower()
    return same_host and (path == said or path.startswith(f"{said}/"))


OLDEST = (
    "authorization-server-metadata",
    "authorization-default-paths",
    "authorization-registration",
    "authorization-endpoints-https",
)


@scenario(*OLDEST)
def publishes_the_metadata_of_its_authorization_server(talk: Conversation) -> None:
    """The authorization server has metadata at the well-known path, or the default paths."""
    published, paths, registration, secure = OLDEST
    refusal = challenged(talk, *OLDEST)
    if refusal is None:
        return
    found = fetch(talk, AUTHORIZATION_SERVER)
    document = read(found) if found.status in SUCCESS else None
    talk.judge.expect(found, published, isinstance(document, dict), "a JSON object")
    if isinstance(document, dict):
        talk.judge.unseen(paths, "there are metadata, which name other paths")
        endpoints = {k: v for k, v in document.items() if k.endswith("_endpoint")}
        talk.judge(
            registration,
            isinstance(endpoints.get("registration_endpoint"), str),
            expected="registration_endpoint in the metadata",
            actual=f"the endpoints {', '.join(endpoints) or 'none'}",
            at=found.line,
        )
        plain = [one for one in endpoints.values() if isinstance(one, str) and _is_plain(one)]
        talk.judge(
            secure,
            not plain,
            expected="https, except for loopback",
            actual=f"endpoints {plain!r}",
            at=found.line,
        )
        return
    talk.judge.unseen(secure, "there are no metadata of the authorization server")
    named = [*documents(talk, refusal)]
    if not named or any(fetch(talk, path).status == OK for path in named):
        talk.judge.unseen(
            (paths, registration), "the metadata of the resource name an authorization server"
        )
        return
    for path, clause in (("/authorize", paths), ("/token", paths), ("/register", registration)):
        answer = fetch(talk, path)
        talk.judge.expect(
            answer,
            clause,
            answer.status != NOT_FOUND,
            f"the default path {path}, as there are no metadata",
        )


# --- a server that is a proxy of another authorization server

REDIRECTS = range(300, 400)
BACK = "http://localhost:33418/callback"
"""The redirect URI of our clients; nobody asks for it."""


@scenario("authorization-proxy-consent")
def asks_for_consent_before_it_forwards(talk: Conversation) -> None:
    """A client of the proxy is not forwarded under its static client id without consent."""
    clause = "authorization-proxy-consent"
    if challenged(talk, clause) is None:
        return
    document = object_in(read(fetch(talk, AUTHORIZATION_SERVER)))
    register, authorize = (
        _own_path(talk, document.get(f"{name}_endpoint"))
        for name in ("registration", "authorization")
    )
    if not register or not authorize or not talk.http.local:
        why = "the server is no authorization server that registers clients"
        talk.judge.unseen(clause, why if talk.http.local else "it is on another machine")
        return
    known: list[str] = []
    forwarded: list[HttpAnswer] = []
    for number in range(2):
        about = {"client_name": f"touchstone {number}", "redirect_uris": [BACK]}
        body = json.dumps({**about, "token_endpoint_auth_method": "none"}).encode()
        change: dict[str, Change] = {**BARE, "Content-Type": "application/json"}
        registered = talk.http.send("POST", change, body=body, path=register)
        client = value_in(read(registered), "client_id")
        if not isinstance(client, str):
            talk.judge.unseen(clause, "the server registers no client")
            return
        known.append(client)
        query = {"response_type": "code", "client_id": client, "redirect_uri": BACK}
        query |= {"code_challenge": CHALLENGE, "code_challenge_method": "S256", "state": "s"}
        forwarded.append(fetch(talk, f"{authorize}?{urlencode(query)}"))
    targets = [urlsplit(one.header("Location") or "") for one in forwarded]
    upstream = [parse_qs(one.query).get("client_id", [""])[0] for one in targets]
    strange = all(one.netloc not in {"", talk.http.authority} for one in targets)
    redirected = all(one.status in REDIRECTS for one in forwarded)
    static = bool(upstream[0]) and upstream[0] == upstream[1] and upstream[0] not in known
    talk.judge(
        clause,
        not (redirected and strange and static),
        expected="consent of the user before a client is forwarded",
        actual=f"two new clients are forwarded to {targets[0].netloc} as {upstream[0]}",
        at=forwarded[0].line,
        also=(forwarded[1].line,),
    )


def _own_path(talk: Conversation, url: Any) -> str:
    """Return the path of a URL of the server; empty for another value."""
    parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
    return parts.path if parts.netloc.lower() == talk.http.authority.lower() else ""
