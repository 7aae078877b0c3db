"""server/resources: notifications of changes in a session. 2026-07-28 sends them on streams."""

from collections.abc import Callable, Iterator

from mcp_touchstone.suite import (
    Conversation,
    Message,
    Place,
    Record,
    Role,
    SafePath,
    Seen,
    ambient,
    brief,
    edit,
    find_file_resource,
    list_in,
    listings,
    scenario,
    value_in,
)

UPDATED = "notifications/resources/updated"
LIST_CHANGED = "notifications/resources/list_changed"
PATIENCE = 2.5
"""Seconds a change may take to show: some servers poll about once a second."""
LATER = 1.3
"""Seconds to listen for notifications that must not come."""


@ambient("resources-updated-only-after-subscribe")
def sends_updates_only_after_subscribe(record: Record) -> Iterator[Seen]:
    """No update of a resource is sent before the first resources/subscribe."""
    clause, expected = "resources-updated-only-after-subscribe", "updates only after a subscribe"
    for entry in record.transcript:
        value = entry.value
        if isinstance(value, dict) and value.get("method") == "resources/subscribe":
            break
        for message in entry.messages:
            if message.role is Role.NOTIFICATION and message.method == UPDATED:
                yield Seen(clause, False, entry.n, expected, "an update without a subscription")
    yield Seen(clause, True)


@scenario("resources-subscribe-result")
def accepts_subscribe_and_unsubscribe(talk: Conversation) -> None:
    """Both subscribe and unsubscribe for a listed resource get a result."""
    clause = "resources-subscribe-result"
    read = (example for example in talk.examples("readable-resource") if "uri" in example.item)
    uri = next((example.item["uri"] for example in read), None)
    if uri is None:
        talk.judge.unseen(clause, "no listed resource could be read")
        return
    for method in ("resources/subscribe", "resources/unsubscribe"):
        reply = talk.wire.request(method, {"uri": uri})
        if not reply.answered or reply.code == -32601:
            talk.judge.unseen(clause, f"another clause judges {reply}")
            return
        expected = f"a result for {method} of {brief(uri, 80)}"
        talk.judge.expect(reply, clause, not reply.is_error, expected)


@scenario("resources-subscribe-removed")
def refuses_the_removed_subscribe(talk: Conversation) -> None:
    """resources/subscribe and resources/unsubscribe get an error in a stateless revision."""
    listed = talk.spoken.named("resources", "uri")
    uri = listed[0]["uri"] if listed else "touchstone-never://nothing"
    for method in ("resources/subscribe", "resources/unsubscribe"):
        reply = talk.wire.request(method, {"uri": uri})
        talk.judge.expect(
            reply,
            "resources-subscribe-removed",
            reply.result is None,
            f"an error for {method}, which this revision removed",
        )


@scenario(
    "resources-list-changed-notification-legacy",
    "resources-updated-notification-legacy",
    "resources-no-updates-after-unsubscribe",
    place=Place.OWN_FOLDER,
    lasts=True,
)
def notifies_a_session_of_changes(talk: Conversation) -> None:
    """A new file is announced to a session, and an edited file until unsubscribe."""
    changed, sent, quiet = (
        "resources-list-changed-notification-legacy",
        "resources-updated-notification-legacy",
        "resources-no-updates-after-unsubscribe",
    )
    talk.wire.open()
    if not talk.server.hears_notifications():
        talk.judge.unseen(
            (changed, sent, quiet), "the server refused the stream that would carry notifications"
        )
        return
    listed = listings.keys(talk, "resources")
    found = find_file_resource(talk, listed or [])
    if found is None:
        talk.judge.unseen((changed, sent, quiet), "no listed resource is a file of the root")
        return
    uri, file = found
    watches = talk.judge.covers(quiet) and (
        talk.wire.request("resources/subscribe", {"uri": uri}, required=False).result is not None
    )
    line = len(talk.wire.transcript)
    edit(file)
    (talk.root / "added.txt").write_text("added\n")
    if talk.judge.covers(changed):
        _judge_new_file(talk, changed, listed, line)
    heard = bool(watches and talk.wire.wait(lambda: _heard(talk, line, _updates(uri)), PATIENCE))
    if not watches:
        talk.judge.unseen(sent, "the server did not accept a subscription to the resource")
    else:
        heard = _judge_update(talk, sent, uri, file, lambda: _heard(talk, line, _updates(uri)))
    if not heard:
        talk.judge.unseen(quiet, "no update was seen during the subscription")
        return
    talk.wire.request("resources/unsubscribe", {"uri": uri}, required=False)
    talk.wire.quiet()
    line = len(talk.wire.transcript)
    edit(file)
    talk.wire.wait(lambda: _heard(talk, line, _updates(uri)), LATER)
    late = _heard(talk, line, _updates(uri))
    talk.judge(
        quiet,
        not late,
        expected=f"no update of {brief(uri, 80)} after unsubscribe",
        actual="an update",
        at=late[0] if late else None,
    )


def _judge_new_file(talk: Conversation, clause: str, listed: list[str] | None, line: int) -> None:
    """Judge whether a change of the list after a line was announced."""
    differs = listings.until_changed(talk, "resources", listed, PATIENCE)
    if differs is None:
        talk.judge.unseen(clause, "a new file did not change the list")
        return
    talk.wire.wait(lambda: _heard(talk, line, _is(LIST_CHANGED)), talk.pace.silence)
    talk.judge(
        clause,
        bool(_heard(talk, line, _is(LIST_CHANGED))),
        expected=f"{LIST_CHANGED}, because the list changed",
        actual="no such notification",
        at=differs,
    )


def _judge_update(
    talk: Conversation, clause: str, uri: str, file: SafePath, heard: Callable[[], list[int]]
) -> bool:
    """Judge whether the edit of a watched resource was reported, if a read shows it.

    After the read, a late server has the same time once more.
    """
    read = talk.wire.request("resources/read", {"uri": uri}, required=False)
    texts = [value_in(one, "text") for one in list_in(read.result, "contents")]
    if file.read_text() not in texts:
        talk.judge.unseen(clause, "a read does not show the edited file")
        return bool(heard())
    return talk.judge(
        clause,
        bool(talk.wire.wait(heard, PATIENCE)),
        expected=f"{UPDATED} for {brief(uri, 80)}, whose content has changed",
        actual="no such notification",
        at=read,
    )


def _heard(talk: Conversation, line: int, fits: Callable[[Message], bool]) -> list[int]:
    """Return the numbers of later lines with a matching notification."""
    return [
        entry.n
        for entry in talk.since(line)
        for message in entry.messages
        if message.role is Role.NOTIFICATION and fits(message)
    ]


def _is(method: str) -> Callable[[Message], bool]:
    return lambda message: message.method == method


def _updates(uri: str) -> Callable[[Message], bool]:
    def fits(message: Message) -> bool:
        named = value_in(message.value, "params", "uri")
        return message.method == UPDATED and named == uri

    return fits
