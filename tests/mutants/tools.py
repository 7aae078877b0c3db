"""Servers that break a rule of server/tools: how tools are declared, listed and described."""

import os
import random
from typing import Any, ClassVar

from tests.mutants.kit import (
    MODERN,
    Json,
    control,
    misfit,
    mutant,
    params,
)
from tests.mutants.lists import (
    Announcing,
    CannotList,
    Growing,
    Listed,
    ListsByName,
    ListsTheFirstTwice,
    NotifyingSubscribers,
    OmitsTheList,
    Subscribed,
    Undeclared,
)

CHANGED = "notifications/tools/list_changed"
TEXT: Json = {"type": "text", "text": "done"}


class Tools(Listed):
    """Changes the declaration and the list of its tools."""

    feature = "tools"


class OneMore(Tools):
    """Lists one additional tool."""

    TOOL: ClassVar[Json] = {}

    def list(self, result: Json) -> None:
        self.grow(result)

    def grow(self, result: Json) -> None:
        more = {"name": "more", "inputSchema": {"type": "object"}}
        result["tools"].append({**more, **self.TOOL})


class Calls(OneMore):
    """Has one additional callable tool, ``more``, without arguments."""

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

    def grow(self, result: Json) -> None:
        more = {"name": "more", "annotations": {"readOnlyHint": True, "openWorldHint": False}}
        result["tools"].insert(0, {**more, "inputSchema": {"type": "object"}, **self.TOOL})


# --- declaring and listing


@mutant("tools-capability-declared")
class ListsUndeclaredTools(Tools, Undeclared):
    """Lists tools without declaring them."""


@mutant("tools-capability-declared", "subscriptions-ack-subset=warn", revision=MODERN)
class ListsUndeclaredToolsStateless(Tools, Undeclared):
    """Lists tools without declaring them, in 2026-07-28."""


@control("tools-capability-declared")
class ListsNoUndeclaredTool(Tools, Undeclared):
    """Returns an empty list of undeclared tools."""

    def list(self, result: Json) -> None:
        result["tools"] = []


@mutant("tools-list-result-shape")
class ListsToolsByName(Tools, ListsByName):
    """Gives its tools as an object, by name."""


@mutant("tools-list-result-shape", revision=MODERN)
class OmitsTheListOfTools(Tools, OmitsTheList):
    """Leaves its tools out of the list."""


@mutant("tools-list-must-answer", revision=MODERN)
class HasNoListOfTools(Tools, CannotList):
    """Declares tools and has no tools/list."""


@mutant("tools-list-must-answer", revision=MODERN)
class FailsToListTools(Tools, CannotList):
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
    """Lists one more tool after the prompts were listed on the connection."""

    def list(self, result: Json) -> None:
        if any(asked.get("method") == "prompts/list" for asked in self.asked.values()):
            super().list(result)


@mutant("tools-list-deterministic-order", revision=MODERN)
class ReversesItsTools(Tools):
    """Lists its tools in reverse order every second time."""

    times = 0

    def list(self, result: Json) -> None:
        self.times += 1
        if self.times % 2:
            result["tools"].reverse()


@mutant("tools-list-deterministic-order", revision=MODERN)
class OrdersItsToolsByProcess(Tools):
    """Lists its tools in another order in each process."""

    def list(self, result: Json) -> None:
        random.Random(os.getpid()).shuffle(result["tools"])  # noqa: S311


@mutant("tools-name-unique")
class ListsAToolTwice(Tools, ListsTheFirstTwice):
    """Lists the same tool twice."""


@mutant("tools-name-length")
class NamesAToolTooLong(OneMore):
    """Gives a tool a name of 129 characters."""

    TOOL: ClassVar[Json] = {"name": "more-" + "x" * 124}


@mutant("tools-name-length", revision=MODERN)
class NamesAToolNothing(OneMore):
    """Gives a tool an empty name."""

    TOOL: ClassVar[Json] = {"name": ""}


@mutant("tools-name-characters")
class NamesAToolByAPath(OneMore):
    """Gives a tool a name with a slash."""

    TOOL: ClassVar[Json] = {"name": "file/more"}


@control("tools-name-length", "tools-name-characters", "tools-name-unique")
class NamesAToolToTheLimit(OneMore):
    """Gives a tool a name of 128 characters, of every allowed kind."""

    TOOL: ClassVar[Json] = {"name": "More.m_o-r0" + "x" * 117}


# --- describing


@mutant("tools-definition-shape", revision=MODERN)
class GivesAToolANumericTitle(OneMore):
    """Gives a tool a number as its title."""

    TOOL: ClassVar[Json] = {"title": 7}


@mutant("tools-input-schema-type-object", revision=MODERN)
class GivesAnEmptyInputSchema(OneMore):
    """Gives a tool without parameters the schema {}."""

    TOOL: ClassVar[Json] = {"inputSchema": {}}


@mutant("tools-input-schema-properties-shape", revision="2025-03-26")
class ListsPropertiesAsAnArray(OneMore):
    """Writes empty properties as an array."""

    TOOL: ClassVar[Json] = {"inputSchema": {"type": "object", "properties": []}}


@mutant("tools-input-schema-properties-shape")
class WritesRequiredPropertiesAsText(OneMore):
    """Writes a single required name as a string."""

    TOOL: ClassVar[Json] = {
        "inputSchema": {"type": "object", "properties": {"a": {}}, "required": "a"}
    }


@mutant("tools-input-schema-not-null")
class HasNullForASchema(OneMore):
    """Gives a tool without parameters the schema null."""

    TOOL: ClassVar[Json] = {"inputSchema": None}


@mutant("tools-input-schema-not-null", revision=MODERN)
class HasTrueForASchema(OneMore):
    """Gives a tool with any parameters the schema true."""

    TOOL: ClassVar[Json] = {"inputSchema": True}


@mutant("tools-input-schema-valid-any-dialect", revision="2024-11-05")
class InventsASchemaType(OneMore):
    """Gives a property the type text, which no dialect has."""

    TOOL: ClassVar[Json] = {
        "inputSchema": {"type": "object", "properties": {"a": {"type": "text"}}}
    }


@mutant("tools-input-schema-valid-any-dialect", revision="2025-06-18")
class WritesRequiredOutputAsText(OneMore):
    """Writes required in an output schema as a string."""

    TOOL: ClassVar[Json] = {"outputSchema": {"type": "object", "required": "a"}}


@mutant("tools-input-schema-valid-any-dialect", revision="2025-06-18")
class BreaksTheDialectItNames(OneMore):
    """Names draft-07 and uses a boolean limit, which only draft-04 has."""

    TOOL: ClassVar[Json] = {
        "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"a": {"type": "number", "minimum": 0, "exclusiveMinimum": True}},
        }
    }


@control("tools-input-schema-valid-any-dialect", revision="2025-06-18")
class WritesDraft04(OneMore):
    """Uses a boolean limit as in draft-04, and names no dialect."""

    TOOL: ClassVar[Json] = {
        "inputSchema": {
            "type": "object",
            "properties": {"a": {"type": "number", "minimum": 0, "exclusiveMinimum": True}},
        }
    }


@mutant("tools-output-schema-object-root")
class OutputsAListTooEarly(OneMore):
    """Gives a tool an output schema of type array, in a revision that forbids it."""

    TOOL: ClassVar[Json] = {"outputSchema": {"type": "array", "items": {}}}


@control("tools-definition-shape", revision=MODERN)
class OutputsAList(OneMore):
    """Gives a tool an output schema of type array, in a revision that allows it."""

    TOOL: ClassVar[Json] = {"outputSchema": {"type": "array", "items": {}}}


@mutant("tools-annotations-shape", revision=MODERN)
class WritesAHintAsNull(OneMore):
    """Writes a missing hint as null."""

    TOOL: ClassVar[Json] = {"annotations": {"destructiveHint": None}}


# --- changes


@mutant("tools-list-changed-notification-legacy")
class ChangesItsToolsSilently(Growing, OneMore):
    """Declares listChanged and does not announce changes of the list."""


@control("tools-list-changed-notification-legacy", revision="2024-11-05")
class AnnouncesItsNewTool(Announcing, OneMore):
    """Announces changes of the list."""


@mutant("tools-list-changed-notification", "subscriptions-graceful-close=note", revision=MODERN)
class ChangesToolsWithoutNotifyingSubscribers(Subscribed, OneMore):
    """Declares listChanged and does not notify a subscription of a changed list."""


@control(
    "tools-list-changed-notification",
    revision=MODERN,
    breaks=("subscriptions-graceful-close=note",),
)
class NotifiesSubscribersOfTools(NotifyingSubscribers, OneMore):
    """Notifies a subscription of a changed list."""
