"""Known failures: the baseline file, the verdicts it excuses, and stale entries."""

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.catalog.loader import BOTH, load
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.gate import FILE
from mcp_touchstone.gate.baseline import HEADING, Baseline, BaselineError, check, read
from mcp_touchstone.gate.baseline_file import find
from mcp_touchstone.gate.settlement import UNEXPLAINED, renew, settle
from mcp_touchstone.gate.toml_text import key, value
from mcp_touchstone.results.run import Absent, Execution, Run
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.results.threshold import WORDS, Floor
from mcp_touchstone.results.verdict import AffectedTool, Outcome
from tests.cases import cases
from tests.runs import Found, run_of

PING = "ping-empty-response"
MALFORMED = "lifecycle-initialize-result-shape"
ESCAPE = "traversal-dotdot"
NEW, OLD = "2025-11-25", "2024-11-05"
EVERYTHING = Choice()
REASON = "so it is"


def registry() -> Any:
    return load(BOTH)


def run(
    found: Found,
    *,
    spoken: tuple[str, ...] = (OLD, NEW),
    asked: tuple[str, ...] = rev.ALL,
    absent: Mapping[tuple[str, str], str] | None = None,
) -> Run:
    """Return a run with these outcomes."""
    subject = Subject(reported={each: {} for each in spoken}, asked=asked)
    made = run_of(found, {"scenario": "s", "actual": "no\nanswer"}, subject)
    return replace(
        made,
        absent=[Absent(rule, revision, why) for (rule, revision), why in (absent or {}).items()],
    )


def entry(rule: str, revision: str = "all", more: str = "", kind: str = "clause") -> str:
    return f'[[known]]\n{kind} = "{rule}"\nrevision = "{revision}"\nreason = "{REASON}"\n{more}\n'


def settled(made: Run, *entries: str, choice: Choice = EVERYTHING) -> Run:
    return settle(read("".join(entries), "b.toml"), made, registry(), choice)


def stale_reasons(made: Run) -> list[str]:
    return [stale.why for stale in made.stale]


def test_known_failure_passes_and_keeps_its_reason() -> None:
    made = settled(run({(PING, OLD): Outcome.FAIL, (PING, NEW): Outcome.FAIL}), entry(PING))

    assert [verdict.known for verdict in made.verdicts] == [REASON] * 2
    assert made.exit_code == 0


def test_revision_missing_from_the_entry_is_not_excused() -> None:
    made = settled(run({(PING, OLD): Outcome.FAIL, (PING, NEW): Outcome.FAIL}), entry(PING, OLD))

    assert [bool(verdict.known) for verdict in made.verdicts] == [True, False]
    assert made.exit_code == 1


def in_tools(*places: str, tried: int = 1, raced: bool = False) -> Run:
    """Return a run in which one threat fails in these tools: ``read``, or ``read(path, root)``."""
    made = run({(ESCAPE, NEW): Outcome.FAIL}, spoken=(NEW,))
    (verdict,) = made.verdicts
    tools = tuple(map(affected, places))
    judgement = replace(verdict.gravest, tools=tools, tried=tried, raced=raced)
    shown = replace(verdict, gravest=judgement, judgements=[judgement])
    return replace(made, verdicts=[shown])


def affected(place: str) -> AffectedTool:
    tool, _, arguments = place.rstrip(")").partition("(")
    names = tuple((name, 1) for name in arguments.split(", ") if name)
    return AffectedTool(tool, 1, names)


@cases(
    ('tool = "read"', ["read", "read(path)", "read(to)"], ["write(path)"]),
    (
        'tool = "read"\nargument = "path"',
        ["read", "read(path)"],
        ["read(to)", "read(path, to)", "write(path)"],
    ),
    (
        'tool = ["read", "write"]\nargument = ["path", "to"]',
        ["read(path)", "write(to, path)"],
        ["read(from)"],
    ),
    (
        'tool = ["read", "write"]\nargument = { read = "path" }',
        ["read(path)", "write(to)"],
        ["read(to)"],
    ),
)
def test_argument_missing_from_the_entry_is_not_excused(
    more: str, accepted: list[str], refused: list[str]
) -> None:
    known = entry(ESCAPE, more=more, kind="threat")

    assert [settled(in_tools(place), known).exit_code for place in accepted] == [0] * len(accepted)
    assert [settled(in_tools(place), known).exit_code for place in refused] == [1] * len(refused)


@cases(("", 0), ('tool = "read"', 1), ('tool = ["read", "write"]', 0))
def test_tool_missing_from_the_entry_is_not_excused(tool: str, status: int) -> None:
    known = entry(ESCAPE, more=tool, kind="threat")

    assert settled(in_tools("read"), known).exit_code == 0
    assert settled(in_tools("read", "write"), known).exit_code == status


@pytest.mark.parametrize("day", ["2026-05-31", '"2026-05-31"'])
def test_expired_entry_is_stale_and_names_its_owner(day: str) -> None:
    known = entry(PING, more=f'owner = "the api team"\nexpires = {day}')
    made = run({(PING, NEW): Outcome.FAIL})

    made = replace(made, execution=Execution(started="2026-05-31T23:59:59+00:00"))
    assert settled(made, known).exit_code == 0
    made = replace(made, execution=Execution(started="2026-06-01T00:00:00+00:00"))
    made = settled(made, known)
    assert made.exit_code == 1
    assert stale_reasons(made) == ["it expired on 2026-05-31; ask the api team"]


def test_update_keeps_the_owner_and_removes_an_expired_entry() -> None:
    made = run({(PING, OLD): Outcome.FAIL, (PING, NEW): Outcome.FAIL})
    made = replace(made, execution=Execution(started="2026-06-01T00:00:00+00:00"))
    lasting = renewed(entry(PING, OLD, 'owner = "us"\nexpires = 2026-06-01'), made)
    assert (lasting.entries[0].owner, str(lasting.entries[0].expires)) == ("us", "2026-06-01")
    assert len(lasting.entries[0].revisions) == 2

    (entered,) = renewed(entry(PING, more="expires = 2026-05-31"), made).entries
    assert entered.expires is None
    assert entered.reason.startswith(UNEXPLAINED)


def test_entry_of_a_failure_by_chance_is_never_stale() -> None:
    known = entry(PING, more="sometimes = true")

    assert settled(run({(PING, NEW): Outcome.PASS}), known).exit_code == 0
    assert settled(run({(PING, OLD): Outcome.FAIL}), known).exit_code == 0
    assert settled(run({(PING, NEW): Outcome.PASS}), entry(PING)).exit_code == 1


def test_broken_verdict_is_excused_only_by_a_broken_entry() -> None:
    found = {(PING, NEW): Outcome.BROKEN}

    assert settled(run(found), entry(PING)).exit_code == 2
    assert settled(run(found), entry(PING, more='outcome = "broken"')).exit_code == 0


def test_broken_entry_does_not_excuse_a_failure() -> None:
    broken = entry(PING, more='outcome = "broken"')
    made = settled(run({(PING, NEW): Outcome.FAIL}), broken)

    assert made.exit_code == 1
    assert stale_reasons(made) == ["it can be judged now"]


@cases(
    ({(PING, OLD): Outcome.PASS, (PING, NEW): Outcome.PASS}, {}, "all", ["it passes now"]),
    ({(PING, OLD): Outcome.PASS, (PING, NEW): Outcome.FAIL}, {}, "all", []),
    ({(PING, OLD): Outcome.PASS, (PING, NEW): Outcome.FAIL}, {}, OLD, ["it passes now"]),
    ({(PING, OLD): Outcome.WARN, (PING, NEW): Outcome.WARN}, {}, "all", []),
    ({(PING, OLD): Outcome.UNSEEN, (PING, NEW): Outcome.UNSEEN}, {}, "all", []),
    ({(PING, OLD): Outcome.BROKEN, (PING, NEW): Outcome.PASS}, {}, "all", []),
    ({}, {(PING, OLD): "no x", (PING, NEW): "no x"}, "all", ["no x"]),
    (
        {(PING, NEW): Outcome.FAIL},
        {},
        "2025-03-26",
        ["the server does not speak 2025-03-26"],
    ),
    ({(PING, NEW): Outcome.FAIL}, {}, OLD, [f"it is not judged in {OLD}"]),
)
def test_entry_is_stale_if_no_verdict_of_it_fails(
    found: dict[tuple[str, str], Outcome],
    absent: dict[tuple[str, str], str],
    revision: str,
    reasons: list[str],
) -> None:
    made = settled(run(found, absent=absent), entry(PING, revision))

    assert stale_reasons(made) == reasons
    if reasons:
        assert made.exit_code == 1


def test_entry_is_stale_if_the_server_speaks_no_revision_of_the_clause() -> None:
    made = settled(run({(ESCAPE, "2026-07-28"): Outcome.PASS}, spoken=("2026-07-28",)), entry(PING))

    assert stale_reasons(made) == ["the server speaks no revision in which it holds"]


@cases(
    Choice(select=("tools",)),
    Choice(revisions=(NEW,)),
    Choice(cases=frozenset({"conformance/basic/ping.py::something_else"})),
)
def test_entry_outside_the_selection_is_not_stale(choice: Choice) -> None:
    made = settled(run({(PING, NEW): Outcome.PASS}), entry(PING), choice=choice)

    assert (stale_reasons(made), made.exit_code) == ([], 0)


def test_entry_of_a_revision_not_asked_for_is_not_stale() -> None:
    made = run({(PING, NEW): Outcome.PASS}, spoken=(NEW,), asked=(NEW,))
    choice = Choice(revisions=(NEW,))

    assert stale_reasons(settled(made, entry(PING), choice=choice)) == []
    assert stale_reasons(settled(made, entry(PING, "2025-03-26"), choice=choice)) == []


def test_entry_of_a_requested_revision_can_be_stale() -> None:
    made = run({(PING, NEW): Outcome.PASS})

    assert stale_reasons(settled(made, entry(PING, NEW), choice=Choice(revisions=(NEW,)))) == [
        "it passes now"
    ]


def test_threat_judged_in_one_revision_is_stale_if_it_passes_there() -> None:
    made = settled(run({(ESCAPE, NEW): Outcome.PASS}), entry(ESCAPE, kind="threat"))

    assert stale_reasons(made) == ["it passes now"]


def test_interrupted_run_makes_no_entry_stale() -> None:
    made = run({(PING, OLD): Outcome.PASS, (PING, NEW): Outcome.PASS})
    made = replace(made, execution=Execution(interrupted=True))

    assert stale_reasons(settled(made, entry(PING))) == []


@cases(
    ((), PING, Outcome.FAIL, True),
    ((), PING, Outcome.WARN, False),
    (("must",), PING, Outcome.FAIL, True),
    (("should",), PING, Outcome.WARN, True),
    (("should",), PING, Outcome.NOTE, False),
    (("may",), PING, Outcome.NOTE, True),
    (("may",), PING, Outcome.BROKEN, False),
    (("never",), PING, Outcome.FAIL, False),
    ((), ESCAPE, Outcome.FAIL, True),
    (("critical",), ESCAPE, Outcome.FAIL, True),
    (("info",), ESCAPE, Outcome.NOTE, True),
    (("low",), ESCAPE, Outcome.NOTE, False),
    (("low",), ESCAPE, Outcome.WARN, True),
    (("critical",), "traversal-hostile-names", Outcome.FAIL, False),
    (("critical",), PING, Outcome.FAIL, True),
    (("should", "critical"), PING, Outcome.WARN, True),
)
def test_threshold_decides_which_verdicts_count(
    words: tuple[str, ...], rule: str, outcome: Outcome, counts: bool
) -> None:
    clause = registry().catalogue[rule]

    assert Floor.read(words).counts(clause, outcome) is counts


def test_threshold_words_survive_a_round_trip() -> None:
    for words in ((), ("should",), ("high",), ("may", "low"), ("never",)):
        assert Floor.read(words).words == words
    assert {*WORDS} > {"must", "critical", "never"}


@cases(
    (("shuold",), "did you mean 'should'"),
    (("must", "may"), "exclude each other"),
    (("low", "high"), "exclude each other"),
)
def test_invalid_threshold_is_refused(words: tuple[str, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Floor.read(words)


def renewed(text: str, made: Run, choice: Choice = EVERYTHING) -> Baseline:
    reg = registry()
    new = renew(read(text, "b.toml"), made, reg, choice, reg.catalogue).baseline
    assert read(new.text, "b.toml").entries == new.entries
    assert settle(new, made, reg, choice).exit_code == 0
    return new


def test_new_baseline_has_an_entry_for_every_failure() -> None:
    made = run(
        {
            (PING, OLD): Outcome.FAIL,
            (PING, NEW): Outcome.FAIL,
            (ESCAPE, NEW): Outcome.FAIL,
            (MALFORMED, NEW): Outcome.PASS,
        }
    )
    rows = tomllib.loads(renewed("", made).text)["known"]

    assert rows == [
        {"clause": PING, "revision": "all", "reason": f"{UNEXPLAINED}no answer"},
        {"threat": ESCAPE, "revision": "all", "reason": f"{UNEXPLAINED}no answer"},
    ]


@cases(
    (HEADING, {OLD: Outcome.FAIL, NEW: Outcome.PASS}, {"revision": [OLD]}),
    ("", {NEW: Outcome.BROKEN}, {"outcome": "broken"}),
    (
        entry(PING, OLD),
        {OLD: Outcome.FAIL, NEW: Outcome.FAIL},
        {"clause": PING, "revision": [OLD, NEW], "reason": REASON},
    ),
    ids=["only the failing revisions", "a broken verdict", "a further failing revision"],
)
def test_entry_is_written_for_what_was_found(
    before: str, found: dict[str, Outcome], members: dict[str, Any]
) -> None:
    made = run({(PING, revision): outcome for revision, outcome in found.items()})

    (row,) = tomllib.loads(renewed(before, made).text)["known"]
    assert row.items() >= members.items()


def test_new_entry_does_not_cover_unselected_revisions() -> None:
    made = run({(PING, NEW): Outcome.FAIL})

    (row,) = tomllib.loads(renewed("", made, Choice(revisions=(NEW,))).text)["known"]
    assert row["revision"] == [NEW]


def test_new_entry_lists_the_tools_and_an_update_changes_them() -> None:
    first = renewed("", in_tools("write"))
    assert first.entries[0].tools == ("write",)

    second = renewed(first.text, in_tools("read", "write"))
    assert second.entries[0].tools == ("read", "write")
    assert 'tool = ["read", "write"]' in second.text

    assert renewed(second.text, in_tools("read")).entries[0].tools == ("read",)


def test_new_entry_lists_the_arguments_and_an_update_changes_them() -> None:
    first = renewed("", in_tools("write(path)"))
    assert 'argument = "path"' in first.text

    second = renewed(first.text, in_tools("read(to)", "write(from, path)"))
    assert 'argument = { read = "to", write = ["from", "path"] }' in second.text
    assert settled(in_tools("read(to)", "write(from, path)"), second.text).exit_code == 0

    third = renewed(second.text, in_tools("write(from)"))
    assert 'tool = "write"\nargument = "from"' in third.text


def test_update_keeps_an_entry_of_all_arguments() -> None:
    old = entry(ESCAPE, more='tool = "read"', kind="threat")

    (kept,) = renewed(old, in_tools("read(path)", "write(path)")).entries

    assert (kept.tools, kept.arguments) == (("read", "write"), {"write": ("path",)})


def test_update_marks_an_entry_of_a_failure_that_now_appears_by_chance() -> None:
    old = entry(ESCAPE, NEW, kind="threat")

    (kept,) = renewed(old, in_tools("read", raced=True)).entries

    assert (kept.sometimes, kept.revisions) == (True, ())


def test_new_entry_of_a_failure_by_chance_covers_all_revisions() -> None:
    (made,) = renewed("", in_tools("read", tried=3)).entries

    assert made.sometimes
    assert made.revisions == ()


def test_update_keeps_reasons_comments_and_order() -> None:
    before = (
        "# ours\n\n"
        "# the tracker has it as 12\n"
        f'[[known]]\nclause = "{MALFORMED}"\nreason = """\nlong\nstory"""\n\n'
        + entry(ESCAPE, kind="threat")
        + f'# old clients\n[[known]]\nclause = "{PING}"\n'
        f'revision = ["{OLD}", "{NEW}"]\nreason = "why not"\n'
    )
    made = run(
        {
            (MALFORMED, OLD): Outcome.FAIL,
            (MALFORMED, NEW): Outcome.FAIL,
            (PING, OLD): Outcome.PASS,
            (PING, NEW): Outcome.FAIL,
            (ESCAPE, NEW): Outcome.PASS,
        }
    )
    text = renewed(before, made).text

    assert text.startswith("# ours\n\n# the tracker has it as 12\n[[known]]\n")
    assert 'reason = """\nlong\nstory"""' in text
    assert f'# old clients\n[[known]]\nclause = "{PING}"\nrevision = ["{NEW}"]\n' in text
    assert 'reason = "why not"' in text
    assert ESCAPE not in text


def test_update_keeps_unselected_entries() -> None:
    made = run({(PING, NEW): Outcome.FAIL})
    before = entry(MALFORMED) + entry(ESCAPE, kind="threat")

    text = renewed(before, made, Choice(select=("ping-empty-response",))).text

    assert text.startswith(before.strip().replace("\n\n[[", "\n\n[["))
    assert PING in text


def test_update_removes_unknown_ids_and_follows_renamed_ids() -> None:
    catalogue = registry().catalogue
    old, now = next((old, c) for c in catalogue if c.judged and not c.needs for old in c.replaces)
    made = run({(now.id, r): Outcome.FAIL for r in now.revisions}, spoken=rev.ALL)

    text = renewed(entry(old) + entry("png-empty"), made).text

    assert tomllib.loads(text)["known"] == [{"clause": now.id, "revision": "all", "reason": REASON}]


def test_update_rewrites_an_inline_array() -> None:
    made = run({(PING, OLD): Outcome.FAIL, (PING, NEW): Outcome.FAIL})
    before = f'known = [{{ clause = "{MALFORMED}", reason = "x" }}]\n'

    text = renewed(before, made, Choice(select=("ping-empty-response",))).text

    assert [row["clause"] for row in tomllib.loads(text)["known"]] == [MALFORMED, PING]


INVALID = (
    *("[[knwon]]\n", "known = 3\n", entry(PING, more="raeson = 'x'")),
    '[[known]]\nclause = "ping-empty-response"\n',
    '[[known]]\nreason = "x"\n',
    entry(PING, more='threat = "x"'),
    entry(PING, "2025-11-26"),
    entry(PING, more='outcome = "fail"'),
    entry(PING) + entry(PING, NEW),
    entry(ESCAPE, more='argument = "path"', kind="threat"),
    entry(ESCAPE, more='tool = "a"\nargument = { b = "path" }', kind="threat"),
    entry(ESCAPE, more='tool = "a"\nargument = 3', kind="threat"),
)


def test_invalid_baseline_is_refused_in_one_line_with_the_file_name(
    golden: SnapshotAssertion,
) -> None:
    said = []
    for text in INVALID:
        with pytest.raises(BaselineError) as caught:
            read(text, "b.toml")
        said.append(str(caught.value))

    assert "\n".join(said) == golden
    with pytest.raises(InputError, match=r"\Ab\.toml: [^\n]+\Z"):
        read("[[known]\n", "b.toml")


def test_entry_without_a_judged_clause_is_refused(golden: SnapshotAssertion) -> None:
    said = []
    for text in (
        *(entry("ping-empty-respons"), entry("traversal-dotdt", kind="threat"), entry(ESCAPE)),
        *(entry(PING, kind="threat"), entry("caching-access-control"), entry(PING, "2026-07-28")),
        entry("discover-server-info"),
    ):
        with pytest.raises(BaselineError) as caught:
            check(read(text, "b.toml"), registry().catalogue)
        said.append(str(caught.value))

    assert "\n".join(said) == golden


def test_missing_baseline_is_an_error_only_if_named(tmp_path: Path) -> None:
    catalogue = registry().catalogue

    assert find(None, tmp_path / FILE, catalogue, update=False).baseline is None
    with pytest.raises(InputError, match="--update-baseline` writes it"):
        find(tmp_path / "x.toml", tmp_path / FILE, catalogue, update=False)
    with pytest.raises(InputError, match="it is a folder"):
        find(tmp_path, tmp_path / FILE, catalogue, update=False)
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="line 1 is not UTF-8"):
        find(tmp_path / "x.toml", tmp_path / FILE, catalogue, update=True)


def test_failed_run_writes_no_baseline(tmp_path: Path) -> None:
    made = run({(PING, NEW): Outcome.FAIL})
    made = replace(made, trouble="no answer")
    book = find(None, tmp_path / FILE, registry().catalogue, update=True)

    assert book.hold(made, registry(), EVERYTHING) == (made, None)
    assert list(tmp_path.iterdir()) == []


@cases(
    "plain",
    'a "b" \\ c',
    "line\nline\ttab\x7f\x00",
    "é\U0001f600\u2028",
    "",
    {"a": [1, 2.5, True, {"b c": "d", "": "e"}], "ü": {}},
    [],
    [[]],
    -3,
    1e300,
)
def test_written_toml_is_read_back(thing: Any) -> None:
    assert tomllib.loads(f"x = {value(thing)}")["x"] == thing
    if isinstance(thing, str):
        assert tomllib.loads(f"{key(thing)} = 1") == {thing: 1}


def test_toml_writer_refuses_none() -> None:
    with pytest.raises(ValueError, match="None"):
        value({"a": None})
