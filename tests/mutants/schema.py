"""Servers that break a rule of basic/schema: one member of another type than its revision has.

A chapter that judges such a member itself takes its mutant over, once it is judged (``moves``).
"""

from typing import ClassVar

from tests.mutants.kit import (
    MODERN,
    AskingTool,
    Fault,
    Json,
    SaysMore,
    adds,
    has,
    mutant,
    mutants,
    on,
    puts,
)

TEXT: Json = {"type": "text", "text": "done"}


class RewritesTools(Fault):
    """Changes the result of tools/list."""

    said = on("tools/list", lambda self, result: self.rewrite(result))

    def rewrite(self, result: Json) -> None:
        """Change it in place."""


mutants("schema-result-conformance", of=RewritesTools, moves="tools-definition-shape")(
    LeavesOutInputSchemas=has(
        "Lists a tool without parameters and without an input schema.",
        rewrite=adds("tools", {"name": "now", "description": "Says the time."}),
    )
)


@mutant("schema-result-conformance", revision="2025-06-18", moves="tools-definition-shape")
class WritesNullForNoDescription(RewritesTools):
    """Writes the missing description of a tool as null."""

    def rewrite(self, result: Json) -> None:
        schema = {"type": "object"}
        result["tools"].append({"name": "now", "description": None, "inputSchema": schema})


mutants(
    "schema-result-conformance",
    of=RewritesTools,
    revision="2024-11-05",
    moves="tools-input-schema-type-object",
)(
    TypesSchemasAsLists=has(
        "Types an input schema as a list of one type.",
        rewrite=adds("tools", {"name": "now", "inputSchema": {"type": ["object"]}}),
    )
)


@mutant("schema-result-conformance", revision="2025-03-26", moves="tools-annotations-shape")
class WritesAHintAsText(RewritesTools):
    """Writes "yes" for a boolean hint."""

    def rewrite(self, result: Json) -> None:
        hints = {"idempotentHint": "yes"}
        tool = {"name": "now", "inputSchema": {"type": "object"}, "annotations": hints}
        result["tools"].append(tool)


mutants(
    "schema-result-conformance",
    of=RewritesTools,
    moved="warn",
    moves="pagination-next-cursor-string",
)(
    EndsListsWithANullCursor=has(
        "Writes null for the cursor of the last page.", rewrite=puts("nextCursor", None)
    )
)
mutants(
    "schema-result-conformance", of=RewritesTools, revision=MODERN, moves="caching-scope-value"
)(InventsACacheScope=has("Uses a third cache scope.", rewrite=puts("cacheScope", "team")))


@mutant(
    "schema-result-conformance",
    outcome="warn",
    moves="tools-input-schema-properties-shape",
    moved="warn",
)
class DescribesAParameterWithTrue(RewritesTools):
    """Gives a parameter the schema true."""

    def rewrite(self, result: Json) -> None:
        schema = {"type": "object", "properties": {"anything": True}}
        result["tools"].append({"name": "now", "inputSchema": schema})


class Answers(AskingTool):
    """Answers a call of its tool with changed content."""

    result: ClassVar[Json]

    def on_ask(self, request: Json) -> None:
        self.answer(request, self.result)


mutants("schema-result-conformance", of=Answers, moves="server-content-block-types")(
    SendsContentWithoutAType=has(
        "Sends a content item with only a text member.", result={"content": [{"text": "done"}]}
    )
)
mutants(
    "schema-result-conformance", of=Answers, revision="2025-06-18", moves="tools-call-result-shape"
)(
    SendsContentAsText=has(
        "Writes a string for the list of content items.", result={"content": "done"}
    )
)
mutants(
    "schema-result-conformance",
    of=Answers,
    revision=MODERN,
    moves="server-annotations-audience-roles",
)(
    AddressesTheSystem=has(
        "Addresses a content item to an undefined role.",
        result={"content": [{**TEXT, "annotations": {"audience": ["system"]}}]},
    )
)
mutants("schema-result-conformance", of=Answers)(
    AnnotatesWithAList=has(
        "Annotates a content item with a list.",
        result={"content": [{**TEXT, "annotations": ["user"]}]},
    )
)
mutants(
    "schema-result-conformance",
    of=Answers,
    revision="2024-11-05",
    moves="server-content-block-types-2024-11-05",
)(
    SendsAudioTooEarly=has(
        "Sends audio in a revision without audio.",
        result={"content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]},
    )
)
mutants(
    "schema-result-conformance",
    of=Answers,
    revision="2025-03-26",
    moves="server-content-block-types-2025-03-26",
)(
    SendsLinksTooEarly=has(
        "Sends a resource link in a revision without links.",
        result={"content": [{"type": "resource_link", "uri": "a:b", "name": "b"}]},
    )
)
mutants("schema-result-conformance", of=Answers, moves="tools-structured-content-object")(
    StructuresContentAsAList=has(
        "Sends structured content that is a list, which only the next revision allows.",
        result={"content": [TEXT], "structuredContent": [1, 2]},
    )
)
mutants(
    "schema-result-conformance", of=Answers, moves="server-binary-content-base64", outcome="warn"
)(
    WritesImagesAsDataUris=has(
        "Puts a data URI where the base64 of an image goes.",
        result={
            "content": [
                {"type": "image", "data": "data:image/png;base64,AAAA", "mimeType": "image/png"}
            ]
        },
    )
)


class Notifies(SaysMore):
    """Sends a notification after each list of tools."""

    method: ClassVar[str]
    params: ClassVar[Json]

    def more(self) -> None:
        self.emit({"jsonrpc": "2.0", "method": self.method, "params": self.params})


mutants(
    "schema-result-conformance",
    of=Notifies,
    revision="2025-06-18",
    moves="cancellation-notification-shape",
)(
    CancelsNothing=has(
        "Cancels without a request id.",
        method="notifications/cancelled",
        params={"reason": "shutting down"},
    )
)
mutants("schema-result-conformance", of=Notifies, moves="logging-level-enum")(
    LogsWarnings=has(
        "Uses the log level warn.",
        method="notifications/message",
        params={"level": "warn", "data": "disk is almost full"},
    )
)
