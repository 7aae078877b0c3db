"""Which tools were called, which answered errors, and which were not called. Pure.

Reports lay this out. Otherwise a tool that stopped working would only make the run shorter.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.connection.server_profile import (
    FAILED_CALL,
    ServerProfile,
    is_read_only,
    working_tools,
)
from mcp_touchstone.runtime.printable import safe

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
class ToolUse:
    """The tools of a server, by what discovery did with them; all empty if it called none.

    Attributes:
        called: tools with a successful call.
        failed: tools without one, in one revision at least.
        left_out: tools that are not annotated read-only and were not named.
        unreached: tools that may be called and were not: a limit was reached first.
        hurried: all tools, if the run was too quick to call one.
    """

    called: tuple[str, ...] = ()
    failed: tuple[FailedTool, ...] = ()
    left_out: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    hurried: tuple[str, ...] = ()

    def rows(self, option: str = "--call") -> Iterator[tuple[str, str]]:
        """Yield label and text of each line.

        Args:
            option: the option that names a tool.
        """
        for label, tools in (
            ("called", self.called),
            ("no call succeeded", self.failed),
            ("not called, as not annotated read-only", self.left_out),
            ("not called, as a limit was reached", self.unreached),
            ("not called, as a quick run calls none", self.hurried),
        ):
            if tools:
                more = [f"{len(tools) - SHOWN} more"] if len(tools) > SHOWN else []
                comma = "; " if tools is self.failed else ", "
                yield label, comma.join([*_shown(tools[:SHOWN]), *more])
        if any(tool.error.startswith("HTTP 401") for tool in self.failed):
            yield "to call them", "give a token: --header Authorization=env:NAME or --token-command"
        elif self.failed or self.left_out or self.unreached:
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
        )

    def document(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "called": list(self.called),
            "failed": [
                {"name": tool.name, "error": tool.error, "revisions": list(tool.revisions)}
                for tool in self.failed
            ],
            "not_read_only": list(self.left_out),
            "not_reached": list(self.unreached),
            "not_called_quick": list(self.hurried),
        }


def tool_use(profile: ServerProfile) -> ToolUse:
    """Return what discovery did with the tools of a server."""
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
    return ToolUse(
        tuple(name for name in called if name not in failed),
        tuple(failed.values()),
        tuple(name for name in rest if not tools[name]),
        tuple(name for name in rest if tools[name]),
    )


def _short(text: str) -> str:
    escaped = safe(text)
    return escaped if len(escaped) <= LONGEST else f"{escaped[: LONGEST - 1]}…"


def _shown(tools: Sequence[str | FailedTool]) -> Iterator[str]:
    """Yield each name, and each reason of failed tools once, behind their names."""
    reasons: dict[str, list[str]] = {}
    for tool in tools:
        if isinstance(tool, str):
            yield _short(tool)
        else:
            reasons.setdefault(tool.reason, []).append(_short(tool.name))
    for reason, names in reasons.items():
        yield f"{', '.join(names)} ({reason})"
