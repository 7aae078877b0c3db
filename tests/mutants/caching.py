"""Servers that break a rule of server/utilities/caching."""

from typing import Any

from tests.mutants.asking import Interrupts
from tests.mutants.kit import (
    MODERN,
    Fault,
    Json,
    Out,
    controls,
    drops,
    has,
    mutant,
    mutants,
    params,
    puts,
)


class _Hinted(Fault):
    """Changes the caching hints of one method."""

    method = "tools/list"

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == self.method and "result" in message:
            self.spoil(message["result"], request)
        return message  # type: ignore[no-any-return]

    def spoil(self, result: Json, request: Json) -> None:
        """Change them."""


mutants("caching-hints-present", of=_Hinted, revision=MODERN)(
    OmitsTheScopeOfDiscover=has(
        "Leaves cacheScope out of its discover result.",
        method="server/discover",
        spoil=drops("cacheScope"),
    ),
    OmitsTheTtlOfReads=has(
        "Leaves ttlMs out of resources/read results.", method="resources/read", spoil=drops("ttlMs")
    ),
)
mutants("caching-ttl-non-negative", of=_Hinted, revision=MODERN)(
    WritesTheTtlAsText=has("Writes ttlMs as a string.", spoil=puts("ttlMs", "1000"))
)
mutants("caching-ttl-non-negative", of=_Hinted, revision=MODERN, outcome="warn")(
    WritesTheTtlAsAFloat=has("Writes a whole ttlMs with a decimal point.", spoil=puts("ttlMs", 5.0))
)
mutants("caching-scope-value", of=_Hinted, revision=MODERN)(
    WritesTheScopeInCapitals=has(
        "Writes cacheScope in capital letters.", spoil=puts("cacheScope", "PUBLIC")
    )
)


class _Paged(_Hinted):
    """Lists its tools on two pages."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and params(message).get("cursor") == "page-2":
            del message["params"]["cursor"]
            self.asked[message["id"]] = {**message, "second": True}
            self.pass_on(message)
            return None
        return line

    def spoil(self, result: Json, request: Json) -> None:
        half = len(result["tools"]) // 2
        if request.get("second"):
            result["tools"] = result["tools"][half:]
            self.second(result)
        else:
            result["tools"], result["nextCursor"] = result["tools"][:half], "page-2"

    def second(self, result: Json) -> None:
        """Change the second page."""


@mutant("caching-scope-uniform-pages", revision=MODERN)
class ChangesTheScopeBetweenPages(_Paged):
    """Gives its pages different scopes."""

    def second(self, result: Json) -> None:
        result["cacheScope"] = "private" if result["cacheScope"] == "public" else "public"


controls("caching-scope-uniform-pages", of=_Paged, revision=MODERN)(
    ChangesTheTtlBetweenPages=has(
        "Gives its pages the same scope and different ttlMs.", second=puts("ttlMs", 0)
    )
)


class _Asks(Interrupts):
    """Asks a client with elicitation before it answers a call."""

    def interrupt(self, request: Json) -> None:
        asked = {"inputRequests": self.asks, "requestState": self.state(request), **self.hints()}
        self.answer(request, {"resultType": "input_required", **asked})

    def hints(self) -> Json:
        """Return the hints that go with the question."""
        return {}


mutants("caching-interim-without-hints", of=_Asks, revision=MODERN)(
    GivesHintsOnInputRequests=has(
        "Puts caching hints on a result that asks for input.",
        hints=lambda *_: {"ttlMs": 1000, "cacheScope": "private"},
    )
)
controls("caching-interim-without-hints", of=_Asks, revision=MODERN)(
    AsksWithoutHints="Asks for input without caching hints."
)
