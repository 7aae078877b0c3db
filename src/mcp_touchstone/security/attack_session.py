"""The session of an attack: the trees, the bindings of the tools, the payloads and the answers.

Only effects count against a server: a canary in an answer, a changed tree, a process that ended. A
refusal proves nothing.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcp_touchstone.bindings.binding import Binding, Bindings, Call, Operation
from mcp_touchstone.bindings.call_variants import DANGER
from mcp_touchstone.bindings.canary import Area, Canary
from mcp_touchstone.catalog.clause import Breach
from mcp_touchstone.catalog.threat import ASSUMED, Threat
from mcp_touchstone.connection.server_profile import is_read_only
from mcp_touchstone.judging.judge import Judge
from mcp_touchstone.judging.run_settings import RunSettings
from mcp_touchstone.judging.talk import Talk
from mcp_touchstone.judging.used_server import Broken, UsedServer
from mcp_touchstone.results.verdict import AffectedTool
from mcp_touchstone.samples.from_schema import words
from mcp_touchstone.security import payload
from mcp_touchstone.security.bind_tools import may_call
from mcp_touchstone.security.fixture_tree import CONTROL, FixtureTree
from mcp_touchstone.security.payload import Payload
from mcp_touchstone.security.repro_script import Scene
from mcp_touchstone.security.targeting import Targeting
from mcp_touchstone.target.promises import PromiseTerms
from mcp_touchstone.target.target import Target
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Entry, Transcript

PATIENCE: Final = 20.0
"""Seconds a call may take; generous, so that a loaded machine or a long path is no finding."""

ROAMS: Final = (
    "the command names no root, and the server uses files anywhere by their absolute paths: it "
    "seems to keep no folder; --cwd '{root}' makes it count"
)

SECRET: Final = frozenset({Area.OUTSIDE, Area.ENVIRONMENT})


@dataclass(frozen=True, slots=True)
class Claims:
    """Promises of the server, and options of the user.

    Attributes:
        terms: threat -> terms of the promise of the server that it does not happen.
        callable_tools: tools that the user allows to call.
        unpromised: threats without a promise of the server; a finding there is a note.
    """

    target: Target
    terms: Mapping[str, PromiseTerms] = field(default_factory=dict)
    callable_tools: tuple[str, ...] = ()
    unpromised: frozenset[str] = frozenset()

    @property
    def is_offline(self) -> bool:
        """Whether the server was started without access to a network."""
        return bool(self.target.without_network)

    def may_call(self, tool: Mapping[str, Any]) -> bool:
        """Return whether a tool may be called without a binding by the user."""
        return may_call(tool, self.target)

    def may_guess(self, tool: Mapping[str, Any]) -> bool:
        """Return whether a tool may be called although it does not seem to take a path.

        A tool that is neither read-only nor named may reach real data, unless a sandbox keeps it
        from all networks.
        """
        named = tool["name"] in self.callable_tools
        shut = self.target.method is not None and not self.target.online
        return named or is_read_only(tool) or (shut and not {*words(tool["name"])} & DANGER)

    def promised(self, bindings: Bindings, threat: str, *operations: Operation) -> list[Binding]:
        """Return the bindings of some or all operations that the promise on a threat covers.

        Of a tool that takes the path in one argument or in two, those with one argument.
        """
        terms = self.terms.get(threat, PromiseTerms())
        found = [b for b in bindings.of(*(operations or Operation)) if terms.binds(b.tool)]
        whole = {(b.tool, b.operation) for b in found if not b.is_divided}
        return [b for b in found if not b.is_divided or (b.tool, b.operation) not in whole]


def called(transcript: Transcript, at: Reply | Entry | int | None) -> tuple[AffectedTool, ...]:
    """Return the tool or method of the request that a reply answers."""
    if not isinstance(at, Reply) or not at.asked:
        return ()
    for entry in transcript.since(at.asked - 1)[:1]:  # none on a new process
        sent = entry.value if isinstance(entry.value, dict) else {}
        method, params = sent.get("method"), sent.get("params")
        if method == "tools/call" and isinstance(params, dict):
            return (AffectedTool(str(params.get("name")), 1),)
        if method in {"resources/read", "prompts/get", "completion/complete"}:
            return (AffectedTool(str(method), 1),)
    return ()


class ThreatJudge(Judge):
    """The judgements of an attack; a threat without a promise of the server is limited to a note.

    Its other arguments are those of ``Judge``.
    """

    def __init__(self, *words: Any, claims: Claims, **more: Any) -> None:
        super().__init__(*words, **more)
        self._claims = claims

    def may_go_unseen(self, threat: str) -> bool:
        """Return whether a threat is judged here and applies only to some servers."""
        row = self._clauses.get(threat)
        return row is not None and row.conditional

    def conclude(
        self,
        threat: str,
        found: str,
        *,
        expected: str,
        if_passed: str = "",
        at: Reply | Entry | int | None = None,
        mild: Breach | None = None,
        because: str = "",
        script: str = "",
        also: Iterable[int] = (),
    ) -> None:
        """Judge a threat by a finding.

        Args:
            threat: ignored if it is not judged here.
            found: the finding, in words; empty for a pass.
            if_passed: what was tried or seen, in words, if there is no finding.
            at: the reply, entry or line that shows the finding.
            mild: the most severe breach that a finding counts as; None for no limit.
            because: the reason for ``mild``.
            script: a reproduction of the finding; empty for the default one.
            also: further lines that show the finding.
        """
        if not self.covers(threat):
            return
        self(
            threat,
            not found,
            expected=expected,
            actual=found or if_passed,
            at=at,
            mild=self.mild(threat) or mild,
            because=self.because(threat) or because,
            also=also,
        )
        if found:
            script = script or self.judgements[-1].reproduction
            self.amend(reproduction=script, tools=called(self._server.wire.transcript, at))
            self.add_evidence(f"observed: {found}")  # most effects appear in no message

    def mild(self, threat: str) -> Breach | None:
        """Return NOTE for a threat without a promise of the server; otherwise None."""
        return Breach.NOTE if threat in self._claims.unpromised else None

    def because(self, threat: str) -> str:
        """Return why a finding is only a note; empty if it is not."""
        row = self._clauses.get(threat)
        if threat not in self._claims.unpromised or not isinstance(row, Threat):
            return ""
        if row.promise in ASSUMED:
            return ROAMS
        return f"the server promised no {row.promise}; --promise {row.promise} makes it count"


class AttackPayloads:
    """The payloads of an attack, of the levels that the settings of the run name."""

    def __init__(self, server: UsedServer, library: Path, settings: RunSettings) -> None:
        self._server = server
        self._library = payload.load(library)
        self.settings = settings

    def __call__(self, *groups: str, via: str = "path") -> list[Payload]:
        """Return the payloads of some classes with a ``via``, of the attack levels of this run."""
        return [
            p
            for group in groups
            for p in self._library[group]
            if p.via == via and p.tier in self.settings.tiers
        ]

    def actions(self, does: str, *groups: str) -> Iterator[tuple[Payload, dict[str, Any]]]:
        """Yield the payloads that describe an action as JSON, each with its decoded action.

        Args:
            does: the wanted values of ``do``, separated by blanks; other payloads are left out.
        """
        for row in self(*groups, via="session"):
            given = json.loads(row.text)
            if given["do"] in does.split():
                yield row, given

    def fire(self, payload: str) -> None:
        """Note that the next line of ours carries a payload."""
        self._server.fired.add(payload)
        self._server.wire.transcript.carry(payload)


class AttackCanaries:
    """The canaries in the answers of the server.

    Attributes:
        protected: areas whose bytes and names must not be returned: outside, and denied files if
            added.
    """

    def __init__(self, server: UsedServer, tree: FixtureTree) -> None:
        self._server = server
        self._tree = tree
        self.protected = SECRET

    def protect_denied(self) -> None:
        """Add the denied files to the protected areas."""
        self.protected = frozenset({*SECRET, Area.DENIED})

    def found(self, reply: Reply, areas: Iterable[Area]) -> list[Canary]:
        """Return the canaries of some areas that an answer contains."""
        return self._tree.canaries.found_in_message(reply.value or {}, areas)

    def returned(self, reply: Reply, canary: Canary) -> bool:
        """Return whether an answer contains a canary."""
        return canary in self.found(reply, {canary.area})

    def leaks(self, reply: Reply) -> bool:
        """Return whether an answer contains a canary of a protected area."""
        return bool(self.found(reply, self.protected))

    def leaks_anyway(self, call: Call) -> bool:
        """Return whether a plain call leaks: the same effect of a payload is no finding then."""
        return self.leaks(self._server.wire.request(*call, required=False))


@dataclass(eq=False)
class AttackSession(Talk):
    """One attack on one server.

    Attributes:
        judge: records the judgements; ``judge.conclude(threat, found, ...)`` judges by a finding.
        tree: the trees around the root of the server.
        claims: promises of the server, and options of the user.
        payloads: ``payloads(group)`` are the payloads of a class.
    """

    judge: ThreatJudge
    tree: FixtureTree
    claims: Claims
    payloads: AttackPayloads
    canaries: AttackCanaries = field(init=False)

    def __post_init__(self) -> None:
        self.canaries = AttackCanaries(self.server, self.tree)

    @property
    def scene(self) -> Scene:
        """The surroundings that the script of a finding must recreate."""
        target = self.claims.target
        denies = Area.DENIED in self.canaries.protected
        sandbox = self.wire.process.sandbox if target.started else None
        return Scene(self.tree, target, self.revision, denies, sandbox)

    @property
    def bindings(self) -> Bindings:
        """The observed operations of the tools on files; empty if none."""
        return self.profile.bindings or Bindings()

    @property
    def targeting(self) -> Targeting:
        """The builder of calls from payloads and bindings."""
        return Targeting(self.tree, self.bindings)

    def open(self) -> None:
        """Open the connection unless it is open.

        Raises:
            Broken: it does not open.
        """
        if self.claims.target.started:
            self.tree.names["pid"] = str(self.wire.process.own_pid)
        if self.wire.opening is None and self.wire.open().result is None:
            raise Broken(f"the server did not open: {self.wire.opening}")

    def begin(self) -> list[Binding]:
        """Open the connection unless it is open; return the READ bindings that work now.

        They can read the plain file.
        """
        self.open()
        root = str(self.tree.root)
        readers = []
        for binding in self.bindings.of(Operation.READ):
            call = binding.call(binding.spelled(CONTROL, root), root)
            reply = self.wire.request(*call, required=False)
            if self.tree.control in self.canaries.found(reply, {Area.INSIDE}):
                readers.append(binding)
        return readers

    def renew(self) -> None:
        """Use another process in the same trees from now on: end this one, start and open it.

        Raises:
            Broken: it does not open.
        """
        self.wire.end(polite=not self.claims.target.started)
        self.server.restart()
        self.server.mark()
        self.open()
