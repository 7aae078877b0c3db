"""Each rule on clients is broken by one mutant, and by nothing else."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.catalog.loader import CLIENTS, load
from mcp_touchstone.parts.scenarios import scenarios
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.wire.http_headers import mark_fault
from tests.cases import cases
from tests.mutants.clients.client import Json, Mutant, Out
from tests.mutants.clients.http_client import (
    BACK,
    EMPTY,
    EXPIRED,
    FAULTS,
    FURTHER,
    INSECURE,
    ONE_FORM,
    OTHER_METHOD,
    PORT_ONLY,
    SILENT,
    SLASH,
    SPLIT,
    TOKEN_ID,
    TWO_IN_ONE,
    UNREGISTERED,
    UNSHOWN,
)
from tests.mutants.clients.judged import outcomes, over_http
from tests.mutants.clients.rows import (
    LIST,
    MUTANTS,
    NAMELESS,
    TOOLS,
    at,
    beside,
    note,
    refuses,
)


def broken(found: dict[str, Outcome]) -> set[str]:
    return {clause for clause, one in found.items() if one not in {Outcome.PASS, Outcome.UNSEEN}}


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.clause for mutant in MUTANTS])
def test_a_mutant_breaks_its_rule_and_no_other(mutant: Mutant, tmp_path: Path) -> None:
    found = outcomes(mutant, tmp_path)

    assert broken(found) == {mutant.clause}
    breach = load(CLIENTS).catalogue[mutant.clause].breach
    assert found[mutant.clause].value == breach.value


@pytest.mark.skipif(sys.platform != "linux", reason="nobody sees which files are opened")
@pytest.mark.parametrize("scenario", ["schema-ref", "schema-ref-session"])
def test_a_client_that_opens_the_file_of_a_schema_gets_a_warning(
    scenario: str, tmp_path: Path
) -> None:
    found = outcomes(Mutant("", scenario, habits="opens"), tmp_path)

    assert broken(found) == {"client-ref-not-fetched"}
    assert found["client-ref-not-fetched"] is Outcome.WARN


def test_a_client_that_installs_a_whole_skill_gets_a_warning(tmp_path: Path) -> None:
    found = outcomes(Mutant("", "skills", habits="installs"), tmp_path)

    assert broken(found) == {"client-skills-no-prefetch"}
    assert found["client-skills-no-prefetch"] is Outcome.WARN


@pytest.mark.parametrize("clause", FAULTS)
def test_a_mutant_over_http_breaks_its_rule_and_no_other(clause: str, tmp_path: Path) -> None:
    found = over_http(clause, FAULTS[clause][0], tmp_path)

    assert broken(found) == {clause}
    assert found[clause].value == load(CLIENTS).catalogue[clause].breach.value


@pytest.mark.parametrize(("scenario", "clause"), FURTHER.items())
def test_a_mutant_over_http_breaks_its_rule_in_further_scenarios(
    scenario: str, clause: str, tmp_path: Path
) -> None:
    assert broken(over_http("none", scenario, tmp_path / "good")) == set()

    assert broken(over_http(clause, scenario, tmp_path / "bad")) == {clause}


def test_a_client_of_2025_06_18_must_ask_for_the_metadata_of_rfc_8414(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVISION", "2025-06-18")
    clause = "client-auth-server-metadata-order"

    assert over_http(clause, "auth-discovery", tmp_path)[clause] is Outcome.FAIL


def test_a_client_compares_an_issuer_that_was_not_promised(tmp_path: Path) -> None:
    clause, part = "client-auth-iss", "auth-iss-unexpected"

    assert over_http(clause, part, tmp_path / "bad")[clause] is Outcome.FAIL
    assert over_http("none", part, tmp_path / "good")[clause] is Outcome.PASS


@pytest.mark.parametrize(
    ("fault", "scenario", "clause"),
    [
        (OTHER_METHOD, "auth-token-basic", "client-auth-token-method"),
        (OTHER_METHOD, "auth-token-post", "client-auth-token-method"),
        (SLASH, "auth-machine-jwt", "client-auth-assertion"),
        (EXPIRED, "auth-workload", "client-workload-grant"),
    ],
)
def test_a_client_that_shows_itself_almost_as_it_should_gets_a_warning(
    fault: str, scenario: str, clause: str, tmp_path: Path
) -> None:
    found = over_http(fault, scenario, tmp_path)

    assert broken(found) == {clause}
    assert found[clause] is Outcome.WARN


@cases(
    (UNSHOWN, "client-auth-token-header"),
    (UNREGISTERED, "client-auth-redirect-uri"),
    (INSECURE, "client-auth-redirect-uri"),
)
def test_a_client_breaks_a_rule_of_tokens_in_another_way(
    tmp_path: Path, fault: str, clause: str
) -> None:
    found = over_http(fault, "auth", tmp_path)

    assert broken(found) == {clause}
    assert found[clause] is Outcome.FAIL


@cases((TWO_IN_ONE, {"client-only-messages"}), (EMPTY, {"client-http-post"}), (SPLIT, set()))
def test_each_post_has_one_message_and_a_header_may_have_two_lines(
    tmp_path: Path, fault: str, clauses: set[str]
) -> None:
    assert broken(over_http(fault, "tools_call", tmp_path)) == clauses


@cases((BACK, "auth", "client-era-kept"), (SILENT, "streams", "client-ping-answered"))
def test_a_rule_of_both_transports_is_judged_over_http(
    tmp_path: Path, fault: str, scenario: str, clause: str
) -> None:
    found = over_http(fault, scenario, tmp_path)

    assert broken(found) == {clause}
    assert found[clause] is Outcome.WARN


def test_a_client_redeems_a_code_by_the_client_id_that_asked_for_it(tmp_path: Path) -> None:
    found = over_http(TOKEN_ID, "auth", tmp_path)

    assert broken(found) == {"client-auth-client-id", "client-auth-registration"} & found.keys()


def test_a_client_that_reads_one_form_of_events_only_fails(tmp_path: Path) -> None:
    clause = "client-http-streams"

    assert over_http(ONE_FORM, "streams", tmp_path)[clause] is Outcome.FAIL


@cases(
    ("tools_call", beside(note("tools/list_changed")), "client-message-shape"),
    ("tools_call", beside({**LIST, "method": "sampling/createMessage"}), "client-message-shape"),
    ("stateless", beside(note("roots/list_changed")), "client-removed-methods"),
    ("tools_call", beside(note("roots/list_changed")), "client-capability-declared"),
)
def test_a_client_has_methods_of_its_own_side_revision_and_capabilities(
    tmp_path: Path, scenario: str, change: Callable[[Json], Out], clause: str
) -> None:
    found = outcomes(Mutant("", scenario, change=at("tools/list", change), can={}), tmp_path)

    assert broken(found) == {clause}


@cases(
    lambda m: m if "method" in m else [],
    lambda m: {**m, "result": {"ok": True}} if m.get("result") == {} else m,
)
def test_a_client_that_is_silent_or_answers_a_ping_with_more_gets_a_warning(
    tmp_path: Path, change: Callable[[Json], Out]
) -> None:
    found = outcomes(Mutant("", "questions", change=change), tmp_path)

    assert found["client-ping-answered"] is Outcome.WARN


@cases(("cancel", Outcome.WARN), ("accept", Outcome.FAIL))
def test_a_client_that_cancels_what_it_did_not_declare_gets_a_warning(
    tmp_path: Path, action: str, outcome: Outcome
) -> None:
    def said(message: Json) -> Out:
        elicited = "action" in message.get("result", {})
        return {**message, "result": {"action": action}} if elicited else message

    can: Json = {"roots": {}, "sampling": {}}
    found = outcomes(Mutant("", "questions", can=can, change=said), tmp_path)

    assert found["client-capability-declared"] is outcome


@cases(([], Outcome.WARN), ([{"uri": "file:///work"}], Outcome.FAIL))
def test_a_client_that_lists_no_roots_and_did_not_declare_them_gets_a_warning(
    tmp_path: Path, roots: list[Json], outcome: Outcome
) -> None:
    def said(message: Json) -> Out:
        listed = "roots" in message.get("result", {})
        return {**message, "result": {"roots": roots}} if listed else message

    found = outcomes(Mutant("", "questions", can=NAMELESS, change=said), tmp_path)

    assert found["client-capability-declared"] is outcome


def test_an_elicitation_capability_without_a_mode_is_one_with_forms(tmp_path: Path) -> None:
    can = {"roots": {}, "sampling": {}, "elicitation": {"applyDefaults": True}}
    no_url = refuses("url", {"code": -32602, "message": "no URLs"})

    assert broken(outcomes(Mutant("", "questions", can=can, change=no_url), tmp_path)) == set()


def test_two_calls_at_a_time_may_arrive_in_another_order(tmp_path: Path) -> None:
    found = outcomes(Mutant("", "order", habits="hurries"), tmp_path)

    assert broken(found) == set()
    assert found["client-answers-by-id"] is Outcome.PASS


def test_a_client_may_log_in_for_each_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVISION", "2025-11-25")
    monkeypatch.setenv("FRESH", "for each step")

    assert broken(over_http("none", "auth", tmp_path)) == set()


def test_a_client_that_tells_issuers_apart_by_their_ports_is_found(tmp_path: Path) -> None:
    clause = "client-auth-credentials-bound"

    assert over_http(PORT_ONLY, "auth-moves", tmp_path / "port")[clause] is Outcome.PASS
    assert over_http(PORT_ONLY, "auth-moves-name", tmp_path / "move")[clause] is not Outcome.PASS
    assert over_http(PORT_ONLY, "auth-stranger-name", tmp_path / "name")[clause] is not Outcome.PASS


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_good_client_over_http_meets_each_rule(
    revision: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REVISION", revision)
    met = set()
    for scenario in sorted({scenario for scenario, _ in FAULTS.values()}):
        found = over_http("none", scenario, tmp_path / scenario)
        assert broken(found) == set()
        met |= {clause for clause, one in found.items() if one is Outcome.PASS}

    catalogue = load(CLIENTS).catalogue
    there = {clause for clause in FAULTS if revision in catalogue[clause].revisions}
    # These are of another era, or of the one server of 2025-03-26 for clients of other revisions.
    assert there - met <= ({"client-auth-issuer-match"} if revision == "2025-03-26" else set())


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("scenario", scenarios())
def test_a_good_client_breaks_no_rule(scenario: str, revision: str, tmp_path: Path) -> None:
    if scenarios()[scenario].modern and revision != "2025-11-25":
        pytest.skip("it offers no revision there")
    can: dict[str, Any] = {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}

    assert broken(outcomes(Mutant("", scenario, revision=revision, can=can), tmp_path)) == set()


def test_the_good_client_meets_each_rule(tmp_path: Path) -> None:
    met = set()
    good = [Mutant("", name) for name in scenarios()]
    good += [Mutant("", revision="2024-11-05"), Mutant("", "old-errors", habits="dual")]
    no_roots = refuses("roots/list", {"code": -32601, "message": "no roots"})
    good += [Mutant("", "questions", can=NAMELESS, change=no_roots)]
    good += [Mutant("", "questions", can=TOOLS)]
    for number, mutant in enumerate(good):
        folder = tmp_path / str(number)
        folder.mkdir()
        found = outcomes(mutant, folder)
        assert broken(found) == set()
        met |= {clause for clause, one in found.items() if one is Outcome.PASS}

    never = {clause.id for clause in load(CLIENTS).catalogue} - met - set(FAULTS)
    # The good client reports no progress, undeclared modes, versions and traces only as a mutant.
    assert never == {
        "client-trace-context",
        "client-elicitation-mode",
        "client-progress-known",
        "client-progress-increases",
        "client-progress-stops",
        "client-selects-supported-version",
    }


def test_each_invalid_header_of_the_scenario_is_found() -> None:
    part: Any = scenarios()["headers"]
    for tool in part.tools(part, {})["tools"]:
        assert bool(mark_fault(tool["inputSchema"])) is tool["name"].startswith("bad_")


def test_every_rule_has_a_mutant() -> None:
    broken = [*(mutant.clause for mutant in MUTANTS), *FAULTS]
    assert sorted(broken) == sorted(clause.id for clause in load(CLIENTS).catalogue)
