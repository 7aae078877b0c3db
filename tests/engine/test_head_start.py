"""Lasting scenarios begin while a probe still looks for the call that they need."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.scenario import Registry, Share
from mcp_touchstone.client.connection import Connection
from mcp_touchstone.discovery import probe_traffic
from mcp_touchstone.discovery.probe_traffic import WISHED
from mcp_touchstone.engine import head_start
from mcp_touchstone.engine.runner import Choice, judge
from mcp_touchstone.engine.shared_processes import SharedProcesses
from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.target.target import ROOT, Target
from tests.conftest import HERE
from tests.toy_suite import LONG, declare, declare_result, outcomes, toy_registry

LEGACY = rev.LATEST_LEGACY
NAME = "needs_a_slow_call"


@pytest.fixture(autouse=True)
def busy_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a delay change neither the first call of the probe nor whether its seconds fit."""
    monkeypatch.setattr(probe_traffic, "_wish", lambda _call: WISHED)
    monkeypatch.setattr(head_start, "TOLERANCE", LONG)


@pytest.fixture(autouse=True)
def many_cases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start the processes beside each other, as if many scenarios were chosen."""
    monkeypatch.setattr(Choice, "needs_few", lambda _choice, _registry: False)


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with toy_registry(tmp_path) as made:
        yield made


class Uses:
    """The calls that the scenario got as example, and whether the probe had found each."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, bool]] = []
        self.slowdowns: list[float] = []

        @declare("toy-slow", name=NAME, fresh=True, lasts=True)
        def _(talk: Conversation) -> None:
            talk.wire.open()
            call = talk.examples.best("slow-call")
            self.calls.append((call.name, bool(talk.spoken.found.get("slow-call"))))
            answered = talk.wire.request(call.method, call.params)
            self.slowdowns.append(talk.examples.slowdown("slow-call"))
            talk.judge("toy-slow", answered.answered, expected="an answer")


def checked(registry: Registry, *tools: str, **choice: Any) -> Run:
    command = (sys.executable, "-S", str(HERE / "toy_server.py"), ROOT, *tools)
    target = Target(command=command, timeout=LONG)
    return judge(target, registry, Choice(revisions=(LEGACY,), **choice))


def counted(run: Run) -> list[bool]:
    """Return whether rules judge the traffic, for each process of the scenario."""
    transcripts = [connection.transcript for connection in run.connections]
    return [one.judged for one in transcripts if one.scenario == NAME or NAME in one.label]


def test_scenario_makes_the_call_that_the_probe_tries(registry: Registry) -> None:
    uses = Uses()

    run = checked(registry, "nap")

    assert uses.calls == [("nap", False)]
    assert outcomes(run) == {"toy-slow": Outcome.PASS}
    assert counted(run) == [True]


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Return an event for which the process of the probe waits."""
    event = threading.Event()
    get = SharedProcesses.get

    def late(shared: SharedProcesses, revision: str, share: Share = Share.ORDINARY) -> Connection:
        if share is Share.DRAWN:
            assert event.wait(LONG)
        return get(shared, revision, share)

    monkeypatch.setattr(SharedProcesses, "get", late)
    return event


def test_scenario_need_not_wait_for_the_process_of_the_probe(
    registry: Registry, called: threading.Event
) -> None:
    @declare("toy-slow", fresh=True, lasts=True)
    def _(talk: Conversation) -> None:
        talk.wire.open()
        talk.examples.best("slow-call")
        called.set()
        talk.judge("toy-slow", True, expected="an example")

    run = checked(registry, "nap")

    assert outcomes(run) == {"toy-slow": Outcome.PASS}


def test_repetition_need_not_wait_for_the_probe_either(
    registry: Registry, called: threading.Event
) -> None:
    calls: list[str] = []

    @declare("toy-slow", fresh=True, lasts=True)
    def _(talk: Conversation) -> None:
        talk.wire.open()
        calls.append(talk.examples.best("slow-call").name)
        if len(calls) > 1:
            called.set()
        talk.judge.certain("toy-slow")
        calls.append(str(called.wait(LONG)))
        talk.judge("toy-slow", False, expected="this")

    checked(registry, "nap")

    assert calls == ["nap", "nap", "True", "True"]


def test_early_scenario_knows_how_long_its_call_took_in_the_end(registry: Registry) -> None:
    uses = Uses()

    run = checked(registry, "late")

    (found,) = run.profile.spoken[LEGACY].examples("slow-call")
    assert uses.calls == [("late", False)]
    assert uses.slowdowns == [found.seconds / WISHED]
    assert found.seconds > WISHED


def test_scenario_begins_again_if_the_call_takes_other_seconds(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_start, "TOLERANCE", 0.0)
    uses = Uses()

    run = checked(registry, "late")

    assert uses.calls == [("late", False), ("late", True)]
    assert uses.slowdowns[-1] == 1.0
    assert sorted(counted(run)) == [False, True]


def test_scenario_begins_again_with_another_call_that_was_found(registry: Registry) -> None:
    uses = Uses()

    run = checked(registry, "brief", "nap")

    assert uses.calls == [("brief", False), ("nap", True)]
    assert outcomes(run) == {"toy-slow": Outcome.PASS}
    assert sorted(counted(run)) == [False, True]


def test_scenario_does_not_apply_if_the_call_does_not_last(registry: Registry) -> None:
    uses = Uses()
    declare_result("toy-must", passed=True)

    run = checked(registry, "brief", "echo")

    assert uses.calls == [("brief", False)]
    assert outcomes(run) == {"toy-must": Outcome.PASS}
    assert counted(run) == [False]
    assert "second or" in {one.clause: one.why for one in run.absent}["toy-slow"]


def test_one_conversation_at_a_time_begins_none_early(registry: Registry) -> None:
    uses = Uses()

    checked(registry, "nap", jobs=1)

    assert uses.calls == [("nap", True)]
