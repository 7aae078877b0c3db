"""The files that a script names: sent to the worker as text, and written back as bytes.

Nothing is written until the whole script has succeeded. Up to that point, a dry run and a real run
are the same. A real run therefore writes exactly the changes that a dry run shows.
"""

from __future__ import annotations

from contextlib import contextmanager

from ...failure import ToolError
from ...tools.text import LONGEST_TEXT, Text, read_text
from ...workspace.refusals import Refusal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ...protocol.calls import Call
    from ...workspace import Edit, Snapshot, Workspace

_NEWLINES = {"lf": "\n", "none": "\n", "crlf": "\r\n", "cr": "\r"}
_MOST_FILES = 200


class Stage:
    """The files of one script.

    Args:
        root: Directory below a root. The paths of the script are relative to it.
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
        """Check the files of all commands against the policy and read them."""
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
        self._keys[path] = key  # several paths may lead to one file
        if key not in self._files:
            self._files[key] = _File(path, key, before, edited=edited)
        if len(self._files) > _MOST_FILES:
            raise ToolError(
                f"The script names more than {_MOST_FILES} files.", code="SCRIPT_TOO_LARGE"
            )

    def request(self) -> dict[str, Any]:
        return {
            "keys": self._keys,
            "texts": {key: file.lent() for key, file in self._files.items()},
            "shown": {key: file.shown for key, file in self._files.items()},
        }

    def put(self, edit: Edit, files: dict[str, Any]) -> None:
        """Add the changed files to an edit."""
        for key, made in files.items():
            file = self._files[key]
            with _blamed_on(self._commands[key]):
                data = file.returned(made["text"])
                if file.before and data is None:
                    edit.remove(file.before)
                elif data is not None:
                    edit.put(file.path, data, cwd=self._root, before=file.before)

    def describe(self, files: dict[str, Any]) -> list[dict[str, Any]]:
        """Describe the change of each file, with its diff, in the order of the script.

        The total length of the diffs is limited. A diff that does not fit is left out, and
        ``left_out`` is its number of characters.
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
    """Add a command to the errors that are raised in the ``with`` block."""
    try:
        yield
    except ToolError as error:
        error.field = "commands"
        error.context = command
        raise


class _File:
    """One file, as bytes and as text for the worker.

    Args:
        path: Path of the file in the script.
        shown: Path of the file in results.
        edited: Whether a command creates or updates the file. A file that is only removed may have
            any content.
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
                related_tools=("file_apply_patch_only", "text_editor"),
            )

    def lent(self) -> str | None:
        """Return the text for the worker, with LF newlines.

        The text is empty if the file is not text, and None if the file does not exist.
        """
        if self._text is None:
            return "" if self.before else None
        return self._text.text.replace("\r\n", "\n").replace("\r", "\n")

    def returned(self, text: str | None) -> bytes | None:
        """Return the bytes for a new text, or None if the file is removed.

        The encoding, the byte order mark and the newlines of the old file are kept.
        """
        if text is None:
            return None
        if self._text is None:
            return text.encode()
        newline = _NEWLINES[self._text.newline]
        return self._text.encode(text if newline == "\n" else text.replace("\n", newline))

    def describe(self, made: dict[str, Any]) -> dict[str, Any]:
        data = self.returned(made["text"])
        described: dict[str, Any] = {"file": self.shown, "diff": made["diff"]}
        if self.before and self._text is None:
            described["diff"] = f"Binary files a/{self.shown} and /dev/null differ\n"
        if data is None:
            return {**described, "change": "removed"}
        from hashlib import sha256  # noqa: PLC0415 - loads OpenSSL, as slow as the start-up

        change = "updated" if self.before else "created"
        return {**described, "change": change, "sha256": sha256(data).hexdigest()}
