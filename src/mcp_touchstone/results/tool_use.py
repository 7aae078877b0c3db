"""Which tools were called, which answered errors, and which were not called. Pure.

Reports lay this out. Otherwise a tool that stopped working would only make the run shorter.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.bindings.call_variants import DANGER
from mcp_touchstone.connection.server_profile import (
    FAILED_CALL,
    ServerProfile,
    is_read_only,
    working_tools,
)
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.samples.from_schema import words
from mcp_touchstone.wire.matchers import OUTPUT_REFUSED

SHOWN: Final = 10
"""Tools of a kind that are named."""

LONGEST: Final = 120
"""Characters of a name or an error."""


@dataclass(frozen=True, slots=True)
class FailedTool:
    """A tool no call of which succeeded in some revisions.

    Attributes:
        error: its last answer, shortened and escaped.
        revisions: these revisions; empty for each in which it was called.
    """

    name: str
    error: str
    revisions: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Its error and revisions."""
        return self.error + (f", in {', '.join(self.revisions)}" if self.revisions else "")


@dataclass(frozen=True, slots=True)
class SparedTool:
    """A tool that no attack called, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The tools of a server, by what was done with them; all empty if none was called.

    Attributes:
        called: tools with a successful call.
        failed: tools without one, in one revision at least.
        left_out: tools that are not annotated read-only and were not named.
        unreached: tools that may be called and were not: a limit was reached first.
        hurried: all tools that were not named, if the run was too quick to call them.
        attacked: tools that attacks called, with the arguments in which they name files.
        spared: the other tools of a run with attacks.
    """

    called: tuple[str, ...] = ()
    failed: tuple[FailedTool, ...] = ()
    left_out: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    hurried: tuple[str, ...] = ()
    attacked: tuple[str, ...] = ()
    spared: tuple[SparedTool, ...] = ()

    def rows(self, option: str = "--call") -> Iterator[tuple[str, str]]:
        """Yield label and text of each line.

        Args:
            option: the option that names a tool.
        """
        for label, tools in (
            ("attacked", self.attacked),
            ("not attacked", self.spared),
            ("called", self.called),
            ("no call succeeded", self.failed),
            ("not called, as not annotated read-only", self.left_out),
            ("not called, as a limit was reached", self.unreached),
            ("not called, as a quick run calls only those of --call", self.hurried),
        ):
            if tools:
                more = [f"{len(tools) - SHOWN} more"] if len(tools) > SHOWN else []
                comma = "; " if isinstance(tools[0], FailedTool | SparedTool) else ", "
                yield label, comma.join([*_shown(tools[:SHOWN]), *more])
        if any(tool.error.startswith("HTTP 401") for tool in self.failed):
            yield "to call them", "give a token: --header Authorization=env:NAME or --token-command"
        elif self.left_out or self.unreached or not all(map(_no_arguments_help, self.failed)):
            yield "to call one", f'{option} NAME=\'{{"argument": "value"}}\''

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> "ToolUse":
        """Read the JSON that ``document`` returned; all empty for an empty object."""
        return cls(
            tuple(document.get("called", ())),
            tuple(
                FailedTool(tool["name"], tool["error"], tuple(tool["revisions"]))
                for tool in document.get("failed", ())
            ),
            tuple(document.get("not_read_only", ())),
            tuple(document.get("not_reached", ())),
            tuple(document.get("not_called_quick", ())),
            tuple(document.get("attacked", ())),
            tuple(SparedTool(one["name"], one["why"]) for one in document.get("not_attacked", ())),
        )

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        spared = [{"name": tool.name, "why": tool.reason} for tool in self.spared]
        return {
            "called": list(self.called),
            "failed": [
                {"name": tool.name, "error": tool.error, "revisions": list(tool.revisions)}
                for tool in self.failed
            ],
            "not_read_only": list(self.left_out),
            "not_reached": list(self.unreached),
            "not_called_quick": list(self.hurried),
            **({"attacked": list(self.attacked)} if self.attacked else {}),
            **({"not_attacked": spared} if spared else {}),
        }


def tool_use(profile: ServerProfile, attacked: Collection[str] | None = None) -> ToolUse:
    """Return what a run did with the tools of a server.

    Args:
        attacked: names of the tools that attacks called; None if the run attacked nothing. What was
            attacked is in no other list but that of tools without a successful call.
    """
    use = _probed(profile)
    if attacked is None:
        return use
    listed = (t["name"] for spoken in profile.spoken.values() for t in spoken.named("tools"))
    names = dict.fromkeys(listed)
    spared = [name for name in names if name not in attacked]
    return ToolUse(
        called=tuple(name for name in use.called if name not in attacked),
        failed=use.failed,
        attacked=tuple(_with_arguments(name, profile) for name in sorted({*names} & {*attacked})),
        spared=tuple(SparedTool(name, _why_spared(name, profile)) for name in spared),
    )


def _with_arguments(tool: str, profile: ServerProfile) -> str:
    """Return a tool with the arguments that attacks fill: ``move(from, to)``."""
    found = () if profile.bindings is None else profile.bindings.found
    filled = sorted({name for one in found if one.tool == tool for name in one.filled})
    return f"{tool}({', '.join(filled)})" if filled else tool


def _why_spared(tool: str, profile: ServerProfile) -> str:
    bindings = profile.bindings
    if bindings is None or any(one.tool == tool for one in bindings.found):
        return "no selected attack fits it"
    if tool in bindings.observed.languages:
        return "it ran a line of code, and no selected attack fits it"
    if tool in bindings.unbound:
        return "it was called with paths, and no effect on files was seen"
    if {*words(tool)} & DANGER:
        return "its name suggests that it does harm; --call names it"
    return "no argument looks like the path of a file; --bindings names one"


def _probed(profile: ServerProfile) -> ToolUse:
    """Return what discovery did with the tools."""
    probed = {r: spoken for r, spoken in profile.spoken.items() if "callable-tool" in spoken.tried}
    tools: dict[str, bool] = {}
    for spoken in profile.spoken.values() if probed else ():
        for tool in spoken.named("tools"):
            tools[tool["name"]] = tools.get(tool["name"], False) or is_read_only(tool)
    worked = {revision: working_tools(spoken) for revision, spoken in probed.items()}
    called = dict.fromkeys(name for names in worked.values() for name in names)
    failed: dict[str, FailedTool] = {}
    for revision, spoken in probed.items():
        for key, error in spoken.notes.items():
            name = key.removeprefix(FAILED_CALL)
            if name != key and name not in worked[revision]:
                known = failed[name].revisions if name in failed else ()
                text = _short(" ".join(error.split()))
                failed[name] = FailedTool(name, text, (*known, revision) if name in called else ())
    if profile.pace.hurried and not probed:
        names = (t["name"] for spoken in profile.spoken.values() for t in spoken.named("tools"))
        return ToolUse(hurried=tuple(dict.fromkeys(names)))
    rest = [name for name in tools if name not in called and name not in failed]
    if profile.pace.hurried:
        return ToolUse(tuple(called), tuple(failed.values()), hurried=tuple(rest))
    return ToolUse(
        tuple(name for name in called if name not in failed),
        tuple(failed.values()),
        tuple(name for name in rest if not tools[name]),
        tuple(name for name in rest if tools[name]),
    )


def _no_arguments_help(tool: FailedTool) -> bool:
    return OUTPUT_REFUSED.search(tool.error) is not None


def _short(text: str) -> str:
    escaped = safe(text)
    return escaped if len(escaped) <= LONGEST else f"{escaped[: LONGEST - 1]}…"


def _shown(tools: Sequence[str | FailedTool | SparedTool]) -> Iterator[str]:
    """Yield each name, and each reason once, after the names of its tools."""
    reasons: dict[str, list[str]] = {}
    for tool in tools:
        if isinstance(tool, str):
            yield _short(tool)
        else:
            reasons.setdefault(tool.reason, []).append(_short(tool.name))
    for reason, names in reasons.items():
        yield f"{', '.join(names)} ({reason})"
