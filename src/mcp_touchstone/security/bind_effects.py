"""The effects of calls on files: each operation is tried, and its file is compared."""

import secrets
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from mcp_touchstone.bindings.argument_roles import ArgumentRole
from mcp_touchstone.bindings.binding import Binding, Operation, Style
from mcp_touchstone.bindings.call_variants import (
    DELETING,
    MAKING,
    STAGING,
    CallVariant,
)
from mcp_touchstone.runtime import git_repo
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.samples.from_schema import words
from mcp_touchstone.security.bind_calls import ToolCalls, read
from mcp_touchstone.security.bind_names import NameSearch

Attempt = Callable[[CallVariant, Style], dict[str, Any] | None]
"""Tries a plan with a style of paths; returns the arguments, or None if it had no effect."""


class Effects:
    """Tries operations on files with the tools of one server.

    Attributes:
        is_verbatim: whether the last file that a tool wrote contains only the sent content.
    """

    def __init__(self, calls: ToolCalls, names: NameSearch) -> None:
        self.is_verbatim = True
        self._calls = calls
        self._names = names

    def of(self, operation: Operation) -> Attempt:
        """Return the attempt for an operation."""
        attempts: dict[Operation, Attempt] = {
            Operation.READ: self.reads,
            Operation.LIST: self.lists,
            Operation.CREATE: self.creates,
            Operation.WRITE: self.writes,
            Operation.EDIT: self.edits,
            Operation.MKDIR: self.makes_folders,
            Operation.MOVE: partial(self.carries, stays=False),
            Operation.COPY: partial(self.carries, stays=True),
            Operation.DELETE: self.deletes,
        }
        return attempts[operation]

    def allowed_by(
        self, plan: CallVariant, *, more: bool = False
    ) -> Iterator[tuple[Operation, Attempt]]:
        """Yield the operations that the arguments of a plan allow.

        Args:
            more: whether to try to create a file of any content, too.
        """
        roles = plan.roles
        if {ArgumentRole.FROM, ArgumentRole.TO} <= roles:
            yield Operation.MOVE, self.of(Operation.MOVE)
            yield Operation.COPY, self.of(Operation.COPY)
        elif (
            roles & {ArgumentRole.OLD, ArgumentRole.DIFF}
            or {ArgumentRole.NEW, ArgumentRole.LINE} <= roles
        ):
            yield Operation.EDIT, self.edits
        elif roles & {ArgumentRole.CONTENT, ArgumentRole.NEW}:
            yield Operation.CREATE, self.creates
            yield Operation.WRITE, self.writes
            yield Operation.EDIT, self.edits
        else:
            if more and makes(plan):
                yield Operation.CREATE, self.makes_files
            yield Operation.READ, self.reads
            yield Operation.LIST, self.lists
            if makes(plan):
                yield Operation.MKDIR, self.makes_folders
            if self._calls.tree.is_repository and plan.words & STAGING:
                yield Operation.STAGE, self.stages
            if plan.words & DELETING:
                yield Operation.DELETE, self.deletes

    def reads(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        """Try whether a call returns the canary of a file and leaves the file."""
        path, data = self._calls.file()
        canary = self._calls.tree.canaries.planted[-1]
        reply, arguments = self._calls.send(plan, self._calls.spell(path, style), before=data)
        return arguments if self._calls.shows(reply, canary.token) and _holds(path, data) else None

    def lists(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        """Try whether a call returns the name of a file in our folder."""
        for suffix in ("", *self._names.suggested(plan.tool)):  # some list only their kind of file
            (self._calls.folder / (self._calls.listed.token + suffix)).touch()
        reply, arguments = self._calls.send(plan, self._calls.spell(self._calls.folder, style))
        return arguments if self._calls.shows(reply, self._calls.listed.token) else None

    def walks(self, plan: CallVariant, style: Style, operation: Operation) -> dict[str, Any] | None:
        """Try whether a call finds a name or a line below the root."""
        token = self._calls.listed.token
        if operation is Operation.SEARCH:
            self._calls.file()
            token = self._calls.tree.canaries.planted[-1].token
        path = "." if style is Style.RELATIVE else str(self._calls.tree.root)
        reply, arguments = self._calls.send(plan, path)
        return arguments if self._calls.shows(reply, token) else None

    def creates(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        """Try whether a call makes a file with a given content."""
        return self._puts(plan, style, self._calls.fresh(), b"")

    def makes_files(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        """Try whether a call makes a file of any content."""
        path = self._calls.fresh()
        _, arguments = self._calls.send(plan, self._calls.spell(path, style))
        return arguments if path.is_file() else None

    def writes(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        """Try whether a call replaces the whole content of a file."""
        return self._puts(plan, style, *self._calls.file())

    def _puts(
        self, plan: CallVariant, style: Style, path: SafePath, data: bytes
    ) -> dict[str, Any] | None:
        name, content = self._calls.spell(path, style), f"written {secrets.token_hex(8)}"
        _, arguments = self._calls.send(plan, name, before=data, content=f"{content}\n")
        found = read(path)
        if content.encode() not in found or (data and data in found):
            return None
        self.is_verbatim = found.strip() == content.encode()
        return arguments

    def edits(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        """Try whether a call changes a part of a file."""
        (path, data), content = self._calls.file(), f"edited {secrets.token_hex(8)}"
        name = self._calls.spell(path, style)
        _, arguments = self._calls.send(plan, name, before=data, content=content)
        if content.encode() not in read(path):
            return None
        self.is_verbatim = True
        return arguments

    def makes_folders(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        """Try whether a call makes a folder."""
        path = self._calls.fresh("")
        _, arguments = self._calls.send(plan, self._calls.spell(path, style))
        return arguments if path.is_dir() else None

    def deletes(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        """Try whether a call deletes a file, and not its folder."""
        path, _ = self._calls.file()
        _, arguments = self._calls.send(plan, self._calls.spell(path, style))
        return arguments if not path.exists() and self._calls.folder.is_dir() else None

    def stages(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        """Try whether a call adds a file to the repository."""
        path = self._calls.tree.root / self._calls.fresh().name  # the folder is another repository
        self._calls.tree.plain(path)
        _, arguments = self._calls.send(plan, self._calls.spell(path, style))
        return arguments if git_repo.keeps(self._calls.tree.root, path.read_bytes()) else None

    def undoes(self, plan: CallVariant, style: Style, edit: Binding) -> dict[str, Any] | None:
        """Try whether a call undoes an edit of another tool."""
        (path, data), content = self._calls.file(), f"edited {secrets.token_hex(8)}"
        root = str(self._calls.tree.root)
        where = edit.spelled(path.relative_to(self._calls.tree.root).as_posix(), root)
        self._calls.ask(*edit.call(where, root, before=data, content=content))
        changed = read(path)
        _, arguments = self._calls.send(plan, self._calls.spell(path, style), before=changed)
        return arguments if changed != data and _holds(path, data) else None

    def carries(self, plan: CallVariant, style: Style, *, stays: bool) -> dict[str, Any] | None:
        """Try whether a call moves a file, or copies one that then stays."""
        (path, data), to = self._calls.file(), self._calls.fresh()
        name, new = (self._calls.spell(one, style) for one in (path, to))
        _, arguments = self._calls.send(plan, name, to=new)
        return arguments if _holds(to, data) and path.exists() is stays else None


def makes(plan: CallVariant) -> bool:
    """Return whether the name of a tool suggests that it creates files."""
    return bool({*words(plan.tool["name"])} & MAKING)


def _holds(path: SafePath, data: bytes) -> bool:
    return read(path) == data
