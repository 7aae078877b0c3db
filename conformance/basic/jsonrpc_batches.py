"""basic/jsonrpc: batches. Only revision 2025-03-26 has them."""

from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    Breach,
    Conversation,
    Entry,
    Kind,
    Message,
    Record,
    Seen,
    Source,
    ambient,
    brief,
    came_instead,
    integral,
    scenario,
    strays,
)

NOTE = {
    "jsonrpc": "2.0",
    "method": "notifications/cancelled",
    "params": {"requestId": "touchstone-never"},
}
"""A notification that each server has to take, and without an effect."""


def _pings(talk: Conversation, count: int) -> list[dict[str, Any]]:
    return [talk.wire.build(talk.wire.ping_method) for _ in range(count)]


def _send(talk: Conversation, members: list[Any], pings: list[dict[str, Any]]) -> int:
    """Send a batch and wait for its pings; an answer to a later ping rules out a slow server."""
    line = talk.wire.say(members, malformed=True)
    talk.wire.ping(required=False)
    talk.wire.wait(lambda: len(_answered(talk, line, pings)) >= len(pings), talk.pace.silence)
    talk.wire.quiet()
    return line


def _answered(talk: Conversation, line: int, pings: list[dict[str, Any]]) -> list[Any]:
    ids = [ping["id"] for ping in pings]
    return [
        message.value.get("id")
        for entry in talk.since(line)
        for message in entry.messages
        if message.kind is Kind.RESULT and message.value.get("id") in ids
    ]


@scenario("jsonrpc-batch-receive", hurts=True)
def serves_a_batch(talk: Conversation) -> None:
    """An array of two pings and a notification gets both pings answered, in any form."""
    pings = _pings(talk, 2)
    line = _send(talk, [pings[0], NOTE, pings[1]], pings)
    found = _answered(talk, line, pings)
    talk.judge(
        "jsonrpc-batch-receive",
        sorted(found) == sorted(ping["id"] for ping in pings),
        expected=f"results for {brief([ping['id'] for ping in pings])}, one each",
        actual=f"results for {brief(found)}" if found else came_instead(talk.wire, line),
        at=line,
    )


@scenario("jsonrpc-batch-members-independent", hurts=True)
def serves_the_valid_members_of_a_batch(talk: Conversation) -> None:
    """A number between two pings gets its own error; the pings are answered."""
    clause = "jsonrpc-batch-members-independent"
    alone = _pings(talk, 1)
    if not _answered(talk, _send(talk, alone, alone), alone):
        talk.judge.unseen(clause, "the server takes no batches; jsonrpc-batch-receive counts that")
        return
    pings = _pings(talk, 2)
    line = _send(talk, [pings[0], 1, pings[1]], pings)
    found = _answered(talk, line, pings)
    errors = [
        (entry, message) for entry, message in strays(talk.wire, line) if "error" in message.value
    ]
    carried = talk.wire.transcript.exchanges
    refused = errors or any(one.line == line and one.status >= 400 for one in carried)
    talk.judge(
        clause,
        len(set(found)) == len(pings),
        expected="both pings answered",
        actual=f"results for {brief(found)}" if found else came_instead(talk.wire, line),
        at=errors[0][0] if errors else line,
        mild=Breach.WARN if refused else None,
    )
    talk.judge(
        clause,
        any(message.code == -32600 or not integral(message.code) for _, message in errors),
        expected="error -32600 for the member that is a number",
        actual=f"error {brief(errors[0][1].code)}" if errors else "none",
        at=errors[0][0] if errors else line,
        mild=Breach.WARN,
    )


def _replies(talk: Conversation, line: int) -> list[tuple[Entry, Message | None]]:
    """Return the replies without ids to a batch, or None if the server answered an empty array."""
    found: list[tuple[Entry, Message | None]] = list(strays(talk.wire, line))
    found += [
        (e, None) for e in talk.since(line) if e.reading is not None and e.reading.value == []
    ]
    return found


@scenario("jsonrpc-batch-notifications-only", hurts=True)
def does_not_answer_a_batch_of_notifications(talk: Conversation) -> None:
    """An array of notifications gets no answer, not even an empty array."""
    clause = "jsonrpc-batch-notifications-only"
    line = talk.wire.say([NOTE, NOTE], malformed=True)
    talk.wire.quiet()
    after = talk.wire.ping(required=False)
    talk.wire.quiet()
    stray = _replies(talk, line)
    expected = "no answer to a batch of notifications"
    alone = _pings(talk, 1)
    as_a_whole = [
        message and (message.value.get("id"), "error" in message.value) for _, message in stray
    ]
    unread = as_a_whole == [(None, True)] and not _answered(talk, _send(talk, alone, alone), alone)
    talk.judge(
        clause,
        not stray,
        expected=expected,
        actual=stray[0][0].text if stray else "",
        at=stray[0][0] if stray else None,
        mild=Breach.WARN if unread else None,
    )
    talk.judge.expect_answer(after, clause, f"{expected}, and an answer to the next request")


@scenario("jsonrpc-batch-empty", hurts=True)
def refuses_an_empty_batch(talk: Conversation) -> None:
    """An empty array gets one error -32600, not an array."""
    clause, expected = "jsonrpc-batch-empty", "one error -32600"
    line = talk.wire.say([], malformed=True)
    talk.wire.quiet()
    after = talk.wire.ping(required=False)
    talk.wire.quiet()
    talk.judge.expect_answer(after, clause, "an answer to the next request")
    replies = _replies(talk, line)
    if not replies and after.answered:
        actual = came_instead(talk.wire, line)
        talk.judge(clause, False, expected=expected, actual=actual, at=line, mild=Breach.WARN)
    for entry, message in replies:
        refused = message is not None and "error" in message.value and not message.batched
        code = message.code if message is not None else None
        talk.judge(
            clause,
            refused and (code == -32600 or not integral(code)),
            expected=expected,
            actual=entry.text,
            at=entry,
            mild=Breach.WARN if refused else None,
        )


@ambient("jsonrpc-batch-send", "jsonrpc-no-batch-output")
def sends_batches_only_where_they_exist(record: Record) -> Iterator[Seen]:
    """Arrays are sent in 2025-03-26 only, and are neither empty nor mixed."""
    batched = set()
    for entry in record.transcript:
        if entry.source is Source.US and isinstance(entry.value, list):
            batched.add(entry.scenario)
        if entry.reading is None or not entry.reading.readable:
            continue
        value = entry.reading.value
        array = isinstance(value, list)
        expected = "one message object" + (" per line" if entry.origin is None else "")
        yield Seen("jsonrpc-no-batch-output", not array, entry.n, expected, "an array")
        # The scenario that sends a batch judges an empty array in reply to it.
        if array and (value or entry.scenario not in batched):
            wrong = _batch_fault(entry)
            expected = "only responses, or only requests and notifications"
            yield Seen("jsonrpc-batch-send", not wrong, entry.n, expected, wrong)


def _batch_fault(entry: Entry) -> str:
    if not entry.messages:
        return "an empty array"
    if any(not isinstance(message.value, dict) for message in entry.messages):
        return "a member that is not an object"
    kinds = {message.kind for message in entry.messages}
    mixed = kinds & {Kind.RESULT, Kind.ERROR} and kinds & {Kind.REQUEST, Kind.NOTIFICATION}
    return "responses mixed with requests or notifications" if mixed else ""
