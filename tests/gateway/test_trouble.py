"""Each rule on trouble, several servers and many calls is broken by one faulty gateway."""

import sys

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.loader import GATEWAYS, load
from mcp_touchstone.gateway import scene
from mcp_touchstone.judging.expected import Expected
from mcp_touchstone.results.run import Conclusion
from mcp_touchstone.results.verdict import Outcome
from tests.gateway import test_gateway
from tests.gateway.test_gateway import (
    HERE,
    LEGACY,
    OURS,
    broken,
    judged,
    soon,
)

__all__ = ["soon"]

FAULTY = (sys.executable, str(HERE / "troubled_faults.py"))
FAULTY_BRIDGE = (sys.executable, str(HERE / "faulty_bridge.py"))
JOINING = (sys.executable, str(HERE / "joining.py"))

TROUBLE = {
    "late": {
        "gateway-open-calls": "one-by-one",
        "gateway-late-answers": "gives-up late",
        "gateway-late-own": "crosses-late",
        "gateway-list-fresh": "keeps-list",
        "gateway-list-new": "knows-names",
    },
    "garbage": {
        "gateway-garbage-outlived": "dies-of-garbage",
        "gateway-garbage-answered": "drops-garbage",
    },
    "end": {"gateway-end-after": "answers-once", "gateway-restart-opened": "restarts"},
    "stop": {"gateway-stop-server": "leaves"},
    "speed": {"gateway-load-own": "mixes-many"},
}
"""Exchange -> clause -> the fault that breaks it, and no other."""

CLIENTS = {
    "gateway-session-list": "crosses sessions",
    "gateway-leave-cancels": "none",
    "gateway-leave-others": "ends-all {root}/gone",
}
"""The same for the exchange in which a client leaves, behind a bridge."""

SESSIONS = {"gateway-sessions-closed": "leaves", "gateway-streams-own": "others"}
"""Clause -> the fault of a bridge that breaks it, and no other."""

SERVERS = {
    "gateway-servers-listed": "lists-one",
    "gateway-servers-routed": "reaches-one",
    "gateway-servers-apart": "ends-with-one",
}
"""Clause -> the fault of a gateway that joins two servers."""


def faulty(words: str) -> tuple[str, ...]:
    return (*FAULTY, *words.split(), "--", "{server}")


def joining(*words: str) -> tuple[str, ...]:
    return (*JOINING, *words, "--", "{server:a}", "--and", "{server:b}")


@pytest.fixture
def bounded(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Hold only the first exchange, and the one that shows a fault."""
    request.getfixturevalue("soon")
    names = {"contents", request.getfixturevalue("exchange")}
    parts = {k: v for k, v in load(GATEWAYS).parts.items() if k in names}
    monkeypatch.setattr(load(GATEWAYS), "parts", parts)


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(
    ("exchange", "clause"), [(name, one) for name, of in TROUBLE.items() for one in of]
)
def test_a_gateway_with_a_fault_breaks_its_rule_and_no_other(exchange: str, clause: str) -> None:
    run = judged(faulty(TROUBLE[exchange][clause]))

    assert list(broken(run)) == [clause]
    assert broken(run)[clause].value == load(GATEWAYS).catalogue[clause].breach.value


@pytest.mark.slow
@pytest.mark.usefixtures("soon")
def test_a_member_that_is_lost_everywhere_is_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("contents", "subscriptions", "questions", "speed")
    parts = {name: load(GATEWAYS).parts[name] for name in names}
    monkeypatch.setattr(load(GATEWAYS), "parts", parts)
    words = "drop tools/call result.structuredContent"

    run = judged(faulty(words), revision=f"{LEGACY} {rev.LATEST_MODERN}")

    assert list(broken(run)) == ["gateway-result-structured"]


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("exchange", ["late"])
def test_a_gateway_that_gives_a_call_without_progress_up_breaks_its_rule(exchange: str) -> None:
    assert exchange == "late"
    assert list(broken(judged(faulty("gives-up quiet")))) == ["gateway-late-answers"]


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("exchange", ["leave"])
@pytest.mark.parametrize("clause", CLIENTS)
def test_a_gateway_whose_client_leaves_breaks_its_rule_and_no_other(
    exchange: str, clause: str
) -> None:
    ours = (*FAULTY_BRIDGE, "forgets") if clause == "gateway-leave-cancels" else OURS
    run = judged((*ours, "bridge", "--port", "{port}", "--", *faulty(CLIENTS[clause])))

    assert exchange == "leave"
    assert list(broken(run)) == [clause]


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("exchange", ["sessions"])
@pytest.mark.parametrize("clause", SESSIONS)
def test_a_gateway_that_mixes_sessions_breaks_its_rule_and_no_other(
    exchange: str, clause: str
) -> None:
    words = (SESSIONS[clause], "bridge", "--port", "{port}", "--", "{server}")

    assert exchange == "sessions"
    assert list(broken(judged((*FAULTY_BRIDGE, *words)))) == [clause]


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("exchange", ["servers"])
def test_a_gateway_that_joins_servers_breaks_its_rule_and_no_other(exchange: str) -> None:
    assert exchange == "servers"
    for clause, fault in SERVERS.items():
        assert list(broken(judged(joining(fault)))) == [clause]


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("exchange", ["servers"])
def test_a_good_gateway_that_joins_servers_breaks_no_rule(exchange: str) -> None:
    plain = judged(joining("none"))
    prefixed = judged(joining("none", "a__", "b__"), "prefix=a__", "prefix=b__")
    other_uris = judged(joining("uris"))

    assert exchange == "servers"
    for run in (plain, prefixed, other_uris):
        assert broken(run) == {}
        assert {*SERVERS} <= {v.clause.id for v in run.of(Outcome.PASS)}


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize(
    ("exchange", "fault", "found"),
    [("end", "restarts opened", []), ("stop", "quits", ["gateway-stop-server"])],
)
def test_a_gateway_ends_or_restarts_its_server(exchange: str, fault: str, found: list[str]) -> None:
    run = judged(faulty(fault))

    assert list(broken(run)) == found
    judged_here = {v.clause.id for v in run.verdicts if v.outcome is not Outcome.UNSEEN}
    assert {*TROUBLE[exchange]} <= judged_here


@pytest.mark.slow
@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("exchange", ["messages"])
def test_a_gateway_that_passes_one_call_at_a_time_holds_no_progress_back(exchange: str) -> None:
    run = judged(faulty("one-by-one"))

    assert exchange == "messages"
    assert broken(run) == {}


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("exchange", ["clients"])
def test_a_gateway_that_drops_a_second_client_is_not_checked(exchange: str) -> None:
    run = judged((*FAULTY_BRIDGE, "one", "bridge", "--port", "{port}", "--", "{server}"))

    assert exchange == "clients"
    assert run.trouble.startswith(f"{LEGACY}: the gateway drops a second client: ")
    assert "\n" not in run.trouble
    assert run.conclusion is Conclusion.NOT_CHECKED


@pytest.mark.usefixtures("bounded")
@pytest.mark.parametrize("exchange", ["end"])
def test_an_exchange_with_too_many_conversations_is_not_judged(
    exchange: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scene, "MOST", 1)
    run = judged(faulty("restarts opened"))

    assert exchange == "end"
    assert not {*broken(run)} & {*TROUBLE["end"]}
    assert "the gateway began more than 1 conversations with our server in " in run.trouble
    assert run.conclusion is Conclusion.NOT_CHECKED


def test_what_other_servers_have_is_not_compared() -> None:
    expected = Expected(prefix="a__", foreign=("b__", "second-"))
    named = [{"name": name} for name in ("a__echo", "b__echo", "second-text", "own")]

    assert expected.own(named) == [{"name": "echo"}, {"name": "own"}]


def test_every_rule_has_a_faulty_gateway() -> None:
    ours = [one for of in TROUBLE.values() for one in of]
    rest = (
        getattr(test_gateway, n) for n in ("MEMBERS", "MESSAGES", "CLIENTS", "HEADERS", "TO_HTTP")
    )
    known = {
        *ours,
        *CLIENTS,
        *SESSIONS,
        *SERVERS,
        *test_gateway.STATELESS,
        *(c for of in rest for c in of),
    }
    assert known == {clause.id for clause in load(GATEWAYS).catalogue}
