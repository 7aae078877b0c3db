"""The request that a server guards by a token: its first one, or a later one of a public server."""

from collections.abc import Iterator
from typing import Any, Final

from mcp_touchstone.connection.raw_http import Change, HttpAnswer
from mcp_touchstone.connection.server_profile import is_read_only
from mcp_touchstone.judging.conversation import Conversation

BARRED: Final = frozenset({401, 403})
SUCCESS: Final = range(200, 300)
NO_TOOL: Final = "touchstone-no-such-tool"
NO_TOKEN: Final = "no token was given: --header Authorization=env:NAME, or --issuer mock"  # noqa: S105
MOST: Final = 8
"""Greatest number of tools that are called without a token."""


def harmless_requests(talk: Conversation) -> list[dict[str, Any]]:
    """Return a ping, those of the lists, and a call of a harmless tool."""
    methods = (talk.wire.ping_method, *talk.spoken.list_methods)
    calls = [{"name": tool, "arguments": {}} for tool in talk.spoken.harmless[:1]]
    found = [talk.wire.build(method) for method in methods]
    return found + [talk.wire.build("tools/call", call) for call in calls]


def guarded(talk: Conversation) -> dict[str, Any] | None:
    """Return the request that the server refuses without a token.

    It is empty for the first one of a client, and None until somebody looked for it.
    """
    found: dict[str, Any] | None = talk.wire.transcript.memo.get(guarded)
    return found


def attempt(talk: Conversation, authorization: Change, path: str | None = None) -> HttpAnswer:
    """Send the guarded request with another Authorization header; None omits it."""
    change = {"Authorization": authorization}
    if request := guarded(talk):
        message = {**request, "id": next(talk.wire.ids)}
        return talk.http.post(message, change, path=path)
    answer = talk.http.first_request(change, path=path)
    talk.http.end_session(answer)
    return answer


def challenged(talk: Conversation, *clauses: str) -> HttpAnswer | None:
    """Send the guarded request without the user's token; return its refusal.

    If there is no token, or no request needs it, the clauses are unseen and the result is None.
    """
    if talk.http.credentials() is None:
        why = NO_TOKEN
    else:
        answer = _without_a_token(talk)
        if _refuses(talk, answer):
            return answer
        why = f"the server serves a request without a token: {answer}"
    talk.judge.unseen(clauses, why)
    return None


def _refuses(talk: Conversation, answer: HttpAnswer) -> bool:
    if guarded(talk):
        return answer.status in BARRED
    return answer.reply.result is None and answer.status > 0


def _without_a_token(talk: Conversation) -> HttpAnswer:
    """Return the answer to the guarded request without a token; look for that request once."""
    first = attempt(talk, None)
    if guarded(talk) is not None or _refuses(talk, first):
        return first
    talk.wire.transcript.keep(guarded, {})
    for message in _later(talk):
        answer = talk.http.post(message, {"Authorization": None})
        if answer.status in BARRED and talk.http.post(message).status in SUCCESS:
            talk.wire.transcript.keep(guarded, message)
            return answer
    return first


def _later(talk: Conversation) -> Iterator[dict[str, Any]]:
    """Yield requests that a server may guard though it serves its first one to everybody."""
    for method in talk.spoken.list_methods:
        yield talk.wire.build(method)
    tools = [one["name"] for one in talk.spoken.named("tools") if is_read_only(one)]
    for tool in (*(*talk.spoken.harmless, *tools)[:MOST], NO_TOOL):
        yield talk.wire.build("tools/call", {"name": tool, "arguments": {}})
