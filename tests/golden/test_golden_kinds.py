"""Golden snapshots of the answers of the reference server to attacks, one line for each payload.

``pytest tests/golden/test_golden_kinds.py --snapshot-update`` writes them. Lifecycle and error
codes are in the tours of ``test_tours``.
"""

import json
import re
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from mcp_touchstone.catalog.loader import SECURITY, load
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import judge
from mcp_touchstone.golden.scenarios import responses
from mcp_touchstone.target.target import reference
from tests.reference_server.cedarscript.client import NEEDS_LIBRARY

pytestmark = [
    pytest.mark.slow,
    NEEDS_LIBRARY,
    pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse other names"),
]

REVISION = "2025-11-25"
RANDOM = re.compile(r"\b(?:[0-9a-f]{8}|[0-9a-f]{64})\b")
KINDS = {
    "traversal": ("keeps_climbs_inside", "keeps_absolute_paths_inside"),
    "deny list": ("denies_by_any_other_name", "denies_in_scripts_too"),
    "size limit": ("answers_within_its_limit", "makes_nothing_above_its_limit"),
    "read-only": ("writes_nothing_when_read_only",),
    "patch-only": ("applies_lines_alone", "patches_the_file_of_the_call"),
}
"""Kind of attack -> scenarios that make it."""


def line(exchange: dict[str, Any]) -> str:
    """Return one line about a call with a payload: the payload, the call, the kind of answer."""
    params = exchange["ask"].get("params", {})
    given = json.dumps(params.get("arguments", params))
    call = f"{params.get('name', 'resources/read')} {RANDOM.sub('<random>', given)}"
    answer = exchange["answer"]
    result = answer.get("result")
    if not result:
        said = f"error {answer['error']['code']}"
    elif result.get("isError"):
        said = f"error {result.get('structuredContent', {}).get('code')}"
    else:
        said = "result"
    return f"{exchange['payload']:24} {call[:110]:111} {said}"


@pytest.mark.parametrize("kind", KINDS)
def test_answers_to_attacks(kind: str, golden: SnapshotAssertion) -> None:
    registry, names = load(SECURITY), KINDS[kind]
    choice = Choice(
        select=names, revisions=(REVISION,), examples=0, repeats=0, separate=True, rules_fed=False
    )

    run = judge(reference(), registry, choice)

    found = responses(run, registry, datetime.now(UTC), {})[REVISION]
    played = {name: lines for chapter in found.values() for name, lines in chapter.items()}
    shown = [line(one) for name in names for one in played[name] if "payload" in one]
    assert shown
    assert "\n".join([*shown, ""]) == golden
