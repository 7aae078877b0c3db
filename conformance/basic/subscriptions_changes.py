"""basic/patterns/subscriptions: notifications of changes."""

from mcp_touchstone.suite import (
    Conversation,
    Entry,
    Message,
    Place,
    SafePath,
    Subscription,
    brief,
    edit,
    find_file_resource,
    list_in,
    listings,
    scenario,
    value_in,
)

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
UPDATED = "notifications/resources/updated"
LIST_CHANGED = "notifications/resources/list_changed"
PATIENCE = 2.5
"""Seconds a change may take to show: some servers poll about once a second."""
GRACE = 0.6
"""Seconds in which a message may follow once the server has read a cancellation."""
LATER = 1.3
"""Seconds to listen for notifications that must not come."""


CHANGED = "resources-list-changed-notification"
SENT = "resources-updated-notification"
REQUESTED = "subscriptions-only-requested"
NAMED = "subscriptions-id-in-meta"
CANCELLED = "subscriptions-cancel-ends"


@scenario(CHANGED, SENT, REQUESTED, NAMED, CANCELLED, place=Place.OWN_FOLDER, lasts=True)
def notifies_subscriptions_of_changes(talk: Conversation) -> None:
    """A new file and an edited file are reported to the right streams until they are cancelled."""
    talk.wire.open()
    listed = listings.keys(talk, "resources")
    found = find_file_resource(talk, listed or [])
    if found is None:
        talk.judge.unseen(
            (CHANGED, SENT, REQUESTED, NAMED, CANCELLED), "no listed resource is a file of the root"
        )
        return
    uri, file = found
    silent = Subscription(talk.wire, {}, id="touchstone-nothing")
    lists = Subscription(talk.wire, {"resourcesListChanged": True}, id="touchstone-list")
    single = Subscription(talk.wire, {"resourceSubscriptions": [uri]})
    for stream in (silent, lists, single):
        stream.acknowledged()
    edit(file)
    (talk.root / "added.txt").write_text("added\n")
    _judge_list_change(talk, lists, listed)
    _judge_update(talk, single, uri, file)
    heard = [stream for stream in (lists, single) if _changes(stream)]
    if not heard:
        talk.judge.unseen((REQUESTED, NAMED, CANCELLED), "no notification of a change came")
        return
    _judge_streams(talk, silent, lists, single)
    for stream in heard:
        stream.cancel()
    talk.wire.ping(required=False)
    talk.wire.quiet(GRACE)
    line = len(talk.wire.transcript)
    edit(file)
    (talk.root / "more.txt").write_text("more\n")
    talk.wire.wait(lambda: any(stream.heard(line) for stream in heard), LATER)
    late = [entry for stream in heard for entry, _ in stream.heard(line)]
    talk.judge(
        CANCELLED,
        not late,
        expected="no notification for a cancelled subscription",
        actual="a notification with its id",
        at=late[0] if late else None,
    )


def _judge_list_change(talk: Conversation, lists: Subscription, listed: list[str] | None) -> None:
    """Wait until the list changed, and judge whether its stream reported that."""
    promised = lists.granted.get("resourcesListChanged") and not lists.refusal.answered
    if not promised:
        talk.judge.unseen(CHANGED, "the server did not grant resourcesListChanged")
        return
    differs = listings.until_changed(talk, "resources", listed, PATIENCE)
    if differs is None:
        talk.judge.unseen(CHANGED, "a new file did not change the list")
        return
    talk.wire.wait(lambda: _reports(lists, LIST_CHANGED), talk.pace.silence)
    talk.judge(
        CHANGED,
        _reports(lists, LIST_CHANGED),
        expected=f"{LIST_CHANGED} on the stream that requested it, after the list changed",
        actual="no such notification",
        at=differs,
    )


def _judge_update(talk: Conversation, single: Subscription, uri: str, file: SafePath) -> None:
    """Judge whether the edit of a watched resource was reported, if a read shows it."""
    if not single.granted.get("resourceSubscriptions") or single.refusal.answered:
        talk.judge.unseen(SENT, "the server did not acknowledge the resource")
        return
    talk.wire.wait(lambda: _reports(single, UPDATED), PATIENCE)
    read = talk.wire.request("resources/read", {"uri": uri}, required=False)
    texts = [value_in(one, "text") for one in list_in(read.result, "contents")]
    if file.read_text() not in texts:
        talk.judge.unseen(SENT, "a read does not show the edited file")
        return
    talk.judge(
        SENT,
        _reports(single, UPDATED),
        expected=f"{UPDATED} for {brief(uri, 80)}, whose content has changed",
        actual="no such notification",
        at=read,
    )


def _judge_streams(talk: Conversation, silent: Subscription, *others: Subscription) -> None:
    """Judge that the stream with an empty filter is silent, and that no notification lacks an id.

    The rules on all traffic compare each notification with the filter of its stream.
    """
    extra = _changes(silent)
    talk.judge(
        REQUESTED,
        not extra,
        expected="no notification on a subscription with an empty filter",
        actual=f"{extra[0][1].method}" if extra else "",
        at=extra[0][0] if extra else None,
    )
    known = [message for stream in (silent, *others) for _, message in stream.heard()]
    stray = [
        entry
        for entry in talk.since(silent.line)
        for message in entry.messages
        if message.method in {UPDATED, LIST_CHANGED} and message not in known
    ]
    talk.judge(
        NAMED,
        not stray,
        expected="the id of an open subscription in each notification of a change",
        actual="a notification without such an id",
        at=stray[0] if stray else None,
    )


def _changes(stream: Subscription) -> list[tuple[Entry, Message]]:
    """Return the notifications of a stream except acknowledgments."""
    return [(entry, message) for entry, message in stream.heard() if message.method != ACKNOWLEDGED]


def _reports(stream: Subscription, method: str) -> bool:
    return any(message.method == method for _, message in stream.heard())
