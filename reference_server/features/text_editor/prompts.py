"""The prompts: the use of the editor, the git workflow, an edit of one file."""

from __future__ import annotations

import json

from ...content.media_types import PLAIN, media_type
from ...content.prompts import Argument, Prompt
from ...content.uris import uri_of
from ...protocol.errors import invalid_params
from ...tools.text import LONGEST_TEXT, read_text
from . import guides

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ...content.prompts import Messages, Values
    from ...protocol.calls import Call
    from ...surface import Surface


def offered(surface: Surface) -> list[Prompt]:
    read_only = surface.settings.read_only
    guide = Prompt(
        "text_editor_guide",
        "How to use the text editor",
        "Explains the commands of the tool text_editor with examples.",
        _fixed(guides.VIEW_GUIDE if read_only else guides.EDITOR_GUIDE),
    )
    if read_only:
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
            lambda call, values: _edit_file(surface, call, values),
            (
                Argument("path", "File", "Path of the file, relative to the root."),
                Argument("task", "Task", "What is to be changed in it.", guides.TASKS),
            ),
        ),
    ]


def _edit_file(surface: Surface, call: Call, values: Values) -> Messages:
    if not values["task"].strip():
        raise invalid_params("task must not be empty")
    snap = surface.workspace.read(values["path"], check=call.check)
    text = read_text(snap).text
    fits = len(text) <= LONGEST_TEXT
    request = guides.EDIT_FILE.format(
        path=json.dumps(snap.path, ensure_ascii=False),
        task=values["task"],
        look=guides.LOOK_BELOW if fits else guides.LOOK_THERE,
    )
    resource = {"uri": uri_of(snap.path), "mimeType": media_type(snap.path) or PLAIN, "text": text}
    attached = [_message({"type": "resource", "resource": resource})] if fits else []
    return [_message({"type": "text", "text": request}), *attached]


def _fixed(text: str) -> Callable[[Call, Values], Messages]:
    return lambda _call, _values: [_message({"type": "text", "text": text})]


def _message(content: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": content}
