"""Servers that break a rule only under requests nobody would write by hand."""

import os
import re
from typing import Any, ClassVar, Final

from tests.mutants.kit import MODERN, Fault, Json, Out, control, has, meta, mutant, mutants, params

MANY: Final = 60


def identified(message: Any) -> bool:
    """Whether a message of the client is a request."""
    return isinstance(message, dict) and "method" in message and "id" in message


class Dies(Fault):
    """Exits at certain lines."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if self.kills(line, message):
            os._exit(3)
        return line

    def kills(self, line: bytes, message: Any) -> bool:
        """Whether it dies of this line."""
        raise NotImplementedError


mutants("generated-survived", of=Dies, found_by="answers_alike_under_any_id", examples=MANY)(
    KeepsIdsInAShortBuffer=has(
        "Exits at an id of 31 to 1,000 characters.",  # those of jsonrpc are longer
        kills=lambda self, line, message: (
            identified(message) and 30 < len(str(message["id"])) <= 1000
        ),
    )
)


@mutant("generated-survived", found_by="answers_alike_under_any_id", examples=MANY, revision=MODERN)
class OverflowsOnLargeIds(Dies):
    """Exits at an integer id that does not fit 64 bits."""

    def kills(self, line: bytes, message: Any) -> bool:
        own = message.get("id") if isinstance(message, dict) else None
        return isinstance(own, int) and abs(own) >= 2**64


mutants("generated-same-answer", of=Fault, found_by="answers_alike_under_any_id", examples=MANY)(
    QuotesIdsItself=has(
        "Answers a request with an error if its id contains a quote.",
        heard=lambda self, line, message: (
            self.refuse(message, -32603, "Internal error")
            if identified(message) and '"' in str(message["id"])
            else line
        ),
    )
)


@mutant("jsonrpc-response-id-echo", found_by="answers_alike_under_any_id", examples=MANY)
class EndsIdsAtANul(Fault):
    """Keeps ids as C strings: characters after a NUL are lost."""

    def said(self, message: Any, request: Json) -> Out:
        own = message.get("id") if isinstance(message, dict) else None
        if isinstance(own, str) and "\0" in own:
            return {**message, "id": own.partition("\0")[0]}
        return message  # type: ignore[no-any-return]


@mutant(
    "jsonrpc-request-answered",
    found_by="answers_alike_under_any_id",
    examples=MANY,
    revision=MODERN,
)
class DropsIdsWithTabs(Fault):
    """Drops a request whose id contains a control character."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        dropped = identified(message) and re.search(r"[\x01-\x1f]", str(message["id"]))
        return None if dropped else line


@mutant("jsonrpc-no-orphan-response", found_by="answers_alike_under_any_id", examples=MANY)
class AnswersNegativeIdsTwice(Fault):
    """Answers a request twice when its id is below -1000."""

    def said(self, message: Any, request: Json) -> Out:
        own = request.get("id")
        if isinstance(own, int) and own < -1000:
            self.emit(message)
        return message  # type: ignore[no-any-return]


mutants("generated-survived", of=Dies, found_by="reads_json_in_any_spelling", examples=MANY)(
    ReadsEscapesByHand=has(
        "Dies of an escaped pair of surrogates, after white space.",
        kills=lambda self, line, *_: b" " in line and re.search(rb"\\u[dD]8", line) is not None,
    )
)
mutants("generated-same-answer", of=Fault, found_by="reads_json_in_any_spelling", examples=MANY)(
    FindsTheMethodByAPattern=has(
        "Detects a request by its first bytes, and refuses one with an escaped method.",
        heard=lambda self, line, message: (
            self.refuse(message, -32600, "Invalid Request")
            if identified(message) and b"method" not in line
            else line
        ),
    )
)


@mutant("generated-survived", found_by="reads_json_in_any_spelling", examples=MANY, revision=MODERN)
class HangsOnTabs(Fault):
    """Hangs after a line that contains a tab."""

    deaf = False

    def heard(self, line: bytes, message: Any) -> bytes | None:
        self.deaf |= b"\t" in line
        return None if self.deaf else line


@mutant("generated-survived", found_by="ignores_undefined_members", examples=MANY, revision=MODERN)
class RecursesIntoForeignKeys(Dies):
    """Exits at a list in a list under a foreign key of _meta."""

    def kills(self, line: bytes, message: Any) -> bool:
        foreign = meta(message) if identified(message) else {}
        found = [v for k, v in foreign.items() if k.startswith("org.example")]
        inner = [one for value in found if isinstance(value, list) for one in value]
        return any(isinstance(one, list) for one in inner)


@mutant("generated-same-answer", found_by="ignores_undefined_members", examples=MANY)
class ChecksForeignKeys(Fault):
    """Refuses a request with null, a boolean or an array under a foreign key of _meta."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if identified(message) and any(
            value is None or isinstance(value, bool | list) for value in meta(message).values()
        ):
            self.refuse(message, -32602, "Invalid params")
            return None
        return line


@mutant(
    "generated-same-answer",
    found_by="ignores_undefined_members",
    examples=MANY,
    outcome="warn",
    revision=MODERN,
)
class RefusesUnknownParams(Fault):
    """Refuses an unknown member of params."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        unknown = {"_meta", "cursor", "notifications"}
        method = message.get("method") if isinstance(message, dict) else ""
        if method == "server/discover" and set(params(message)) - unknown:
            self.refuse(message, -32602, "Invalid params")
            return None
        return line


mutants("jsonrpc-method-not-found", of=Fault, found_by="refuses_any_unknown_method", examples=MANY)(
    LooksMethodsUpInAnObject=has(
        "Finds a method under every name that objects of its language already have.",
        heard=lambda self, line, message: (
            self.answer(message, {})
            if identified(message) and message["method"] in {"constructor", "toString", "__proto__"}
            else line
        ),
    )
)
mutants("generated-survived", of=Dies, found_by="refuses_any_unknown_method", examples=MANY)(
    CutsMethodsAtANul=has(
        "Exits at a method name with a NUL.",
        kills=lambda self, line, message: identified(message) and "\0" in str(message["method"]),
    )
)


@mutant("jsonrpc-request-answered", found_by="keeps_answers_apart", examples=5 * MANY)
class LosesARequestAfterACancellation(Fault):
    """Loses a request directly after the cancellation of a request just sent."""

    last: Any = None
    cancelled = False

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if not isinstance(message, dict):
            return line
        lost = self.cancelled and identified(message) and message["method"] != "ping"
        named = params(message).get("requestId")
        self.cancelled = message.get("method") == "notifications/cancelled" and named == self.last
        if identified(message):
            self.last = message["id"]
        return None if lost else line


@mutant("generated-same-answer", found_by="keeps_answers_apart", examples=MANY, revision=MODERN)
class TreatsDigitIdsDifferently(Fault):
    """Refuses unknown methods in another way if the id is a string of digits."""

    def said(self, message: Any, request: Json) -> Out:
        text = isinstance(request.get("id"), str) and str(request["id"]).isdigit()
        if text and int(request["id"]) > 100 and request.get("method") == "tools/list":
            return {**message, "result": {**message["result"], "tools": []}}
        return message  # type: ignore[no-any-return]


@mutant("generated-arguments-survived", found_by="survives_any_valid_argument", examples=MANY)
class ReadsArgumentsAsAscii(Dies):
    """Exits at a non-ASCII character in an argument of a tool."""

    def kills(self, line: bytes, message: Any) -> bool:
        called = identified(message) and message["method"] == "tools/call"
        given = params(message).get("arguments") if called else None
        texts = given.values() if isinstance(given, dict) else ()
        return any(isinstance(text, str) and not text.isascii() for text in texts)


@mutant("tools-validate-inputs", found_by="refuses_any_invalid_argument", examples=MANY)
class AcceptsObjectsWithTwoMembers(Fault):
    """Accepts an object of two members in place of a text argument."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        given = params(message).get("arguments") if identified(message) else None
        values = given.values() if isinstance(given, dict) else ()
        if any(isinstance(value, dict) and len(value) > 1 for value in values):
            self.answer(message, {"content": [{"type": "text", "text": "done"}]})
            return None
        return line


@mutant(
    "pagination-invalid-cursor-graceful",
    found_by="answers_any_cursor",
    examples=MANY,
    revision=MODERN,
)
class DiesOfNonAsciiCursors(Dies):
    """Exits at a cursor with a non-ASCII character."""

    def kills(self, line: bytes, message: Any) -> bool:
        cursor = params(message).get("cursor") if identified(message) else None
        return isinstance(cursor, str) and not cursor.isascii()


@mutant("resources-validate-uris", found_by="answers_any_uri", examples=MANY)
class HangsOnBracesInUris(Fault):
    """Never answers a request for a URI with a brace."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        uri = params(message).get("uri") if identified(message) else None
        return None if isinstance(uri, str) and re.search(r"[{}]", uri) else line


@control("generated-same-answer", found_by="keeps_answers_apart", examples=MANY, revision=MODERN)
class LimitsABurst(Fault):
    """Refuses requests with an error of its own while twelve others are served."""

    served: ClassVar[set[Any]] = set()

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if identified(message) and message.get("method") != "server/discover":
            if len(self.served) >= 12:
                self.refuse(message, 429, "Too many requests")
                return None
            self.served.add(message["id"])
        return line

    def said(self, message: Any, request: Json) -> Out:
        if self.done or not request:
            return message  # type: ignore[no-any-return]
        self.later(0.02, lambda: self.finish(message, request))
        return None

    def finish(self, message: Json, request: Json) -> None:
        """Answer a request, and serve the next."""
        self.served.discard(request["id"])
        self.emit(message)


@control("generated-same-answer", found_by="keeps_answers_apart", examples=MANY)
class ListsMoreAfterADigitId(Fault):
    """Lists one more resource after a list request with an id of digits."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "resources/list" and "result" in message:
            grown = self.root.parent / "grown"
            if isinstance(request["id"], str):
                grown.touch()
            if grown.exists():
                message["result"]["resources"].append({"uri": "workspace:///new", "name": "new"})
        return message  # type: ignore[no-any-return]
