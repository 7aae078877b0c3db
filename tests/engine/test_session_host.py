"""Over HTTP, scenarios that need an unused process use sessions of one process."""

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.scenario import Place, Registry
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.engine.runner import Choice, judge
from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.timing import WaitKind
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.http_endpoint import PORT
from tests.conftest import HERE
from tests.toy_suite import LONG, declare, outcomes, toy_registry

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a start needs a second there")


DISCOVERY = 2
"""The process of discovery, and the one that serves the sessions of scenarios."""


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    with toy_registry(tmp_path) as made:
        yield made


def checked(registry: Registry, *options: str, repeats: int = 0) -> Run:
    """Judge the server in one revision."""
    target = Target(
        command=(sys.executable, str(HERE / "session_server.py"), PORT, *options),
        url=f"http://127.0.0.1:{PORT}/mcp",
        timeout=LONG,
    )
    return judge(target, registry, Choice(revisions=(rev.LATEST_LEGACY,), repeats=repeats))


class Places:
    """The process and the session of each conversation of some scenarios, in any order."""

    def __init__(self, *names: str, restarts: int = 0, **marks: Any) -> None:
        self.found: list[tuple[int, int]] = []
        for name in names:
            self._declare(name, restarts, {"place": Place.OWN_SESSION, **marks})

    def _declare(self, name: str, restarts: int, marks: dict[str, Any]) -> None:
        @declare("toy-must", name=name, **marks)
        def _(talk: Conversation) -> None:
            for number in range(restarts + 1):
                if number:
                    talk.server.restart()
                talk.wire.open()
                said = talk.wire.request("whoami")
                talk.judge("toy-must", not said.is_error, expected="an answer", at=said)
                if said.result is not None:
                    self.found.append((said.result["process"], said.result["session"]))

    @property
    def processes(self) -> Counter[int]:
        return Counter(process for process, _ in self.found)


def test_scenarios_get_sessions_of_one_process(registry: Registry) -> None:
    places = Places("first", "second", "third")

    run = checked(registry)

    assert outcomes(run) == {"toy-must": Outcome.PASS}
    assert len(places.processes) == 1
    assert len({*places.found}) == 3
    assert run.execution.processes == DISCOVERY
    guests = [one for one in run.connections if one.channel.is_guest]
    assert WaitKind.STARTUP not in {wait.kind for one in guests for wait in one.waits}


def test_restart_opens_another_session(registry: Registry) -> None:
    places = Places("only", restarts=2)

    run = checked(registry)

    assert len(places.processes) == 1
    assert len({*places.found}) == 3
    assert run.execution.processes == DISCOVERY


def test_scenario_may_need_a_process_of_its_own(registry: Registry) -> None:
    places = Places("first", "second", place=Place.OWN_PROCESS)

    run = checked(registry)

    assert sorted(places.processes.values()) == [1, 1]
    assert run.execution.processes == DISCOVERY - 1 + 2


@pytest.mark.parametrize("option", ["single", "one-id", "replaces"])
def test_server_with_one_session_gets_a_process_for_each(registry: Registry, option: str) -> None:
    places = Places("first", "second")

    run = checked(registry, option)

    assert outcomes(run) == {"toy-must": Outcome.PASS}
    assert sorted(places.processes.values()) == [1, 1]
    assert run.execution.processes == DISCOVERY + 2


def test_finding_of_a_session_needs_an_unused_process(
    registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = Places("first", "second")
    dropped: list[str] = []
    discard = ProcessPool.discard

    def noted(pool: ProcessPool, connection: Connection) -> None:
        dropped.append(connection.transcript.label)
        discard(pool, connection)

    monkeypatch.setattr(ProcessPool, "discard", noted)

    run = checked(registry, "fails-later")

    assert outcomes(run) == {"toy-must": Outcome.PASS}
    assert sorted(places.processes.values()) == [1, 1]
    assert [c.transcript.label for c in run.connections].count("first") == 2
    assert dropped.count("first") == 1


def test_finding_of_a_session_and_of_an_unused_process_is_repeated(registry: Registry) -> None:
    used = []

    @declare("toy-must", place=Place.OWN_SESSION)
    def _(talk: Conversation) -> None:
        talk.wire.open()
        used.append(talk.wire.channel.is_guest)
        talk.judge("toy-must", False, expected="this", at=1)

    run = checked(registry, repeats=3)

    (found,) = run.of(Outcome.FAIL)
    assert used == [True, False]
    assert (found.gravest.tried, found.gravest.found) == (2, 2)


def test_finding_of_an_unused_process_only_is_repeated_on_others(registry: Registry) -> None:
    used = []

    @declare("toy-must", "toy-should", place=Place.OWN_SESSION)
    def _(talk: Conversation) -> None:
        talk.wire.open()
        is_session = talk.wire.channel.is_guest
        used.append(is_session)
        talk.judge("toy-must", not is_session, expected="this", at=1)
        talk.judge("toy-should", is_session, expected="this", at=1)

    run = checked(registry, repeats=1)

    assert outcomes(run) == {"toy-must": Outcome.PASS, "toy-should": Outcome.WARN}
    assert used == [True, False, False]
    (found,) = run.of(Outcome.WARN)
    assert (found.gravest.tried, found.gravest.found) == (3, 2)


def test_scenario_that_uses_the_process_gets_its_own(registry: Registry) -> None:
    used = []

    @declare("toy-must", place=Place.OWN_SESSION)
    def _(talk: Conversation) -> None:
        talk.wire.open()
        used.append(talk.wire.channel.is_guest)
        talk.judge("toy-must", talk.wire.process.running, expected="a process")

    run = checked(registry)

    assert used == [True, False]
    assert outcomes(run) == {"toy-must": Outcome.PASS}


def test_exit_of_the_process_is_a_finding_of_its_cause_only(registry: Registry) -> None:
    @declare("toy-should", name="kills", place=Place.OWN_SESSION)
    def _(talk: Conversation) -> None:
        talk.wire.open()
        said = talk.wire.request("die")
        talk.judge("toy-should", said.answered, expected="an answer", at=said)

    Places("first", "second", "third", restarts=3)

    run = checked(registry)

    assert outcomes(run) == {"toy-should": Outcome.WARN, "toy-must": Outcome.PASS}


def test_scenario_after_which_the_process_is_gone_is_held_again(registry: Registry) -> None:
    used = []

    @declare("toy-must", place=Place.OWN_SESSION)
    def _(talk: Conversation) -> None:
        talk.wire.open()
        used.append(talk.wire.channel.is_guest)
        talk.judge("toy-must", True, expected="nothing")
        talk.wire.request("die", required=False)

    checked(registry)

    assert used == [True, False]


def test_each_session_is_deleted_before_its_process_ends(registry: Registry) -> None:
    Places("first", "second")

    run = checked(registry)

    last = [c.transcript.exchanges[-1] for c in run.connections if c.transcript.label != "recon"]
    assert [(one.verb, one.status) for one in last] == [("DELETE", 200)] * 4


def test_session_knows_the_addresses_of_its_process(registry: Registry) -> None:
    found = []

    @declare("toy-must", place=Place.OWN_SESSION)
    def _(talk: Conversation) -> None:
        talk.wire.open()
        found.append((talk.wire.channel.is_guest, talk.http.addresses()))
        talk.judge("toy-must", True, expected="nothing")

    checked(registry)

    assert found == [(True, ["127.0.0.1"])]


def test_finding_after_a_restart_in_a_session_needs_unused_processes(registry: Registry) -> None:
    used = []

    @declare("toy-must")
    def _(talk: Conversation) -> None:
        talk.server.restart().open()
        used.append(talk.wire.channel.is_guest)
        talk.judge("toy-must", not used[-1], expected="a process", at=1)

    run = checked(registry)

    assert used == [True, False]
    assert outcomes(run) == {"toy-must": Outcome.PASS}
