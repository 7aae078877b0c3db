"""Servers that break a rule of server/tools: how tools are declared, listed and described."""

import os
from typing import Any, ClassVar

from tests.mutants.kit import (
    MODERN,
    Fault,
    Json,
    Out,
    control,
    is_modern,
    misfit,
    mutant,
    params,
    refusal,
)

CHANGED = "notifications/tools/list_changed"
TEXT: Json = {"type": "text", "text": "done"}


class Tools(Fault):
    """Changes what it declares and lists."""

    def said(self, message: Any, request: Json) -> Out:
        method = request.get("method")
        if not isinstance(message, dict) or "result" not in message:
            return message
        if method in {"initialize", "server/discover"}:
            self.declare(message["result"]["capabilities"])
        elif method == "tools/list":
            self.list(message["result"])
        return message

    def declare(self, capabilities: Json) -> None:
        """Change the capabilities."""

    def list(self, result: Json) -> None:
        """Change a list."""


class OneMore(Tools):
    """Lists one more tool."""

    TOOL: ClassVar[Json] = {}

    def list(self, result: Json) -> None:
        more = {"name": "more", "inputSchema": {"type": "object"}}
        result["tools"].append({**more, **self.TOOL})


class Calls(OneMore):
    """Has one more tool, ``more``, which may be called and needs no arguments."""

    RESULT: ClassVar[Json] = {"content": [TEXT]}

    def heard(self, line: bytes, message: Any) -> bytes | None:
        called = isinstance(message, dict) and message.get("method") == "tools/call"
        if not called or params(message).get("name") != "more":
            return line
        unfit = misfit(message, self.TOOL)
        if unfit is None:
            self.answer(message, self.RESULT)
        else:
            self.refuse(message, *unfit)
        return None

    def list(self, result: Json) -> None:
        more = {"name": "more", "annotations": {"readOnlyHint": True, "openWorldHint": False}}
        result["tools"].insert(0, {**more, "inputSchema": {"type": "object"}, **self.TOOL})


# --- declaring and listing


class _Undeclared(Tools):
    """Declares no tools."""

    def declare(self, capabilities: Json) -> None:
        del capabilities["tools"]


@mutant("tools-capability-declared")
class ListsUndeclaredTools(_Undeclared):
    """Lists tools it did not declare."""


@mutant("tools-capability-declared", revision=MODERN)
class ListsUndeclaredToolsStateless(_Undeclared):
    """Lists tools it did not declare, in 2026-07-28."""


@control("tools-capability-declared")
class ListsNoUndeclaredTool(_Undeclared):
    """Gives an empty list where it declared no tools."""

    def list(self, result: Json) -> None:
        result["tools"] = []


@mutant("tools-list-result-shape")
class ListsToolsByName(Tools):
    """Gives its tools as an object, by name."""

    def list(self, result: Json) -> None:
        result["tools"] = {tool["name"]: tool for tool in result["tools"]}


@mutant("tools-list-result-shape", revision=MODERN)
class ListsToolsNowhere(Tools):
    """Leaves its tools out of the list."""

    def list(self, result: Json) -> None:
        del result["tools"]


class _CannotList(Tools):
    """Declares tools and does not list them."""

    CODE: ClassVar[int] = -32601

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tools/list" and is_modern(request):
            return refusal(request, self.CODE, "Not now")
        return super().said(message, request)


@mutant("tools-list-must-answer", revision=MODERN)
class HasNoListOfTools(_CannotList):
    """Declares tools and has no tools/list."""


@mutant("tools-list-must-answer", revision=MODERN)
class FailsToListTools(_CannotList):
    """Answers tools/list with an internal error."""

    CODE = -32603


@mutant("tools-list-not-per-connection", revision=MODERN)
class HasAToolForEachConnection(OneMore):
    """Lists a tool named after its process."""

    def list(self, result: Json) -> None:
        super().list(result)
        result["tools"][-1]["name"] = f"more-{os.getpid()}"


@mutant("tools-list-not-per-connection", revision=MODERN)
class UnlocksATool(OneMore):
    """Lists one more tool once the prompts were listed on the connection."""

    def list(self, result: Json) -> None:
        if any(asked.get("method") == "prompts/list" for asked in self.asked.values()):
            super().list(result)


@mutant("tools-list-deterministic-order", revision=MODERN)
class ShufflesItsTools(Tools):
    """Lists its tools the other way round every second time."""

    times = 0

    def list(self, result: Json) -> None:
        self.times += 1
        if self.times % 2:
            result["tools"].reverse()


@mutant("tools-list-deterministic-order", revision=MODERN)
class OrdersItsToolsByChance(Tools):
    """Lists its tools in an order of each process."""

    def list(self, result: Json) -> None:
        result["tools"].sort(key=lambda tool: hash((os.getpid(), tool["name"])))


@mutant("tools-name-unique")
class ListsAToolTwice(Tools):
    """Lists the same tool twice."""

    def list(self, result: Json) -> None:
        result["tools"].append(dict(result["tools"][0]))


@mutant("tools-name-length")
class NamesAToolAtLength(OneMore):
    """Gives a tool a name of 129 characters."""

    TOOL: ClassVar[Json] = {"name": "more-" + "x" * 124}


@mutant("tools-name-length", revision=MODERN)
class NamesAToolNothing(OneMore):
    """Gives a tool an empty name."""

    TOOL: ClassVar[Json] = {"name": ""}


@mutant("tools-name-characters")
class NamesAToolByAPath(OneMore):
    """Gives a tool a name with a slash in it."""

    TOOL: ClassVar[Json] = {"name": "file/more"}


@control("tools-name-length", "tools-name-characters", "tools-name-unique")
class NamesAToolToTheLimit(OneMore):
    """Gives a tool a name of 128 characters, of every kind that is allowed."""

    TOOL: ClassVar[Json] = {"name": "More.m_o-r0" + "x" * 117}


# --- describing


@mutant("tools-definition-shape", revision=MODERN)
class EntitlesAToolWithANumber(OneMore):
    """Gives a tool a title that is a number."""

    TOOL: ClassVar[Json] = {"title": 7}


@mutant("tools-input-schema-type-object", revision=MODERN)
class TypesNoSchemaAtAll(OneMore):
    """Gives a tool without parameters the schema {}."""

    TOOL: ClassVar[Json] = {"inputSchema": {}}


@mutant("tools-input-schema-properties-shape", revision="2025-03-26")
class ListsPropertiesAsAnArray(OneMore):
    """Writes an empty array for no properties."""

    TOOL: ClassVar[Json] = {"inputSchema": {"type": "object", "properties": []}}


@mutant("tools-input-schema-properties-shape")
class RequiresOnePropertyBare(OneMore):
    """Writes the one name that is required as a string."""

    TOOL: ClassVar[Json] = {
        "inputSchema": {"type": "object", "properties": {"a": {}}, "required": "a"}
    }


@mutant("tools-input-schema-not-null")
class HasNullForASchema(OneMore):
    """Gives a tool without parameters null for a schema."""

    TOOL: ClassVar[Json] = {"inputSchema": None}


@mutant("tools-input-schema-not-null", revision=MODERN)
class HasTrueForASchema(OneMore):
    """Gives a tool that takes anything true for a schema."""

    TOOL: ClassVar[Json] = {"inputSchema": True}


@mutant("tools-input-schema-valid-any-dialect", revision="2024-11-05")
class KnowsATypeOfItsOwn(OneMore):
    """Types a property as text, which no dialect knows."""

    TOOL: ClassVar[Json] = {
        "inputSchema": {"type": "object", "properties": {"a": {"type": "text"}}}
    }


@mutant("tools-input-schema-valid-any-dialect", revision="2025-06-18")
class RequiresAnOutputInWords(OneMore):
    """Writes a string for what an output schema requires."""

    TOOL: ClassVar[Json] = {"outputSchema": {"type": "object", "required": "a"}}


@mutant("tools-input-schema-valid-any-dialect", revision="2025-06-18")
class BreaksTheDialectItNames(OneMore):
    """Names draft-07 and puts a boolean for a limit, as only draft-04 allowed."""

    TOOL: ClassVar[Json] = {
        "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"a": {"type": "number", "minimum": 0, "exclusiveMinimum": True}},
        }
    }


@control("tools-input-schema-valid-any-dialect", revision="2025-06-18")
class WritesDraft04(OneMore):
    """Puts a boolean for a limit, as draft-04 allowed, and names no dialect."""

    TOOL: ClassVar[Json] = {
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "number", "minimum": 0, "exclusiveMinimum": True}},
        }
    }


@mutant("tools-output-schema-object-root")
class StructuresAListTooSoon(OneMore):
    """Gives a tool an output schema of type array, in the revision before that is allowed."""

    TOOL: ClassVar[Json] = {"outputSchema": {"type": "array", "items": {}}}


@control("tools-definition-shape", revision=MODERN)
class StructuresAList(OneMore):
    """Gives a tool an output schema of type array, where that is allowed."""

    TOOL: ClassVar[Json] = {"outputSchema": {"type": "array", "items": {}}}


@mutant("tools-annotations-shape", revision=MODERN)
class HintsWithNull(OneMore):
    """Writes out a hint it does not give, as null."""

    TOOL: ClassVar[Json] = {"annotations": {"destructiveHint": None}}


# --- changes


class _Changes(OneMore):
    """Lists one more tool while it is ``grown``."""

    grown = False
    lists = 0

    def list(self, result: Json) -> None:
        self.lists += 1
        if not self.grown and self.is_time():
            self.grown = True
            self.changed()
        if self.grown:
            super().list(result)

    def is_time(self) -> bool:
        """Whether the list grows now: with the third time it is asked for."""
        return self.lists == 3

    def changed(self) -> None:
        """Act on the change."""


@mutant("tools-list-changed-notification-legacy")
class ChangesItsToolsInSilence(_Changes):
    """Declares listChanged and does not say that the list has changed."""


@control("tools-list-changed-notification-legacy", revision="2024-11-05")
class TellsOfItsNewTool(_Changes):
    """Says that the list has changed."""

    def changed(self) -> None:
        self.tell({"jsonrpc": "2.0", "method": CHANGED})


class _Streams(_Changes):
    """Lists one more tool on the second list of a stream that asks for changes."""

    stream: Any = None

    def heard(self, line: bytes, message: Any) -> bytes | None:
        method = message.get("method") if isinstance(message, dict) else None
        wanted = {"toolsListChanged": True}
        if method == "subscriptions/listen" and params(message).get("notifications") == wanted:
            self.stream, self.lists = message["id"], 0
            self.notify("notifications/subscriptions/acknowledged", {"notifications": wanted})
            return None
        ends = method == "notifications/cancelled" and self.stream is not None
        if ends and params(message).get("requestId") == self.stream:
            self.stream, self.grown = None, False
            return None
        return line

    def notify(self, method: str, body: Json) -> None:
        """Write a notification on the stream."""
        own = {"_meta": {"io.modelcontextprotocol/subscriptionId": self.stream}}
        self.tell({"jsonrpc": "2.0", "method": method, "params": {**own, **body}})

    def is_time(self) -> bool:
        return self.stream is not None and self.lists == 2


@mutant("tools-list-changed-notification", revision=MODERN)
class ChangesToolsUnderASilentStream(_Streams):
    """Declares listChanged and does not tell a stream that the list has changed."""


@control("tools-list-changed-notification", revision=MODERN)
class TellsTheStreamOfTools(_Streams):
    """Tells a stream that the list has changed."""

    def changed(self) -> None:
        self.notify(CHANGED, {})
