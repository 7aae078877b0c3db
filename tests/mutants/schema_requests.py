"""Servers that break a rule of basic/schema: a request to the client is not of its type."""

from typing import Any, ClassVar

from tests.mutants.asking import Asks
from tests.mutants.kit import (
    MODERN,
    AskingTool,
    Json,
    client_capabilities,
    control,
    is_modern,
    mutant,
)

TEXT: Json = {"type": "text", "text": "Which one?"}
SAMPLING: Json = {"messages": [{"role": "user", "content": TEXT}], "maxTokens": 100}
FORM: Json = {
    "message": "Which one?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Name", "maxLength": 20, "format": "email"},
            "size": {"type": "string", "enum": ["s", "m"], "enumNames": ["small", "medium"]},
            "count": {"type": "integer", "minimum": 1, "maximum": 5},
            "sure": {"type": "boolean", "default": False},
        },
        "required": ["name"],
    },
}
CHOICES: Json = {
    "one": {"type": "string", "oneOf": [{"const": "a", "title": "A"}], "default": "a"},
    "some": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1},
    "more": {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}},
}
LINK: Json = {
    "mode": "url",
    "message": "Sign in",
    "url": "https://a.example/",
    "elicitationId": "e",
}
TOOL: Json = {"name": "look", "inputSchema": {"type": "object"}}


def formed(**properties: Any) -> Json:
    """Ask for these properties."""
    return {"message": "?", "requestedSchema": {"type": "object", "properties": properties}}


@mutant("schema-result-conformance", revision="2024-11-05", moves="sampling-params-shape")
class SamplesWithoutALimit(Asks):
    """Asks for a completion without saying how long it may be."""

    method = "sampling/createMessage"
    params: ClassVar[Json] = {"messages": SAMPLING["messages"]}


@mutant(
    "schema-result-conformance", revision="2025-03-26", moves="sampling-message-shape-2025-03-26"
)
class SamplesWithAnArray(Asks):
    """Puts the one content block of a sampling message into an array."""

    method = "sampling/createMessage"
    params: ClassVar[Json] = {"messages": [{"role": "user", "content": [TEXT]}], "maxTokens": 5}


@mutant("schema-result-conformance", moves="sampling-message-shape")
class SamplesAsTheSystem(Asks):
    """Sends a sampling message in the role of the system."""

    method = "sampling/createMessage"
    params: ClassVar[Json] = {"messages": [{"role": "system", "content": TEXT}], "maxTokens": 5}


@mutant("schema-result-conformance", moves="sampling-model-preferences-shape")
class PrefersByName(Asks):
    """Gives the hints at a model as plain strings."""

    method = "sampling/createMessage"
    params: ClassVar[Json] = {**SAMPLING, "modelPreferences": {"hints": ["fast"]}}


@mutant(
    "schema-result-conformance",
    revision="2025-06-18",
    moves="elicitation-form-schema-primitive-2025-06-18",
)
class AsksForANestedForm(Asks):
    """Asks for an object inside the form."""

    method = "elicitation/create"
    params: ClassVar[Json] = formed(address={"type": "object", "properties": {}})


@mutant("schema-result-conformance", moves="elicitation-string-format")
class AsksForAFormatOfItsOwn(Asks):
    """Asks for a string in a format that forms do not have."""

    method = "elicitation/create"
    params: ClassVar[Json] = formed(phone={"type": "string", "format": "phone"})


@mutant("schema-result-conformance", moves="elicitation-url-params-2025-11-25")
class LinksWithoutAnId(Asks):
    """Sends the user to a URL without an id for the elicitation."""

    method = "elicitation/create"
    params: ClassVar[Json] = {"mode": "url", "message": "Sign in", "url": "https://a.example/"}


@mutant("schema-result-conformance")
class KeepsATaskForALongTime(Asks):
    """Wants its request run as a task, and says in words for how long."""

    method = "elicitation/create"
    params: ClassVar[Json] = {**FORM, "task": {"ttl": "long"}}

    def questions(self) -> list[tuple[str, Json]]:
        return super().questions() if "tasks" in self.client else []


@mutant("schema-result-conformance", moves="elicitation-url-required-error-shape")
class RequiresALinkWithoutSayingWhich(AskingTool):
    """Answers that the user has to visit a URL first, and names none."""

    def on_ask(self, request: Json) -> None:
        if "url" not in self.client.get("elicitation", {}):
            super().on_ask(request)
            return
        self.refuse(request, -32042, "Please sign in first", {"elicitations": [{"mode": "url"}]})


class _InterruptsTheWilling(AskingTool):
    """Answers a stateless client that can answer with what it wants to know first."""

    asks: ClassVar[Json]

    def on_ask(self, request: Json) -> None:
        able = client_capabilities(request)
        links = any(one.get("params", {}).get("mode") == "url" for one in self.asks.values())
        willing = {"elicitation", "sampling", "roots"} <= able.keys()
        if is_modern(request) and willing and (not links or "url" in able["elicitation"]):
            self.answer(request, {"resultType": "input_required", "inputRequests": self.asks})
        else:
            super().on_ask(request)


@mutant("schema-result-conformance", revision=MODERN, moves="elicitation-form-params-shape")
class AsksWithoutAForm(_InterruptsTheWilling):
    """Elicits with a message alone."""

    asks: ClassVar[Json] = {"who": {"method": "elicitation/create", "params": {"message": "?"}}}


@mutant("schema-result-conformance", revision=MODERN, moves="mrtr-request-kinds")
class AsksForThePrompts(_InterruptsTheWilling):
    """Wants an input of a kind that there is not."""

    asks: ClassVar[Json] = {"what": {"method": "prompts/list"}}


# --- in order


@control("schema-result-conformance")
class AsksInOrder(Asks):
    """Samples with tools, and elicits with a form of every kind of field and with a URL."""

    def questions(self) -> list[tuple[str, Json]]:
        content = [TEXT, {"type": "tool_use", "id": "1", "name": "look", "input": {}}]
        answer = {"type": "tool_result", "toolUseId": "1", "content": [TEXT]}
        messages = [
            {"role": "assistant", "content": content},
            {"role": "user", "content": [answer]},
        ]
        schema = {
            **FORM["requestedSchema"],
            "$schema": "https://json-schema.org/draft/2020-12/schema",
        }
        schema["properties"] = {**schema["properties"], **CHOICES}
        return [
            ("sampling/createMessage", {**SAMPLING, "messages": messages}),
            ("elicitation/create", {"mode": "form", "message": "?", "requestedSchema": schema}),
            ("elicitation/create", LINK),
            ("roots/list", {"_meta": {"progressToken": 7}}),
        ]


@control("schema-result-conformance", revision="2025-06-18")
class ElicitsInOrder(Asks):
    """Elicits with the fields of the first revision that could."""

    method = "elicitation/create"
    params = FORM


@control("schema-result-conformance", revision="2024-11-05")
class SamplesInOrder(Asks):
    """Samples with an image, and with a member that is not known yet."""

    method = "sampling/createMessage"
    params: ClassVar[Json] = {
        "messages": [
            {"role": "user", "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"}}
        ],
        "maxTokens": 5,
        "modelPreferences": {"hints": [{"name": "fast"}], "speedPriority": 1},
        "toolChoice": "none",
    }


@control("schema-result-conformance", revision=MODERN)
class InterruptsInOrder(_InterruptsTheWilling):
    """Wants a form filled in and a URL visited; what else it could want is deprecated."""

    asks: ClassVar[Json] = {
        "form": {"method": "elicitation/create", "params": {**formed(**CHOICES), "mode": "form"}},
        "link": {
            "method": "elicitation/create",
            "params": {"mode": "url", "message": "Sign in", "url": "https://a.example/"},
        },
    }
