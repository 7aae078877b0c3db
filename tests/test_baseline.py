"""Known failures: what a baseline may say, what it excuses, when it is no longer true."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from mcp_touchstone import revision as rev
from mcp_touchstone.baseline import (
    FILE,
    HEADING,
    UNEXPLAINED,
    Baseline,
    BaselineError,
    check,
    read,
    renew,
    settle,
)
from mcp_touchstone.baseline_file import find
from mcp_touchstone.dossier import Dossier
from mcp_touchstone.floor import WORDS, Floor
from mcp_touchstone.loader import BOTH, load
from mcp_touchstone.pace import Pace
from mcp_touchstone.plan import Choice
from mcp_touchstone.reply import Reply
from mcp_touchstone.results import Absent, Run, Verdict
from mcp_touchstone.target import Target
from mcp_touchstone.toml_text import key, value
from mcp_touchstone.verdict import Judgement, Outcome

PING = "ping-empty-response"
MALFORMED = "lifecycle-initialize-result-shape"
ESCAPE = "traversal-dotdot"
NEW, OLD = "2025-11-25", "2024-11-05"
EVERYTHING = Choice()


def registry() -> Any:
    return load(BOTH)


def run(
    found: Mapping[tuple[str, str], Outcome],
    *,
    spoken: tuple[str, ...] = (OLD, NEW),
    asked: tuple[str, ...] = rev.ALL,
    absent: Mapping[tuple[str, str], str] | None = None,
    floor: Floor | None = None,
) -> Run:
    """Give a run that found this."""
    made = Run(Target(command=("x",)), Dossier(Pace(1.0)), floor=floor or Floor())
    made.dossier.spoken = cast("dict[str, Any]", dict.fromkeys(spoken))
    made.dossier.refused = {each: Reply(0) for each in asked if each not in spoken}
    for (rule, revision), outcome in found.items():
        judgement = Judgement(
            clause=rule, revision=revision, outcome=outcome, scenario="s", actual="no\nanswer"
        )
        clause = registry().catalogue[rule]
        made.verdicts.append(Verdict(clause, revision, outcome, judgement, [judgement]))
    made.absent = [Absent(rule, revision, why) for (rule, revision), why in (absent or {}).items()]
    return made


def entry(rule: str, revision: str = "all", more: str = "", kind: str = "clause") -> str:
    return f'[[known]]\n{kind} = "{rule}"\nrevision = "{revision}"\nreason = "so it is"\n{more}\n'


def settled(made: Run, *entries: str, choice: Choice = EVERYTHING) -> Run:
    settle(read("".join(entries), "b.toml"), made, registry(), choice)
    return made


def why(made: Run) -> list[str]:
    return [stale.why for stale in made.stale]


# --- what it excuses


def test_a_known_failure_passes_and_keeps_its_reason() -> None:
    made = settled(run({(PING, OLD): Outcome.FAIL, (PING, NEW): Outcome.FAIL}), entry(PING))

    assert [verdict.known for verdict in made.verdicts] == ["so it is"] * 2
    assert made.exit_code == 0


def test_a_revision_that_is_not_named_is_not_excused() -> None:
    made = settled(run({(PING, OLD): Outcome.FAIL, (PING, NEW): Outcome.FAIL}), entry(PING, OLD))

    assert [bool(verdict.known) for verdict in made.verdicts] == [True, False]
    assert made.exit_code == 1


def test_what_could_not_be_judged_is_excused_only_by_an_entry_that_says_so() -> None:
    found = {(PING, NEW): Outcome.BROKEN}

    assert settled(run(found), entry(PING)).exit_code == 2
    assert settled(run(found), entry(PING, more='outcome = "broken"')).exit_code == 0


def test_an_entry_for_what_cannot_be_judged_excuses_no_failure() -> None:
    broken = entry(PING, more='outcome = "broken"')
    made = settled(run({(PING, NEW): Outcome.FAIL}), broken)

    assert made.exit_code == 1
    assert why(made) == ["it can be judged now"]


# --- when it is no longer true


@pytest.mark.parametrize(
    ("found", "absent", "revision", "said"),
    [
        ({(PING, OLD): Outcome.PASS, (PING, NEW): Outcome.PASS}, {}, "all", ["it holds now"]),
        ({(PING, OLD): Outcome.PASS, (PING, NEW): Outcome.FAIL}, {}, "all", []),
        ({(PING, OLD): Outcome.PASS, (PING, NEW): Outcome.FAIL}, {}, OLD, ["it holds now"]),
        ({(PING, OLD): Outcome.WARN, (PING, NEW): Outcome.WARN}, {}, "all", []),
        ({(PING, OLD): Outcome.UNSEEN, (PING, NEW): Outcome.UNSEEN}, {}, "all", []),
        ({(PING, OLD): Outcome.BROKEN, (PING, NEW): Outcome.PASS}, {}, "all", []),
        ({}, {(PING, OLD): "no x", (PING, NEW): "no x"}, "all", ["no x"]),
        (
            {(PING, NEW): Outcome.FAIL}, {}, "2025-03-26",
            ["the server does not speak 2025-03-26"],
        ),
        ({(PING, NEW): Outcome.FAIL}, {}, OLD, [f"it is not judged in {OLD}"]),
    ],
)  # fmt: skip
def test_an_entry_is_stale_as_soon_as_nothing_fails_where_it_speaks(
    found: dict[tuple[str, str], Outcome],
    absent: dict[tuple[str, str], str],
    revision: str,
    said: list[str],
) -> None:
    made = settled(run(found, absent=absent), entry(PING, revision))

    assert why(made) == said
    if said:
        assert made.exit_code == 1


def test_a_server_that_speaks_no_revision_of_the_clause_makes_it_stale() -> None:
    made = settled(run({(ESCAPE, "2026-07-28"): Outcome.PASS}, spoken=("2026-07-28",)), entry(PING))

    assert why(made) == ["the server speaks no revision in which it holds"]


@pytest.mark.parametrize(
    "choice",
    [
        Choice(select=("tools",)),
        Choice(revisions=(NEW,)),
        Choice(cases=frozenset({"conformance/basic/ping.py::something_else"})),
    ],
)
def test_what_the_choice_leaves_out_is_not_stale(choice: Choice) -> None:
    made = settled(run({(PING, NEW): Outcome.PASS}), entry(PING), choice=choice)

    assert (why(made), made.exit_code) == ([], 0)


def test_what_the_server_was_not_asked_for_is_not_stale() -> None:
    made = run({(PING, NEW): Outcome.PASS}, spoken=(NEW,), asked=(NEW,))
    choice = Choice(revisions=(NEW,))

    assert why(settled(made, entry(PING), choice=choice)) == []
    assert why(settled(made, entry(PING, "2025-03-26"), choice=choice)) == []


def test_one_revision_that_was_asked_for_can_be_stale() -> None:
    made = run({(PING, NEW): Outcome.PASS})

    assert why(settled(made, entry(PING, NEW), choice=Choice(revisions=(NEW,)))) == ["it holds now"]


def test_a_threat_that_is_judged_in_one_revision_is_stale_by_that_one() -> None:
    made = settled(run({(ESCAPE, NEW): Outcome.PASS}), entry(ESCAPE, kind="threat"))

    assert why(made) == ["it holds now"]


def test_a_run_that_did_not_end_makes_nothing_stale() -> None:
    made = run({(PING, OLD): Outcome.PASS, (PING, NEW): Outcome.PASS})
    made.interrupted = True

    assert why(settled(made, entry(PING))) == []


# --- from which gravity on


@pytest.mark.parametrize(
    ("words", "rule", "outcome", "counts"),
    [
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
    ],
)
def test_the_floor_says_what_counts(
    words: tuple[str, ...], rule: str, outcome: Outcome, counts: bool
) -> None:
    clause = registry().catalogue[rule]

    assert Floor.read(words).counts(clause, outcome) is counts


def test_a_floor_is_written_as_it_was_read() -> None:
    for words in ((), ("should",), ("high",), ("may", "low"), ("never",)):
        assert Floor.read(words).words == words
    assert {*WORDS} > {"must", "critical", "never"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("shuold",), "did you mean 'should'"),
        (("must", "may"), "exclude each other"),
        (("low", "high"), "exclude each other"),
    ],
)
def test_a_floor_that_makes_no_sense_is_refused(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Floor.read(words)


# --- bringing it up to date


def renewed(text: str, made: Run, choice: Choice = EVERYTHING) -> Baseline:
    reg = registry()
    new = renew(read(text, "b.toml"), made, reg, choice, reg.catalogue).baseline
    assert read(new.text, "b.toml").entries == new.entries
    settle(new, made, reg, choice)
    assert made.exit_code == 0
    return new


def test_from_nothing_every_failure_gets_an_entry_with_what_was_seen() -> None:
    made = run(
        {
            (PING, OLD): Outcome.FAIL, (PING, NEW): Outcome.FAIL,
            (ESCAPE, NEW): Outcome.FAIL, (MALFORMED, NEW): Outcome.PASS,
        }
    )  # fmt: skip
    rows = tomllib.loads(renewed("", made).text)["known"]

    assert rows == [
        {"clause": PING, "revision": "all", "reason": f"{UNEXPLAINED}no answer"},
        {"threat": ESCAPE, "revision": "all", "reason": f"{UNEXPLAINED}no answer"},
    ]


def test_a_failure_in_some_revisions_names_them() -> None:
    made = run({(PING, OLD): Outcome.FAIL, (PING, NEW): Outcome.PASS})

    (row,) = tomllib.loads(renewed(HEADING, made).text)["known"]
    assert row["revision"] == [OLD]


def test_a_choice_of_revisions_never_excuses_the_others() -> None:
    made = run({(PING, NEW): Outcome.FAIL})

    (row,) = tomllib.loads(renewed("", made, Choice(revisions=(NEW,))).text)["known"]
    assert row["revision"] == [NEW]


def test_reasons_comments_and_order_of_the_author_stay() -> None:
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
            (MALFORMED, OLD): Outcome.FAIL, (MALFORMED, NEW): Outcome.FAIL,
            (PING, OLD): Outcome.PASS, (PING, NEW): Outcome.FAIL,
            (ESCAPE, NEW): Outcome.PASS,
        }
    )  # fmt: skip
    text = renewed(before, made).text

    assert text.startswith("# ours\n\n# the tracker has it as 12\n[[known]]\n")
    assert 'reason = """\nlong\nstory"""' in text
    assert f'# old clients\n[[known]]\nclause = "{PING}"\nrevision = ["{NEW}"]\n' in text
    assert 'reason = "why not"' in text
    assert ESCAPE not in text


def test_what_was_not_looked_at_stays() -> None:
    made = run({(PING, NEW): Outcome.FAIL})
    before = entry(MALFORMED) + entry(ESCAPE, kind="threat")

    text = renewed(before, made, Choice(select=("ping-empty-response",))).text

    assert text.startswith(before.strip().replace("\n\n[[", "\n\n[["))
    assert PING in text


def test_a_failure_in_one_more_revision_widens_the_entry() -> None:
    made = run({(PING, OLD): Outcome.FAIL, (PING, NEW): Outcome.FAIL})

    (row,) = tomllib.loads(renewed(entry(PING, OLD), made).text)["known"]
    assert row == {"clause": PING, "revision": [OLD, NEW], "reason": "so it is"}


def test_what_cannot_be_judged_is_written_as_that() -> None:
    made = run({(PING, NEW): Outcome.BROKEN})

    (row,) = tomllib.loads(renewed("", made).text)["known"]
    assert row["outcome"] == "broken"


def test_unknown_entries_go_and_renamed_ones_move() -> None:
    catalogue = registry().catalogue
    old, now = next((old, c) for c in catalogue if c.judged and not c.needs for old in c.replaces)
    made = run({(now.id, r): Outcome.FAIL for r in now.revisions}, spoken=rev.ALL)

    text = renewed(entry(old) + entry("png-empty"), made).text

    assert tomllib.loads(text)["known"] == [
        {"clause": now.id, "revision": "all", "reason": "so it is"}
    ]


def test_a_file_written_as_one_array_is_written_anew() -> None:
    made = run({(PING, OLD): Outcome.FAIL, (PING, NEW): Outcome.FAIL})
    before = f'known = [{{ clause = "{MALFORMED}", reason = "x" }}]\n'

    text = renewed(before, made, Choice(select=("ping-empty-response",))).text

    assert [row["clause"] for row in tomllib.loads(text)["known"]] == [MALFORMED, PING]


# --- mistakes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[known]\n", "b.toml: Expected"),
        ("[[knwon]]\n", "unknown key 'knwon'; did you mean 'known'"),
        ("known = 3\n", "known is no array of tables"),
        (entry(PING, more="raeson = 'x'"), "did you mean 'reason'"),
        ('[[known]]\nclause = "ping-empty-response"\n', "reason is missing"),
        ('[[known]]\nreason = "x"\n', "one of them"),
        (entry(PING, more='threat = "x"'), "one of them"),
        (entry(PING, "2025-11-26"), "unknown revision '2025-11-26'; did you mean '2025-11-25'"),
        (entry(PING, more='outcome = "fail"'), 'outcome is "broken" or left out'),
        (entry(PING) + entry(PING, NEW), "entry 2 repeats entry 1"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_the_place(text: str, said: str) -> None:
    with pytest.raises(BaselineError) as caught:
        read(text, "b.toml")

    assert said in str(caught.value)
    assert str(caught.value).startswith("b.toml: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (entry("ping-empty-respons"), f"no clause is called .*did you mean '{PING}'"),
        (entry("traversal-dotdt", kind="threat"), f"no threat is called .*{ESCAPE}"),
        (entry(ESCAPE), f"{ESCAPE} is a threat: write threat = "),
        (entry(PING, kind="threat"), f"{PING} is a clause: write clause = "),
        (entry("caching-access-control"), "is not judged: "),
        (entry(PING, "2026-07-28"), "says nothing in 2026-07-28; it holds in 2024-11-05"),
        (entry("discover-server-info"), "is now part of meta-server-info"),
    ],
)
def test_an_entry_that_speaks_of_nothing_is_refused(text: str, said: str) -> None:
    with pytest.raises(BaselineError, match=said):
        check(read(text, "b.toml"), registry().catalogue)


def test_a_file_is_missed_only_where_it_was_named(tmp_path: Path) -> None:
    catalogue = registry().catalogue

    assert find(None, tmp_path / FILE, catalogue, update=False).baseline is None
    with pytest.raises(BaselineError, match="--update-baseline writes it"):
        find(tmp_path / "x.toml", tmp_path / FILE, catalogue, update=False)
    with pytest.raises(BaselineError, match="cannot be read"):
        find(tmp_path, tmp_path / FILE, catalogue, update=False)
    (tmp_path / "x.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(BaselineError, match="no UTF-8"):
        find(tmp_path / "x.toml", tmp_path / FILE, catalogue, update=True)


def test_a_run_that_did_not_end_writes_nothing(tmp_path: Path) -> None:
    made = run({(PING, NEW): Outcome.FAIL})
    made.trouble = "no answer"
    book = find(None, tmp_path / FILE, registry().catalogue, update=True)

    assert book.hold(made, registry(), EVERYTHING) is None
    assert list(tmp_path.iterdir()) == []


# --- TOML


@pytest.mark.parametrize(
    "thing",
    [
        "plain", 'a "b" \\ c', "line\nline\ttab\x7f\x00", "é\U0001f600\u2028", "",
        {"a": [1, 2.5, True, {"b c": "d", "": "e"}], "ü": {}}, [], [[]], -3, 1e300,
    ],
)  # fmt: skip
def test_what_is_written_as_toml_is_read_back(thing: Any) -> None:
    assert tomllib.loads(f"x = {value(thing)}")["x"] == thing
    if isinstance(thing, str):
        assert tomllib.loads(f"{key(thing)} = 1") == {thing: 1}


def test_toml_has_no_null() -> None:
    with pytest.raises(ValueError, match="None"):
        value({"a": None})
