"""Attack fakes and show which threat found what."""

import sys
from pathlib import Path

from mcp_touchstone.clause import Breach
from mcp_touchstone.gate import judge
from mcp_touchstone.loader import SECURITY, load
from mcp_touchstone.plan import Choice
from mcp_touchstone.results import Run
from mcp_touchstone.target import ROOT, Target
from mcp_touchstone.threat import Threat
from mcp_touchstone.tier import tiers
from mcp_touchstone.verdict import Outcome
from tests.fakes.catalogue import FAKES, ODD


def target_of(name: str) -> Target:
    """Give a fake as what is judged."""
    fake = {**FAKES, **ODD}[name]
    return Target(
        command=(sys.executable, str(Path(__file__).parent), name, ROOT),
        promises=frozenset(fake.promises),
        terms=fake.terms,
    )


def attacked(name: str, select: tuple[str, ...] = ()) -> Run:
    """Judge one fake by the security suite, as far as attacks go that speak of its fault."""
    registry = load(SECURITY)
    fake = {**FAKES, **ODD}[name]
    rows = [registry.catalogue[threat] for threat in fake.trips]
    wanted = {row.tier for row in rows if isinstance(row, Threat)}
    asked = (*fake.tiers, *sorted(wanted))
    return judge(target_of(name), registry, Choice(select=select, jobs=4, tiers=tiers(asked)))


def tripped(run: Run) -> dict[str, str]:
    """Give what was found: threat -> what was seen.

    A note is no accusation, unless a finding of that threat is never more.
    """
    found = run.of(Outcome.FAIL, Outcome.WARN, Outcome.BROKEN)
    noted = [v for v in run.of(Outcome.NOTE) if v.clause.breach is Breach.NOTE]
    return {verdict.clause.id: verdict.gravest.actual for verdict in (*found, *noted)}


def printed(names: list[str]) -> int:
    """Print the matrix; 1 where a fake trips something else than it declares."""
    wrong = 0
    for name, fake in FAKES.items():
        if names and name not in names:
            continue
        found = set(tripped(attacked(name)))
        mark = "as declared" if found == fake.trips else f"DECLARES {sorted(fake.trips)}"
        wrong += found != fake.trips
        print(f"{name:<32} {', '.join(sorted(found)) or '-':<40} {mark}")
    return bool(wrong)
