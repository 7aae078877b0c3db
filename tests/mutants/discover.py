"""Servers that break a rule of basic/discover."""

from typing import Any

from tests.mutants.kit import MODERN, Fault, Json, Out, mutant, refusal


class _Discovered(Fault):
    """Changes its discover result."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "server/discover" and "result" in message:
            self.spoil(message["result"])
        return message  # type: ignore[no-any-return]

    def spoil(self, result: Json) -> None:
        """Change the result."""


@mutant("discover-implemented", revision=MODERN)
class RefusesALateDiscover(Fault):
    """Refuses server/discover in a process whose first request was another one."""

    def said(self, message: Any, request: Json) -> Out:
        first = next(iter(self.asked.values()), request)
        if request.get("method") == "server/discover" and first.get("method") == "tools/list":
            return refusal(request, -32600, "server/discover has to come first")
        return message  # type: ignore[no-any-return]


@mutant("discover-implemented", "subscriptions-ack-subset=warn", revision=MODERN)
class HasNoDiscover(Fault):
    """Serves the requests of 2026-07-28, and does not know server/discover."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "server/discover":
            self.refuse(message, -32601, "Method not found")
            return None
        return line


# --- the result


@mutant("discover-result-shape", revision=MODERN)
class ListsNoVersions(_Discovered):
    """Leaves supportedVersions out."""

    def spoil(self, result: Json) -> None:
        del result["supportedVersions"]


@mutant("discover-result-shape", revision=MODERN)
class GivesItsVersionAsAString(_Discovered):
    """Gives supportedVersions as a string, because there is only one."""

    def spoil(self, result: Json) -> None:
        result["supportedVersions"] = MODERN


@mutant("discover-result-shape", revision=MODERN)
class ListsVersionsAsObjects(_Discovered):
    """Lists objects with a version and a note."""

    def spoil(self, result: Json) -> None:
        result["supportedVersions"].append({"version": MODERN, "stable": True})


@mutant("discover-result-shape", revision=MODERN)
class GivesInstructionsAsAList(_Discovered):
    """Gives its instructions as a list of lines."""

    def spoil(self, result: Json) -> None:
        result["instructions"] = ["Read first.", "Then write."]


@mutant("discover-result-shape", "subscriptions-ack-subset=warn", revision=MODERN)
class ListsItsCapabilities(_Discovered):
    """Gives its capabilities as a list of names."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        method = str(message.get("method")) if isinstance(message, dict) else ""
        if method.startswith(("tools/", "resources/", "prompts/", "completion/")):
            self.refuse(message, -32601, "Method not found")
            return None
        return line

    def spoil(self, result: Json) -> None:
        result["capabilities"] = ["experimental"]


@mutant("discover-supported-versions-current", revision=MODERN)
class SupportsNoVersion(_Discovered):
    """Gives an empty list of versions."""

    def spoil(self, result: Json) -> None:
        result["supportedVersions"] = []


@mutant("discover-supported-versions-current", revision=MODERN)
class ListsItsHandshakeRevisionsOnly(_Discovered):
    """Serves 2026-07-28 and lists only its handshake revisions."""

    def spoil(self, result: Json) -> None:
        result["supportedVersions"] = ["2025-11-25", "2025-06-18"]


@mutant("discover-capabilities-shape", revision=MODERN)
class SaysTrueForACapability(_Discovered):
    """Gives true in place of the object of a capability."""

    def spoil(self, result: Json) -> None:
        result["capabilities"]["completions"] = True


@mutant("discover-capabilities-shape", revision=MODERN)
class ListsItsExtensions(_Discovered):
    """Gives its extensions as a list of names."""

    def spoil(self, result: Json) -> None:
        result["capabilities"]["extensions"] = ["com.example/search"]


@mutant("discover-capabilities-shape", "subscriptions-ack-subset=warn", revision=MODERN)
class WritesAFlagAsAString(_Discovered):
    """Writes listChanged as "true"."""

    def spoil(self, result: Json) -> None:
        result["capabilities"]["tools"] = {"listChanged": "true"}


@mutant("discover-capabilities-shape", revision=MODERN)
class SaysTrueForAnExperiment(_Discovered):
    """Gives true for a member of experimental."""

    def spoil(self, result: Json) -> None:
        result["capabilities"]["experimental"] = {"com.example/search": True}
