"""Each rule on gateways is broken by one faulty gateway, and by nothing else."""

import socket
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.catalog.loader import GATEWAYS, load
from mcp_touchstone.config.settings import Settings
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.gateway import check, http_upstream, scene
from mcp_touchstone.judging import hops
from mcp_touchstone.judging.expected import Expected
from mcp_touchstone.judging.gateway_talk import ExchangeTalk
from mcp_touchstone.results.run import Conclusion, Run
from mcp_touchstone.results.verdict import Judgement, Outcome

HERE = Path(__file__).parent
FAULTY = (sys.executable, str(HERE / "faulty.py"))
OVER_HTTP = (sys.executable, str(HERE / "http_gateway.py"))
OURS = (sys.executable, "-m", "mcp_touchstone")
LEGACY, MODERN = rev.LATEST_LEGACY, rev.LATEST_MODERN

_LIST = "tools/list result.tools"

MEMBERS = {
    "gateway-opening-instructions": "drop initialize result.instructions",
    "gateway-opening-capabilities": "refuses completion/complete -32601",
    "gateway-features-passed": "drop initialize result.capabilities.logging",
    "gateway-answers-come": "silent resources/templates/list",
    "gateway-answers-kind": "refuses prompts/get -32603",
    "gateway-tools-listed": f"drop {_LIST}.0",
    "gateway-tools-text": f"change {_LIST}.*.title",
    "gateway-tools-input-schema": f"drop {_LIST}.*.inputSchema.$defs",
    "gateway-tools-output-schema": f"drop {_LIST}.*.outputSchema.properties.deep",
    "gateway-tools-annotations": f"drop {_LIST}.*.annotations.destructiveHint",
    "gateway-prompts-listed": "drop prompts/list result.prompts.0",
    "gateway-prompts-text": "drop prompts/list result.prompts.*.description",
    "gateway-prompts-arguments": "drop prompts/list result.prompts.*.arguments.*.required",
    "gateway-resources-listed": "drop resources/list result.resources.0",
    "gateway-resources-text": "drop resources/list result.resources.*.title",
    "gateway-resources-facts": "drop resources/list result.resources.*.size",
    "gateway-templates-listed": "drop resources/templates/list result.resourceTemplates.0",
    "gateway-templates-text": "drop resources/templates/list result.resourceTemplates.*.title",
    "gateway-items-icons": f"drop {_LIST}.*.icons",
    "gateway-items-meta": "drop resources/list result.resources.*._meta",
    "gateway-items-unknown": "drop prompts/list result.prompts.*.x-upstream",
    "gateway-lists-meta": "drop tools/list result._meta",
    "gateway-result-content": "drop tools/call result.content.1",
    "gateway-result-content-annotations": "drop tools/call result.content.*.annotations",
    "gateway-result-content-meta": "drop tools/call result.content.*._meta",
    "gateway-result-structured": "drop tools/call result.structuredContent",
    "gateway-result-error-flag": "drop tools/call result.isError",
    "gateway-result-meta": "drop tools/call result._meta",
    "gateway-result-unknown": "drop prompts/get result.x-upstream",
    "gateway-prompt-messages": "drop prompts/get result.messages.*.content.mimeType",
    "gateway-resource-contents": "drop resources/read result.contents.*.mimeType",
    "gateway-completion-values": "drop completion/complete result.completion.total",
    "gateway-result-integers": "change tools/call result.structuredContent.large",
    "gateway-request-params": "forgets completion/complete params.context",
    "gateway-error-code": "change tools/call error.code",
    "gateway-error-message": "change resources/read error.message",
    "gateway-error-data": "drop resources/read error.data",
}
"""Clause -> the words of the fault that breaks it, and no other."""

MESSAGES = {
    "gateway-log-messages": "loses notifications/message",
    "gateway-log-level": "answers logging/setLevel",
    "gateway-progress-arrives": "loses-progress",
    "gateway-progress-token": "invents-token",
    "gateway-progress-late": "late-progress",
    "gateway-progress-meanwhile": "holds-progress",
    "gateway-ids-types": "swaps-ids",
    "gateway-answers-once": "answers-twice",
    "gateway-calls-once": "calls-twice",
    "gateway-cancel-arrives": "loses notifications/cancelled",
    "gateway-cancel-right": "cancels-twice",
    "gateway-cancel-others": "cancels-all",
    "gateway-ids-unique": "uses-id-again",
    "gateway-tokens-unique": "shares-token",
    "gateway-roots": "forgets-roots",
    "gateway-initialized": "loses notifications/initialized",
    "gateway-roots-changes": "loses notifications/roots/list_changed",
    "gateway-sampling": "asks sampling/createMessage params.temperature",
    "gateway-elicitation": "asks elicitation/create params.requestedSchema.required",
    "gateway-list-changes": "loses notifications/prompts/list_changed",
    "gateway-resource-updates": "loses notifications/resources/updated",
    "gateway-end-answered": "waits",
    "gateway-text-whole": "cuts-text",
    "gateway-result-large": "cuts-large",
    "gateway-request-large": "refuses-large",
    "gateway-tools-many": "loses-one",
    "gateway-request-arguments": "forgets tools/call params.arguments.none",
    "gateway-request-meta": "forgets tools/call params._meta.traceparent",
    "gateway-request-capabilities": "forgets initialize params.capabilities.sampling.tools",
    "gateway-subscribe-arrives": "answers resources/unsubscribe",
    "gateway-tasks-answers": "drop tasks/get result.statusMessage",
    "gateway-tasks-status": "loses notifications/tasks/status",
    "gateway-elicitation-url": "asks elicitation/create params.url",
    "gateway-elicitation-complete": "loses notifications/elicitation/complete",
    "gateway-elicitation-refused": "cancels",
    "gateway-sampling-tools": "asks sampling/createMessage params.toolChoice",
    "gateway-messages-afterwards": "loses-afterwards",
    "gateway-question-error": "forgets-why",
    "gateway-question-cancelled": "loses notifications/cancelled",
    "gateway-question-cancelled-right": "renames-questions",
    "gateway-progress-upstream": "loses notifications/progress",
    "gateway-progress-upstream-token": "invents-token",
    "gateway-text-surrogates": "halves replaces",
    "gateway-unknown-methods": "loses notifications/com.example.upstream/known",
}
"""The same, for messages and sizes."""

FURTHER = {
    "gateway-answers-kind": "normalizes null",
    "gateway-ids-types": "loses-zero",
    "gateway-request-arguments": "normalizes objects",
    "gateway-request-capabilities": "forgets initialize params.capabilities.experimental",
    "gateway-tools-annotations": f"drop {_LIST}.*.execution",
}
"""The same, for another fault of the same clause."""

FORMS = {
    "NFC": "gateway-result-content",
    "NFD": "gateway-result-content",
    "lines": "gateway-result-content",
    "texts": "gateway-result-content",
    "uris": "gateway-resources-facts",
    "cursors": "gateway-tools-listed",
    "integers": "gateway-progress-arrives",
    "false": "gateway-elicitation",
}
"""Form to which a gateway brings all values -> one of the clauses that it breaks."""

HELD_BACK = {
    "gateway-list-changes": "holds notifications/tools/list_changed",
    "gateway-resource-updates": "holds notifications/resources/updated",
    "gateway-log-messages": "holds notifications/message",
    "gateway-messages-afterwards": "holds after",
    "gateway-elicitation-complete": "holds notifications/elicitation/complete",
}
"""The same, for messages that arrive when the client has no use for them any more."""

CLIENTS = {
    "gateway-answers-own": "crosses answers",
    "gateway-lists-own": "crosses lists",
    "gateway-messages-own": "crosses messages",
    "gateway-cancel-own": "crosses cancels",
}
"""The same, behind a bridge: over HTTP a gateway has several clients."""

HEADERS = {
    "gateway-token-own": ("token", LEGACY),
    "gateway-session-own": ("session", LEGACY),
    "gateway-origin": ("web", LEGACY),
    "gateway-users-list": ("cache", LEGACY),
    "gateway-cache-private": ("cache", MODERN),
    "gateway-redirect-credentials": ("follows", LEGACY),
    "gateway-sessions-ended": ("revives", LEGACY),
    "gateway-questions-own": ("crosses-answers", LEGACY),
    "gateway-streams-comments": ("no-comments", LEGACY),
    "gateway-streams-resumed": ("no-resuming", LEGACY),
    "gateway-header-version": ("leave-MCP-Protocol-Version", LEGACY),
    "gateway-header-session": ("leave-Mcp-Session-Id", LEGACY),
    "gateway-header-method": ("put-Mcp-Method=ping", MODERN),
    "gateway-header-name": ("put-Mcp-Name=fail", MODERN),
    "gateway-header-param": ("leave-Mcp-Param-Mark", MODERN),
    "gateway-header-param-value": ("put-Mcp-Param-Mark=other", MODERN),
    "gateway-status-notification": ("accepts-notifications", LEGACY),
    "gateway-status-response": ("accepts-responses", LEGACY),
    "gateway-status-error": ("answers-errors-well", MODERN),
    "gateway-content-type": ("writes-text", MODERN),
    "gateway-sessions-404": ("forgets-why", LEGACY),
    "gateway-refusal-told": ("invents-results", MODERN),
    "gateway-challenge": ("forgets-challenge", LEGACY),
}
"""Clause -> the fault of a gateway from HTTP to HTTP that breaks it, and a revision."""

OVER_HTTP_TOO = [
    ("gateway-token-own", "token-in-url", MODERN),
    ("gateway-token-own", "token-in-body", LEGACY),
    ("gateway-token-own", "token-in-header", LEGACY),
    ("gateway-users-list", "cache-of-reads", LEGACY),
    ("gateway-users-list", "cache-of-prompts", LEGACY),
    ("gateway-cache-private", "cache-of-reads", MODERN),
    ("gateway-listen-own", "shares-subscriptions", MODERN),
    ("gateway-questions-own", "crosses-states", MODERN),
    ("gateway-answers-own", "cache-of-tasks", LEGACY),
    ("gateway-text-whole", "cuts-streams", LEGACY),
    ("gateway-list-changes", "one-stream", LEGACY),
    ("gateway-refusal-told", "waits-for-tokens", LEGACY),
    ("gateway-text-surrogates", "ignores-halves", LEGACY),
]
"""The same, for another fault of the same clause."""

TO_HTTP = {
    "gateway-session-lost": ("keeps-session", LEGACY),
    "gateway-restart-reached": ("gives-up-server", MODERN),
}
"""The same for a gateway from stdio to HTTP."""

STATELESS = {
    "gateway-lists-caching": "change tools/list result.cacheScope",
    "gateway-listen-acknowledged": "loses notifications/subscriptions/acknowledged",
    "gateway-listen-changes": "loses notifications/resources/updated",
    "gateway-listen-own": "crosses-subscriptions",
    "gateway-listen-ends": "loses notifications/cancelled",
    "gateway-rounds": "forgets-state",
    "gateway-log-messages": "forgets-level",
    "gateway-tasks-answers": "drop tasks/get result.pollIntervalMs",
}
"""The same, for what only 2026-07-28 has."""


OF_CALLERS = {"gateway-origin", "gateway-cache-private", "gateway-questions-own"}
"""What concerns the hop of the client only."""

OF_REQUESTS = {"gateway-token-own", "gateway-session-own", "gateway-users-list"}
"""What concerns HTTP on both hops."""

ONCE = {
    *("gateway-text-whole", "gateway-result-large", "gateway-request-large"),
    *("gateway-tools-many", "gateway-load-own"),
}
"""What takes long, and is held in the first revision only."""

TROUBLE_AT_TIMES = {
    *("gateway-servers-listed", "gateway-servers-routed", "gateway-servers-apart"),
    *("gateway-end-after", "gateway-restart-opened", "gateway-stop-server"),
    *("gateway-session-lost", "gateway-restart-reached"),
    *("gateway-session-list", "gateway-leave-cancels", "gateway-leave-others"),
}
"""What needs several servers or clients, a gateway that goes on, or one that starts its server."""


def judged(
    command: tuple[str, ...], *expects: str, revision: str = LEGACY, repeats: int = 0
) -> Run:
    """Judge a gateway in one revision, or in several that spaces divide."""
    settings = Settings(command=command, timeout=20.0, expects=expects)
    choice = Choice(revisions=tuple(revision.split()), repeats=repeats)
    return check.check(settings, choice)


def broken(run: Run) -> dict[str, Outcome]:
    fine = {Outcome.PASS, Outcome.UNSEEN}
    return {v.clause.id: v.outcome for v in run.verdicts if v.outcome not in fine}


def finding(run: Run, clause: str) -> Judgement:
    """Return the finding of a clause."""
    judgements = [j for r in run.results for j in r.judgements if j.clause == clause]
    fine = {Outcome.PASS, Outcome.UNSEEN}
    return next(one for one in judgements if one.outcome not in fine)


def faulty(words: str) -> tuple[str, ...]:
    return (*FAULTY, *words.split(), "--", "{server}")


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Hold only the exchanges that show a fault."""
    names = request.getfixturevalue("exchanges")
    parts = {k: v for k, v in load(GATEWAYS).parts.items() if k in names}
    monkeypatch.setattr(load(GATEWAYS), "parts", parts)


@pytest.fixture
def exchanges(request: pytest.FixtureRequest) -> set[str]:
    """Return the first exchange, and those that a clause needs."""
    choice = Choice(select=(request.getfixturevalue("clause"),))
    names = (name for one in check.NEWEST for name in check.needed(load(GATEWAYS), choice, one))
    return {"contents", *names}


@pytest.fixture
def contents_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold only the first exchange."""
    monkeypatch.setattr(load(GATEWAYS), "parts", {"contents": load(GATEWAYS).parts["contents"]})


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(
    ("clause", "words"), [*CLIENTS.items(), ("gateway-messages-own", "crosses updates")]
)
def test_a_gateway_that_crosses_clients_breaks_its_rule_and_no_other(
    clause: str, words: str
) -> None:
    command = (*OURS, "bridge", "--port", "{port}", "--", *faulty(words))

    run = judged(command)

    assert list(broken(run)) == [clause]
    if clause == "gateway-messages-own":  # what crossed is shown first
        assert '"method": "notifications/' in finding(run, clause).wire[0].text


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("clause", ["gateway-answers-own"])
def test_a_member_with_its_usual_value_is_no_finding(clause: str) -> None:
    command = (*OURS, "bridge", "--port", "{port}", "--", *faulty("writes-out"))

    run = judged(command)
    assert broken(run) == {}
    assert clause in {v.clause.id for v in run.of(Outcome.PASS)}


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("clause", [*MEMBERS, *MESSAGES])
def test_a_faulty_gateway_breaks_its_rule_and_no_other(clause: str) -> None:
    run = judged(faulty({**MEMBERS, **MESSAGES}[clause]))

    assert list(broken(run)) == [clause]
    assert broken(run)[clause].value == load(GATEWAYS).catalogue[clause].breach.value


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("clause", ["gateway-ids-unique"])
def test_a_line_that_a_finding_names_is_shown_with_it(clause: str) -> None:
    found = finding(judged(faulty(MESSAGES[clause])), clause)

    named = int(found.actual.rpartition("line ")[2])
    assert [line.n for line in found.wire][:1] == [named]
    assert len(found.wire) == 2


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("clause", FURTHER)
def test_another_fault_breaks_the_same_rule_and_no_other(clause: str) -> None:
    assert list(broken(judged(faulty(FURTHER[clause])))) == [clause]


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(("clause", "form"), [(one, form) for form, one in FORMS.items()])
def test_values_in_another_form_are_a_finding(clause: str, form: str) -> None:
    assert clause in broken(judged(faulty(f"normalizes {form}")))


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("clause", HELD_BACK)
def test_a_message_that_is_held_back_past_its_use_is_a_finding(clause: str) -> None:
    run = judged(faulty(HELD_BACK[clause]))

    assert list(broken(run)) == [clause]
    assert finding(run, clause).actual.startswith(hops.Fate.DELAYED)


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("clause", STATELESS)
def test_a_faulty_gateway_of_the_stateless_era_breaks_its_rule(clause: str) -> None:
    assert list(broken(judged(faulty(STATELESS[clause]), revision=MODERN))) == [clause]


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(
    ("clause", "does"),
    [("gateway-messages-afterwards", "swaps-messages"), ("gateway-tasks-status", "slow-status")],
)
def test_notifications_may_come_late_and_in_another_order(clause: str, does: str) -> None:
    run = judged(faulty(does))

    assert broken(run) == {}
    assert clause in {v.clause.id for v in run.of(Outcome.PASS)}


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("clause", ["gateway-tasks-answers"])
def test_a_gateway_may_name_itself(clause: str) -> None:
    run = judged(faulty("names-itself"), revision=MODERN)

    assert broken(run) == {}
    assert clause in {v.clause.id for v in run.of(Outcome.PASS)}


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("clause", ["gateway-load-own"])
def test_a_gateway_may_open_a_session_for_each_of_many_calls(clause: str) -> None:
    run = judged(faulty("opens-for-each"))

    assert outcomes(run, LEGACY)[clause] is Outcome.PASS
    assert run.execution is not None
    assert "not judged" not in " ".join(run.execution.notes)


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("clause", ["gateway-text-surrogates"])
@pytest.mark.parametrize("does", ["refuses", "ends"])
def test_a_gateway_may_refuse_half_a_pair_of_surrogates(clause: str, does: str) -> None:
    found = broken(judged(faulty(f"halves {does}"), revision=MODERN))

    assert [*found] == ([] if does == "refuses" else [clause])


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("clause", HEADERS)
def test_a_faulty_gateway_over_http_breaks_its_rule_and_no_other(clause: str) -> None:
    fault, revision = HEADERS[clause]
    run = judged((*OVER_HTTP, fault, "{port}", "{url}"), revision=revision)

    assert list(broken(run)) == [clause]
    assert broken(run)[clause].value == load(GATEWAYS).catalogue[clause].breach.value


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(("clause", "fault", "revision"), OVER_HTTP_TOO)
def test_another_fault_over_http_breaks_the_same_rule_and_no_other(
    clause: str, fault: str, revision: str
) -> None:
    run = judged((*OVER_HTTP, fault, "{port}", "{url}"), revision=revision)

    assert list(broken(run)) == [clause]


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("clause", TO_HTTP)
def test_a_faulty_gateway_to_http_breaks_its_rule_and_no_other(clause: str) -> None:
    fault, revision = TO_HTTP[clause]
    run = judged(
        (sys.executable, str(HERE / "over_http.py"), fault, "--", "{url}"), revision=revision
    )

    assert list(broken(run)) == [clause]
    assert broken(run)[clause].value == load(GATEWAYS).catalogue[clause].breach.value


@pytest.mark.slow
@pytest.mark.parametrize("revision", [LEGACY, MODERN])
@pytest.mark.usefixtures("soon")
def test_values_of_another_type_are_judged(revision: str) -> None:
    run = judged(faulty("wraps"), revision=revision)

    assert (run.trouble, run.of(Outcome.BROKEN)) == ("", [])
    assert {"gateway-answers-kind", "gateway-tools-listed"} <= {*outcomes(run, revision)}
    assert run.of(Outcome.FAIL, Outcome.WARN)


@pytest.mark.slow
def test_a_fault_of_an_exchange_loses_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(talk: ExchangeTalk) -> None:
        raise TypeError(talk.first.transcript.revision)

    parts = load(GATEWAYS).parts
    wrong = replace(parts["subscriptions"], run=fails)
    chosen = {"contents": parts["contents"], "subscriptions": wrong}
    monkeypatch.setattr(load(GATEWAYS), "parts", chosen)

    run = judged(faulty("none"))

    assert f"{LEGACY}: a fault of mcp-touchstone itself: TypeError: {LEGACY}" in run.trouble
    assert "gateway-tools-listed" in {verdict.clause.id for verdict in run.of(Outcome.PASS)}


@pytest.mark.slow
def test_a_port_that_another_program_took_is_no_fault_of_the_gateway(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(port: int) -> socket.socket:
        raise OSError(port)

    parts = load(GATEWAYS).parts
    monkeypatch.setattr(load(GATEWAYS), "parts", {n: parts[n] for n in ("contents", "end")})
    monkeypatch.setattr(http_upstream, "listening", fails)

    run = judged((sys.executable, str(HERE / "over_http.py"), "none", "--", "{url}"))

    assert "another program took the port of our server in end" in run.trouble
    assert "gateway-restart-reached" not in broken(run)


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a late answer come soon, and make few calls at a time."""
    load(GATEWAYS)
    suites = "mcp_touchstone._suites.conformance.gateways"
    monkeypatch.setattr(sys.modules[f"{suites}.trouble"], "LATE", 1500)
    monkeypatch.setattr(sys.modules[f"{suites}.speed"], "LANES", {1: 1, 64: 64})


@pytest.mark.slow
@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize(
    "command",
    [
        faulty("none"),
        (*OURS, "bridge", "--port", "{port}", "--", "{server}"),
        (*OURS, "tap", "--listen", "{port}", "--to", "{url}", "--report", "{root}/tap"),
        (sys.executable, str(HERE / "over_http.py"), "none", "--", "{url}"),
    ],
    ids=["stdio to stdio", "HTTP to stdio", "HTTP to HTTP", "stdio to HTTP"],
)
def test_a_good_gateway_breaks_no_rule(command: tuple[str, ...]) -> None:
    run = judged(command, revision=f"{LEGACY} {MODERN}")

    relays = "tap" in command
    assert broken(run) == ({"gateway-token-own": Outcome.NOTE} if relays else {})
    assert run.conclusion is Conclusion.PASSED
    transport = Transport.HTTP if "{port}" in command else Transport.STDIO
    for revision in (LEGACY, MODERN):
        rows = [row for row in load(GATEWAYS).catalogue if transport in row.transports]
        rows = [row for row in rows if revision in row.revisions and row.id not in ONCE]
        assert {row.id for row in rows} == {*outcomes(run, revision)} - ONCE
        unseen = {k for k, v in outcomes(run, revision).items() if v is Outcome.UNSEEN} - ONCE
        one_client = set() if "{port}" in command else {*CLIENTS, *OF_REQUESTS, *OF_CALLERS}
        no_headers = set() if "{url}" in command else {*HEADERS} - OF_CALLERS
        # Over HTTP each request has a stream of its own there, and its end is the cancellation.
        by_stream = {"gateway-ids-unique", "gateway-tokens-unique", "gateway-cancel-right"}
        stateless = by_stream if revision == MODERN else set()
        one_session = {"gateway-session-own"} if relays else set()
        assert unseen <= {*one_client, *no_headers, *stateless, *one_session, *TROUBLE_AT_TIMES}


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("clause", ["gateway-session-own"])
def test_a_gateway_with_its_own_sessions_breaks_no_rule_over_http(clause: str) -> None:
    run = judged((*OVER_HTTP, "none", "{port}", "{url}"), revision=f"{LEGACY} {MODERN}")

    assert broken(run) == {}
    assert {clause, "gateway-token-own"} <= {v.clause.id for v in run.of(Outcome.PASS)}


def outcomes(run: Run, revision: str) -> dict[str, Outcome]:
    return {v.clause.id: v.outcome for v in run.verdicts if v.revision == revision}


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("clause", ["gateway-lists-meta"])
def test_a_finding_that_does_not_come_again_is_a_note(clause: str, tmp_path: Path) -> None:
    fault = f"{tmp_path / 'begun'} tools/list result._meta"

    assert broken(judged(faulty(f"only-once {fault}"), repeats=2)) == {clause: Outcome.NOTE}
    assert broken(judged(faulty(f"drop {MEMBERS[clause][5:]}"), repeats=2))[clause] is Outcome.WARN


def test_a_gateway_may_know_which_resources_exist(contents_alone: None) -> None:
    del contents_alone

    assert broken(judged(faulty("knows-resources"))) == {}


def test_a_gateway_may_have_other_uris(contents_alone: None) -> None:
    del contents_alone
    expects = "uris=gw+{uri}"

    assert broken(judged(faulty("rewrites all"), expects)) == {}
    assert broken(judged(faulty("rewrites all"), "uris=gw+{scheme}://{rest}")) == {}
    assert "gateway-answers-kind" in broken(judged(faulty("rewrites answers"), expects))
    assert "gateway-resources-facts" in broken(judged(faulty("rewrites all")))


def test_a_gateway_may_read_its_port_from_its_configuration(
    tmp_path: Path, contents_alone: None
) -> None:
    del contents_alone
    template = tmp_path / "its.json"
    template.write_text('["none", "{port}", "{url}"]')
    program = "import json, os, sys; own = json.load(open(sys.argv[2]))\n"
    program += "os.execv(sys.executable, [sys.executable, sys.argv[1], *own])"
    command = (sys.executable, "-c", program, OVER_HTTP[1], "{config}")
    settings = Settings(command=command, timeout=20.0, config_template=template)

    run = check.check(settings, Choice(revisions=(LEGACY,)))

    assert broken(run) == {}
    assert run.conclusion is Conclusion.PASSED


def test_a_gateway_that_hangs_on_a_large_result_is_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    registry = load(GATEWAYS)
    clients = sys.modules["mcp_touchstone._suites.conformance.gateways.clients"]
    monkeypatch.setattr(clients, "PATIENCE", 3.0)
    monkeypatch.setattr(clients, "SIZES", ())
    monkeypatch.setattr(hops, "FACTOR", 0)
    monkeypatch.setattr(
        registry, "parts", {name: registry.parts[name] for name in ("contents", "sizes")}
    )

    found = broken(judged(faulty("hangs-on-large")))

    assert {*found} == {"gateway-result-large", "gateway-request-large"}


def test_a_gateway_that_does_not_start_is_not_checked() -> None:
    run = judged((sys.executable, "-c", "print('no', flush=True)", "{server}"))

    assert run.conclusion is Conclusion.NOT_CHECKED
    assert "the gateway does not start: no result of the opening request on stdio" in run.trouble
    assert "a gateway that listens names {port}" in run.trouble
    assert run.verdicts == []


def test_a_gateway_that_never_reaches_its_server_is_not_checked() -> None:
    program = "import runpy, sys; sys.argv[1:] = ['--root', '{root}']  # {server}\n"
    program += "runpy.run_module('reference_server', run_name='__main__')"

    run = judged((sys.executable, "-c", program))

    assert run.conclusion is Conclusion.NOT_CHECKED
    assert "never reached our server" in run.trouble
    assert run.verdicts == []


def test_a_command_that_does_not_name_our_server_is_refused() -> None:
    with pytest.raises(scene.GatewayError, match="does not name our server"):
        judged((sys.executable, "-c", "pass"))


@pytest.mark.parametrize("word", ["prefix", "prefix=", "hides", "revision=2020-01-01", "opaque"])
def test_an_unknown_expectation_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="is none of"):
        Expected.read((word,))


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("clause", ["gateway-tools-listed"])
def test_what_a_gateway_is_meant_to_do_is_no_finding(clause: str) -> None:
    hidden = judged(faulty("drop tools/list result.tools.1"), "hides=fail", "hides=later")
    dropped = judged(faulty("drop initialize result.capabilities.logging"), "drops=logging")
    strict = judged(faulty("drop tools/list result._meta"), "transparent")

    assert clause in {v.clause.id for v in hidden.verdicts}
    assert broken(hidden) == broken(dropped) == {}
    assert broken(strict) == {"gateway-lists-meta": Outcome.FAIL}
