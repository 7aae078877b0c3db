"""What is noted of an exchange and what a report says of it, without a gateway."""

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.loader import GATEWAYS, load
from mcp_touchstone.discovery.recon import ServerProfile
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.gateway import check
from mcp_touchstone.judging.expected import Expected
from mcp_touchstone.judging.gateway_talk import ExchangeTalk
from mcp_touchstone.judging.hops import ExchangeStep, Pair, RecordedExchange, said
from mcp_touchstone.parts import callers
from mcp_touchstone.report.terminal import Terminal
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.wire.framing import encode
from mcp_touchstone.wire.transcript import Transcript


def pair(alone: object, through: object) -> Pair:
    return Pair(
        Transcript(rev.LATEST_LEGACY, lambda: 0.0),
        ServerProfile(Pace(1.0)),
        scenario=check.SPEED,
        direct=RecordedExchange((), (), {}, {"8": alone}),
        through=RecordedExchange((), (), {}, {"8": through}),
    )


def test_speed_is_told_without_the_gateway_and_through_it() -> None:
    (note,) = check.speeds([pair((0.002, 4000.0), (0.005, 1000.0))])

    assert note == (
        "speed with 8 calls in flight: 2 ms for a call, 5 ms through the gateway (2.5 times); "
        "4,000 calls a second, 1,000 through the gateway (0.25 times)"
    )


def test_a_slow_gateway_is_told_without_powers_of_ten() -> None:
    (note,) = check.speeds([pair((0.0912, 600.0), (4.414, 14.0))])

    assert "91 ms for a call, 4,400 ms through the gateway (48 times); 600 calls" in note


def test_the_call_that_an_answer_belongs_to_is_found_by_its_mark() -> None:
    asked, other = (
        {"id": n, "method": "tools/call", "params": {"name": "ask", "arguments": {"mark": mark}}}
        for n, mark in ((1, "roots-0"), (2, "sampling-0"))
    )
    client, server = (Transcript(rev.LATEST_LEGACY, lambda: 0.0) for _ in range(2))
    for message in (asked, other):
        client.said(encode(message), message, required=False)
    server.said(encode(asked), asked, required=False)
    steps = {"roots": ExchangeStep(1), "sampling": ExchangeStep(2, why="no answer within 5.0 s")}
    held = RecordedExchange((client,), (server,), steps)
    found = replace(pair(None, None), through=held, direct=held)

    seen = found.compare("", "sampling", {"asked": [{}]}, {"asked": []})

    assert (found.at_server("roots"), found.at_server("sampling")) == (("upstream:0", 1), None)
    assert seen.actual == (
        "lost: asked[0]; no answer within 5.0 s; the server did not get the request"
    )


@pytest.mark.parametrize("content", [[1], [None], [[]], [{}]])
def test_content_of_another_shape_has_no_text(content: object) -> None:
    assert said(ExchangeStep(1, 2, {"result": {"content": content}})) is None


@pytest.mark.parametrize("content", [[], {"0": 1}, "text"])
def test_without_content_the_whole_answer_is_told(content: object) -> None:
    answer = {"result": {"content": content}}

    assert said(ExchangeStep(1, 2, answer)) == answer


def test_a_screen_names_the_revisions_that_a_gateway_lacks() -> None:
    console = Console(file=io.StringIO(), width=80)
    subject = Subject(kind="gateway", reported={"2025-11-25": {}}, refused={"2026-07-28": "no"})

    Terminal(console).name(subject, ran=False)

    assert isinstance(console.file, io.StringIO)
    shown = [line.split(maxsplit=1) for line in console.file.getvalue().splitlines()]
    assert shown == [
        ["gateway", "it reports no name"],
        ["speaks", "2025-11-25"],
        ["lacks", "2026-07-28"],
    ]


def test_no_speed_is_told_if_a_call_got_no_answer() -> None:
    assert list(check.speeds([pair((0.002, 4000.0), None), pair(None, (0.002, 4000.0))])) == []


def test_a_list_whose_later_page_came_too_late_has_run_out_of_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = {"result": {"tools": [{"name": "a"}], "nextCursor": "b"}}
    answers = [ExchangeStep(1, 2, page), ExchangeStep(3, None, None, "too late", timed_out=True)]
    monkeypatch.setattr(ExchangeTalk, "ask", lambda *_: answers.pop(0))
    talk = ExchangeTalk.__new__(ExchangeTalk)
    talk.steps = {}

    step = talk.pages("many", "tools/list", "tools")

    assert (step.timed_out, step.result["tools"]) == (True, [{"name": "a"}])


@pytest.mark.parametrize(
    ("select", "held"),
    [
        ((), {*load(GATEWAYS).parts}),
        (("gateway-text-whole",), {"sizes"}),
        (("members", "gateway-end-answered"), {"contents", "end"}),
        (("gateway-ids-unique",), {"messages"}),
        (("gateway-header-session",), {"headers", "redirect", "streams", "resumed"}),
        (("gateway-rounds",), set()),
    ],
)
def test_only_the_exchanges_that_selected_rules_need_are_held(
    select: tuple[str, ...], held: set[str]
) -> None:
    choice = Choice(select=select)

    assert {*check.needed(load(GATEWAYS), choice, rev.LATEST_LEGACY)} == held


def test_a_rule_reads_exchanges_that_exist() -> None:
    registry = load(GATEWAYS)

    assert {rule.of for rule in registry.ambients} <= {"", *registry.parts}


def test_each_place_that_a_row_compares_belongs_to_one_rule() -> None:
    rows = [row for row in load(GATEWAYS).catalogue if row.compares]
    places = [
        (step, path)
        for row in rows
        for one in row.compares
        for steps, path in [one.split(": ")]
        for step in steps.split()
    ]

    assert {row.chapter for row in rows} == {"members"}
    assert len(places) == len({*places}) > 100
    assert {path.partition(".")[0] for _, path in places} == {"result", "error"}


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("hides=fale", "'hides=fale': 'fale' is none of everything, fail, "),
        ("drops=log", "'drops=log': 'log' is none of tools, prompts, resources, completions, "),
        ("uris=gw", "'uris=gw' has neither {uri} once, nor {scheme} and {rest}"),
        ("uris={uri}{uri}", "'uris={uri}{uri}' has neither {uri} once, nor {scheme} and {rest}"),
        ("uris={scheme}", "'uris={scheme}' has neither {uri} once, nor {scheme} and {rest}"),
    ],
)
def test_a_wrong_expectation_is_named(word: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        Expected.read((word,))


def called_by(user: str) -> Transcript:
    """Return a conversation of a gateway with our server in which a user's call is."""
    found = Transcript(rev.LATEST_LEGACY, lambda: 0.0)
    params = {"name": "echo", "arguments": {"text": user}}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    found.said(encode(asked), asked, required=False)
    return found


@pytest.mark.parametrize(("stamps", "passed"), [("ab", True), ("aa", False)])
@pytest.mark.parametrize(("sessions", "judged"), [(("of-0", "of-1"), True), (("of-0",), False)])
def test_a_list_that_another_user_got_is_a_finding_where_users_have_sessions(
    stamps: str, passed: bool, sessions: tuple[str, ...], judged: bool
) -> None:
    steps = {
        f"tools-{client}": ExchangeStep(
            0,
            None,
            {"result": {"tools": [{"name": "echo", "description": callers.STAMP + stamp * 16}]}},
            client=client,
        )
        for client, stamp in enumerate(stamps)
    }
    through = RecordedExchange((), [called_by(one) for one in sessions], steps)
    (rule,) = (
        one
        for one in load(GATEWAYS).ambients
        if "gateway-users-list" in {clause.id for clause in one.clauses}
    )

    seen = list(rule.watch(replace(pair(None, None), through=through)))
    found = [one.passed for one in seen if one.clause == "gateway-users-list"]
    assert found == ([True, passed] if judged else [])
