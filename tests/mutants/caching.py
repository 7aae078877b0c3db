"""Servers that break a rule of server/utilities/caching."""

from typing import Any

from tests.mutants.asking import Interrupts
from tests.mutants.kit import (
    MODERN,
    Fault,
    Json,
    Out,
    control,
    mutant,
    params,
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


@mutant("caching-hints-present", revision=MODERN)
class OmitsTheScopeOfDiscover(_Hinted):
    """Leaves cacheScope out of its discover result."""

    method = "server/discover"

    def spoil(self, result: Json, request: Json) -> None:
        del result["cacheScope"]


@mutant("caching-hints-present", revision=MODERN)
class OmitsTheTtlOfReads(_Hinted):
    """Leaves ttlMs out of resources/read results."""

    method = "resources/read"

    def spoil(self, result: Json, request: Json) -> None:
        del result["ttlMs"]


@mutant("caching-ttl-non-negative", revision=MODERN)
class GivesANegativeTtl(_Hinted):
    """Gives a ttlMs of -1 for results that must not be cached."""

    def spoil(self, result: Json, request: Json) -> None:
        result["ttlMs"] = -1


@mutant("caching-ttl-non-negative", revision=MODERN)
class WritesTheTtlAsText(_Hinted):
    """Writes ttlMs as a string."""

    def spoil(self, result: Json, request: Json) -> None:
        result["ttlMs"] = "1000"


@mutant("caching-ttl-non-negative", revision=MODERN, outcome="warn")
class GivesAFractionalTtl(_Hinted):
    """Gives a ttlMs of half a millisecond."""

    def spoil(self, result: Json, request: Json) -> None:
        result["ttlMs"] = 0.5


@mutant("caching-ttl-non-negative", revision=MODERN, outcome="warn")
class WritesTheTtlAsAFloat(_Hinted):
    """Writes a whole ttlMs with a decimal point."""

    def spoil(self, result: Json, request: Json) -> None:
        result["ttlMs"] = 5.0


@mutant("caching-scope-value", revision=MODERN)
class WritesTheScopeInCapitals(_Hinted):
    """Writes cacheScope in capital letters."""

    def spoil(self, result: Json, request: Json) -> None:
        result["cacheScope"] = "PUBLIC"


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


@control("caching-scope-uniform-pages", revision=MODERN)
class ChangesTheTtlBetweenPages(_Paged):
    """Gives its pages the same scope and different ttlMs."""

    def second(self, result: Json) -> None:
        result["ttlMs"] = 0


class _Asks(Interrupts):
    """Asks a client with elicitation before it answers a call."""

    def interrupt(self, request: Json) -> None:
        asked = {"inputRequests": self.asks, "requestState": self.state(request), **self.hints()}
        self.answer(request, {"resultType": "input_required", **asked})

    def hints(self) -> Json:
        """Return the hints that go with the question."""
        return {}


@mutant("caching-interim-without-hints", revision=MODERN)
class GivesHintsOnInputRequests(_Asks):
    """Puts caching hints on a result that asks for input."""

    def hints(self) -> Json:
        return {"ttlMs": 1000, "cacheScope": "private"}


@control("caching-interim-without-hints", revision=MODERN)
class AsksWithoutHints(_Asks):
    """Asks for input without caching hints."""
