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
class DiscoversForNobody(_Hinted):
    """Leaves cacheScope out of its discover result."""

    method = "server/discover"

    def spoil(self, result: Json, request: Json) -> None:
        del result["cacheScope"]


@mutant("caching-hints-present", revision=MODERN)
class ReadsForAnUnknownTime(_Hinted):
    """Leaves ttlMs out of what it reads."""

    method = "resources/read"

    def spoil(self, result: Json, request: Json) -> None:
        del result["ttlMs"]


@mutant("caching-ttl-non-negative", revision=MODERN)
class IsStaleFromTheStart(_Hinted):
    """Gives -1 where nothing is to be kept."""

    def spoil(self, result: Json, request: Json) -> None:
        result["ttlMs"] = -1


@mutant("caching-ttl-non-negative", revision=MODERN)
class WritesItsTimeAsText(_Hinted):
    """Gives the time as a string."""

    def spoil(self, result: Json, request: Json) -> None:
        result["ttlMs"] = "1000"


@mutant("caching-ttl-non-negative", revision=MODERN)
class CountsHalfMilliseconds(_Hinted):
    """Gives half a millisecond."""

    def spoil(self, result: Json, request: Json) -> None:
        result["ttlMs"] = 0.5


@mutant("caching-ttl-non-negative", revision=MODERN, outcome="warn")
class WritesItsTimeAsAFloat(_Hinted):
    """Writes a whole number of milliseconds with a decimal point."""

    def spoil(self, result: Json, request: Json) -> None:
        result["ttlMs"] = 5.0


@mutant("caching-scope-value", revision=MODERN)
class ShoutsItsScope(_Hinted):
    """Gives the scope in capital letters."""

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
class SharesOnePageOnly(_Paged):
    """Gives its pages different scopes."""

    def second(self, result: Json) -> None:
        result["cacheScope"] = "private" if result["cacheScope"] == "public" else "public"


@control("caching-scope-uniform-pages", revision=MODERN)
class KeepsPagesForDifferentTimes(_Paged):
    """Gives its pages the same scope and different times."""

    def second(self, result: Json) -> None:
        result["ttlMs"] = 0


class _Asks(Interrupts):
    """Asks a client that can be asked before it answers a call."""

    def interrupt(self, request: Json) -> None:
        asked = {"inputRequests": self.asks, "requestState": self.state(request), **self.hints()}
        self.answer(request, {"resultType": "input_required", **asked})

    def hints(self) -> Json:
        """Give the hints that go with the question."""
        return {}


@mutant("caching-interim-without-hints", revision=MODERN)
class KeepsAQuestionFresh(_Asks):
    """Puts caching hints on a result that asks for input."""

    def hints(self) -> Json:
        return {"ttlMs": 1000, "cacheScope": "private"}


@control("caching-interim-without-hints", revision=MODERN)
class AsksWithoutHints(_Asks):
    """Asks for input without caching hints."""
