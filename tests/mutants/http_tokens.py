"""HTTP servers that leave out a check of an access token. The issuer is that of the run."""

import base64
import json
from typing import Any, ClassVar

from mcp_touchstone.http_server.refusals import INVALID_REQUEST, Refusal
from tests.mutants.http_authorization import Protected
from tests.mutants.http_kit import Extra
from tests.mutants.kit import LEGACY, MODERN, control, has, mutant, mutants

Json = dict[str, Any]

ENV = {
    "TOUCHSTONE_MUTANT_ISSUER": "{issuer}",
    "TOUCHSTONE_MUTANT_JWKS": "{jwks}",
    "TOUCHSTONE_MUTANT_AUDIENCE": "{audience}",
    "TOUCHSTONE_MUTANT_UPSTREAM": "{upstream}",
}
"""Variables of the servers of this file, as a target has them."""

INSUFFICIENT = "authorization-insufficient-scope"


class ChecksTokens(Protected, headers_sent={}):
    """Our HTTP server, which accepts the tokens of an issuer."""

    issued: ClassVar[bool] = True
    verify: ClassVar[str] = "verify"
    introspects: ClassVar[bool] = False

    def admits(self, authorization: str) -> bool:
        from tests.mutants import token_checks  # noqa: PLC0415  (few servers need it)

        scheme, _, token = authorization.partition(" ")
        try:
            claims, faults = token_checks.checked(token, getattr(token_checks, self.verify))
        except (ValueError, LookupError):
            return False
        if scheme.lower() != "bearer" or faults - self.forgiven(claims) or self.dislikes(claims):
            return False
        if self.introspects and not token_checks.is_active(token):
            return not self.obeys(claims)
        if self.scope not in str(claims.get("scope")).split():
            self.refuse_scope()
        return True

    def forgiven(self, claims: Json) -> set[str]:
        """Return the claims whose faults do not matter."""
        return set()

    def dislikes(self, claims: Json) -> bool:
        """Whether a good token is refused."""
        return False

    def obeys(self, claims: Json) -> bool:
        """Whether a token that the issuer calls inactive is refused."""
        return True

    def refuse_scope(self) -> None:
        """Refuse a token with too little scope."""
        said = self.challenge().replace("Bearer ", 'Bearer error="insufficient_scope", ')
        raise Refusal(403, INVALID_REQUEST, "insufficient scope", **{"WWW-Authenticate": said})


CHECKED = (
    "authorization-audience",
    "authorization-audience-list",
    "authorization-forged-401",
    "authorization-expired-401",
    "authorization-early-401",
    "authorization-issuer-401",
)


@control(*CHECKED, INSUFFICIENT, revision=LEGACY)
class ChecksTokensOfSessions(ChecksTokens):
    """Makes every check, in sessions."""


@control(*CHECKED, INSUFFICIENT, revision=MODERN)
class ChecksTokensOfRequests(ChecksTokens):
    """Makes every check, without sessions."""


@control("authorization-revoked-401", revision=LEGACY)
class AsksTheIssuer(ChecksTokens, introspects=True):
    """Asks the issuer about each token."""


mutants("authorization-revoked-401", of=AsksTheIssuer, revision=LEGACY)(
    AsksTheIssuerInVain=has(
        "Asks the issuer, and accepts what is inactive.", obeys=lambda self, claims: False
    )
)


def _server(name: str, clause: str, revision: str, words: str, **members: Any) -> None:
    """Register a server that leaves out one check."""
    made = type(name, (ChecksTokens,), {"__doc__": words, "__module__": __name__, **members})
    mutant(clause, revision=revision)(made)


def _forgives(name: str) -> Any:
    return lambda _self, _claims: {name}


def _own_in_text(server: ChecksTokens, claims: Json) -> set[str]:
    own = f"http://{server.header('Host')}/mcp"
    text = claims.get("aud")
    return {"aud"} if isinstance(text, str) and own in text and not text.startswith(own) else set()


def _own_begins_text(server: ChecksTokens, claims: Json) -> set[str]:
    own = f"http://{server.header('Host')}/mcp"
    return {"aud"} if str(claims.get("aud")).startswith(own) else set()


AUDIENCE = "authorization-audience"
FORGED = "authorization-forged-401"
for _row in (
    ("IgnoresTheAudienceOfRequests", AUDIENCE, MODERN, {"forgiven": _forgives("aud")}),
    (
        "AcceptsNoAudience",
        AUDIENCE,
        LEGACY,
        {"forgiven": lambda _self, claims: set() if "aud" in claims else {"aud"}},
    ),
    (
        "AcceptsAnyListOfAudiences",
        AUDIENCE,
        LEGACY,
        {
            "forgiven": lambda _self, claims: (
                {"aud"} if isinstance(claims.get("aud"), list) else set()
            )
        },
    ),
    ("FindsItsAudienceInAText", AUDIENCE, LEGACY, {"forgiven": _own_in_text}),
    ("ComparesTheBeginningOfTheAudience", AUDIENCE, LEGACY, {"forgiven": _own_begins_text}),
    (
        "AcceptsIdTokens",
        AUDIENCE,
        LEGACY,
        {"forgiven": lambda _self, claims: {"aud"} if "nonce" in claims else set()},
    ),
    ("IgnoresTheIssuer", "authorization-issuer-401", LEGACY, {"forgiven": _forgives("iss")}),
    ("IgnoresTheExpiry", "authorization-expired-401", LEGACY, {"forgiven": _forgives("exp")}),
    (
        "IgnoresTheExpiryOfRequests",
        "authorization-expired-401",
        MODERN,
        {"forgiven": _forgives("exp")},
    ),
    ("IgnoresTheBeginning", "authorization-early-401", LEGACY, {"forgiven": _forgives("nbf")}),
    ("AcceptsUnsignedTokens", FORGED, LEGACY, {"verify": "verify_unless_unsigned"}),
    ("AcceptsAnyAlgorithm", FORGED, LEGACY, {"verify": "verify_by_any_algorithm"}),
    ("ComparesTheNameOfTheKey", FORGED, LEGACY, {"verify": "verify_nothing_with_a_known_key"}),
    ("TrustsTheKeyInTheToken", FORGED, LEGACY, {"verify": "verify_by_header"}),
    ("TrustsTheKeysThatTheTokenNames", FORGED, LEGACY, {"verify": "verify_by_url"}),
    ("TrustsTheCertificateThatTheTokenNames", FORGED, MODERN, {"verify": "verify_by_certificate"}),
):
    _server(*_row[:3], "Leaves out a check of the token.", **_row[3])


def _fails_at_other_lists(server: ChecksTokens, claims: Json) -> set[str]:
    audience = claims.get("aud")
    if isinstance(audience, list) and f"http://{server.header('Host')}/mcp" not in audience:
        raise Refusal(500, INVALID_REQUEST, "an audience is no text")
    return set()


mutants(AUDIENCE, of=ChecksTokens, revision=LEGACY, outcome="warn")(
    FailsAtListsOfOthers=has(
        "Answers a token of two other servers by 500.", forgiven=_fails_at_other_lists
    )
)


class ChecksOnlyOnce(ChecksTokens):
    """Checks a token of a session less than that of its first request."""

    def forgiven(self, claims: Json) -> set[str]:
        is_first = self.header("Mcp-Session-Id") is None and not self.is_list()
        return set() if is_first else self.later(claims)

    def is_list(self) -> bool:
        """Whether this is a request of 2026-07-28 for a list."""
        return (self.header("Mcp-Method") or "").endswith("/list")

    def later(self, claims: Json) -> set[str]:
        """Return the faults that do not matter in later requests."""
        raise NotImplementedError


mutants("authorization-each-request", of=ChecksOnlyOnce, revision=LEGACY)(
    AcceptsExpiredTokensInSessions=has(
        "Accepts a token in a session after its expiry.", later=lambda self, claims: {"exp"}
    )
)
mutants("authorization-each-request", of=ChecksOnlyOnce, revision=MODERN)(
    AcceptsOtherAudiencesInLists=has(
        "Serves lists for tokens of other servers.", later=lambda self, claims: {"aud"}
    )
)
mutants("authorization-each-request", of=ChecksOnlyOnce, revision=LEGACY)(
    AcceptsForgedTokensInSessions=has(
        "Verifies the signature of a session's first token only.",
        later=lambda self, claims: {"signature"},
    )
)
mutants("authorization-audience-list", of=ChecksTokens, revision=LEGACY)(
    WantsOneAudience=has(
        "Accepts no list of audiences.",
        dislikes=lambda self, claims: isinstance(claims.get("aud"), list),
    )
)


@mutant("authorization-expired-401", revision=LEGACY)
class CallsToolsWithExpiredTokens(ChecksTokens):
    """Lists for all, and calls a tool with a token that has expired."""

    def admits(self, authorization: str) -> bool:
        posted = self.rfile.peek(1) if self.command == "POST" else b""  # type: ignore[attr-defined]
        return b'"tools/call"' not in posted or super().admits(authorization)

    def forgiven(self, claims: Json) -> set[str]:
        return {"exp"}


@mutant(INSUFFICIENT, revision=LEGACY)
class IgnoresTheScope(ChecksTokens):
    """Names a scope in its challenge, and serves a token without it."""

    def refuse_scope(self) -> None:
        pass


mutants(INSUFFICIENT, of=ChecksTokens, revision=MODERN)(
    RefusesTheScopeWith401=has(
        "Answers a token with too little scope by 401.",
        refuse_scope=lambda self: self.refuse_token(),
    )
)


@mutant(INSUFFICIENT, revision=LEGACY)
class RefusesTheScopeWithoutAChallenge(ChecksTokens):
    """Does not say which scope is missing."""

    def refuse_scope(self) -> None:
        raise Refusal(403, INVALID_REQUEST, "insufficient scope")


STEP_UP = "authorization-step-up"


@control(STEP_UP, revision=LEGACY)
class AsksForOneScopeAfterTheOther(ChecksTokens):
    """Wants a second scope for calls, and names one missing scope at a time."""

    more: ClassVar[str] = "mcp:call"

    def admits(self, authorization: str) -> bool:
        from tests.mutants import token_checks  # noqa: PLC0415  (few servers need it)

        admitted = super().admits(authorization)
        posted = self.rfile.peek(1) if self.command == "POST" else b""  # type: ignore[attr-defined]
        if admitted and b'"tools/call"' in posted:
            claims = token_checks.checked(authorization.rpartition(" ")[2], token_checks.verify)[0]
            if self.more not in str(claims["scope"]).split():
                self.scope = self.more  # type: ignore[misc]
                self.refuse_scope()
        return admitted


@mutant(STEP_UP, revision=LEGACY)
class NamesAnotherScope(ChecksTokens):
    """Names a scope that does not suffice."""

    def refuse_scope(self) -> None:
        said = 'Bearer error="insufficient_scope", scope="mcp:other"'
        raise Refusal(403, INVALID_REQUEST, "insufficient scope", **{"WWW-Authenticate": said})


@mutant(STEP_UP, revision=MODERN)
class NamesNoMissingScope(ChecksTokens):
    """Says that a scope is missing, and not which."""

    def refuse_scope(self) -> None:
        said = 'Bearer error="insufficient_scope"'
        raise Refusal(403, INVALID_REQUEST, "insufficient scope", **{"WWW-Authenticate": said})


class ListsByUser(ChecksTokens):
    """Lists one tool less to the second user."""

    hints: ClassVar[str] = "private"

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        if self.header("Mcp-Method") != "tools/list" or status != 200:
            return status, body, extra
        message = json.loads(body)
        message["result"]["cacheScope"] = self.hints
        part = (self.header("Authorization") or "").split(".")[1]
        if b"touchstone-two" in base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)):
            del message["result"]["tools"][-1]
        return status, json.dumps(message).encode(), extra


@control("authorization-cache-scope", revision=MODERN)
class ListsByUserInPrivate(ListsByUser):
    """Lists one tool less to the second user, as private."""


mutants("authorization-cache-scope", of=ListsByUser, revision=MODERN)(
    ListsByUserInPublic=has("Lists one tool less to the second user, as public.", hints="public")
)


class AsksAService(ChecksTokens):
    """Asks another service for each call of a tool."""

    def admits(self, authorization: str) -> bool:
        from tests.mutants import token_checks  # noqa: PLC0415  (few servers need it)

        admitted = super().admits(authorization)
        posted = self.rfile.peek(1) if self.command == "POST" else b""  # type: ignore[attr-defined]
        if admitted and b'"tools/call"' in posted:
            token_checks.ask_upstream(*self.passed_on(authorization))
        return admitted

    def passed_on(self, authorization: str) -> tuple[str, Json]:
        """Return the end of the path, and the headers, of the request to the service."""
        del authorization
        return "", {}


PASSTHROUGH = "authorization-no-passthrough"


@control(PASSTHROUGH, revision=LEGACY)
class AsksAServiceWithoutAToken(AsksAService):
    """Asks another service without a token."""


@control(PASSTHROUGH, revision=MODERN)
class AsksAServiceWithItsOwnToken(AsksAService):
    """Asks another service with a token of its own, from the same issuer."""

    def passed_on(self, authorization: str) -> tuple[str, Json]:
        from tests.mutants import token_checks  # noqa: PLC0415  (few servers need it)

        return "", {"Authorization": f"Bearer {token_checks.own_token()}"}


mutants(PASSTHROUGH, of=AsksAService, revision=LEGACY)(
    PassesTheTokenOn=has(
        "Asks another service with the header of the client.",
        passed_on=lambda self, authorization: ("/items", {"Authorization": authorization}),
    )
)


@mutant(PASSTHROUGH, revision=MODERN)
class PassesTheTokenOnInTheQuery(AsksAService):
    """Asks another service with the token of the client in the query."""

    def passed_on(self, authorization: str) -> tuple[str, Json]:
        return "?access_token=" + authorization.rpartition(" ")[2], {}
