"""The files a script names, lent to the worker as text and taken back as bytes.

Nothing is written until the whole script has worked, and a preview and a real run are the same
up to that point: what is committed is what would have been shown.
"""

from __future__ import annotations

from contextlib import contextmanager

from ..failure import ToolError
from ..tools.text import LONGEST_TEXT, Text, read_text
from ..workspace.refusals import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..protocol.calls import Call
    from ..workspace import Edit, Snapshot, Workspace

_NEWLINES = {"lf": "\n", "none": "\n", "crlf": "\r\n", "cr": "\r"}
_MOST_FILES = 200


class Stage:
    """The files of one script.

    Args:
        call: Asked whether anybody still waits.
        workspace: Where they are.
        root: Directory below a root that the paths are relative to.
    """

    def __init__(self, call: Call, workspace: Workspace, root: str) -> None:
        self._call = call
        self._workspace = workspace
        self._root = root
        self._keys: dict[str, str] = {}
        self._commands: dict[str, dict[str, Any]] = {}
        self._files: dict[str, _File] = {}
        try:
            workspace.policy.candidates("", root, listing=True)
        except Refusal as refusal:
            refusal.field = "root"
            raise

    def take(self, commands: list[dict[str, Any]]) -> None:
        """Read the files of all commands, after the whole policy has been asked for each.

        Raises:
            ToolError: One is refused, or is not text that can be edited line by line.
        """
        edited = {one["path"] for one in commands if one["type"] != "RmFileCommand"}
        for index, command in enumerate(commands, 1):
            path = command["path"]
            place = {"file": path, "script_line": command["line"], "command_index": index}
            with _blamed_on(place):
                if path not in self._keys:
                    self._take(path, edited=path in edited)
                self._commands[self._keys[path]] = place

    def _take(self, path: str, *, edited: bool) -> None:
        places = self._workspace.policy.candidates(path, self._root, writing=True)
        before = self._workspace.find(path, cwd=self._root, check=self._call.check)
        key = (before.at if before else places[0]).path
        self._keys[path] = key  # two spellings, one file
        if key not in self._files:
            self._files[key] = _File(path, key, before, edited=edited)
        if len(self._files) > _MOST_FILES:
            raise ToolError(
                f"The script names more than {_MOST_FILES} files.", code="SCRIPT_TOO_LARGE"
            )

    def request(self) -> dict[str, Any]:
        """Give what the worker has to know of the files."""
        return {
            "keys": self._keys,
            "texts": {key: file.lent() for key, file in self._files.items()},
            "shown": {key: file.shown for key, file in self._files.items()},
        }

    def put(self, edit: Edit, files: dict[str, Any]) -> None:
        """Enter what the worker made of the files into an edit.

        Raises:
            Refusal: As ``Edit.put``. It names the last command that is about the file.
        """
        for key, made in files.items():
            file = self._files[key]
            with _blamed_on(self._commands[key]):
                data = file.returned(made["text"])
                if file.before and data is None:
                    edit.remove(file.before)
                elif data is not None:
                    edit.put(file.path, data, cwd=self._root, before=file.before)

    def describe(self, files: dict[str, Any]) -> list[dict[str, Any]]:
        """Give what happens to each file, with its diff, in the order of the script.

        The diffs of one answer have no more characters than the limit. One that does not fit is
        left out, and ``left_out`` counts its characters.
        """
        described = [self._files[key].describe(made) for key, made in files.items()]
        left = LONGEST_TEXT
        for one in described:
            if len(one["diff"]) > left:
                one["left_out"] = len(one["diff"])
                one["diff"] = ""
            left -= len(one["diff"])
        return described


@contextmanager
def _blamed_on(command: dict[str, Any]) -> Iterator[None]:
    """Let an error name the command that it is about.

    Args:
        command: The members of ``context``.
    """
    try:
        yield
    except ToolError as error:
        error.field = "commands"
        error.context = command
        raise


class _File:
    """One file: as it is, and how the worker sees it.

    Args:
        path: As the script has it.
        shown: The path that leads to it.
        before: As it is; None if there is none.
        edited: Whether its lines matter; any file can be removed.
    """

    def __init__(self, path: str, shown: str, before: Snapshot | None, *, edited: bool) -> None:
        self.path = path
        self.shown = shown
        self.before = before
        self._text: Text | None = None
        if before is None:
            return
        try:
            self._text = read_text(before)
        except ToolError:
            if edited:
                raise
        if edited and self._text and self._text.newline == "mixed":
            raise ToolError(
                "The file mixes newlines; editing it line by line would change all of them.",
                code="MIXED_NEWLINES",
                type="ExecutionError",
                suggestions=["Change it with a tool that leaves newlines alone."],
                related_tools=("file.apply_patch_only", "text_editor"),
            )

    def lent(self) -> str | None:
        """Give its text; lines end in LF."""
        if self._text is None:
            return "" if self.before else None
        return self._text.text.replace("\r\n", "\n").replace("\r", "\n")

    def returned(self, text: str | None) -> bytes | None:
        """Give the bytes for a new text: encoding, mark and newlines as they were."""
        if text is None:
            return None
        if self._text is None:
            return text.encode()
        newline = _NEWLINES[self._text.newline]
        return self._text.encode(text if newline == "\n" else text.replace("\n", newline))

    def describe(self, made: dict[str, Any]) -> dict[str, Any]:
        """Give what happens to it."""
        data = self.returned(made["text"])
        described: dict[str, Any] = {"file": self.shown, "diff": made["diff"]}
        if self.before and self._text is None:
            described["diff"] = f"Binary files a/{self.shown} and /dev/null differ\n"
        if data is None:
            return {**described, "change": "removed"}
        from hashlib import sha256  # noqa: PLC0415 - loading OpenSSL takes as long as starting

        change = "updated" if self.before else "created"
        return {**described, "change": change, "sha256": sha256(data).hexdigest()}
