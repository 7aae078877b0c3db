"""Find out which operations on files a tool performs, by calling it in a temporary root.

Annotations, names and schemas only decide which calls are tried, and in which order. A call is
bound to an operation by its effect: returned bytes, or a changed tree. Nothing is judged.
"""

import contextlib
import json
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.bindings.argument_roles import (
    FOLDERS,
    ArgumentRole,
    ArgumentSlot,
    Pointer,
    assemble,
    dry_run,
    slots,
)
from mcp_touchstone.bindings.binding import ROOT, Binding, Bindings, Operation, Style, fill, rooted
from mcp_touchstone.bindings.call_variants import (
    DANGER,
    DELETING,
    MAKING,
    STAGING,
    UNDOING,
    CallVariant,
    more_ways,
    ways,
)
from mcp_touchstone.bindings.canary import MARK, NAME_MARK, Area, strings
from mcp_touchstone.bindings.declared import Declaration
from mcp_touchstone.bindings.file_naming import TEXT, FileNaming
from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.client.connection import Connection
from mcp_touchstone.client.server_profile import Spoken, is_read_only
from mcp_touchstone.runtime import git_repo
from mcp_touchstone.samples.from_schema import BRIEF, Places, required, words
from mcp_touchstone.security import bind_commands
from mcp_touchstone.security.fixture_tree import FixtureTree, tell
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.process import LaunchError, now
from mcp_touchstone.wire.reply import Reply

BUDGET: Final = 60.0
"""Maximum number of seconds spent on one server."""

HANGS: Final = 3
"""Number of unanswered calls after which no more calls are tried."""

PAGES: Final = 10

DESCRIBED: Final = 16_000
"""Characters read of a definition; a hostile one may have megabytes."""

SAID: Final = 4000
"""Characters kept of the answers of a tool."""

GLOBS: Final = (f"**/{NAME_MARK}*", f"*{NAME_MARK}*", NAME_MARK)
"""Patterns that find files by the beginning of their names."""

MOST_SUFFIXES: Final = 3
"""Suffixes tried with a tool; a long description may name many."""

MOST_LISTED: Final = 4
"""Names of vaults and the like that are tried."""

LISTING: Final = frozenset({"list", "get", "show"})
"""Words in the name of a tool that may list vaults and the like."""

OWN_FOLDER: Final = bind_commands.PROBE
OWN: Final = re.compile(rf"{OWN_FOLDER}(/|$)")
"""The folder in which the binder makes its own files; a change there is no effect by itself."""


def may_call(tool: Mapping[str, Any], target: Target) -> bool:
    """Return whether a tool may be called: guesses are allowed, it is read-only, or it is bound."""
    named = {name for name, _ in target.named.calls}
    return target.guesses or is_read_only(tool) or tool["name"] in named


class Binder:
    """Tries the tools of one server.

    Attributes:
        field: the trees; their root is the root of the server.
        calls: number of calls made.
    """

    def __init__(
        self,
        get: Callable[[], Connection],
        field: FixtureTree,
        named: Iterable[str] = (),
        may_call: Callable[[Mapping[str, Any]], bool] = lambda _tool: True,
        *,
        runs: bool = False,
    ) -> None:
        """Create it, and make its folder in the root.

        Args:
            get: returns a connection to the server.
            field: the trees; their root is the root of the server.
            named: names of the tools that the user named.
            may_call: returns whether a tool may be called without a declaration of the user.
            runs: whether to find tools that run programs, too.
        """
        self.field = field
        self.calls = 0
        self._get = get
        self._named_tools = set(named)
        self._may_call = may_call
        self._runs = runs
        self._places = Places(folder=str(field.root), file="control.txt", seconds=BRIEF)
        self._until = now() + BUDGET
        self._hangs = 0
        self._number = 0
        self._folder = field.root / OWN_FOLDER
        self._folder.mkdir(exist_ok=True)
        self._said: dict[str, str] = {}
        self._about = ""
        self._landed: list[FileNaming] = []
        self._naming = FileNaming()
        self._below = OWN_FOLDER
        self._is_verbatim = True
        self._listed = field.canaries.name(f"{field.root.name}/{OWN_FOLDER}", Area.INSIDE)
        (self._folder / self._listed.token).touch()
        if field.is_repository:
            tell(self._folder, self._listed)

    def find(self, spoken: Spoken, told: Iterable[Declaration] = ()) -> Bindings:
        """Try the declarations of the user, then the tools that seem to take a path."""
        found: list[Binding] = []
        tools = sorted(self._tools(spoken), key=lambda tool: not is_read_only(tool))
        untrue = tuple(why for one in told if (why := self._try_told(one, tools, found)))
        tools = [tool for tool in tools if self._may_call(tool)]
        self._about = str(spoken.result.get("instructions", ""))
        plans = [plan for tool in tools for plan in ways(tool, self._named_tools)]
        for plan in plans:
            self._try(plan, found)
        for plan in plans:
            self._try_to_undo(plan, found)
        self._try_more(tools, found)
        for tool in tools:
            self._try_scripts(tool, found)
            self._try_walks(tool, found)
        if self._runs:
            found += bind_commands.find(tools, self._ask, self.field)
        found += self._completions(spoken)
        found += self._resources(spoken)
        why = ""
        if self._over:
            why = "the server did not answer in time; the search was cut short"
        elif not found:
            why = "no tool and no resource gave back, listed or changed a file of the root"
        tried = [tool["name"] for tool in tools if any(more_ways(tool, self._named_tools))]
        bound = {binding.tool for binding in found}
        unbound = tuple(name for name in tried if name not in bound)
        return Bindings(tuple(found), why, self.calls, untrue, unbound)

    @property
    def _over(self) -> bool:
        return self._hangs >= HANGS or now() > self._until

    def _tools(self, spoken: Spoken) -> Iterator[dict[str, Any]]:
        yield from spoken.named("tools")
        cursor = spoken.cursors.get("tools/list")
        for _ in range(PAGES):
            if cursor is None:
                return
            result = self._get().request("tools/list", {"cursor": cursor}).result or {}
            yield from Spoken(spoken.opening, {"tools": result.get("tools") or []}).named("tools")
            cursor = result.get("nextCursor")

    # --- choosing calls

    def _try(self, plan: CallVariant, found: list[Binding]) -> None:
        """Try the possible operations of a plan that are not known; add the ones that work."""
        for operation, attempt in self._attempts(plan):
            if self._over or any(_settles(b, operation, plan) for b in found):
                continue
            worked = {s: a for s in Style if (a := attempt(plan, s)) is not None}
            if worked:
                found.append(self._bound(operation, plan, worked))

    def _try_told(
        self, told: Declaration, tools: Iterable[dict[str, Any]], found: list[Binding]
    ) -> str:
        """Try a declaration of the user; return why it is wrong, empty if it is right."""
        tool = next((tool for tool in tools if tool["name"] == told.tool), None)
        if tool is None:
            names = (tool["name"] for tool in tools)
            return f"{told.operation}: no tool is called {told.tool!r}{nearest(told.tool, names)}"
        attempt = self._by_name(told.operation)
        way = told.way(tool)
        if told.operation is Operation.CREATE and ArgumentRole.CONTENT not in way.roles:
            attempt = self._makes_files
        for below, naming in self._told_namings(told, way):
            with self._named(naming, below):
                worked = {s: a for s in told.styles if (a := attempt(way, s)) is not None}
                if worked:
                    self._bind(told.operation, way, worked, found)
                    return ""
        how = " or ".join(style.value for style in told.styles)
        return f"{told.operation}: {told.tool} was called and did not do it (paths {how})"

    def _told_namings(
        self, told: Declaration, way: CallVariant
    ) -> Iterator[tuple[str, FileNaming]]:
        """Yield the namings that a declaration allows, each with the folder of our files."""
        splits = ArgumentRole.NAME in way.roles
        naming = FileNaming(told.suffix, folder=OWN_FOLDER if splits else "", form=told.form)
        for below in (OWN_FOLDER,) if splits else (OWN_FOLDER, ""):
            yield below, naming
            if told.suffix:
                yield below, replace(naming, adds_suffix=True)
        if told.operation is Operation.CREATE:
            for text in dict.fromkeys([told.suffix, ""]):
                landed = self._land(way, text)
                if landed is not None:
                    yield landed

    def _by_name(self, operation: Operation) -> "Attempt":
        return {
            Operation.READ: self._reads,
            Operation.LIST: self._lists,
            Operation.CREATE: self._creates,
            Operation.WRITE: self._writes,
            Operation.EDIT: self._edits,
            Operation.MKDIR: self._makes_folders,
            Operation.MOVE: self._moves,
            Operation.COPY: self._copies,
            Operation.DELETE: self._deletes,
        }[operation]

    def _try_to_undo(self, plan: CallVariant, found: list[Binding]) -> None:
        """Try whether a tool undoes an edit of another tool."""
        if self._over or not plan.words & UNDOING or plan.roles - {ArgumentRole.PATH}:
            return
        worked: dict[Style, dict[str, Any]] = {}
        for edit in [b for b in found if b.operation in {Operation.EDIT, Operation.WRITE}]:
            worked |= {s: a for s in Style if (a := self._undoes(plan, s, edit)) is not None}
        if worked:
            found.append(self._bound(Operation.UNDO, plan, worked))

    def _try_scripts(self, tool: dict[str, Any], found: list[Binding]) -> None:
        """Try whether a tool runs a script; its paths are in the script, so it may take none."""
        schema = tool.get("inputSchema")
        for slot in self._slots_of(tool, ArgumentRole.SCRIPT):
            dry = dry_run(schema)
            plan = CallVariant(tool, {(dry,): False} if dry else {}, (slot,))
            worked = {s: a for s in Style if (a := self._creates(plan, s)) is not None}
            if worked:
                found.append(self._bound(Operation.SCRIPT, plan, worked))

    def _try_walks(self, tool: dict[str, Any], found: list[Binding]) -> None:
        """Try whether a tool finds names by a pattern, or lines by a part of them, in all files.

        The request never contains the whole expected name or line, so an echo of it is no match.
        """
        known = slots(tool.get("inputSchema"))
        below = [one for one in known if one.role in {ArgumentRole.PATH, ArgumentRole.BASE}][:1]
        for pattern in self._slots_of(tool, ArgumentRole.PATTERN)[:1]:
            for operation, forms in ((Operation.GLOB, GLOBS), (Operation.SEARCH, (MARK,))):
                for form in forms:
                    way = CallVariant(tool, {pattern.pointer: form}, (*below, pattern))
                    worked = {s: a for s in Style if (a := self._walks(way, s, operation))}
                    if worked:
                        found.append(self._bound(operation, way, worked))
                        break

    # --- servers of other shapes

    def _try_more(self, tools: Iterable[dict[str, Any]], found: list[Binding]) -> None:
        """Try tools that are not bound with other names of files, arguments and forms.

        Tools that make files come first: where their file lands shows how the server names files.
        """
        left = [tool for tool in tools if not any(b.tool == tool["name"] for b in found)]
        if not left:
            return
        self._restart()
        listed = self._names_listed(left)
        plans = [plan for tool in left for plan in more_ways(tool, self._named_tools, listed)]
        plans.sort(key=lambda plan: not (_makes(plan) or ArgumentRole.CONTENT in plan.roles))
        for plan in plans:
            for operation, attempt in self._attempts(plan, more=True):
                if self._over or any(_settles(b, operation, plan) for b in found):
                    continue
                self._try_namings(operation, attempt, plan, found)

    def _try_namings(
        self,
        operation: Operation,
        attempt: "Attempt",
        plan: CallVariant,
        found: list[Binding],
    ) -> None:
        """Try an operation with the namings that fit a tool, until one works."""
        for below, naming in self._namings(operation, plan):
            if self._over:
                return
            is_near = below == OWN_FOLDER and not (naming.adds_suffix or naming.adds_folder)
            styles = tuple(Style) if is_near else (Style.RELATIVE,)
            with self._named(naming, below):
                worked = {s: a for s in styles if (a := attempt(plan, s)) is not None}
                if worked:
                    self._bind(operation, plan, worked, found)
                    return

    def _namings(self, operation: Operation, plan: CallVariant) -> Iterator[tuple[str, FileNaming]]:
        """Yield namings, the likeliest first, each with the folder of our files."""
        splits = ArgumentRole.NAME in plan.roles
        folder = OWN_FOLDER if splits else ""
        if operation is Operation.CREATE:
            for text in ("", *self._suggested(plan.tool), TEXT):
                landed = self._land(plan, text)
                if landed is not None:
                    self._landed.append(landed[1])
                    yield landed
                    return
            return
        if operation is Operation.LIST:
            yield OWN_FOLDER, FileNaming(form=plan.form)
            for place in dict.fromkeys(n.folder for n in self._landed if n.adds_folder):
                yield place, FileNaming(folder=place, adds_folder=True, form=plan.form)
            return
        for known in dict.fromkeys(self._landed):
            if not splits:
                yield known.folder, replace(known, form=plan.form)
            elif not known.adds_folder:
                yield folder, replace(known, folder=folder, form=plan.form)
        for suffix in ("", *self._suggested(plan.tool)):
            naming = FileNaming(suffix, folder=folder, form=plan.form)
            for below in (OWN_FOLDER,) if splits else (OWN_FOLDER, ""):
                yield below, naming
                if suffix:
                    yield below, replace(naming, adds_suffix=True)

    def _suggested(self, tool: Mapping[str, Any]) -> list[str]:
        """Return the suffixes that the definition and the refusals of a tool suggest."""
        schema = tool.get("inputSchema")
        described = f"{tool['name']} {tool.get('description', '')} {json.dumps(schema)}"
        texts = (self._said.get(tool["name"], ""), described, self._about)
        found = [s for text in texts for s in self.field.documents.suggested(text[:DESCRIBED])]
        found += [naming.suffix for naming in self._landed if naming.suffix]
        return list(dict.fromkeys(found))[:MOST_SUFFIXES]

    def _land(self, plan: CallVariant, suffix: str) -> tuple[str, FileNaming] | None:
        """Make a file by a bare name, and return how it is named; None if there is none.

        Returns:
            The folder of the file, relative to the root, and the naming.
        """
        splits = ArgumentRole.NAME in plan.roles
        stem, content = self._fresh("").name, f"made {secrets.token_hex(8)}\n"
        folder = OWN_FOLDER if splits else ""
        sent = "/".join(part for part in (folder, stem + suffix) if part)
        with self._named(FileNaming(form=plan.form), folder):
            self._call(plan, sent, content=content)
        made = self._made(stem, content if plan.roles & {ArgumentRole.CONTENT} else "")
        if made is None:
            return None
        before, _, after = made.name.partition(stem)
        end = after if not before and after else made.suffix
        adds = end != suffix
        at = made.parent.relative_to(self.field.root).as_posix()
        at = "" if at == "." else at
        own = at == folder
        if not own and OWN.match(at):
            # an earlier call of ours chose this folder; in attacks none does
            self._restart()
            return None
        naming = FileNaming(
            "" if end == TEXT and not adds else end,
            adds_suffix=adds and bool(end),
            folder=at if at != folder or splits else "",
            adds_folder=not own,
            form=plan.form,
        )
        return at, naming

    def _restart(self) -> None:
        """End the process: earlier calls may have changed what the server does."""
        with contextlib.suppress(LaunchError):
            self._get().end(polite=False)

    def _made(self, stem: str, content: str) -> Path | None:
        """Return the new file with a content, or with a name if there is no content."""
        bare = re.sub(r"[^a-z0-9]", "", stem.lower())
        for path in self.field.root.rglob("*"):
            if path.is_symlink() or not path.is_file():
                continue
            named = bare in re.sub(r"[^a-z0-9]", "", path.name.lower())
            if (content.strip().encode() in _read(path)) if content else named:
                return path
        return None

    def _names_listed(self, tools: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return names of vaults and the like that a tool without arguments lists."""
        wanted = {word for name in FOLDERS for word in (name, f"{name}s")}
        found: list[str] = []
        for tool in tools:
            said = {*words(tool["name"])}
            if said & LISTING and said & wanted and not required(tool.get("inputSchema")):
                reply = self._ask("tools/call", {"name": tool["name"], "arguments": {}})
                shown = " ".join(strings((reply.result or {}).get("content", "")))
                found += re.findall(r"(?<![\w./-])\w[\w-]{1,40}(?![\w/-])", shown)
        own = self.field.root.name
        ranked = sorted(dict.fromkeys(found), key=lambda name: (name != own, -found.count(name)))
        return ranked[:MOST_LISTED]

    @contextlib.contextmanager
    def _named(self, naming: FileNaming, below: str) -> Iterator[None]:
        """Name our files so, in a folder of the root, while the context lasts."""
        kept = self._naming, self._below, self._folder
        self._naming, self._below = naming, below
        self._folder = self.field.root / below
        self._folder.mkdir(parents=True, exist_ok=True)
        try:
            yield
        finally:
            self._naming, self._below, self._folder = kept

    def _bind(
        self,
        does: Operation,
        plan: CallVariant,
        worked: dict[Style, dict[str, Any]],
        found: list[Binding],
    ) -> None:
        """Add a binding, and the same with the whole path in the argument for the name."""
        bound = self._bound(does, plan, worked)
        found.append(bound)
        if bound.by_name is not None:
            found.append(bound.by_name)

    def _slots_of(self, tool: Mapping[str, Any], role: ArgumentRole) -> list[ArgumentSlot]:
        """Return the arguments of a tool with a role; none if its name suggests danger."""
        if tool["name"] not in self._named_tools and {*words(tool["name"])} & DANGER:
            return []
        return [slot for slot in slots(tool.get("inputSchema")) if slot.role is role]

    def _bound(
        self, does: Operation, plan: CallVariant, worked: dict[Style, dict[str, Any]]
    ) -> Binding:
        used = {*plan.fixed, *(slot.pointer for slot in plan.slots)}
        known = slots(plan.tool.get("inputSchema"))
        base = [s for s in known if s.role is ArgumentRole.BASE and s.pointer not in used]
        return Binding(
            does,
            plan.tool["name"],
            rooted(next(iter(worked.values())), str(self.field.root), ROOT),
            tuple(dict.fromkeys([*plan.slots, *base])),
            tuple(worked),
            schema=plan.tool.get("inputSchema") or {},
            naming=self._naming,
            is_verbatim=self._is_verbatim,
        )

    def _attempts(
        self, plan: CallVariant, *, more: bool = False
    ) -> Iterator[tuple[Operation, "Attempt"]]:
        """Yield the operations that the arguments of a plan allow.

        Args:
            plan: the plan.
            more: whether a file without a given content may be made too.
        """
        roles = plan.roles
        if {ArgumentRole.FROM, ArgumentRole.TO} <= roles:
            yield Operation.MOVE, self._moves
            yield Operation.COPY, self._copies
        elif (
            roles & {ArgumentRole.OLD, ArgumentRole.DIFF}
            or {ArgumentRole.NEW, ArgumentRole.LINE} <= roles
        ):
            yield Operation.EDIT, self._edits
        elif roles & {ArgumentRole.CONTENT, ArgumentRole.NEW}:
            yield Operation.CREATE, self._creates
            yield Operation.WRITE, self._writes
            yield Operation.EDIT, self._edits
        else:
            if more and _makes(plan):
                yield Operation.CREATE, self._makes_files
            yield Operation.READ, self._reads
            yield Operation.LIST, self._lists
            if {*words(plan.tool["name"])} & MAKING:
                yield Operation.MKDIR, self._makes_folders
            if self.field.is_repository and plan.words & STAGING:
                yield Operation.STAGE, self._stages
            if plan.words & DELETING:
                yield Operation.DELETE, self._deletes

    # --- trying calls

    def _fresh(self, suffix: str | None = None) -> Path:
        self._number += 1
        suffix = (self._naming.suffix or TEXT) if suffix is None else suffix
        return self._folder / f"f{self._number}-{secrets.token_hex(3)}{suffix}"

    def _file(self) -> tuple[Path, bytes]:
        path = self._fresh()
        where = self.field.shown(path)
        canary = self.field.canaries.plant(where, Area.INSIDE)
        data = self.field.documents.holding(path, canary.content)
        path.write_bytes(data)
        return path, data

    def _spell(self, path: Path, style: Style) -> str:
        relative = path.relative_to(self.field.root).as_posix()
        text = relative if style is Style.RELATIVE else f"{self.field.root}/{relative}"
        return self._naming.written(text)

    def _call(
        self, plan: CallVariant, path: str, *, to: str = "", before: bytes = b"", content: str = ""
    ) -> tuple[Reply, dict[str, Any]]:
        tool = plan.tool
        root = str(self.field.root)
        values: dict[Pointer, Any] = {p: rooted(v, ROOT, root) for p, v in plan.fixed.items()}
        for slot in plan.slots:
            if slot.role is ArgumentRole.LINE:
                values[slot.pointer] = 1
            elif slot.role is ArgumentRole.BASE:
                values[slot.pointer] = root
            else:
                value = fill(slot.role, path, to=to, before=before, content=content)
                value = self._naming.filled(path) if slot.role is ArgumentRole.PATH else value
                values |= {} if value is None else {slot.pointer: value}
        values = {**self._fitting(tool), **values}
        arguments = assemble(tool.get("inputSchema"), values, self._places)
        reply = self._ask("tools/call", {"name": tool["name"], "arguments": arguments})
        if len(self._said.get(tool["name"], "")) < SAID:
            self._said[tool["name"]] = self._said.get(tool["name"], "") + _texts(reply)[:SAID]
        return reply, arguments

    def _fitting(self, tool: Mapping[str, Any]) -> dict[Pointer, Any]:
        """Return values for required arguments that fit the content of our documents."""
        schema = tool.get("inputSchema")
        values = self.field.documents.of(self._naming.suffix).values or {}
        known = {name: re.sub(r"[^a-z0-9]", "", name.lower()) for name in required(schema)}
        return {(name,): values[flat] for name, flat in known.items() if flat in values}

    def _ask(self, method: str, params: dict[str, Any]) -> Reply:
        if self._over:
            return Reply(0, why="nothing more is tried")
        self.calls += 1
        try:
            reply = self._get().request(method, params, required=False)
        except LaunchError as error:
            self._hangs = HANGS
            return Reply(0, why=str(error))
        if not reply.answered:
            self._hangs += 1
        return reply

    def _shows(self, reply: Reply, token: str) -> bool:
        seen = self.field.canaries.found_in_message(reply.value or {}, {Area.INSIDE})
        return any(canary.token == token for canary in seen)

    def _reads(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        path, data = self._file()
        canary = self.field.canaries.planted[-1]
        reply, arguments = self._call(plan, self._spell(path, style), before=data)
        return arguments if self._shows(reply, canary.token) and _holds(path, data) else None

    def _lists(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        for suffix in ("", *self._suggested(plan.tool)):  # some list only their kind of file
            (self._folder / (self._listed.token + suffix)).touch()
        reply, arguments = self._call(plan, self._spell(self._folder, style))
        return arguments if self._shows(reply, self._listed.token) else None

    def _walks(
        self, plan: CallVariant, style: Style, operation: Operation
    ) -> dict[str, Any] | None:
        token = self._listed.token
        if operation is Operation.SEARCH:
            self._file()
            token = self.field.canaries.planted[-1].token
        path = "." if style is Style.RELATIVE else str(self.field.root)
        reply, arguments = self._call(plan, path)
        return arguments if self._shows(reply, token) else None

    def _creates(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        path, content = self._fresh(), f"made {secrets.token_hex(8)}\n"
        _, arguments = self._call(plan, self._spell(path, style), content=content)
        held = _read(path)
        self._is_verbatim = held.strip() == content.strip().encode()
        return arguments if content.strip().encode() in held else None

    def _makes_files(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        path = self._fresh()
        _, arguments = self._call(plan, self._spell(path, style))
        return arguments if path.is_file() else None

    def _writes(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        (path, data), content = self._file(), f"written {secrets.token_hex(8)}\n"
        _, arguments = self._call(plan, self._spell(path, style), before=data, content=content)
        found = _read(path)
        self._is_verbatim = found.strip() == content.strip().encode()
        return arguments if content.strip().encode() in found and data not in found else None

    def _edits(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        (path, data), content = self._file(), f"edited {secrets.token_hex(8)}"
        _, arguments = self._call(plan, self._spell(path, style), before=data, content=content)
        return arguments if content.encode() in _read(path) else None

    def _makes_folders(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        path = self._fresh("")
        _, arguments = self._call(plan, self._spell(path, style))
        return arguments if path.is_dir() else None

    def _deletes(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        path, _ = self._file()
        _, arguments = self._call(plan, self._spell(path, style))
        return arguments if not path.exists() and self._folder.is_dir() else None

    def _stages(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        path = self.field.root / self._fresh().name  # the folder is another repository
        canary = self.field.canaries.plant(self.field.shown(path), Area.INSIDE)
        path.write_bytes(canary.content.encode())
        _, arguments = self._call(plan, self._spell(path, style))
        return arguments if git_repo.keeps(self.field.root, path.read_bytes()) else None

    def _undoes(self, plan: CallVariant, style: Style, edit: Binding) -> dict[str, Any] | None:
        (path, data), content = self._file(), f"edited {secrets.token_hex(8)}"
        root = str(self.field.root)
        where = edit.spelled(path.relative_to(self.field.root).as_posix(), root)
        self._ask(*edit.call(where, root, before=data, content=content))
        changed = _read(path)
        _, arguments = self._call(plan, self._spell(path, style), before=changed)
        return arguments if changed != data and _holds(path, data) else None

    def _moves(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        return self._carries(plan, style, stays=False)

    def _copies(self, plan: CallVariant, style: Style) -> dict[str, Any] | None:
        return self._carries(plan, style, stays=True)

    def _carries(self, plan: CallVariant, style: Style, *, stays: bool) -> dict[str, Any] | None:
        (path, data), to = self._file(), self._fresh()
        _, arguments = self._call(plan, self._spell(path, style), to=self._spell(to, style))
        return arguments if _holds(to, data) and path.exists() is stays else None

    # --- completions and resources

    def _completions(self, spoken: Spoken) -> Iterator[Binding]:
        for completes in spoken.completable if "completions" in spoken.capabilities else ():
            worked = []
            for style in Style:
                binding = Binding(Operation.COMPLETE, "", styles=(style,), completes=completes)
                call = binding.call(self._spell(self._folder, style), str(self.field.root))
                if self._shows(self._ask(*call), self._listed.token):
                    worked.append(style)
            if worked:
                yield Binding(Operation.COMPLETE, "", styles=tuple(worked), completes=completes)

    def _resources(self, spoken: Spoken) -> Iterator[Binding]:
        if "resources" not in spoken.capabilities:
            return
        templates = [t["uriTemplate"] for t in spoken.named("templates", "uriTemplate")]
        prefixes = [t.partition("{")[0] for t in templates if t.endswith("}") and t.count("{") == 1]
        for prefix in dict.fromkeys(["file://", *prefixes]):
            styles = [style for style in Style if self._is_resource(prefix, style)]
            if styles:
                yield Binding(Operation.READ, "", styles=tuple(styles), uri=prefix)

    def _is_resource(self, prefix: str, style: Style) -> bool:
        path, _ = self._file()
        token = self.field.canaries.planted[-1].token
        reply = self._ask("resources/read", {"uri": prefix + self._spell(path, style)})
        return self._shows(reply, token)


Attempt = Callable[[CallVariant, Style], dict[str, Any] | None]
"""Tries a plan with a style of paths; returns the arguments, or None if it had no effect."""


def _settles(binding: Binding, operation: Operation, plan: CallVariant) -> bool:
    """Return whether a known binding settles an operation; a call that writes is no edit."""
    same = operation is binding.operation or (
        operation is Operation.EDIT and binding.operation is Operation.WRITE
    )
    return (
        same
        and binding.tool == plan.tool["name"]
        and all(
            binding.arguments.get(str(p[0])) == value
            for p, value in plan.fixed.items()
            if p not in plan.places
        )
    )


def _makes(plan: CallVariant) -> bool:
    """Return whether a tool, by its name, may make a file."""
    return bool({*words(plan.tool["name"])} & MAKING)


def _texts(reply: Reply) -> str:
    """Return all text of an answer; a refusal may name what the tool takes."""
    return "\n".join(strings(reply.value or {}))


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _holds(path: Path, data: bytes) -> bool:
    return _read(path) == data
