"""Test features of the reference server whose tools ask the client."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from reference_server.protocol.calls import Call
from reference_server.protocol.toolbox import Tool
from reference_server.settings import Settings
from reference_server.surface import Surface
from tests.reference_client import LEGACY, InProcess, Message, ask, modern_as

FORM = {
    "message": "Which?",
    "requestedSchema": {"type": "object", "properties": {"which": {"type": "string"}}},
}
SAMPLE = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Say hello."}}],
    "maxTokens": 10,
}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Hello."}, "model": "a model"}
QUESTIONS: dict[str, tuple[str, Message]] = {
    "elicit": ("elicitation/create", FORM),
    "url": ("elicitation/create", {"mode": "url", "url": "https://example.com", "message": "!"}),
    "sample": ("sampling/createMessage", SAMPLE),
    "tools": ("sampling/createMessage", {**SAMPLE, "tools": []}),
    "roots": ("roots/list", {}),
}


def tool(name: str, work: Callable[[Any, Any], Message], **more: Any) -> Tool:
    """Return a tool for any arguments."""
    schema = {"type": "object", "properties": {}}
    about = {"title": name, "description": name, "annotations": {}}
    about |= {"input_schema": schema, "output_schema": {"type": "object"}}
    return Tool(name, work=work, **{**about, **more})


class Curious:
    """A feature with tools that ask the questions in their argument ``ask``, in that order."""

    def __init__(self) -> None:
        self.bound_to = b""
        self.running = 0
        self.most_running = 0
        self.lock = threading.Lock()

    def __call__(self, surface: Surface) -> None:
        surface.toolbox.add(tool("curious", self._work))
        surface.toolbox.add(tool("other", self._work))
        surface.toolbox.add(tool("idle", lambda _call, _arguments: {}))
        surface.methods.request("roots/list", LEGACY, lambda _call: {})

    def _work(self, call: Call, arguments: Message) -> Message:
        kinds = arguments.get("ask", ["elicit"])
        if arguments.get("together"):
            found = call.ask_together({kind: QUESTIONS[kind] for kind in kinds})
            return {"answers": [found[kind] for kind in kinds]}
        answers = []
        for kind in kinds:
            method, params = QUESTIONS[kind]
            answers.append(call.ask(kind, method, params, bound_to=self.bound_to))
        with self.lock:
            self.running += 1
            self.most_running = max(self.running, self.most_running)
        time.sleep(arguments.get("sleep", 0))
        with self.lock:
            self.running -= 1
        return {"answers": answers}


def curious(revision: str, request_id: Any, **arguments: Any) -> Message:
    return ask(revision, request_id, "tools/call", name="curious", arguments=arguments)


@contextmanager
def session(
    revision: str, capabilities: Message, feature: Any = None, **settings: Any
) -> Iterator[InProcess]:
    with InProcess(Settings(**settings), [feature or Curious()]) as client:
        client.open(revision, capabilities)
        yield client


def answers_of(answer: Message) -> Any:
    return json.loads(answer["result"]["content"][0]["text"])["answers"]


def failure_of(answer: Message) -> Message:
    assert answer["result"]["isError"] is True
    body = json.loads(answer["result"]["content"][1]["text"])
    assert isinstance(body, dict)
    return body


ELICITS: Message = {"elicitation": {}}


def first(request_id: Any, name: str = "curious", **arguments: Any) -> Message:
    return modern_as(ELICITS, request_id, "tools/call", name=name, arguments=arguments)


def again(message: Message, request_id: Any, asked: Message, **responses: Any) -> Message:
    """Build the retry of a request that was answered with a question."""
    more: Message = {"requestState": asked["result"]["requestState"], "inputResponses": responses}
    return {**message, "id": request_id, "params": {**message["params"], **more}}


@contextmanager
def stateless(feature: Any = None, **settings: Any) -> Iterator[InProcess]:
    with InProcess(Settings(**settings), [feature or Curious()]) as client:
        yield client


def exchange(client: InProcess, message: Message) -> Message:
    client.send(message)
    answer = client.hear()
    assert isinstance(answer, dict)
    assert answer["id"] == message["id"]
    return answer


ACCEPTED = {"action": "accept", "content": {"which": "this"}}
