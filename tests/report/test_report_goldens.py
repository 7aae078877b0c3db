"""Golden files of every report of one run; ``--snapshot-update`` rewrites them."""

import io
import json
import re
from dataclasses import replace

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from mcp_touchstone import __version__
from mcp_touchstone.report import kinds, machine
from mcp_touchstone.report.terminal import Terminal
from mcp_touchstone.results.run import Run
from tests import canned
from tests.goldens import GOLDEN, Golden

ENDINGS = {
    "badge": "json",
    "html": "html",
    "json": "json",
    "junit": "xml",
    "markdown": "md",
    "sarif": "json",
    "terminal": "txt",
    "terminal-interrupted": "txt",
    "terminal-quiet": "txt",
    "terminal-verbose": "txt",
}


def rendered(kind: str, made: Run) -> str:
    if kind.startswith("terminal"):
        interrupted = kind.endswith("-interrupted")
        made = replace(made, execution=replace(made.execution, interrupted=interrupted))
        verbose, quiet = kind.endswith("-verbose"), kind.endswith("-quiet")
        console = Console(file=io.StringIO(), width=80, no_color=True, force_terminal=False)
        with console.capture() as capture:
            Terminal(console, verbose=verbose, quiet=quiet).finish(made)
        return capture.get()
    if kind == "json":
        return json.dumps(machine.document(made), indent=2) + "\n"
    return kinds.RENDERERS[kind](made)


def scrubbed(text: str) -> str:
    """Remove our version, and the style and the script of the page."""
    text = text.replace(__version__, "<version>")
    text = re.sub(r"'sha256-[^']+'", "'sha256-…'", text)
    return re.sub(r"(?s)<(style|script)>.*?</\1>", r"<\1>…</\1>", text)


def test_each_kind_of_report_has_a_golden() -> None:
    assert {kind.partition("-")[0] for kind in ENDINGS} == {*kinds.KINDS, "terminal"}
    names = {f"test_a_report_is_as_it_was[{kind}].{ending}" for kind, ending in ENDINGS.items()}
    names |= {f"test_what_changed_is_as_it_was[{kind}].{ENDINGS[kind]}" for kind in COMPARING}

    assert {path.name for path in (GOLDEN / "test_report_goldens").glob("*")} == names


@pytest.mark.parametrize("kind", ENDINGS)
def test_a_report_is_as_it_was(kind: str, snapshot: SnapshotAssertion) -> None:
    golden = snapshot.use_extension(type("Of", (Golden,), {"file_extension": ENDINGS[kind]}))

    assert scrubbed(rendered(kind, canned.run())) == golden


COMPARING = ("html", "markdown", "terminal")


@pytest.mark.parametrize("kind", COMPARING)
def test_what_changed_is_as_it_was(kind: str, snapshot: SnapshotAssertion) -> None:
    golden = snapshot.use_extension(type("Of", (Golden,), {"file_extension": ENDINGS[kind]}))
    made = canned.run(since=canned.since())
    own = [verdict for verdict in made.verdicts if verdict.clause is canned.BROKEN_RULE]
    made = replace(made, verdicts=own)

    assert scrubbed(rendered(kind, made)) == golden
