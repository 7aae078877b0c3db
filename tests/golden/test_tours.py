"""Golden snapshots: the tours of the reference server in each revision.

``pytest tests/golden/test_tours.py --snapshot-update`` writes them. An unused snapshot
fails a test.
"""

import re
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from mcp_touchstone.runtime.scratch import World
from reference_server.features.cedarscript import engine
from reference_server.features.cedarscript import tools as cedarscript_tools
from reference_server.features.subscriptions import watcher
from reference_server.protocol import progress
from tests.conftest import HERE
from tests.goldens import GOLDEN
from tests.reference_client import LEGACY, MODERN
from tests.reference_server.cedarscript.client import NEEDS_LIBRARY
from tests.tours import TOURS
from tests.transcript_text import Tour


def tour_params() -> Iterator[Any]:
    """Yield each tour in the newest revisions: of those with a handshake, and of those without."""
    for name, (_tour, revisions) in TOURS.items():
        marks = [NEEDS_LIBRARY] if name == "cedarscript" else []
        for revision in (one for one in revisions if one in {LEGACY[-1], MODERN}):
            yield pytest.param(name, revision, id=f"{name}-{revision}", marks=marks)


@pytest.fixture
def independent_of_machine(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Make the tours independent of the speed and the installed packages of the machine."""
    monkeypatch.setattr(progress, "SHORTEST_GAP", 0.0)
    monkeypatch.setattr(watcher, "PERIOD", 0.02)
    if request.node.callspec.params["name"] != "cedarscript":
        for module in (cedarscript_tools, engine):
            monkeypatch.setattr(module, "reason_against", lambda: "it is not installed")


@pytest.mark.usefixtures("independent_of_machine")
@pytest.mark.parametrize(("name", "revision"), list(tour_params()))
def test_tours(name: str, revision: str, golden: SnapshotAssertion) -> None:
    assert "\n".join(shown(name, revision)) + "\n" == golden


def shown(name: str, revision: str) -> Iterator[str]:
    """Yield a tour, and how each older revision with a handshake differs from the next newer."""
    newer = toured(name, revision)
    yield from newer
    for old in reversed([one for one in TOURS[name][1] if one < revision != MODERN]):
        older = toured(name, old)
        yield f"# {old}: the same" + ", but for" * (older != newer)
        yield from [*unified_diff(newer, older, n=0, lineterm="")][2:]
        newer = older


def toured(name: str, revision: str) -> list[str]:
    with World() as world:
        tour = Tour(revision, Path(str(world.root)))
        TOURS[name][0](tour)
    # as the golden file will have it, so that the differences are those of its lines
    return "\n".join(tour.lines).split("\n")


def test_no_unused_snapshot_exists() -> None:
    """The plugin looks for unused snapshots only beside the tests."""
    tours = {f"test_tours[{param.id}].txt" for param in tour_params()}

    assert {path.name for path in (GOLDEN / "test_tours").iterdir()} == tours


def test_each_golden_file_belongs_to_a_test() -> None:
    tests = {path.stem: path.read_text("utf-8") for path in HERE.glob("*/test_*.py")}
    unused = [
        f"{folder.name}/{file.name}"
        for folder in GOLDEN.iterdir()
        for file in folder.iterdir()
        if "def " + re.split(r"[\[.]", file.name)[0] + "(" not in tests[folder.name]
    ]

    assert unused == []
