"""What an attack has: a field of trees, the bindings of the tools, payloads, and what came back.

Only bytes accuse a server: a canary in an answer, a tree that changed, a process that died. A
refusal proves nothing.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mcp_touchstone.bindings.binding import Binding, Bindings, Operation
from mcp_touchstone.bindings.canary import Area, Canary
from mcp_touchstone.catalog.clause import Breach
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.judging.talk import Broken
from mcp_touchstone.security import payload
from mcp_touchstone.security.bind_tools import may_call
from mcp_touchstone.security.fixture_tree import CONTROL, FixtureTree
from mcp_touchstone.security.payload import Payload
from mcp_touchstone.security.repro_script import Scene
from mcp_touchstone.security.targeting import Targeting
from mcp_touchstone.target.promises import PromiseTerms
from mcp_touchstone.target.target import Target
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Entry

if TYPE_CHECKING:
    from mcp_touchstone.client.connection import Connection

PATIENCE: Final = 20.0
"""Seconds a call may take: a loaded machine or a path of many thousand parts is no finding."""

SECRET: Final = frozenset({Area.OUTSIDE, Area.ENVIRONMENT})


@dataclass(frozen=True, slots=True)
class Claims:
    """What a server and its user say of it.

    Attributes:
        terms: threat -> on which terms the server promised that it does not happen.
        callable_tools: tools the user says may be called.
        unpromised: threats against what the server never promised: a finding there is a note.
    """

    terms: Mapping[str, PromiseTerms] = field(default_factory=dict)
    callable_tools: tuple[str, ...] = ()
    unpromised: frozenset[str] = frozenset()


class AttackSession(Conversation):
    """One attack on one server: its trees, its tools, its payloads, and what came back.

    Attributes:
        field: the trees around the root of the server.
        claims: what the server and its user say of it.
    """

    def __init__(
        self,
        *words: Any,
        field: FixtureTree,
        library: Path,
        target: Target,
        claims: Claims,
        **more: Any,
    ) -> None:
        """Take what a conversation takes, and what is fired from where.

        Args:
            words: what a conversation takes.
            field: the trees.
            library: folder of the payloads.
            target: the server as it is started, for reproductions.
            claims: what the server and its user say of it.
            more: what a conversation takes.
        """
        super().__init__(*words, **more)
        self.field = field
        self._library = payload.load(library)
        self._target = target
        self.claims = claims
        self._protected = SECRET
        self._respawn: Callable[[], Connection] = more["spawn"]

    @property
    def scene(self) -> Scene:
        """What a script of a finding has to build up again."""
        denies = Area.DENIED in self._protected
        return Scene(self.field, self._target, self.revision, denies, self.wire.process.sandbox)

    @property
    def is_apart(self) -> bool:
        """Whether the server was started where there is no network."""
        return bool(self._target.apart)

    def may_call(self, tool: Mapping[str, Any]) -> bool:
        """Whether a tool may be called that the user did not bind."""
        return may_call(tool, self._target)

    @property
    def targeting(self) -> Targeting:
        """What knows which calls a payload makes of bindings."""
        return Targeting(self.field, self.bindings)

    @property
    def bindings(self) -> Bindings:
        """What tools were seen to do to files."""
        return self.dossier.bindings or Bindings()

    def payloads(self, *groups: str, via: str = "path") -> list[Payload]:
        """Give the payloads of some classes that go one way, as far as attacks go in this run."""
        return [
            p
            for group in groups
            for p in self._library[group]
            if p.via == via and p.tier in self.dice.tiers
        ]

    def actions(self, does: str, *groups: str) -> Iterator[tuple[Payload, dict[str, Any]]]:
        """Give payloads that are no text to send but say, as JSON, what to do.

        Args:
            does: what, in words with blanks between; others are left out.
            groups: classes of payloads.
        """
        for row in self.payloads(*groups, via="session"):
            given = json.loads(row.text)
            if given["do"] in does.split():
                yield row, given

    # --- what other ways to attack need

    def open(self) -> None:
        """Open the connection if nobody did.

        Raises:
            Broken: it does not open.
        """
        self.field.names["pid"] = str(self.wire.process.own_pid)
        if self.wire.opening is None and self.wire.open().result is None:
            raise Broken(f"the server did not open: {self.wire.opening}")

    def begin(self) -> list[Binding]:
        """Open the connection if nobody did, and give the readers that give a plain file back."""
        self.open()
        return self.readers()

    def renew(self) -> None:
        """Go on with another process in the same field, opened.

        Raises:
            Broken: it does not open.
        """
        self.wire = self._respawn()
        self._used.append(self.wire)
        self.mark()
        self.open()

    def mark(self) -> None:
        """Let the evidence of what is judged next begin here."""
        self._start = len(self.wire.transcript)

    def go_back(self, wire: "Connection", line: int) -> None:
        """Let the evidence of what is judged next begin at a line of an earlier connection."""
        self.wire, self._start = wire, line

    def may_go_unseen(self, threat: str) -> bool:
        """Whether a threat is judged here and speaks only of some servers."""
        row = self._clauses.get(threat)
        return row is not None and row.conditional

    def conclude(
        self,
        threat: str,
        found: str,
        *,
        expected: str,
        passed: str,
        at: Reply | Entry | int | None = None,
        mild: Breach | None = None,
        because: str = "",
        script: str = "",
    ) -> None:
        """Judge a threat by what was found; nothing found is a pass, and says how much was tried.

        What the server never promised is a note; ``mild`` is what a finding counts as at most,
        and ``because`` says why.
        """
        if not self.judges(threat):
            return
        self.judge(
            threat,
            not found,
            expected=expected,
            actual=found or passed,
            at=at,
            mild=self.mild(threat) or mild,
            because=self.because(threat) or because,
        )
        if found:
            last = self.judgements[-1]
            self.judgements[-1] = replace(
                last, reproduction=script or last.reproduction, tools=self._called(at)
            )

    def _called(self, at: Reply | Entry | int | None) -> tuple[tuple[str, int], ...]:
        """Return the tool or method of the request that a reply answers."""
        if not isinstance(at, Reply):
            return ()
        for message in self.wire.transcript[at.asked].messages:
            if message.method == "tools/call":
                params = message.value.get("params")
                return ((str(params.get("name")), 1),) if isinstance(params, dict) else ()
            if message.method in {"resources/read", "prompts/get", "completion/complete"}:
                return ((message.method, 1),)
        return ()

    def promised_by(self, threat: str, *operations: Operation) -> list[Binding]:
        """Give the bindings that promise what a threat is about, of some operations."""
        terms = self.claims.terms.get(threat, PromiseTerms())
        return [b for b in self.bindings.of(*(operations or Operation)) if terms.binds(b.tool)]

    # --- what came back

    @property
    def protected(self) -> frozenset[Area]:
        """Areas whose bytes and names must not come back: outside, and what a deny list names."""
        return self._protected

    def protect_denied(self) -> None:
        """Count what a deny list names among what must not come back."""
        self._protected = frozenset({*SECRET, Area.DENIED})

    def readers(self) -> list[Binding]:
        """Give the reading bindings by which the plain file can be read now."""
        root = str(self.field.root)
        readers = []
        for binding in self.bindings.of(Operation.READ):
            method, params = binding.call(binding.spelled(CONTROL, root), root)
            reply = self.wire.request(method, params, required=False)
            if self.field.control in self.canaries(reply, {Area.INSIDE}):
                readers.append(binding)
        return readers

    def canaries(self, reply: Reply, areas: Iterable[Area]) -> list[Canary]:
        """List what was planted in some areas and stands in an answer."""
        return self.field.canaries.found_in_message(reply.value or {}, areas)

    def returned(self, reply: Reply, canary: Canary) -> bool:
        """Whether an answer holds what was planted somewhere."""
        return canary in self.canaries(reply, {canary.area})

    def leaks(self, reply: Reply) -> bool:
        """Whether an answer holds what must not come back."""
        return bool(self.canaries(reply, self._protected))

    # --- how a finding counts

    def mild(self, threat: str) -> Breach | None:
        """Give what a finding counts as at most: a note where the server promised nothing."""
        return Breach.NOTE if threat in self.claims.unpromised else None

    def because(self, threat: str) -> str:
        """Say why a finding is only a note; empty where it is not."""
        row = self._clauses.get(threat)
        if threat not in self.claims.unpromised or not isinstance(row, Threat):
            return ""
        return f"the server promised no {row.promise}; --promise {row.promise} makes it count"
