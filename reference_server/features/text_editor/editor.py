"""The tool ``text_editor``: view, create, str_replace, insert and undo_edit of text files.

Its commands and arguments are those of the text editor tool that models are trained on.
"""

from __future__ import annotations

from ...failure import ToolError
from ...protocol.toolbox import Tool
from ...tools.schemas import hints
from ...tools.text import LONGEST_TEXT, Text, advice, read_text
from ...workspace.entries import sha256
from ...workspace.refusals import IsDirectory, OutsideClientRoots, Refusal
from .editing import NUMBER, insert, numbered, replace, snippet
from .history import History, Step
from .schema import checked, description, input_schema, output_schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from ...protocol.calls import Call
    from ...protocol.toolbox import Arguments
    from ...surface import Surface
    from ...workspace import Edit, Entry, Snapshot
    from .editing import Edited

MOST_ENTRIES = 1_000
"""Maximum number of names in one view of a directory."""


def install(surface: Surface) -> None:
    """Add the editor, unless the operator disabled it; on a read-only server it only views."""
    settings = surface.settings
    if not settings.text_editor:
        return
    surface.toolbox.add(
        _EditorTool(
            "text_editor",
            title="Edit text files" if not settings.read_only else "View text files",
            description=description(settings),
            input_schema=input_schema(settings),
            output_schema=output_schema(settings),
            annotations=hints(read_only=settings.read_only),
            work=Editor(surface).work,
        )
    )


class _EditorTool(Tool):
    """Lists no ``insert_text``: only its description names it.

    A client that fills in every text argument would send it with the other commands.
    """

    def definition(self, revision: str) -> dict[str, Any]:
        shown = super().definition(revision)
        properties = dict(self.input_schema["properties"])
        properties.pop("insert_text", None)
        return {**shown, "inputSchema": {**self.input_schema, "properties": properties}}


class Editor:
    def __init__(self, surface: Surface) -> None:
        self._surface = surface
        self._history = History()
        self._commands: dict[str, Callable[[Call, Arguments], dict[str, Any]]] = {
            "view": self._view,
            "create": self._create,
            "str_replace": self._str_replace,
            "insert": self._insert,
            "undo_edit": self._undo,
        }

    def work(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        command = arguments["command"]
        return self._commands[command](call, checked(command, arguments))

    # --- viewing

    def _view(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        try:
            snap = self._read(call, arguments)
        except IsDirectory:
            return self._view_directory(call, arguments)
        except OutsideClientRoots:  # it may be a directory above a client root
            if "view_range" in arguments:
                raise
            return self._view_directory(call, arguments)
        text = _text_of(snap)
        first, last = _range(arguments.get("view_range"), text, snap.path)
        part = text.part(first, last) if last else ""
        shown = numbered(part, first) if len(part) <= LONGEST_TEXT else part
        if len(shown) > LONGEST_TEXT:
            way = "View it with view_range [{first}, {last}], then go on from there."
            raise ToolError(
                f"This would be {len(shown)} characters; one answer holds {LONGEST_TEXT}.",
                code="TEXT_TOO_LONG",
                field="view_range",
                context={"file": snap.path},
                suggestions=[advice(text, first, way, NUMBER)],
            )
        return {
            **_head(arguments, snap.path),
            "text": shown,
            "first_line": first,
            "last_line": last,
            **text.facts(),
        }

    def _view_directory(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        path, cwd = arguments["path"], arguments.get("cwd", "")
        if "view_range" in arguments:
            raise ToolError(
                "The path is a directory; view_range is for files.",
                code="IS_DIRECTORY",
                type="ExecutionError",
                field="view_range",
                context={"file": path},
            )
        shown: list[dict[str, Any]] = []
        truncated = False
        found, entries = self._surface.workspace.directory(path, cwd=cwd)
        for entry in self._two_levels(entries):
            call.check()
            truncated = len(shown) == MOST_ENTRIES
            if truncated:
                break
            shown.append({"path": entry.path, "kind": entry.kind})
            if entry.kind == "file":
                shown[-1]["size"] = entry.size
        return {**_head(arguments, found or "."), "entries": shown, "truncated": truncated}

    def _two_levels(self, entries: list[Entry]) -> Iterator[Entry]:
        """Yield entries and the entries of directories among them; links are not followed."""
        for entry in entries:
            yield entry
            if entry.kind == "directory":
                try:
                    yield from self._surface.workspace.entries(entry.path)
                except Refusal:  # removed meanwhile, or not readable
                    continue

    # --- writing

    def _create(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        edit = self._surface.workspace.edit(call.who, call.request_id)
        data = arguments["file_text"].encode()
        edit.put(arguments["path"], data, cwd=arguments.get("cwd", ""))
        if pending := self._commit(call, edit, arguments):
            return pending
        path = self._remember(edit)
        return {**self._written(arguments, path), **Text(data).facts()}

    def _str_replace(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        old, new = arguments["old_str"], arguments["new_str"]
        return self._change(call, arguments, lambda text: replace(text.text, old, new))

    def _insert(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        line, new = int(arguments["insert_line"]), arguments["new_str"]
        return self._change(call, arguments, lambda text: insert(text, line, new))

    def _change(
        self, call: Call, arguments: Arguments, make: Callable[[Text], Edited]
    ) -> dict[str, Any]:
        snap = self._read_to_write(call, arguments)
        text = _text_of(snap)
        try:
            edited = make(text)
        except ToolError as error:
            error.context = {"file": snap.path, **(error.context or {})}
            raise
        written = Text(text.encode(edited.text), text.encoding)
        edit = self._surface.workspace.edit(call.who, call.request_id)
        edit.put(snap.path, written.data, before=snap)
        if pending := self._commit(call, edit, arguments):
            return pending
        self._remember(edit)
        return {
            **self._written(arguments, snap.path),
            "first_line": edited.first_line,
            "last_line": edited.last_line,
            "snippet": snippet(written, edited.first_line, edited.last_line),
            **written.facts(),
        }

    def _undo(self, call: Call, arguments: Arguments) -> dict[str, Any]:
        snap = self._read_to_write(call, arguments)
        step = self._history.last(snap.path)
        if step is None:
            raise ToolError(
                "There is no edit of this file to take back. Only edits that this tool has made "
                "since the server started are remembered, and of those the last ones.",
                code="NOTHING_TO_UNDO",
                field="path",
                context={"file": snap.path},
            )
        if step.after != snap.sha256:
            raise ToolError(
                "The file has changed since the last edit of this tool; nothing was written.",
                code="CHANGED",
                type="ConflictError",
                field="path",
                context={"file": snap.path},
                recovery_steps=["View the file.", "Change it back with str_replace."],
            )
        edit = self._surface.workspace.edit(call.who, call.request_id)
        if step.before is None:
            edit.remove(snap)
        else:
            edit.put(snap.path, step.before, before=snap)
        if pending := self._commit(call, edit, arguments):
            return pending
        self._history.forget(step)
        written = self._written(arguments, snap.path)
        if step.before is None:
            return {**written, "removed": True}
        return {**written, **Text(step.before).facts()}

    # --- shared

    def _read(self, call: Call, arguments: Arguments) -> Snapshot:
        path, cwd = arguments["path"], arguments.get("cwd", "")
        return self._surface.workspace.read(path, cwd=cwd, check=call.check)

    def _read_to_write(self, call: Call, arguments: Arguments) -> Snapshot:
        """Read a file that may be written; an error reveals nothing about any other file."""
        path, cwd = arguments["path"], arguments.get("cwd", "")
        self._surface.workspace.policy.candidates(path, cwd, writing=True)
        return self._read(call, arguments)

    def _commit(self, call: Call, edit: Edit, arguments: Arguments) -> dict[str, Any] | None:
        """Write and return None, or return the result that asks the user for confirmation."""
        pending: dict[str, Any] | None = self._surface.part("features.confirmation").commit(
            call, edit, arguments
        )
        return pending

    def _remember(self, edit: Edit) -> str:
        """Add an edit to the history; return the path of its file."""
        change = edit.changes[0]
        self._history.record(Step(change.path, change.before, sha256(change.after or b"")))
        return change.path

    def _written(self, arguments: Arguments, path: str) -> dict[str, Any]:
        return {**_head(arguments, path), "undo_steps": self._history.count(path)}


def _head(arguments: Arguments, path: str) -> dict[str, Any]:
    return {"command": arguments["command"], "path": path}


def _text_of(snap: Snapshot) -> Text:
    try:
        return read_text(snap)
    except ToolError as error:
        if error.field != "encoding":
            raise
        raise ToolError(  # this tool has no such argument
            "The file is not text in UTF-8, nor in UTF-16 with a byte order mark.",
            code=error.code,
            field="path",
            context=error.context,
        ) from None


def _range(wanted: list[Any] | None, text: Text, path: str) -> tuple[int, int]:
    """Return the first and the last line to show; 1 and 0 for an empty file."""
    first, last = map(int, wanted or (1, -1))
    last = text.line_count if last == -1 else last
    if 1 <= first <= last <= text.line_count or (first, last) == (1, 0) == (1, text.line_count):
        return first, last
    raise ToolError(
        f"The file has {text.line_count} lines; view_range is [first, last] with both of them "
        "among these, first not after last, and -1 as last for the end.",
        code="LINE_OUT_OF_RANGE",
        field="view_range",
        context={"file": path},
    )
