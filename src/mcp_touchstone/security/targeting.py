"""Build the calls of an attack from payloads and bindings, and mark which of them are live."""

import json
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import contains
from typing import Any, Final

from mcp_touchstone.bindings.argument_roles import ArgumentRole, Pointer, leaves
from mcp_touchstone.bindings.binding import CHANGING, Binding, Bindings, Call, Operation
from mcp_touchstone.security import payload as payloads
from mcp_touchstone.security import reachability
from mcp_touchstone.security.fixture_tree import CONTROL, FixtureTree
from mcp_touchstone.security.payload import CANARY, Payload
from mcp_touchstone.security.reachability import PAIR, Carriage

BASES: Final = frozenset({"root", "cwd", "base", "repo_path", "working_dir", "projectRoot"})
"""Names in a payload that stand for the base argument of a tool, whatever its name."""

FIRED_AT: Final[Mapping[str, tuple[Operation, ...]]] = {
    "read": (
        Operation.READ,
        Operation.SEARCH,
        Operation.EDIT,
        Operation.WRITE,
        Operation.MOVE,
        Operation.COPY,
        Operation.STAGE,
        Operation.DELETE,
    ),
    "list": (Operation.LIST, Operation.SEARCH, Operation.GLOB, Operation.COMPLETE),
    "tree": (Operation.LIST, Operation.SEARCH, Operation.GLOB),
    "create": (Operation.CREATE, Operation.MKDIR, Operation.MOVE, Operation.COPY),
    "write": (Operation.EDIT, Operation.WRITE, Operation.CREATE, Operation.DELETE),
    "patch": (Operation.EDIT, Operation.WRITE),
    "search": (Operation.LIST, Operation.SEARCH, Operation.GLOB),
    "move": (Operation.MOVE, Operation.COPY),
    "copy": (Operation.COPY, Operation.MOVE),
    "delete": (Operation.DELETE,),
}
"""Operation a payload is written for -> operations it is used with, in any tool."""


@dataclass(frozen=True, slots=True)
class AttackCall:
    """One call of an attack.

    Attributes:
        text: the payload with its names filled in.
        call: the method and params that are sent.
        live: whether it reaches its target on an unprotected server.
        before: the steps before it: calls, and shell lines.
        into: the arguments that take the payload, if they do not contain its text.
        after: shell lines after it in the reproduction; see ``found_if``.
        plain: the same call with the letters and digits of the payload only; None if unknown.
    """

    payload: Payload
    text: str
    binding: Binding
    call: Call
    live: bool
    before: tuple[Call | str, ...] = ()
    into: tuple[Pointer, ...] = ()
    after: tuple[str, ...] = ()
    plain: Call | None = None

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments that take the payload; empty if they are not known.

        Indexes of lists are left out: ``edits.path`` is the path of any edit.
        """
        method, params = self.call
        if method == "completion/complete":
            return (str(params["argument"]["name"]),)
        if self.into:
            return _names(self.into)
        texts = [text for text in self.text.split(PAIR) if text]
        given = {p: v for p, v in leaves(params.get("arguments")) if isinstance(v, str)}
        slots = {slot.pointer for slot in self.binding.slots}
        bound = {pointer: value for pointer, value in given.items() if pointer in slots}
        for carries in (_is_path, contains):
            for values in (bound, given):
                found = [p for p, v in values.items() if any(carries(v, text) for text in texts)]
                if found:
                    return _names(found)
        return ()


def _halves(binding: Binding) -> tuple[Pointer, ...]:
    """Return the arguments that take the path in two parts; empty if one takes it whole."""
    halves = {ArgumentRole.FOLDER, ArgumentRole.NAME}
    return tuple(slot.pointer for slot in binding.slots if slot.role in halves)


def _names(pointers: Iterable[Pointer]) -> tuple[str, ...]:
    """Return paths to arguments as names, without indexes of lists."""
    names = (".".join(part for part in pointer if isinstance(part, str)) for pointer in pointers)
    return tuple(dict.fromkeys(name for name in names if name))


def _is_path(value: str, text: str) -> bool:
    return value == text or value.endswith(f"/{text}")


MAKES: Final = frozenset({Operation.CREATE, Operation.MKDIR, Operation.SCRIPT})

FILE: Final = "ok.txt"
"""A plain file of the root, the target of plain calls."""

FOLDER: Final = "dir"
"""A plain folder of the root."""


class Targeting:
    """Builds the calls of an attack on a fixture tree, with the bindings of its tools."""

    def __init__(self, tree: FixtureTree, bindings: Bindings) -> None:
        self._tree = tree
        self._bindings = bindings

    def calls(
        self, rows: Iterable[Payload], operations: Collection[Operation]
    ) -> Iterator[AttackCall]:
        """Yield the calls of payloads by bindings of some operations.

        A binding that changes files is only used with live payloads.
        """
        for row, plain in self._tree.each(rows):
            aims: dict[str, str | None] = {}  # computed once, before a call changes the tree
            self._named(row, plain, Binding(Operation.CALL, ""), aims)
            for binding in self._bindings.of(*FIRED_AT.get(row.operation, ())):
                if binding.operation not in operations or self._takes_no_path(binding):
                    continue
                text, aim = self._named(row, plain, binding, aims)
                if binding.operation in CHANGING and aim is None:
                    continue
                call = self._aimed(row, text, binding, aim)
                yield AttackCall(row, text, binding, call, aim is not None, into=_halves(binding))

    def _named(
        self, row: Payload, plain: str, binding: Binding, aims: dict[str, str | None]
    ) -> tuple[str, str | None]:
        """Return a payload in the naming of a binding, and the path that it reaches.

        The folder of plainly named files is tried first, then the root. A name without a suffix,
        such as the name of a link, is also tried with the suffix of the files.
        """
        naming = binding.naming
        suffixed = naming.suffixed(plain)
        texts = [naming.placed(plain), suffixed]
        if naming.suffix and naming.suffix not in plain and PAIR not in plain:
            texts = [*(text + naming.suffix for text in texts), *texts]
        texts = list(dict.fromkeys(texts))
        for text in texts:
            if text not in aims:
                aims[text] = (
                    reachability.aim_of_pair(text, self._tree)
                    if PAIR in text and row.operation in {"move", "copy"}
                    else reachability.aim(row, text, self._tree)
                )
            if (aim := aims[text]) is not None:
                return text, aim
        return suffixed, None

    def _takes_no_path(self, binding: Binding) -> bool:
        """Return whether a search or glob has no path argument, or its tool also lists."""
        if binding.operation not in {Operation.SEARCH, Operation.GLOB}:
            return False
        lists = {known.tool for known in self._bindings.of(Operation.LIST)}
        return binding.tool in lists or not binding.has(ArgumentRole.PATH)

    def plain(self, binding: Binding, content: str | None = None) -> Call:
        """Return a plain call on a plain file, folder or new name.

        Args:
            content: the text to write; by default the content of the file.
        """
        root, data = str(self._tree.root), (self._tree.root / FILE).read_bytes()
        new = f"new-{secrets.token_hex(4)}"
        name = FOLDER if binding.operation is Operation.LIST else FILE
        name = new if binding.operation in MAKES else name
        text = data.decode() if content is None else content
        if name == FILE:
            data = self._tree.content(self._tree.root / binding.naming.placed(FILE)) or data
        if binding.operation is Operation.CREATE:
            name += binding.naming.suffix
        to = binding.spelled(f"{new}.txt", root)
        return binding.call(binding.spelled(name, root), root, to=to, before=data, content=text)

    def carried(self, rows: Iterable[Payload], kind: Carriage) -> Iterator[AttackCall]:
        """Yield the moves and copies of payloads with a source and a destination, of one kind."""
        for row in rows:
            for binding in self._bindings.of(*FIRED_AT.get(row.operation, ())):
                # classified again for each binding: an earlier call may have changed the tree
                for _, plain in self._tree.each([row]):
                    text = binding.naming.suffixed(plain)
                    if PAIR in text and reachability.carriage(text, self._tree) is kind:
                        yield AttackCall(
                            row, text, binding, self._aimed(row, text, binding, None), True
                        )

    def _aimed(self, row: Payload, text: str, binding: Binding, aim: str | None) -> Call:
        root = str(self._tree.root)
        as_it_is = {"tilde", "env", "shell", "uri"} & {*row.live}
        path = text if as_it_is else binding.in_style(text, root)
        before = self._tree.content(aim) if aim is not None else b""
        content = f"touchstone {secrets.token_hex(4)}\n"
        inside = binding.spelled(f"carried-{secrets.token_hex(4)}.txt", root)
        if PAIR in text and row.operation in {"move", "copy"}:
            source, _, destination = text.partition(PAIR)
            to = binding.in_style(destination, root)
            return binding.call(binding.in_style(source, root), root, to=to)
        if binding.operation in {Operation.MOVE, Operation.COPY} and row.operation == "create":
            return binding.call(binding.spelled(CONTROL, root), root, to=path)
        return binding.call(path, root, to=inside, before=before, content=content)

    def rebased(self, rows: Iterable[Payload]) -> Iterator[AttackCall]:
        """Yield calls that pass another base for paths to every tool with a base argument."""
        for row, path, base, _ in self._asked(rows):
            for binding in self._bindings.based():
                slot = binding.base
                if base is not None and slot is not None and binding.has(ArgumentRole.PATH):
                    here = "." if binding.operation is Operation.LIST else path
                    shot = self._told(row, f"{base}/{here}", binding, here, {slot.pointer: base})
                    yield replace(shot, into=(slot.pointer,))

    def smuggled(self, rows: Iterable[Payload]) -> Iterator[AttackCall]:
        """Yield reads of a path that leads outside with arguments that no schema names."""
        for row, path, base, more in self._asked(rows):
            for binding in self._bindings.of(Operation.READ):
                if more and base is None and binding.has(ArgumentRole.PATH):
                    extra: dict[Pointer, Any] = {(name,): value for name, value in more.items()}
                    for here in (path, f"{self._tree.outside}/{CANARY}"):
                        yield self._told(row, here, binding, here, extra)

    def _asked(
        self, rows: Iterable[Payload]
    ) -> Iterator[tuple[Payload, str, str | None, dict[str, Any]]]:
        """Yield payloads that are arguments, each with its path, base and other arguments."""
        for row in rows:
            given = json.loads(payloads.fill(row.text, self._tree.names))
            path = given.pop("path", CANARY)
            base = next((given.pop(name) for name in list(given) if name in BASES), None)
            yield row, path, base, given

    def _told(
        self, row: Payload, text: str, binding: Binding, path: str, more: Mapping[Pointer, Any]
    ) -> AttackCall:
        paths = [slot.pointer for slot in binding.slots if slot.role is ArgumentRole.PATH]
        naming = binding.naming
        text, path = naming.suffixed(text), naming.filled(naming.written(path))
        values = {**dict.fromkeys(paths, path), **more}
        live = reachability.aim(
            replace(row, target="any", live=("posix", "lexical")), text, self._tree
        )
        call = binding.calls_with(values, str(self._tree.root))
        return AttackCall(row, text, binding, call, live is not None)
