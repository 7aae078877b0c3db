"""Servers that break a rule of server/tools: what is refused, and what comes back."""

import json
import os
from typing import Any, ClassVar

from tests.mutants.kit import (
    MODERN,
    AskingTool,
    Fault,
    Json,
    Out,
    control,
    controls,
    drops,
    edits,
    has,
    mutant,
    mutants,
    params,
    puts,
    refusal,
)
from tests.mutants.tools import TEXT, Calls

OLD = "2024-11-05"
TROUBLE = {"error": "it failed"}
PLAIN = "list_capabilities"
TEXTUAL: Json = {"type": "string"}


class _Calls(Fault):
    """Handles calls of tools in its own way."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and message.get("method") == "tools/call":
            return line if self.call(message, params(message)) else None
        return line

    def call(self, message: Json, given: Json) -> bool:
        """Take a call; give whether it is passed on."""
        return True

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "tools/call" and "result" in message:
            return self.result(message, request)
        return message  # type: ignore[no-any-return]

    def result(self, message: Json, request: Json) -> Out:
        """Change a result."""
        return message


@mutant("tools-call-answered")
class NeverAnswersOneTool(AskingTool):
    """Takes the calls of one tool and forgets them, and answers everything else."""

    def on_ask(self, request: Json) -> None:
        del request


@mutant("tools-call-answered")
class LosesARepeatedCall(Fault):
    """Loses a call that comes a third time in a row."""

    row: tuple[str, ...] = ()

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if not isinstance(message, dict) or message.get("method") != "tools/call":
            self.row = ()
            return line
        params = message.get("params")
        known = (
            {k: v for k, v in params.items() if k != "_meta"} if isinstance(params, dict) else {}
        )
        this = json.dumps(known, sort_keys=True)
        self.row = (*self.row, this) if self.row[-1:] == (this,) else (this,)
        return None if len(self.row) > 2 else line


@control("tools-call-answered", revision=MODERN)
class AnswersOneToolLate(AskingTool):
    """Answers the calls of one tool after a second."""

    def on_ask(self, request: Json) -> None:
        self.later(1.0, lambda: super(AnswersOneToolLate, self).on_ask(request))


class _Hides(Calls):
    """Has a tool that refuses each call."""

    RESULT: ClassVar[Json] = {
        "content": [{"type": "text", "text": "Invalid arguments for tool more: kind: required"}],
        "isError": True,
    }


mutants("tools-input-schema-complete", of=_Hides)(
    HidesItsArguments="Lists no argument for a tool that refuses each call without one."
)


@mutant("tools-input-schema-complete", revision=MODERN)
class RefusesEachAllowedCall(_Hides):
    """Refuses each call of a tool with optional arguments as invalid."""

    TOOL: ClassVar[Json] = {"inputSchema": {"type": "object", "properties": {"a": TEXTUAL}}}
    CODE = -32602

    def answer(self, request: Json, result: Json) -> None:
        self.refuse(request, self.CODE, "no")


@mutant("tools-execution-error-in-result")
class FailsAtEachCall(RefusesEachAllowedCall, CODE=-32603):
    """Answers each call of a tool that requires an argument with an internal error."""

    TOOL: ClassVar[Json] = {
        "inputSchema": {"type": "object", "properties": {"a": TEXTUAL}, "required": ["a"]}
    }


controls("tools-input-schema-complete", of=_Hides)(
    NeedsAKey=has(
        "Has a tool without arguments that fails for another reason.",
        RESULT={"content": [{"type": "text", "text": "API_KEY is required"}], "isError": True},
    )
)
controls("tools-input-schema-complete", of=RefusesEachAllowedCall)(
    KnowsNoExample=has(
        "Refuses each name that we make, which its schema requires.",
        TOOL=FailsAtEachCall.TOOL,
        answer=Calls.answer,
    )
)


class _Unknown(_Calls):
    """Handles calls of unknown tools in its own way."""

    def said(self, message: Any, request: Json) -> Out:
        unknown = "unknown tool" in str(message.get("error", {}).get("message"))
        return self.unknown(request) if unknown else message

    def unknown(self, request: Json) -> Out:
        """Answer."""
        raise NotImplementedError


mutants("tools-unknown-tool-error", of=_Unknown, revision=OLD)(
    RefusesUnknownToolsAsUnknownMethods=has(
        "Answers a call of an unknown tool with -32601.",
        unknown=lambda self, request: refusal(request, -32601, "No such tool"),
    )
)
mutants("tools-unknown-tool-error", of=_Unknown, revision=MODERN)(
    RunsUnknownTools=has(
        "Answers a call of an unknown tool with success.",
        unknown=lambda self, request: self.answer(request, {"content": [TEXT]}),
    )
)


@mutant("tools-name-case-sensitive")
class IgnoresCase(_Calls):
    """Finds a tool by its name in any case."""

    def call(self, message: Json, given: Json) -> bool:
        name = given.get("name")
        if isinstance(name, str) and name != name.lower():
            body = {**given, "name": name.lower()}
            self.pass_on({**message, "params": body})
            return False
        return True


@mutant("tools-malformed-call-error")
class RunsCallsWithoutAName(_Calls):
    """Answers a call without a name with success."""

    def call(self, message: Json, given: Json) -> bool:
        if "name" in given:
            return True
        self.answer(message, {"content": [TEXT]})
        return False


mutants("tools-malformed-call-error", of=_Calls, revision=MODERN)(
    HangsOnANumericName=has(
        "Does not answer a call with a number as its name.",
        call=lambda self, message, given: not isinstance(given.get("name"), int),
    ),
    HangsOnAnObjectAsName=has(
        "Does not answer a call with an object as its name.",
        call=lambda self, message, given: not isinstance(given.get("name"), dict),
    ),
    HangsOnANumberAsArguments=has(
        "Does not answer a call with a number as arguments.",
        call=lambda self, message, given: not isinstance(given.get("arguments"), int),
    ),
)


@mutant("tools-malformed-call-error", outcome="warn")
class IgnoresTextArguments(_Calls):
    """Runs a tool with text as arguments as if there were none."""

    def call(self, message: Json, given: Json) -> bool:
        if isinstance(given.get("arguments"), str):
            self.pass_on({**message, "params": {**given, "arguments": {}}})
            return False
        return True


@mutant("tools-call-omitted-arguments")
class RefusesCallsWithoutArguments(_Calls):
    """Refuses a call without the arguments member."""

    def call(self, message: Json, given: Json) -> bool:
        if "arguments" not in given and isinstance(given.get("name"), str):
            self.refuse(message, -32602, "arguments is missing")
            return False
        return True


@mutant("tools-validate-inputs")
class ReadsWithoutAPath(_Calls):
    """Reads a file if the path argument is missing."""

    def call(self, message: Json, given: Json) -> bool:
        arguments = given.get("arguments")
        lacks = isinstance(arguments, dict) and "path" not in arguments
        if given.get("name") == "file_read" and lacks:
            self.answer(message, {"content": [TEXT]})
            return False
        return True


@mutant("tools-validate-inputs", revision=OLD)
class HangsOnAnObject(_Calls):
    """Never answers a call with an object in place of text."""

    def call(self, message: Json, given: Json) -> bool:
        arguments = given.get("arguments")
        return not (isinstance(arguments, dict) and isinstance(arguments.get("path"), dict))


class _Invalid(_Calls):
    """Answers invalid arguments with a protocol error."""

    CODE: ClassVar[int] = -32603
    KIND: ClassVar[str] = "INVALID_ARGUMENTS"

    def result(self, message: Json, request: Json) -> Out:
        if f'\\"{self.KIND}\\"' in json.dumps(message["result"]["content"]):
            return refusal(request, self.CODE, "That did not work")
        return message


mutants("tools-input-validation-is-error", of=_Invalid)(
    FailsOnInvalidArguments="Answers invalid arguments with an internal error."
)
mutants("tools-input-validation-is-error", of=_Invalid, revision=MODERN, outcome="note")(
    RefusesInvalidArguments=has("Answers invalid arguments with error -32602.", CODE=-32602)
)
controls("tools-validate-inputs", of=_Invalid, revision="2025-06-18")(
    RefusesInvalidArgumentsInAnOldRevision=has(
        "Answers invalid arguments with error -32602, in a revision that allows it.", CODE=-32602
    )
)


@mutant("tools-execution-error-in-result")
class FailsOnMissingFiles(_Invalid, KIND="NOT_FOUND"):
    """Answers a missing file with an internal error."""


mutants("tools-execution-error-in-result", of=FailsOnMissingFiles, revision=OLD)(
    FailsOnMissingFilesInTheFirstRevision=(
        "Answers a missing file with an internal error, in the first revision."
    )
)


@mutant("tools-sanitize-outputs")
class ShowsItsStack(_Calls):
    """Puts a stack trace into every error of a tool."""

    def more(self) -> str:
        """Return the text."""
        return 'Traceback (most recent call last):\n  File "m.py", line 1, in f'

    def result(self, message: Json, request: Json) -> Out:
        if message["result"].get("isError"):
            message["result"]["content"].append({"type": "text", "text": self.more()})
        return message


mutants("tools-sanitize-outputs", of=ShowsItsStack, revision=OLD)(
    ShowsItsEnvironment=has(
        "Puts its environment into every error of a tool.",
        more=lambda *_: json.dumps(dict(os.environ)),
    )
)


class _Structured(_Calls):
    """Changes the structured content of one tool."""

    def result(self, message: Json, request: Json) -> Out:
        if params(request).get("name") == PLAIN and not message["result"].get("isError"):
            self.structure(message["result"])
        return message

    def structure(self, result: Json) -> None:
        """Change it."""


mutants("tools-structured-content-conforms", of=_Structured)(
    OmitsStructuredContent=has(
        "Returns no structured content, though the tool has an output schema.",
        structure=drops("structuredContent"),
    ),
    BreaksItsOutputSchema=has(
        "Returns structured content of another type than its output schema.",
        MODERN,
        structure=edits(
            puts("structuredContent", ["nothing"]),
            puts("content", [{"type": "text", "text": '["nothing"]'}]),
        ),
    ),
    OmitsARequiredMember=has(
        "Returns structured content without a required member.",
        "2025-06-18",
        structure=edits(
            puts("structuredContent", {}), puts("content", [{"type": "text", "text": "{}"}])
        ),
    ),
)


@mutant("tools-structured-content-conforms")
class RefusesItsOwnOutput(_Structured):
    """Answers with the error of an SDK that found the output of the tool invalid."""

    prefix = "MCP error -32602: "

    def structure(self, result: Json) -> None:
        """Replace the result."""
        text = f"{self.prefix}Output validation error: Invalid structured content for tool {PLAIN}"
        result.pop("structuredContent", None)
        result |= {"content": [{"type": "text", "text": text}], "isError": True}


mutants("tools-structured-content-conforms", of=RefusesItsOwnOutput, revision=MODERN)(
    RefusesItsOwnOutputInPlainWords=has(
        "Answers with the error of an SDK for Python that found the output of the tool invalid.",
        prefix="",
    )
)


@mutant("tools-structured-content-conforms", outcome="note")
class ExplainsItsErrorsInAForeignShape(_Calls):
    """Returns structured content of another form than its output schema beside isError true."""

    def result(self, message: Json, request: Json) -> Out:
        if message["result"].get("isError"):
            message["result"]["structuredContent"] = TROUBLE
            message["result"]["content"] = [{"type": "text", "text": json.dumps(TROUBLE)}]
        return message


@control("tools-structured-content-conforms")
class RepeatsItsOutputSchemaInErrors(_Calls):
    """Returns structured content that fits beside isError true."""

    fitting: ClassVar[Json] = {}

    def result(self, message: Json, request: Json) -> Out:
        result, name = message["result"], str(params(request).get("name"))
        if "structuredContent" in result:
            self.fitting[name] = result["structuredContent"]
        elif result.get("isError") and name in self.fitting:
            result["structuredContent"] = self.fitting[name]
        return message


mutants("tools-structured-content-text-copy", of=_Structured)(
    OmitsTheTextCopy=has("Returns structured content and no text.", structure=puts("content", []))
)
mutants("tools-structured-content-text-copy", of=_Structured, revision=MODERN, outcome="note")(
    ReplacesTheTextCopyByProse=has(
        "Returns prose with structured content.",
        structure=puts("content", [{"type": "text", "text": "See the structured content."}]),
    )
)


EMBEDDED: Json = {"type": "resource", "resource": {"uri": "x-more:1", "text": "more"}}
LINK: Json = {"type": "resource_link", "uri": "x-more:1", "name": "more"}


@mutant("tools-embedded-resources-capability")
class EmbedsWithoutResources(Calls, RESULT={"content": [EMBEDDED]}):
    """Embeds a resource in a result without declaring resources."""

    def declare(self, capabilities: Json) -> None:
        del capabilities["resources"]

    def heard(self, line: bytes, message: Any) -> bytes | None:
        method = message.get("method") if isinstance(message, dict) else None
        if isinstance(method, str) and method.startswith("resources/"):
            self.refuse(message, -32601, "Method not found")
            return None
        return super().heard(line, message)


controls("tools-embedded-resources-capability", of=Calls, revision=MODERN)(
    EmbedsWithResources=has(
        "Embeds an unreadable resource, and declares resources.", RESULT={"content": [EMBEDDED]}
    )
)
mutants("tools-embedded-resource-readable", of=Calls, revision=OLD)(
    EmbedsAnUnreadableResource=has(
        "Embeds a resource that cannot be read.", RESULT={"content": [EMBEDDED]}
    )
)
controls("tools-embedded-resource-readable", of=Calls, revision="2025-03-26")(
    EmbedsAReadableResource=has(
        "Embeds a resource that can be read.",
        RESULT={
            "content": [
                {
                    "type": "resource",
                    "resource": {"uri": "workspace:///notes/today.txt", "text": "more"},
                }
            ]
        },
    )
)
mutants("tools-resource-link-readable", of=Calls)(
    LinksToAMissingResource=has("Links to a missing resource.", RESULT={"content": [LINK]})
)
controls("tools-resource-link-readable", "server-resource-link-shape", of=Calls, revision=MODERN)(
    LinksToAResource=has(
        "Links to a readable resource, and to the web.",
        RESULT={
            "content": [
                {**LINK, "uri": "workspace:///notes/today.txt"},
                {**LINK, "uri": "https://example.com/"},
            ]
        },
    )
)
