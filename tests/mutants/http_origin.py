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


@mutant("origin-local-address", revision=LEGACY)
class ListensEverywhere(HttpFault):
    """Listens on every address."""

    listens_on: ClassVar[str] = "0.0.0.0"  # noqa: S104  (the fault)
