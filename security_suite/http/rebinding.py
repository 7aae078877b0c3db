"""Requests of web pages: the effect is a result that a page could use."""

from collections.abc import Mapping, Sequence
from typing import Final

from mcp_touchstone.security.suite import SESSION, AttackSession, HttpCaller, attack, served

SITE: Final = "touchstone-attack.examples.best"

NOBODY_SERVED: Final = "the server gives no result without the secret of the user"
ELSEWHERE: Final = "the server is not on loopback, so it may have any name"
OPEN: Final = "rebinding-page counts it: the page with an Origin was served too"


@attack("rebinding-origin", "rebinding-page", "rebinding-host", fixtures=("base",), unwatched=True)
def serves_no_page_of_another_site(session: AttackSession) -> None:
    """Pages of other sites, and pages with a rebound host name, get no result."""
    session.open()
    caller = HttpCaller(session)
    if not _is_served(caller, {}):
        session.judge.unseen(
            ("rebinding-origin", "rebinding-page", "rebinding-host"), NOBODY_SERVED
        )
        return
    host = f"{SITE}:{caller.http.authority.rpartition(':')[2]}"
    pages = [{"Origin": f"https://{SITE}"}, {"Origin": "null"}]
    _try(session, caller, "rebinding-origin", pages)
    if not caller.http.local:
        session.judge.unseen(("rebinding-page", "rebinding-host"), ELSEWHERE)
        return
    rebound = {"Host": host, "Origin": f"http://{host}"}
    if _try(session, caller, "rebinding-page", [rebound]):
        session.judge.unseen("rebinding-host", OPEN)
    else:
        _try(session, caller, "rebinding-host", [{"Host": host}])


def _try(
    session: AttackSession, caller: HttpCaller, threat: str, pages: Sequence[Mapping[str, str]]
) -> bool:
    found = ""
    at: int | None = None
    for page in pages:
        session.server.mark()
        answer = caller.begin({**caller.stranger, **page})
        if served(answer):
            headers = ", ".join(f"{name}: {value}" for name, value in page.items())
            found, at = f"a request with {headers} got a result", answer.reply.entry or answer.line
            caller.leave(answer.header(SESSION))
            break
    session.judge.conclude(
        threat,
        found,
        expected="no result for a page of somebody else",
        if_passed=f"{len(pages)} requests got no result",
        at=at or None,
    )
    return bool(found)


def _is_served(caller: HttpCaller, change: Mapping[str, str]) -> bool:
    """Return whether a caller without the secrets of the user gets a result."""
    answer = caller.begin({**caller.stranger, **change})
    caller.leave(answer.header(SESSION))
    return served(answer)
