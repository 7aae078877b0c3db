"""Judge the faulty gateways on each pair of transports: ``python -m tests.gateway [CLAUSE ...]``.

A word such as ``'stdio to stdio'`` is the only pair.

Each is between the server and a client on stdio, behind our bridge for a client over HTTP, and
before a server over HTTP. A line says what was broken; the exit status is 1 if that is not the
clause of the fault and nothing else.
"""

import sys
from concurrent.futures import ThreadPoolExecutor

from mcp_touchstone.catalog.loader import GATEWAYS, load
from mcp_touchstone.config.settings import Settings
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.gateway import check
from tests.gateway import pairs

AT_A_TIME = 2


def judge(clause: str, words: str, pair: str) -> bool:
    """Judge one faulty gateway, with the exchanges that show its fault; print what it breaks."""
    known = pairs.UNSEEN.get((clause, pair))
    settings = Settings(command=pairs.command(words, pair), timeout=60.0)
    choice = Choice(select=(clause,), revisions=(pairs.revision(clause),), repeats=0)
    run = check.check(settings, choice)
    broken = [v.clause.id for v in run.verdicts if v.outcome.value in {"fail", "warn", "note"}]
    passed = broken == ([] if known else [clause])
    print(
        "ok   " if passed else "WRONG",
        clause,
        words,
        pair,
        *broken,
        run.trouble,
        known or "",
        flush=True,
    )
    return passed


def main(chosen: list[str]) -> int:
    """Judge all, or those of the chosen clauses and pairs."""
    load(GATEWAYS)
    clauses = [one for one in chosen if one not in pairs.PAIRS] or [*pairs.WORDS]
    chosen_pairs = [one for one in chosen if one in pairs.PAIRS] or pairs.PAIRS
    faults = [fault for fault in pairs.EVERY if fault[0] in clauses]
    every = [(*fault, pair) for fault in faults for pair in chosen_pairs]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return 0 if all([*pool.map(lambda one: judge(*one), every)]) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
