"""What an attack holds: a field, the bindings, payloads to fire, and oracles that look at effects.

Refusals count for nothing and accusations rest on nothing but bytes: a canary that came back, a
tree that changed, a file inside that holds bytes from outside, a process that died. Each reading
binding has to give back a plain file before and after, or nothing was tested.
"""

import json
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
    Operation,
)
from mcp_touchstone.attack.canary import Area, Canary
from mcp_touchstone.attack.field import CONTROL, Field, remove
from mcp_touchstone.attack.payload import Payload
from mcp_touchstone.attack.reach import Carriage
from mcp_touchstone.attack.reproduction import script
from mcp_touchstone.attack.rerun import Scene
from mcp_touchstone.attack.tally import Hit, Purse, Tally, said, whose
from mcp_touchstone.clause import Breach
from mcp_touchstone.conversation import Conversation
from mcp_touchstone.process import now
from mcp_touchstone.reply import Reply
from mcp_touchstone.talk import Broken
from mcp_touchstone.target import Target
from mcp_touchstone.terms import Terms
from mcp_touchstone.threat import Threat
from mcp_touchstone.transcript import Entry

if TYPE_CHECKING:
    from mcp_touchstone.connection import Connection

PATIENCE: Final = 20.0
"""Seconds a call may take: a loaded machine or a path of many thousand parts is no finding."""

SECRET: Final = frozenset({Area.OUTSIDE, Area.ENVIRONMENT})

Oracle = Callable[[Shot, Reply], str]
"""Says in words which effect a shot had that it must not have; nothing where it had none."""

NAMELESS: Final = "what the server says it denies has no such names"

EXPECTED: Final = "nothing from outside comes back, nothing there changes, the server lives on"

DENIED: Final = "nothing denied or outside comes back, nothing there changes, the server lives on"

LISTLESS: Final = "the server promised no deny list and has none: see deny-direct"

UNTRIED: Final = "what was not tried has neither passed nor failed"

EVERY: Final = "every payload is answered in the time there is"


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
        target: Target,
        **more: Any,
    ) -> None:
        """Take what a conversation takes, and what is fired from where.

        Args:
            words: what a conversation takes.
            field: the trees.
            library: folder of the payloads.
            target: the server as it is started, for reproductions.
            more: what a conversation takes.
        """
        super().__init__(*words, **more)
        self.field = field
        self._library = payloads.load(library)
        self._target = target
        self._secret = SECRET
        self._respawn: Callable[[], Connection] = more["spawn"]

    @property
    def scene(self) -> Scene:
        """What a script of a finding has to build up again."""
        return Scene(self.field, self._target, self.revision, Area.DENIED in self._secret)

    @property
    def is_apart(self) -> bool:
        """Whether the server was started where there is no network."""
        return bool(self._target.apart)

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

    def deeds(self, does: str, *groups: str) -> Iterator[tuple[Payload, dict[str, Any]]]:
        """Give payloads that are no text to send but say, as JSON, what to do.

        Args:
            does: what, in words with blanks between; others are left out.
            groups: classes of payloads.
        """
        for row in self.payloads(*groups, via="session"):
            given = json.loads(row.text)
            if given["do"] in does.split():
                yield row, given

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
        if not any(True for _ in self.field.each(stands)):
            self.unseen(threat, NAMELESS)
            return
        self.judge_shots(threat, self.aimer.shots(stands, set(operations)))

    def _guard(self, *groups: str) -> None:
        """Say what must not come back: what lies outside, or what a deny list names."""
        if any(group.startswith("deny.") for group in groups):
            self._secret = frozenset({*SECRET, Area.DENIED})

    def deny(self) -> None:
        """Let what a deny list names be what must not come back, too."""
        self._guard("deny.")

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
        return self.leaks(reply)

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

    def gave(self, reply: Reply, canary: Canary) -> bool:
        """Whether an answer holds what was planted somewhere."""
        return canary in self._canaries(reply, {canary.area})

    def leaks(self, reply: Reply) -> bool:
        """Whether an answer holds what must not come back."""
        return bool(self._canaries(reply, self._secret))

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
            mild=self._mild(threat) or mild,
            because=self._because(threat) or because,
        )
        if found and script:
            self.judgements[-1] = replace(self.judgements[-1], reproduction=script)

    # --- firing

    def judge_shots(
        self,
        threat: str,
        shots: Iterable[Shot],
        *,
        oracle: Oracle | None = None,
        expected: str = "",
        enough: int = 0,
        still: bool = False,
        purse: Purse | None = None,
        aside: Callable[[], str] = str,
    ) -> Tally:
        """Fire, look after each shot, and judge a threat by the effects.

        Args:
            threat: what is judged.
            shots: what is fired; each is made when the one before it was looked at.
            oracle: what is looked at besides what lies outside.
            expected: what the server has to keep; by default what is outside, or denied.
            enough: hits after which nothing more is fired; 0 fires everything.
            still: whether nothing in the root may change: reproductions look at that too.
            purse: what the calls of one tool may cost; none sets no limit.
            aside: says at the end what was left to other threats, or nothing.

        Raises:
            Broken: a plain call no longer works, so nothing was tested.
        """
        self._opened()
        readers = self._control()
        tally, purse = Tally(), purse or Purse()
        if self._is_listless(threat, readers):
            self.unseen(threat, LISTLESS)
            return tally
        for shot in shots:
            if 0 < enough <= len(tally.hits):
                break
            if tally.over or (
                shot.binding.operation is Operation.READ and shot.binding not in readers
            ):
                continue
            self._fire(shot, tally, oracle, purse)
        if isinstance(shots, Generator):
            shots.close()  # what it holds while it fires is let go before we look
        self._look_back(tally)
        if not (tally.hits or tally.deaths or tally.over) and self._control() != readers:
            raise Broken("a plain file could no longer be read after the attack")
        passed = f"{tally}{aside()}"
        expected = expected or (DENIED if Area.DENIED in self._secret else EXPECTED)
        self._conclude(threat, tally, expected, passed, still=still, purse=purse)
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

    def _fire(self, shot: Shot, tally: Tally, oracle: Oracle | None, purse: Purse) -> None:
        tool, begun = shot.binding.tool, now()
        if not purse.pays(tool):
            purse.left[tool] += 1
            return
        self.fired.add(shot.payload.id)
        before = len(tally.hits)
        tally.live += shot.live
        tally.dead += not shot.live
        method, params = shot.call
        tally.tools.add(shot.binding.tool or method)
        limit = max(PATIENCE, self.pace.reply)
        limit = min(limit, purse.each)
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
            self.field.mend(damage if len(tally.hits) == before else None)
        if purse.ends and not (reply.answered or self.wire.gone):
            purse.left[tool] += 1
            purse.spent[tool] = purse.each
            self.renew()
        elif not reply.answered:
            self._lost(shot, reply, tally)
        purse.spent[tool] += now() - begun

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

    def _conclude(
        self,
        threat: str,
        tally: Tally,
        expected: str,
        passed: str,
        *,
        still: bool,
        purse: Purse,
    ) -> None:
        row = self._clauses.get(threat)
        if row is None:
            return
        if not tally.hits and not tally.deaths and tally.over:
            raise Broken(f"{len(tally.hangs)} calls got no answer: {tally.hangs[0].what}")
        if not tally.hits and not tally.deaths and not tally.live + tally.dead:
            raise Broken("no payload could be fired")
        found = tally.hits or tally.deaths
        shown = next((hit for hit in found if hit.shot is not None), None)
        if shown is not None and shown.reply is not None:
            self.wire, self._start = shown.wire, shown.reply.asked - 1
        for hang in tally.hangs:
            purse.left[hang.tool] += 1
        left = "" if found else str(purse)
        self.judge(
            threat,
            not (found or left),  # what was not tried in full has not passed
            expected=EVERY if left else expected,
            actual=f"left out, as it took too long: {left}; no effect of {passed}"
            if left
            else (said(found, tally) if found else passed),
            at=shown.reply if shown is not None else None,
            mild=Breach.NOTE if left else self._mild(threat),
            because=UNTRIED if left else self._because(threat),
        )
        self.judgements[-1] = replace(self.judgements[-1], left=left)
        if shown is not None and shown.shot is not None:
            shot = shown.shot
            steps = (*shot.before, shot.call)
            died = shown in tally.deaths
            told = script(self.scene, shot.text, *steps, still=still, died=died)
            self.judgements[-1] = replace(self.judgements[-1], reproduction=told)

    def _is_listless(self, threat: str, readers: list[Binding]) -> bool:
        """Whether all that deny lists have is read by its plain name, and no list was promised.

        What cannot go unseen says so itself; by which other ways one comes there, says no more.
        """
        row = self._clauses.get(threat)
        denied = [one for one in self.field.canaries.planted if one.area is Area.DENIED]
        files = [one for one in denied if not one.is_name]
        if not (files and row and row.conditional and threat in self.unpromised):
            return False
        return Area.DENIED in self._secret and all(self._is_read(one, readers) for one in files)

    def _is_read(self, canary: Canary, readers: list[Binding]) -> bool:
        """Whether a planted file comes back by its own path."""
        root, path = str(self.field.root), self.field.path / canary.where
        for binding in readers:
            name = path.relative_to(self.field.root).as_posix()
            reply = self.wire.request(
                *binding.call(binding.spelled(name, root), root), required=False
            )
            if self.gave(reply, canary):
                return True
        return False

    def _mild(self, threat: str) -> Breach | None:
        return Breach.NOTE if threat in self.unpromised else None

    def _because(self, threat: str) -> str:
        row = self._clauses.get(threat)
        if threat not in self.unpromised or not isinstance(row, Threat):
            return ""
        return f"the server promised no {row.promise}; --promise {row.promise} makes it count"

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
