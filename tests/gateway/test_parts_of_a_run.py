"""What is noted of an exchange and what a report says of it, without a gateway."""

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.discovery.recon import ServerProfile
from mcp_touchstone.gateway import check
from mcp_touchstone.judging.gateways import ExchangeStep, ExchangeTalk, Held, Pair
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.wire.transcript import Transcript


def pair(alone: object, through: object) -> Pair:
    return Pair(
        Transcript(rev.LATEST_LEGACY, lambda: 0.0),
        ServerProfile(Pace(1.0)),
        scenario=check.SPEED,
        direct=Held((), (), {}, {"8": alone}),
        through=Held((), (), {}, {"8": through}),
    )


def test_speed_is_told_without_the_gateway_and_through_it() -> None:
    (note,) = check.speeds([pair((0.002, 4000.0), (0.005, 1000.0))])

    assert note == (
        "speed with 8 calls in flight: 2 ms for a call, 5 ms through the gateway (2.5 times); "
        "4,000 calls a second, 1,000 through the gateway (0.25 times)"
    )


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
