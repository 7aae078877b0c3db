"""The facts of a run from which `results.abilities` says what a server can do by design."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from mcp_touchstone.bindings.binding import Bindings
from mcp_touchstone.catalog.clause import Clause
from mcp_touchstone.catalog.revision import META
from mcp_touchstone.catalog.threat import Promise, Threat
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.server_profile import FAILED_CALL, ServerProfile
from mcp_touchstone.results.abilities import Facts, takes_url
from mcp_touchstone.results.run import Verdict
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.scratch import SECRET
from mcp_touchstone.wire.framing import object_in, value_in
from mcp_touchstone.wire.transcript import Source

READ: Final = 20_000
"""Characters of a text in which names of variables are looked for."""

_VARIABLE: Final = re.compile(
    r"\b(?:[A-Z][A-Z0-9]*_)+(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?|PAT)\b"
)


def facts(
    profile: ServerProfile,
    connections: Sequence[Connection],
    verdicts: Iterable[Verdict],
    **known: Any,
) -> Facts:
    """Gather what a run knows of a server.

    Args:
        known: the members of ``Facts`` that are in none of the others.
    """
    tools: dict[str, Mapping[str, Any]] = {}
    for spoken in profile.spoken.values():
        tools |= {tool["name"]: tool for tool in spoken.named("tools")}
    offered: set[str] = set()
    for connection in connections:
        for entry in connection.transcript:
            if entry.source is Source.US and entry.value is not None:
                for path in (("params", "capabilities"), ("params", "_meta", _CAPABILITIES)):
                    offered |= {*object_in(entry.value, *path)}
    fetched: dict[str, None] = {}
    escapes: dict[str, None] = {}
    for verdict in verdicts:
        if verdict.clause.chapter == "urls" and verdict.outcome not in _NOTHING:
            takers = [name for name, tool in tools.items() if takes_url(tool)]
            fetched |= dict.fromkeys(verdict.tools or takers)
        elif verdict.outcome is Outcome.FAIL and _leaves(verdict.clause):
            escapes[verdict.clause.id] = None
    return Facts(
        started=bool(profile.spoken),
        tools=list(tools.values()),
        bindings=profile.bindings or Bindings(),
        sent=frozenset(_sent(connections)),
        offered=frozenset(offered),
        needed=_needed(profile, connections),
        fetched=tuple(fetched),
        escapes=tuple(escapes),
        **known,
    )


def _leaves(clause: Clause) -> bool:
    """Return whether a finding shows that files outside the root were reached."""
    within = isinstance(clause, Threat) and clause.promise is Promise.CONTAINMENT
    runs = clause.chapter in _PROGRAMS or clause.id in _OF_REPOSITORIES
    return within and clause.group == "containment" and not runs


_PROGRAMS: Final = frozenset({"commands", "injection"})
_OF_REPOSITORIES: Final = frozenset({"repositories-programs", "repositories-hooks"})
"""Threats that run programs; these are on the promise to stay inside, too."""

_NOTHING: Final = frozenset({Outcome.UNSEEN, Outcome.BROKEN})
"""Outcomes that show nothing."""

_CAPABILITIES: Final = f"{META}clientCapabilities"


def _sent(connections: Iterable[Connection]) -> Iterator[str]:
    """Yield the methods of the requests of a server; since 2026-07-28 they are in its results."""
    for connection in connections:
        for entry in connection.transcript:
            if entry.source is not Source.THEM:
                continue
            for message in entry.messages:
                asked = object_in(message.value, "result", "inputRequests").values()
                for method in (
                    value_in(message.value, "method"),
                    *(value_in(one, "method") for one in asked),
                ):
                    if isinstance(method, str):
                        yield method


def _needed(profile: ServerProfile, connections: Iterable[Connection]) -> tuple[str, ...]:
    """Return the variables with secrets that errors, instructions and descriptions name."""
    texts = [profile.stderr]
    for spoken in profile.spoken.values():
        texts += [note for key, note in spoken.notes.items() if key.startswith(FAILED_CALL)]
        texts.append(str(spoken.result.get("instructions", "")))
        texts += [str(tool.get("description", "")) for tool in spoken.named("tools")]
    texts += [one.channel.stderr_tail.decode("utf-8", "replace") for one in connections]
    found = dict.fromkeys(name for text in texts for name in _VARIABLE.findall(text[:READ]))
    return tuple(sorted(name for name in found if name != SECRET))
