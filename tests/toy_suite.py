"""A small suite with a few clauses, and a small server that it judges."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Breach, load_catalogue
from mcp_touchstone.catalog.scenario import Registry, collecting, scenario
from mcp_touchstone.engine.runner import Run
from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.results.run import Verdict
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.target.target import ROOT, Target

LONG = 20.0


LEGACY = rev.LATEST_LEGACY


TOY = """
title = "Toy"
summary = "What a toy does."
"""


ROW = """
[[clause]]
id = "{id}"
level = "{level}"
statement = "The toy is {id}."
how = "We look."
{more}
[clause.source]
{source}
"""


EVERYWHERE = tuple(rev.ALL)


ROWS: dict[str, list[tuple[str, str, tuple[str, ...], str]]] = {
    "suite/toy.toml": [
        ("toy-must", "MUST", EVERYWHERE, ""),
        ("toy-should", "SHOULD", EVERYWHERE, ""),
        ("toy-lenient", "SHOULD NOT", EVERYWHERE, "strict = false"),
        ("toy-may", "MAY", EVERYWHERE, ""),
        ("toy-old", "MUST", ("2024-11-05",), ""),
        ("toy-tools", "MUST", EVERYWHERE, 'needs = ["tools"]'),
        ("toy-slow", "MUST", EVERYWHERE, 'needs = ["slow-call"]'),
        ("toy-maybe", "MUST", EVERYWHERE, "conditional = true"),
        ("toy-later", "MUST", EVERYWHERE, 'deferred = "nobody has written it"'),
    ],
    "suite/other.toml": [("other-must", "MUST", EVERYWHERE, "")],
    "more/third.toml": [("third-must", "MUST NOT", EVERYWHERE, "")],
}


SERVER = """
import json, os, sys
spoken = sys.argv[1].split(",")
legacy = [r for r in spoken if r != "2026-07-28"]
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method, answer = message["method"], {"error": {"code": -32601, "message": "no"}}
    if method == "die":
        os._exit(9)
    if method == "initialize" and legacy:
        asked = message["params"]["protocolVersion"]
        named = asked if asked in legacy else legacy[-1]
        answer = {"result": {"protocolVersion": named, "capabilities": {}}}
    elif method == "server/discover" and legacy != spoken:
        answer = {"result": {"resultType": "complete", "supportedVersions": ["2026-07-28"]}}
    elif method == "ping":
        answer = {"result": {}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


def server(*spoken: str) -> Target:
    """Return a small server that speaks these revisions, by default the newest legacy one."""
    words = (sys.executable, "-S", "-c", SERVER, ",".join(spoken or (LEGACY,)), ROOT)
    return Target(command=words, timeout=LONG)


@contextmanager
def toy_registry(folder: Path) -> Iterator[Registry]:
    """Collect the declarations of one test; the rows of the suite are written to a folder."""
    for name, rows in ROWS.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            TOY
            + "".join(
                ROW.format(
                    id=clause,
                    level=level,
                    more=more,
                    source="\n".join(f'"{revision}" = "toy"' for revision in revisions),
                )
                for clause, level, revisions, more in rows
            )
        )
    made = Registry(load_catalogue(folder), file="suite/toy.py")
    collecting(made)
    yield made
    collecting(None)


Body = Callable[[Conversation], None]


def declare(*clauses: str, name: str = "does_it", **marks: Any) -> Callable[[Body], Body]:
    """Declare a scenario whose name and docstring do not matter."""

    def take(body: Body) -> Body:
        body.__name__ = name
        body.__doc__ = "Do it."
        return scenario(*clauses, **marks)(body)

    return take


def declare_result(clause: str, passed: bool, mild: Breach | None = None, **marks: Any) -> None:
    """Declare a scenario with this result."""

    @declare(clause, name=f"finds_{len(marks)}_{clause.replace('-', '_')}_{passed}", **marks)
    def _(talk: Conversation) -> None:
        talk.judge(clause, passed, expected="this", actual="that", mild=mild)


def outcomes(run: Run) -> dict[str, Outcome]:
    return {verdict.clause.id: verdict.outcome for verdict in run.verdicts}


def only_verdict(run: Run) -> Verdict:
    (verdict,) = run.verdicts
    return verdict
