"""Servers that break a rule of server/pagination."""

from typing import Any, ClassVar

from tests.mutants.kit import (
    MODERN,
    Fault,
    Json,
    Out,
    control,
    controls,
    has,
    mutant,
    mutants,
    on,
    params,
    puts,
    refusal,
)

LISTS = {
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}


class _Pages(Fault, settings={"page_size": 3}):
    """Lists three items per page."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") in LISTS and "result" in message:
            return self.page(message, request)
        return message  # type: ignore[no-any-return]

    def page(self, message: Json, request: Json) -> Out:
        """Change a page."""
        return message


controls(
    "pagination-own-cursor-accepted",
    "pagination-terminates",
    "pagination-stable-cursors",
    "pagination-next-cursor-string",
    "pagination-invalid-cursor-error",
    "pagination-invalid-cursor-graceful",
    "tools-name-unique",
    of=_Pages,
)(ListsPageByPage="Lists three items per page, in a session.")
controls(
    "pagination-own-cursor-accepted",
    "pagination-terminates",
    "pagination-stable-cursors",
    "tools-list-not-per-connection",
    "tools-list-deterministic-order",
    of=_Pages,
    revision=MODERN,
)(ListsPageByPageStateless="Lists three items per page, in 2026-07-28.")


@mutant("pagination-next-cursor-string")
class GivesNumericCursors(_Pages):
    """Gives a number as the cursor of the next page."""

    def page(self, message: Json, request: Json) -> Out:
        if "nextCursor" in message["result"]:
            message["result"]["nextCursor"] = 2
        return message


@mutant("pagination-next-cursor-string", revision=MODERN)
class EndsItsPagesWithFalse(_Pages):
    """Writes false as the cursor of the last page."""

    def page(self, message: Json, request: Json) -> Out:
        message["result"].setdefault("nextCursor", False)
        return message


mutants("pagination-own-cursor-accepted", of=_Pages)(
    ForgetsItsCursors=has(
        "Refuses its own cursors.",
        page=lambda self, message, request: (
            refusal(request, -32602, "Invalid cursor") if "cursor" in params(request) else message
        ),
    )
)


@mutant("pagination-own-cursor-accepted", "tools-name-unique", revision=MODERN, outcome="warn")
class RepeatsTheLastItem(_Pages):
    """Begins each page of tools with the last one of the page before."""

    last: ClassVar[dict[str, Any]] = {}

    def page(self, message: Json, request: Json) -> Out:
        if request["method"] == "tools/list":
            tools = message["result"]["tools"]
            self.last[message["result"].get("nextCursor", "")] = tools[-1]
            if "cursor" in params(request):
                tools.insert(0, self.last.get(params(request)["cursor"], tools[0]))
        return message


@mutant("pagination-terminates")
class NeverEnds(Fault, said=on("prompts/list", puts("nextCursor", "again"))):
    """Returns the first page of its prompts for every cursor."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        listing = isinstance(message, dict) and message.get("method") == "prompts/list"
        if listing and params(message).get("cursor") == "again":
            body = {name: one for name, one in message["params"].items() if name != "cursor"}
            self.pass_on({**message, "params": body})
            return None
        return line


class _Tickets(_Pages):
    """Gives new cursors each time, and counts their uses."""

    real: ClassVar[dict[str, str]] = {}
    used: ClassVar[dict[str, int]] = {}

    def heard(self, line: bytes, message: Any) -> bytes | None:
        cursor = params(message).get("cursor") if isinstance(message, dict) else None
        if cursor not in self.real or message.get("method") not in LISTS:
            return line
        self.used[cursor] = self.used.get(cursor, 0) + 1
        if self.take(message, cursor):
            body = {**message["params"], "cursor": self.real[cursor]}
            self.pass_on({**message, "params": body})
        return None

    def take(self, message: Json, cursor: str) -> bool:
        """Take a cursor; give whether it leads on."""
        return True

    def page(self, message: Json, request: Json) -> Out:
        real = message["result"].get("nextCursor")
        if isinstance(real, str):
            ticket = f"ticket-{len(self.real)}"
            self.real[ticket] = real
            message["result"]["nextCursor"] = ticket
        return message


@mutant("pagination-stable-cursors")
class AcceptsACursorOnce(_Tickets):
    """Refuses a cursor that was used before."""

    def take(self, message: Json, cursor: str) -> bool:
        if self.used[cursor] > 1:
            self.refuse(message, -32602, "This cursor was used")
            return False
        return True


@mutant("pagination-stable-cursors", revision="2024-11-05")
class ReturnsNothingForAReusedCursor(_Tickets):
    """Returns an empty page when a cursor is used again."""

    def page(self, message: Json, request: Json) -> Out:
        if self.used.get(params(request).get("cursor", ""), 0) > 1:
            message["result"][LISTS[request["method"]]] = []
        return super().page(message, request)


controls("pagination-stable-cursors", "pagination-own-cursor-accepted", of=_Tickets)(
    GivesNewCursors="Gives new cursors each time, and accepts them repeatedly."
)


class _Cursors(Fault, settings={"page_size": 3}):
    """Handles invalid cursors in its own way."""

    CODE: ClassVar[int] = -32603

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") in LISTS and "error" in message and "cursor" in params(request):
            return self.wrong(message, request)
        return message  # type: ignore[no-any-return]

    def wrong(self, message: Json, request: Json) -> Out:
        """Answer."""
        return refusal(request, self.CODE, "No such page")


mutants("pagination-invalid-cursor-error", of=_Cursors)(
    FailsOnInvalidCursors="Answers an invalid cursor with an internal error."
)


@mutant("pagination-invalid-cursor-error", revision=MODERN)
class ReturnsNothingForInvalidCursors(_Cursors):
    """Returns an empty page for an invalid cursor, although it gives cursors itself."""

    def wrong(self, message: Json, request: Json) -> Out:
        hints = {"ttlMs": 0, "cacheScope": "private"}
        self.answer(request, {LISTS[request["method"]]: [], **hints})
        return None


mutants("pagination-invalid-cursor-error", of=_Cursors, outcome="note")(
    IgnoresCursors=has(
        "Has no pages, and returns its list for any cursor.",
        settings={},
        wrong=lambda self, message, request: self.answer(request, {LISTS[request["method"]]: []}),
    )
)


@mutant("pagination-invalid-cursor-graceful")
class HangsOnLongCursors(Fault):
    """Does not answer a list request with a cursor of 8 KiB."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        listing = isinstance(message, dict) and message.get("method") in LISTS
        return None if listing and len(line) > 8_000 else line


@control(
    "jsonrpc-request-answered",
    "pagination-invalid-cursor-graceful",
    "prompts-inputs-outputs-validated",
    "stdio-utf8-input",
)
class ReadsLinesUpTo64KiB(Fault):
    """Stops reading at a line of more than 64 KiB, as a reader with a fixed buffer does."""

    full = False

    def heard(self, line: bytes, message: Any) -> bytes | None:
        self.full = self.full or len(line) > 65_536
        return None if self.full else line


controls(
    "jsonrpc-request-answered",
    "pagination-invalid-cursor-graceful",
    "mrtr-request-state-untrusted",
    "stdio-utf8-input",
    of=ReadsLinesUpTo64KiB,
    revision=MODERN,
)(ReadsLinesUpTo64KiBStateless="Stops reading at a line of more than 64 KiB, without a session.")


@mutant("pagination-invalid-cursor-graceful", revision=MODERN)
class ListsNothingAfterANumericCursor(Fault):
    """Lists nothing any more after a numeric cursor."""

    broken = False

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") not in LISTS:
            return message  # type: ignore[no-any-return]
        self.broken = self.broken or isinstance(params(request).get("cursor"), int)
        return refusal(request, -32602, "No") if self.broken else message
