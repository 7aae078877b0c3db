"""HTTP servers that break a rule of http/origin."""

from typing import ClassVar

from tests.mutants.http_kit import Extra, HttpFault
from tests.mutants.kit import LEGACY, MODERN, control, mutant

SESSION = "Mcp-Session-Id"


@control(
    "origin-refused",
    "origin-refused-in-session",
    "origin-refused-on-get",
    "origin-status-403",
    "origin-local-address",
    revision=LEGACY,
)
class ChecksOrigins(HttpFault):
    """Keeps every rule on Origin in sessions."""


@control("origin-refused", "origin-status-403", "origin-local-address", revision=MODERN)
class ChecksOriginsOfRequests(HttpFault):
    """Keeps every rule on Origin without sessions."""


class Trusts(HttpFault):
    """Does not check some origins."""

    def _check(self) -> None:
        if self.trusts():
            self.set_header("Origin", None)
        super()._check()

    def trusts(self) -> bool:
        """Whether the origin of this request is not checked."""
        return True


@mutant("origin-refused", revision=LEGACY)
class TrustsFirstRequests(Trusts):
    """Does not check the Origin of a request outside a session."""

    def trusts(self) -> bool:
        return self.header(SESSION) is None


@mutant("origin-refused", revision=MODERN)
class TrustsEveryOrigin(Trusts):
    """Does not check the Origin of a request of 2026-07-28."""


class TrustsOneOrigin(Trusts):
    """Takes a stranger for this machine."""

    begins: ClassVar[str] = ""
    ends: ClassVar[str] = ""

    def trusts(self) -> bool:
        origin = self.header("Origin") or ""
        return origin.startswith(self.begins) and origin.endswith(self.ends)


@mutant("origin-refused", revision=LEGACY)
class ComparesTheBeginningOfOrigins(TrustsOneOrigin):
    """Trusts each origin that begins like localhost."""

    begins = "http://localhost"


@mutant("origin-refused", revision=MODERN)
class ComparesTheEndOfOrigins(TrustsOneOrigin):
    """Trusts each origin that ends like localhost."""

    ends = "localhost"


@mutant("origin-refused", revision=LEGACY, outcome="warn")
class TrustsNull(TrustsOneOrigin):
    """Trusts the origin null."""

    begins = ends = "null"


@mutant("origin-refused", revision=MODERN)
class TrustsLists(Trusts):
    """Does not check the Origin of a list of 2026-07-28."""

    def trusts(self) -> bool:
        return (self.header("Mcp-Method") or "").endswith("/list")


class TrustsAKind(Trusts):
    """Does not check the Origin of messages that lack a member."""

    lacks: ClassVar[bytes]

    def trusts(self) -> bool:
        return self.command == "POST" and self.lacks not in self.rfile.peek(1)  # type: ignore[attr-defined]


@mutant("origin-refused-in-session", revision=LEGACY)
class TrustsNotifications(TrustsAKind):
    """Does not check the Origin of a notification."""

    lacks = b'"id"'


@mutant("origin-refused-in-session", revision=LEGACY)
class TrustsResponses(TrustsAKind):
    """Does not check the Origin of a response."""

    lacks = b'"method"'


@mutant("origin-refused-in-session", revision="2025-06-18")
class TrustsDeletions(Trusts):
    """Does not check the Origin of a DELETE."""

    def trusts(self) -> bool:
        return self.command == "DELETE"


@mutant("origin-refused-in-session", revision="2025-03-26")
class TrustsSessions(Trusts):
    """Does not check the Origin of a POST in a session."""

    def trusts(self) -> bool:
        return self.header(SESSION) is not None and self.command == "POST"


@mutant("origin-refused-on-get", revision="2025-06-18")
class TrustsStreams(Trusts):
    """Does not check the Origin of a GET."""

    def trusts(self) -> bool:
        return self.command == "GET"


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


@mutant("origin-status-403", revision=LEGACY)
class RefusesStreamsWith400(RefusesOneVerbWith400):
    """Refuses a GET with a foreign Origin with 400."""

    verb = "GET"


@mutant("origin-status-403", revision=LEGACY)
class RefusesDeletionsWith400(RefusesOneVerbWith400):
    """Refuses a DELETE with a foreign Origin with 400."""

    verb = "DELETE"


@mutant("origin-status-403", revision=LEGACY)
class RefusesPostsOfSessionsWith400(RefusesOneVerbWith400):
    """Refuses a POST with a foreign Origin in a session with 400."""

    verb = "POST"


@mutant("origin-local-address", revision=LEGACY)
class ListensEverywhere(HttpFault):
    """Listens on every address."""

    listens_on: ClassVar[str] = "0.0.0.0"  # noqa: S104  (the fault)
