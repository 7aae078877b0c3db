"""server/utilities/pagination: pages and cursors."""

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
    list_in,
    read_pages,
    scenario,
    typed,
)

MEMBERS = dict(LISTS.values())
"""List method -> the member of its result with the items."""

TEMPLATES = "resources/templates/list"
WRONG = "x-touchstone-no-such-cursor"
LONG = "x" * 8_192
"""A long text that fits in common line buffers; the specification sets no line length."""
MOST = 200
"""Number of pages after which a list is considered endless."""

INVALID = -32602
UNKNOWN_METHOD = -32601


@ambient("pagination-next-cursor-string")
def gives_cursors_as_strings(record: Record) -> Iterator[Seen]:
    """The nextCursor of a page is a string, and is left out on the last page."""
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


# --- valid cursors


@scenario("pagination-own-cursor-accepted", "pagination-terminates")
def serves_every_page(talk: Conversation) -> None:
    """Each cursor is accepted and leads to the next page, up to the last page."""
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
            expected=f"the next page of {method}",
            actual=refusal
            if refusal is not None
            else f"items of the page before: {brief(twice[:3], 120)}",
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
            expected=f"a last page of {method}, without a cursor",
            actual="the same page with the same cursor again"
            if loops
            else f"no last page within {MOST} pages",
            at=last,
            mild=None if loops else Breach.NOTE,
        )
    talk.judge.otherwise_unseen((accepted, ends), "no list has more than one page")


def _walk(talk: Conversation, method: str) -> tuple[list[Reply], Reply | None]:
    """Follow the cursors; return the pages, and the reply that was not a page."""
    pages: list[Reply] = []
    for reply in read_pages(talk.wire, method, most=MOST):
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
    """Return the items of a page as comparable texts."""
    page = list_in(reply.result, MEMBERS[method])
    return [json.dumps(item, sort_keys=True) for item in page]


def _is_loop(pages: list[Reply], method: str) -> bool:
    """Whether an earlier page has the items and the cursor of the last page."""
    *before, last = [(_cursor(page), _items(page, method)) for page in pages]
    return last[0] is not None and last in before


def _repeated(pages: list[Reply], method: str) -> list[str]:
    """Return the items of a page that the previous page contains too; none if there is a loop."""
    if _is_loop(pages, method):
        return []
    for first, second in pairwise(pages):
        before = _items(first, method)
        again = [item for item in _items(second, method) if item in before]
        if again:
            return again
    return []


@scenario("pagination-stable-cursors")
def serves_the_same_page_for_the_same_cursor(talk: Conversation) -> None:
    """A cursor that is used twice leads to the same page if the list is unchanged."""
    clause = "pagination-stable-cursors"
    for method in talk.spoken.cursors:
        first = talk.wire.request(method)
        cursor = _cursor(first)
        if cursor is None:
            continue
        one, two = (talk.wire.request(method, {"cursor": cursor}) for _ in range(2))
        unchanged = _items(talk.wire.request(method), method) == _items(first, method)
        if one.result is None or not two.answered or not unchanged:
            continue
        talk.judge.expect(
            two,
            clause,
            two.result is not None and _items(two, method) == _items(one, method),
            f"the same page of {method} for the same cursor",
        )
    talk.judge.otherwise_unseen(clause, "no list was unchanged and accepted its cursor")


# --- invalid cursors


def _methods(talk: Conversation) -> list[str]:
    """Return the list methods of the declared capabilities."""
    declared = talk.spoken.capabilities
    methods = [LISTS[feature][0] for feature in LISTS if feature in declared]
    return [*methods, TEMPLATES] if "resources" in declared else methods


@scenario("pagination-invalid-cursor-error")
def refuses_an_invalid_cursor(talk: Conversation) -> None:
    """An invalid cursor gets error -32602."""
    clause = "pagination-invalid-cursor-error"
    for method in _methods(talk):
        reply = talk.wire.request(method, {"cursor": WRONG}, required=False)
        if reply.code == UNKNOWN_METHOD or not reply.answered or reply.unreadable:
            continue
        if reply.code != INVALID and talk.wire.request(method, required=False).is_error:
            continue  # the list fails without a cursor too
        ignored = reply.result is not None and method not in talk.spoken.cursors
        talk.judge.expect_error(
            reply,
            clause,
            INVALID,
            f"error -32602 for {method} with an invalid cursor",
            mild=Breach.NOTE if ignored else None,
        )
    talk.judge.otherwise_unseen(clause, "the server declares no lists")


@scenario("pagination-invalid-cursor-graceful", hurts=True)
def survives_malformed_cursors(talk: Conversation) -> None:
    """Cursors that are truncated, very long or a number are answered; lists still work."""
    clause, methods = "pagination-invalid-cursor-graceful", _methods(talk)
    if not methods:
        talk.judge.unseen(clause, "the server declares no lists")
    for method in methods:
        before = talk.wire.request(method, required=False)
        if before.result is None:
            talk.judge.unseen(clause, f"{method} is not served without a cursor")
            continue
        for cursor in _wrong_cursors(_cursor(before)):
            reply = talk.wire.request(method, {"cursor": cursor}, required=False)
            expected = f"an answer to {method} with the cursor {brief(cursor, 60)}"
            talk.judge.expect_answer(reply, clause, expected)
            if not reply.answered:
                return
        after = talk.wire.request(method, required=False)
        talk.judge.expect(
            after,
            clause,
            after.result is not None,
            f"a result for {method} without a cursor",
        )


def _wrong_cursors(real: str | None) -> list[Any]:
    cut = [real[: len(real) // 2]] if real and len(real) > 1 else []
    return [WRONG, *cut, LONG, 42]
