"""basic/cancellation: what becomes of a request that we take back."""

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Entry,
    Pending,
    Role,
    scenario,
    traces,
)

CANCELLED = "notifications/cancelled"
LOGGED = "notifications/message"
GRACE = 1.0
"""Seconds in which what was under way may cross with a cancellation."""

OVER = 1.15
"""A call is over when it has had so many times the time it took before."""

ROUNDS = 8
REASON = "nobody waits for it"


@scenario(
    "cancellation-no-response",
    "cancellation-stdio-no-further-messages",
    "cancellation-stop-work",
    apart=True,
    lasts=True,
)
def drops_a_call_that_is_cancelled(talk: Conversation) -> None:
    """A long call that is cancelled comes to nothing: no response, no reports, no more work."""
    clauses = (
        "cancellation-no-response",
        "cancellation-stdio-no-further-messages",
        "cancellation-stop-work",
    )
    talk.need(talk.wire.open(), "an ordinary opening")
    call = talk.here(talk.example("slow-call"))
    before = traces(talk.root)
    pending = talk.start(call, token="touchstone-cancel", level="debug")  # noqa: S106
    talk.wire.wait(lambda: pending.progress() or pending.answers(), call.seconds / 4)
    worked = bool(pending.progress()) or traces(talk.root) != before
    pending.cancel(REASON)
    # A server that answers this has read the cancellation: from then on it is late.
    read = talk.wire.probe(seconds=call.seconds + talk.pace.reply, required=False)
    talk.need_answer(read, "an answer behind a cancellation")
    record = talk.wire.transcript
    begun, grace = record[pending.line].at, record[read.entry or pending.line].at + GRACE
    why = ""
    if pending.answers():
        why = "it answered before it had read the cancellation"
    elif begun + call.seconds < grace + talk.pace.settle:
        why = "it ends too soon to tell a late response from one that crossed"
    if not why:
        _until(talk, grace)
        left = traces(talk.root)
        _until(talk, begun + OVER * call.seconds + talk.pace.settle)
        if any(entry.at <= grace for entry, _ in pending.answers()):
            why = "its response crossed with the cancellation"
    if why:
        for clause in clauses:
            talk.unseen(clause, why)
        return
    late = [entry for entry, _ in pending.answers()]
    reports = [entry for entry in _reports(talk, pending) if entry.at > grace]
    talk.judge(
        clauses[0],
        not late,
        expected="no response to a call that was cancelled",
        actual=f"a response {late[0].at - grace + GRACE:.1f} s later" if late else "",
        at=late[0] if late else None,
    )
    talk.judge(
        clauses[1],
        not reports,
        expected="nothing more of a call that was cancelled",
        actual=f"{len(reports)} more notifications" if reports else "",
        at=reports[0] if reports else None,
        mild=Breach.WARN if late else None,
    )
    if _changes(talk, left, begun + call.seconds - grace):
        talk.judge(
            clauses[2],
            False,
            expected="a call that stops when it is cancelled",
            actual="files of its folder that went on changing until its natural end",
            at=pending.cancelled,
        )
    elif reports and not talk.modern:
        talk.judge(
            clauses[2],
            False,
            expected="a call that stops when it is cancelled",
            actual=f"{len(reports)} more reports of progress",
            at=reports[0],
        )
    elif worked and not reports and not late:
        talk.judge(clauses[2], True, expected="a call that stops when it is cancelled")
    else:
        talk.unseen(clauses[2], "it left no sign of its work")


def _until(talk: Conversation, at: float) -> None:
    talk.window(at - talk.wire.transcript.clock()).wait()


def _reports(talk: Conversation, pending: Pending) -> list[Entry]:
    """Give what is tied to a call: its progress and, without a session, what it logs."""
    logs = [
        entry
        for entry in talk.since(pending.line)
        for message in entry.messages
        if talk.modern and message.role is Role.NOTIFICATION and message.method == LOGGED
    ]
    return sorted([*(entry for entry, _ in pending.progress()), *logs], key=lambda e: e.n)


def _changes(talk: Conversation, left: dict[str, tuple[int, int]], seconds: float) -> bool:
    """Whether the folder changed since, and does so no more: what still changes is not the call."""
    now = traces(talk.root)
    if now == left:
        return False
    talk.window(seconds).wait()
    return traces(talk.root) == now


@scenario("cancellation-invalid-ignored", hurts=True)
def ignores_cancellations_of_nothing(talk: Conversation) -> None:
    """A cancellation of an unknown or an answered request, or a malformed one, does nothing."""
    done = talk.probe()
    talk.need_answer(done, "an ordinary request")
    over = talk.wire.transcript[done.asked].value["id"]
    talk.probe()
    talk.notify(CANCELLED, {"requestId": "touchstone-never-sent", "reason": REASON})
    talk.notify(CANCELLED, {"requestId": over, "reason": REASON})
    if not _judge_alive(talk, "cancellation-invalid-ignored", "an unknown and an answered request"):
        return
    broken = {"jsonrpc": "2.0", "method": CANCELLED}
    for malformed in ({**broken, "params": {"requestId": {"id": 1}}}, broken):
        talk.wire.say(malformed, malformed=True)
    _judge_alive(talk, "cancellation-invalid-ignored", "malformed cancellations")


@scenario("cancellation-race-tolerated", hurts=True)
def copes_with_cancellations_that_cross(talk: Conversation) -> None:
    """Requests that are cancelled in the same breath leave the server as it was."""
    methods = (talk.wire.everyday, *talk.spoken.listing[:1])
    # Each behind its request, and behind several: a server whose answers wait for one another is
    # met while it writes, however fast it reads.
    for together in (1, len(methods) * ROUNDS):
        asked = [talk.wire.build(method) for method in methods * ROUNDS]
        for some in (asked[n : n + together] for n in range(0, len(asked), together)):
            cancelled = [
                {
                    "jsonrpc": "2.0",
                    "method": CANCELLED,
                    "params": {"requestId": one["id"], "reason": REASON},
                }
                for one in some
            ]
            talk.wire.say_together(*some, *cancelled)
    _judge_alive(talk, "cancellation-race-tolerated", "requests cancelled at once")


def _judge_alive(talk: Conversation, clause: str, after: str) -> bool:
    reply = talk.probe(required=False)
    return talk.judge(
        clause,
        reply.answered,
        expected=f"an answer to an ordinary request behind {after}",
        actual=reply,
        at=reply,
    )
