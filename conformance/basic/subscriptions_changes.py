"""basic/patterns/subscriptions: what streams carry when something changes."""

from mcp_touchstone.suite import (
    Conversation,
    Subscription,
    edit,
    listings,
    scenario,
    served,
)

UPDATED = "notifications/resources/updated"
LIST_CHANGED = "notifications/resources/list_changed"
PATIENCE = 2.5
"""Seconds a change may take to show: servers that poll look once a second or so."""
LATER = 1.3
"""Seconds to listen for what must not come."""


@scenario(
    "resources-list-changed-notification",
    "subscriptions-only-requested",
    "subscriptions-id-in-meta",
    "subscriptions-cancel-ends",
    apart=True,
    lasts=True,
)
def tells_a_stream_what_it_asked_for(talk: Conversation) -> None:
    """A new file and an edited one are told to the streams that asked, until they are cancelled."""
    clauses = (
        "resources-list-changed-notification",
        "subscriptions-only-requested",
        "subscriptions-id-in-meta",
        "subscriptions-cancel-ends",
    )
    talk.wire.open()
    listed = listings.keys(talk, "resources")
    found = served(talk, listed or [])
    if found is None:
        for clause in clauses:
            talk.unseen(clause, "no listed resource is a file of the tree it was given")
        return
    uri, file = found
    silent = talk.subscribe({}, id="touchstone-nothing")
    lists = talk.subscribe({"resourcesListChanged": True}, id="touchstone-list")
    single = talk.subscribe({"resourceSubscriptions": [uri]})
    for stream in (silent, lists, single):
        stream.acknowledged()
    edit(file)
    (talk.root / "added.txt").write_text("added\n", encoding="utf-8")
    promised = lists.granted.get("resourcesListChanged") and not lists.refusal.answered
    differs = listings.until_changed(talk, "resources", listed, PATIENCE) if promised else None
    watched = bool(single.granted.get("resourceSubscriptions"))
    if watched:
        talk.wire.wait(lambda: _told(single, UPDATED), PATIENCE)
    if differs is None:
        talk.unseen(clauses[0], "a new file did not change the list, or nobody was to be told")
    else:
        talk.wire.wait(lambda: _told(lists, LIST_CHANGED), talk.pace.silence)
        talk.judge(
            clauses[0],
            _told(lists, LIST_CHANGED),
            expected=f"{LIST_CHANGED} on the stream that asked for it, as the list has changed",
            actual="no such notification",
            at=differs,
        )
    heard = [stream for stream in (lists, single) if stream.heard()[1:]]
    for clause in clauses[1:3]:
        if heard:  # what came amiss is told by the rules on all traffic
            talk.judge(clause, True, expected="what was asked for, under its id")
        else:
            talk.unseen(clause, "nothing was told")
    if not heard:
        talk.unseen(clauses[3], "nothing was told before it was cancelled")
        return
    for stream in heard:
        stream.cancel()
    talk.quiet(0.5)
    line = len(talk.wire.transcript)
    edit(file)
    (talk.root / "more.txt").write_text("more\n", encoding="utf-8")
    talk.wire.wait(lambda: any(stream.heard(line) for stream in heard), LATER)
    late = [entry for stream in heard for entry, _ in stream.heard(line)]
    talk.judge(
        clauses[3],
        not late,
        expected="nothing more on a subscription that was cancelled",
        actual="a notification with its id",
        at=late[0] if late else None,
    )


def _told(stream: Subscription, method: str) -> bool:
    return any(message.method == method for _, message in stream.heard())
