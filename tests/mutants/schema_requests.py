"""Servers that break a rule of basic/schema: a request to the client is not of its type."""

from typing import Any, ClassVar

from tests.mutants.asking import Asks
from tests.mutants.kit import (
    MODERN,
    AskingTool,
    Json,
    client_capabilities,
    control,
    controls,
    has,
    is_modern,
    mutant,
    mutants,
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


def formed(**properties: Any) -> Json:
    """Ask for these properties."""
    return {"message": "?", "requestedSchema": {"type": "object", "properties": properties}}


mutants("schema-result-conformance", of=Asks, revision="2024-11-05", moves="sampling-params-shape")(
    SamplesWithoutALimit=has(
        "Samples without maxTokens.",
        method="sampling/createMessage",
        params={"messages": SAMPLING["messages"]},
    )
)
mutants(
    "schema-result-conformance",
    of=Asks,
    revision="2025-03-26",
    moves="sampling-message-shape-2025-03-26",
)(
    SamplesWithAnArray=has(
        "Puts the one content block of a sampling message into an array.",
        method="sampling/createMessage",
        params={"messages": [{"role": "user", "content": [TEXT]}], "maxTokens": 5},
    )
)
mutants("schema-result-conformance", of=Asks, moves="sampling-message-shape")(
    SamplesAsTheSystem=has(
        "Sends a sampling message with the role system.",
        method="sampling/createMessage",
        params={"messages": [{"role": "system", "content": TEXT}], "maxTokens": 5},
    )
)
mutants("schema-result-conformance", of=Asks, moves="sampling-model-preferences-shape")(
    GivesHintsAsText=has(
        "Gives model hints as strings.",
        method="sampling/createMessage",
        params={**SAMPLING, "modelPreferences": {"hints": ["fast"]}},
    )
)
mutants(
    "schema-result-conformance",
    of=Asks,
    revision="2025-06-18",
    moves="elicitation-form-schema-primitive-2025-06-18",
)(
    ElicitsANestedForm=has(
        "Elicits an object inside the form.",
        method="elicitation/create",
        params=formed(address={"type": "object", "properties": {}}),
    )
)
mutants("schema-result-conformance", of=Asks, moves="elicitation-string-format")(
    ElicitsACustomFormat=has(
        "Elicits a string in an undefined format.",
        method="elicitation/create",
        params=formed(phone={"type": "string", "format": "phone"}),
    )
)
mutants("schema-result-conformance", of=Asks, moves="elicitation-url-params-2025-11-25")(
    LinksWithoutAnId=has(
        "Elicits a visit of a URL without an elicitationId.",
        method="elicitation/create",
        params={"mode": "url", "message": "Sign in", "url": "https://a.example/"},
    )
)
mutants("schema-result-conformance", of=Asks)(
    GivesATextTtl=has(
        "Requests a task with a ttl that is text.",
        method="elicitation/create",
        params={**FORM, "task": {"ttl": "long"}},
        questions=lambda self: Asks.questions(self) if "tasks" in self.client else [],
    )
)


@mutant("schema-result-conformance", moves="elicitation-url-required-error-shape")
class RequiresAUrlWithoutListingIt(AskingTool):
    """Answers that the user has to visit a URL first, without a list."""

    def on_ask(self, request: Json) -> None:
        if "url" not in self.client.get("elicitation", {}):
            super().on_ask(request)
            return
        self.refuse(request, -32042, "Please sign in first", {"elicitations": [{"mode": "url"}]})


class _InterruptsTheWilling(AskingTool):
    """Answers a capable stateless client with an input request first."""

    asks: ClassVar[Json]

    def on_ask(self, request: Json) -> None:
        able = client_capabilities(request)
        links = any(one.get("params", {}).get("mode") == "url" for one in self.asks.values())
        willing = {"elicitation", "sampling", "roots"} <= able.keys()
        if is_modern(request) and willing and (not links or "url" in able["elicitation"]):
            self.answer(request, {"resultType": "input_required", "inputRequests": self.asks})
        else:
            super().on_ask(request)


mutants(
    "schema-result-conformance",
    of=_InterruptsTheWilling,
    revision=MODERN,
    moves="elicitation-form-params-shape",
)(
    ElicitsWithoutAForm=has(
        "Elicits with only a message.",
        asks={"who": {"method": "elicitation/create", "params": {"message": "?"}}},
    )
)
mutants(
    "schema-result-conformance",
    of=_InterruptsTheWilling,
    revision=MODERN,
    moves="mrtr-request-kinds",
)(
    RequestsAnUnknownInput=has(
        "Requests an undefined kind of input.", asks={"what": {"method": "prompts/list"}}
    )
)


@control("schema-result-conformance")
class RequestsCorrectly(Asks):
    """Samples with tools, and elicits with every kind of field and with a URL."""

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


controls("schema-result-conformance", of=Asks, revision="2025-06-18")(
    ElicitsValidForms=has(
        "Elicits with the fields of the first revision with elicitation.",
        method="elicitation/create",
        params=FORM,
    )
)


@control("schema-result-conformance", revision="2024-11-05")
class SamplesCorrectly(Asks, method="sampling/createMessage"):
    """Samples with an image and an unknown member."""

    params: ClassVar[Json] = {
        "messages": [
            {"role": "user", "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"}}
        ],
        "maxTokens": 5,
        "modelPreferences": {"hints": [{"name": "fast"}], "speedPriority": 1},
        "toolChoice": "none",
    }


@control("schema-result-conformance", revision=MODERN)
class InterruptsCorrectly(_InterruptsTheWilling):
    """Elicits a form and a visit of a URL; other input requests are deprecated."""

    asks: ClassVar[Json] = {
        "form": {"method": "elicitation/create", "params": {**formed(**CHOICES), "mode": "form"}},
        "link": {
            "method": "elicitation/create",
            "params": {"mode": "url", "message": "Sign in", "url": "https://a.example/"},
        },
    }
