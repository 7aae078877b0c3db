"""HTTP servers that break a rule of http/authorization."""

import json
from typing import Any, ClassVar

from mcp_touchstone.http_server.refusals import INVALID_REQUEST, Refusal
from tests.mutants.http_kit import BEARER, TOKEN, Extra, HttpFault
from tests.mutants.kit import LEGACY, MODERN, control, controls, has, mutant, mutants

OLDEST = "2025-03-26"
OLDER = "2025-06-18"
WELL_KNOWN = "/.well-known/oauth-protected-resource"
SERVER = "/.well-known/oauth-authorization-server"
SESSION = "Mcp-Session-Id"

INVALID = (
    "authorization-garbage-401",
    "authorization-unsigned-401",
    "authorization-self-signed-401",
    "authorization-altered-401",
)
DOCUMENT = (
    "authorization-metadata-document",
    "authorization-https",
    "authorization-metadata-servers",
    "authorization-metadata-resource",
)


class Protected(HttpFault, headers_sent={"Authorization": TOKEN}):
    """Our HTTP server, which wants a token."""

    scope: ClassVar[str] = "mcp:use"

    @property
    def origin(self) -> str:
        """The origin of the server."""
        return f"http://{self.header('Host')}"

    def _check(self) -> None:
        super()._check()
        if not self.admits(self.header("Authorization") or ""):
            self.refuse_token()

    def admits(self, authorization: str) -> bool:
        """Whether a request is served with this header."""
        scheme, _, token = authorization.partition(" ")
        return scheme.lower() == "bearer" and token == BEARER.partition(" ")[2]

    def refuse_token(self) -> None:
        """Refuse a request without a valid token."""
        raise Refusal(
            401, INVALID_REQUEST, "a token is needed", **{"WWW-Authenticate": self.challenge()}
        )

    def challenge(self) -> str:
        """Return the challenge."""
        return f'Bearer resource_metadata="{self.origin}{WELL_KNOWN}/mcp", scope="{self.scope}"'

    def document(self) -> Any:
        """Return the metadata of the resource; None for none."""
        return {
            "resource": f"{self.origin}/mcp",
            "authorization_servers": [self.origin],
            "scopes_supported": [self.scope],
        }

    def issuer_document(self) -> Any:
        """Return the metadata of the authorization server; None for none."""
        return {"issuer": self.origin, "registration_endpoint": f"{self.origin}/register"}

    def do_GET(self) -> None:  # noqa: N802  (the name in the base class)
        if self.path.startswith("/.well-known/"):
            documents = {f"{WELL_KNOWN}/mcp": self.document(), SERVER: self.issuer_document()}
            known = documents.get(self.path)
            self.answer(404 if known is None else 200, json.dumps(known or {}).encode())
            return
        super().do_GET()


controls(
    "authorization-missing-401",
    "authorization-each-request",
    "authorization-www-authenticate",
    *INVALID,
    "authorization-token-in-query",
    "authorization-other-paths",
    "authorization-scheme-case",
    "authorization-server-found",
    "authorization-metadata-found",
    *DOCUMENT,
    "authorization-scope",
    of=Protected,
)(ProtectsSessions="Keeps every rule on authorization in sessions.")
controls("authorization-challenge", of=Protected, revision=OLDER)(
    ProtectsOlderSessions="Keeps every rule on authorization in sessions of 2025-06-18."
)
controls(
    "authorization-server-metadata",
    "authorization-www-authenticate",
    "authorization-registration",
    "authorization-endpoints-https",
    of=Protected,
    revision=OLDEST,
)(ProtectsOldestSessions="Keeps every rule on authorization in sessions of 2025-03-26.")
controls(
    "authorization-missing-401",
    "authorization-each-request",
    "authorization-www-authenticate",
    *INVALID,
    "authorization-metadata-found",
    *DOCUMENT,
    "authorization-scope",
    "authorization-no-offline-access",
    of=Protected,
    revision=MODERN,
)(ProtectsRequests="Keeps every rule on authorization without sessions.")


class GuardsOnePath(Protected):
    """Serves another spelling of its path to everybody."""

    free: ClassVar[tuple[str, ...]] = ("/mcp/", "//mcp")

    def _check(self) -> None:
        if self.path in self.free:
            self.path = "/mcp"
            HttpFault._check(self)
        else:
            super()._check()


mutants("authorization-other-paths", of=GuardsOnePath)(
    GuardsNoSlashes="Serves /mcp/ and //mcp to everybody.",
    GuardsOneCase=has("Serves /MCP to everybody.", MODERN, free=("/MCP",)),
    GuardsNothingBelow=has(
        "Serves each path below /mcp to everybody.", free=("/mcp/touchstone", "/mcp//")
    ),
    GuardsBeforeItClimbs=has(
        "Serves a path with two dots to everybody.", MODERN, free=("/touchstone/../mcp",)
    ),
)
mutants("authorization-scheme-case", of=Protected)(
    WantsOneSpellingOfBearer=has(
        "Accepts Bearer only with a capital letter.",
        admits=lambda self, authorization: authorization == BEARER,
    )
)
mutants("authorization-server-found", of=Protected)(
    NamesADeadServer=has(
        "Names an authorization server that has no metadata.",
        document=lambda self: {
            **Protected.document(self),
            "authorization_servers": [f"{self.origin}/nowhere"],
        },
    ),
    NamesAServerThatIsOff=has(
        "Names an authorization server whose port is closed.",
        MODERN,
        document=lambda self: {
            **Protected.document(self),
            "authorization_servers": ["http://127.0.0.1:1"],
        },
    ),
)
mutants("authorization-server-found", of=Protected, revision=OLDER)(
    NamesAServerWithoutAnIssuer=has(
        "Names an authorization server that answers each path with an object.",
        issuer_document=lambda _: {"error": "not found"},
    )
)


@mutant("authorization-missing-401", revision=OLDER)
class WantsATokenWith403(Protected):
    """Answers a first request without a token by 403."""

    def refuse_token(self) -> None:
        if self.header("Authorization") is None and self.header(SESSION) is None:
            raise Refusal(403, INVALID_REQUEST, "a token is needed")
        super().refuse_token()


@control("authorization-missing-401", revision=LEGACY)
class LimitsGuesses(Protected):
    """Refuses each wrong token as one guess too many."""

    def refuse_token(self) -> None:
        if self.header("Authorization") is not None:
            raise Refusal(429, INVALID_REQUEST, "too many guesses", **{"Retry-After": "1"})
        super().refuse_token()


@mutant("authorization-each-request", revision=LEGACY)
class TrustsSessionIds(Protected):
    """Serves a request of a session without a token."""

    def admits(self, authorization: str) -> bool:
        return super().admits(authorization) or (not authorization and bool(self.header(SESSION)))


class AdmitsAPlace(Protected):
    """Serves some requests without a valid token."""

    def admits(self, authorization: str) -> bool:
        return super().admits(authorization) or (bool(self.header(SESSION)) and self.is_open())

    def is_open(self) -> bool:
        """Whether this request needs no token."""
        raise NotImplementedError

    @property
    def posted(self) -> bytes:
        """The body of a POST; empty for another method."""
        return self.rfile.peek(1) if self.command == "POST" else b""  # type: ignore[attr-defined]


mutants("authorization-each-request", of=AdmitsAPlace)(
    OpensStreamsForAll=has(
        "Opens the stream of a GET without a token.", is_open=lambda self: self.command == "GET"
    ),
    EndsSessionsForAll=has(
        "Ends a session without a token.", OLDER, is_open=lambda self: self.command == "DELETE"
    ),
    TakesNotificationsOfAll=has(
        "Accepts a notification without a token.",
        is_open=lambda self: bool(self.posted) and b'"id"' not in self.posted,
    ),
    CallsToolsForAll=has(
        "Calls a tool without a token.", OLDEST, is_open=lambda self: b'"tools/call"' in self.posted
    ),
    AdmitsGarbageInSessions=has(
        "Serves each request of a session with any token.",
        is_open=lambda self: self.header("Authorization") is not None,
    ),
)


class ProtectsCalls(AdmitsAPlace):
    """Our HTTP server, which lists for all and wants a token for the call of a tool."""

    def admits(self, authorization: str) -> bool:
        return Protected.admits(self, authorization) or self.is_open()

    def is_open(self) -> bool:
        return b'"tools/call"' not in self.posted


LAZY = ("authorization-missing-401", *INVALID, "authorization-scope")
controls(*LAZY, of=ProtectsCalls)(ProtectsCallsInSessions="Wants a token for calls, in sessions.")
controls(*LAZY, of=ProtectsCalls, revision=MODERN)(
    ProtectsCallsOfRequests="Wants a token for calls, without sessions."
)


@control("jsonrpc-request-answered", "tools-list-result-shape", revision=LEGACY)
class ServesGuests(ProtectsCalls, headers_sent={}):
    """Lists for all, and refuses the calls of our run, which has no token."""


@mutant("authorization-missing-401", revision=LEGACY)
class WantsATokenForCallsWith403(ProtectsCalls):
    """Lists for all, and answers a call without a token by 403."""

    def refuse_token(self) -> None:
        if self.header("Authorization") is None:
            raise Refusal(403, INVALID_REQUEST, "a token is needed")
        super().refuse_token()


@mutant("authorization-garbage-401", revision=MODERN)
class CallsToolsWithGarbage(ProtectsCalls):
    """Lists for all, and calls a tool with any token that is no JWT."""

    def is_open(self) -> bool:
        said = self.header("Authorization") or "."
        return super().is_open() or "." not in said


@mutant("authorization-each-request", revision=MODERN)
class ListsForAll(Protected):
    """Serves a list of 2026-07-28 without a token."""

    def admits(self, authorization: str) -> bool:
        listed = (self.header("Mcp-Method") or "").endswith("/list")
        return super().admits(authorization) or listed


@mutant("authorization-each-request", revision=LEGACY)
class TakesNotificationsOutsideSessions(Protected):
    """Accepts a notification without a session and without a token."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        taken = status == 401 and self.header(SESSION) is None and self.command == "POST"
        if taken and b'"id"' not in self.rfile.peek(1):  # type: ignore[attr-defined]
            return 202, b"", extra
        return status, body, extra


class ChallengesSome(Protected):
    """Sends some 401 without a challenge."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        if status == 401 and self.is_bare():
            del extra["WWW-Authenticate"]
        return status, body, extra

    def is_bare(self) -> bool:
        """Whether this 401 has no challenge."""
        return True


mutants("authorization-www-authenticate", of=ChallengesSome, revision=OLDEST)(
    ChallengesNobody="Sends each 401 without a challenge.",
    ChallengesWithoutATokenOnly=has(
        "Sends the 401 for an invalid token without a challenge.",
        LEGACY,
        is_bare=lambda self: self.header("Authorization") is not None,
    ),
)
mutants("authorization-challenge", of=ChallengesSome, revision=OLDER)(
    ChallengesOutsideSessionsOnly=has(
        "Sends the 401 of a session without a challenge.",
        is_bare=lambda self: self.header(SESSION) is not None,
    )
)
mutants("authorization-www-authenticate", of=Protected, revision=MODERN)(
    ChallengesWithBasic=has(
        "Sends each 401 with a challenge of the scheme Basic.",
        challenge=lambda self: Protected.challenge(self).replace("Bearer", "Basic"),
    )
)


@mutant("authorization-garbage-401", revision=LEGACY)
class AdmitsGarbage(Protected):
    """Serves each request with a token that is no JWT."""

    def admits(self, authorization: str) -> bool:
        return super().admits(authorization) or (bool(authorization) and "." not in authorization)


@mutant("authorization-garbage-401", revision=MODERN)
class RefusesGarbageWith403(Protected):
    """Answers a token that is no JWT by 403."""

    def refuse_token(self) -> None:
        said = self.header("Authorization")
        if said is not None and "." not in said:
            raise Refusal(403, INVALID_REQUEST, "no such token")
        super().refuse_token()


def _algorithm(authorization: str) -> str:
    """Return the algorithm of the tokens of this file and of our scenarios."""
    if "." not in authorization:
        return ""
    return "none" if authorization.endswith(".") else "signed"


@mutant("authorization-unsigned-401", revision=LEGACY)
class AdmitsUnsignedTokens(Protected):
    """Serves each request with a JWT without a signature."""

    def admits(self, authorization: str) -> bool:
        return super().admits(authorization) or _algorithm(authorization) == "none"


@mutant("authorization-self-signed-401", revision=LEGACY)
class AdmitsStrangersSignatures(Protected):
    """Serves each request with a JWT that has another signature than its own."""

    def admits(self, authorization: str) -> bool:
        own = BEARER.rpartition(".")[2]
        stranger = _algorithm(authorization) == "signed" and not authorization.endswith(own)
        return super().admits(authorization) or stranger


mutants("authorization-altered-401", of=Protected, revision=LEGACY)(
    AdmitsAlteredTokens=has(
        "Compares the signature of a JWT only.",
        admits=lambda self, authorization: (
            authorization.rpartition(".")[2] == BEARER.rpartition(".")[2]
        ),
    )
)


@mutant("authorization-token-in-query", revision=LEGACY)
class AdmitsTokensInTheQuery(Protected):
    """Takes a token from the query of the URL."""

    def admits(self, authorization: str) -> bool:
        said = self.path.partition("access_token=")[2]
        return super().admits(authorization) or f"Bearer {said}" == BEARER


mutants("authorization-challenge", of=Protected, revision=OLDER)(
    NamesNoMetadata=has(
        "Names no metadata in its challenge.", challenge=lambda self: f'Bearer scope="{self.scope}"'
    )
)
mutants("authorization-metadata-found", of=Protected)(
    HasNoMetadata=has(
        "Has no metadata of the resource.",
        challenge=lambda self: f'Bearer scope="{self.scope}"',
        document=lambda *_: None,
    )
)
mutants("authorization-metadata-document", of=Protected)(
    NamesNoResource=has(
        "Has metadata without the resource.",
        document=lambda self: {"authorization_servers": [self.origin]},
    )
)
mutants("authorization-metadata-servers", of=Protected, revision=MODERN)(
    NamesNoAuthorizationServer=has(
        "Has metadata with an empty list of authorization servers.",
        document=lambda self: {**Protected.document(self), "authorization_servers": []},
    )
)
mutants("authorization-metadata-resource", of=Protected, revision=LEGACY)(
    NamesAnotherResource=has(
        "Has the metadata of another resource.",
        document=lambda self: {
            **Protected.document(self),
            "resource": "https://elsewhere.example/mcp",
        },
    )
)


@mutant("authorization-metadata-document", outcome="warn", revision=LEGACY)
class SendsItsMetadataAsText(Protected):
    """Sends its metadata as text/plain."""

    def send_header(self, keyword: str, value: str) -> None:
        is_type = keyword == "Content-Type" and WELL_KNOWN in self.path
        super().send_header(keyword, "text/plain" if is_type else value)


@mutant("authorization-https", revision=LEGACY)
class NamesAPlainAuthorizationServer(Protected):
    """Has metadata with the http URL of another machine."""

    def document(self) -> Any:
        return {**super().document(), "authorization_servers": ["http://login.example.org"]}


mutants("authorization-scope", of=Protected)(
    NamesNoScope=has(
        "Names no scope in its challenge.",
        challenge=lambda self: f'Bearer resource_metadata="{self.origin}{WELL_KNOWN}/mcp"',
    )
)
mutants("authorization-no-offline-access", of=Protected, revision=MODERN)(
    WantsOfflineAccess=has(
        "Asks for offline_access.",
        scope="mcp:use offline_access",
        document=lambda self: {**Protected.document(self), "scopes_supported": self.scope.split()},
    )
)
mutants("authorization-server-metadata", of=Protected, revision=OLDEST)(
    HidesItsAuthorizationServer=has(
        "Has no metadata of its authorization server.", issuer_document=lambda *_: None
    )
)
mutants("authorization-registration", of=Protected, revision=OLDEST)(
    RegistersNobody=has(
        "Has metadata without registration.", issuer_document=lambda self: {"issuer": self.origin}
    )
)
mutants("authorization-endpoints-https", of=Protected, revision=OLDEST)(
    NamesAPlainEndpoint=has(
        "Has metadata with the http URL of another machine.",
        issuer_document=lambda self: {
            **Protected.issuer_document(self),
            "token_endpoint": "http://login.example.org/token",
        },
    )
)


class IsAProxy(Protected):
    """Registers clients, and forwards them to another authorization server."""

    registered: ClassVar[list[str]] = []
    consent: ClassVar[bool] = False
    static: ClassVar[bool] = True

    def issuer_document(self) -> Any:
        own = {"authorization_endpoint": f"{self.origin}/authorize"}
        return {**super().issuer_document(), **own}

    def do_POST(self) -> None:  # noqa: N802  (the name in the base class)
        if self.path != "/register":
            super().do_POST()
            return
        self._body()
        self.registered.append(f"client-{len(self.registered)}")
        self.answer(201, json.dumps({"client_id": self.registered[-1]}).encode())

    def do_GET(self) -> None:  # noqa: N802  (the name in the base class)
        if not self.path.startswith("/authorize?"):
            super().do_GET()
            return
        upstream = "static" if self.static else self.registered[-1]
        there = self.origin if self.consent else "https://login.example.org"
        self.answer(302, b"", {"Location": f"{there}/consent?client_id={upstream}"})


mutants("authorization-proxy-consent", of=IsAProxy, revision=LEGACY)(
    ForwardsWithoutConsent="Forwards each client under one id, without consent."
)
mutants("authorization-proxy-consent", of=IsAProxy, revision=MODERN)(
    ForwardsRequestsWithoutConsent="Forwards all clients under one id."
)
controls("authorization-proxy-consent", of=IsAProxy, revision=LEGACY)(
    AsksForConsent=has("Asks for consent before it forwards a client.", consent=True),
    ForwardsUnderAnIdOfEach=has("Forwards each client under an id of its own.", static=False),
)


class DefaultPaths(Protected):
    """Our HTTP server, with the default paths of 2025-03-26 in place of metadata."""

    missing: ClassVar[str] = "/nowhere"

    def challenge(self) -> str:
        return "Bearer"

    def document(self) -> Any:
        return None

    def issuer_document(self) -> Any:
        return None

    def do_GET(self) -> None:  # noqa: N802  (the name in the base class)
        if self.path in {"/authorize", "/token", "/register"}:
            self.answer(404 if self.path == self.missing else 400)
            return
        super().do_GET()


mutants(
    "authorization-server-metadata",
    of=DefaultPaths,
    revision=OLDEST,
    passes=("authorization-default-paths",),
)(HasDefaultPathsOnly="Has no metadata, and the default paths.")
mutants(
    "authorization-server-metadata", "authorization-default-paths", of=DefaultPaths, revision=OLDEST
)(LacksADefaultPath=has("Has no metadata, and no /token.", missing="/token"))
mutants(
    "authorization-server-metadata", "authorization-registration", of=DefaultPaths, revision=OLDEST
)(LacksTheDefaultRegistration=has("Has no metadata, and no /register.", missing="/register"))


@mutant("authorization-garbage-401", revision=LEGACY)
class FailsWithoutAToken(Protected):
    """Answers a header Authorization without a token by 500."""

    def refuse_token(self) -> None:
        if self.header("Authorization") == "Bearer":
            raise Refusal(500, INVALID_REQUEST, "list index out of range")
        super().refuse_token()
