"""basic/lifecycle: the start of a session."""

from collections.abc import Iterator, Mapping
from typing import Any

from mcp_touchstone.suite import (
    FULL_CAPABILITIES,
    LEGACY,
    Breach,
    Conversation,
    Kind,
    Phase,
    Place,
    Record,
    Reply,
    Role,
    Seen,
    Share,
    Unopened,
    ambient,
    brief,
    capability_faults,
    list_in,
    questions,
    scenario,
    wrong_types,
)

BOGUS = ("1900-01-01", "2099-01-01")
TOLERATED_EARLY = frozenset({"ping", "notifications/message"})
TRIED = 5
UNKNOWN_CAPABILITY: dict[str, Any] = {
    "x-touchstone-unknown": {"enabled": True},
    "experimental": {"com.example/probe": {"level": 1}},
}
FOREIGN_NAME = {"name": "pruefstein-試金石-🪨", "version": "1.0"}
ODDITIES: dict[str, dict[str, Any]] = {
    "lifecycle-open-client-capabilities": {"capabilities": UNKNOWN_CAPABILITY},
    "stdio-utf8-input": {"client": FOREIGN_NAME},
}
"""Clause -> what is unusual about a client that a server must nevertheless serve."""

CAPABILITIES = {
    revision: ("prompts", "resources", "tools", "logging", "experimental")
    + (("completions",) if revision >= "2025-03-26" else ())
    + (("tasks",) if revision == "2025-11-25" else ())
    for revision in LEGACY
}
SERVER_INFO = {
    revision: {"name": "string", "version": "string"}
    | ({"title": "string"} if revision >= "2025-06-18" else {})
    | (
        {"description": "string", "websiteUrl": "string", "icons": "array"}
        if revision >= "2025-11-25"
        else {}
    )
    for revision in LEGACY
}


@scenario(
    "lifecycle-initialize-first",
    "lifecycle-no-requests-before-initialized",
    place=Place.OWN_SESSION,
    once=True,
)
def waits_for_initialize(talk: Conversation) -> None:
    """The server sends nothing unprompted before initialize."""
    clause = "lifecycle-initialize-first"
    talk.wire.quiet(talk.pace.silence)
    early = talk.wire.request("tools/list", required=False, seconds=talk.pace.silence)
    for entry in talk.since(0):
        for message in entry.messages:
            tolerated = message.method in TOLERATED_EARLY
            if message.role not in {Role.REQUEST, Role.NOTIFICATION}:
                continue
            if tolerated and entry.n > early.asked:
                continue
            talk.judge(
                clause,
                False,
                expected="silence until initialize",
                actual=f"an unprompted {message.role}: {brief(message.method)}",
                at=entry,
                mild=Breach.WARN if tolerated else None,
            )
    reply = talk.wire.initialize(
        capabilities=FULL_CAPABILITIES, seconds=talk.pace.startup, required=False
    )
    talk.judge.expect_answer(
        reply, clause, "an answer to initialize, also after an early request", mild=Breach.WARN
    )
    _judge_early_requests(talk, Phase.INITIALIZING)


def _judge_early_requests(talk: Conversation, phase: Phase) -> None:
    early = [
        (entry, message)
        for entry in talk.since(0)
        for message in entry.messages
        if message.role is Role.REQUEST and message.method != "ping" and message.phase is phase
    ]
    talk.judge(
        "lifecycle-no-requests-before-initialized",
        not early,
        expected="no request except ping before initialized",
        actual=f"a request: {early[0][1].method}" if early else "",
        at=early[0][0] if early else None,
    )


@scenario("lifecycle-initialize-response", unopened=Unopened.AFTER_OTHER_ANSWER)
def answers_initialize(talk: Conversation) -> None:
    """Initialize gets a result with protocolVersion, capabilities and serverInfo."""
    reply = talk.server.opening
    result = reply.result
    wrong = wrong_types(result or {}, {}, ("protocolVersion", "capabilities", "serverInfo"))
    talk.judge(
        "lifecycle-initialize-response",
        result is not None and not wrong,
        expected="a result with protocolVersion, capabilities and serverInfo",
        actual="; ".join(wrong) if result is not None else reply,
        at=reply,
    )


@ambient(
    "lifecycle-initialize-result-shape",
    "lifecycle-capabilities-shape",
    "lifecycle-server-info-shape",
    unopened=Unopened.AFTER_RESULT,
)
def introduces_itself_in_the_right_types(record: Record) -> Iterator[Seen]:
    """Every member of an initialize result has the type its revision defines."""
    for entry, message in record.answers(Kind.RESULT):
        result = message.value["result"]
        if message.method != "initialize" or not isinstance(result, dict):
            continue
        wrong = wrong_types(
            result,
            {
                "protocolVersion": "string",
                "capabilities": "object",
                "serverInfo": "object",
                "instructions": "string",
            },
        )
        clause, expected = "lifecycle-initialize-result-shape", "members of the defined types"
        yield Seen(clause, not wrong, entry.n, expected, "; ".join(wrong))
        wrong = capability_faults(result.get("capabilities"), CAPABILITIES[record.revision])
        clause, expected = "lifecycle-capabilities-shape", "capabilities as objects, flags boolean"
        yield Seen(clause, not wrong, entry.n, expected, "; ".join(wrong))
        info = result.get("serverInfo")
        types = SERVER_INFO[record.revision]
        wrong = wrong_types(info, types, ("name", "version")) if isinstance(info, dict) else []
        clause, expected = "lifecycle-server-info-shape", "string name and version"
        yield Seen(clause, not wrong, entry.n, expected, "; ".join(wrong))
        empty = isinstance(info, dict) and info.get("version") == ""
        actual = "an empty version"
        yield Seen(clause, not empty, entry.n, expected, actual, mild=Breach.WARN)


@scenario("lifecycle-version-echo", eras=True)
def accepts_every_revision_it_offers(talk: Conversation) -> None:
    """The server agrees to each revision that it offered in another answer."""
    _judge_echo(talk, talk.profile.offers, talk.server.opening)


def _judge_echo(talk: Conversation, offers: Mapping[str, Any], at: Reply) -> None:
    named = {str(version) for version in offers.values() if version in offers}
    broken = sorted(version for version in named if offers[version] != version)
    talk.judge(
        "lifecycle-version-echo",
        not broken,
        expected="the requested version, if the server supports it",
        actual=", ".join(f"{brief(offers[v])} for {v}" for v in broken),
        at=at,
    )


@scenario(
    "lifecycle-version-counteroffer",
    "lifecycle-version-counteroffer-latest",
    "lifecycle-version-echo",
    place=Place.OWN_SESSION,
    once=True,
    eras=True,
)
def offers_another_revision_for_an_unknown_one(talk: Conversation) -> None:
    """The server answers an unknown revision with the newest revision it supports.

    A client that gets its own unknown revision back believes that both sides support it. The
    server is also asked for the revisions for which a run of chosen revisions did not ask.
    """
    newest = talk.profile.legacy[-1]
    for attempt, bogus in enumerate(BOGUS):
        if attempt:
            talk.server.restart()
        reply = talk.wire.initialize(bogus, required=False)
        named = (reply.result or {}).get("protocolVersion")
        talk.judge(
            "lifecycle-version-counteroffer",
            isinstance(named, str) and named != bogus and _echoed(talk, named),
            expected="a result with another revision, which the server supports",
            actual=f"{brief(named)} for {bogus}" if reply.result is not None else reply,
            at=reply,
            mild=Breach.WARN if _lists_versions(reply) else None,
        )
        talk.judge(
            "lifecycle-version-counteroffer-latest",
            named == bogus or not isinstance(named, str) or named >= newest,
            expected=f"{newest}, the newest handshake revision that the server supports",
            actual=brief(named),
            at=reply,
        )
    offers = dict(talk.profile.offers)
    _judge_echo(talk, offers, reply)
    for version in LEGACY:
        without_endpoint = talk.server.over_http and version == LEGACY[0]
        if version not in talk.profile.asked and not without_endpoint:
            reply = talk.server.restart().initialize(version, required=False)
            named = (reply.result or {}).get("protocolVersion")
            offers[version] = named if isinstance(named, str) else ""
            _judge_echo(talk, offers, reply)


def _lists_versions(reply: Reply) -> bool:
    """Whether a refusal has the form of the specification's example."""
    return reply.code == -32602 and bool(list_in(reply.error, "data", "supported"))


def _echoed(talk: Conversation, named: str) -> bool:
    """Whether the server agrees to a revision that it offered."""
    if named in talk.profile.offers:
        return bool(talk.profile.offers[named] == named)
    old = talk.wire
    again = talk.server.restart().initialize(named, required=False)
    talk.server.wire = old
    return (again.result or {}).get("protocolVersion") == named


@scenario("lifecycle-negotiation-failures", place=Place.OWN_SESSION, once=True)
def survives_an_incomplete_initialize(talk: Conversation) -> None:
    """An initialize without capabilities or without clientInfo gets an answer."""
    for attempt, member in enumerate(("capabilities", "clientInfo")):
        if attempt and (talk.wire.gone or not talk.server.opening.is_error):
            talk.server.restart()
        reply = talk.wire.initialize(omit=(member,), seconds=talk.pace.reply)
        clean_exit = talk.wire.gone and talk.wire.process.wait(1.0) == 0
        talk.judge.expect(
            reply,
            "lifecycle-negotiation-failures",
            reply.answered or clean_exit,
            f"an answer to initialize without {member}, or a clean exit",
        )


@scenario(
    "jsonrpc-base-protocol-support",
    "lifecycle-open-client-capabilities",
    "stdio-utf8-input",
    place=Place.FIRST,
    share=Share.DRAWN,
)
def serves_any_client(talk: Conversation) -> None:
    """A client with unknown capabilities and a non-ASCII name is served like any other.

    Its first request follows the opening at once, as it does from a client that has work to do. A
    server that is not ready yet has to queue it. If something fails, each oddity is tried alone,
    and a client without oddities, to blame the right one.
    """
    opening = _open(talk, **{key: value for odd in ODDITIES.values() for key, value in odd.items()})
    accepted = opening.result is not None
    first = _first_request(talk) if accepted else opening
    for clause, oddity in ODDITIES.items():
        if not accepted:
            talk.server.restart()
        reply = opening if accepted else _open(talk, **oddity)
        talk.judge.expect_result(reply, clause, "the ordinary result")
    if not accepted or not first.answered:
        talk.server.restart()
        opening = _open(talk)
        accepted = opening.result is not None
        first = _first_request(talk) if accepted else opening
    talk.judge(
        "jsonrpc-base-protocol-support",
        accepted and first.answered,
        expected="an accepted opening, and an answer to the request after it",
        actual=first,
        at=first,
    )


def _open(talk: Conversation, **oddities: Any) -> Reply:
    ask = talk.wire.discover if talk.modern else talk.wire.initialize
    return ask(**oddities, required=False)


def _first_request(talk: Conversation) -> Reply:
    if not talk.modern:
        talk.wire.notify("notifications/initialized")
    return talk.wire.ping(required=False)


@scenario(
    "lifecycle-no-requests-before-initialized",
    "ping-before-initialized",
    place=Place.FIRST,
    share=Share.WILLING,
    willing=True,
    lasts=True,
)
def answers_only_pings_before_initialized(talk: Conversation) -> None:
    """Between initialize and initialized, pings are answered and the server sends no request.

    One process shows both: the client pings, and then is silent before it sends initialized.
    """
    talk.need(talk.wire.initialize(required=False), "an ordinary initialize")
    early = talk.wire.say(talk.wire.build("ping"), required=False)
    talk.wire.quiet(talk.pace.silence)
    _judge_early_requests(talk, Phase.AGREED)
    talk.wire.notify("notifications/initialized")
    later = talk.wire.request("ping", required=False)
    ping = talk.wire.answer_to(early, talk.pace.settle)
    if ping.result is None and later.result is None:
        talk.judge.unseen("ping-before-initialized", f"no ping is served later either: {later}")
        return
    talk.judge.expect_result(
        ping,
        "ping-before-initialized",
        "a result for ping, before initialized was sent as well as after",
    )


@scenario("lifecycle-timeout-cancels", "ping-empty-response", willing=True, hurts=True, lasts=True)
def gives_up_on_unanswered_requests(talk: Conversation) -> None:
    """A server request that stays unanswered is cancelled, and pings are answered meanwhile.

    Both clauses need a tool that waits for the client, which takes seconds to find.
    """
    talk.need(talk.server.opening, "an ordinary initialize")
    talk.wire.answers.enabled = False
    _judge_ping(talk, "after initialized")
    clause = "lifecycle-timeout-cancels"
    tools = [*talk.spoken.harmless[:TRIED]]
    while tools:
        tool, *tools = tools
        before = _rooted(talk, 0)
        asked = talk.wire.say(
            talk.wire.build("tools/call", {"name": tool, "arguments": {}}), required=False
        )
        reply = talk.wire.answer_to(asked, talk.pace.silence)
        pending = _pending(talk, asked)
        if not pending:
            continue
        if not reply.answered:
            _judge_ping(talk, f"while {tool} waits for the client")
            reply = talk.wire.answer_to(asked, talk.pace.silence)
        if not reply.answered or not _failed(reply):
            continue
        if not before and len(pending) == _rooted(talk, asked) == 1:
            tools = [tool, *tools]  # The session may have requested the roots: that comes once.
            continue
        talk.wire.quiet()
        cancelled = _cancelled(talk, asked)
        talk.judge(
            clause,
            # Others may belong to the session: a server can be slow to request the roots.
            any(request in cancelled for request in pending),
            expected=f"notifications/cancelled for the abandoned request {brief(pending[0])}",
            actual=f"the call ended ({reply}) and nothing was cancelled",
            at=reply,
        )
        return
    talk.judge.unseen(clause, "no harmless tool gave up on a request to the client while we waited")


def _judge_ping(talk: Conversation, when: str) -> None:
    ping = talk.wire.request("ping", required=False)
    talk.judge.expect_answer(
        ping, "ping-empty-response", f"an answer to ping {when}", mild=Breach.WARN
    )


def _rooted(talk: Conversation, since: int) -> int:
    """Return how often the server requested the roots since a line."""
    return sum(question.method == "roots/list" for question in list(questions(talk.since(since))))


def _pending(talk: Conversation, asked: int) -> list[Any]:
    """Return the ids of the requests of the server since a line."""
    return [
        message.value.get("id")
        for entry in talk.since(asked)
        for message in entry.messages
        if message.role is Role.REQUEST and message.method != "ping"
    ]


def _cancelled(talk: Conversation, asked: int) -> list[Any]:
    """Return the ids that the server cancelled since a line."""
    found = [
        message.value.get("params")
        for entry in talk.since(asked)
        for message in entry.messages
        if message.method == "notifications/cancelled"
    ]
    return [params.get("requestId") for params in found if isinstance(params, dict)]


def _failed(reply: Reply) -> bool:
    """Whether a call ended with an error, as after a wait without an answer."""
    return reply.is_error or reply.is_tool_error
