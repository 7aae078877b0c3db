"""server/logging: the shape, the recipients and the levels of log messages."""

from collections.abc import Iterator, Sequence
from typing import Any

from mcp_touchstone.suite import (
    META,
    Breach,
    Conversation,
    Entry,
    Example,
    Kind,
    Pending,
    Record,
    Reply,
    Role,
    Seen,
    Subscription,
    ambient,
    brief,
    object_in,
    scenario,
    shapes,
)

LOGGED = "notifications/message"
SET = "logging/setLevel"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
SUBSCRIPTION = META + "subscriptionId"
LEVEL = META + "logLevel"


# --- every log message


@ambient("logging-message-shape", "logging-level-enum")
def writes_log_messages_in_the_right_types(record: Record) -> Iterator[Seen]:
    """A log message has data and one of the eight levels; its logger is a string."""
    yield from shapes(record)


@ambient("logging-capability-declared", "logging-no-sensitive-content")
def logs_only_as_declared_and_without_credentials(record: Record) -> Iterator[Seen]:
    """A server that logs to the client declares logging, and logs no credentials."""
    declared = _declares(record)
    canary = record.profile.canary
    for entry in _logged(record):
        if declared is not None:
            clause, expected = "logging-capability-declared", "the logging capability"
            yield Seen(clause, declared, entry.n, expected, f"{LOGGED} without it")
        if canary is not None:
            leaked = canary.secret in entry.text
            clause, actual = "logging-no-sensitive-content", "the key from the environment"
            yield Seen(clause, not leaked, entry.n, "no credential in a log message", actual)


def _logged(record: Record) -> Iterator[Entry]:
    for entry, message in record.messages(Role.NOTIFICATION):
        if message.method == LOGGED:
            yield entry


def _declares(record: Record) -> bool | None:
    """Whether the server declared logging on this connection; None if it declared nothing."""
    for _, message in record.answers(Kind.RESULT, "initialize", "server/discover"):
        result = message.value["result"]
        if isinstance(result, dict):
            found = result.get("capabilities")
            return isinstance(found, dict) and "logging" in found
    spoken = record.profile.spoken.get(record.revision)
    return None if spoken is None else "logging" in spoken.capabilities


# --- the level of a session


@scenario("logging-set-level-accepted", "logging-invalid-level-error-legacy")
def accepts_only_the_eight_levels(talk: Conversation) -> None:
    """logging/setLevel accepts the eight levels, and refuses others with error -32602."""
    for level in reversed(LEVELS):
        reply = _set(talk, level)
        talk.judge.expect(
            reply,
            "logging-set-level-accepted",
            reply.result is not None or not reply.is_error or reply.code == -32601,
            f"a result for level {level}",
            mild=Breach.WARN if reply.code == -32603 else None,
        )
    for odd in ("verbose", "INFO", 3):
        reply = _set(talk, odd)
        talk.judge.expect_refusal(
            reply,
            "logging-invalid-level-error-legacy",
            (-32602, -32601),
            f"error -32602 for level {brief(odd)}",
        )
    _set(talk, LEVELS[0])


def _set(talk: Conversation, level: Any) -> Reply:
    return talk.wire.request(SET, {"level": level})


@scenario("logging-threshold-respected", "logging-level-included")
def respects_the_log_level(talk: Conversation) -> None:
    """No message below emergency is sent after the level was set to emergency.

    At the level of the most severe message of a request, that message is still sent.
    """
    clause, included = "logging-threshold-respected", "logging-level-included"
    _set(talk, "debug")
    logged = [
        example
        for example in talk.examples("log-traffic")
        if example.method and _logs_of(talk, example)
    ]
    if not logged:
        talk.judge.unseen((clause, included), "no repeatable request makes the server log")
        return
    for example in logged[:1]:
        _judge_included(talk, included, example)
    reply = _set(talk, "emergency")
    talk.wire.quiet()
    line = len(talk.wire.transcript)
    for example in logged if reply.result is not None else ():
        talk.wire.request(example.method, example.params, required=False)
    talk.wire.quiet()
    later = _heard(talk.since(line))
    low = [(entry, level) for entry, level, _ in later if _is_below(level, "emergency")]
    _set(talk, "debug")
    if reply.result is None:
        talk.judge.unseen(clause, "the level could not be set")
        return
    talk.judge(
        clause,
        not low,
        expected="no message below emergency",
        actual=f"level {low[0][1]}" if low else "",
        at=low[0][0] if low else None,
    )


def _judge_included(talk: Conversation, clause: str, example: Example) -> None:
    """Judge that the most severe message of a request is sent at its own level."""
    before = _severest(_logs_of(talk, example))
    if before is None or _set(talk, before).result is None:
        talk.judge.unseen(clause, "the request did not log again, or the level could not be set")
        _set(talk, "debug")
        return
    line = len(talk.wire.transcript)
    found = _logs_of(talk, example)
    _set(talk, "debug")
    if _severest(_logs_of(talk, example)) != before:
        talk.judge.unseen(clause, "the request logs something else each time")
        return
    talk.judge(
        clause,
        any(level == before for _, level in found),
        expected=f"a message of level {before} at level {before}, as at level debug",
        actual="none",
        at=line,
    )


def _severest(found: list[tuple[Entry, Any]]) -> str | None:
    levels = [level for _, level in found if level in LEVELS]
    return max(levels, key=LEVELS.index) if levels else None


def _logs_of(talk: Conversation, example: Example) -> list[tuple[Entry, Any]]:
    """Send a request; return its log messages, or else those shortly after, with their levels."""
    line = len(talk.wire.transcript)
    talk.run(example, required=False)
    if not _heard(talk.since(line)):
        talk.wire.quiet()
    return [(entry, level) for entry, level, _ in _heard(talk.since(line))]


def _heard(entries: Sequence[Entry]) -> list[tuple[Entry, Any, dict[str, Any]]]:
    """Return (line, level, ``_meta``) for each log message."""
    found = []
    for entry in entries:
        for message in entry.messages:
            if message.role is Role.NOTIFICATION and message.method == LOGGED:
                body = object_in(message.value, "params")
                found.append((entry, body.get("level"), object_in(body, "_meta")))
    return found


def _is_below(level: Any, least: str) -> bool:
    return level in LEVELS and LEVELS.index(level) < LEVELS.index(least)


# --- the level of a stateless request


@scenario("logging-no-messages-without-request-level", "logging-request-level-threshold")
def logs_only_for_requests_with_a_level(talk: Conversation) -> None:
    """A request without logLevel gets no log messages; one at level error gets none below."""
    example = talk.examples.best("log-traffic")
    for clause, level in (
        ("logging-no-messages-without-request-level", None),
        ("logging-request-level-threshold", "error"),
    ):
        if not _during(talk, example, "debug"):
            talk.judge.unseen(clause, "the request did not make the server log again")
            continue
        found = _during(talk, example, level)
        wrong = [pair for pair in found if level is None or _is_below(pair[1], level)]
        talk.judge(
            clause,
            not wrong,
            expected=f"no message below {level}" if level else "no message without logLevel",
            actual=f"level {brief(wrong[0][1])}" if wrong else "",
            at=wrong[0][0] if wrong else None,
        )


def _during(talk: Conversation, example: Any, level: str | None) -> list[tuple[Entry, Any]]:
    """Send a request at a level; return the log messages before its response."""
    pending = Pending(talk.wire, example, level=level)
    reply = pending.reply()
    last = reply.entry or len(talk.wire.transcript)
    return [(entry, lv) for entry, lv, _ in _heard(talk.since(pending.line)) if entry.n <= last]


@scenario("logging-request-scoped")
def keeps_log_messages_off_subscriptions(talk: Conversation) -> None:
    """Log messages of a request are not sent on an open subscription."""
    clause = "logging-request-scoped"
    example = talk.examples.best("log-traffic")
    opened = Subscription(talk.wire, {"toolsListChanged": True})
    stream = opened if opened.acknowledged() is not None else None
    if stream is None and not opened.refusal.answered:
        opened.cancel()
    line = len(talk.wire.transcript)
    pending = Pending(talk.wire, example, level="debug")
    last = pending.reply().entry or line
    talk.wire.quiet()
    found = _heard(talk.since(line))
    if stream is not None:
        stream.cancel()
    wrong = [
        (entry, "a subscription id" if SUBSCRIPTION in meta else "only a stream is open")
        for entry, _, meta in found
        if SUBSCRIPTION in meta or (stream is not None and entry.n > last)
    ]
    if not found:
        talk.judge.unseen(clause, "the request did not make the server log again")
        return
    talk.judge(
        clause,
        not wrong,
        expected="log messages only before the response to their request",
        actual=f"{LOGGED}: {wrong[0][1]}" if wrong else "",
        at=wrong[0][0] if wrong else None,
        mild=None if any(SUBSCRIPTION in meta for _, _, meta in found) else Breach.WARN,
    )


@scenario("logging-request-level-accepted", "logging-invalid-request-level-error")
def accepts_a_level_per_request(talk: Conversation) -> None:
    """A request is served at each of the eight levels; another level gets error -32602."""
    method = next(iter(talk.spoken.list_methods), "server/discover")
    talk.need(talk.wire.request(method), f"{method}, answered before")
    for level in LEVELS:
        reply = talk.wire.request(method, meta=talk.wire.meta(**{LEVEL: level}))
        only = reply.is_error and talk.wire.request(method).result is not None
        talk.judge.expect(
            reply, "logging-request-level-accepted", not only, f"a result at level {level}"
        )
    if talk.judge.covers("logging-invalid-request-level-error"):
        reply = talk.wire.request(method, meta=talk.wire.meta(**{LEVEL: "verbose"}))
        talk.judge.expect_refusal(
            reply,
            "logging-invalid-request-level-error",
            (-32602,),
            "error -32602 for level verbose",
        )


@scenario("logging-set-level-removed")
def refuses_the_removed_set_level(talk: Conversation) -> None:
    """logging/setLevel, which this revision removed, is refused."""
    reply = _set(talk, "warning")
    talk.judge.expect(
        reply, "logging-set-level-removed", reply.result is None, f"error -32601 for {SET}"
    )
