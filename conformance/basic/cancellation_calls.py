"""basic/cancellation: requests that the client cancels."""

from dataclasses import dataclass, replace

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Entry,
    Example,
    Pending,
    Place,
    Role,
    Window,
    arguments,
    scenario,
    traces,
)

CANCELLED = "notifications/cancelled"
LOGGED = "notifications/message"
GRACE = 1.0
"""Seconds in which a message may cross with a cancellation."""

OVER = 1.15
"""A call is over after this many times its earlier duration."""

ROUNDS = 8
REASON = "no longer needed"


TIMES = (1, 2, 4)
"""Durations of the cancelled calls, as multiples of the duration of the example.

The first call that can be judged is the last one: a busy machine may read a cancellation too late.
A tool whose duration cannot be chosen is called again with the same arguments.
"""

SHORT = "the call is too short to tell a late response from one that crossed"
ANSWERED = "the call was answered before the server had read the cancellation"

NO_RESPONSE = "cancellation-no-response"
NO_MESSAGES = "cancellation-stdio-no-further-messages"
NO_WORK = "cancellation-stop-work"


@dataclass(frozen=True, slots=True)
class Aftermath:
    """The traffic of a cancelled call, recorded until after its natural end.

    Attributes:
        grace: the time after which a message of the call is late.
        worked: whether the call showed progress or changed files before that time.
        kept_changing: whether files kept changing until the natural end of the call.
        undecided: why the cancellation cannot be judged; empty if it can.
    """

    pending: Pending
    grace: float
    worked: bool = False
    kept_changing: bool = False
    undecided: str = ""


@scenario(NO_RESPONSE, NO_MESSAGES, NO_WORK, place=Place.OWN_FOLDER, lasts=True)
def stops_a_cancelled_call(talk: Conversation) -> None:
    """A long call that is cancelled sends no response and no notifications, and stops its work."""
    talk.need(talk.wire.open(), "an ordinary opening")
    if talk.server.over_http and not talk.modern and talk.http.session_id is None:
        talk.judge.unseen(
            (NO_RESPONSE, NO_MESSAGES, NO_WORK),
            "without a session a cancellation belongs to no request",
        )
        return
    call = talk.examples.here(talk.examples.best("slow-call"))
    for number, times in enumerate(TIMES, 1):
        longer = _prolonged(call, times)
        seen = _cancel_while_it_runs(talk, longer, f"touchstone-cancel-{number}")
        reporting = any(known.name == call.name for known in talk.examples("progress-call"))
        idle = reporting and not seen.undecided and not seen.pending.progress()
        if seen.undecided not in {SHORT, ANSWERED} and not idle:
            break
        if number < len(TIMES):
            _until(talk, talk.wire.transcript[seen.pending.line].at + _over(talk, longer))
    if seen.undecided:
        talk.judge.unseen((NO_RESPONSE, NO_MESSAGES, NO_WORK), seen.undecided)
        return
    late = [entry for entry, _ in seen.pending.answers()]
    reports = [entry for entry in _reports(talk, seen.pending) if entry.at > seen.grace]
    talk.judge(
        NO_RESPONSE,
        not late,
        expected="no response to a cancelled call",
        actual="a response after the cancellation" if late else "",
        at=late[0] if late else None,
    )
    talk.judge(
        NO_MESSAGES,
        not reports,
        expected="no further messages of a cancelled call",
        actual="more notifications" if reports else "",
        at=reports[0] if reports else None,
        mild=Breach.WARN if late else None,
    )
    _judge_work(talk, seen, late, reports)


def _judge_work(
    talk: Conversation, seen: Aftermath, late: list[Entry], reports: list[Entry]
) -> None:
    # In a stateless revision the reports include log messages, perhaps of other requests.
    reporting = bool(reports) and not talk.modern
    if not (seen.kept_changing or reporting) and (late or reports or not seen.worked):
        talk.judge.unseen(NO_WORK, "the call left no sign of its work")
        return
    actual = "more reports of progress"
    if seen.kept_changing:
        actual = "files in its folder went on changing until its natural end"
    talk.judge(
        NO_WORK,
        not seen.kept_changing and not reporting,
        expected="a call that stops its work when it is cancelled",
        actual=actual,
        at=reports[0] if reporting and not seen.kept_changing else seen.pending.cancelled,
    )


def _cancel_while_it_runs(talk: Conversation, call: Example, token: str) -> Aftermath:
    """Start a call, cancel it in the middle, and wait until it would have ended."""
    before = traces(talk.root)
    pending = Pending(talk.wire, call, token=token, level="debug")
    talk.wire.wait(lambda: pending.progress() or pending.answers(), call.seconds / 4)
    worked = traces(talk.root) != before
    pending.cancel(REASON)
    # A server that answers this probe has read the cancellation.
    read = talk.wire.ping(seconds=call.seconds + talk.pace.reply, required=False)
    talk.need_answer(read, "an answer after a cancellation")
    record = talk.wire.transcript
    begun, grace = record[pending.line].at, record[read.entry or pending.line].at + GRACE
    if pending.answers():
        return Aftermath(pending, grace, undecided=ANSWERED)
    if begun + call.seconds < grace + talk.pace.settle:
        return Aftermath(pending, grace, undecided=SHORT)
    _until(talk, grace)
    left = traces(talk.root)
    if any(entry.at <= grace for entry, _ in pending.answers()):
        why = "the response crossed with the cancellation"
        return Aftermath(pending, grace, undecided=why)

    _until(talk, begun + _over(talk, call))
    talk.wire.ping(required=False)  # A busy server writes its late messages before this answer.
    changing = _changed(talk, left, begun + call.seconds - grace)
    worked |= any(entry.at <= grace for entry, _ in pending.progress())
    return Aftermath(pending, grace, worked=worked, kept_changing=changing)


def _prolonged(call: Example, times: int) -> Example:
    """Return a call that lasts some times as long, if the tool has a duration."""
    longer = arguments.prolonged(call.schema, call.arguments, times)
    if longer is None:
        return call
    params = {**call.params, "arguments": longer}
    return replace(call, params=params, seconds=call.seconds * times)


def _over(talk: Conversation, call: Example) -> float:
    """Return the seconds from the start of a call until it is certainly over."""
    return OVER * call.seconds + talk.pace.settle


def _until(talk: Conversation, at: float) -> None:
    Window(talk.wire, at - talk.wire.transcript.clock()).wait()


def _reports(talk: Conversation, pending: Pending) -> list[Entry]:
    """Return the notifications of a call: its progress and, without a session, log messages."""
    logs = [
        entry
        for entry in talk.since(pending.line)
        for message in entry.messages
        if talk.modern and message.role is Role.NOTIFICATION and message.method == LOGGED
    ]
    found = sorted([*(entry for entry, _ in pending.progress()), *logs], key=lambda e: e.n)
    earlier: dict[tuple[str, bytes], int] = {}
    for entry in talk.wire.transcript:
        if (event := _event(entry)) is not None:
            earlier.setdefault((event, entry.raw), entry.n)
    return [one for one in found if earlier.get((_event(one) or "", one.raw), one.n) == one.n]


def _event(entry: Entry) -> str | None:
    """Return the id of the event that brought a message; an event may be delivered again."""
    event = entry.origin.event if entry.origin is not None else None
    return None if event is None else event.id


def _changed(talk: Conversation, left: dict[str, tuple[int, int]], seconds: float) -> bool:
    """Whether the folder differs from ``left`` and is stable now.

    If it still changes, the cause is not the call.
    """
    now = traces(talk.root)
    if now == left:
        return False
    Window(talk.wire, seconds).wait()
    return traces(talk.root) == now


@scenario("cancellation-invalid-ignored", hurts=True)
def ignores_invalid_cancellations(talk: Conversation) -> None:
    """Cancellations of unknown or answered requests, and malformed ones, have no effect."""
    done = talk.wire.ping()
    talk.need_answer(done, "an ordinary request")
    over = talk.wire.transcript[done.asked].value["id"]
    talk.wire.ping()
    talk.wire.notify(CANCELLED, {"requestId": "touchstone-never-sent", "reason": REASON})
    talk.wire.notify(CANCELLED, {"requestId": over, "reason": REASON})
    if not _judge_alive(talk, "cancellation-invalid-ignored", "an unknown and an answered request"):
        return
    broken = {"jsonrpc": "2.0", "method": CANCELLED}
    for malformed in ({**broken, "params": {"requestId": {"id": 1}}}, broken):
        talk.wire.say(malformed, malformed=True)
    _judge_alive(talk, "cancellation-invalid-ignored", "malformed cancellations")


@scenario("cancellation-race-tolerated", hurts=True, races=True)
def tolerates_immediate_cancellations(talk: Conversation) -> None:
    """A server still works after requests that are cancelled immediately."""
    methods = (talk.wire.ping_method, *talk.spoken.list_methods[:1])
    # One cancellation after each request, then many after many. The second form also reaches a
    # server that reads fast and writes its answers one after the other.
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
    reply = talk.wire.ping(required=False)
    return talk.judge.expect_answer(
        reply, clause, f"an answer to an ordinary request after {after}"
    )
