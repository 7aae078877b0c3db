"""Add a frozen set of clauses for each revision whose required clauses have changed.

``python scripts/clause_sets.py`` compares the catalogue with the newest sets and appends what
differs. A set that was released must not change: `tests/catalog/test_clause_sets.py` has their
digests.
"""

import json
import sys
import textwrap

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import Breach, Catalogue
from mcp_touchstone.catalog.loader import CONFORMANCE, rows
from mcp_touchstone.results.clause_sets import SETS


def required(catalogue: Catalogue, revision: str) -> list[str]:
    """Return the ids of the judged clauses in force whose breach is a failure, sorted."""
    return sorted(
        clause.id
        for clause in catalogue
        if clause.judged
        and not clause.draft
        and clause.breach is Breach.FAIL
        and revision in clause.revisions
    )


def main() -> int:
    """Write the sets; print what was added."""
    known = json.loads(SETS.read_text("utf-8")) if SETS.exists() else {}
    catalogue = rows(CONFORMANCE)
    for revision in rev.ALL:
        numbered = known.setdefault(revision, [])
        now = required(catalogue, revision)
        if not numbered or sorted(numbered[-1]) != now:
            numbered.append(now)
            print(f"{revision}/{len(numbered)}: {len(now)} clauses")
    lines = [
        f"{json.dumps(revision)}: [\n"
        + ",\n".join(
            textwrap.fill(json.dumps(ids), 110, break_on_hyphens=False) for ids in numbered
        )
        + "\n]"
        for revision, numbered in known.items()
    ]
    SETS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
