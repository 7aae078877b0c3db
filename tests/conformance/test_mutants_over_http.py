"""Mutants of stdio behind our HTTP server: the same clauses find them, or a reason says why not.

Each mutant is judged by the clauses that it breaks on stdio, and otherwise by its whole chapter.
``tests/mutants/over_http.toml`` has the mutants that are found differently, with the reasons, which
docs/guides/bridge.md explains. With MCP_TOUCHSTONE_EVERY_MUTANT in the environment all mutants of
stdio are compared, which takes about ten minutes.
"""

import os
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_touchstone.catalog.clause import Transport
from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.engine.runner import Choice, judge
from mcp_touchstone.results.verdict import Outcome
from tests.conftest import RETRIED
from tests.mutants.__main__ import HERE
from tests.mutants.judged import MUTANTS, REGISTRY, findings, near, target_of

pytestmark = pytest.mark.slow

TRIES: Final = 3

OLDEST: Final = "2025-03-26"
"""The first revision with streamable HTTP."""

TABLE: Final[dict[str, dict[str, Any]]] = tomllib.loads(
    Path(HERE, "over_http.toml").read_text(encoding="utf-8")
)
SAMPLE: Final[list[str]] = TABLE.pop("sample")["mutants"]
DIFFERENT: Final = {name: key for key, row in TABLE.items() for name in row["mutants"]}
"""Mutant -> the reason why the same clauses do not find it."""

SURPLUS: Final[dict[str, dict[str, str]]] = {
    name: found for row in TABLE.values() for name, found in row.get("instead", {}).items()
}
"""Mutant -> clauses that may find it over HTTP only, or with another outcome."""


def applies(clause: str) -> bool:
    """Return whether a clause is of HTTP too."""
    return Transport.HTTP in REGISTRY.catalogue[clause].transports


def compared(name: str) -> bool:
    """Return whether a mutant of stdio can be compared: something about it is of HTTP too."""
    mutant = MUTANTS[name]
    clauses = (*mutant.breaks, *mutant.passes)
    return (
        not mutant.over_http
        and mutant.revision >= OLDEST
        and (not clauses or any(map(applies, clauses)))
    )


EVERY: Final = [name for name in MUTANTS if compared(name)]
CHOSEN: Final = EVERY if "MCP_TOUCHSTONE_EVERY_MUTANT" in os.environ else SAMPLE


def expected(name: str) -> dict[str, str]:
    """Return the findings of a mutant on stdio, and the clauses that must pass."""
    mutant = MUTANTS[name]
    breaks = {
        clause: mutant.weight(clause) or str(REGISTRY.catalogue[clause].breach)
        for clause in filter(applies, mutant.breaks)
    }
    return dict.fromkeys(filter(applies, mutant.passes), str(Outcome.PASS)) | breaks


def found_over_http(name: str) -> dict[str, str]:
    """Return the findings of a mutant behind our HTTP server, and which clauses pass as they must.

    Empty if the server cannot be judged in the revision.
    """
    mutant = MUTANTS[name]
    found: dict[str, str] = {}
    for select in ((*mutant.breaks, *mutant.passes), near(mutant)):
        choice = Choice(
            select=select,
            revisions=(mutant.revision,),
            jobs=4,
            examples=mutant.examples,
            rules_fed=False,
            repeats=0,
        )
        try:
            run = judge(target_of(mutant, over_http=True), REGISTRY, choice)
        except UserError:
            return {}
        found = findings(run, mutant)
        passed = (verdict.clause.id for verdict in run.of(Outcome.PASS))
        found |= {clause: str(Outcome.PASS) for clause in passed if clause in mutant.passes}
        if found == expected(name) or surplus(name, found):
            break
    return found


def surplus(name: str, found: dict[str, str]) -> dict[str, str]:
    """Return what is found over HTTP and not on stdio."""
    return dict(found.items() - expected(name).items())


@pytest.mark.parametrize("name", CHOSEN)
def test_mutant_is_found_over_http_as_on_stdio_unless_a_reason_says_why_not(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    # Three processes answer one after the other. A limit leaves out only the longest time for which
    # one of their threads waited for a core, so a busy machine may miss a finding. A surplus
    # finding is a false alarm, even if the next try does not repeat it.
    for _ in range(TRIES):
        found = found_over_http(name)
        if name in DIFFERENT or found == expected(name) or surplus(name, found):
            break
        record_property(RETRIED, name)

    if name in DIFFERENT:
        reason = TABLE[DIFFERENT[name]]
        assert found != expected(name) or reason.get("sometimes"), reason["reason"]
        assert surplus(name, found).items() <= SURPLUS.get(name, {}).items()
    else:
        assert found == expected(name)


def test_line_that_ends_the_session_is_a_warning() -> None:
    # the bridge answers the line, and ends the session of a process that has exited
    assert found_over_http("CutsMethodsAtANul") == {"generated-survived": "warn"}


def test_table_has_mutants_that_can_be_compared_each_once() -> None:
    listed = [name for row in TABLE.values() for name in row["mutants"]]

    assert len(listed) == len(DIFFERENT)
    assert set(listed) | set(SAMPLE) <= set(EVERY)
    assert set(SURPLUS) <= set(listed)


def test_every_reason_is_explained_in_the_documentation() -> None:
    page = (Path(HERE).parents[1] / "docs" / "guides" / "bridge.md").read_text(encoding="utf-8")

    assert [key for key, row in TABLE.items() if f"| {row['reason']} |" not in page] == []
