"""Complete lists of a server: read one to its end, track one on a connection, judge its names."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.connection.pending import Window, read_pages
from mcp_touchstone.connection.server_profile import LISTS
from mcp_touchstone.judging.ambient import Record
from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.wire.framing import Kind, list_in, object_in, value_in
from mcp_touchstone.wire.lifecycle import Role
from mcp_touchstone.wire.reply import Reply

LATE: Final = 1.0
"""Seconds a notification may come after a list with the change."""

KEYS: Final = {"resources": "uri", "templates": "uriTemplate"}
"""Feature -> the member that identifies its items; the name for other features."""

ELSEWHERE: Final = "on another connection"

Lists = Sequence[list[str] | None]


def keys(talk: Conversation, feature: str) -> list[str] | None:
    """Return the keys of all items of a list, in order; None if the list has no end."""
    method, _ = LISTS[feature]
    found: list[str] = []
    for reply in read_pages(talk.wire, method):
        page = _page(reply.result, feature)
        if page is None:
            return None
        found += page
        more = (reply.result or {}).get("nextCursor")
    return None if isinstance(more, str) else found


def items(pages: Iterable[Reply], member: str) -> Iterator[dict[str, Any]]:
    """Yield the objects that some pages of a list have under a member of their result."""
    for page in pages:
        yield from map(object_in, list_in(page.result, member))


def judge_served(talk: Conversation, method: str, clause: str) -> None:
    """Judge that a list is served; a second request counts if the first gets an error."""
    reply = talk.wire.request(method)
    reply = talk.wire.request(method) if reply.is_error else reply
    if reply.answered:
        talk.judge.expect(reply, clause, not reply.is_error, f"a result for {method}")
    else:
        talk.judge.unseen(clause, f"there was no answer: {reply}")


def judge_unique(talk: Conversation, feature: str, clause: str) -> None:
    """Judge that no two listed items have the same name, each time the list is read."""
    names = keys(talk, feature)
    if not names:
        talk.judge.unseen(clause, f"the server lists no {feature.removesuffix('s')}")
        return
    again = keys(talk, feature) or [] if len({*names}) < len(names) else []
    twice = sorted(name for name in {*names} if min(names.count(name), again.count(name)) > 1)
    talk.judge(
        clause,
        not twice,
        expected="every name once",
        actual=f"more than once: {', '.join(twice)}",
        at=len(talk.wire.transcript),
    )


NOTHING: Final = "each list is empty"
"""Why the lists of two connections show nothing."""


def difference(before: list[str], after: list[str]) -> str:
    """Return the difference of two lists as text; empty if they differ only in order."""
    gone, new = sorted({*before} - {*after}), sorted({*after} - {*before})
    words = [f"{what}: {', '.join(few)}" for what, few in (("new", new), ("gone", gone)) if few]
    if not words and sorted(before) != sorted(after):
        return "the same names in another number"
    return "; ".join(words)


def varies(busy: Lists, quiet: Lists) -> str:
    """Return the difference of two connections, a busy and a quiet one; each was listed twice.

    Empty if the lists of the quiet one differ: then the list changes by itself.
    """
    before, after, first, second = (sorted(names or []) for names in (*busy, *quiet))
    if first != second:
        return ""
    if before != after:
        return "after other requests"
    return "" if before == first else ELSEWHERE


def all_differ(*connections: Lists) -> bool:
    """Return whether the lists of no two connections are equal; each begins with its first list."""
    firsts = [sorted(lists[0] or []) for lists in connections]
    return all(one not in firsts[:n] for n, one in enumerate(firsts))


def around(talk: Conversation, feature: str, use: Callable[[], object]) -> Lists:
    """List before and after other requests on the current connection."""
    before = keys(talk, feature)
    use()
    return before, keys(talk, feature)


def side_by_side(
    talk: Conversation, feature: str, use: Callable[[], object]
) -> tuple[Lists, Lists]:
    """List on the current process, which is busy, and on a new and quiet one that stays open.

    The quiet one is listed before and after the other; it is the current one at the end.
    """
    here = talk.wire
    talk.server.restart().open()
    there = talk.wire
    before = keys(talk, feature)
    talk.server.wire = here
    busy = around(talk, feature, use)
    talk.server.wire = there
    return busy, (before, keys(talk, feature))


def in_turn(talk: Conversation, feature: str, use: Callable[[], object]) -> tuple[Lists, Lists]:
    """List on a busy and on a quiet process, both new, started one after the other.

    The quiet one waits longer between its lists than the busy one was used. So a list that a
    process loads in the background after its start changes on both.
    """
    start_next(talk)
    began = len(talk.wire.transcript)
    busy = around(talk, feature, use)
    lines = talk.since(began)
    used = lines[-1].at - lines[0].at if lines else 0.0
    start_next(talk)
    quiet = around(talk, feature, lambda: talk.wire.quiet(2 * used + LATE / 2))
    return busy, quiet


def start_next(talk: Conversation) -> None:
    """End the current process; continue on a new one."""
    talk.server.end()
    talk.server.restart().open()


def until_changed(
    talk: Conversation, feature: str, before: list[str] | None, seconds: float
) -> int | None:
    """Request the list until it differs; return the line where it did, None if it never did."""
    window = Window(talk.wire, seconds)
    while not window.over:
        now = keys(talk, feature)
        if before is not None and now is not None and difference(before, now):
            return len(talk.wire.transcript)
        talk.wire.quiet(0.2)
    return None


@dataclass(frozen=True, slots=True)
class Listing:
    """One complete list in a transcript.

    Attributes:
        asked: number of the line that requested its first page.
        line: number of the line with its last page.
        at: time of that line, in seconds.
        keys: keys of its items, in order.
    """

    asked: int
    line: int
    at: float
    keys: tuple[str, ...]


def listings(record: Record, feature: str) -> Iterator[Listing]:
    """Yield the complete lists on a connection; incomplete ones are skipped."""
    asked, expected = 0, None
    found: list[str] = []
    for entry, message in record.answers(Kind.RESULT):
        result = message.value["result"]
        request = record.asked_on(message.answers)
        if message.method != LISTS[feature][0] or request is None:
            continue
        page = _page(result, feature)
        cursor = value_in(request.value, "params", "cursor")
        if page is None or (cursor is not None and cursor != expected):
            asked = 0
            continue
        if cursor is None:
            asked, found = request.n, []
        found += page
        expected = result.get("nextCursor")
        if asked and not isinstance(expected, str):
            yield Listing(asked, entry.n, entry.at, tuple(found))
            asked = 0


def changes(record: Record, feature: str) -> Iterator[tuple[Listing, str, bool]]:
    """Yield the changes of a list: the new list, the difference, and whether it was announced.

    A notification counts if it came after the request for the list before the change.
    """
    method = f"notifications/{feature}/list_changed"
    announcements = [
        entry for entry, message in record.messages(Role.NOTIFICATION) if message.method == method
    ]
    before: Listing | None = None
    for after in listings(record, feature):
        if before is not None and (how := difference([*before.keys], [*after.keys])):
            announced = any(before.asked < e.n and e.at <= after.at + LATE for e in announcements)
            yield after, how, announced
        before = after


def _page(result: Any, feature: str) -> list[str] | None:
    page = value_in(result, LISTS[feature][1])
    if not isinstance(page, list):
        return None
    key = KEYS.get(feature, "name")
    named = (item.get(key) for item in page if isinstance(item, dict))
    return [name for name in named if isinstance(name, str)]
