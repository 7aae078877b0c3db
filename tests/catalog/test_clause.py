"""Clause files: the fields of valid rows, and one-line errors for invalid ones."""

from collections.abc import Callable
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import (
    SCHEMAS,
    SITE,
    Breach,
    CatalogueError,
    Clause,
    Level,
    load_catalogue,
    load_chapter,
    nearest,
)
from mcp_touchstone.catalog.loader import load
from mcp_touchstone.catalog.scenario import attack
from tests.cases import cases

HEAD = 'title = "Ping"\nsummary = "Either side may ping."\n'
ROW = """
[[clause]]
id = "ping-answer"
level = "MUST"
statement = "A ping is\\nanswered."
how = "We ping."
source = { "2025-11-25" = "basic/utilities/ping" }
"""


def write(folder: Path, text: str, name: str = "basic/ping.toml") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def row(**changes: str | None) -> str:
    """Return the row of ROW with keys replaced (TOML values), added, or removed (None)."""
    lines = {
        line.partition(" = ")[0]: line.partition(" = ")[2] for line in ROW.strip().splitlines()[1:]
    }
    lines |= {key: value for key, value in changes.items() if value is not None}
    kept = {key: value for key, value in lines.items() if changes.get(key, "") is not None}
    return "\n[[clause]]\n" + "".join(f"{key} = {value}\n" for key, value in kept.items())


Load = Callable[..., Clause]


@pytest.fixture
def load_row(tmp_path: Path) -> Load:
    def load(**changes: str | None) -> Clause:
        (clause,) = load_chapter(write(tmp_path, HEAD + row(**changes))).clauses
        return clause

    return load


OLD, NEW = "2025-03-26", "2025-11-25"


INVALID: list[dict[str, str | None]] = [
    {"hwo": '"x"'},
    {"how": None},
    {"how": '""'},
    {"statement": None},
    {"source": "{}"},
    {"id": None},
    {"level": None},
    {"level": '"MUSTN\'T"'},
    {"breach": '"error"'},
    {"level": '"SHOULD"', "breach": '"fail"'},
    {"source": '{ "2025-11-52" = "x" }'},
    {"source": f'{{ "{NEW}..{OLD}" = "x" }}'},
    {"source": f'{{ "{OLD}..{NEW}" = "x", "{NEW}" = "y" }}'},
    {"source": f'{{ "..{NEW}" = "x" }}'},
    {"source": f'{{ "{OLD}.." = "x", "{NEW}" = "y" }}'},
    {"source": f'{{ "{NEW}" = [] }}'},
    {"source": f'{{ "{NEW}" = 5 }}'},
    {"id": '"Ping-Answer"'},
    {"id": '"ping"'},
    {"id": "5"},
    {"needs": '"tools"'},
    {"replaces": "[5]"},
    {"strict": '"no"'},
    {"statement": '["x"]'},
    {"deferred": '"later"', "unobservable": '"never"'},
    {"judged": "true"},
]


def test_invalid_row_error_names_file_clause_and_key(
    tmp_path: Path, golden: SnapshotAssertion
) -> None:
    said = []
    for changes in INVALID:
        with pytest.raises(CatalogueError) as caught:
            load_chapter(write(tmp_path, HEAD + row(**changes)))
        said.append(str(caught.value))

    assert "\n".join(said) == golden


@cases(
    (f"{HEAD}sumary = 'x'\n", "unknown key 'sumary'; did you mean 'summary'?"),
    ("summary = 'x'\n", "title is missing"),
    ("title = 'x'\n", "summary is missing"),
    ("title = 5\nsummary = 'x'\n", "title is no string"),
    (f"{HEAD}[clause]\nid = 'x-y'\n", "clause is no array of tables"),
    (f"{HEAD}deferred = true\n", "deferred is no string"),
)
def test_invalid_chapter_error_names_file_and_key(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(CatalogueError) as caught:
        load_chapter(write(tmp_path, text))

    assert str(caught.value) == f"basic/ping.toml: {message}"


@pytest.mark.parametrize("raw", [b"title = ", b"title = '\xff'"])
def test_invalid_toml_is_refused_in_one_line(tmp_path: Path, raw: bytes) -> None:
    path = write(tmp_path, "")
    path.write_bytes(raw)

    with pytest.raises(CatalogueError, match=r"\Abasic/ping\.toml: [^\n]+\Z"):
        load_chapter(path)


@cases(
    (ROW, ("server/tools.toml: ping-answer: ", "basic/ping.toml")),
    (
        row(id='"tools-new"', replaces='["ping-answer"]'),
        ("basic/ping.toml: ping-answer: ", "tools-new in server/tools.toml"),
    ),
    ids=["used twice", "retired"],
)
def test_id_in_use_is_refused_with_both_files(
    tmp_path: Path, second: str, names: tuple[str, str]
) -> None:
    write(tmp_path, HEAD + ROW)
    write(tmp_path, HEAD + second, "server/tools.toml")

    with pytest.raises(CatalogueError) as caught:
        load_catalogue(tmp_path)

    assert str(caught.value).startswith(names[0])
    assert names[1] in str(caught.value)


@cases(
    (Level.MUST, Breach.FAIL),
    (Level.MUST_NOT, Breach.FAIL),
    (Level.SCHEMA, Breach.FAIL),
    (Level.SHOULD, Breach.WARN),
    (Level.SHOULD_NOT, Breach.WARN),
    (Level.MAY, Breach.NOTE),
)
def test_breach_defaults_to_the_level(load_row: Load, level: Level, breach: Breach) -> None:
    assert load_row(level=f'"{level}"').breach is breach
    assert load_row(level=f'"{level}"', breach='"note"').breach is Breach.NOTE


def test_minimal_row_is_judged_unconditionally_and_strictly(load_row: Load) -> None:
    clause = load_row()

    assert clause.judged
    assert clause.strict
    assert not clause.conditional
    assert clause.needs == ()
    assert clause.statement == "A ping is answered."
    assert (clause.group, clause.chapter, clause.file) == ("basic", "ping", "basic/ping.toml")


def test_revisions_are_sorted_by_age(load_row: Load) -> None:
    clause = load_row(source='{ "2026-07-28" = "b", "2024-11-05" = ["a", "c"] }')

    assert clause.revisions == ("2024-11-05", "2026-07-28")
    assert clause.source["2024-11-05"] == ("a", "c")


def test_range_of_revisions_names_each_of_them(load_row: Load) -> None:
    clause = load_row(source='{ "2025-11-25" = "b", "2024-11-05..2025-06-18" = "a" }')

    older = {"2024-11-05": ("a",), "2025-03-26": ("a",), "2025-06-18": ("a",)}
    assert clause.source == older | {"2025-11-25": ("b",)}


def test_open_range_names_every_revision_from_its_first_one_on(load_row: Load) -> None:
    clause = load_row(source='{ "2025-11-25.." = "a" }')

    assert clause.source == dict.fromkeys(rev.since("2025-11-25"), ("a",))


@pytest.mark.parametrize("key", ["deferred", "unobservable"])
def test_deferred_or_unobservable_clause_is_not_judged(load_row: Load, key: str) -> None:
    assert not load_row(**{key: '"because"'}).judged


def test_unobservable_clause_needs_no_how(load_row: Load) -> None:
    assert load_row(how=None, unobservable='"nothing shows it"').unobservable == "nothing shows it"


def test_deferred_chapter_defers_rows_without_their_own_setting(tmp_path: Path) -> None:
    rows = [row(), row(id='"ping-own"', deferred='"its own reason"')]
    rows.append(row(id='"ping-never"', unobservable='"out of reach"'))
    rows.append(row(id='"ping-now"', judged="true"))
    text = f'{HEAD}deferred = "the whole chapter"\n{"".join(rows)}'

    clauses = load_chapter(write(tmp_path, text)).clauses

    assert [c.deferred for c in clauses] == ["the whole chapter", "its own reason", "", ""]
    assert [clause.id for clause in clauses if clause.judged] == ["ping-now"]


@cases(
    ("basic/utilities/ping", f"{SITE}/2025-11-25/basic/utilities/ping"),
    ("basic/transports#stdio", f"{SITE}/2025-11-25/basic/transports#stdio"),
    ("basic/index", f"{SITE}/2025-11-25/basic"),
    ("basic/index#meta", f"{SITE}/2025-11-25/basic#meta"),
    ("schema.ts", f"{SCHEMAS}/2025-11-25/schema.ts"),
    ("schema.ts#Tool", f"{SCHEMAS}/2025-11-25/schema.ts#:~:text=Tool"),
)
def test_specification_page_is_converted_to_a_url(load_row: Load, page: str, address: str) -> None:
    clause = load_row(source=f'{{ "2025-11-25" = "{page}" }}')

    assert clause.links("2025-11-25") == (address,)


def test_links_include_only_pages_of_the_revision(load_row: Load) -> None:
    clause = load_row(source='{ "2025-11-25" = ["a", "b"] }')

    assert len(clause.links("2025-11-25")) == 2
    assert [clause.links(r) for r in rev.ALL if r != "2025-11-25"] == [()] * 4


def test_unknown_clause_id_suggests_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, HEAD + ROW)
    catalogue = load_catalogue(tmp_path)

    assert catalogue["ping-answer"].id == "ping-answer"
    assert "ping-answer" in catalogue
    assert len(catalogue) == 1
    with pytest.raises(CatalogueError) as caught:
        catalogue["ping-anwser"]
    assert str(caught.value) == ("no clause is called 'ping-anwser'; did you mean 'ping-answer'?")


def test_attack_needs_a_tree() -> None:
    with pytest.raises(CatalogueError, match="no fixtures; most have base"):
        attack("traversal-dotdot", fixtures=())


def test_chapters_are_sorted_by_path(tmp_path: Path) -> None:
    for place in ("server/a.toml", "basic/z.toml", "basic/b.toml"):
        write(tmp_path, HEAD, place)

    names = [f"{c.group}/{c.name}" for c in load_catalogue(tmp_path).chapters]

    assert names == ["basic/b", "basic/z", "server/a"]


def test_a_clause_has_the_sections_of_all_its_revisions() -> None:
    clause = load().catalogue["sessions-ended-404"]

    assert "basic/transports#session-management" in clause.sections
    assert len({*clause.sections}) == len(clause.sections)


def test_suggestion_is_made_only_for_a_similar_word() -> None:
    assert nearest("pnig", ["ping", "meta"]) == "; did you mean 'ping'?"
    assert nearest("zzz", ["ping", "meta"]) == ""
    assert nearest("pnig", ["schema#pnig"]) == ""
    assert nearest("bach", ["batch-a", "batch-b"]) == "; did you mean 'batch-b' or 'batch-a'?"


def test_revisions_belong_to_two_eras() -> None:
    assert [r for r in rev.ALL if rev.is_modern(r)] == list(rev.MODERN)
    assert rev.since("2025-06-18") == ("2025-06-18", "2025-11-25", "2026-07-28")
    assert list(rev.ALL) == sorted(rev.ALL)


@cases(
    ({"judged": "false"}, "true or absent"),
    ({"judged": "true", "deferred": '"later"'}, "exclude each other"),
    ({"judged": "true", "unobservable": '"no"'}, "exclude each other"),
)
def test_judged_contradicting_another_key_is_refused(
    tmp_path: Path, changes: dict[str, str], why: str
) -> None:
    with pytest.raises(CatalogueError, match=why):
        load_chapter(write(tmp_path, f'{HEAD}deferred = "not yet"\n{row(**changes)}'))


def test_rules_that_servers_often_break_have_a_usual_cure() -> None:
    """What most servers break is what explain says how to correct."""
    catalogue = load().catalogue
    often = {"jsonrpc-invalid-request", "tools-unknown-tool-error", "stdio-stdout-only-messages"}

    assert sum(bool(clause.cure) for clause in catalogue) >= 30
    assert all(catalogue[rule].cure for rule in often)
