"""Scenarios that open or end the process that others share."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, call

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.scenario import Place, Registry, Share
from mcp_touchstone.engine.lease import Lender
from mcp_touchstone.engine.runner import Choice, judge
from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome
from tests.toy_suite import declare, outcomes, server, toy_registry


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with toy_registry(tmp_path) as made:
        yield made


class Used:
    """The processes of scenarios, by their names.

    Args:
        fails: scenarios with a finding on any process that another scenario has used.
    """

    def __init__(self, *fails: str) -> None:
        self.seen: dict[str, list[int]] = {}
        self._fails = fails

    def declare(self, name: str, clause: str = "toy-must", **marks: Any) -> None:
        @declare(clause, name=name, **marks)
        def _(talk: Conversation) -> None:
            if marks.get("place") is Place.FIRST:
                talk.wire.open()
            process = talk.wire.process.pid
            is_used = any(process in pids for pids in self.seen.values())
            self.seen.setdefault(name, []).append(process)
            passed = not (is_used and name in self._fails)
            talk.judge(clause, passed, expected="an unused process", at=1)
            if marks.get("place") is Place.LAST:
                talk.wire.end()


def checked(registry: Registry, repeats: int = 0) -> Run:
    return judge(server(), registry, Choice(repeats=repeats))


def test_scenario_opens_the_process_that_others_share(registry: Registry) -> None:
    used = Used()
    used.declare("later", willing=True)
    used.declare("ends", place=Place.LAST, share=Share.WILLING)
    used.declare("opens", place=Place.FIRST, share=Share.WILLING)
    used.declare("hurts", willing=True, hurts=True)

    run = checked(registry)

    assert outcomes(run) == {"toy-must": Outcome.PASS}
    assert list(used.seen) == ["opens", "later", "hurts", "ends"]
    assert len({pid for pids in used.seen.values() for pid in pids}) == 1


def test_process_of_a_scenario_with_a_finding_is_not_shared(registry: Registry) -> None:
    used = Used()
    used.declare("later", willing=True)

    @declare("toy-should", name="opens", place=Place.FIRST, share=Share.WILLING)
    def _(talk: Conversation) -> None:
        talk.wire.open()
        used.seen["opens"] = [talk.wire.process.pid]
        talk.judge("toy-should", False, expected="this", at=1)

    run = checked(registry)

    assert outcomes(run) == {"toy-must": Outcome.PASS, "toy-should": Outcome.WARN}
    assert used.seen["later"] != used.seen["opens"]


def test_finding_on_a_used_process_needs_an_unused_one(registry: Registry) -> None:
    used = Used("strict")
    used.declare("opens", place=Place.FIRST, share=Share.WILLING)
    used.declare("strict", place=Place.LAST, share=Share.WILLING)

    run = checked(registry)

    assert outcomes(run) == {"toy-must": Outcome.PASS}
    first, second = used.seen["strict"]
    assert used.seen["opens"] == [first]
    assert second != first


def test_finding_on_both_processes_is_repeated_already(registry: Registry) -> None:
    used = Used()
    used.declare("opens", place=Place.FIRST, share=Share.WILLING)
    pids = []

    @declare("toy-should", name="ends", place=Place.LAST, share=Share.WILLING)
    def _(talk: Conversation) -> None:
        pids.append(talk.wire.process.pid)
        talk.judge("toy-should", False, expected="this", at=1)
        talk.wire.end()

    run = checked(registry, repeats=3)

    (found,) = run.of(Outcome.WARN)
    assert used.seen["opens"] == [pids[0]]
    assert len(set(pids)) == len(pids) == 2
    assert (found.gravest.tried, found.gravest.found) == (2, 2)


@pytest.mark.parametrize("exits", [False, True])
def test_process_that_a_scenario_leaves_during_a_start_is_the_shared_one(exits: bool) -> None:
    left, started = MagicMock(gone=exits), MagicMock(gone=False)
    pool = MagicMock()
    shared = Lender(pool)

    def spawn(revision: str, *_: Any, **__: Any) -> MagicMock:
        assert shared.put(revision, left, Share.LASTING)
        return started

    pool.spawn = spawn

    assert shared.get(rev.LATEST_LEGACY, Share.LASTING) is (started if exits else left)
    assert pool.retire.mock_calls == ([] if exits else [call(started)])
