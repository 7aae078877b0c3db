"""Call tools in the root of a server, and create the files for the calls."""

import contextlib
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from mcp_touchstone.bindings.argument_roles import ArgumentRole, Pointer, assemble, flat
from mcp_touchstone.bindings.binding import ROOT, Style, fill, rooted
from mcp_touchstone.bindings.call_variants import CallVariant
from mcp_touchstone.bindings.canary import Area, strings
from mcp_touchstone.bindings.file_naming import TEXT, FileNaming
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.pending import read_pages
from mcp_touchstone.connection.server_profile import Spoken
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.samples.from_schema import BRIEF, Places, candidates, required
from mcp_touchstone.security import bind_commands
from mcp_touchstone.security.fixture_tree import FixtureTree, commit_name
from mcp_touchstone.transport.process import LaunchError, now
from mcp_touchstone.wire.reply import Reply

BUDGET: Final = 60.0
"""Maximum number of seconds spent on one server."""

HANGS: Final = 3
"""Number of unanswered calls after which no more calls are tried."""

OTHERS: Final = 20
"""Greatest number of tools that are called only to see what they do beside answering."""

PAGES: Final = 10

SAID: Final = 4000
"""Maximum number of characters kept from the answers of a tool."""

OWN_FOLDER: Final = bind_commands.PROBE
OWN: Final = re.compile(rf"{OWN_FOLDER}(/|$)")
"""The folder in which the binder makes its own files; a change there is no effect by itself."""


class ToolCalls:
    """Makes files in the root of one server, and calls its tools with their names.

    Attributes:
        tree: the trees; their root is the root of the server.
        said: name of a tool -> the beginning of its answers.
        listed: the canary whose name is in our folder from the start.
    """

    def __init__(self, get: Callable[[], Connection], tree: FixtureTree) -> None:
        """Create it, and make its folder in the root; ``get`` returns a connection."""
        self.tree = tree
        self.count = 0
        self.said: dict[str, str] = {}
        self.naming = FileNaming()
        self.folder = tree.root / OWN_FOLDER
        self.folder.mkdir(exist_ok=True)
        self._get = get
        self._places = Places(folder=str(tree.root), file="control.txt", seconds=BRIEF)
        self._until = now() + BUDGET
        self._hangs = 0
        self._number = 0
        self.listed = tree.canaries.name(f"{tree.root.name}/{OWN_FOLDER}", Area.INSIDE)
        (self.folder / self.listed.token).touch()
        if tree.is_repository:
            commit_name(self.folder, self.listed)

    @property
    def over(self) -> bool:
        """Whether no more calls are tried."""
        return self._hangs >= HANGS or now() > self._until

    def tools(self, spoken: Spoken) -> Iterator[dict[str, Any]]:
        """Yield the tools of a server from all pages of its list."""
        yield from spoken.named("tools")
        cursor = spoken.cursors.get("tools/list")
        if cursor is not None:
            for page in read_pages(self._get(), "tools/list", {"cursor": cursor}, most=PAGES):
                tools = (page.result or {}).get("tools") or []
                yield from Spoken(spoken.opening, {"tools": tools}).named("tools")

    def restart(self) -> None:
        """End the process: earlier calls may have changed the behaviour of the server."""
        with contextlib.suppress(LaunchError):
            self._get().end(polite=False)

    @contextlib.contextmanager
    def naming_as(self, naming: FileNaming, below: str) -> Iterator[None]:
        """Use a naming and a folder of the root for our files while the context is open."""
        kept = self.naming, self.folder
        self.naming = naming
        self.folder = self.tree.root / below
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            yield
        finally:
            self.naming, self.folder = kept

    def fresh(self, suffix: str | None = None) -> SafePath:
        """Return a path in our folder that does not exist."""
        self._number += 1
        suffix = (self.naming.suffix or TEXT) if suffix is None else suffix
        return self.folder / f"f{self._number}-{secrets.token_hex(3)}{suffix}"

    def file(self) -> tuple[SafePath, bytes]:
        """Make a file with a canary; return its path and its bytes."""
        path = self.fresh()
        where = self.tree.shown(path)
        canary = self.tree.canaries.plant(where, Area.INSIDE)
        data = self.tree.documents.holding(path, canary.content)
        path.write_bytes(data)
        return path, data

    def spell(self, path: SafePath, style: Style) -> str:
        """Return the name of a file in a style, as the server names files."""
        relative = str(path.relative_to(self.tree.root))
        text = relative if style is Style.RELATIVE else f"{self.tree.root}/{relative}"
        return self.naming.written(text)

    def send(
        self, plan: CallVariant, path: str, *, to: str = "", before: bytes = b"", content: str = ""
    ) -> tuple[Reply, dict[str, Any]]:
        """Call a tool about a file; return the reply and the arguments."""
        tool = plan.tool
        root = str(self.tree.root)
        values: dict[Pointer, Any] = {p: rooted(v, ROOT, root) for p, v in plan.fixed.items()}
        for slot in plan.slots:
            if slot.role is ArgumentRole.LINE:
                values[slot.pointer] = 1
            elif slot.role is ArgumentRole.BASE:
                values[slot.pointer] = root
            else:
                value = fill(slot.role, path, to=to, before=before, content=content)
                value = self.naming.filled(path) if slot.role is ArgumentRole.PATH else value
                values |= {} if value is None else {slot.pointer: value}
        values = {**self._fitting(tool), **values}
        arguments = assemble(tool.get("inputSchema"), values, self._places)
        reply = self.ask("tools/call", {"name": tool["name"], "arguments": arguments})
        if len(self.said.get(tool["name"], "")) < SAID:
            # a refusal may name the suffixes that the tool takes
            texts = "\n".join(strings(reply.value or {}))
            self.said[tool["name"]] = self.said.get(tool["name"], "") + texts[:SAID]
        return reply, arguments

    def _fitting(self, tool: Mapping[str, Any]) -> dict[Pointer, Any]:
        """Return values for required arguments that fit the content of our documents."""
        schema = tool.get("inputSchema")
        values = self.tree.documents.of(self.naming.suffix).values or {}
        return {(n,): values[flat(n)] for n in required(schema) if flat(n) in values}

    def others(self, tools: Iterable[Mapping[str, Any]]) -> None:
        """Call some of the tools once that no search has called, with made-up arguments."""
        left = [tool for tool in tools if tool["name"] not in self.said]
        for tool in left[:OTHERS]:
            for arguments in candidates(tool.get("inputSchema"), self._places)[:1]:
                self.ask("tools/call", {"name": tool["name"], "arguments": arguments})

    def ask(self, method: str, params: dict[str, Any]) -> Reply:
        """Send a request, unless no more calls are tried."""
        if self.over:
            return Reply(0, why="nothing more is tried")
        self.count += 1
        try:
            reply = self._get().request(method, params, required=False)
        except LaunchError as error:
            self._hangs = HANGS
            return Reply(0, why=str(error))
        if not reply.answered:
            self._hangs += 1
        return reply

    def shows(self, reply: Reply, token: str) -> bool:
        """Return whether a reply contains the token of a canary of the root."""
        seen = self.tree.canaries.found_in_message(reply.value or {}, {Area.INSIDE})
        return any(canary.token == token for canary in seen)


def read(path: SafePath) -> bytes:
    """Return the bytes of a file; empty if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return b""
