"""server/tools: declaration, lists and definitions of tools. ``tools_*`` call them."""

import re
from collections.abc import Iterator

from mcp_touchstone.suite import (
    DIALECTS,
    Conversation,
    Flaw,
    Place,
    Record,
    Seen,
    Subscription,
    Typed,
    ambient,
    brief,
    dialect_of,
    each,
    listings,
    scenario,
    shapes,
    violations,
)

LIST = "tools/list"
ORDER = "tools-list-deterministic-order"
CHANGED = "notifications/tools/list_changed"
LONGEST = 128
NAME = re.compile(r"[A-Za-z0-9_.-]*")
ANY = "tools-input-schema-valid-any-dialect"


@scenario("tools-capability-declared")
def declares_the_tools_it_offers(talk: Conversation) -> None:
    """A server that does not declare tools lists none."""
    clause = "tools-capability-declared"
    declared = "tools" in talk.spoken.capabilities
    reply = talk.wire.request(LIST)
    talk.judge.expect(
        reply,
        clause,
        declared or not (reply.result or {}).get("tools"),
        "no tools, because the capability is not declared",
    )


# --- definitions


@ambient(
    "tools-list-result-shape",
    "tools-definition-shape",
    "tools-input-schema-type-object",
    "tools-input-schema-properties-shape",
    "tools-input-schema-not-null",
    "tools-output-schema-object-root",
    "tools-annotations-shape",
    "tools-call-result-shape",
    "tools-structured-content-object",
)
def writes_tools_in_the_right_types(record: Record) -> Iterator[Seen]:
    """Lists, definitions, schemas and results of tools have the types of the revision."""
    yield from shapes(record)


@ambient("tools-input-schema-valid-any-dialect")
def sends_tool_schemas_of_some_dialect(record: Record) -> Iterator[Seen]:
    """Schemas are valid in the dialect they name, or in any dialect if they name none."""
    for message, place, schema in each(record, "InputSchema", "OutputSchema"):
        if not schema.get("$schema") or dialect_of(schema):
            expected = f"{place}: a JSON Schema"
            yield message.seen(ANY, _wrong(message, place, schema), expected=expected)


def _wrong(message: Typed, place: str, schema: dict[str, object]) -> list[Flaw]:
    """List the flaws of a schema in its best dialect, except those that another clause judges."""
    flaws = [flaw for flaw in message.look.flaws if flaw.path.startswith(place)]
    mine = [flaw for flaw in flaws if flaw.clause == ANY]
    elsewhere = {flaw.path for flaw in flaws}
    dialects = [dialect_of(schema)] if schema.get("$schema") else [*DIALECTS]
    fewest: list[Flaw] | None = None
    for dialect in reversed(dialects):
        found = []
        for at, why in violations(schema, dialect):
            path = place + ("" if at.startswith("[") or not at else ".") + at
            if path not in elsewhere:
                found.append(Flaw(path, why))
        if not found:
            return mine
        if fewest is None or len(found) < len(fewest):
            fewest = found
    return [*mine, *(fewest or [])]


@ambient("tools-name-length", "tools-name-characters")
def gives_tools_valid_names(record: Record) -> Iterator[Seen]:
    """Names have 1 to 128 ASCII letters, digits, underscores, hyphens and dots."""
    for message, place, tool in each(record, "Tool"):
        if isinstance(name := tool.get("name"), str):
            n, actual = message.entry.n, f"{place}.name: {brief(name, 80)}, {len(name)} characters"
            passed = 1 <= len(name) <= LONGEST
            yield Seen("tools-name-length", passed, n, f"1 to {LONGEST} characters", actual)
            passed = NAME.fullmatch(name) is not None
            yield Seen("tools-name-characters", passed, n, "A-Z, a-z, 0-9, _, - and . only", actual)


@scenario("tools-list-must-answer")
def lists_its_tools(talk: Conversation) -> None:
    """tools/list gets a result, perhaps an empty one."""
    listings.judge_served(talk, LIST, "tools-list-must-answer")


@scenario("tools-name-unique")
def gives_tools_unique_names(talk: Conversation) -> None:
    """No two listed tools have the same name."""
    listings.judge_unique(talk, "tools", "tools-name-unique")


# --- the same list on every connection


@scenario("tools-list-not-per-connection", ORDER, place=Place.SEVERAL)
def lists_the_same_tools_on_every_connection(talk: Conversation) -> None:
    """Another process lists the same tools in the same order, and so does a process in use.

    The other lists are read between two lists on the first connection.
    """
    busy, quiet = listings.side_by_side(talk, "tools", lambda: _list_others(talk))
    if None in (*busy, *quiet):
        talk.judge.unseen(
            ("tools-list-not-per-connection", ORDER),
            "the list could not be read completely",
        )
        return
    if not any((*busy, *quiet)):
        talk.judge.unseen(("tools-list-not-per-connection", ORDER), listings.NOTHING)
        return
    _judge_order(talk, [*busy, *quiet])
    varies = listings.varies(busy, quiet)
    if varies:
        varies = listings.varies(*listings.in_turn(talk, "tools", lambda: _list_others(talk)))
    talk.judge(
        "tools-list-not-per-connection",
        not varies,
        expected="the same names on each connection and after other requests",
        actual=f"other names {varies}",
        at=len(talk.wire.transcript),
    )


def _list_others(talk: Conversation) -> None:
    for method in talk.spoken.declared_list_methods:
        talk.wire.request(method)


def _judge_order(talk: Conversation, lists: list[list[str] | None]) -> None:
    if all(len(names or ()) < 2 for names in lists):
        talk.judge.unseen(ORDER, "the server lists one tool only")
        return
    orders = {tuple(names or ()) for names in lists}
    sets = {tuple(sorted(order)) for order in orders}
    talk.judge(
        ORDER,
        len(orders) == len(sets),
        expected="the same tools in the same order",
        actual=" / ".join(", ".join(order[:5]) for order in sorted(orders)[:2]),
        at=len(talk.wire.transcript),
    )


# --- changes of the list


@ambient("tools-list-changed-notification-legacy")
def announces_changes_of_its_tools(record: Record) -> Iterator[Seen]:
    """A changed list is announced before the next list, or shortly after."""
    for listing, how, announced in listings.changes(record, "tools"):
        clause, expected = "tools-list-changed-notification-legacy", f"{CHANGED} on a change"
        yield Seen(clause, announced, listing.line, expected, how)


@scenario("tools-list-changed-notification")
def notifies_a_subscription_of_changed_tools(talk: Conversation) -> None:
    """A subscription to changes of the tools gets a notification of each change."""
    clause = "tools-list-changed-notification"
    stream = Subscription(talk.wire, {"toolsListChanged": True})
    if stream.acknowledged() is None:
        talk.judge.unseen(clause, "no subscription could be opened")
        if not stream.refusal.answered:
            stream.cancel()
        return
    before, after = listings.around(talk, "tools", lambda: _list_others(talk))
    how = listings.difference(before, after) if before and after is not None else ""
    announced = [message for _, message in stream.heard() if message.method == CHANGED]
    if how and not announced:
        talk.wire.quiet(listings.LATE)
        announced = [message for _, message in stream.heard() if message.method == CHANGED]
    stream.cancel()
    if not how:
        talk.judge.unseen(clause, "the list did not change during the subscription")
        return
    talk.judge(
        clause,
        bool(announced),
        expected=f"{CHANGED} on the subscription",
        actual=how,
        at=len(talk.wire.transcript),
    )
