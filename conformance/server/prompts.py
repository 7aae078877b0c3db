"""server/prompts: how prompts are declared and listed, and what is said when the list changes."""

from collections.abc import Iterator, Sequence
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Connection,
    Conversation,
    Kind,
    Record,
    Role,
    Seen,
    ambient,
    scenario,
    shapes,
)

LIST = "prompts/list"
CHANGED = "notifications/prompts/list_changed"
MOST_PAGES = 20
LATE = 1.0
"""Seconds a notification may come behind a list that shows the change."""


@scenario("prompts-capability-declared")
def declares_the_prompts_it_offers(talk: Conversation) -> None:
    """A server that did not declare prompts lists none."""
    clause = "prompts-capability-declared"
    if "prompts" in talk.spoken.capabilities:
        talk.judge(clause, True, expected="the prompts capability")
        return
    reply = talk.request(LIST)
    talk.judge(
        clause,
        not (reply.result or {}).get("prompts"),
        expected="no prompts, as the capability is not declared",
        actual=reply,
        at=reply,
    )


@ambient(
    "prompts-list-result-shape",
    "prompts-definition-shape",
    "prompts-get-result-shape",
    "prompts-message-shape",
)
def writes_prompts_in_the_right_types(record: Record) -> Iterator[Seen]:
    """Lists of prompts, their definitions, and rendered prompts with their messages."""
    yield from shapes(
        record,
        "prompts-list-result-shape",
        "prompts-definition-shape",
        "prompts-get-result-shape",
        "prompts-message-shape",
    )


@scenario("prompts-list-must-answer")
def lists_its_prompts(talk: Conversation) -> None:
    """prompts/list gets a result, possibly an empty one."""
    reply = talk.request(LIST)
    if reply.is_error:
        reply = talk.request(LIST)
    talk.judge(
        "prompts-list-must-answer",
        not reply.is_error,
        expected=f"a result for {LIST}",
        actual=reply,
        at=reply,
    )


@scenario("prompts-name-unique")
def names_each_prompt_once(talk: Conversation) -> None:
    """No two prompts of one walk through all pages share a name."""
    clause = "prompts-name-unique"
    names = _names(talk)
    if not names:
        talk.unseen(clause, "the server lists no prompt")
        return
    twice = _twice(names) and _twice(names) & _twice(_names(talk) or [])
    talk.judge(
        clause,
        not twice,
        expected="every name once",
        actual=f"more than once: {', '.join(sorted(twice))}",
        at=len(talk.wire.transcript),
    )


def _twice(names: list[str]) -> set[str]:
    return {name for name in names if names.count(name) > 1}


def _names(talk: Conversation) -> list[str] | None:
    """Walk all pages; None where they cannot be read to the end."""
    names: list[str] = []
    cursor = None
    for _ in range(MOST_PAGES):
        result = talk.request(LIST, None if cursor is None else {"cursor": cursor}).result or {}
        page = result.get("prompts")
        if not isinstance(page, list):
            return None
        names += _named(page)
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str):
            return names
    return None


def _named(page: list[Any]) -> list[str]:
    named = (prompt.get("name") for prompt in page if isinstance(prompt, dict))
    return [name for name in named if isinstance(name, str)]


# --- who asks, and what else they asked, makes no difference


@scenario("prompts-list-not-per-connection")
def lists_the_same_prompts_on_every_connection(talk: Conversation) -> None:
    """Another process lists the same prompts, and other requests do not change them."""
    clause = "prompts-list-not-per-connection"
    here = talk.wire
    there = _reopened(talk)
    quiet = [_names(talk)]
    talk.wire = here
    busy = _around(talk)
    talk.wire = there
    quiet.append(_names(talk))
    if None in (*busy, *quiet):
        talk.unseen(clause, "the list could not be read to its end")
        return
    suspect = _difference(busy, quiet)
    confirmed = ""
    if suspect:
        runs = []
        for ask in (_around, lambda one: (_names(one), _names(one))):
            talk.end()
            _reopened(talk)
            runs.append(ask(talk))
        confirmed = _difference(*runs)
    talk.judge(
        clause,
        not suspect,
        expected="the same names on each connection, whatever was asked before",
        actual=f"other names {confirmed or suspect}",
        at=len(talk.wire.transcript),
        mild=None if confirmed else Breach.NOTE,
    )


def _reopened(talk: Conversation) -> Connection:
    connection = talk.restart()
    connection.open()
    return connection


def _around(talk: Conversation) -> tuple[list[str] | None, list[str] | None]:
    """List before and after other requests."""
    before = _names(talk)
    talk.exercise()
    return before, _names(talk)


def _difference(busy: Sequence[Any], quiet: Sequence[Any]) -> str:
    """Say how two connections differ, on one of which more was asked; each was listed twice."""
    before, after, first, second = (sorted(names or []) for names in (*busy, *quiet))
    if first != second:
        return ""
    if before != after:
        return "after other requests"
    return "" if before == first else "on another connection"


# --- when the list changes


@ambient("prompts-list-changed-notification-legacy")
def announces_a_change_of_its_prompts(record: Record) -> Iterator[Seen]:
    """Between two lists that differ there is a notification, or shortly after."""
    told = [
        entry for entry, message in record.messages(Role.NOTIFICATION) if message.method == CHANGED
    ]
    before: tuple[int, list[str]] | None = None
    for asked, n, at, names in _listings(record):
        if before is not None and before[1] != names:
            held = any(before[0] < entry.n and entry.at <= at + LATE for entry in told)
            expected = f"{CHANGED} between two lists that differ"
            clause = "prompts-list-changed-notification-legacy"
            yield Seen(clause, held, n, expected, _change(before[1], names))
        before = asked, names


def _change(before: list[str], after: list[str]) -> str:
    gone, new = sorted(set(before) - set(after)), sorted(set(after) - set(before))
    words = [
        f"{what}: {', '.join(names)}" for what, names in (("new", new), ("gone", gone)) if names
    ]
    return "; ".join(words) or "the same names in another number"


def _listings(record: Record) -> Iterator[tuple[int, int, float, list[str]]]:
    """Walk the complete lists: line of the first request, line and time of the end, names."""
    names: list[str] = []
    asked, expected = 0, None
    for entry, message in record.answers(Kind.RESULT):
        if message.method != LIST or not isinstance(message.value["result"], dict):
            continue
        request = record.asked_on(message.answers)
        if request is None or not isinstance(request.value, dict):
            continue
        params = request.value.get("params")
        cursor = params.get("cursor") if isinstance(params, dict) else None
        if cursor is None:
            asked, names = request.n, []
        elif cursor != expected:
            asked = 0
        page = message.value["result"].get("prompts")
        names += _named(page) if isinstance(page, list) else []
        expected = message.value["result"].get("nextCursor")
        if asked and not isinstance(expected, str):
            yield asked, entry.n, entry.at, sorted(names)
            asked = 0


@scenario("prompts-list-changed-notification", "prompts-respect-capability-negotiation")
def tells_a_stream_what_it_promised(talk: Conversation) -> None:
    """A stream that asks for changes of the prompts hears of them where that was declared."""
    declared = "prompts-list-changed-notification"
    allowed = "prompts-respect-capability-negotiation"
    promised = talk.spoken.flag("prompts", "listChanged")
    stream = talk.subscribe({"promptsListChanged": True})
    if stream.acknowledged() is None:
        talk.unseen(declared, "no stream could be opened")
        talk.unseen(allowed, "no stream could be opened")
        if not stream.refusal.answered:
            stream.cancel()
        return
    before, after = _around(talk)
    talk.quiet()
    told = [entry for entry, message in stream.heard() if message.method == CHANGED]
    stream.cancel()
    if before is None or after is None or sorted(before) == sorted(after):
        talk.unseen(declared, "the list did not change while it was watched")
    else:
        talk.judge(
            declared,
            bool(told),
            expected=f"{CHANGED} on the stream",
            actual=_change(before, after),
            at=len(talk.wire.transcript),
        )
    if promised:
        talk.unseen(allowed, "the server declares prompts.listChanged")
    else:
        talk.judge(
            allowed,
            not told,
            expected=f"no {CHANGED}, as prompts.listChanged is not declared",
            actual="one came",
            at=told[0] if told else None,
        )
