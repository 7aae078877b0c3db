"""Servers that break a rule of basic/schema: one member of another type than its revision has.

A chapter that judges such a member itself takes its mutant over, once it is judged (``moves``).
"""

from typing import Any, ClassVar

from tests.mutants.kit import MODERN, AskingTool, Fault, Json, Out, SaysMore, mutant

TEXT: Json = {"type": "text", "text": "done"}

# --- lists


class RewritesTools(Fault):
    """Changes the result of tools/list."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tools/list" and "result" in message:
            self.rewrite(message["result"])
        return message  # type: ignore[no-any-return]

    def rewrite(self, result: Json) -> None:
        """Change it in place."""


@mutant("schema-result-conformance", moves="tools-definition-shape")
class LeavesOutInputSchemas(RewritesTools):
    """Lists a tool without parameters and without an input schema."""

    def rewrite(self, result: Json) -> None:
        result["tools"].append({"name": "now", "description": "Says the time."})


@mutant("schema-result-conformance", revision="2025-06-18", moves="tools-definition-shape")
class WritesNullForNoDescription(RewritesTools):
    """Writes the missing description of a tool as null."""

    def rewrite(self, result: Json) -> None:
        schema = {"type": "object"}
        result["tools"].append({"name": "now", "description": None, "inputSchema": schema})


@mutant("schema-result-conformance", revision="2024-11-05", moves="tools-input-schema-type-object")
class TypesSchemasAsLists(RewritesTools):
    """Types an input schema as a list of one type."""

    def rewrite(self, result: Json) -> None:
        result["tools"].append({"name": "now", "inputSchema": {"type": ["object"]}})


@mutant("schema-result-conformance", revision="2025-03-26", moves="tools-annotations-shape")
class WritesAHintAsText(RewritesTools):
    """Writes "yes" for a boolean hint."""

    def rewrite(self, result: Json) -> None:
        hints = {"idempotentHint": "yes"}
        tool = {"name": "now", "inputSchema": {"type": "object"}, "annotations": hints}
        result["tools"].append(tool)


@mutant("schema-result-conformance", moves="pagination-next-cursor-string", moved="warn")
class EndsListsWithANullCursor(RewritesTools):
    """Writes null for the cursor of the last page."""

    def rewrite(self, result: Json) -> None:
        result["nextCursor"] = None


@mutant("schema-result-conformance", revision=MODERN, moves="caching-scope-value")
class InventsACacheScope(RewritesTools):
    """Uses a third cache scope."""

    def rewrite(self, result: Json) -> None:
        result["cacheScope"] = "team"


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


# --- contents


class Answers(AskingTool):
    """Answers a call of its tool with changed content."""

    result: ClassVar[Json]

    def on_ask(self, request: Json) -> None:
        self.answer(request, self.result)


@mutant("schema-result-conformance", moves="server-content-block-types")
class SendsContentWithoutAType(Answers):
    """Sends a content item with only a text member."""

    result: ClassVar[Json] = {"content": [{"text": "done"}]}


@mutant("schema-result-conformance", revision="2025-06-18", moves="tools-call-result-shape")
class SendsContentAsText(Answers):
    """Writes a string for the list of content items."""

    result: ClassVar[Json] = {"content": "done"}


@mutant("schema-result-conformance", revision=MODERN, moves="server-annotations-audience-roles")
class AddressesTheSystem(Answers):
    """Addresses a content item to an undefined role."""

    result: ClassVar[Json] = {"content": [{**TEXT, "annotations": {"audience": ["system"]}}]}


@mutant("schema-result-conformance")
class AnnotatesWithAList(Answers):
    """Annotates a content item with a list."""

    result: ClassVar[Json] = {"content": [{**TEXT, "annotations": ["user"]}]}


@mutant(
    "schema-result-conformance",
    revision="2024-11-05",
    moves="server-content-block-types-2024-11-05",
)
class SendsAudioTooEarly(Answers):
    """Sends audio in a revision without audio."""

    result: ClassVar[Json] = {
        "content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]
    }


@mutant(
    "schema-result-conformance",
    revision="2025-03-26",
    moves="server-content-block-types-2025-03-26",
)
class SendsLinksTooEarly(Answers):
    """Sends a resource link in a revision without links."""

    result: ClassVar[Json] = {"content": [{"type": "resource_link", "uri": "a:b", "name": "b"}]}


@mutant("schema-result-conformance", moves="tools-structured-content-object")
class StructuresContentAsAList(Answers):
    """Sends structured content that is a list, which only the next revision allows."""

    result: ClassVar[Json] = {"content": [TEXT], "structuredContent": [1, 2]}


@mutant("schema-result-conformance", outcome="warn", moves="server-binary-content-base64")
class WritesImagesAsDataUris(Answers):
    """Puts a data URI where the base64 of an image goes."""

    result: ClassVar[Json] = {
        "content": [
            {"type": "image", "data": "data:image/png;base64,AAAA", "mimeType": "image/png"}
        ]
    }


# --- notifications


class Notifies(SaysMore):
    """Sends a notification after each list of tools."""

    method: ClassVar[str]
    params: ClassVar[Json]

    def more(self) -> None:
        self.emit({"jsonrpc": "2.0", "method": self.method, "params": self.params})


@mutant("schema-result-conformance", revision="2025-06-18", moves="cancellation-notification-shape")
class CancelsNothing(Notifies):
    """Cancels without a request id."""

    method = "notifications/cancelled"
    params: ClassVar[Json] = {"reason": "shutting down"}


@mutant("schema-result-conformance", moves="logging-level-enum")
class LogsWarnings(Notifies):
    """Uses the log level warn."""

    method = "notifications/message"
    params: ClassVar[Json] = {"level": "warn", "data": "disk is almost full"}
