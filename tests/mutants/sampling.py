"""Servers that break a rule of questions/sampling."""

from typing import ClassVar

from tests.mutants.kit import (
    MODERN,
    AskingTool,
    Json,
    client_capabilities,
    controls,
    has,
    is_modern,
    mutant,
    mutants,
    params,
)

NOTED = "versioning-deprecated-features"
"""Trips with every server that samples in 2026-07-28."""

OLD = "2024-11-05"
SAMPLES = "sampling/createMessage"
USER: Json = {"role": "user", "content": {"type": "text", "text": "How warm is it?"}}
LOOK: Json = {
    "name": "look",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
    "outputSchema": {
        "type": "object",
        "properties": {"degrees": {"type": "number"}},
        "required": ["degrees"],
    },
}


def _able(tool: AskingTool, request: Json) -> Json:
    """Return what the client declared for sampling; empty where it declared none."""
    declared = client_capabilities(request) if is_modern(request) else tool.client
    return {"sampling": declared["sampling"]} if "sampling" in declared else {}


class _Samples(AskingTool):
    """Samples once, in either era, and ignores the answer."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[Json] = []

    def on_ask(self, request: Json) -> None:
        given = params(request).get("inputResponses", {})
        if not isinstance(given, dict) or not all(isinstance(o, dict) for o in given.values()):
            self.refuse(request, -32602, "Invalid inputResponses")
        elif "model" in given:
            self.on_said(request, given["model"])
        elif _able(self, request):
            self.sample(request, [USER])
        else:
            super().on_ask(request)

    def sample(self, request: Json, messages: list[Json]) -> None:
        """Ask for a completion."""
        self.messages = messages
        able = _able(self, request).get("sampling", {})
        body = {"messages": messages, "maxTokens": 100, **self.wish(able)}
        if is_modern(request):
            asked = {"model": {"method": SAMPLES, "params": body}}
            self.answer(request, {"resultType": "input_required", "inputRequests": asked})
        else:
            self.ask(request, SAMPLES, body)

    def wish(self, able: Json) -> Json:
        """Return what else is asked for; ``able`` is what the client declared."""
        return {}

    def on_answer(self, request: Json, message: Json) -> None:
        if isinstance(message.get("result"), dict):
            self.on_said(request, message["result"])
        else:
            self.on_refused(request)

    def on_said(self, request: Json, said: Json) -> None:
        """Go on with what the model said."""
        self.end_with(request, f"{len(said)} members")

    def on_refused(self, request: Json) -> None:
        """Go on without a model."""
        self.end_with(request, "no model")

    def end_with(self, request: Json, text: str) -> None:
        """Answer the call."""
        self.answer(request, {"content": [{"type": "text", "text": text}]})


controls(
    "sampling-params-shape",
    "sampling-message-shape",
    "sampling-include-context",
    "sampling-tools-require-capability",
    "sampling-handles-refusal",
    "sampling-validates-content",
    of=_Samples,
)(Samples="Samples once in a session.")
controls(
    "sampling-params-shape",
    "sampling-message-shape",
    "sampling-include-context",
    "sampling-tools-require-capability",
    "sampling-validates-content",
    of=_Samples,
    revision=MODERN,
    breaks=(NOTED,),
)(SamplesStatelessly="Samples once without a session.")


class _SamplesWithTools(_Samples):
    """Offers a tool without regard to the client's capabilities."""

    def wish(self, able: Json) -> Json:
        return {"tools": [LOOK]}


mutants("sampling-tools-require-capability", of=_SamplesWithTools)(
    SamplesWithTools="Offers a tool without regard to the client's capabilities."
)
mutants("sampling-tools-require-capability", NOTED, of=_SamplesWithTools, revision=MODERN)(
    SamplesWithToolsStatelessly="Offers a tool without regard to the request's capabilities."
)
mutants("sampling-tools-require-capability", of=_Samples, outcome="note")(
    SamplesWithNoTools=has(
        "Offers an empty list of tools without regard to the client's capabilities.",
        wish=lambda *_: {"tools": []},
    )
)
mutants("sampling-include-context", of=_Samples)(
    SamplesWithContext=has(
        "Requests the context of all servers without regard to the client's capabilities.",
        wish=lambda *_: {"includeContext": "allServers"},
    )
)
mutants("sampling-include-context", NOTED, of=_Samples, revision=MODERN, outcome="note")(
    SamplesWithDeclaredContext=has(
        "Requests the context of this server if the request declared it.",
        wish=lambda self, able: {"includeContext": "thisServer"} if "context" in able else {},
    )
)
mutants("sampling-params-shape", of=_Samples, outcome="note")(
    SamplesWithoutMessages=has(
        "Sends an empty list of messages.",
        sample=lambda self, request, messages: _Samples.sample(self, request, []),
    )
)
mutants("sampling-params-shape", NOTED, of=_Samples, revision=MODERN)(
    WritesMaxTokensAsText=has("Writes maxTokens as text.", wish=lambda *_: {"maxTokens": "many"})
)
mutants("sampling-model-preferences-shape", NOTED, of=_Samples, revision=MODERN)(
    GivesAPriorityAboveOne=has(
        "Gives a priority above 1.", wish=lambda *_: {"modelPreferences": {"speedPriority": 2}}
    )
)
controls("sampling-model-preferences-shape", of=_Samples)(
    GivesValidPreferences=has(
        "Gives valid model preferences.",
        wish=lambda self, able: {
            "modelPreferences": {"hints": [{"name": "fast"}], "costPriority": 0.5}
        },
    )
)


@mutant("sampling-message-shape-2024-11-05", revision=OLD)
class SamplesWithAudio(_Samples):
    """Sends audio in the revision before audio."""

    def sample(self, request: Json, messages: list[Json]) -> None:
        audio = {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}
        super().sample(request, [{"role": "user", "content": audio}])


mutants("sampling-tool-definitions-shape", of=_Samples)(
    OffersAToolWithoutASchema=has(
        "Leaves the inputSchema of a tool out.",
        wish=lambda self, able: {"tools": [{"name": "look"}]} if "tools" in able else {},
    )
)


@mutant("sampling-tool-definitions-shape", NOTED, revision=MODERN)
class ForcesATool(_Samples):
    """Uses a toolChoice mode of another API."""

    def wish(self, able: Json) -> Json:
        return {"tools": [LOOK], "toolChoice": {"mode": "any"}} if "tools" in able else {}


class _Loops(_Samples):
    """Runs the tools that the model requests, a few times."""

    LIMIT: ClassVar[int] = 3

    def wish(self, able: Json) -> Json:
        return {"tools": [LOOK]} if "tools" in able else {}

    def on_said(self, request: Json, said: Json) -> None:
        content = said.get("content")
        uses = [b for b in content if b["type"] == "tool_use"] if isinstance(content, list) else []
        rounds = sum(m["role"] == "assistant" for m in self.messages)
        if not uses or rounds >= self.LIMIT:
            super().on_said(request, said)
            return
        spoken = {"role": "assistant", "content": content}
        results = [self.result(use["id"]) for use in uses]
        self.sample(request, [*self.messages, spoken, *self.replies(results)])

    def result(self, own: str) -> Json:
        """Return the result of one use."""
        return {
            "type": "tool_result",
            "toolUseId": own,
            "content": [{"type": "text", "text": '{"degrees": 20}'}],
            "structuredContent": {"degrees": 20},
        }

    def replies(self, results: list[Json]) -> list[Json]:
        """Return the messages that carry the results."""
        return [{"role": "user", "content": results}]


LOOPED = (
    "sampling-tool-definitions-shape",
    "sampling-tool-results-alone",
    "sampling-tool-use-balance",
    "sampling-tool-result-structured",
    "sampling-tool-loop-limit",
)
controls(*LOOPED, of=_Loops)(LoopsThrice="Runs three rounds of tools in a session.")
controls(*LOOPED, of=_Loops, revision=MODERN, breaks=(NOTED,))(
    LoopsThriceStatelessly="Runs three rounds of tools without a session."
)


class _MixesResults(_Loops):
    """Sends text with the tool results."""

    def replies(self, results: list[Json]) -> list[Json]:
        return [{"role": "user", "content": [*results, {"type": "text", "text": "Go on."}]}]


mutants("sampling-tool-results-alone", of=_MixesResults)(
    MixesResults="Sends text with the tool results."
)
mutants("sampling-tool-results-alone", NOTED, of=_MixesResults, revision=MODERN)(
    MixesResultsStatelessly="Sends text with the tool results of a stateless request."
)
mutants("sampling-tool-use-balance", of=_Loops)(
    AnswersOneUse=has(
        "Sends the result of the first tool use only.",
        replies=lambda self, results: _Loops.replies(self, results[:1]),
    ),
    SendsToolResultsAsTheAssistant=has(
        "Sends the results of the tools in a message of the assistant.",
        replies=lambda self, results: [{"role": "assistant", "content": results}],
    ),
    AddsAResult=has(
        "Sends one additional result with an id of its own.",
        replies=lambda self, results: _Loops.replies(self, [*results, self.result("call-1")]),
    ),
)


@mutant("sampling-tool-use-balance", NOTED, revision=MODERN)
class DelaysToolResults(_Loops):
    """Sends a message between the tool uses and their results."""

    def replies(self, results: list[Json]) -> list[Json]:
        thinks = {"role": "user", "content": {"type": "text", "text": "Just a moment."}}
        return [thinks, *super().replies(results)]


mutants("sampling-tool-result-structured", of=_Loops)(
    GivesAnotherStructure=has(
        "Sends a structure that does not fit the tool's outputSchema.",
        result=lambda self, own: {**_Loops.result(self, own), "structuredContent": {"celsius": 20}},
    )
)
mutants("sampling-tool-result-structured", NOTED, of=_Loops, revision=MODERN)(
    GivesANumber=has(
        "Sends a number for a tool whose outputSchema is an object.",
        result=lambda self, own: {**_Loops.result(self, own), "structuredContent": 20},
    )
)
mutants("sampling-tool-loop-limit", of=_Loops)(
    LoopsForEver=has("Continues the tool loop as long as the model does.", LIMIT=1000)
)
mutants("sampling-tool-loop-limit", NOTED, of=_Loops, revision=MODERN)(
    LoopsForEverStatelessly=has(
        "Continues the tool loop as long as the model does, without a session.", LIMIT=1000
    )
)


@mutant("sampling-handles-refusal")
class HangsOnASamplingError(_Samples):
    """Hangs when the client answers with an error."""

    def on_refused(self, request: Json) -> None:
        del request


mutants("sampling-validates-content", of=_Samples)(
    HangsWithoutContent=has(
        "Never ends a call that got an answer without content.",
        on_said=lambda self, request, said: (
            _Samples.on_said(self, request, said) if "content" in said else None
        ),
    )
)
mutants("sampling-validates-content", NOTED, of=_Samples, revision=MODERN)(
    HangsWithoutContentStatelessly=has(
        "Never answers a retry with an answer without content.",
        on_said=lambda self, request, said: (
            _Samples.on_said(self, request, said) if "content" in said else None
        ),
    )
)
mutants("sampling-validates-content", of=_Samples, revision=OLD, outcome="warn")(
    AcceptsAnyAnswer=has(
        "Passes on any text of the model, in any role.",
        on_said=lambda self, request, said: self.end_with(request, str(said.get("content"))),
    )
)
