"""server/utilities/pagination: pages, and the cursors that lead from one to the next."""

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from mcp_touchstone.suite import (
    LISTS,
    Breach,
    Conversation,
    Record,
    Reply,
    Seen,
    ambient,
    brief,
    scenario,
    typed,
)

MEMBERS = dict(LISTS.values())
"""List method -> the member of its result that holds the items."""

TEMPLATES = "resources/templates/list"
WRONG = "x-touchstone-no-such-cursor"
LONG = "x" * 100_000
MOST = 200
"""Pages after which nobody waits for the end of a list any more."""

INVALID = -32602
UNKNOWN_METHOD = -32601


@ambient("pagination-next-cursor-string")
def gives_cursors_as_strings(record: Record) -> Iterator[Seen]:
    """The cursor of a next page is a string, and left out where there is none."""
    for message in typed(record):
        if message.part == "results" and message.method in MEMBERS:
            cursor = message.value.get("nextCursor", "")
            yield Seen(
                "pagination-next-cursor-string",
                isinstance(cursor, str),
                message.entry.n,
                "a string for nextCursor, or none",
                f"nextCursor is {brief(cursor, 60)}",
                mild=Breach.WARN if cursor is None else None,
            )


# --- walking


@scenario("pagination-own-cursor-accepted", "pagination-terminates")
def leads_from_page_to_page(talk: Conversation) -> None:
    """Each cursor is accepted and leads to what follows, until there is none."""
    accepted, ends = "pagination-own-cursor-accepted", "pagination-terminates"
    for method in talk.spoken.cursors:
        pages, refusal = _walk(talk, method)
        if refusal is not None and refusal.is_error:
            pages, refusal = _walk(talk, method)
        refused = refusal is not None and refusal.is_error
        twice = [] if refused else _repeated(pages, method)
        talk.judge(
            accepted,
            not refused and not twice,
            expected=f"what follows in {method}",
            actual=refusal if refusal is not None else f"again: {brief(twice[:3], 120)}",
            at=refusal or pages[-1],
            mild=None if refused else Breach.WARN,
        )
        if refusal is not None:
            continue
        last = pages[-1]
        loops = _is_loop(pages, method)
        talk.judge(
            ends,
            not loops and _cursor(last) is None,
            expected=f"a page of {method} without a cursor",
            actual="the same page with the same cursor again" if loops else f"{MOST} pages",
            at=last,
            mild=None if loops else Breach.NOTE,
        )
    for clause in (accepted, ends):
        if not any(judgement.clause == clause for judgement in talk.judgements):
            talk.unseen(clause, "no list could be walked")


def _walk(talk: Conversation, method: str) -> tuple[list[Reply], Reply | None]:
    """Follow the cursors; give the pages, and what came in place of one."""
    pages: list[Reply] = []
    for reply in talk.pages(method, most=MOST):
        if reply.result is None:
            return pages, reply
        pages.append(reply)
        if _is_loop(pages, method):
            break
    return pages, None


def _cursor(reply: Reply) -> str | None:
    found = (reply.result or {}).get("nextCursor")
    return found if isinstance(found, str) else None


def _items(reply: Reply, method: str) -> list[str]:
    """Give the items of a page as texts that can be compared."""
    found = (reply.result or {}).get(MEMBERS[method])
    page = found if isinstance(found, list) else []
    return [json.dumps(item, sort_keys=True) for item in page]


def _is_loop(pages: list[Reply], method: str) -> bool:
    """Whether the last page came before, with the cursor it has now."""
    *before, last = [(_cursor(page), _items(page, method)) for page in pages]
    return last[0] is not None and last in before


def _repeated(pages: list[Reply], method: str) -> list[str]:
    """Give the items of a page that the page before has as well, where there is no loop."""
    if _is_loop(pages, method):
        return []
    for first, second in pairwise(pages):
        before = _items(first, method)
        again = [item for item in _items(second, method) if item in before]
        if again:
            return again
    return []


@scenario("pagination-stable-cursors")
def gives_the_same_page_for_a_cursor_again(talk: Conversation) -> None:
    """A cursor that is used twice leads to the same page, while the list stays as it is."""
    clause, judged = "pagination-stable-cursors", False
    for method in talk.spoken.cursors:
        first = talk.request(method)
        cursor = _cursor(first)
        if cursor is None:
            continue
        one, two = (talk.request(method, {"cursor": cursor}) for _ in range(2))
        unchanged = _items(talk.request(method), method) == _items(first, method)
        if one.result is None or not two.answered or not unchanged:
            continue
        talk.judge(
            clause,
            two.result is not None and _items(two, method) == _items(one, method),
            expected=f"the same page of {method} for the same cursor",
            actual=two,
            at=two,
        )
        judged = True
    if not judged:
        talk.unseen(clause, "no list stayed as it was, with a cursor that was accepted")


# --- cursors that are none


def _methods(talk: Conversation) -> list[str]:
    """Give the list methods of what is declared."""
    declared = talk.spoken.capabilities
    methods = [LISTS[feature][0] for feature in LISTS if feature in declared]
    return [*methods, TEMPLATES] if "resources" in declared else methods


@scenario("pagination-invalid-cursor-error")
def knows_no_cursor_it_did_not_give(talk: Conversation) -> None:
    """A cursor that is none gets error -32602."""
    clause, judged = "pagination-invalid-cursor-error", False
    for method in _methods(talk):
        reply = talk.request(method, {"cursor": WRONG}, required=False)
        if reply.code == UNKNOWN_METHOD or not reply.answered or reply.unreadable:
            continue
        if reply.code != INVALID and talk.request(method, required=False).is_error:
            continue  # nothing is listed there, with a cursor or without
        ignored = reply.result is not None and method not in talk.spoken.cursors
        talk.judge(
            clause,
            reply.code == INVALID,
            expected=f"error -32602 for {method} with a cursor that is none",
            actual=reply,
            at=reply,
            mild=Breach.NOTE if ignored else None,
        )
        judged = True
    if not judged:
        talk.unseen(clause, "the server declares nothing that is listed")


@scenario("pagination-invalid-cursor-graceful", hurts=True)
def survives_cursors_that_are_none(talk: Conversation) -> None:
    """Cursors that are cut, very long or a number are answered, and lists work as before."""
    clause, methods = "pagination-invalid-cursor-graceful", _methods(talk)
    if not methods:
        talk.unseen(clause, "the server declares nothing that is listed")
    for method in methods:
        before = talk.request(method, required=False)
        if not before.answered:
            talk.unseen(clause, f"{method} is not answered without a cursor either")
            continue
        for cursor in _wrong_cursors(_cursor(before)):
            reply = talk.request(method, {"cursor": cursor}, required=False)
            expected = f"an answer to {method} with the cursor {brief(cursor, 60)}"
            talk.judge(clause, reply.answered, expected=expected, actual=reply, at=reply)
            if not reply.answered:
                return
        after = talk.request(method, required=False)
        talk.judge(
            clause,
            after.answered and (after.result is None) <= (before.result is None),
            expected=f"{method} works as before",
            actual=after,
            at=after,
        )


def _wrong_cursors(real: str | None) -> list[Any]:
    cut = [real[: len(real) // 2]] if real and len(real) > 1 else []
    return [WRONG, *cut, LONG, 42]
