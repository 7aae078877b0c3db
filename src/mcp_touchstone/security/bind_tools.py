"""Find out which operations on files a tool performs, by calling it in a temporary root.

Annotations, names and schemas only decide which calls are tried, and in which order. A call is
bound to an operation by its effect: returned bytes, or a changed tree. Nothing is judged.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from mcp_touchstone.bindings.argument_roles import (
    ArgumentRole,
    ArgumentSlot,
    dry_run,
    slots,
)
from mcp_touchstone.bindings.binding import (
    IN_PLACE,
    ROOT,
    Binding,
    Bindings,
    Operation,
    Style,
    rooted,
)
from mcp_touchstone.bindings.call_variants import (
    DANGER,
    UNDOING,
    CallVariant,
    beside,
    more_ways,
    ways,
)
from mcp_touchstone.bindings.canary import MARK, NAME_MARK
from mcp_touchstone.bindings.declared import Declaration
from mcp_touchstone.bindings.observed import Observed
from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.catalog.errors import OTHER_FOLDER, seems_refused
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.server_profile import Spoken, is_read_only
from mcp_touchstone.samples.from_schema import words
from mcp_touchstone.security import bind_commands
from mcp_touchstone.security.bind_calls import OWN_FOLDER, ToolCalls
from mcp_touchstone.security.bind_effects import Attempt, Effects, makes
from mcp_touchstone.security.bind_names import NameSearch
from mcp_touchstone.security.fixture_tree import FixtureTree
from mcp_touchstone.target.target import Target

GLOBS: Final = (f"**/{NAME_MARK}*", f"*{NAME_MARK}*", NAME_MARK)
"""Patterns that find files by the beginning of their names."""


def may_call(tool: Mapping[str, Any], target: Target) -> bool:
    """Return whether a tool may be called: guesses are allowed, it is read-only, or it is bound."""
    named = {name for name, _ in target.call}
    return target.guesses or is_read_only(tool) or tool["name"] in named


class Binder:
    """Tries the tools of one server."""

    def __init__(
        self,
        get: Callable[[], Connection],
        tree: FixtureTree,
        named: Iterable[str] = (),
        may_call: Callable[[Mapping[str, Any]], bool] = lambda _tool: True,
        *,
        runs: bool = False,
        offline: bool = False,
    ) -> None:
        """Create it, and make its folder in the root.

        Args:
            named: names of the tools that may be called although their names suggest danger.
            may_call: returns whether a tool may be called without a declaration of the user.
            runs: whether to find tools that run programs, too.
            offline: whether it has a sandbox without network: then all other tools are called too,
                so that one sees what they look for.
        """
        self._tree = tree
        self._named_tools = set(named)
        self._may_call = may_call
        self._runs = runs
        self._offline = offline
        self._calls = ToolCalls(get, tree)
        self._names = NameSearch(self._calls)
        self._effects = Effects(self._calls, self._names)
        self._found: list[Binding] = []

    def find(
        self, spoken: Spoken, declarations: Iterable[Declaration] = (), *, briefly: bool = False
    ) -> Bindings:
        """Try the declarations of the user, then the tools that seem to take a path.

        Args:
            briefly: whether to keep the process and create files in our folder only; tools that
                name files in other ways are not found then.
        """
        found = self._found = []
        tools = sorted(self._calls.tools(spoken), key=lambda tool: not is_read_only(tool))
        untrue = tuple(why for one in declarations if (why := self._try_declared(one, tools)))
        tools = [tool for tool in tools if self._may_call(tool)]
        self._names.about = str(spoken.result.get("instructions", ""))
        plans = [plan for tool in tools for plan in ways(tool, self._named_tools)]
        for plan in plans:
            for operation, attempt in self._unbound(plan):
                self._bind(operation, plan, attempt)
        for plan in plans:
            self._try_to_undo(plan)
        if not briefly:
            self._try_more(tools)
            self._try_folders(tools)
        for tool in tools:
            self._try_scripts(tool)
            self._try_walks(tool)
        observed = Observed()
        if self._runs:
            found += bind_commands.find(tools, self._calls.ask, self._tree)
            ran = bind_commands.languages(tools, self._calls.ask, self._tree)
            observed = Observed(ran, tried_code=True)
        found += self._completions(spoken)
        found += self._resources(spoken)
        why = ""
        if self._calls.over:
            why = "the server did not answer in time; the search was cut short"
        elif not found:
            why = "no tool and no resource gave back, listed or changed a file of the root"
            if any(map(seems_refused, self._calls.said.values())):
                why += f"; {OTHER_FOLDER}"
        if self._offline:
            self._calls.others(tools)
        tried = [tool["name"] for tool in tools if any(more_ways(tool, self._named_tools))]
        bound = {binding.tool for binding in found}
        unbound = tuple(name for name in tried if name not in bound)
        return Bindings(tuple(found), why, self._calls.count, untrue, unbound, observed=observed)

    def _unbound(
        self, plan: CallVariant, *, more: bool = False
    ) -> Iterator[tuple[Operation, Attempt]]:
        """Yield the possible operations of a plan that are not bound, as long as calls are made."""
        for operation, attempt in self._effects.allowed_by(plan, more=more):
            if not (self._calls.over or any(_settles(b, operation, plan) for b in self._found)):
                yield operation, attempt

    def _try_declared(self, declared: Declaration, tools: Iterable[dict[str, Any]]) -> str:
        """Try a declaration of the user; return why it is wrong, or an empty text."""
        tool = next((tool for tool in tools if tool["name"] == declared.tool), None)
        if tool is None:
            names = (tool["name"] for tool in tools)
            like = nearest(declared.tool, names)
            return f"{declared.operation}: no tool is called {declared.tool!r}{like}"
        attempt = self._effects.of(declared.operation)
        way = declared.way(tool)
        if declared.operation is Operation.CREATE and ArgumentRole.CONTENT not in way.roles:
            attempt = self._effects.makes_files
        for below, naming in self._names.declared(declared, way):
            with contextlib.suppress(OSError), self._calls.naming_as(naming, below):
                if self._bind(declared.operation, way, attempt, declared.styles):
                    return ""
        how = " or ".join(style.value for style in declared.styles)
        return f"{declared.operation}: {declared.tool} was called and did not do it (paths {how})"

    def _try_to_undo(self, plan: CallVariant) -> None:
        if self._calls.over or not plan.words & UNDOING or plan.roles - {ArgumentRole.PATH}:
            return
        edits = [b for b in self._found if b.operation in {Operation.EDIT, Operation.WRITE}]

        def undoes(plan: CallVariant, style: Style) -> dict[str, Any] | None:
            tried = (self._effects.undoes(plan, style, edit) for edit in edits)
            return next((arguments for arguments in tried if arguments is not None), None)

        self._bind(Operation.UNDO, plan, undoes)

    def _try_scripts(self, tool: dict[str, Any]) -> None:
        """Try whether a tool runs a script; its paths are in the script, so it may take none."""
        dry = dry_run(tool.get("inputSchema"))
        for slot in self._slots_of(tool, ArgumentRole.SCRIPT):
            plan = CallVariant(tool, {(dry,): False} if dry else {}, (slot,))
            self._bind(Operation.SCRIPT, plan, self._effects.creates)

    def _try_walks(self, tool: dict[str, Any]) -> None:
        """Try whether a tool finds names by a pattern, or lines by a part of them, in all files.

        The request never contains the whole expected name or line, so an echo of it is no match.
        """
        known = slots(tool.get("inputSchema"))
        below = [one for one in known if one.role in {ArgumentRole.PATH, ArgumentRole.BASE}][:1]
        for pattern in self._slots_of(tool, ArgumentRole.PATTERN)[:1]:
            for operation, forms in ((Operation.GLOB, GLOBS), (Operation.SEARCH, (MARK,))):
                attempt = partial(self._effects.walks, operation=operation)
                for form in forms:
                    way = CallVariant(tool, {pattern.pointer: form}, (*below, pattern))
                    if self._bind(operation, way, attempt):
                        break

    def _try_more(self, tools: Iterable[dict[str, Any]]) -> None:
        """Try unbound tools with other names of files, arguments and forms.

        Tools that create files come first: the path of a new file shows how the server names files.
        """
        left = [tool for tool in tools if not any(b.tool == tool["name"] for b in self._found)]
        if not left:
            return
        self._calls.restart()
        listed = self._names.containers(left)
        plans = [plan for tool in left for plan in more_ways(tool, self._named_tools, listed)]
        plans.sort(key=lambda plan: not (makes(plan) or ArgumentRole.CONTENT in plan.roles))
        for plan in plans:
            for operation, attempt in self._unbound(plan, more=True):
                self._try_namings(operation, plan, attempt)

    def _try_folders(self, tools: Iterable[dict[str, Any]]) -> None:
        """Try the arguments of bound tools that may choose a folder beside the path."""
        known = {tool["name"]: tool for tool in tools}
        for one in [b for b in self._found if b.operation in IN_PLACE and b.tool in known]:
            for plan in beside(one, known[one.tool]):
                attempts = dict(self._effects.allowed_by(plan, more=True))
                if one.operation in attempts:
                    self._try_namings(one.operation, plan, attempts[one.operation])

    def _try_namings(self, operation: Operation, plan: CallVariant, attempt: Attempt) -> None:
        """Try an operation with the namings that fit a tool, until one works."""
        for below, naming in self._names.of(operation, plan):
            if self._calls.over:
                return
            is_near = below == OWN_FOLDER and not (naming.adds_suffix or naming.adds_folder)
            styles = tuple(Style) if is_near else (Style.RELATIVE,)
            with contextlib.suppress(OSError), self._calls.naming_as(naming, below):
                if self._bind(operation, plan, attempt, styles):
                    return

    def _slots_of(self, tool: Mapping[str, Any], role: ArgumentRole) -> list[ArgumentSlot]:
        """Return the arguments of a tool with a role; none if its name suggests danger."""
        if tool["name"] not in self._named_tools and {*words(tool["name"])} & DANGER:
            return []
        return [slot for slot in slots(tool.get("inputSchema")) if slot.role is role]

    def _bind(
        self,
        does: Operation,
        plan: CallVariant,
        attempt: Attempt,
        styles: tuple[Style, ...] = tuple(Style),
    ) -> bool:
        """Try an operation with styles of paths; bind it if it has its effect, and return that.

        Bindings that divide the path between its arguments differently are added.
        """
        worked: dict[Style, dict[str, Any]] = {}
        for style in styles:
            with contextlib.suppress(OSError):  # the server removed or replaced a file of ours
                arguments = attempt(plan, style)
                if arguments is not None:
                    worked[style] = arguments
        if not worked:
            return False
        schema = plan.tool.get("inputSchema")
        used = {*plan.fixed, *(slot.pointer for slot in plan.slots)}
        base = [s for s in slots(schema) if s.role is ArgumentRole.BASE and s.pointer not in used]
        bound = Binding(
            does,
            plan.tool["name"],
            rooted(next(iter(worked.values())), str(self._tree.root), ROOT),
            tuple(dict.fromkeys([*plan.slots, *base])),
            tuple(worked),
            schema=schema or {},
            naming=self._calls.naming,
            is_verbatim=self._effects.is_verbatim,
        )
        self._found.append(bound)
        if bound.by_name is not None:
            self._found += [bound.by_name, replace(bound, climbs_twice=True)]
        return True

    def _completions(self, spoken: Spoken) -> Iterator[Binding]:
        for completes in spoken.completable if "completions" in spoken.capabilities else ():
            worked = []
            for style in Style:
                binding = Binding(Operation.COMPLETE, "", styles=(style,), completes=completes)
                call = binding.call(
                    self._calls.spell(self._calls.folder, style), str(self._tree.root)
                )
                if self._calls.shows(self._calls.ask(*call), self._calls.listed.token):
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
        try:
            path, _ = self._calls.file()
        except OSError:  # the server removed or replaced our folder
            return False
        token = self._tree.canaries.planted[-1].token
        reply = self._calls.ask("resources/read", {"uri": prefix + self._calls.spell(path, style)})
        return self._calls.shows(reply, token)


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
