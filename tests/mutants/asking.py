"""Servers that ask the client as they should, in a session and in rounds; mutants spoil it."""

from typing import Any, ClassVar

from tests.mutants.kit import AskingTool, Json, client_capabilities, encode, is_modern, params

FORM: Json = {
    "method": "elicitation/create",
    "params": {
        "message": "Who is it for?",
        "requestedSchema": {
            "type": "object",
            "properties": {"who": {"type": "string"}},
            "required": ["who"],
        },
    },
}


def elicits(declared: Json, mode: str) -> bool:
    """Whether a client that declares this can be asked in a mode."""
    modes = declared.get("elicitation")
    return isinstance(modes, dict) and (mode in modes or (mode == "form" and not modes))


def fills_in(answer: Json, asked: Json) -> bool:
    """Whether an answer has what a form requires, and plain values alone."""
    if "requestedSchema" not in asked:
        return True
    content = answer.get("content", {})
    if not isinstance(content, dict):
        return False
    required = asked["requestedSchema"].get("required", [])
    plain = not any(isinstance(value, dict) for value in content.values())
    return plain and set(required) <= content.keys()


class Asks(AskingTool):
    """Asks a client what it can answer, one question after the other, and waits for each."""

    method: ClassVar[str]
    params: ClassVar[Json]

    rest: ClassVar[dict[Any, list[tuple[str, Json]]]] = {}

    def questions(self) -> list[tuple[str, Json]]:
        """Return what is asked: methods and params."""
        return [(self.method, self.params)]

    def able(self, method: str, params: Json) -> bool:
        """Whether the client has declared that it can answer."""
        if method == "elicitation/create":
            return elicits(self.client, params.get("mode", "form"))
        return ("sampling" if method == "sampling/createMessage" else "roots") in self.client

    def on_ask(self, request: Json) -> None:
        self.rest[request["id"]] = [one for one in self.questions() if self.able(*one)]
        self.go_on(request)

    def go_on(self, request: Json) -> None:
        """Ask the next question, or end well."""
        rest = self.rest[request["id"]]
        if rest:
            self.ask(request, *rest[0])
        else:
            super().on_ask(request)

    def on_answer(self, request: Json, message: Json) -> None:
        _, asked = self.rest[request["id"]].pop(0)
        answer = message.get("result", {"action": "none"})
        if answer.get("action", "accept") == "accept" and self.fits(answer, asked):
            self.go_on(request)
        else:
            text = {"type": "text", "text": "not confirmed"}
            self.answer(request, {"content": [text], "isError": True})

    def fits(self, answer: Json, asked: Json) -> bool:
        """Whether an answer has what was asked for."""
        return fills_in(answer, asked)


class Interrupts(AskingTool):
    """A tool that asks a stateless client who it is for, and does it all as it should.

    Attributes:
        asks: what it asks for, by key.
    """

    asks: ClassVar[Json] = {"who": FORM}

    def on_ask(self, request: Json) -> None:
        given = params(request)
        if not is_modern(request):
            super().on_ask(request)
        elif not self.able(request):
            self.cannot(request)
        elif "requestState" not in given:
            self.interrupt(request)
        elif not self.is_ours(request, given["requestState"]):
            self.refuse(request, -32602, "Invalid params: no requestState of this request")
        else:
            self.take(request, given.get("inputResponses", {}))

    def able(self, request: Json) -> bool:
        """Whether the client can be asked."""
        return elicits(client_capabilities(request), "form")

    def cannot(self, request: Json) -> None:
        """Answer a client that cannot be asked."""
        super().on_ask(request)

    def interrupt(self, request: Json) -> None:
        """Ask."""
        asked = {"inputRequests": self.asks, "requestState": self.state(request)}
        self.answer(request, {"resultType": "input_required", **asked})

    def state(self, request: Json) -> str:
        """Return a state that fits one request."""
        own = {name: params(request).get(name) for name in ("name", "arguments")}
        import hashlib  # noqa: PLC0415  (most mutants need none)

        return hashlib.sha256(b"key" + encode(own)).hexdigest()

    def is_ours(self, request: Json, state: Any) -> bool:
        """Whether a state was given out for this request."""
        return isinstance(state, str) and state == self.state(request)

    def take(self, request: Json, responses: Any) -> None:
        """Go on with what a retry brings."""
        if not isinstance(responses, dict) or not all(
            isinstance(one, dict) for one in responses.values()
        ):
            self.malformed(request)
        elif not self.asks.keys() <= responses.keys():
            self.missing(request)
        elif not all(map(self.fits, responses.values())):
            self.fail(request, "That is no answer.")
        elif responses.keys() - self.asks.keys():
            self.unexpected(request)
        else:
            self.finish(request)

    def fits(self, response: Json) -> bool:
        """Whether a response, where it agrees to the form, fills it in."""
        asked = self.asks.get("who", {}).get("params", {})
        return response.get("action") != "accept" or fills_in(response, asked)

    def malformed(self, request: Json) -> None:
        """Handle responses of the wrong shape."""
        self.refuse(request, -32602, "Invalid params: inputResponses")

    def missing(self, request: Json) -> None:
        """Handle a retry that brings too little."""
        self.interrupt(request)

    def unexpected(self, request: Json) -> None:
        """Handle a retry that brings more than was asked."""
        self.finish(request)

    def finish(self, request: Json) -> None:
        """End well."""
        self.answer(request, {"content": [{"type": "text", "text": "Thank you."}]})

    def fail(self, request: Json, text: str) -> None:
        """End in an error of the tool."""
        self.answer(request, {"content": [{"type": "text", "text": text}], "isError": True})
