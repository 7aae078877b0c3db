"""The tools the official suite calls, save those that take several rounds."""

import time
from collections.abc import Callable
from typing import Any

from reference_server.protocol.calls import Call
from reference_server.protocol.toolbox import Tool
from reference_server.surface import Surface
from tests.referee.wrapping import WAV, Handler, Result, around, image, listed_first, resource, text

Work = Callable[[Call], Result]

PAUSE = 0.12
"""Seconds between two reports: the core sends no more than ten a second."""

STRING = {"type": "string"}
EMPTY = {"type": "object", "properties": {}, "additionalProperties": False}


def content(*blocks: Result, **more: Any) -> Result:
    return {"content": list(blocks), **more}


class Shelf:
    """Tools by name: what is listed, and what is done."""

    def __init__(self) -> None:
        self._shown: list[Result] = []
        self._works: dict[str, Work] = {}

    def add(self, name: str, work: Work, schema: Result = EMPTY, *, description: str = "") -> None:
        said = description or f"For the official suite: {name}."
        self._shown.append({"name": name, "description": said, "inputSchema": schema})
        self._works[name] = work

    def install(self, surface: Surface) -> None:
        """Offer them beside the tools there are."""

        def call_tool(inner: Handler, call: Call) -> Result | None:
            work = self._works.get(str(call.params.get("name")))
            return inner(call) if work is None else work(call)

        around(surface.methods, "tools/list", listed_first("tools", lambda _: self._shown))
        around(surface.methods, "tools/call", call_tool)


def argument(call: Call, name: str) -> str:
    return str((call.params.get("arguments") or {}).get(name, ""))


def strings(*names: str) -> Result:
    return {"type": "object", "properties": dict.fromkeys(names, STRING), "required": list(names)}


def log_thrice(call: Call) -> Result:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        call.log("info", words)
        time.sleep(PAUSE / 2)
    return content(text("Logged three times."))


def progress(call: Call) -> Result:
    for done in (0, 50, 100):
        call.progress(done, 100, f"{done} of 100")
        time.sleep(PAUSE)
    return content(text("Done."))


def sample(call: Call) -> Result:
    prompt = argument(call, "prompt") or "Hello"
    messages = [{"role": "user", "content": text(prompt)}]
    asked = {"messages": messages, "maxTokens": 100}
    answer = call.ask("answer", "sampling/createMessage", asked)
    return content(text(f"LLM response: {answer['content'].get('text', '')}"))


def form(message: str, properties: Result, required: list[str]) -> Result:
    schema = {"type": "object", "properties": properties, "required": required}
    return {"message": message, "requestedSchema": schema}


def elicit(asked: Callable[[Call], Result]) -> Work:
    def work(call: Call) -> Result:
        answer = call.ask("answer", "elicitation/create", asked(call))
        said = f"action={answer['action']}, content={answer.get('content')}"
        return content(text(f"User response: {said}"))

    return work


USER = {
    "username": {"type": "string", "description": "User's response"},
    "email": {"type": "string", "description": "User's email address"},
}
DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
NAMES = ["option1", "option2", "option3"]
TITLED = [{"const": name, "title": name.title()} for name in NAMES]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": NAMES},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {"type": "string", "enum": NAMES, "enumNames": [name.title() for name in NAMES]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": NAMES}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}
SCHEMA_2020_12 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": STRING, "city": STRING},
        }
    },
    "properties": {
        "name": STRING,
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": STRING,
        "email": STRING,
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
REPEATED = {"type": "object", "properties": {"region": {**STRING, "x-mcp-header": "Region"}}}


def change_tools(surface: Surface) -> Work:
    """Let a tool come and go, so that the core has something to announce."""
    passing = Tool(
        "test_passing_tool",
        title="Passing",
        description="Comes and goes.",
        input_schema=EMPTY,
        output_schema={"type": "object"},
        annotations={"readOnlyHint": True},
        work=lambda _call, _arguments: {},
    )

    def work(_call: Call) -> Result:
        if passing.name in surface.toolbox.tools():
            surface.toolbox.remove(passing.name)
        else:
            surface.toolbox.add(passing)
        return content(text("The list of tools has changed."))

    return work


def feature(surface: Surface) -> None:
    """Add the tools."""
    shelf = Shelf()
    simple = text("This is a simple text response for testing.")
    embedded = resource(
        "test://embedded-resource", "text/plain", "This is an embedded resource content."
    )
    mixed = resource(
        "test://mixed-content-resource", "application/json", '{"test":"data","value":123}'
    )
    audio = {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
    shelf.add("test_simple_text", lambda _: content(simple))
    shelf.add("test_image_content", lambda _: content(image()))
    shelf.add("test_audio_content", lambda _: content(audio))
    shelf.add("test_embedded_resource", lambda _: content(embedded))
    shelf.add(
        "test_multiple_content_types",
        lambda _: content(text("Multiple content types test:"), image(), mixed),
    )
    failed = text("This tool intentionally returns an error for testing")
    shelf.add("test_error_handling", lambda _: content(failed, isError=True))
    shelf.add("test_tool_with_logging", log_thrice)
    shelf.add("test_logging_tool", log_thrice)
    shelf.add("test_tool_with_progress", progress)
    shelf.add("test_sampling", sample, strings("prompt"))
    shelf.add("test_missing_capability", sample)
    user = elicit(lambda call: form(argument(call, "message"), USER, ["username", "email"]))
    shelf.add("test_elicitation", user, strings("message"))
    plain = elicit(lambda _: form("Who are you?", USER, ["username"]))
    shelf.add("test_streaming_elicitation", plain)
    defaults = elicit(lambda _: form("Defaults?", DEFAULTS, []))
    shelf.add("test_elicitation_sep1034_defaults", defaults)
    enums = elicit(lambda _: form("Which?", ENUMS, []))
    shelf.add("test_elicitation_sep1330_enums", enums)
    shelf.add("json_schema_2020_12_tool", lambda _: content(simple), SCHEMA_2020_12)
    shelf.add("test_repeated_argument", lambda _: content(simple), REPEATED)
    shelf.add("test_trigger_tool_change", change_tools(surface))
    shelf.install(surface)
