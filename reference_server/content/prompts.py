"""The prompts (server/prompts), which features offer (``Surface.prompts``).

The list depends only on the operator's settings, so it never changes.
"""

from __future__ import annotations

from ..failure import ToolError
from ..protocol.envelope import object_of, string_of
from ..protocol.errors import invalid_params, quote
from ..protocol.pages import page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, TypeAlias

    from ..protocol.calls import Call
    from ..surface import Surface

    Values: TypeAlias = dict[str, str]
    Messages: TypeAlias = list[dict[str, Any]]

TITLED_SINCE = "2025-06-18"


class Argument:
    """One required argument of a prompt.

    Args:
        description: Description for the user who fills it in.
        values: Values to complete it with; those of an argument ``path`` are paths.
    """

    def __init__(self, name: str, title: str, description: str, values: Sequence[str] = ()) -> None:
        self.name = name
        self.title = title
        self.description = description
        self.values = values

    def definition(self, revision: str) -> dict[str, Any]:
        """Return the ``PromptArgument`` object (schema.ts#PromptArgument) of a revision."""
        shown = {"name": self.name, "description": self.description, "required": True}
        return {**shown, "title": self.title} if revision >= TITLED_SINCE else shown


class Prompt:
    """One prompt.

    Args:
        write: Takes the call and the values of the arguments, returns the messages. It may raise
            the errors of the workspace.
    """

    def __init__(
        self,
        name: str,
        title: str,
        description: str,
        write: Callable[[Call, Values], Messages],
        arguments: Sequence[Argument] = (),
    ) -> None:
        self.name = name
        self.title = title
        self.description = description
        self.write = write
        self.arguments = arguments

    def definition(self, revision: str) -> dict[str, Any]:
        """Return the ``Prompt`` object (schema.ts#Prompt) of a revision."""
        shown: dict[str, Any] = {"name": self.name, "description": self.description}
        if revision >= TITLED_SINCE:
            shown["title"] = self.title
        if self.arguments:
            shown["arguments"] = [one.definition(revision) for one in self.arguments]
        return shown


class Prompts:
    def __init__(self, surface: Surface) -> None:
        self._page_size = surface.settings.page_size
        self._prompts = {one.name: one for offer in surface.prompts for one in offer()}

    def find(self, name: str) -> Prompt | None:
        return self._prompts.get(name)

    def list(self, call: Call) -> dict[str, Any]:
        shown = [prompt.definition(call.revision) for prompt in self._prompts.values()]
        return page(shown, call.params, "prompts", self._page_size)

    def get(self, call: Call) -> dict[str, Any]:
        name = string_of(call.params, "name")
        prompt = self._prompts.get(name)
        if prompt is None:
            raise invalid_params(f"unknown prompt {quote(name)}")
        values = _read_values(object_of(call.params, "arguments", {}), prompt.arguments)
        try:
            messages = prompt.write(call, values)
        except ToolError as error:
            raise invalid_params(error.message) from None
        return {"description": prompt.description, "messages": messages}


def build(surface: Surface) -> Prompts:
    """Build the part ``prompts``."""
    return Prompts(surface)


def _read_values(values: dict[str, Any], arguments: Sequence[Argument]) -> Values:
    known = [one.name for one in arguments]
    for name in values:
        if name not in known:
            raise invalid_params(f"{quote(name)} is not an argument of this prompt")
        string_of(values, name)
    for name in known:
        if name not in values:
            raise invalid_params(f"{name} is missing")
    return values
