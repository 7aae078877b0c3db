"""Attack fakes and show the findings of each threat."""

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from mcp_touchstone.bindings.binding import Bindings
from mcp_touchstone.catalog.attack_level import tiers
from mcp_touchstone.catalog.clause import Breach
from mcp_touchstone.catalog.home import NAMESPACE
from mcp_touchstone.catalog.loader import SECURITY, SUITES, home, load
from mcp_touchstone.catalog.threat import Threat
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import judge, survey
from mcp_touchstone.report import machine
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.sandbox.sandbox import Method, choose
from mcp_touchstone.security import payload
from mcp_touchstone.target.promises import PromiseTerms
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.transport.http_endpoint import PORT
from tests.fakes.catalogue import FAKES, ODD


def attack_file(name: str) -> Any:
    """Give the module of a suite file: ``promises.storage``."""
    load(SECURITY)
    return sys.modules[f"{NAMESPACE}.{SUITES[SECURITY]}.{name}"]


def target_of(name: str) -> Target:
    """Return a fake as a target."""
    fake = {**FAKES, **ODD}[name]
    command = (sys.executable, str(Path(__file__).parent), name, ROOT)
    return Target(
        command=(*command, PORT) if fake.over_http else command,
        url=f"http://127.0.0.1:{PORT}/mcp" if fake.over_http else "",
        issuer="mock" if fake.env else "",
        env=fake.env,
        promise={name: PromiseTerms(**fake.terms.get(name, {})) for name in fake.promises},
        call=tuple((tool, None) for tool in fake.callable),
    )


def bindings_of(target: Target) -> Bindings:
    """Return the bindings that are found of a target."""
    profile, _ = survey(target, words=())
    assert profile.bindings is not None
    return profile.bindings


def attacked(name: str, select: tuple[str, ...] = (), sandbox: Method | None = None) -> Run:
    """Judge one fake by the attacks of the security suite that concern its fault."""
    registry = load(SECURITY)
    fake = {**FAKES, **ODD}[name]
    if fake.sandboxed and sandbox is None:
        sandbox, _ = choose("auto")
    rows = [registry.catalogue[threat] for threat in fake.trips]
    wanted = {row.tier for row in rows if isinstance(row, Threat)}
    asked = (*fake.tiers, *sorted(wanted))
    target = replace(target_of(name), method=sandbox)
    # A fake that backtracks uses a whole core as long as the attack waits for it.
    matchers = attack_file("protocol.matchers")
    patience = 2.0 if "matchers-backtrack" in fake.trips else matchers.PATIENCE
    # Beside other tests, the 2,400 requests of an attack may take longer than any user would wait.
    exhaustion = attack_file("http.exhaustion")
    with (
        patch.object(matchers, "PATIENCE", patience),
        patch.object(exhaustion, "LONGEST", 20 * exhaustion.LONGEST),
    ):
        return judge(target, registry, Choice(select=select, jobs=1, tiers=tiers(asked)))


def tripped(run: Run) -> dict[str, str]:
    """Return the findings: threat -> the observed behaviour.

    A note counts only for a threat whose findings are always notes.
    """
    found = run.of(Outcome.FAIL, Outcome.WARN, Outcome.BROKEN)
    noted = [v for v in run.of(Outcome.NOTE) if v.clause.breach is Breach.NOTE]
    return {verdict.clause.id: verdict.gravest.actual for verdict in (*found, *noted)}


SILENT = frozenset({"load-idle"})
"""Threats about a server to which nothing is sent."""


def unproven(run: Run) -> dict[str, str]:
    """Return the findings that the lines of the JSON report do not prove: threat -> the reason."""
    found = {}
    left_out = {one.clause.id for one in run.verdicts if one.gravest.left}  # no effect to prove
    for verdict in machine.document(run)["verdicts"]:
        # each scenario of a threat has one; the gravest has the outcome
        judgement = min(verdict["judgements"], key=lambda j: j["outcome"] != verdict["outcome"])
        is_silent = verdict["clause"] in SILENT
        if verdict["outcome"] in {"fail", "warn", "note"} and verdict["clause"] not in left_out:
            found[verdict["clause"]] = _missing(judgement, is_silent=is_silent)
    return {threat: why for threat, why in found.items() if why}


def _missing(judgement: dict[str, Any], *, is_silent: bool) -> str:
    """Return what is missing in the evidence of a finding; empty if nothing is."""
    lines = judgement["wire"]
    sent = [line["text"] for line in lines if line["from"] == "client"]
    guilty = [line for line in lines if line["guilty"]]
    if [line["text"] for line in lines[-1:]] != [f"observed: {judgement['actual']}"]:
        return "the effect is not the last line"
    if not guilty:
        return "no line is marked"
    if not sent and not is_silent:
        return "no line that was sent"
    tools = [json.dumps(name) for name in judgement.get("tools", ())]
    if tools and not any(name in text for name in tools for text in sent):
        return f"no call of {' or '.join(tools)}"
    for line in guilty:
        answered = re.match(r'{"jsonrpc": ?"2.0", ?"id": ?(\d+), ?"[re]', line["text"])
        mark = f'"id":{answered[1]},' if line["from"] == "server" and answered else ""
        if mark and not any(mark in text for text in sent):
            return f"no request with {mark}"
    return ""


PROOFS = Path(__file__).with_name("proofs.toml")
"""Which fake fires which rows of payloads: each row that is fired at all, once."""


def proofs() -> dict[str, set[str]]:
    """Return the payloads that each fake proves to be fired: its name -> their ids."""
    table = tomllib.loads(PROOFS.read_text(encoding="utf-8"))
    return {
        name: {
            f"{group}-{number}" for group, numbers in groups.items() for number in numbers.split()
        }
        for name, groups in table.items()
    }


def near(name: str) -> tuple[str, ...]:
    """Return the families that attack a fake: those of its module, or all on request."""
    if "MCP_TOUCHSTONE_WHOLE" in os.environ:
        return ()
    chapters = {threat.id: threat.chapter for threat in load(SECURITY).catalogue}
    return tuple(sorted({*FAKES[name].families, *(chapters[t] for t in FAKES[name].trips)}))


def cover(fired: Mapping[str, Iterable[str]]) -> str:
    """Return the text of the proofs: few fakes that fire all that any does, the richest first."""
    library = payload.load(home() / SUITES[SECURITY] / "payloads")
    known = {row.id for rows in library.values() for row in rows}
    left = {name: known & {*rows} for name, rows in fired.items()}
    lines = ["# Which fake fires which rows of payloads. Made by `python tests/fakes --proofs`."]
    while best := max(left, key=lambda name: len(left[name]), default=""):
        rows = left.pop(best)
        if not rows:
            break
        lines += ["", f"[{best}]"]
        numbers: dict[str, list[str]] = {}
        for row in sorted(rows):
            group, _, number = row.rpartition("-")
            numbers.setdefault(group, []).append(number)
        lines += [f'"{group}" = "{" ".join(some)}"' for group, some in numbers.items()]
        left = {name: others - rows for name, others in left.items()}
    return "\n".join(lines) + "\n"


def printed(names: list[str]) -> int:
    """Print the matrix; return 1 if a fake trips other threats than it declares."""
    wrong = 0
    for name, fake in FAKES.items():
        if names and name not in names:
            continue
        found = set(tripped(attacked(name)))
        mark = "as declared" if found == fake.trips else f"DECLARES {sorted(fake.trips)}"
        wrong += found != fake.trips
        print(f"{name:<32} {', '.join(sorted(found)) or '-':<40} {mark}")
    return bool(wrong)
