"""Other callers: what they get although it is not theirs is the effect."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from mcp_touchstone.security.suite import (
    CONTROL,
    SESSION,
    AttackSession,
    Change,
    Example,
    HttpAnswer,
    HttpCaller,
    Spoken,
    Task,
    attack,
    is_modern,
    served,
)

IDS: Final = 5
"""Session ids that are looked at before the next one is computed."""

LEAST: Final = 3
"""Least number of ids from which the next one is computed."""

CALLS: Final = 4
"""Arguments of tools that are tried: whether the answer repeats them."""

ROUNDS: Final = 10
"""Pairs of requests of two callers with the same id."""

PAUSE: Final = 0.05
"""Seconds before the ends of every second pair: a server with one object for all its callers has
then connected it to both."""

WAIT: Final = 2.0
"""Seconds for the answers to a pair; some servers answer one of two only."""

STREAMS: Final = 4

NO_IDS: Final = "the server gives out no session id"
NO_EVENTS: Final = "no stream had event ids"
UNNEEDED: Final = "a request without a session id is served too"


@attack(
    "callers-guessed",
    "callers-made-up",
    "callers-crossed",
    "callers-replayed",
    fixtures=("base",),
    unwatched=True,
)
def keeps_sessions_apart(session: AttackSession) -> None:
    """Ids of sessions cannot be guessed or made up, and sessions get only their own messages."""
    session.open()
    caller = HttpCaller(session)
    twins = list(_twins(session, caller))  # a second client may be the end of the first
    second = None if session.modern else caller.begin()
    if second is not None and second.refused and not served(second):
        why = f"the server serves one client only: HTTP {second.status} to a second one"
        session.judge.unseen(
            ("callers-guessed", "callers-made-up", "callers-crossed", "callers-replayed"), why
        )
        return
    other = None if second is None else second.header(SESSION)
    if other is not None:
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        session.http.post(ready, {SESSION: other})
    _cross(session, caller, other, twins)
    caller.leave(other)
    if session.http.session_id is None:
        session.judge.unseen(("callers-guessed", "callers-made-up", "callers-replayed"), NO_IDS)
        return
    _guess(session, caller)
    _make_up(session, caller)
    other = caller.another()
    if other is None:
        session.judge.unseen("callers-replayed", "the server opens one session only")
        return
    _replay(session, caller, other)
    caller.leave(other)


def _guess(session: AttackSession, caller: HttpCaller) -> None:
    threat = "callers-guessed"
    session.server.mark()
    own = session.http.session_id
    ids = [known for _ in range(IDS) if (known := caller.another()) is not None]
    guesses = following(ids)
    answer = caller.begin()
    last = answer.header(SESSION)
    found = ""
    at: int | None = answer.reply.entry
    if last is not None and last in guesses:
        found = f"the next session id was computed from the {len(ids)} before it: {last}"
    elif len({own, *ids, last}) < len(ids) + 1:
        found = "the same session id was given out twice"
    for known in (*ids, last):
        caller.leave(known)
    if not found and session.scene.target.started and session.judge.covers(threat):
        session.renew()
        if session.http.session_id == own:
            found = f"a new process gave out the same first session id: {own}"
            at = session.server.opening.entry
    session.judge.conclude(
        threat,
        found,
        expected="session ids that nobody can compute",
        if_passed=f"{len(ids) + 1} session ids were not computed",
        at=at or None,
    )


def following(ids: Sequence[str]) -> set[str]:
    """Return the ids that could come next, if a number in the ids grows by the same step."""
    found = set()
    for base, digits, form in ((10, "[0-9]+", "d"), (16, "[0-9a-f]+", "x")):
        splits = [re.split(f"({digits})", one) for one in ids]
        if len(ids) < LEAST or len({len(parts) for parts in splits}) != 1:
            continue
        for place in range(1, len(splits[0]), 2):
            rest = {(*parts[:place], *parts[place + 1 :]) for parts in splits}
            numbers = [int(parts[place], base) for parts in splits]
            steps = {later - earlier for earlier, later in itertools.pairwise(numbers)}
            if len(rest) == 1 and len(steps) == 1 and steps != {0}:
                before, last, after = splits[-1][:place], splits[-1][place], splits[-1][place + 1 :]
                text = f"{numbers[-1] + steps.pop():0{len(last)}{form}}"
                found.add("".join((*before, text, *after)))
    return found


def _make_up(session: AttackSession, caller: HttpCaller) -> None:
    session.server.mark()
    without = session.http.post(caller.request("ping"), {SESSION: None})
    if served(without):
        session.judge.unseen("callers-made-up", UNNEEDED)
        return
    found = ""
    at: int | None = None
    for known in (caller.marker("session"), "1"):
        answer = session.http.post(caller.request("ping"), {SESSION: known})
        if served(answer):
            found, at = f"a ping in the made-up session {known} got a result", answer.reply.entry
            break
    session.judge.conclude(
        "callers-made-up",
        found,
        expected="no result in a session that does not exist",
        if_passed="made-up session ids got no result",
        at=at or None,
    )


Asked = tuple[str, Mapping[str, Any]]
"""A method and its params."""

Twins = tuple[Asked, Asked, Callable[[Any], int | None]]
"""Two requests, and a function: an answer -> the index of its request, None if that is unknown."""


def _cross(
    session: AttackSession, caller: HttpCaller, other: str | None, twins_of: list[Twins]
) -> None:
    """Send pairs of requests with one id: in two sessions, without one, and in 2026-07-28."""
    session.server.mark()
    legacy = not session.modern and (other is not None or session.http.session_id is None)
    eras = [session.revision] * legacy + [r for r in session.profile.spoken if is_modern(r)]
    kept = silent = 0
    for (*twins, owner), revision, turn in itertools.product(twins_of, eras, range(ROUNDS)):
        if silent == LEAST:
            break
        same = caller.marker("same")
        headers: tuple[dict[str, Change], ...] = ({}, {SESSION: other} if other else {})
        requests = []
        for (method, params), change in zip(twins, headers, strict=True):
            if is_modern(revision):
                modern = "server/discover" if method == "ping" else method
                requests.append(caller.stateless(modern, revision, same, params))
            else:
                requests.append((caller.request(method, params, same), change))
        owners = []
        for index, answer in enumerate(caller.together(*requests, pause=PAUSE * (turn % 2))):
            answer.wait_messages(seconds=WAIT)
            for one, entry in zip(answer.messages, answer.entries, strict=False):
                owners.append(owner(one))
                if owners[-1] == 1 - index:
                    session.judge.conclude(
                        "callers-crossed",
                        f"{_kind(one)} to {twins[1 - index][0]} of another caller came",
                        expected="each caller gets the answer to its own request",
                        at=entry.n,
                        also=(answer.line,),
                    )
                    return
        kept += {*owners} >= {0, 1}
        silent += not owners
    if not kept:
        session.judge.unseen(
            "callers-crossed", "no two requests with the same id got different answers"
        )
        return
    session.judge.conclude(
        "callers-crossed",
        "",
        expected="each caller gets the answer to its own request",
        if_passed=f"{kept} pairs of requests with the same id were kept apart",
    )


def _kind(message: Any) -> str:
    is_note = isinstance(message, dict) and "method" in message
    return str(message["method"]) if is_note else "the answer"


def _twins(session: AttackSession, caller: HttpCaller) -> Iterator[Twins]:
    """Yield pairs of requests with different answers: calls with a mark of their own, and a list.

    An argument that comes back, or a progress token, is the mark.
    """
    tried = 0
    for example in session.examples("callable-tool"):
        given = example.params.get("arguments") or {}
        texts = [name for name, value in given.items() if isinstance(value, str)]
        for name in texts or [""]:
            if tried == CALLS:
                break
            tried += 1
            marks = caller.marker("first"), caller.marker("second")
            first, second = (_call(example, name, mark) for mark in marks)
            line = session.wire.request(*first, required=False).asked
            if any(marks[0] in one.text for one in session.wire.transcript.since(line)):
                yield first, second, partial(_marked, marks)
    listing = _list_of(session.spoken)
    if listing is not None:
        yield (listing[1], {}), ("ping", {}), partial(_listed, listing[0])


def _call(example: Example, name: str, mark: str) -> Asked:
    """Return a call with a mark as its progress token, and as one of its arguments."""
    given = example.params.get("arguments") or {}
    meta = {**example.params.get("_meta", {}), "progressToken": mark}
    marked = {"arguments": {**given, name: mark}} if name else {}
    return example.method, {**example.params, **marked, "_meta": meta}


def _marked(marks: tuple[str, str], answer: Any) -> int | None:
    has = [mark in str(answer) for mark in marks]
    return None if has[0] == has[1] else has.index(True)


def _listed(member: str, answer: Any) -> int | None:
    result = answer.get("result") if isinstance(answer, dict) else None
    return (0 if member in result else 1) if isinstance(result, dict) else None


def _list_of(spoken: Spoken) -> tuple[str, str] | None:
    """Return a list that the server offers: the member of its result, and the method."""
    for name in ("tools", "resources", "prompts"):
        if spoken.named(name):
            return name, f"{name}/list"
    return None


def _replay(session: AttackSession, caller: HttpCaller, other: str) -> None:
    session.server.mark()
    first: list[tuple[str, str, int]] = []
    listing = _list_of(session.spoken)
    method = listing[1] if listing else "ping"
    for _ in range(STREAMS):
        marker = caller.marker("mine")
        answer = session.http.post(caller.request(method, {}, marker))
        answer.wait_closed()
        known = next((event.id for event in answer.exchange.events if event.id), None)
        if known is not None:
            first.append((known, marker, answer.line))
    if not first:
        session.judge.unseen("callers-replayed", NO_EVENTS)
        return
    found = ""
    at: int | None = None
    mine = {marker for _, marker, _ in first}
    asked = 0
    for known, _, line in first:
        for change in ({SESSION: other}, dict(caller.stranger)):
            stolen = session.http.get({**change, "Last-Event-ID": known})
            stolen.wait_closed(1.0)
            for one, entry in zip(stolen.messages, stolen.entries, strict=False):
                if isinstance(one, dict) and one.get("id") in mine:
                    who = "another session" if change.get(SESSION) else "a caller without a session"
                    found, at = f"{who} got an answer again with its event id {known}", entry.n
                    asked = line
            stolen.close()
    if not found and not any(_owner_gets(session, known, mine) for known, _, _ in first):
        session.judge.unseen("callers-replayed", NOT_REPLAYED)
        return
    session.judge.conclude(
        "callers-replayed",
        found,
        expected="no message of another session",
        if_passed=f"{len(first)} event ids of another session got none of its messages",
        at=at or None,
        also=(asked,) if asked else (),
    )


def _owner_gets(session: AttackSession, known: str, mine: set[str]) -> bool:
    """Return whether the session of an event gets the messages after it again."""
    again = session.http.get({"Last-Event-ID": known})
    again.wait_closed(1.0)
    got = any(isinstance(one, dict) and one.get("id") in mine for one in again.messages)
    again.close()
    return got


NOT_REPLAYED: Final = "the server sends no message again, not even to its own session"

PAGES: Final = 10
"""Greatest number of pages of a list of tasks."""

REFUSED: Final = "the server opens no session without the secret of the user"
UNLISTED: Final = "the list of its owner does not have the task either"


@attack("callers-listed", fixtures=("base",), unwatched=True)
def lists_tasks_to_their_owner_only(session: AttackSession) -> None:
    """A stranger does not find the task of another caller in the list of tasks."""
    threat = "callers-listed"
    session.open()
    caller = HttpCaller(session)
    session.server.mark()
    task = Task(session.wire, session.examples.best("task-tool"))
    if not task.id or _find_task(session, caller, {}, task.id) is None:
        session.judge.unseen(threat, UNLISTED)
        return
    stranger = caller.join(dict.fromkeys(caller.secret_names))
    if stranger is None:
        session.judge.unseen(threat, REFUSED)
        return
    at = _find_task(session, caller, stranger, task.id)
    session.judge.conclude(
        threat,
        f"the list of a stranger has the task {task.id} of another session" if at else "",
        expected="no task of another caller",
        if_passed="the list of a stranger does not have the task of another session",
        at=at,
        also=(task.request.line,),
    )
    caller.leave(stranger[SESSION])


def _find_task(
    session: AttackSession, caller: HttpCaller, change: Mapping[str, Change], task: str
) -> int | None:
    """Return the line of the list of tasks that has a task; None if no page has it."""
    cursor: dict[str, Any] = {}
    for _ in range(PAGES):
        answer = session.http.post(caller.request("tasks/list", cursor), change)
        result = answer.reply.result or {}
        listed = result.get("tasks")
        for one in listed if isinstance(listed, list) else ():
            if isinstance(one, dict) and one.get("taskId") == task:
                return answer.reply.entry
        if not isinstance(result.get("nextCursor"), str):
            break
        cursor = {"cursor": result["nextCursor"]}
    return None


UPDATED: Final = "notifications/resources/updated"

EDITS: Final = 5
"""Greatest number of changes of a file; the first ones may come before the streams are open."""

PATIENCE: Final = 2.0
"""Seconds that the server has after a change to notify a subscriber."""

UNNOTIFIED: Final = "the server notified its subscriber of no change of a file"
UNSUBSCRIBED: Final = "the server let nobody subscribe to a file of the throw-away root"
NO_STREAM: Final = "the server opens no stream for a stranger"


@attack("callers-overheard", fixtures=("base",), unwatched=True)
def notifies_subscribers_only(session: AttackSession) -> None:
    """A stranger gets no updates of a file to which another caller has subscribed."""
    threat = "callers-overheard"
    session.open()
    caller = HttpCaller(session)
    session.server.mark()
    subscribed = _subscribe(session)
    if subscribed is None:
        session.judge.unseen(threat, UNSUBSCRIBED)
        return
    other = session.http.other_credentials()
    stranger = caller.join(dict.fromkeys(caller.secret_names))
    if stranger is None and other is not None:
        stranger = caller.join({"Authorization": other})
    if stranger is None:
        session.judge.unseen(threat, REFUSED)
        return
    stream = session.http.get(stranger)
    if stream.refused or not stream.exchange.streams:
        session.judge.unseen(threat, NO_STREAM)
    else:
        _change_until_notified(session, stream)
        session.http.post(caller.request("ping"), stranger)
        stream.wait_messages(seconds=session.pace.settle)
        heard = _update(session, stream, on_it=True)
        if heard is None and _update(session, stream, on_it=False) is None:
            session.judge.unseen(threat, UNNOTIFIED)
        else:
            session.judge.conclude(
                threat,
                "a stranger got an update of a file to which another caller has subscribed"
                if heard
                else "",
                expected="no update without a subscription",
                if_passed="the subscriber got an update, and a stranger did not",
                at=heard,
                also=(subscribed,),
            )
    stream.close()
    caller.leave(stranger[SESSION])


def _subscribe(session: AttackSession) -> int | None:
    """Subscribe to the plain file; return the line of the request, None if that is refused."""
    for binding in session.begin():
        if binding.uri:
            root = str(session.tree.root)
            _, params = binding.call(binding.spelled(CONTROL, root), root)
            asked = {"uri": params["uri"]}
            reply = session.wire.request("resources/subscribe", asked, required=False)
            if reply.result is not None:
                return reply.asked
    return None


def _change_until_notified(session: AttackSession, stream: HttpAnswer) -> None:
    """Change the plain file until its subscriber gets an update."""
    path = session.tree.root / CONTROL
    for _ in range(EDITS):
        path.append(b"\n")
        if session.wire.wait(lambda: _update(session, stream, on_it=False), PATIENCE):
            break


def _update(session: AttackSession, stream: HttpAnswer, *, on_it: bool) -> int | None:
    """Return the line of an update on the stream of a stranger, or on any other one."""
    for entry in session.wire.transcript:
        exchange = entry.origin.exchange if entry.origin is not None else None
        if (exchange is stream.exchange) is on_it and any(
            message.method == UPDATED for message in entry.messages
        ):
            return entry.n
    return None
