"""clients/lifecycle: the opening of a session, its version, and its end."""

from collections.abc import Iterator
from typing import Any

from mcp_touchstone.suite import (
    LATEST_MODERN,
    LEGACY,
    Breach,
    Happened,
    Phase,
    Record,
    Role,
    Seen,
    ambient,
    brief,
    clients,
    id_key,
    is_modern,
    object_in,
    parts,
)

OPENING = frozenset({"initialize", "ping", "server/discover"})
MODERN_ERRORS = frozenset({-32020, -32021, -32022})
CANCELLED = "notifications/cancelled"
ENDS = (Happened.CLIENT_CLOSED, Happened.SIGNALLED, Happened.KILLED, Happened.LEFT_RUNNING)
"""How a client ends a server."""


parts.variant("tools_call", parts.Part, "List the tools and call one, with a session.")
parts.variant(
    "reopened",
    parts.Part,
    "List the tools and call one; then again on a further connection.",
    official="",
    steps=({"list": "tools"}, {"end": True}, *parts.Part.steps),
)


@ambient("client-initialize-first", "client-waits-for-initialize")
def opens_with_the_handshake(record: Record) -> Iterator[Seen]:
    """The first request is initialize, and others wait for its answer."""
    for asked in clients.requests(record):
        method = brief(asked.method)
        if asked.phase is Phase.SILENT and asked.method != "ping":
            passed = asked.method in OPENING
            refused = any(a.method == "initialize" for a in clients.requests(record) if a.answers)
            actual = f"{method} {'without an accepted' if refused else 'before'} initialize"
            yield Seen("client-initialize-first", passed, asked.line, "initialize", actual)
        elif asked.phase is Phase.INITIALIZING:
            passed = asked.method in OPENING
            actual = f"{method} before the answer to initialize"
            expected = "no other request than ping"
            yield Seen("client-waits-for-initialize", passed, asked.line, expected, actual)
        elif asked.phase is not Phase.SILENT:
            yield Seen("client-waits-for-initialize", True)


@ambient("client-initialized")
def confirms_the_handshake(record: Record) -> Iterator[Seen]:
    """After the answer to initialize comes notifications/initialized, before other requests."""
    clause, expected = "client-initialized", "notifications/initialized after the answer"
    accepted = clients.acceptance(record)
    sent = [
        entry.n
        for entry, message in record.messages(Role.NOTIFICATION, Role.REQUEST)
        if message.method == "notifications/initialized"  # another clause judges an id
    ]
    answered = accepted[0].n if accepted else None
    for n in sent:
        early = answered is None or n < answered
        actual = "it came, and no initialize was accepted"
        if answered is not None:
            actual = "it came before the answer to initialize"
        yield Seen(clause, not early, n, expected, actual)
    if answered is None:
        return
    after = [n for n in sent if n > answered]
    for asked in clients.requests(record):
        if asked.line > answered and asked.method not in {*OPENING, "notifications/initialized"}:
            passed = any(n < asked.line for n in after)
            when = "came later" if after else "never came"
            actual = f"{brief(asked.method)}, and notifications/initialized {when}"
            mild = Breach.WARN if after else None
            yield Seen(clause, passed, asked.line, expected, actual, mild=mild)
            return


@parts.scenario("version", official="initialize")
class Version(parts.Part):
    """Answer initialize with a version that no revision has."""

    steps = ()
    may_fail = is_about_sessions = True

    def initialize(self, request: parts.Json) -> None:
        """Answer initialize."""
        self.answer(request, {**self.opening(), "protocolVersion": "1999-01-01"})


@ambient("client-leaves-unknown-version")
def leaves_a_server_of_an_unknown_version(record: Record) -> Iterator[Seen]:
    """A client does not go on with a version that no revision of the protocol has."""
    accepted = clients.acceptance(record)
    version = accepted[1].get("protocolVersion") if accepted else None
    known = (*LEGACY, LATEST_MODERN)
    newer = isinstance(version, str) and version > LATEST_MODERN
    if accepted is None or version in known or newer:
        return
    later = [entry for entry in record.lines() if entry.n > accepted[0].n]
    at = later[0].n if later else accepted[0].n
    actual = f"it goes on after protocolVersion {brief(version)}"
    expected = "the end of the connection"
    yield Seen("client-leaves-unknown-version", not later, at, expected, actual)


@ambient("client-initialize-alone")
def sends_initialize_in_no_batch(record: Record) -> Iterator[Seen]:
    """The initialize request is not part of a batch."""
    for entry, message in record.messages(Role.REQUEST):
        if message.method == "initialize":
            clause = "client-initialize-alone"
            yield Seen(clause, not message.batched, entry.n, "initialize alone", "in a batch")


@parts.scenario("old-errors")
class OldErrors(parts.Part):
    """Refuse what comes before initialize with an error that only this server has."""

    is_about_sessions = True

    def serve(self, request: parts.Json) -> None:
        """Answer a request."""
        if self.opened or request["method"] == "initialize":
            super().serve(request)
        else:
            self.refuse(request, -31999, "Not now")


@parts.scenario("silent")
class Silent(parts.Part):
    """Answer nothing before initialize."""

    may_fail = on_stdio = is_about_sessions = True

    def serve(self, request: parts.Json) -> None:
        """Answer a request of a session."""
        if self.opened or request["method"] == "initialize":
            super().serve(request)


@ambient("client-falls-back", "client-probes-first")
def falls_back_after_any_other_error(record: Record) -> Iterator[Seen]:
    """A client of both eras sends server/discover first, and falls back after any old error."""
    asked = clients.requests(record)
    opened = any(one.method == "initialize" for one in asked)
    fell = opened or clients.event(record, Happened.FELL_BACK)
    elsewhere = clients.event(record, Happened.FALLS_BACK)
    if not asked or not (fell or elsewhere):
        return
    first = asked[0]
    passed, actual = first.method == "server/discover", f"{brief(first.method)} first"
    yield Seen("client-probes-first", passed, first.line, "server/discover", actual)
    found = clients.answer(record, first)
    gave_up = clients.event(record, Happened.ENDED, Happened.FAILED)
    if record.scenario == "silent" and found is None and (fell or gave_up):
        expected, actual = "initialize, as after an error", "the client gave up after no answer"
        mild = Breach.WARN
        yield Seen("client-falls-back", bool(fell), first.line, expected, actual, mild=mild)
    code = None if found is None else found[1].code
    over = fell or clients.event(record, Happened.ENDED, Happened.FAILED, Happened.CLIENT_CLOSED)
    if found is not None and over and code is not None and code not in MODERN_ERRORS:
        actual = f"the client gave up after the error {brief(code)}"
        expected = "initialize, as after other errors"
        yield Seen("client-falls-back", bool(fell), found[0].n, expected, actual)


@ambient("client-era-kept")
def does_not_fall_back_from_a_modern_server(record: Record) -> Iterator[Seen]:
    """A server that answered server/discover with a result gets no initialize."""
    asked = clients.requests(record)
    for one in asked:
        found = clients.answer(record, one)
        if one.method == "server/discover" and found and clients.result(record, one):
            came = found[0].n  # who waited in vain for it may have fallen back before
            later = [a.line for a in asked if a.method == "initialize" and a.line > came]
            fell = clients.event(record, Happened.FELL_BACK)  # over HTTP a session is apart
            later += [fell.n] if fell and fell.n > came else []
            at, actual = (later or [one.line])[0], "initialize after the result of server/discover"
            yield Seen("client-era-kept", not later, at, "requests of 2026-07-28", actual)
            return


@parts.scenario("older")
class Older(parts.Part):
    """Answer initialize with the version 2025-06-18."""

    may_fail = is_about_sessions = True
    versions = LEGACY[:3]


LOG = b"mcp-touchstone: one of many lines of a log, for nobody in particular\n" * 4096
"""More than a pipe holds."""


@parts.scenario("stderr")
class Stderr(parts.Part):
    """Write 280 KiB to standard error before the answer to a call."""

    may_fail = on_stdio = True

    def call(self, request: parts.Json) -> None:
        """Write, and answer."""
        self.log(LOG)
        super().call(request)


@ambient("client-reads-stderr")
def reads_the_standard_error_of_a_server(record: Record) -> Iterator[Seen]:
    """What a server writes to its standard error is read, so that it can go on."""
    wrote, read = (clients.event(record, one) for one in (Happened.SHOUTED, Happened.STDERR_READ))
    over = clients.event(record, Happened.ENDED, Happened.FAILED, Happened.CUT_OFF)
    if wrote and (read or over):
        expected, actual = "its standard error is read", "the server waits for a reader"
        yield Seen("client-reads-stderr", bool(read), wrote.n, expected, actual)


@parts.scenario("exit")
class Exit(parts.Part):
    """Exit in the middle of the first call."""

    may_fail = True

    def call(self, request: parts.Json) -> None:
        """Exit in place of an answer."""
        del request
        self.gone = 1


@parts.scenario("restart")
class Restart(parts.Part):
    """Exit in the middle of the first call of 2026-07-28, and answer calls after a restart."""

    steps = (
        {"list": "tools"},
        {"call": "add_numbers", "a": 2, "b": 3, "fails": True},
        {"call": "add_numbers", "a": 4, "b": 5, "fails": True},
    )
    modern = may_fail = True

    def call(self, request: parts.Json) -> None:
        """Exit in place of an answer, if this is the first process."""
        if self.peer.is_first:
            self.gone = 1
        else:
            super().call(request)


@ambient("client-restarts-server")
def starts_a_server_again_that_exited(record: Record) -> Iterator[Seen]:
    """A server that exits by itself is started again."""
    exited = clients.event(record, Happened.EXITED, *ENDS)
    again = clients.event(record, Happened.RESTARTED)
    over = again or clients.event(record, Happened.ENDED)
    if exited and exited.happened is Happened.EXITED and over:
        actual = "the client went on without it"
        yield Seen("client-restarts-server", bool(again), exited.n, "a new process", actual)


SAFE = "count_entries"
"""The tool of ``Lost`` that may be called again."""


@parts.scenario("lost")
class Lost(parts.Part):
    """Lose the answers to two calls that ran, of which only one changes nothing."""

    steps = (
        {"list": "tools"},
        {"call": "add_entry", "a": 2, "b": 3, "fails": True},
        {"call": SAFE, "a": 2, "b": 3, "fails": True},
    )
    http_fault = parts.LOSES
    may_fail = True

    def tools(self, params: parts.Json) -> parts.Json | None:
        """Return two tools that say what a further call does."""
        del params
        adds = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": False}
        named = {"add_entry": adds, SAFE: {"readOnlyHint": True}}
        made = [{**parts.NUMBERS, "name": k, "annotations": v} for k, v in named.items()]
        return {"tools": made}

    def call(self, request: parts.Json) -> None:
        """Exit in place of the first answer to a call; over HTTP its connection is closed."""
        if parts.lose(self.peer, request):
            self.gone = 1
        else:
            super().call(request)


parts.variant(
    "lost-stateless",
    Lost,
    "Lose the answers to two calls of 2026-07-28 that ran, of which one changes nothing.",
    modern=True,
)


@ambient("client-call-not-repeated")
def runs_no_call_twice(record: Record) -> Iterator[Seen]:
    """A client does not repeat a call without an answer, unless its tool may be called again."""
    clause, expected = "client-call-not-repeated", "an error for its user"
    noted = record.transcript.events(Happened.LOST, Happened.RAN_AGAIN)
    again = [one for one in noted if one.happened is Happened.RAN_AGAIN]
    for entry in again:
        name = entry.text.removeprefix(Happened.RAN_AGAIN)
        actual = f"{name} again, which is neither readOnlyHint nor idempotentHint"
        yield Seen(clause, name == SAFE, entry.n, expected, actual)
    if noted and not again and clients.event(record, Happened.ENDED, Happened.FAILED):
        yield Seen(clause, True, noted[0].n)


@parts.scenario("cancel")
class Cancel(parts.Part):
    """Answer a call after it was cancelled, or when it is clear that the client only waits."""

    steps = (
        {"list": "tools"},
        {"call": "add_numbers", "a": 2, "b": 3, "cancel": 0.3},
        {"list": "tools"},
    )
    may_fail = True
    PATIENCE = 10.0

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._held: dict[Any, parts.Json] = {}

    def call(self, request: parts.Json) -> None:
        """Keep the call."""
        own = id_key(request.get("id"))
        self._held[own] = request
        self.later(self.PATIENCE, lambda: self._answer(own))

    def noticed(self, message: parts.Json) -> None:
        """Answer the cancelled call too late."""
        if message.get("method") == CANCELLED:
            self._answer(id_key(object_in(message, "params").get("requestId")))

    def _answer(self, own: Any) -> None:
        if own in self._held:
            super().call(self._held.pop(own))


parts.variant(
    "cancel-stateless",
    Cancel,
    "Answer a call of 2026-07-28 after it was cancelled, or when the client only waits.",
    modern=True,
)


@ambient("client-cancel-sent", "client-cancel-sent-legacy")
def tells_the_server_of_a_cancellation(record: Record) -> Iterator[Seen]:
    """A client that gives up a call sends notifications/cancelled; one that waits gives up none."""
    modern = is_modern(record.revision)
    clause = "client-cancel-sent" if modern else "client-cancel-sent-legacy"
    if record.scenario != ("cancel-stateless" if modern else "cancel"):
        return
    sent = [m for _, m in record.messages(Role.NOTIFICATION) if m.method == CANCELLED]
    asked = clients.requests(record)
    ended = clients.event(record, Happened.ENDED, Happened.FAILED)
    for call in (one for one in asked if one.method == "tools/call"):
        found = clients.answer(record, call)
        later = [one.line for one in asked if one.line > call.line]
        left = later or ([ended.n] if ended else [])
        if sent or (left and (found is None or found[0].n > left[0])):
            actual = "the client went on without it" if later else "the client ended without it"
            yield Seen(clause, bool(sent), call.line, CANCELLED, actual)


parts.variant(
    "slow-exit", parts.Part, "Go on for a second after the end of the input.", lingers=1.0
)


@ambient("client-closes-input-first")
def ends_a_server_by_closing_its_input(record: Record) -> Iterator[Seen]:
    """The end of the input comes before a signal."""
    if first := clients.event(record, *ENDS):
        passed, actual = first.happened is Happened.CLIENT_CLOSED, first.text
        if first.happened is Happened.KILLED:  # it may have been closed a moment before
            actual = "the client killed the server, which had read no end of its input"
        expected = "the end of its input first, and time to read it"
        yield Seen("client-closes-input-first", passed, first.n, expected, actual)
