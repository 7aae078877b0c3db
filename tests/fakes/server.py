"""A small file server with one session, one revision and a given guard.

It is not a reference or an example. It tests that attacks find faults, and nothing else.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

REVISION = "2025-11-25"
STRING = {"type": "string"}
STRINGS = {"type": "array", "items": STRING}
LONGEST = 4096
"""Linux refuses a path of this many bytes (PATH_MAX)."""


def takes(**properties: Any) -> dict[str, Any]:
    """Return the schema of a tool that needs these arguments."""
    return {"type": "object", "properties": properties, "required": list(properties)}


class Refused(Exception):  # noqa: N818  (an outcome)
    """The guard refuses a path."""


class Guard:
    """Resolves paths; a subclass overrides ``place`` and declares the threats it trips.

    Attributes:
        trips: threats that its attacks must find; empty for a good one.
        promises: its promises besides containment.
        terms: the terms of these promises, as the arguments of ``PromiseTerms``.
        options: its command line after the root.
        families: chapters that attack it, besides those of the threats it trips.
        tools: names of the tools it offers.
        schemas: of tools that do not take the arguments that their name suggests.
        tiers: levels of attacks on it, besides core and those of the threats it trips.
        callable: tools that may be called, whatever their names suggest.
        capabilities: what it declares besides tools.
        sandboxed: whether its attacks need a sandbox.
        over_http: whether it speaks HTTP; its first option is then its port.
        env: variables that name the issuer of its tokens; empty if it needs none.
    """

    trips: frozenset[str] = frozenset()
    promises: tuple[str, ...] = ()
    terms: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
    options: tuple[str, ...] = ()
    tiers: tuple[str, ...] = ()
    callable: tuple[str, ...] = ()
    schemas: Mapping[str, dict[str, Any]] = MappingProxyType({})
    capabilities: Mapping[str, Any] = MappingProxyType({})
    sandboxed: bool = False
    over_http: bool = False
    env: Mapping[str, str] = MappingProxyType({})
    families: tuple[str, ...] = ("traversal", "links", "bases", "special")
    tools: tuple[str, ...] = (
        "read_file",
        "list_directory",
        "write_file",
        "edit_file",
        "move_file",
        "make_directory",
    )

    def __init_subclass__(cls, trips: Iterable[str] | None = None, **members: Any) -> None:
        """Take the attributes of a fake from the line that names its base."""
        own = members if trips is None else {"trips": frozenset(trips), **members}
        for name, value in own.items():
            setattr(cls, name, value)

    def __init__(self, root: str) -> None:
        self.root = os.path.realpath(root)
        self.opened = False

    def place(self, text: str, *, writing: bool) -> str:
        """Return the path that is opened, or refuse."""
        return self.strictly(text)

    def strictly(self, text: str) -> str:
        """Resolve a path like the kernel, and refuse a result outside the root."""
        path = os.path.join(self.root, text)
        if len(path) >= LONGEST:  # realpath is slow with ten thousand parts
            raise Refused("the path is too long")
        real = os.path.realpath(path)
        if real != self.root and not real.startswith(self.root + os.sep):
            raise Refused(f"{text} is outside")
        return real

    def has_links(self, text: str) -> bool:
        """Whether a component of a path below the root is a link."""
        here = self.root
        for part in os.path.join(self.root, text).removeprefix(self.root).split("/"):
            here = os.path.join(here, part)
            if part not in {"", ".", ".."} and os.path.islink(here):
                return True
        return False

    def refusal(self, text: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the answer for a refused call."""
        return {"content": [{"type": "text", "text": text}], "isError": True}

    def schema(self, tool: str) -> dict[str, Any]:
        if tool in self.schemas:
            return self.schemas[tool]
        names = {
            "write_file": ["path", "content"],
            "edit_file": ["path", "old_text", "new_text"],
            "move_file": ["source", "destination"],
        }.get(tool, ["path"])
        return takes(**dict.fromkeys(names, STRING))

    def run(self, tool: str, given: dict[str, Any]) -> str:
        return str(getattr(self, tool)(**given))

    def other(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a request that is not about plain tools; None for no such method."""
        return None

    def serve(self) -> None:
        """Answer until the input ends."""
        for raw in sys.stdin.buffer:
            for message in self.parse(raw):
                self.take(message)

    def parse(self, raw: bytes) -> list[Any]:
        """Return the messages of a line; none if it cannot be read."""
        try:
            return [json.loads(raw)]
        except (ValueError, RecursionError):
            return []

    def take(self, message: Any) -> None:
        """Answer a request, ignore all else."""
        if not isinstance(message, dict) or not isinstance(message.get("method"), str):
            return
        if isinstance(message.get("id"), str | int) and not isinstance(message["id"], bool):
            self.emit({"jsonrpc": "2.0", "id": message["id"], **answered(self, message)})

    def emit(self, answer: dict[str, Any]) -> None:
        """Write a message."""
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()

    def listed(self, tool: str) -> dict[str, Any]:
        """Return the definition of a tool."""
        return {"name": tool, "inputSchema": self.schema(tool)}

    def read_file(self, path: str) -> str:
        place = self.place(path, writing=False)
        if os.path.exists(place) and not os.path.isfile(place):
            raise Refused("that is no ordinary file")
        return Path(place).read_text(encoding="utf-8", errors="replace")

    def list_directory(self, path: str) -> str:
        return "\n".join(sorted(os.listdir(self.place(path, writing=False))))

    def write_file(self, path: str, content: str) -> str:
        place = Path(self.place(path, writing=True))
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(content, encoding="utf-8")
        return "written"

    def edit_file(self, path: str, old_text: str, new_text: str) -> str:
        place = Path(self.place(path, writing=True))
        before = place.read_text(encoding="utf-8")
        if before.count(old_text) != 1:
            raise Refused("that text does not stand there once")
        place.write_text(before.replace(old_text, new_text), encoding="utf-8")
        return "edited"

    def move_file(self, source: str, destination: str) -> str:
        os.replace(self.place(source, writing=True), self.place(destination, writing=True))
        return "moved"

    def delete_file(self, path: str) -> str:
        os.remove(self.place(path, writing=True))
        return "removed"

    def make_directory(self, path: str) -> str:
        os.makedirs(self.place(path, writing=True), exist_ok=True)
        return "made"


Row = tuple[type[Guard], dict[str, Any]]


def has(of: type[Guard], behaviour: str, *trips: str, **members: Any) -> Row:
    """Return the row of a fake that differs from ``of`` in data, or in one expression."""
    own = {"trips": frozenset(trips)} if trips else {}
    return of, {"__doc__": behaviour, **own, **members}


def fakes(module: str) -> Callable[..., None]:
    """Make the fakes of a module, ``Name=has(...)`` for each."""

    def add(**rows: Row) -> None:
        for name, (of, members) in rows.items():
            own = {"__module__": module, **members}
            setattr(sys.modules[module], name, type(name, (of,), own))

    return add


def answered(guard: Guard, message: dict[str, Any]) -> dict[str, Any]:
    method, params = message["method"], message.get("params") or {}
    if not isinstance(params, dict):
        return {"error": {"code": -32602, "message": "params are no object"}}
    if method == "initialize":
        guard.opened = True
        info = {"name": "fake", "version": "1"}
        declared = {"tools": {}, **guard.capabilities}
        opening = {"protocolVersion": REVISION, "capabilities": declared, "serverInfo": info}
        return {"result": opening}
    if method == "ping":
        return {"result": {}}
    if (found := guard.other(method, params)) is not None:
        return found
    if method == "tools/list":
        return {"result": {"tools": [guard.listed(name) for name in guard.tools]}}
    if method != "tools/call":
        return {"error": {"code": -32601, "message": "no such method"}}
    name, given = params.get("name"), params.get("arguments") or {}
    if not guard.opened:
        return {"error": {"code": -32600, "message": "initialize first"}}
    if name not in guard.tools or not isinstance(given, dict):
        return {"error": {"code": -32602, "message": "no such tool"}}
    try:
        text = guard.run(name, given)
    except (Refused, OSError, ValueError, TypeError, AttributeError) as error:
        return {"result": guard.refusal(str(error), given)}
    return {"result": {"content": [{"type": "text", "text": text}]}}
