"""HTTP servers that break a rule of http/origin."""

from typing import ClassVar

from tests.mutants.http_kit import Extra, HttpFault
from tests.mutants.kit import LEGACY, MODERN, controls, has, mutant, mutants

SESSION = "Mcp-Session-Id"


controls(
    "origin-refused",
    "origin-refused-in-session",
    "origin-refused-on-get",
    "origin-status-403",
    "origin-local-address",
    of=HttpFault,
)(ChecksOrigins="Keeps every rule on Origin in sessions.")
controls(
    "origin-refused", "origin-status-403", "origin-local-address", of=HttpFault, revision=MODERN
)(ChecksOriginsOfRequests="Keeps every rule on Origin without sessions.")


class Trusts(HttpFault):
    """Does not check some origins."""

    def _check(self) -> None:
        if self.trusts():
            self.set_header("Origin", None)
        super()._check()

    def trusts(self) -> bool:
        """Whether the origin of this request is not checked."""
        return True


mutants("origin-refused", of=Trusts, revision=MODERN)(
    TrustsEveryOrigin="Does not check the Origin of a request of 2026-07-28.",
    TrustsLists=has(
        "Does not check the Origin of a list of 2026-07-28.",
        trusts=lambda self: (self.header("Mcp-Method") or "").endswith("/list"),
    ),
)


class TrustsOneOrigin(Trusts):
    """Takes a stranger for this machine."""

    begins: ClassVar[str] = ""
    ends: ClassVar[str] = ""

    def trusts(self) -> bool:
        origin = self.header("Origin") or ""
        return origin.startswith(self.begins) and origin.endswith(self.ends)


mutants("origin-refused", of=TrustsOneOrigin)(
    ComparesTheBeginningOfOrigins=has(
        "Trusts each origin that begins like localhost.", begins="http://localhost"
    ),
    ComparesTheBeginningOfAddresses=has(
        "Trusts each origin that begins like 127.0.0.1.", begins="http://127.0.0.1"
    ),
    ComparesTheEndOfOrigins=has(
        "Trusts each origin that ends like localhost.", MODERN, ends="localhost"
    ),
)


@mutant("origin-refused", revision=LEGACY, outcome="warn")
class TrustsNull(TrustsOneOrigin):
    """Trusts the origin null."""

    begins = ends = "null"


class TrustsAKind(Trusts):
    """Does not check the Origin of messages that lack a member."""

    lacks: ClassVar[bytes]

    def trusts(self) -> bool:
        return self.command == "POST" and self.lacks not in self.rfile.peek(1)  # type: ignore[attr-defined]


mutants("origin-refused-in-session", of=TrustsAKind)(
    TrustsNotifications=has("Does not check the Origin of a notification.", lacks=b'"id"'),
    TrustsResponses=has("Does not check the Origin of a response.", lacks=b'"method"'),
)
mutants("origin-refused-in-session", of=Trusts, revision="2025-06-18")(
    TrustsDeletions=has(
        "Does not check the Origin of a DELETE.", trusts=lambda self: self.command == "DELETE"
    ),
    TrustsCalls=has(
        "Does not check the Origin of a call.",
        trusts=lambda self: self.command == "POST" and b'"tools/call"' in self.rfile.peek(1),
    ),
    TrustsSessions=has(
        "Does not check the Origin of a POST in a session.",
        "2025-03-26",
        trusts=lambda self: self.header(SESSION) is not None and self.command == "POST",
    ),
)
mutants("origin-refused-on-get", of=Trusts, revision="2025-06-18")(
    TrustsStreams=has(
        "Does not check the Origin of a GET.", trusts=lambda self: self.command == "GET"
    )
)


@mutant("origin-status-403", revision=LEGACY)
class RefusesOriginsWith400(HttpFault):
    """Refuses a foreign Origin with 400."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        return (400 if status == 403 else status), body, extra


class RefusesOneVerbWith400(RefusesOriginsWith400):
    """Refuses a foreign Origin of one HTTP method with 400."""

    verb: ClassVar[str]

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        mistaken = self.command == self.verb and self.header(SESSION) is not None
        return super().answering(status, body, extra) if mistaken else (status, body, extra)


mutants("origin-status-403", of=RefusesOneVerbWith400)(
    RefusesStreamsWith400=has("Refuses a GET with a foreign Origin with 400.", verb="GET"),
    RefusesDeletionsWith400=has("Refuses a DELETE with a foreign Origin with 400.", verb="DELETE"),
    RefusesPostsOfSessionsWith400=has(
        "Refuses a POST with a foreign Origin in a session with 400.", verb="POST"
    ),
)
mutants("origin-local-address", of=HttpFault)(
    ListensEverywhere=has(
        "Listens on every address.",
        listens_on="0.0.0.0",  # noqa: S104  (the fault)
    )
)
