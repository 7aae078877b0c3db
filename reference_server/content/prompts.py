"""The prompts (server/prompts): the use of the editor, the git workflow, an edit of one file.

The list depends only on the operator's settings, so it never changes.
"""

from __future__ import annotations

import json

from ..failure import ToolError
from ..protocol.errors import invalid_params, quote
from ..protocol.pages import page
from ..tools.text import LONGEST_TEXT, read_text
from . import guides
from .media_types import PLAIN, media_type
from .uris import uri_of

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
        name: Its name.
        title: Title for people.
        description: Description for the user who fills it in.
    """

    def __init__(self, name: str, title: str, description: str) -> None:
        self.name = name
        self.title = title
        self.description = description

    def definition(self, revision: str) -> dict[str, Any]:
        """Return the ``PromptArgument`` object (schema.ts#PromptArgument) of a revision."""
        shown = {"name": self.name, "description": self.description, "required": True}
        return {**shown, "title": self.title} if revision >= TITLED_SINCE else shown


class Prompt:
    """One prompt.

    Args:
        name: Its name.
        title: Title for people.
        description: Purpose of the prompt.
        write: Takes the call and the values of the arguments, returns the messages. It may raise
            the errors of the workspace.
        arguments: The arguments that a user fills in.
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
    """The prompts of one server.

    Args:
        surface: The surface with the settings and the workspace.
    """

    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._prompts = {one.name: one for one in self._offered()}

    def _offered(self) -> list[Prompt]:
        settings = self._surface.settings
        if not settings.text_editor:
            return []
        guide = Prompt(
            "text_editor_guide",
            "How to use the text editor",
            "Explains the commands of the tool text_editor with examples.",
            _fixed(guides.VIEW_GUIDE if settings.read_only else guides.EDITOR_GUIDE),
        )
        if settings.read_only:
            return [guide]
        return [
            guide,
            Prompt(
                "git_workflow",
                "How to commit and push changes",
                "Explains how edited files are committed and pushed with git.",
                _fixed(guides.GIT_WORKFLOW),
            ),
            Prompt(
                "edit_file",
                "Edit a file",
                "Asks for one change to one file, which is attached.",
                self._edit_file,
                (
                    Argument("path", "File", "Path of the file, relative to the root."),
                    Argument("task", "Task", "What is to be changed in it."),
                ),
            ),
        ]

    def arguments_of(self, name: str) -> list[str] | None:
        """Return the names of a prompt's arguments, or None if there is no such prompt."""
        prompt = self._prompts.get(name)
        return None if prompt is None else [one.name for one in prompt.arguments]

    def list(self, call: Call) -> dict[str, Any]:
        """Answer ``prompts/list``."""
        shown = [prompt.definition(call.revision) for prompt in self._prompts.values()]
        return page(shown, call.params, "prompts", self._surface.settings.page_size)

    def get(self, call: Call) -> dict[str, Any]:
        """Answer ``prompts/get``.

        Raises:
            ProtocolError: -32602, the prompt or an argument is unknown, an argument is missing or
                invalid, or the file cannot be read (server/prompts#error-handling).
        """
        name = call.params.get("name")
        if not isinstance(name, str):
            raise invalid_params("name must be a string")
        prompt = self._prompts.get(name)
        if prompt is None:
            raise invalid_params(f"unknown prompt {quote(name)}")
        values = _read_values(call.params.get("arguments", {}), prompt.arguments)
        try:
            messages = prompt.write(call, values)
        except ToolError as error:
            raise invalid_params(error.message) from None
        return {"description": prompt.description, "messages": messages}

    def _edit_file(self, call: Call, values: Values) -> Messages:
        if not values["task"].strip():
            raise invalid_params("task must not be empty")
        snap = self._surface.workspace.read(values["path"], check=call.check)
        text = read_text(snap).text
        fits = len(text) <= LONGEST_TEXT
        request = guides.EDIT_FILE.format(
            path=json.dumps(snap.path, ensure_ascii=False),
            task=values["task"],
            look=guides.LOOK_BELOW if fits else guides.LOOK_THERE,
        )
        resource = {
            "uri": uri_of(snap.path),
            "mimeType": media_type(snap.path) or PLAIN,
            "text": text,
        }
        attached = [_message({"type": "resource", "resource": resource})] if fits else []
        return [_message({"type": "text", "text": request}), *attached]


def build(surface: Surface) -> Prompts:
    """Build the part ``prompts``."""
    return Prompts(surface)


def _fixed(text: str) -> Callable[[Call, Values], Messages]:
    return lambda _call, _values: [_message({"type": "text", "text": text})]


def _message(content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": content}


def _read_values(values: Any, arguments: Sequence[Argument]) -> Values:
    if not isinstance(values, dict):
        raise invalid_params("arguments must be an object")
    known = [one.name for one in arguments]
    for name, value in values.items():
        if name not in known:
            raise invalid_params(f"{quote(name)} is not an argument of this prompt")
        if not isinstance(value, str):
            raise invalid_params(f"{name} must be a string")
    for name in known:
        if name not in values:
            raise invalid_params(f"{name} is missing")
    return values
