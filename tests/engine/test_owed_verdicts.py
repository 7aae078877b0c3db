"""What discovery found and the run did not judge is BROKEN, and never passes."""

import sys
from pathlib import Path

import pytest

from mcp_touchstone.catalog.loader import load
from mcp_touchstone.connection.server_profile import ServerProfile, Spoken
from mcp_touchstone.discovery import recon
from mcp_touchstone.engine import stages
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.plan import Plan
from mcp_touchstone.engine.runner import judge
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.target.target import Target
from mcp_touchstone.wire.reply import Reply

PING = "ping-empty-response"
OLD, NEW = "2025-06-18", "2025-11-25"


def plan_of(choice: Choice) -> Plan:
    """Return the plan for a server that speaks two revisions and offers nothing."""
    profile = ServerProfile(Pace(1.0), spoken={OLD: Spoken(Reply(1)), NEW: Spoken(Reply(1))})
    plan = Plan(Target(command=("./server",)), profile, load(), choice)
    plan.rest()
    return plan


@pytest.mark.parametrize("partial", [False, True])
def test_a_chosen_clause_without_a_result_is_broken_in_each_revision(*, partial: bool) -> None:
    choice = Choice(select=(PING,))
    owed = [] if partial else plan_of(choice).owed

    verdicts = stages.fold([], load(), choice, partial=partial, owed=owed)

    found = [(one.clause.id, one.revision, one.outcome) for one in verdicts]
    assert found == ([] if partial else [(PING, each, Outcome.BROKEN) for each in (OLD, NEW)])


def test_what_was_left_out_for_a_reason_is_not_owed() -> None:
    plan = plan_of(Choice())
    left_out = {(one.clause, one.revision) for one in plan.absent}

    assert left_out
    owed = {(clause.id, one.revision) for one in plan.owed for clause in one.clauses}
    assert owed.isdisjoint(left_out)
    assert {(PING, OLD), (PING, NEW)} <= owed


SERVER = """
import json, os, sys, time
mark, answers = {mark!r}, {answers}

def wait(name):
    until = time.monotonic() + 60
    while answers and not os.path.exists(mark + name) and time.monotonic() < until:
        time.sleep(0.01)

def tell(name):
    open(mark + name, "w").close()

for line in sys.stdin:
    asked = json.loads(line)
    method, result = asked.get("method"), {{}}
    if "id" not in asked or (method == "server/discover" and not answers):
        continue
    if method == "initialize":
        version = asked["params"]["protocolVersion"]
        info = {{"name": "late", "version": "1"}}
        result = {{"protocolVersion": version, "capabilities": {{}}, "serverInfo": info}}
    if method == "server/discover":
        wait("judged")
        result = {{"resultType": "complete", "supportedVersions": ["2026-07-28"]}}
    answer = {{"result": result}}
    if method not in ("initialize", "server/discover", "ping"):  # a scenario asks for it
        tell("judged")
        wait("answered")
        answer = {{"error": {{"code": -32601, "message": "unknown"}}}}
    print(json.dumps({{"jsonrpc": "2.0", "id": asked["id"], **answer}}), flush=True)
    if method == "server/discover":
        tell("answered")
"""


@pytest.mark.parametrize("answers", [True, False])
def test_a_revision_met_too_late_to_be_judged_ends_the_run_as_not_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, answers: bool
) -> None:
    """It is answered while another one is judged. A server that never answers it is checked."""
    monkeypatch.setattr(recon, "DISCOVER_PATIENCE", 0.5)
    server = tmp_path / "server.py"
    server.write_text(SERVER.format(mark=f"{tmp_path}/", answers=answers), "utf-8")
    choice = Choice(select=("jsonrpc-method-not-found",), revisions=(NEW, "2026-07-28"))

    run = judge(Target(command=(sys.executable, str(server))), load(), choice)

    assert tuple(run.subject.revisions) == (NEW,)
    assert run.exit_code == (2 if answers else 0), run.trouble
    assert ("2026-07-28" in run.trouble) is answers
