"""Puts things of ours beside those of the reference server, under the methods it has."""

from collections.abc import Callable
from typing import Any

from reference_server.protocol.calls import Call
from reference_server.protocol.methods import Methods
from reference_server.protocol.revisions import ALL

Result = dict[str, Any]
Handler = Callable[[Call], Result | None]
Wrap = Callable[[Handler, Call], Result | None]


def around(methods: Methods, name: str, wrap: Wrap) -> None:
    """Let calls of a method go through ``wrap``, which may pass them on, in every revision."""
    methods.around(name, ALL, wrap)


def listed_first(key: str, ours: Callable[[Call], list[Result]]) -> Wrap:
    """List things of ours at the head of the first page."""

    def wrap(inner: Handler, call: Call) -> Result | None:
        found = inner(call)
        if found is not None and "cursor" not in call.params:
            found[key] = [*ours(call), *found[key]]
        return found

    return wrap


def text(words: str) -> Result:
    return {"type": "text", "text": words}


def image() -> Result:
    return {"type": "image", "data": PNG, "mimeType": "image/png"}


def resource(uri: str, mime_type: str, words: str) -> Result:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": words}}


PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAAB"
    "JRU5ErkJggg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA="
