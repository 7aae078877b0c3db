"""Which call does what to files: an operation, a tool, and arguments that did it once. Values."""

import difflib
import hashlib
import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from mcp_touchstone.bindings.argument_roles import ArgumentRole, ArgumentSlot, Pointer, dry_run, put
from mcp_touchstone.bindings.canary import NAME_MARK
from mcp_touchstone.samples import uri_template
from mcp_touchstone.wire.framing import brief


class Operation(StrEnum):
    """What a call was seen to do."""

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
    """It gave back lines of files for a part of one."""

    GLOB = "glob"
    """It gave back names of files for a pattern."""

    COMPLETE = "complete"
    """It completed the path of a folder, and how planted names begin, to names in it."""

    STAGE = "stage"
    """It took a file into the git repository of the root."""

    SCRIPT = "script"
    """It did what a CEDARScript said."""

    CALL = "call"
    """It was called; what it does to files nobody saw. Never bound, but fired at."""


class Style(StrEnum):
    """How a path may be written."""

    RELATIVE = "relative to the root"
    ABSOLUTE = "absolute"


Call = tuple[str, dict[str, Any]]
"""Method and params of a request."""

ROOT: Final = "{root}"

PLAIN_PART: Final = " line 1"
"""The part of a canary file that is no secret: an edit has to name what it replaces, and a refusal
may repeat that."""

WALKING: Final = frozenset({Operation.SEARCH, Operation.GLOB, Operation.COMPLETE})
CHANGING: Final = frozenset(Operation) - WALKING - {Operation.READ, Operation.LIST}
CARRYING: Final = frozenset({Operation.MOVE, Operation.COPY})
UNSEEN: Final = frozenset({Operation.SCRIPT, Operation.STAGE})
"""What changes no file of the root that its path names: needs of changed files leave it out."""

TAKING: Final = CARRYING | {Operation.STAGE}
"""What puts bytes of one place into another."""

HANDLING: Final = (
    frozenset({
        Operation.READ, Operation.CREATE, Operation.WRITE, Operation.EDIT, Operation.STAGE,
    })
    | CARRYING
)  # fmt: skip
"""What is done to single files; folders apart."""

IN_PLACE: Final = frozenset(Operation) - CARRYING - {Operation.COMPLETE}
SHOWN: Final = 70


@dataclass(frozen=True, slots=True)
class Binding:
    """One way to do one thing.

    Attributes:
        operation: what it was seen to do.
        tool: name of the tool; empty for a resource.
        arguments: arguments that did it; ``{root}`` in them stands for the root.
        slots: where in them the path and the rest go.
        styles: how a path may be written.
        uri: for a resource, what stands before the path; the path is percent-encoded behind it.
        schema: the inputSchema of the tool.
        completes: for a completion, the reference and the name of what is completed.
    """

    operation: Operation
    tool: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    slots: tuple[ArgumentSlot, ...] = ()
    styles: tuple[Style, ...] = ()
    uri: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    completes: tuple[Mapping[str, str], str] | None = None

    def __str__(self) -> str:
        """Say it in words."""
        where = f"resources/read {self.uri}…" if self.uri else self.tool
        if self.completes is not None:
            reference, name = self.completes
            where = f"completion of {name} in {reference.get('uri') or reference.get('name')}"
        fixed = {k: v for k, v in self.arguments.items() if k not in self.filled}
        how = " or ".join(style.value for style in self.styles)
        return f"{where}{' ' + brief(fixed, SHOWN) if fixed else ''} (paths {how})"

    @property
    def filled(self) -> set[str]:
        """The arguments that hold a path or the rest; all others stay as they are."""
        return {str(slot.pointer[0]) for slot in self.slots}

    def spelled(self, text: str, root: str) -> str:
        """Write a path that is meant from the root so that this binding takes it so."""
        if Style.RELATIVE in self.styles or text.startswith("/"):
            return text
        return f"{root}/{text}"

    def call(
        self, path: str, root: str, *, to: str = "", before: bytes = b"", content: str = ""
    ) -> Call:
        """Give method and params of the call that does it to a path.

        Args:
            path: as it is sent.
            root: the root of the server that is called.
            to: the destination of a move or copy.
            before: what the file holds; an edit needs some of it, a guarded one its hash.
            content: what is written.
        """
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
        return self.calls_with(values, root)

    def has(self, role: ArgumentRole) -> bool:
        """Whether one of its arguments is for this."""
        return any(slot.role is role for slot in self.slots)

    @property
    def base(self) -> ArgumentSlot | None:
        """The argument that says what the path is relative to, where there is one."""
        return next((slot for slot in self.slots if slot.role is ArgumentRole.BASE), None)

    def calls_with(self, values: Mapping[Pointer, Any], root: str) -> Call:
        """Give the call that worked, with other values in some places."""
        arguments = put(rooted(self.arguments, ROOT, root), values)
        return "tools/call", {"name": self.tool, "arguments": arguments}


def rooted(value: Any, old: str, new: str) -> Any:
    """Put another root into every string of a JSON value."""
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, Mapping):
        return {key: rooted(one, old, new) for key, one in value.items()}
    return [rooted(one, old, new) for one in value] if isinstance(value, list) else value


def fill(role: ArgumentRole, path: str, *, to: str, before: bytes, content: str) -> str | None:
    """Give what stands in an argument of a role; None where it stays as it is."""
    first = before.decode("utf-8", "replace").split("\n", 1)[0]
    if role is ArgumentRole.DIFF:
        return unified(path, before, content)
    fillings = {
        ArgumentRole.PATH: path,
        ArgumentRole.FROM: path,
        ArgumentRole.TO: to,
        ArgumentRole.CONTENT: content,
        ArgumentRole.OLD: PLAIN_PART if PLAIN_PART in first else first,
        ArgumentRole.NEW: content,
        ArgumentRole.HASH: hashlib.sha256(before).hexdigest(),
        ArgumentRole.SCRIPT: scripted(path, content),
    }
    return fillings.get(role)


def scripted(path: str, content: str) -> str:
    """Give the CEDARScript that makes a file, which is then all that is in it."""
    lines = "\n".join(f"@0:{line}" for line in content.splitlines())
    return f"CREATE FILE \"{path}\" WITH CONTENT '''\n{lines}\n'''"


def unified(path: str, before: bytes, content: str) -> str:
    """Give the unified diff that puts a line before the first one of a file."""
    old = before.decode("utf-8", "replace").splitlines(keepends=True)
    name = posixpath.basename(path) if path.startswith("/") else path
    new = [content.rstrip("\n") + "\n", *old]
    return "".join(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}"))


@dataclass(frozen=True, slots=True)
class Bindings:
    """All that was found.

    Attributes:
        found: the bindings, those of one operation together.
        why: why there are none, or not more.
        calls: how many calls it took.
        untrue: what the user said of a tool and it did not do.
    """

    found: tuple[Binding, ...] = ()
    why: str = ""
    calls: int = 0
    untrue: tuple[str, ...] = ()

    def of(self, *operations: Operation) -> list[Binding]:
        """Give the bindings of some operations."""
        return [binding for binding in self.found if binding.operation in operations]

    def based(self) -> list[Binding]:
        """Give those that can be told another base with an effect that shows."""
        shown = self.of(Operation.READ, Operation.LIST, Operation.STAGE)
        return [binding for binding in shown if binding.base is not None]

    def meet(self, word: str) -> bool:
        """Whether a word of ``needs.OPERATIONS`` is met."""
        return {
            "tries-tools": self.calls > 0,
            "reads-files": bool(self.of(Operation.READ)),
            "handles-files": bool(self.of(*HANDLING)),
            "lists-folders": bool(self.of(Operation.LIST)),
            "changes-files": bool(self.of(*CHANGING - UNSEEN)),
            "makes-files": bool(self.of(Operation.CREATE, Operation.MKDIR)),
            "writes-files": bool(self.of(Operation.WRITE, Operation.CREATE)),
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
            "file-uris": any(binding.uri.startswith("file:") for binding in self.found),
            "resource-paths": any(binding.uri for binding in self.found),
        }[word]

    def operations(self) -> list[Operation]:
        """Name the operations that are bound."""
        return [op for op in Operation if any(b.operation is op for b in self.found)]

    def document(self) -> list[dict[str, Any]]:
        """Give them as JSON."""
        return [
            {
                "operation": str(binding.operation),
                "tool": binding.tool or None,
                "uri": binding.uri or None,
                "completes": _document(binding.completes),
                "arguments": json.loads(json.dumps(binding.arguments)),
                "roles": {
                    "/".join(map(str, slot.pointer)): str(slot.role) for slot in binding.slots
                },
                "styles": [style.name.lower() for style in binding.styles],
            }
            for binding in self.found
        ]


def _document(completes: tuple[Mapping[str, str], str] | None) -> dict[str, Any] | None:
    return None if completes is None else {"ref": dict(completes[0]), "argument": completes[1]}
