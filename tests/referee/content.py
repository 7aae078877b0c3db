"""The resources, prompts and completions the official suite asks for."""

import re
from typing import Any

from reference_server.protocol.calls import Call
from reference_server.protocol.errors import invalid_params
from reference_server.protocol.revisions import ALL
from reference_server.surface import Surface
from tests.referee.tools import STRING, Shelf, form
from tests.referee.wrapping import PNG, Handler, Result, around, image, listed_first, resource, text

TEXT, BINARY, WATCHED = "test://static-text", "test://static-binary", "test://watched-resource"
RESOURCES = [
    {"uri": TEXT, "name": "static-text", "mimeType": "text/plain"},
    {"uri": BINARY, "name": "static-binary", "mimeType": "image/png"},
    {"uri": WATCHED, "name": "watched-resource", "mimeType": "text/plain"},
]
TEMPLATE = {
    "uriTemplate": "test://template/{id}/data",
    "name": "template",
    "mimeType": "application/json",
}
MATCH = re.compile(r"test://template/([^/]+)/data")

ARGUMENTS = {
    "test_simple_prompt": (),
    "test_prompt_with_arguments": ("arg1", "arg2"),
    "test_prompt_with_embedded_resource": ("resourceUri",),
    "test_prompt_with_image": (),
    "test_input_required_result_prompt": (),
}
PASSING = "test_passing_prompt"
COMPLETED: dict[Any, tuple[str, ...]] = {
    ("ref/resource", TEMPLATE["uriTemplate"]): ("id",),
    **{("ref/prompt", name): arguments for name, arguments in ARGUMENTS.items()},
}
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S")


def contents(uri: str) -> Result | None:
    template = MATCH.fullmatch(uri)
    if uri == BINARY:
        return {"uri": uri, "mimeType": "image/png", "blob": PNG}
    if uri in {TEXT, WATCHED}:
        words = "This is the content of the static text resource."
        return {"uri": uri, "mimeType": "text/plain", "text": words}
    if template:
        words = f'{{"id":"{template[1]}","templateTest":true}}'
        return {"uri": uri, "mimeType": "application/json", "text": words}
    return None


def read(inner: Handler, call: Call) -> Result | None:
    found = contents(str(call.params.get("uri")))
    return inner(call) if found is None else {"contents": [found]}


def subscribe(inner: Handler, call: Call) -> Result | None:
    ours = contents(str(call.params.get("uri"))) is not None
    return {} if ours else inner(call)


def message(block: Result) -> Result:
    return {"role": "user", "content": block}


class Prompts:
    """The prompts; one of them comes and goes."""

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._arguments: dict[str, tuple[str, ...]] = dict(ARGUMENTS)

    def shown(self, _call: Call) -> list[Result]:
        return [
            {
                "name": name,
                "description": f"For the official suite: {name}.",
                "arguments": [
                    {"name": one, "description": one, "required": True} for one in arguments
                ],
            }
            for name, arguments in self._arguments.items()
        ]

    def get(self, inner: Handler, call: Call) -> Result | None:
        name = str(call.params.get("name"))
        if name not in self._arguments:
            return inner(call)
        given = self._given(call, self._arguments[name])
        if name == "test_prompt_with_arguments":
            said = f"arg1='{given['arg1']}', arg2='{given['arg2']}'"
            return {"messages": [message(text(f"Prompt with arguments: {said}"))]}
        if name == "test_prompt_with_embedded_resource":
            if not URI.match(given["resourceUri"]):
                raise invalid_params("resourceUri must be a URI")
            block = resource(given["resourceUri"], "text/plain", "Embedded content.")
            return {"messages": [message(block), message(text("Process the resource above."))]}
        if name == "test_prompt_with_image":
            return {"messages": [message(image()), message(text("Analyze the image above."))]}
        words = "This is a simple prompt for testing."
        if name == "test_input_required_result_prompt":
            asked = form("What context should the prompt use?", {"context": STRING}, ["context"])
            answer = call.ask("user_context", "elicitation/create", asked)
            words = f"Context: {answer.get('content')}"
        return {"messages": [message(text(words))]}

    @staticmethod
    def _given(call: Call, wanted: tuple[str, ...]) -> dict[str, str]:
        given = call.params.get("arguments", {})
        if not isinstance(given, dict) or set(given) != set(wanted):
            raise invalid_params(f"arguments must be {', '.join(wanted) or 'left out'}")
        if not all(isinstance(value, str) for value in given.values()):
            raise invalid_params("arguments must be strings")
        return given

    def change(self, _call: Call) -> Result:
        if self._arguments.pop(PASSING, None) is None:
            self._arguments[PASSING] = ()
        self._surface.part("features.subscriptions").list_changed("prompts")
        return {"content": [text("The list of prompts has changed.")]}


def complete(inner: Handler, call: Call) -> Result | None:
    ref, argument = call.params.get("ref"), call.params.get("argument")
    if not isinstance(ref, dict) or not isinstance(argument, dict):
        return inner(call)
    name, typed = argument.get("name"), argument.get("value")
    ours = COMPLETED.get((ref.get("type"), ref.get("name", ref.get("uri"))))
    if ours is None:
        return inner(call)
    if name not in ours or not isinstance(typed, str):
        raise invalid_params("argument must name one that can be completed, and a string")
    values = [value for value in ("1", "123", "paris", "park", "party") if value.startswith(typed)]
    return {"completion": {"values": values, "total": len(values), "hasMore": False}}


def feature(surface: Surface) -> None:
    """Add resources, prompts and completions."""
    methods, prompts = surface.methods, Prompts(surface)
    methods.capability("prompts", {"listChanged": True}, ALL)
    around(methods, "resources/list", listed_first("resources", lambda _: RESOURCES))
    templates = listed_first("resourceTemplates", lambda _: [TEMPLATE])
    around(methods, "resources/templates/list", templates)
    around(methods, "resources/read", read)
    around(methods, "resources/subscribe", subscribe)
    around(methods, "resources/unsubscribe", subscribe)
    around(methods, "prompts/list", listed_first("prompts", prompts.shown))
    around(methods, "prompts/get", prompts.get)
    around(methods, "completion/complete", complete)
    shelf = Shelf()
    shelf.add("test_trigger_prompt_change", prompts.change)
    shelf.install(surface)
