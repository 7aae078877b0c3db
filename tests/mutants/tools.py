"""Servers that break a rule of server/tools: how tools are declared, listed and described."""

import os
import random
from typing import Any, ClassVar

from tests.mutants.kit import MODERN, Json, controls, has, misfit, mutant, mutants, params, puts
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


class Tools(Listed, feature="tools"):
    """Changes the declaration and the list of its tools."""


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


mutants("tools-capability-declared", of=(Tools, Undeclared))(
    ListsUndeclaredTools="Lists tools without declaring them."
)
mutants(
    "tools-capability-declared",
    "subscriptions-ack-subset=warn",
    of=(Tools, Undeclared),
    revision=MODERN,
)(ListsUndeclaredToolsStateless="Lists tools without declaring them, in 2026-07-28.")
controls("tools-capability-declared", of=(Tools, Undeclared))(
    ListsNoUndeclaredTool=has("Returns an empty list of undeclared tools.", list=puts("tools", []))
)
mutants("tools-list-result-shape", of=(Tools, ListsByName))(
    ListsToolsByName="Gives its tools as an object, by name."
)
mutants("tools-list-result-shape", of=(Tools, OmitsTheList), revision=MODERN)(
    OmitsTheListOfTools="Leaves its tools out of the list."
)
mutants("tools-list-must-answer", of=(Tools, CannotList), revision=MODERN)(
    HasNoListOfTools="Declares tools and has no tools/list."
)


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


mutants("tools-list-deterministic-order", of=Tools, revision=MODERN)(
    OrdersItsToolsByProcess=has(
        "Lists its tools in another order in each process.",
        list=lambda self, result: random.Random(os.getpid()).shuffle(result["tools"]),  # noqa: S311
    )
)
mutants("tools-name-unique", of=(Tools, ListsTheFirstTwice))(
    ListsAToolTwice="Lists the same tool twice."
)
mutants("tools-name-length", of=OneMore)(
    NamesAToolTooLong=has(
        "Gives a tool a name of 129 characters.", TOOL={"name": "more-" + "x" * 124}
    ),
    NamesAToolNothing=has("Gives a tool an empty name.", MODERN, TOOL={"name": ""}),
)
mutants("tools-name-characters", of=OneMore)(
    NamesAToolByAPath=has("Gives a tool a name with a slash.", TOOL={"name": "file/more"})
)
controls("tools-name-length", "tools-name-characters", "tools-name-unique", of=OneMore)(
    NamesAToolToTheLimit=has(
        "Gives a tool a name of 128 characters, of every allowed kind.",
        TOOL={"name": "More.m_o-r0" + "x" * 117},
    )
)
mutants("tools-definition-shape", of=OneMore, revision=MODERN)(
    GivesAToolANumericTitle=has("Gives a tool a number as its title.", TOOL={"title": 7})
)
mutants("tools-input-schema-type-object", of=OneMore, revision=MODERN)(
    GivesAnEmptyInputSchema=has(
        "Gives a tool without parameters the schema {}.", TOOL={"inputSchema": {}}
    )
)
mutants("tools-input-schema-properties-shape", of=OneMore)(
    WritesRequiredPropertiesAsText=has(
        "Writes a single required name as a string.",
        TOOL={"inputSchema": {"type": "object", "properties": {"a": {}}, "required": "a"}},
    )
)
mutants("tools-input-schema-not-null", of=OneMore)(
    HasNullForASchema=has(
        "Gives a tool without parameters the schema null.", TOOL={"inputSchema": None}
    ),
    HasTrueForASchema=has(
        "Gives a tool with any parameters the schema true.", MODERN, TOOL={"inputSchema": True}
    ),
)
mutants("tools-input-schema-valid-any-dialect", of=OneMore, revision="2025-06-18")(
    InventsASchemaType=has(
        "Gives a property the type text, which no dialect has.",
        "2024-11-05",
        TOOL={"inputSchema": {"type": "object", "properties": {"a": {"type": "text"}}}},
    ),
    WritesRequiredOutputAsText=has(
        "Writes required in an output schema as a string.",
        TOOL={"outputSchema": {"type": "object", "required": "a"}},
    ),
    BreaksTheDialectItNames=has(
        "Names draft-07 and uses a boolean limit, which only draft-04 has.",
        TOOL={
            "inputSchema": {
                "$schema": "http://json-schema.org/draft-07/schema#",
                "type": "object",
                "properties": {"a": {"type": "number", "minimum": 0, "exclusiveMinimum": True}},
            }
        },
    ),
)
controls("tools-input-schema-valid-any-dialect", of=OneMore, revision="2025-06-18")(
    WritesDraft04=has(
        "Uses a boolean limit as in draft-04, and names no dialect.",
        TOOL={
            "inputSchema": {
                "type": "object",
                "properties": {"a": {"type": "number", "minimum": 0, "exclusiveMinimum": True}},
            }
        },
    )
)
mutants("tools-output-schema-object-root", of=OneMore)(
    OutputsAListTooEarly=has(
        "Gives a tool an output schema of type array, in a revision that forbids it.",
        TOOL={"outputSchema": {"type": "array", "items": {}}},
    )
)
controls("tools-definition-shape", of=OneMore, revision=MODERN)(
    OutputsAList=has(
        "Gives a tool an output schema of type array, in a revision that allows it.",
        TOOL={"outputSchema": {"type": "array", "items": {}}},
    )
)
mutants("tools-annotations-shape", of=OneMore, revision=MODERN)(
    WritesAHintAsNull=has(
        "Writes a missing hint as null.", TOOL={"annotations": {"destructiveHint": None}}
    )
)
mutants(
    "tools-list-changed-notification-legacy",
    of=(Growing, OneMore),
    passes=("prompts-list-result-shape",),
)(ChangesItsToolsSilently="Declares listChanged and does not announce changes of the list.")
controls("tools-list-changed-notification-legacy", of=(Announcing, OneMore), revision="2024-11-05")(
    AnnouncesItsNewTool="Announces changes of the list."
)
mutants(
    "tools-list-changed-notification",
    "subscriptions-graceful-close=note",
    of=(Subscribed, OneMore),
    revision=MODERN,
)(
    ChangesToolsWithoutNotifyingSubscribers=(
        "Declares listChanged and does not notify a subscription of a changed list."
    )
)
controls(
    "tools-list-changed-notification",
    of=(NotifyingSubscribers, OneMore),
    revision=MODERN,
    breaks=("subscriptions-graceful-close=note",),
)(NotifiesSubscribersOfTools="Notifies a subscription of a changed list.")
