"""Property tests: drawing, shrinking, judging, and time limits of examples."""

import _thread
import importlib
import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.loader import load
from mcp_touchstone.engine.runner import Choice, Run, judge
from mcp_touchstone.judging.run_settings import DrawSettings
from mcp_touchstone.properties import examples as drawn
from mcp_touchstone.properties import strategies
from mcp_touchstone.properties.excerpt import excerpt
from mcp_touchstone.properties.hypothesis_driver import draw, shrink
from mcp_touchstone.report.digest import again, findings
from mcp_touchstone.results.events import Event, Started
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.target.target import ROOT, Target
from mcp_touchstone.wire.framing import Line
from mcp_touchstone.wire.lifecycle import Role
from mcp_touchstone.wire.schema_dialect import allows
from mcp_touchstone.wire.transcript import Transcript
from tests.cases import cases
from tests.conftest import mutant_command

pytestmark = pytest.mark.slow

LEGACY = rev.LATEST_LEGACY
FOUND = (Outcome.FAIL, Outcome.WARN, Outcome.BROKEN)


def run(name: str, *select: str, examples: int = 60, **more: Any) -> Run:
    """Judge a mutant in one revision."""
    choice = Choice(select=select, revisions=(LEGACY,), examples=examples, **more)
    return judge(Target(command=(*mutant_command(name), ROOT)), load(), choice)


def test_same_settings_draw_the_same_examples() -> None:
    once, again_ = (draw(strategies.texts(), DrawSettings("one", 20)) for _ in range(2))

    assert once == again_
    assert len(once) == 20


@pytest.mark.parametrize("terms", [DrawSettings("two", 20), DrawSettings("one", 20, 1)])
def test_name_and_seed_change_the_drawn_examples(terms: DrawSettings) -> None:
    assert draw(strategies.texts(), terms) != draw(strategies.texts(), DrawSettings("one", 20))


def test_modules_of_the_process_do_not_change_the_examples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hypothesis prefers constants of local modules, so a checkout would draw other examples."""
    texts = st.lists(st.text(max_size=9), min_size=40)
    before = draw(texts, DrawSettings("p", 10))
    constants = [f"word{number}" for number in range(50)]
    (tmp_path / "module_with_constants.py").write_text(f"WORDS = {constants}\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("module_with_constants")

    after = draw(texts, DrawSettings("p", 10))

    assert after == before
    assert not {word for text in after for word in text} & {*constants}


def test_no_example_is_drawn_twice() -> None:
    assert sorted(draw(st.booleans(), DrawSettings("flags", 20))) == [False, True]


def test_failing_example_is_shrunk() -> None:
    terms = DrawSettings("small", 60)
    failing = next(text for text in draw(strategies.texts(), terms) if len(text) > 8)
    asked: list[str] = []

    def fails(text: str) -> bool:
        asked.append(text)
        return len(text) > 2

    assert shrink(strategies.texts(), failing, fails, terms) == "aaa"
    assert len(asked) == len(set(asked)), "each is asked about once"


def test_example_that_does_not_fail_again_is_unchanged() -> None:
    terms = DrawSettings("fickle", 20)
    failing = draw(strategies.texts(), terms)[-1]

    assert shrink(strategies.texts(), failing, lambda _text: False, terms) == failing


def test_exception_in_our_code_is_raised() -> None:
    terms = DrawSettings("ours", 20)
    failing = draw(strategies.texts(), terms)[-1]

    def fails(_text: str) -> bool:
        raise LookupError("ours")

    with pytest.raises(LookupError, match="ours"):
        shrink(strategies.texts(), failing, fails, terms)


def test_hypothesis_writes_files_only_to_the_given_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hypothesis.configuration import storage_directory  # noqa: PLC0415

    monkeypatch.chdir(tmp_path)
    before = storage_directory(intent_to_write=False).home_directory

    draw(strategies.ids(), DrawSettings("files", 10, home=tmp_path / "home"))

    assert {path.name for path in tmp_path.iterdir()} <= {"home"}
    assert storage_directory(intent_to_write=False).home_directory == before


@given(strategies.spellings(), strategies.objects())
@settings(max_examples=60, deadline=None)
def test_every_spelling_encodes_the_same_message(
    spelling: drawn.Spelling, message: dict[str, Any]
) -> None:
    line = spelling.write(message)

    assert json.loads(line) == message
    assert line.count(b"\n") == 1


@given(strategies.texts())
@settings(max_examples=60, deadline=None)
def test_every_text_can_be_encoded(text: str) -> None:
    assert text.encode().decode() == text


@given(strategies.ids())
@settings(max_examples=60, deadline=None)
def test_drawn_ids_are_strings_or_safe_integers(own: str | int) -> None:
    assert isinstance(own, str) or abs(own) < 2**53
    assert own not in range(101, 1000), "the connection counts its own requests from there"


@given(strategies.methods(["ping", "tools/list"]))
@settings(max_examples=60, deadline=None)
def test_drawn_methods_exclude_defined_methods(name: str) -> None:
    assert name not in {"", "ping", "tools/list"}


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "maxLength": 5},
        "path": {"type": "string"},
        "seconds": {"type": "integer"},
        "url": {"type": "string"},
        "mode": {"enum": ["fast", "slow"]},
        "flag": {"type": "boolean"},
        "count": {"type": "integer", "minimum": 2, "maximum": 1_000_000},
        "coded": {"type": "string", "pattern": "^a+$"},
        "long": {"type": "string", "minLength": 100},
    },
    "required": ["text", "count"],
}
GOOD = {"text": "a", "count": 3}


@given(strategies.fitting([(SCHEMA, GOOD)]))
@settings(max_examples=60, deadline=None)
def test_fitting_edit_is_valid_and_harmless(edit: drawn.Edit) -> None:
    assert allows(SCHEMA, {**GOOD, edit.name: edit.value})
    assert edit.name in {"text", "mode", "flag", "count"}
    assert edit.name != "count" or edit.value <= drawn.LARGEST


@given(strategies.unfitting([(SCHEMA, GOOD)]))
@settings(max_examples=60, deadline=None)
def test_unfitting_edit_is_invalid(edit: drawn.Edit) -> None:
    given_ = {**GOOD, edit.name: edit.value}
    if edit.gone:
        del given_[edit.name]

    assert allows(SCHEMA, given_) is False


@given(strategies.interleavings(3))
@settings(max_examples=60, deadline=None)
def test_an_interleaving_has_a_request(steps: list[drawn.InterleavingStep]) -> None:
    assert any(step.kind == "request" and step.which < 3 for step in steps)


@cases({}, {"properties": []}, {"properties": {"a": True}}, {"oneOf": [], "properties": {"a": {}}})
def test_schema_without_types_has_nothing_to_replace(schema: dict[str, Any]) -> None:
    assert drawn.replaceable(schema, {}) == {}


def test_excerpt_is_a_valid_transcript() -> None:
    whole = Transcript(LEGACY, lambda: 0.0)

    def say(value: dict[str, Any]) -> None:
        whole.said(json.dumps(value).encode() + b"\n", value)

    def hear(value: dict[str, Any]) -> None:
        raw = json.dumps(value).encode()
        whole.heard(Line(raw, len(raw)))

    say({"jsonrpc": "2.0", "id": 1, "method": "initialize"})
    hear({"jsonrpc": "2.0", "id": 1, "result": {}})
    say({"jsonrpc": "2.0", "method": "notifications/initialized"})
    say({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    hear({"jsonrpc": "2.0", "id": 2, "result": {}})
    start = len(whole)
    say({"jsonrpc": "2.0", "id": 3, "method": "ping"})
    hear({"jsonrpc": "2.0", "id": 3, "result": {}})

    part, fell = excerpt(whole, start)

    assert [entry.n for entry in part] == [1, 2, 3, 4, 5]
    assert [entry.raw for entry in part][3:] == [entry.raw for entry in whole][5:]
    assert part[5].messages[0].role is Role.ANSWER
    assert part[5].messages[0].answers == 4
    assert part[5].messages[0].phase == whole[7].messages[0].phase
    assert fell == 2


def test_finding_shows_the_shrunk_line_and_its_repeat_command() -> None:
    first = run("KeepsIdsInAShortBuffer", "properties", seed=3)
    found = findings(first, *FOUND)

    assert [finding.clause.id for finding in found] == ["generated-survived"]
    guilty = [line.text for line in found[0].judgement.wire if line.guilty]
    assert json.loads(guilty[0])["id"] == "a" * 31
    words = again(first, found[0])
    assert "--select answers_alike_under_any_id --examples 60 --seed 3" in words


def test_ambient_rule_judges_the_shrunk_example() -> None:
    judged = run("EndsIdsAtANul", "properties", "jsonrpc-response-id-echo")
    found = findings(judged, *FOUND)

    assert [finding.clause.id for finding in found] == ["jsonrpc-response-id-echo"]
    guilty = [line.text for line in found[0].judgement.wire if line.n == 4]
    assert json.loads(guilty[0])["id"] == "\0"
    assert "--select answers_alike_under_any_id" in again(judged, found[0])

    transcripts = [connection.transcript for connection in judged.connections]
    proofs = [one for one in transcripts if one.replay]
    assert len(proofs) == 1
    assert len(proofs[0]) < 12


def test_correct_server_passes_without_restart() -> None:
    judged = run("SaysNothingWrong", "properties")

    assert judged.exit_code == 0
    assert {verdict.outcome for verdict in judged.verdicts} == {Outcome.PASS}
    assert judged.execution.processes == 3, "two of recon, one for properties"


def test_zero_examples_leaves_out_property_clauses() -> None:
    judged = run("SaysNothingWrong", "properties", "ping", examples=0)

    assert {verdict.clause.group for verdict in judged.verdicts} == {"basic"}
    assert {row.clause for row in judged.absent} >= {"generated-survived"}
    assert all("--examples 0" in row.why for row in judged.absent)


def test_zero_examples_keeps_clauses_judged_by_other_scenarios() -> None:
    judged = run("SaysNothingWrong", "pagination", "properties", examples=0)

    assert "pagination-invalid-cursor-graceful" not in {row.clause for row in judged.absent}
    assert all(verdict.clause.group != "properties" for verdict in judged.verdicts)


SILENT = """
import json, sys, time
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"error": {"code": -32601, "message": "no"}}
    if message["method"] == "initialize":
        answer = {"result": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "serverInfo": {"name": "silent", "version": "1"},
        }}
    elif message["method"] == "ping":
        answer = {"result": {}}
    {trouble}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
"""


@cases(
    "if isinstance(message['id'], str): continue",
    "if isinstance(message['id'], str): time.sleep(1000)",
    "if message['method'] == 'ping': time.sleep(0.2)",
    "if message['method'] != 'initialize': sys.exit()",
    ids=["silent", "deaf", "slow", "leaving"],
)
def test_properties_end_in_time_with_a_misbehaving_server(trouble: str) -> None:
    program = SILENT.replace("{trouble}", trouble)
    target = Target(command=(sys.executable, "-S", "-c", program))
    begun = time.monotonic()

    names = ("answers_alike_under_any_id", "keeps_answers_apart")
    judge(target, load(), Choice(select=names, revisions=(LEGACY,), examples=20))

    assert time.monotonic() - begun < 150


def test_interrupt_ends_the_search() -> None:
    def interrupt(event: Event) -> None:
        if isinstance(event, Started):
            threading.Timer(1.0, _thread.interrupt_main).start()

    target = Target(command=(*mutant_command("SaysNothingWrong"), ROOT))
    select, begun = ("keeps_answers_apart",), time.monotonic()
    choice = Choice(select=select, revisions=(LEGACY,), examples=100_000)

    judged = judge(target, load(), choice, on_event=interrupt)

    assert judged.execution.interrupted
    assert time.monotonic() - begun < 60
