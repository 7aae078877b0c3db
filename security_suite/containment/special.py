"""Pipes, and the folders of processes in /proc.

A read of a pipe that nobody writes to has no end. The server answers it, and other requests
meanwhile.
"""

from collections.abc import Mapping
from typing import Final

from mcp_touchstone.security.suite import (
    CONTROL,
    PATIENCE,
    AttackSession,
    Broken,
    Operation,
    Place,
    Reply,
    attack,
    attack_calls,
    cpu_share,
    hear_late_answers,
    starved,
    waited,
)

BLOCKED: Final = 8.0
"""Seconds after which a server that is silent and wants no core counts as blocked."""

IDLE: Final = 0.05
"""Greatest share of a core that a blocked server wants, for its timers."""


@attack("special-pipes", fixtures=("base", "special"), lasts=True)
def reads_on_beside_blocked_pipes(session: AttackSession) -> None:
    """A read of a pipe ends, and a plain file can be read while eight pipes are being read."""
    starve(session, "special-pipes", "fifo", 8)


@attack("special-procfs", fixtures=("base", "links"), place=Place.REUSED)
def shows_nothing_of_its_process(session: AttackSession) -> None:
    """Neither the environment nor anything outside comes back by way of /proc."""
    rows = [
        row
        for row in session.payloads("file.proc-dev")
        if row.text.startswith("/proc/") and row.live
    ]
    attack_calls(session, "special-procfs", session.targeting.calls(rows, {Operation.READ}))


def starve(session: AttackSession, threat: str, name: str, count: int) -> None:
    """Send reads of pipes without waiting for answers, then read a plain file.

    A read that is not answered then waits for a writer if it returns what we write to its pipe.

    Args:
        name: prefix of the names of the pipes; numbers from 1 follow.

    Raises:
        Broken: no plain file could be read before.
    """
    readers = session.begin()
    if not readers:
        raise Broken("no plain file can be read")
    root, limit = str(session.tree.root), max(PATIENCE, session.pace.reply)
    names = [f"{name}{n}" for n in range(1, count + 1)]
    expected, passed = "a plain file can be read all the same", f"{len(readers)} tools did"
    for binding in readers:
        reads = {}
        for one in names:
            call = binding.call(binding.spelled(one, root), root)
            reads[session.wire.say(session.wire.build(*call), required=False)] = one
        method, params = binding.call(binding.spelled(CONTROL, root), root)
        asked = session.wire.say(session.wire.build(method, params), required=False)
        reply = _answer(session, asked, limit)
        if not session.canaries.returned(reply, session.tree.control):
            found = (
                f"{binding.tool or method}: {reply} while {count} pipes are read; the server makes "
                "blocking reads one after the other, or with a pool that they fill"
            )
            script = starved(session.scene, binding, names)
            session.judge.conclude(threat, found, expected=expected, at=reply, script=script)
            hear_late_answers(session.judge)
            session.tree.release_pipes(names)
            return
        if waiting := _waiting(session, reads, limit):
            found = (
                f"{binding.tool or method}: a read of a named pipe had no answer until we wrote to "
                "the pipe; then what we wrote came back"
            )
            script = waited(session.scene, binding, reads[waiting.asked])
            session.judge.conclude(threat, found, expected="an answer", at=waiting, script=script)
            session.tree.release_pipes(names)
            return
    session.judge.conclude(threat, "", expected=expected, if_passed=passed)


def _waiting(session: AttackSession, reads: Mapping[int, str], limit: float) -> Reply | None:
    """Return the answer to a read that waited for a writer; None if none did.

    Args:
        reads: line of each read -> name of its pipe.
    """
    for asked, name in reads.items():
        if not (session.wire.gone or _answer(session, asked, limit).answered):
            written = session.tree.feed_pipe(name)
            reply = session.wire.answer_to(asked, limit, patient=True)
            return reply if session.canaries.returned(reply, written) else None
    return None


def _answer(session: AttackSession, asked: int, limit: float) -> Reply:
    """Wait for an answer; end the wait early if the server is blocked.

    Only a server that is busy or gets no core is given the whole time.
    """
    first = min(limit, max(BLOCKED, session.pace.reply))
    reply = session.wire.answer_to(asked, first)
    if reply.answered or session.wire.gone:
        return reply
    wanted = cpu_share(session.wire.process.pid, IDLE)
    if wanted is not None and wanted <= IDLE:
        return reply
    return session.wire.answer_to(asked, limit, patient=True)
