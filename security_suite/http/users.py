"""Other users: what a second user with a valid token gets, and where tokens are written."""

from typing import Any

from mcp_touchstone.security.suite import (
    SESSION,
    AttackSession,
    Change,
    HttpCaller,
    Task,
    attack,
    served,
)

NO_OTHER = "there is no second user: --issuer mock or --other-token-command"
NOBODY = "there is no token of the user"
NO_IDS = "the server gives out no session id"
REFUSED = "the second user gets no session of its own"
CLOSED = (400, 401, 403, 404)
"""Statuses that refuse a session to a user; 409 and 429 are about another request."""

UNSEEN = "we did not start the server, so its standard error is unknown"


@attack("users-session", fixtures=("base",), unwatched=True)
def closes_sessions_to_other_users(session: AttackSession) -> None:
    """The session id of a user is of no use with the token of another user."""
    threat = "users-session"
    session.open()
    caller = HttpCaller(session)
    other = session.http.other_credentials()
    if other is None or session.http.session_id is None:
        session.judge.unseen(threat, NO_OTHER if other is None else NO_IDS)
        return
    session.server.mark()
    change = {"Authorization": other}
    own = caller.join(change)
    if own is None:
        session.judge.unseen(threat, REFUSED)
        return
    found = ""
    at: int | None = None
    unclear = ""
    for method in ("ping", *session.spoken.list_methods[:1]):
        answer = session.http.post(caller.request(method), change)
        if served(answer):
            found, at = f"{method} in the session of another user got a result", answer.reply.entry
        elif answer.status not in CLOSED and answer.error_code is None:
            unclear = f"{method} in the session of another user was neither served nor refused: "
            unclear += str(answer)
    stream = session.http.get(change)
    if stream.exchange.streams and not stream.refused:
        found = found or "the stream of the session of another user was opened"
    stream.close()
    caller.leave(own[SESSION])
    if unclear and not found:
        session.judge.unseen(threat, unclear)
        return
    session.judge.conclude(
        threat,
        found,
        expected="no result for another user",
        if_passed="the token of another user opened nothing of the session",
        at=at or stream.line,
    )


@attack("users-task", fixtures=("base",), unwatched=True)
def keeps_tasks_from_other_users(session: AttackSession) -> None:
    """The id of a task is of no use with the token of another user."""
    threat = "users-task"
    session.open()
    caller = HttpCaller(session)
    other = session.http.other_credentials()
    if other is None:
        session.judge.unseen(threat, NO_OTHER)
        return
    session.server.mark()
    task = Task(session.wire, session.examples.best("task-tool"))
    own = caller.join({"Authorization": other})
    if own is None or not task.id:
        session.judge.unseen(threat, REFUSED if own is None else "the server made no task")
        return
    named = {"taskId": task.id}
    found = ""
    at: int | None = task.request.line
    for method, params in (("tasks/get", named), ("tasks/list", {}), ("tasks/result", named)):
        answer = session.http.post(caller.request(method, params), own)
        if not found and _shows(answer.reply.result or {}, method, task.id):
            found, at = f"another user got the task {task.id} by {method}", answer.reply.entry
    session.judge.conclude(
        threat,
        found,
        expected="no task of another user",
        if_passed="the token of another user got no task",
        at=at,
        also=(task.request.line,),
    )
    caller.leave(own[SESSION])


def _shows(result: dict[str, Any], method: str, task: str) -> bool:
    """Whether the result of a request about tasks is about this one."""
    if method == "tasks/result":
        return bool(result)
    listed = result.get("tasks") if method == "tasks/list" else [result]
    tasks = listed if isinstance(listed, list) else []
    return task in [one.get("taskId") for one in tasks if isinstance(one, dict)]


@attack("users-token-logged", fixtures=("base",), unwatched=True)
def writes_no_token_to_its_log(session: AttackSession) -> None:
    """Standard error has no token, whether its request was served or refused."""
    threat = "users-token-logged"
    session.open()
    caller = HttpCaller(session)
    own = session.http.credentials()
    if own is None or not session.http.started:
        session.judge.unseen(threat, UNSEEN if own else NOBODY)
        return
    session.server.mark()
    token = own.rpartition(" ")[2]
    ping = caller.request("ping")
    line = session.http.post(ping).line
    changes: tuple[dict[str, Change], ...] = (
        {SESSION: caller.marker("session")},
        {"Authorization": f"Basic {token}"},
        {"Authorization": f"Bearer {token}x"},
        {"Authorization": f"Bearer {token}, Bearer {token}"},
        {"Accept": "text/plain"},
    )
    for change in changes:
        session.http.post(ping, change)
    session.http.post(ping, body=b"{")
    session.http.get(path=f"{session.http.path}/nowhere")
    session.judge.conclude(
        threat,
        "standard error has the token of the user" if session.http.logs(token) else "",
        expected="no token on standard error",
        if_passed=f"the token was in {len(changes) + 3} requests, and not on standard error",
        at=line,
    )
