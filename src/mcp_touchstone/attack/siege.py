"""What an attack holds: a field, the bindings, payloads to fire, and oracles that look at effects.

Refusals count for nothing and accusations rest on nothing but bytes: a canary that came back, a
tree that changed, a file inside that holds bytes from outside, a process that died. Each reading
binding has to give back a plain file before and after, or nothing was tested.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from mcp_touchstone.attack import payload as payloads
from mcp_touchstone.attack.aimer import Aimer, Shot
from mcp_touchstone.attack.bindings import (
    CHANGING,
    TAKING,
    Binding,
    Bindings,
    Call,
    Operation,
)
from mcp_touchstone.attack.canary import Area, Canary
from mcp_touchstone.attack.field import CONTROL, Field, remove
from mcp_touchstone.attack.payload import Payload
from mcp_touchstone.attack.reach import Carriage
from mcp_touchstone.attack.reproduction import script, starved
from mcp_touchstone.attack.tally import Hit, Tally, said, whose
from mcp_touchstone.clause import Breach
from mcp_touchstone.conversation import Conversation
from mcp_touchstone.reply import Reply
from mcp_touchstone.talk import Broken
from mcp_touchstone.terms import Terms
from mcp_touchstone.transcript import Entry

if TYPE_CHECKING:
    from mcp_touchstone.connection import Connection

PATIENCE: Final = 20.0
"""Seconds a call may take: a loaded machine or a path of many thousand parts is no finding."""

SECRET: Final = frozenset({Area.OUTSIDE, Area.ENVIRONMENT})

Oracle = Callable[[Shot, Reply], str]
"""Says in words which effect a shot had that it must not have; nothing where it had none."""

EXPECTED: Final = "nothing from outside comes back, nothing there changes, the server lives on"


class Siege(Conversation):
    """The hands of an attack.

    Attributes:
        field: the trees around the root of the server.
    """

    def __init__(
        self,
        *words: Any,
        field: Field,
        library: Path,
        command: Iterable[str],
        **more: Any,
    ) -> None:
        """Take what a conversation takes, and what is fired from where.

        Args:
            words: what a conversation takes.
            field: the trees.
            library: folder of the payloads.
            command: of the server, with ``{root}`` in it, for reproductions.
            more: what a conversation takes.
        """
        super().__init__(*words, **more)
        self.field = field
        self._library = payloads.load(library)
        self._command = tuple(command)
        self._secret = SECRET
        self._respawn: Callable[[], Connection] = more["spawn"]

    @property
    def command(self) -> tuple[str, ...]:
        """The command of the server, with ``{root}`` in it."""
        return self._command

    @property
    def aimer(self) -> Aimer:
        """What knows which calls a payload makes of bindings."""
        return Aimer(self.field, self.bindings)

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
            if p.via == via and p.tier in self.dice.tiers and not p.unfired
        ]

    # --- what is fired

    def assail(
        self, threat: str, *groups: str, operations: Iterable[Operation] = Operation
    ) -> None:
        """Fire the payloads of some classes at every tool that takes a path, and judge a threat.

        Args:
            threat: what is judged.
            groups: classes of payloads.
            operations: what is fired at; by default everything.
        """
        self._guard(*groups)
        stands = [row for row in self.payloads(*groups) if not _is_open(row)]
        self.judge_shots(threat, self.aimer.shots(stands, set(operations)))

    def _guard(self, *groups: str) -> None:
        """Say what must not come back: what lies outside, or what a deny list names."""
        if any(group.startswith("deny.") for group in groups):
            self._secret = frozenset({*SECRET, Area.DENIED})

    def deny(self) -> None:
        """Let what a deny list names be what must not come back, too."""
        self._guard("deny.")

    def serve(self, threat: str, *groups: str) -> None:
        """Read plain files that a guard may mistake for others: their bytes have to come back."""
        self._opened()
        readers, refused, tried = self._control(), [], 0
        for row in self.payloads(*groups):
            path = self.field.root / payloads.fill(row.text, self.field.names)
            if row.operation == "create":
                for binding in self.bindings.of(Operation.CREATE):
                    reply = self.wire.request(*self._made(path, binding), required=False)
                    tried += 1
                    if not path.is_file():
                        where = self.field.shown(path)
                        refused.append((f"{binding.tool} did not make {where}", reply))
            if row.operation != "read":
                continue
            plain = self.field.plain(path)
            for binding in readers:
                root = str(self.field.root)
                method, params = binding.call(binding.spelled(row.text, root), root)
                reply = self.wire.request(method, params, required=False)
                tried += 1
                if plain not in self._canaries(reply, {Area.INSIDE}):
                    refused.append((f"{binding.tool or method} did not give {row.text}", reply))
        if not tried:
            raise Broken("no payload could be fired")
        self.judge(
            threat,
            not refused,
            expected="what is on no list is served",
            actual=f"{refused[0][0]}; {len(refused)} of {tried} calls"
            if refused
            else f"{tried} calls",
            at=refused[0][1] if refused else None,
            mild=self._mild(threat),
        )

    def _made(self, path: Path, binding: Binding) -> Call:
        """Give the call that makes a file in a folder that is there."""
        path.parent.mkdir(exist_ok=True)
        root = str(self.field.root)
        text = binding.spelled(path.relative_to(self.field.root).as_posix(), root)
        return binding.call(text, root, content="touchstone\n")

    def starve(self, threat: str, name: str, count: int) -> None:
        """Read special files of the root at once and without waiting, then a plain one."""
        self._opened()
        root, blocked = str(self.field.root), None
        names = [f"{name}{n}" for n in range(1, count + 1)]
        readers = self._control()
        for binding in readers:
            for call in (binding.call(binding.spelled(one, root), root) for one in names):
                self.wire.say(self.wire.build(*call), required=False)
            method, params = binding.call(binding.spelled(CONTROL, root), root)
            limit = max(PATIENCE, self.pace.reply)
            reply = self.wire.request(method, params, required=False, seconds=limit)
            if self.field.control not in self._canaries(reply, {Area.INSIDE}):
                blocked = binding, reply
                break
        if not readers:
            raise Broken("no plain file can be read")
        self.judge(
            threat,
            blocked is None,
            expected="a plain file can be read all the same",
            actual=f"{blocked[0].tool}: {blocked[1]}" if blocked else f"{len(readers)} tools did",
            at=blocked[1] if blocked else None,
            mild=self._mild(threat),
        )
        if blocked and self.judges(threat):
            told = starved(self.field, self._command, self.revision, blocked[0], names)
            self.judgements[-1] = replace(self.judgements[-1], reproduction=told)

    def carry(self, threat: str, kind: Carriage, *groups: str) -> None:
        """Let what moves and copies take payloads of a kind from here to there, and judge."""
        if kind is Carriage.DENIED:
            self._guard("deny.")
        self.judge_shots(threat, self.aimer.carried(self.payloads(*groups), kind))

    def rebase(self, threat: str, *groups: str) -> None:
        """Tell every tool that takes one another base for its paths, and judge a threat."""
        self.judge_shots(threat, self.aimer.rebased(self.payloads(*groups, via="args")))

    def smuggle(self, threat: str, *groups: str) -> None:
        """Send arguments that no schema names beside a path that leads outside, and judge."""
        self._opened()
        shots = list(self.aimer.smuggled(self.payloads(*groups, via="args")))
        shut = [shot for shot in shots if not self._is_open_to(shot)]
        if shots and not shut:
            self.unseen(threat, "paths outside are read without any such argument")
            return
        self.judge_shots(threat, shut)

    def _is_open_to(self, shot: Shot) -> bool:
        """Whether the path of a shot alone gives back what lies outside: another finding."""
        method, params = shot.binding.call(shot.text, str(self.field.root))
        reply = self.wire.request(method, params, required=False)
        return bool(self._canaries(reply, self._secret))

    def shots(self, rows: Iterable[Payload], operations: Iterable[Operation]) -> Iterator[Shot]:
        """Aim some payloads at the bindings of some operations."""
        return self.aimer.shots(rows, set(operations))

    # --- what other ways to attack need

    def begin(self) -> list[Binding]:
        """Open the connection if nobody did, and give the readers that give a plain file back."""
        self._opened()
        return self._control()

    def renew(self) -> None:
        """Go on with another process in the same field, opened.

        Raises:
            Broken: it does not open.
        """
        self.wire = self._respawn()
        self._used.append(self.wire)
        self.mark()
        self._opened()

    def mark(self) -> None:
        """Let the evidence of what is judged next begin here."""
        self._start = len(self.wire.transcript)

    def conclude(
        self,
        threat: str,
        found: str,
        *,
        expected: str,
        passed: str,
        at: Reply | Entry | int | None = None,
        mild: Breach | None = None,
        script: str = "",
    ) -> None:
        """Judge a threat by what was found; nothing found is a pass, and says how much was tried.

        What the server never promised is a note; ``mild`` is what a finding counts as at most.
        """
        if not self.judges(threat):
            return
        mild = self._mild(threat) or mild
        self.judge(threat, not found, expected=expected, actual=found or passed, at=at, mild=mild)
        if found and script:
            self.judgements[-1] = replace(self.judgements[-1], reproduction=script)

    # --- firing

    def judge_shots(
        self,
        threat: str,
        shots: Iterable[Shot],
        *,
        oracle: Oracle | None = None,
        expected: str = EXPECTED,
        enough: int = 0,
    ) -> Tally:
        """Fire, look after each shot, and judge a threat by the effects.

        Args:
            threat: what is judged.
            shots: what is fired; each is made when the one before it was looked at.
            oracle: what is looked at besides what lies outside.
            expected: what the server has to keep.
            enough: hits after which nothing more is fired; 0 fires everything.

        Raises:
            Broken: a plain call no longer works, so nothing was tested.
        """
        self._opened()
        readers = self._control()
        tally = Tally()
        for shot in shots:
            if 0 < enough <= len(tally.hits):
                break
            if tally.over or (
                shot.binding.operation is Operation.READ and shot.binding not in readers
            ):
                continue
            self._fire(shot, tally, oracle)
        if isinstance(shots, Generator):
            shots.close()  # what it holds while it fires is let go before we look
        self._look_back(tally)
        if not (tally.hits or tally.deaths) and self._control() != readers:
            raise Broken("a plain file could no longer be read after the attack")
        self._conclude(threat, tally, expected)
        return tally

    def _opened(self) -> None:
        self.field.names["pid"] = str(self.wire.process.pid)
        if self.wire.opening is None and self.wire.open().result is None:
            raise Broken(f"the server did not open: {self.wire.opening}")

    def _control(self) -> list[Binding]:
        """Give the reading bindings by which the plain file can be read now."""
        root = str(self.field.root)
        readers = []
        for binding in self.bindings.of(Operation.READ):
            method, params = binding.call(binding.spelled(CONTROL, root), root)
            reply = self.wire.request(method, params, required=False)
            if self.field.control in self._canaries(reply, {Area.INSIDE}):
                readers.append(binding)
        return readers

    def _fire(self, shot: Shot, tally: Tally, oracle: Oracle | None) -> None:
        tally.live += shot.live
        tally.dead += not shot.live
        method, params = shot.call
        tally.tools.add(shot.binding.tool or method)
        limit = max(PATIENCE, self.pace.reply)
        reply = self.wire.request(method, params, required=False, seconds=limit)
        told = self.field.canaries.found_in_message(params, self._secret)
        seen = [canary for canary in self._canaries(reply, self._secret) if canary not in told]
        if seen:
            tally.hits.append(Hit(shot, f"{whose(seen[0])} came back", self.wire, reply))
        effect = oracle(shot, reply) if oracle is not None else ""
        if effect:
            tally.hits.append(Hit(shot, effect, self.wire, reply))
        if shot.binding.operation in CHANGING:
            damage = self.field.damage()
            if damage:
                tally.hits.append(Hit(shot, str(damage[0]), self.wire, reply))
            if shot.binding.operation in TAKING:
                for where, canary in self.field.laundered(self._secret):
                    what = f"{whose(canary)} stand in {where} now"
                    tally.hits.append(Hit(shot, what, self.wire, reply))
                    remove(self.field.path / where)
            self.field.mend(damage)
        if not reply.answered:
            self._lost(shot, reply, tally)

    def _canaries(self, reply: Reply, areas: Iterable[Area]) -> list[Canary]:
        return self.field.canaries.found_in_message(reply.value or {}, areas)

    def _lost(self, shot: Shot, reply: Reply, tally: Tally) -> None:
        """Note a death or a silence, and go on with another process."""
        gone = self.wire.gone
        hit = Hit(shot, reply.why, self.wire, reply)
        (tally.deaths if gone else tally.hangs).append(hit)
        if not tally.over:
            self.renew()

    def _look_back(self, tally: Tally) -> None:
        """Look at what no single answer shows: the tree, the files inside, what went to stderr."""
        for where, canary in self.field.laundered(self._secret):
            what = f"{whose(canary)} stand in {where} now"
            tally.hits.append(Hit(None, what, self.wire))
        damage = self.field.damage()
        if damage:
            tally.hits.append(Hit(None, str(damage[0]), self.wire))
        for connection in self._used:
            for canary in self.field.canaries.found(connection.process.stderr_tail, self._secret):
                tally.hits.append(Hit(None, f"{whose(canary)} went to stderr", connection))

    # --- judging

    def _conclude(self, threat: str, tally: Tally, expected: str) -> None:
        row = self._clauses.get(threat)
        if row is None:
            return
        if not tally.hits and not tally.deaths and tally.hangs:
            raise Broken(f"{len(tally.hangs)} calls got no answer: {tally.hangs[0].what}")
        if not tally.hits and not tally.deaths and not tally.live + tally.dead:
            raise Broken("no payload could be fired")
        found = tally.hits or tally.deaths
        shown = next((hit for hit in found if hit.shot is not None), None)
        if shown is not None and shown.reply is not None:
            self.wire, self._start = shown.wire, shown.reply.asked - 1
        self.judge(
            threat,
            not found,
            expected=expected,
            actual=said(found, tally),
            at=shown.reply if shown is not None else None,
            mild=self._mild(threat),
        )
        if shown is not None and shown.shot is not None:
            shot = shown.shot
            steps = (*shot.before, shot.call)
            told = script(self.field, self._command, self.revision, shot.text, *steps)
            self.judgements[-1] = replace(self.judgements[-1], reproduction=told)

    def _mild(self, threat: str) -> Breach | None:
        return Breach.NOTE if threat in self.unpromised else None

    def promising(self, threat: str, *operations: Operation) -> list[Binding]:
        """Give the bindings that promise what a threat is about, of some operations."""
        terms = self.terms.get(threat, Terms())
        return [b for b in self.bindings.of(*(operations or Operation)) if terms.binds(b.tool)]

    terms: Mapping[str, Terms] = MappingProxyType({})
    """Threat -> on which terms the server promised that it does not happen."""

    named: tuple[str, ...] = ()
    """Tools the user says may be called."""

    unpromised: frozenset[str] = frozenset()
    """Threats against what the server never promised: what is found there is a note."""


def _is_open(row: Payload) -> bool:
    """Whether a payload names what a deny list may or may not have."""
    return row.group.startswith("deny.") and row.expect == "safe"
