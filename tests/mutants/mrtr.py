"""Servers that break a rule of basic/patterns/mrtr."""

import hashlib
import json
from typing import Any, ClassVar

from tests.mutants.asking import FORM, Interrupts, elicits
from tests.mutants.kit import (
    MODERN,
    AskingTool,
    Fault,
    Json,
    Out,
    client_capabilities,
    control,
    controls,
    encode,
    has,
    is_modern,
    mutant,
    mutants,
    params,
)


class Interviews(Interrupts):
    """A tool that asks for a topic."""

    TOOL: ClassVar[Json] = {
        **AskingTool.TOOL,
        "inputSchema": {
            "type": "object",
            "properties": {"topic": {"type": "string"}},
            "required": ["topic"],
        },
    }

    def on_ask(self, request: Json) -> None:
        if "topic" in params(request).get("arguments", {}):
            super().on_ask(request)
        else:
            self.fail(request, "What about?")


controls(
    "mrtr-retry-served",
    "mrtr-request-state-binding",
    "mrtr-request-state-integrity",
    "mrtr-validate-responses",
    "mrtr-missing-responses-reprompt",
    "mrtr-ignore-extra-responses",
    of=Interviews,
    revision=MODERN,
)(InterviewsCorrectly="Asks for a name, and handles every answer correctly.")


@control("mrtr-not-empty", "mrtr-retry-served", "mrtr-no-assumed-retry", revision=MODERN)
class AsksForARetryOnly(Interviews, asks={}):
    """Asks only for a retry, to shed load."""

    def interrupt(self, request: Json) -> None:
        state = {"requestState": self.state(request)}
        self.answer(request, {"resultType": "input_required", **state})


@mutant("mrtr-retry-served", revision=MODERN)
class RefusesRetries(Interviews):
    """Refuses every retry with consent."""

    def finish(self, request: Json) -> None:
        if params(request)["inputResponses"]["who"].get("action") == "accept":
            self.refuse(request, -32603, "Internal error")
        else:
            super().finish(request)

    def unexpected(self, request: Json) -> None:
        Interviews.finish(self, request)


@mutant("mrtr-result-type", revision=MODERN)
class AsksInACompleteResult(Interviews):
    """Returns a complete result with inputRequests."""

    def finish(self, request: Json) -> None:
        text = {"type": "text", "text": "Anything else?"}
        self.answer(request, {"content": [text], "inputRequests": self.asks})


@mutant("mrtr-result-type", revision=MODERN, outcome="warn")
class GivesAStateInACompleteResult(Interviews):
    """Returns a complete result with a requestState."""

    def finish(self, request: Json) -> None:
        text = {"type": "text", "text": "Thank you."}
        self.answer(request, {"content": [text], "requestState": "done"})


@mutant("mrtr-allowed-methods", revision=MODERN)
class AsksInCompletions(Fault):
    """Asks for input before it completes an argument."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        completes = isinstance(message, dict) and message.get("method") == "completion/complete"
        if completes and "elicitation" in client_capabilities(message):
            asked = {"resultType": "input_required", "inputRequests": {"which": FORM}}
            self.answer(message, asked)
            return None
        return line


@mutant("mrtr-allowed-methods", revision=MODERN)
class AsksInLists(Fault):
    """Asks for input before it lists its prompts."""

    def said(self, message: Any, request: Json) -> Out:
        able = client_capabilities(request).get("sampling") if is_modern(request) else None
        if request.get("method") == "prompts/list" and able and "context" in able:
            asked = {"resultType": "input_required", "inputRequests": {"who": FORM}}
            message["result"] = {**asked, "_meta": message["result"]["_meta"]}
        return message  # type: ignore[no-any-return]


mutants("mrtr-not-empty", of=Interviews, revision=MODERN)(
    OmitsInputRequests=has(
        "Returns input_required without inputRequests.",
        interrupt=lambda self, request: self.answer(request, {"resultType": "input_required"}),
    )
)


@mutant("mrtr-not-empty", revision=MODERN, outcome="warn")
class GivesEmptyInputRequests(Interviews):
    """Returns input_required with empty inputRequests."""

    def interrupt(self, request: Json) -> None:
        self.answer(request, {"resultType": "input_required", "inputRequests": {}})


mutants("mrtr-request-kinds", of=Interviews, revision=MODERN)(
    AsksForTools=has("Asks the client for its tools.", asks={"what": {"method": "tools/list"}}),
    AsksWithAMethodName=has(
        "Gives the name of a method in place of a request.",
        asks={"who": FORM, "roots": "roots/list"},
    ),
)
mutants("mrtr-request-kinds", of=Interviews, revision=MODERN, outcome="note")(
    AsksInMessages=has(
        "Puts JSON-RPC messages into inputRequests.",
        asks={"who": {"jsonrpc": "2.0", "id": 1, **FORM}},
    )
)


@mutant("mrtr-request-keys-unique", revision=MODERN)
class AsksTwiceUnderOneKey(Interviews):
    """Uses one key twice in inputRequests."""

    def emit(self, message: Out) -> None:
        interim = isinstance(message, dict) and "inputRequests" in message.get("result", {})
        if interim and isinstance(message, dict):
            form = json.dumps(FORM).encode()
            raw = encode(message)
            message = raw.replace(b'"inputRequests":{', b'"inputRequests":{"who":' + form + b",")
        super().emit(message)


@mutant("mrtr-undeclared-capability", revision=MODERN)
class ElicitsWithSamplingOnly(Interviews):
    """Elicits from a client that declared only sampling."""

    def able(self, request: Json) -> bool:
        able = client_capabilities(request)
        return elicits(able, "form") or ("sampling" in able and "elicitation" not in able)


@mutant("mrtr-undeclared-capability", revision=MODERN, passes=("resources-definition-shape",))
class ElicitsWithoutCapabilities(Fault):
    """Elicits from a client without capabilities, before it reads a file."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        reads = isinstance(message, dict) and message.get("method") == "resources/read"
        source = reads and params(message).get("uri") == "workspace:///src/main.py"
        if source and not client_capabilities(message):
            asked = {"resultType": "input_required", "inputRequests": {"who": FORM}}
            self.answer(message, asked)
            return None
        return line


@mutant("mrtr-request-state-string", revision=MODERN)
class GivesAnObjectForAState(Interviews):
    """Gives a requestState that is an object."""

    def interrupt(self, request: Json) -> None:
        asked = {"inputRequests": self.asks, "requestState": {"seal": self.state(request)}}
        self.answer(request, {"resultType": "input_required", **asked})

    def is_ours(self, request: Json, state: Any) -> bool:
        return isinstance(state, dict) and state.get("seal") == self.state(request)


@mutant("mrtr-request-state-untrusted", revision=MODERN)
class HangsOnControlCharacters(Interviews):
    """Never answers a call whose state contains control characters."""

    def on_ask(self, request: Json) -> None:
        state = params(request).get("requestState", "")
        if not isinstance(state, str) or "\x1b" not in state:
            super().on_ask(request)


@mutant("mrtr-request-state-untrusted", revision=MODERN)
class HangsOnAnAlteredState(Interviews):
    """Never answers a retry with a state of the right form and a wrong seal."""

    def on_ask(self, request: Json) -> None:
        state = params(request).get("requestState")
        calls = [one for one in self.asked.values() if one.get("method") == "tools/call"]
        alike = isinstance(state, str) and len(state) == len(self.state(request))
        if not alike or state in [self.state(one) for one in calls]:
            super().on_ask(request)


@mutant("mrtr-request-state-integrity", revision=MODERN)
class TrustsItsState(Interviews):
    """Reads the topic out of an unprotected state."""

    def state(self, request: Json) -> str:
        topic = params(request).get("arguments", {}).get("topic", "")
        return f"{topic}/{'step-one-of-two'}"

    def is_ours(self, request: Json, state: Any) -> bool:
        topic = params(request)["arguments"]["topic"]
        return isinstance(state, str) and state.startswith(f"{topic}/")


mutants("mrtr-request-state-binding", of=Interviews, revision=MODERN)(
    AcceptsAStateOfAnyRequest=has(
        "Seals a state, and accepts it with any request.",
        state=lambda *_: hashlib.sha256(b"key").hexdigest(),
    )
)


@mutant("mrtr-validate-responses", revision=MODERN)
class HangsOnOddResponses(Interviews):
    """Never answers a retry with responses of the wrong shape."""

    def malformed(self, request: Json) -> None:
        pass


@mutant("mrtr-validate-responses", revision=MODERN)
class HangsOnANumberAsAnswer(Interviews):
    """Never answers a retry in which a number is the content of an answer."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        return None if b'"content":7' in line.replace(b" ", b"") else super().heard(line, message)


mutants("mrtr-validate-responses", of=Interviews, revision=MODERN, outcome="warn")(
    AcceptsOddResponses=has(
        "Accepts responses of any shape.", malformed=lambda self, request: self.finish(request)
    )
)
mutants("mrtr-ignore-extra-responses", of=Interviews, revision=MODERN)(
    RefusesExtraResponses=has(
        "Refuses a retry with additional responses.",
        unexpected=lambda self, request: self.refuse(
            request, -32602, "Invalid params: unexpected inputResponses"
        ),
    )
)
mutants("mrtr-missing-responses-reprompt", of=Interviews, revision=MODERN)(
    RefusesAnEmptyRetry=has(
        "Refuses a retry without responses.",
        missing=lambda self, request: self.refuse(
            request, -32602, "Invalid params: inputResponses has no who"
        ),
    )
)


@mutant("mrtr-no-assumed-retry", revision=MODERN)
class BlocksUntilTheRetry(Interviews):
    """Answers no new call while the input request of another is open."""

    open: ClassVar[set[str]] = set()

    def on_ask(self, request: Json) -> None:
        given = params(request)
        key = json.dumps(given.get("arguments"))
        if "requestState" in given:
            self.open.discard(key)
        elif key in self.open:
            return
        super().on_ask(request)

    def interrupt(self, request: Json) -> None:
        self.open.add(json.dumps(params(request).get("arguments")))
        super().interrupt(request)
