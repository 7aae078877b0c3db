"""basic/versioning: the revision of stateless requests."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from mcp_touchstone.suite import (
    LATEST_LEGACY,
    LEGACY,
    META_KEY,
    Conversation,
    Kind,
    Place,
    Record,
    Reply,
    Role,
    Seen,
    ambient,
    brief,
    scenario,
)

BOGUS = "1900-01-01"
UNSUPPORTED = -32022
TASKS = "io.modelcontextprotocol/tasks"
CORE_RESULTS = ("complete", "input_required")
CORE_NOTIFICATIONS = {
    "notifications/cancelled",
    "notifications/message",
    "notifications/progress",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/subscriptions/acknowledged",
    "notifications/tools/list_changed",
}


def _served(talk: Conversation) -> str:
    """Return a method that is known to work: a list method, or else server/discover."""
    return next(iter(talk.spoken.list_methods), talk.wire.ping_method)


# --- the version of each request


@scenario(
    "versioning-unsupported-version-error",
    "versioning-unsupported-version-data",
    "versioning-per-request-independence",
    "versioning-supported-list-truthful",
    everywhere=True,
)
def refuses_an_unknown_revision_per_request(talk: Conversation) -> None:
    """A request under an unknown revision gets error -32022; the next one is served."""
    method = _served(talk)
    first = _ask_under(talk, BOGUS, method)
    _judge_independence(talk, method, first)
    refusals = [first]
    if method != talk.wire.ping_method and not talk.wire.gone:
        refusals.append(_ask_under(talk, BOGUS, talk.wire.ping_method))
    _judge_data(talk, first, [reply for reply in refusals if reply.code == UNSUPPORTED])
    modern_only = not talk.profile.lacks(("modern-only",), talk.revision)
    if modern_only and LATEST_LEGACY not in talk.spoken.versions and not talk.wire.gone:
        _ask_under(talk, LATEST_LEGACY, talk.wire.ping_method)


def _ask_under(talk: Conversation, version: str, method: str) -> Reply:
    """Send a request under an unsupported version, and judge the code of the refusal."""
    reply = talk.wire.request(method, meta=talk.wire.meta(version=version), required=False)
    talk.judge.expect_error(
        reply,
        "versioning-unsupported-version-error",
        UNSUPPORTED,
        f"error {UNSUPPORTED} for {method} under version {version}",
    )
    return reply


def _judge_independence(talk: Conversation, method: str, first: Reply) -> None:
    clause = "versioning-per-request-independence"
    if not first.is_error:
        talk.judge.unseen(clause, f"no version was rejected: {first}")
        return
    between = talk.wire.request(method, required=False)
    replies = [first, between]
    if between.answered:
        replies.append(
            talk.wire.request(method, meta=talk.wire.meta(version=BOGUS), required=False)
        )
    talk.judge(
        clause,
        between.result is not None and replies[-1].code == first.code,
        expected="an error, a result, the same error",
        actual=", then ".join(map(str, replies)),
        at=between if between.result is None else replies[-1],
    )


def _judge_data(talk: Conversation, first: Reply, refusals: list[Reply]) -> None:
    clause = "versioning-unsupported-version-data"
    for reply in refusals:
        data = (reply.error or {}).get("data")
        versions = _supported(data)
        requested = data.get("requested") if isinstance(data, dict) else None
        talk.judge(
            clause,
            bool(versions) and BOGUS not in versions and requested == BOGUS,
            expected=f'data {{"supported": [supported versions], "requested": "{BOGUS}"}}',
            actual=brief(data),
            at=reply,
        )
        more = sorted(set(versions) - {BOGUS, *talk.spoken.versions})
        _judge_listed(talk, more, reply)
    if not refusals:
        talk.judge.unseen(clause, f"no error {UNSUPPORTED} was given")
        _judge_listed(talk, [], first)


def _supported(data: Any) -> list[str]:
    """Return the versions that the data of an error lists; empty unless all are strings."""
    found = data.get("supported") if isinstance(data, dict) else None
    if not isinstance(found, list) or not all(isinstance(version, str) for version in found):
        return []
    return found


@scenario("versioning-supported-list-truthful", everywhere=True)
def serves_every_version_it_lists(talk: Conversation) -> None:
    """Each version in supportedVersions and in data.supported is served."""
    _judge_listed(talk, sorted(set(talk.spoken.versions)), talk.server.opening)


def _judge_listed(talk: Conversation, versions: Iterable[str], listing: Reply) -> None:
    """Judge whether the server serves the versions of a list."""
    false = {version: got for version in versions if (got := _refusal(talk, version))}
    talk.judge(
        "versioning-supported-list-truthful",
        not false,
        expected="support for every version of the list",
        actual="; ".join(f"{version}: {got}" for version, got in false.items()),
        at=listing,
    )


def _refusal(talk: Conversation, version: str) -> str:
    """Describe how the server refuses a version; empty if it serves it, or was not asked."""
    if version in LEGACY:
        offered = talk.profile.offers.get(version)
        asked = version in talk.profile.asked  # With --quick, not every revision is.
        return f"initialize gives {brief(offered)}" if asked and offered != version else ""
    if version < talk.revision or talk.wire.gone:
        return ""
    meta = talk.wire.meta(version=version)
    reply = talk.wire.request(talk.wire.ping_method, meta=meta, required=False)
    return "" if reply.answered and reply.code != UNSUPPORTED else str(reply)


# --- both eras


@scenario(
    "versioning-initialize-rejected",
    "versioning-initialize-names-versions",
    place=Place.OWN_SESSION,
    legacy=True,
)
def refuses_a_handshake(talk: Conversation) -> None:
    """A server without handshake revisions answers initialize with an error."""
    seen = talk.profile.refused.get(talk.wire.transcript.revision)
    patience = talk.pace.startup if seen and seen.answered else talk.pace.reply
    reply = talk.wire.initialize(seconds=patience)
    talk.judge.expect(
        reply, "versioning-initialize-rejected", reply.is_error, "an error for initialize"
    )
    if not reply.is_error:
        talk.judge.unseen("versioning-initialize-names-versions", f"no error was given: {reply}")
        return
    versions = talk.spoken.versions
    said = json.dumps(reply.value)
    talk.judge.expect(
        reply,
        "versioning-initialize-names-versions",
        any(version in said for version in versions),
        f"an error that names a supported version: {', '.join(versions)}",
    )


@scenario("versioning-dual-era-initialize", place=Place.OWN_SESSION, legacy=True)
def agrees_on_a_handshake_revision(talk: Conversation) -> None:
    """An initialize with a stateless revision is answered with a handshake revision."""
    reply = talk.wire.initialize(talk.revision)
    named = (reply.result or {}).get("protocolVersion")
    talk.judge(
        "versioning-dual-era-initialize",
        isinstance(named, str) and named < talk.revision,
        expected=f"one of {', '.join(LEGACY)}",
        actual=brief(named) if reply.result is not None else reply,
        at=reply,
    )


# --- extensions and deprecated features


@scenario("versioning-extension-identifiers")
def writes_well_formed_extension_names(talk: Conversation) -> None:
    """Each extension has a name with a prefix, and an object with settings."""
    extensions = talk.spoken.extensions
    wrong = [f"name {brief(name)}" for name in extensions if not _is_prefixed(name)]
    wrong += [
        f"{name} is {brief(value, 40)}"
        for name, value in extensions.items()
        if not isinstance(value, dict)
    ]
    talk.judge(
        "versioning-extension-identifiers",
        not wrong,
        expected="prefix/name -> object",
        actual="; ".join(wrong),
        at=talk.server.opening,
    )


def _is_prefixed(name: str) -> bool:
    found = META_KEY.fullmatch(name)
    return found is not None and found["prefix"] is not None


@ambient("versioning-extension-fallback")
def sends_core_types_to_a_client_without_extensions(record: Record) -> Iterator[Seen]:
    """A client without extensions gets only results and notifications of the core."""
    spoken = record.profile.spoken.get(record.revision)
    if spoken is None or not spoken.extensions:
        return
    clause = "versioning-extension-fallback"
    for entry, message in record.answers(Kind.RESULT):
        result = message.value["result"]
        kind = result.get("resultType") if isinstance(result, dict) else None
        if message.answers and record.declared(message.answers).get("extensions"):
            continue  # the chapter of the extension judges it
        if isinstance(kind, str) and not (kind == "task" and TASKS in spoken.extensions):
            passed, actual = kind in CORE_RESULTS, f"resultType {brief(kind)}"
            yield Seen(clause, passed, entry.n, "a core result, or an error", actual)
    for entry, message in record.messages(Role.NOTIFICATION):
        if any(record.declared(n).get("extensions") for n in _requests(record) if n < entry.n):
            continue
        passed, actual = message.method in CORE_NOTIFICATIONS, f"{brief(message.method)}"
        yield Seen(clause, passed, entry.n, "a core notification, or none", actual)


def _requests(record: Record) -> list[int]:
    """Return the lines of our requests."""
    return [asked.line for asked in record.transcript.session.asked]


@ambient("versioning-deprecated-features")
def avoids_deprecated_features(record: Record) -> Iterator[Seen]:
    """The server does not use logging, sampling and roots, which are deprecated."""
    for entry, message in record.answers(Kind.RESULT):
        result = message.value["result"]
        if isinstance(result, dict):
            found = _deprecated_questions(result)
            if message.method == "server/discover":
                found += _deprecated_capabilities(result)
            actual = f"{', '.join(found)}"
            expected = "no deprecated features"
            yield Seen("versioning-deprecated-features", not found, entry.n, expected, actual)


def _deprecated_capabilities(result: dict[str, Any]) -> list[str]:
    declared = result.get("capabilities")
    return ["logging"] if isinstance(declared, dict) and "logging" in declared else []


def _deprecated_questions(result: dict[str, Any]) -> list[str]:
    questions = result.get("inputRequests")
    methods = [
        question.get("method")
        for question in (questions.values() if isinstance(questions, dict) else ())
        if isinstance(question, dict)
    ]
    return [method for method in methods if method in ("sampling/createMessage", "roots/list")]
