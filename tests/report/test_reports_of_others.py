"""Reports that a stranger wrote: a wrong member is one line, or does no harm."""

import json
from pathlib import Path
from typing import Any

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.catalog.loader import CONFORMANCE, rows
from mcp_touchstone.report import kinds, machine
from mcp_touchstone.report.reread import read
from tests import canned
from tests.odd_values import ODD, changed, paths, without


def forms(document: Any) -> list[tuple[str | int, ...]]:
    """Return a path for each form of a path: the members of equal items are judged once."""
    found: dict[tuple[str, ...], tuple[str | int, ...]] = {}
    for at in paths(document):
        found.setdefault(tuple(key if isinstance(key, str) else "" for key in at), at)
    return [*found.values()]


def test_a_wrong_member_is_one_line_or_does_no_harm(tmp_path: Path) -> None:
    document: Any = json.loads(json.dumps(machine.document(canned.run(since=canned.since()))))
    for verdict, clause in zip(document["verdicts"], rows(CONFORMANCE), strict=False):
        verdict["clause"] = clause.id
    path, refused, rendered = tmp_path / "run.json", 0, 0
    for n, at in enumerate(forms(document)):
        odd = [changed(document, at, new) for new in ODD[n % 8 :: 8]]
        for mutant in (without(document, at), *odd):
            path.write_text(json.dumps(mutant))
            try:
                run = read(path)
            except InputError:
                refused += 1
                continue
            rendered += 1
            for render in kinds.RENDERERS.values():
                render(run)

    assert min(refused, rendered) > 100
