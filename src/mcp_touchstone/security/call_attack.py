"""Attack the tools: send payloads in calls, check for effects after each call, and judge."""

import math
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, field, replace
from typing import Final

from mcp_touchstone.bindings.binding import CHANGING, TAKING, Binding, Operation
from mcp_touchstone.bindings.canary import Area, Canary
from mcp_touchstone.catalog.clause import Breach
from mcp_touchstone.catalog.threat import Severity
from mcp_touchstone.judging.used_server import Broken
from mcp_touchstone.security.attack_session import PATIENCE, AttackSession
from mcp_touchstone.security.payload import Payload
from mcp_touchstone.security.reachability import Carriage
from mcp_touchstone.security.repro_calls import script
from mcp_touchstone.security.tally import Hit, Tally, TimeBudget, by_tool, said, whose
from mcp_touchstone.security.targeting import AttackCall
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.reply import Reply

Oracle = Callable[[AttackCall, Reply], str]
"""Returns the forbidden effect of a call in words; empty if it had none."""

NAMELESS: Final = "no file on the deny list of the server has such a name"

EXPECTED: Final = "no data outside the root is read or changed, and the server keeps running"

DENIED: Final = (
    "no denied data and no data outside the root is read or changed, and the server keeps running"
)

LISTLESS: Final = "the server promised no deny list and has none: see deny-direct"

UNTRIED: Final = "payloads that were left out have neither passed nor failed"

NAMES_ONLY: Final = Severity.MEDIUM
"""Severity of an attack that disclosed names of files, but read and changed none."""

EVERY: Final = "every payload is answered within the time limit"


def attack_paths(
    session: AttackSession, threat: str, *groups: str, operations: Iterable[Operation] = Operation
) -> None:
    """Send the payloads of some classes to every tool that takes a path, and judge a threat."""
    if any(group.startswith("deny.") for group in groups):
        session.canaries.protect_denied()
    closed = [row for row in session.payloads(*groups) if not _is_open(row)]
    if not any(True for _ in session.tree.each(closed)):
        session.judge.unseen(threat, NAMELESS)
        return
    attack_calls(session, threat, session.targeting.calls(closed, set(operations)))


def attack_carrying(session: AttackSession, threat: str, kind: Carriage, *groups: str) -> None:
    """Send the moves and copies of a kind, and judge a threat."""
    if kind is Carriage.DENIED:
        session.canaries.protect_denied()
    attack_calls(session, threat, session.targeting.carried(session.payloads(*groups), kind))


ENDED: Final = "as calls ended the process: further ones"
TOO_LONG: Final = ", as it took too long: "

PLAIN: Final = "the same call with letters and digits only, so no character is to blame"

ALIVE: Final = "the process answers the next call"


def attack_calls(
    session: AttackSession,
    threat: str,
    calls: Iterable[AttackCall],
    *,
    oracle: Oracle | None = None,
    expected: str = "",
    enough: int = 0,
    still: bool = False,
    budget: TimeBudget | None = None,
    aside: Callable[[], str] = str,
    ends: str = "",
) -> Tally:
    """Make calls, check for effects after each, and judge a threat by the effects.

    Args:
        calls: the calls; each is requested after the effects of the one before are checked.
        oracle: a further check, besides leaked bytes and changes outside the root.
        expected: the expected behaviour, in words; by default that outside, and denied files if
            protected, stay private and unchanged.
        enough: number of hits after which no more calls are made; 0 for no limit.
        still: whether nothing in the root may change; the reproduction then checks that too.
        budget: time limit of the calls of each tool; by default none.
        aside: called at the end; returns a text that is added to the tally, or an empty one.
        ends: the threat that counts calls after which the process had ended; by default they count
            as ``threat``.

    Returns:
        Counts and effects of the calls.

    Raises:
        Broken: no payload could be sent, calls got no answer, or a plain file can no longer be
            read.
    """
    run = _CallAttack(session, oracle, budget or TimeBudget())
    readers = session.begin()
    if run.is_listless(threat, readers):
        for unjudged in filter(None, (threat, ends)):
            session.judge.unseen(unjudged, LISTLESS)
        return run.tally
    run.fire_all(calls, readers, enough)
    usual = DENIED if Area.DENIED in session.canaries.protected else EXPECTED
    passed, deaths = f"{run.tally}{aside()}", run.tally.deaths
    whole = run.tally.live + run.tally.dead and not (
        run.tally.over or run.tally.hangs or str(run.budget)
    )
    if ends and deaths:
        passed += f"; {len(deaths)} ended the process, which {ends} counts"
        run.compare_death()
    if ends and (deaths or whole):
        run.conclude(ends, deaths, ALIVE, passed, still=still)
    elif ends:
        session.judge.unseen(
            ends, "not every call was made and answered, and none ended the process"
        )
    found = run.tally.hits or ([] if ends else deaths)
    run.conclude(threat, found, expected or usual, passed, still=still)
    return run.tally


@dataclass
class _CallAttack:
    """The calls of one threat, and their effects."""

    session: AttackSession
    oracle: Oracle | None
    budget: TimeBudget
    tally: Tally = field(default_factory=Tally)

    def fire_all(self, calls: Iterable[AttackCall], readers: list[Binding], enough: int) -> None:
        """Make the calls, and check for effects."""
        session, tally = self.session, self.tally
        try:
            for call in calls:
                if 0 < enough <= len(tally.hits):
                    break
                reads = call.binding.operation is Operation.READ
                if not tally.over and not (reads and call.binding not in readers):
                    self._fire(call)
            if isinstance(calls, Generator):
                calls.close()  # its resources are released before the final check
            self._look_back()
        except OSError:  # the server removed or replaced a file of ours
            if not tally.hits:
                raise
        if not (tally.hits or tally.deaths or tally.over) and session.begin() != readers:
            raise Broken("a plain file could no longer be read after the attack")

    def _fire(self, shot: AttackCall) -> None:
        session, tally, budget = self.session, self.tally, self.budget
        tool, begun = shot.binding.tool, now()
        if not budget.pays(tool):
            budget.left[tool] += 1
            return
        session.payloads.fire(shot.payload.id)
        before = len(tally.hits)
        tally.live += shot.live
        tally.dead += not shot.live
        method, params = shot.call
        tally.tools.add(shot.binding.tool or method)
        limit = min(max(PATIENCE, session.pace.reply), budget.each)
        reply = session.wire.request(method, params, required=False, seconds=limit)
        sent = session.tree.canaries.found_in_message(params, session.canaries.protected)
        seen = [
            canary
            for canary in session.canaries.found(reply, session.canaries.protected)
            if canary not in sent
        ]
        if seen:
            first = next((canary for canary in seen if not canary.is_name), seen[0])
            what = f"{whose(first)} came back"
            tally.hits.append(Hit(shot, what, session.wire, reply, names_only=first.is_name))
        effect = self.oracle(shot, reply) if self.oracle is not None else ""
        if effect:
            tally.hits.append(Hit(shot, effect, session.wire, reply))
        if shot.binding.operation in CHANGING:
            damage = session.tree.damage(by_times=True)  # _look_back reads the files
            if damage:
                tally.hits.append(Hit(shot, str(damage[0]), session.wire, reply))
            if shot.binding.operation in TAKING:
                for where, canary in session.tree.laundered(session.canaries.protected):
                    what = f"{whose(canary)} are in {where} now"
                    tally.hits.append(Hit(shot, what, session.wire, reply))
                    (session.tree.path / where).remove()
            session.tree.restore(damage if len(tally.hits) == before else None)
        if math.isfinite(budget.each) and not (reply.answered or session.wire.gone):
            budget.left[tool] += 1
            budget.spent[tool] = budget.each
            session.renew()
        elif not reply.answered:
            self._lost(shot, reply)
        budget.spent[tool] += now() - begun

    def _lost(self, shot: AttackCall, reply: Reply) -> None:
        """Record a death or a missing answer, and continue with another process."""
        tally, wire = self.tally, self.session.wire
        (tally.deaths if wire.gone else tally.hangs).append(Hit(shot, reply.why, wire, reply))
        if not tally.over:
            self.session.renew()

    def compare_death(self) -> None:
        """Say of the first call that ended the process whether a plain text ends it, too."""
        session, first = self.session, self.tally.deaths[0]
        if first.shot is None or first.shot.plain is None:
            return
        session.renew()
        session.wire.request(*first.shot.plain, required=False)
        if session.wire.gone:
            self.tally.deaths[0] = replace(first, what=f"{first.what}, as after {PLAIN}")
            session.renew()

    def _look_back(self) -> None:
        """Check the effects that no answer shows: in the trees, in files of the root, on stderr."""
        session, tally = self.session, self.tally
        for where, canary in session.tree.laundered(session.canaries.protected):
            what = f"{whose(canary)} are in {where} now"
            tally.hits.append(Hit(None, what, session.wire))
        damage = session.tree.damage()
        if damage:
            tally.hits.append(Hit(None, str(damage[0]), session.wire))
        for connection in session.server.connections:
            for canary in session.tree.canaries.found(
                connection.process.pipes.stderr_tail, session.canaries.protected
            ):
                tally.hits.append(Hit(None, f"{whose(canary)} went to stderr", connection))

    def conclude(
        self, threat: str, found: list[Hit], expected: str, passed: str, *, still: bool
    ) -> None:
        """Judge a threat by the effects that count as it; see ``attack_calls``."""
        session, tally, budget = self.session, self.tally, self.budget
        if not session.judge.covers(threat):
            return
        if not found and tally.over and tally.hangs:
            raise Broken(f"{len(tally.hangs)} calls got no answer: {tally.hangs[0].what}")
        if not found and not tally.live + tally.dead:
            raise Broken("no payload could be fired")
        shown = next((hit for hit in found if hit.shot is not None), None)
        if shown is not None and shown.reply is not None:
            session.server.go_back(shown.wire, shown.reply.asked - 1)
        for hang in tally.hangs:
            budget.left[hang.tool] += 1
        left = "" if found else str(budget) or (ENDED if tally.over else "")
        session.judge(
            threat,
            not (found or left),  # an attack with payloads left out has not passed
            expected=EVERY if left else expected,
            actual=f"left out{TOO_LONG if left != ENDED else ', '}{left}; no effect of {passed}"
            if left
            else (said(found, tally) if found else passed),
            at=shown.reply if shown is not None else None,
            mild=Breach.NOTE if left else session.judge.mild(threat),
            because=UNTRIED if left else session.judge.because(threat),
        )
        session.judge.amend(
            left=left,
            tools=by_tool(found) if not left else (),
            severity=NAMES_ONLY if found and all(hit.names_only for hit in found) else None,
        )
        if found:
            session.judge.add_evidence(f"observed: {said(found, tally)}")
        if shown is not None and shown.shot is not None:
            shot = shown.shot
            steps = (*shot.before, shot.call, *shot.after)
            died = shown in tally.deaths
            reproduction = script(session.scene, shot.text, *steps, still=still, died=died)
            session.judge.amend(reproduction=reproduction)

    def is_listless(self, threat: str, readers: list[Binding]) -> bool:
        """Return whether all denied files can be read by plain name, and no deny list was promised.

        Attacks on the same files then prove nothing more. A threat that is not conditional is
        judged nevertheless.
        """
        session = self.session
        files = [
            c for c in session.tree.canaries.planted if c.area is Area.DENIED and not c.is_name
        ]
        return (
            bool(files)
            and session.judge.may_go_unseen(threat)
            and threat in session.claims.unpromised
            and Area.DENIED in session.canaries.protected
            and all(self._is_read(one, readers) for one in files)
        )

    def _is_read(self, canary: Canary, readers: list[Binding]) -> bool:
        """Return whether a planted file can be read by its own path."""
        session = self.session
        root, path = str(session.tree.root), session.tree.path / canary.where
        name = path.relative_to(session.tree.root).as_posix()
        for binding in readers:
            call = binding.call(binding.spelled(name, root), root)
            if session.canaries.returned(session.wire.request(*call, required=False), canary):
                return True
        return False


def _is_open(row: Payload) -> bool:
    """Return whether a payload names a path that a deny list may contain but need not."""
    return row.group.startswith("deny.") and row.expect == "safe"
