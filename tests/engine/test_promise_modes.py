"""A broken promise counts, a missing one gives a note, and promised modes are started."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from mcp_touchstone.bindings.argument_roles import dry_run
from mcp_touchstone.catalog.loader import SECURITY, home, load
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.engine.runner import judge
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.security.payload import load as load_payloads
from tests.fakes.matrix import attack_file, target_of
from tests.fakes.patches import Patching
from tests.fakes.server import Refused

CASES = attack_file("promises.patches").CASES
WRITTEN = attack_file("containment.resources").WRITTEN
LIBRARY = load_payloads(home() / "security_suite" / "payloads")


@pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")
def test_unpromised_clause_is_a_note_and_unpromised_limits_are_not_judged() -> None:
    target = replace(target_of("IgnoresTheHash"), promise={})

    run = judge(target, load(SECURITY), Choice(select=("patches-hash", "limits"), jobs=2))

    assert {v.clause.id: v.outcome for v in run.verdicts} == {"patches-hash": Outcome.NOTE}
    absent = {one.clause: one.why for one in run.absent}
    assert "no size-limit" in absent["limits-size-read"]
    assert "no read-limit" in absent["limits-answer"]


@pytest.mark.skipif(os.name == "nt", reason="fixtures are of POSIX")
def test_read_only_start_is_judged_with_tools_of_the_normal_start() -> None:
    run = judge(
        target_of("ReadOnlyOnRequest"), load(SECURITY), Choice(select=("modes-read-only",), jobs=2)
    )

    (verdict,) = run.verdicts
    assert verdict.outcome is Outcome.PASS
    tried = verdict.judgements[0].actual
    assert "edit_file, list_directory, make_directory, move_file" in tried
    assert any("--read-only" in c.process.command for c in run.connections)


def test_newline_cases_agree_with_the_payloads() -> None:
    rows = [row.text for row in LIBRARY["patch.eol"]]

    assert len(CASES) == len(rows)
    assert all(any(case.name in text for text in rows) for case in CASES)
    assert all(case.before not in case.fits for case in CASES)


def test_bytewise_patching_satisfies_the_newline_cases(tmp_path: Path) -> None:
    file = tmp_path / "eol.txt"
    patched = 0
    for case in CASES:
        file.write_bytes(case.before)
        try:
            made = Patching(str(tmp_path)).patched(case.before, case.hunk)
        except Refused:
            continue
        assert made in case.fits, case.name
        patched += 1
    assert patched >= 3


@pytest.mark.parametrize("size", [200, 4097, 65535, 65536])
def test_generated_texts_have_the_requested_size(size: int) -> None:
    for letter in ("x", "\u00e9"):
        text = attack_file("promises.limits")._text(size, "end-0123", letter)

        assert len(text) == size
        assert text.endswith("\nend-0123")
        assert len(set(text.splitlines())) == len(text.splitlines())


def test_dry_run_switch_is_recognised_by_name_and_type() -> None:
    boolean = {"type": "boolean"}

    assert dry_run({"properties": {"path": {}, "dryRun": boolean}}) == "dryRun"
    assert dry_run({"properties": {"dry_run": boolean}}) == "dry_run"
    assert dry_run({"properties": {"dry_run": {"type": "string"}, "preview": boolean}}) == ""
    assert dry_run({}) == dry_run(None) == dry_run({"properties": {"dry_run": True}}) == ""


def test_paths_are_encoded_into_uris_in_four_ways() -> None:
    assert [write("../a b") for write in WRITTEN] == [
        "../a b",
        "..%2Fa%20b",
        "%2e%2e/a b",
        "..%252Fa%2520b",
    ]
