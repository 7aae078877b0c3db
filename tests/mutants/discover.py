"""Servers that break a rule of basic/discover."""

from typing import Any

from tests.mutants.kit import (
    MODERN,
    Fault,
    Json,
    Out,
    drops,
    has,
    mutant,
    mutants,
    on,
    puts,
    refusal,
)


class _Discovered(Fault):
    """Changes its discover result."""

    said = on("server/discover", lambda self, result: self.spoil(result))

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


mutants("discover-implemented", "subscriptions-ack-subset=warn", of=Fault, revision=MODERN)(
    HasNoDiscover=has(
        "Serves the requests of 2026-07-28, and does not know server/discover.",
        heard=lambda self, line, message: (
            self.refuse(message, -32601, "Method not found")
            if isinstance(message, dict) and message.get("method") == "server/discover"
            else line
        ),
    )
)
mutants("discover-result-shape", of=_Discovered, revision=MODERN)(
    ListsNoVersions=has("Leaves supportedVersions out.", spoil=drops("supportedVersions"))
)


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


mutants("discover-supported-versions-current", of=_Discovered, revision=MODERN)(
    SupportsNoVersion=has("Gives an empty list of versions.", spoil=puts("supportedVersions", []))
)
mutants("discover-capabilities-shape", of=_Discovered, revision=MODERN)(
    SaysTrueForACapability=has(
        "Gives true in place of the object of a capability.",
        spoil=puts("capabilities", "completions", True),
    ),
    SaysTrueForAnExperiment=has(
        "Gives true for a member of experimental.",
        spoil=puts("capabilities", "experimental", {"com.example/search": True}),
    ),
)
mutants(
    "discover-capabilities-shape", "subscriptions-ack-subset=warn", of=_Discovered, revision=MODERN
)(
    WritesAFlagAsAString=has(
        'Writes listChanged as "true".',
        spoil=puts("capabilities", "tools", {"listChanged": "true"}),
    )
)
