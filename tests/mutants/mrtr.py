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
    encode,
    is_modern,
    mutant,
    params,
)


class Interviews(Interrupts):
    """A tool that asks about a topic."""

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


@control(
    "mrtr-retry-served",
    "mrtr-request-state-binding",
    "mrtr-request-state-integrity",
    "mrtr-validate-responses",
    "mrtr-missing-responses-reprompt",
    "mrtr-ignore-extra-responses",
    revision=MODERN,
)
class InterviewsInOrder(Interviews):
    """Asks for a name, and takes every answer as it should."""


@control("mrtr-not-empty", "mrtr-retry-served", "mrtr-no-assumed-retry", revision=MODERN)
class SendsRoundOnceMore(Interviews):
    """Asks for nothing but a retry, to shed load."""

    asks: ClassVar[Json] = {}

    def interrupt(self, request: Json) -> None:
        state = {"requestState": self.state(request)}
        self.answer(request, {"resultType": "input_required", **state})


# --- which results ask


@mutant("mrtr-retry-served", revision=MODERN)
class KnowsNoAnswer(Interviews):
    """Refuses every retry that brings consent."""

    def finish(self, request: Json) -> None:
        if params(request)["inputResponses"]["who"].get("action") == "accept":
            self.refuse(request, -32603, "Internal error")
        else:
            super().finish(request)

    def unexpected(self, request: Json) -> None:
        Interviews.finish(self, request)


@mutant("mrtr-result-type", revision=MODERN)
class CallsAQuestionComplete(Interviews):
    """Ends with a complete result that asks for input."""

    def finish(self, request: Json) -> None:
        text = {"type": "text", "text": "Anything else?"}
        self.answer(request, {"content": [text], "inputRequests": self.asks})


@mutant("mrtr-result-type", revision=MODERN, outcome="warn")
class KeepsItsStateInTheEnd(Interviews):
    """Gives a requestState with a complete result."""

    def finish(self, request: Json) -> None:
        text = {"type": "text", "text": "Thank you."}
        self.answer(request, {"content": [text], "requestState": "done"})


@mutant("mrtr-allowed-methods", revision=MODERN)
class AsksBeforeItCompletes(Fault):
    """Asks a client that can be asked before it completes an argument."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        completes = isinstance(message, dict) and message.get("method") == "completion/complete"
        if completes and "elicitation" in client_capabilities(message):
            asked = {"resultType": "input_required", "inputRequests": {"which": FORM}}
            self.answer(message, asked)
            return None
        return line


@mutant("mrtr-allowed-methods", revision=MODERN)
class AsksBeforeItLists(Fault):
    """Asks a client of all trades who it is before it lists its prompts."""

    def said(self, message: Any, request: Json) -> Out:
        able = client_capabilities(request).get("sampling") if is_modern(request) else None
        if request.get("method") == "prompts/list" and able and "context" in able:
            asked = {"resultType": "input_required", "inputRequests": {"who": FORM}}
            message["result"] = {**asked, "_meta": message["result"]["_meta"]}
        return message  # type: ignore[no-any-return]


@mutant("mrtr-not-empty", revision=MODERN)
class AsksForNothing(Interviews):
    """Requires input and does not say which."""

    def interrupt(self, request: Json) -> None:
        self.answer(request, {"resultType": "input_required"})


@mutant("mrtr-not-empty", revision=MODERN, outcome="warn")
class AsksForNoneOfThem(Interviews):
    """Requires input and lists none."""

    def interrupt(self, request: Json) -> None:
        self.answer(request, {"resultType": "input_required", "inputRequests": {}})


# --- what they ask


@mutant("mrtr-request-kinds", revision=MODERN)
class AsksForTools(Interviews):
    """Asks the client for its tools."""

    asks: ClassVar[Json] = {"what": {"method": "tools/list"}}


@mutant("mrtr-request-kinds", revision=MODERN)
class AsksWithoutParams(Interviews):
    """Elicits without saying what."""

    asks: ClassVar[Json] = {"who": {"method": "elicitation/create"}}


@mutant("mrtr-request-kinds", revision=MODERN)
class AsksInWords(Interviews):
    """Gives the name of a method in place of a request."""

    asks: ClassVar[Json] = {"who": FORM, "roots": "roots/list"}


@mutant("mrtr-request-kinds", revision=MODERN)
class ListsItsQuestions(Interviews):
    """Gives inputRequests as an array."""

    def interrupt(self, request: Json) -> None:
        asked = {"inputRequests": [FORM], "requestState": self.state(request)}
        self.answer(request, {"resultType": "input_required", **asked})


@mutant("mrtr-request-kinds", revision=MODERN, outcome="note")
class AsksInMessages(Interviews):
    """Puts whole JSON-RPC messages into inputRequests."""

    asks: ClassVar[Json] = {"who": {"jsonrpc": "2.0", "id": 1, **FORM}}


@mutant("mrtr-request-keys-unique", revision=MODERN)
class AsksTwiceUnderOneKey(Interviews):
    """Names one key twice in inputRequests."""

    def tell(self, message: Out) -> None:
        interim = isinstance(message, dict) and "inputRequests" in message.get("result", {})
        if interim and isinstance(message, dict):
            form = json.dumps(FORM).encode()
            raw = encode(message)
            message = raw.replace(b'"inputRequests":{', b'"inputRequests":{"who":' + form + b",")
        super().tell(message)


@mutant("mrtr-undeclared-capability", revision=MODERN)
class ElicitsWhoeverSamples(Interviews):
    """Asks the user of a client that has declared a model alone."""

    def able(self, request: Json) -> bool:
        able = client_capabilities(request)
        return elicits(able, "form") or ("sampling" in able and "elicitation" not in able)


@mutant("mrtr-undeclared-capability", revision=MODERN)
class ElicitsWhereNobodyCan(Fault):
    """Asks the user of a client that has declared nothing, before it reads a file."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        reads = isinstance(message, dict) and message.get("method") == "resources/read"
        source = reads and params(message).get("uri") == "workspace:///src/main.py"
        if source and not client_capabilities(message):
            asked = {"resultType": "input_required", "inputRequests": {"who": FORM}}
            self.answer(message, asked)
            return None
        return line


# --- the state


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
    """Never answers a call whose state holds control characters."""

    def on_ask(self, request: Json) -> None:
        state = params(request).get("requestState", "")
        if not isinstance(state, str) or "\x1b" not in state:
            super().on_ask(request)


@mutant("mrtr-request-state-untrusted", revision=MODERN)
class HangsOnAnAlteredState(Interviews):
    """Never answers a retry whose state does not verify, but looks as if it could."""

    def on_ask(self, request: Json) -> None:
        state = params(request).get("requestState")
        calls = [one for one in self.asked.values() if one.get("method") == "tools/call"]
        alike = isinstance(state, str) and len(state) == len(self.state(request))
        if not alike or state in [self.state(one) for one in calls]:
            super().on_ask(request)


@mutant("mrtr-request-state-integrity", revision=MODERN)
class TrustsWhatComesBack(Interviews):
    """Reads the topic out of a state that anybody can write, and verifies nothing else."""

    def state(self, request: Json) -> str:
        topic = params(request).get("arguments", {}).get("topic", "")
        return f"{topic}/{'step-one-of-two'}"

    def is_ours(self, request: Json, state: Any) -> bool:
        topic = params(request)["arguments"]["topic"]
        return isinstance(state, str) and state.startswith(f"{topic}/")


@mutant("mrtr-request-state-binding", revision=MODERN)
class HonoursAStateAnywhere(Interviews):
    """Seals a state, and takes it with any request."""

    def state(self, request: Json) -> str:
        del request
        return hashlib.sha256(b"key").hexdigest()


# --- what does not fit


@mutant("mrtr-validate-responses", revision=MODERN)
class HangsOnOddResponses(Interviews):
    """Never answers a retry with responses of the wrong shape."""

    def malformed(self, request: Json) -> None:
        pass


@mutant("mrtr-validate-responses", revision=MODERN, outcome="warn")
class TakesOddResponses(Interviews):
    """Takes responses of any shape for an answer."""

    def malformed(self, request: Json) -> None:
        self.finish(request)


@mutant("mrtr-ignore-extra-responses", revision=MODERN)
class RefusesExtraResponses(Interviews):
    """Refuses a retry that brings more than was asked."""

    def unexpected(self, request: Json) -> None:
        self.refuse(request, -32602, "Invalid params: unexpected inputResponses")


@mutant("mrtr-missing-responses-reprompt", revision=MODERN)
class RefusesAnEmptyRetry(Interviews):
    """Refuses a retry that brings no answer."""

    def missing(self, request: Json) -> None:
        self.refuse(request, -32602, "Invalid params: inputResponses has no who")


@mutant("mrtr-no-assumed-retry", revision=MODERN)
class WaitsForItsAnswer(Interviews):
    """Answers no new call while the question of another is open."""

    def __init__(self) -> None:
        super().__init__()
        self.open: set[str] = set()

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
