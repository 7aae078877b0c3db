"""server/prompts: declaration and lists of prompts, and notifications of changes."""

from collections.abc import Iterator

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Place,
    Record,
    Seen,
    Subscription,
    ambient,
    listings,
    scenario,
    shapes,
)

LIST = "prompts/list"
CHANGED = "notifications/prompts/list_changed"


@scenario("prompts-capability-declared")
def declares_the_prompts_it_offers(talk: Conversation) -> None:
    """A server that does not declare prompts lists none."""
    clause = "prompts-capability-declared"
    declared = "prompts" in talk.spoken.capabilities
    reply = talk.wire.request(LIST)
    talk.judge.expect(
        reply,
        clause,
        declared or not (reply.result or {}).get("prompts"),
        "no prompts, because the capability is not declared",
    )


@ambient(
    "prompts-list-result-shape",
    "prompts-definition-shape",
    "prompts-get-result-shape",
    "prompts-message-shape",
)
def writes_prompts_in_the_right_types(record: Record) -> Iterator[Seen]:
    """Lists, definitions and messages of prompts have the types of the revision."""
    yield from shapes(record)


@scenario("prompts-list-must-answer")
def lists_its_prompts(talk: Conversation) -> None:
    """prompts/list gets a result, perhaps an empty one."""
    listings.judge_served(talk, LIST, "prompts-list-must-answer")


@scenario("prompts-name-unique")
def gives_prompts_unique_names(talk: Conversation) -> None:
    """No two listed prompts have the same name."""
    listings.judge_unique(talk, "prompts", "prompts-name-unique")


# --- the same list on every connection


@scenario("prompts-list-not-per-connection", place=Place.SEVERAL)
def lists_the_same_prompts_on_every_connection(talk: Conversation) -> None:
    """Another process lists the same prompts, and other requests do not change them."""
    clause = "prompts-list-not-per-connection"
    busy, quiet = listings.side_by_side(talk, "prompts", talk.examples.exercise)
    if None in (*busy, *quiet):
        talk.judge.unseen(clause, "the list could not be read completely")
        return
    if not any((*busy, *quiet)):
        talk.judge.unseen(clause, listings.NOTHING)
        return
    suspect = listings.varies(busy, quiet)
    confirmed = (
        listings.varies(*listings.in_turn(talk, "prompts", talk.examples.exercise))
        if suspect
        else ""
    )
    talk.judge(
        clause,
        not suspect,
        expected="the same names on each connection and after other requests",
        actual=f"other names {confirmed or suspect}",
        at=len(talk.wire.transcript),
        mild=None if confirmed else Breach.NOTE,
    )


# --- changes of the list


@ambient("prompts-list-changed-notification-legacy")
def announces_changes_of_its_prompts(record: Record) -> Iterator[Seen]:
    """A changed list is announced before the next list, or shortly after."""
    for listing, how, announced in listings.changes(record, "prompts"):
        expected = f"{CHANGED} between two lists that differ"
        yield Seen(
            "prompts-list-changed-notification-legacy", announced, listing.line, expected, how
        )


@scenario("prompts-list-changed-notification", "prompts-respect-capability-negotiation")
def notifies_a_subscription_of_changed_prompts(talk: Conversation) -> None:
    """A subscription to changes of the prompts gets them if the server declared that."""
    declared = "prompts-list-changed-notification"
    allowed = "prompts-respect-capability-negotiation"
    promised = talk.spoken.flag("prompts", "listChanged")
    stream = Subscription(talk.wire, {"promptsListChanged": True})
    if stream.acknowledged() is None:
        talk.judge.unseen((declared, allowed), "no subscription could be opened")
        if not stream.refusal.answered:
            stream.cancel()
        return
    before, after = listings.around(talk, "prompts", talk.examples.exercise)
    how = listings.difference(before, after) if before and after is not None else ""
    talk.wire.quiet(listings.LATE if how else None)
    announced = [entry for entry, message in stream.heard() if message.method == CHANGED]
    stream.cancel()
    if not how:
        talk.judge.unseen(declared, "the list did not change during the subscription")
    else:
        talk.judge(
            declared,
            bool(announced),
            expected=f"{CHANGED} on the subscription",
            actual=how,
            at=len(talk.wire.transcript),
        )
    if promised:
        talk.judge.unseen(allowed, "the server declares prompts.listChanged")
    else:
        talk.judge(
            allowed,
            not announced,
            expected=f"no {CHANGED}, because prompts.listChanged is not declared",
            actual="such a notification",
            at=announced[0] if announced else None,
        )
