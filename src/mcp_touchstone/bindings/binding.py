"""Bindings: an operation on files, a tool, and arguments that have worked once. Values only."""

import difflib
import hashlib
import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

from mcp_touchstone.bindings.argument_roles import (
    ArgumentRole,
    ArgumentSlot,
    Pointer,
    dry_run,
    leaves,
    put,
)
from mcp_touchstone.bindings.canary import NAME_MARK
from mcp_touchstone.bindings.file_naming import FileNaming, first_and_rest, folder_and_name
from mcp_touchstone.bindings.observed import Observed
from mcp_touchstone.samples import uri_template
from mcp_touchstone.wire.framing import brief


class Operation(StrEnum):
    """The observed effect of a call."""

    READ = "read"
    LIST = "list"
    CREATE = "create"
    WRITE = "write"
    EDIT = "edit"
    MKDIR = "mkdir"
    MOVE = "move"
    COPY = "copy"
    UNDO = "undo"
    DELETE = "delete"
    SEARCH = "search"
    """Returns lines of files that contain a text."""

    GLOB = "glob"
    """Returns names of files that match a pattern."""

    COMPLETE = "complete"
    """Completes the path of a folder, followed by the start of a planted name, to names in it."""

    STAGE = "stage"
    """Adds a file to the git repository of the root."""

    SCRIPT = "script"
    """Executes a CEDARScript."""

    RUN = "run"
    """Runs a program from a command line."""

    CALL = "call"
    """Was called, but its effect on files is unknown. Such a tool is attacked, but never bound."""


class Style(StrEnum):
    """The form of a path."""

    RELATIVE = "relative to the root"
    ABSOLUTE = "absolute"


Call = tuple[str, dict[str, Any]]
"""Method and params of a request."""

ROOT: Final = "{root}"

PLAIN_PART: Final = " line 1"
"""The part of a canary file that is not secret.

An edit has to name the text it replaces, and a refusal may repeat that text.
"""

WALKING: Final = frozenset({Operation.SEARCH, Operation.GLOB, Operation.COMPLETE})
CHANGING: Final = frozenset(Operation) - WALKING - {Operation.READ, Operation.LIST}
CARRYING: Final = frozenset({Operation.MOVE, Operation.COPY})
UNSEEN: Final = frozenset({Operation.SCRIPT, Operation.STAGE, Operation.RUN})
"""Operations that do not change the file at their path; they do not meet "changes-files"."""

TAKING: Final = CARRYING | {Operation.STAGE}
"""Operations that transfer bytes from one place to another."""

HANDLING: Final = (
    frozenset(
        {
            Operation.READ,
            Operation.CREATE,
            Operation.WRITE,
            Operation.EDIT,
            Operation.STAGE,
        }
    )
    | CARRYING
)
"""Operations on single files; operations on folders are excluded."""

IN_PLACE: Final = frozenset(Operation) - CARRYING - {Operation.COMPLETE}
SHOWN: Final = 70

_CONTENT: Final = frozenset(
    {
        ArgumentRole.CONTENT,
        ArgumentRole.NEW,
        ArgumentRole.DIFF,
        ArgumentRole.SCRIPT,
    }
)
"""Roles of the arguments whose text is written into a file."""


@dataclass(frozen=True, slots=True)
class Binding:
    """One way to perform one operation.

    Attributes:
        tool: name of the tool; empty for a resource or a completion.
        arguments: arguments that have worked; ``{root}`` in them is replaced by the root.
        slots: the arguments that take the path and the other values.
        styles: the accepted forms of a path.
        uri: for a resource, the part of the URI before the path. The path is percent-encoded.
        completes: for a completion, the reference and the name of the completed argument.
        is_verbatim: whether a written file holds the given content and nothing else.
        commands: for a tool that runs programs, the command lines that have worked; ``{file}`` and
            ``{folder}`` in them are paths.
        climbs_twice: whether the argument for the folder takes only the first part of a path, so
            that the argument for the name climbs too.
    """

    operation: Operation
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    slots: tuple[ArgumentSlot, ...] = ()
    styles: tuple[Style, ...] = ()
    uri: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    completes: tuple[Mapping[str, str], str] | None = None
    naming: FileNaming = field(default_factory=FileNaming)
    is_verbatim: bool = True
    commands: tuple[str, ...] = ()
    climbs_twice: bool = False

    def __str__(self) -> str:
        where = f"resources/read {self.uri}…" if self.uri else self.tool
        if self.completes is not None:
            reference, name = self.completes
            where = f"completion of {name} in {reference.get('uri') or reference.get('name')}"
        fixed = {k: v for k, v in self.arguments.items() if k not in self.filled}
        how = " or ".join(style.value for style in self.styles)
        named = f"; {self.naming}" if str(self.naming) else ""
        named += "; divided at the first slash" if self.climbs_twice else ""
        return f"{where}{' ' + brief(fixed, SHOWN) if fixed else ''} (paths {how}{named})"

    @property
    def filled(self) -> set[str]:
        """The top-level arguments that are filled in each call; all others keep their values."""
        return {str(slot.pointer[0]) for slot in self.slots}

    def spelled(self, text: str, root: str) -> str:
        """Return the path of a plainly named file in an accepted form; keep an absolute path."""
        return self.in_style(self.naming.placed(text), root)

    def in_style(self, text: str, root: str) -> str:
        """Return a path relative to the root in an accepted form; keep an absolute path."""
        if Style.RELATIVE in self.styles or text.startswith("/"):
            return text
        return f"{root}/{text}"

    def call(
        self, path: str, root: str, *, to: str = "", before: bytes = b"", content: str = ""
    ) -> Call:
        """Return the method and params of a call that performs the operation on a path.

        Args:
            path: the path, in the form in which it is sent.
            to: the destination of a move or copy.
            before: the current content of the file. An edit needs a part of it, and an argument
                for a hash needs its hash.
        """
        path, to = self.naming.written(path), self.naming.written(to)
        if self.uri:
            return "resources/read", {"uri": self.uri + uri_template.path(path)}
        if self.completes is not None:
            reference, name = self.completes
            argument = {"name": name, "value": f"{path.rstrip('/')}/{NAME_MARK}"}
            return "completion/complete", {"ref": dict(reference), "argument": argument}
        values = {
            slot.pointer: filling
            for slot in self.slots
            if (filling := fill(slot.role, path, to=to, before=before, content=content)) is not None
        }
        for slot in self.slots:
            if slot.role is ArgumentRole.PATH:
                values[slot.pointer] = self.naming.filled(path)
        if self.climbs_twice:
            folder, name = first_and_rest(path)
            values |= {s.pointer: folder for s in self.slots if s.role is ArgumentRole.FOLDER}
            values |= {s.pointer: name for s in self.slots if s.role is ArgumentRole.NAME}
        return self.calls_with(values, root)

    def has(self, role: ArgumentRole) -> bool:
        """Return whether one of its arguments has this role."""
        return any(slot.role is role for slot in self.slots)

    @property
    def gives_content(self) -> bool:
        """Whether the caller chooses the written content."""
        return any(self.has(role) for role in _CONTENT)

    @property
    def by_name(self) -> "Binding | None":
        """The same call with the whole path in the argument for the name; None if it has none.

        The folder keeps the value that has worked.
        """
        if not self.has(ArgumentRole.NAME):
            return None
        slots = tuple(
            replace(slot, role=ArgumentRole.PATH) if slot.role is ArgumentRole.NAME else slot
            for slot in self.slots
            if slot.role is not ArgumentRole.FOLDER
        )
        folder = self.naming.folder
        if self.naming.adds_folder:
            kept = [s.pointer for s in self.slots if s.role is ArgumentRole.FOLDER]
            folder = posixpath.join(
                folder, *(str(v) for p, v in leaves(self.arguments) if p in kept)
            )
        return replace(
            self, slots=slots, naming=replace(self.naming, folder=folder, adds_folder=True)
        )

    @property
    def is_divided(self) -> bool:
        """Whether the folder of the path is in an argument of its own, or is fixed there."""
        return self.naming.adds_folder or self.has(ArgumentRole.NAME)

    @property
    def base(self) -> ArgumentSlot | None:
        """The argument for the folder to which the path is relative; None if there is none."""
        return next((slot for slot in self.slots if slot.role is ArgumentRole.BASE), None)

    def calls_with(self, values: Mapping[Pointer, Any], root: str) -> Call:
        """Return the call that worked, with some values replaced."""
        arguments = put(rooted(self.arguments, ROOT, root), values)
        return "tools/call", {"name": self.tool, "arguments": arguments}


def rooted(value: Any, old: str, new: str) -> Any:
    """Replace the root in every string of a JSON value."""
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, Mapping):
        return {key: rooted(one, old, new) for key, one in value.items()}
    return [rooted(one, old, new) for one in value] if isinstance(value, list) else value


def fill(role: ArgumentRole, path: str, *, to: str, before: bytes, content: str) -> str | None:
    """Return the value for an argument of a role; None if the argument keeps its value."""
    first = before.decode("utf-8", "replace").split("\n", 1)[0]
    if role is ArgumentRole.DIFF:
        return unified(path, before, content)
    fillings = {
        ArgumentRole.PATH: path,
        ArgumentRole.FROM: path,
        ArgumentRole.TO: to,
        ArgumentRole.FOLDER: folder_and_name(path)[0],
        ArgumentRole.NAME: folder_and_name(path)[1],
        ArgumentRole.CONTENT: content,
        ArgumentRole.OLD: PLAIN_PART if PLAIN_PART in first else first,
        ArgumentRole.NEW: content,
        ArgumentRole.HASH: hashlib.sha256(before).hexdigest(),
        ArgumentRole.SCRIPT: scripted(path, content),
    }
    return fillings.get(role)


def scripted(path: str, content: str) -> str:
    """Return a CEDARScript that creates a file with this content and does nothing else."""
    lines = "\n".join(f"@0:{line}" for line in content.splitlines())
    return f"CREATE FILE \"{path}\" WITH CONTENT '''\n{lines}\n'''"


def unified(path: str, before: bytes, content: str) -> str:
    """Return a unified diff that inserts the content before the first line of a file."""
    old = before.decode("utf-8", "replace").splitlines(keepends=True)
    name = posixpath.basename(path) if path.startswith("/") else path
    new = [content.rstrip("\n") + "\n", *old]
    return "".join(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"))


@dataclass(frozen=True, slots=True)
class Bindings:
    """All bindings of a server.

    Attributes:
        found: the bindings, grouped by operation.
        why: why there are none, or not more.
        calls: number of calls that were made to find them.
        untrue: why declarations of the user were refuted, one sentence each; empty if none.
        unbound: names of the tools that were tried and had no effect on files.
        inside: whether the server starts in the throw-away root.
        roams: whether a server that was given no root uses files anywhere by their absolute paths.
        tries: whether tools may be called, in the root or where the user starts the server.
        observed: what the server did beside answering.
    """

    found: tuple[Binding, ...] = ()
    why: str = ""
    calls: int = 0
    untrue: tuple[str, ...] = ()
    unbound: tuple[str, ...] = ()
    inside: bool = False
    roams: bool = False
    tries: bool = False
    observed: Observed = field(default_factory=Observed)

    def of(self, *operations: Operation) -> list[Binding]:
        """Return the bindings of some operations."""
        return [binding for binding in self.found if binding.operation in operations]

    def based(self) -> list[Binding]:
        """Return the bindings with an argument for a base folder whose effect is visible."""
        shown = self.of(Operation.READ, Operation.LIST, Operation.STAGE)
        return [binding for binding in shown if binding.base is not None]

    def meet(self, word: str) -> bool:
        """Return whether a word of ``needs.OPERATIONS`` is met."""
        return {
            "tries-tools": self.tries,
            "reads-files": bool(self.of(Operation.READ)),
            "handles-files": bool(self.of(*HANDLING)),
            "lists-folders": bool(self.of(Operation.LIST)),
            "changes-files": bool(self.of(*CHANGING - UNSEEN)),
            "makes-files": bool(self.of(Operation.CREATE, Operation.MKDIR)),
            "writes-files": any(
                one.gives_content and one.is_verbatim
                for one in self.of(Operation.WRITE, Operation.CREATE)
            ),
            "edits-files": bool(self.of(Operation.EDIT)),
            "patches-files": any(binding.has(ArgumentRole.DIFF) for binding in self.found),
            "takes-hash": any(binding.has(ArgumentRole.HASH) for binding in self.found),
            "dry-run-switch": any(dry_run(b.schema) for b in self.of(*CHANGING)),
            "base-argument": bool(self.based()),
            "runs-scripts": bool(self.of(Operation.SCRIPT)),
            "matches-names": bool(self.of(Operation.GLOB)),
            "searches-files": bool(self.of(Operation.SEARCH)),
            "completes-paths": bool(self.of(Operation.COMPLETE)),
            "carries-files": bool(self.of(*CARRYING)),
            "undoes-edits": bool(self.of(Operation.UNDO)),
            "runs-programs": bool(self.of(Operation.RUN)),
            "file-uris": any(binding.uri.startswith("file:") for binding in self.found),
            "resource-paths": any(binding.uri for binding in self.found),
        }[word]

    def suffixes(self) -> frozenset[str]:
        """Return the suffixes of the files that the tools take, besides text files."""
        return frozenset(b.naming.suffix for b in self.found if b.naming.suffix)

    def folders(self) -> frozenset[str]:
        """Return the folders of plainly named files, relative to the root, besides the root."""
        return frozenset(b.naming.folder for b in self.found if b.naming.folder)

    def document(self) -> list[dict[str, Any]]:
        """Return the bindings as a JSON value."""
        return [
            {
                "operation": str(binding.operation),
                "tool": binding.tool or None,
                "uri": binding.uri or None,
                "completes": binding.completes
                and {"ref": dict(binding.completes[0]), "argument": binding.completes[1]},
                "arguments": json.loads(json.dumps(binding.arguments)),
                "roles": {
                    "/".join(map(str, slot.pointer)): str(slot.role) for slot in binding.slots
                },
                "styles": [style.name.lower() for style in binding.styles],
                "naming": str(binding.naming) or None,
            }
            for binding in self.found
        ]
