"""Tools that take no plain path to a text file are bound without configuration."""

import io
import sys
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from mcp_touchstone.bindings.argument_roles import ArgumentRole, ArgumentSlot
from mcp_touchstone.bindings.binding import Binding, Operation, Style
from mcp_touchstone.bindings.call_variants import more_ways
from mcp_touchstone.bindings.declared import read
from mcp_touchstone.bindings.file_naming import FileNaming
from mcp_touchstone.report import html, markdown
from mcp_touchstone.security.documents import load
from mcp_touchstone.security.fixture_tree import FixtureTree
from mcp_touchstone.target.target import ROOT, Target
from tests import canned
from tests.cases import cases
from tests.fakes.matrix import bindings_of

FAKES = Path(__file__).parents[1] / "fakes"
DOCUMENTS = load(FAKES.parents[1] / "security_suite")


def bound(name: str) -> tuple[Binding, ...]:
    return bindings_of(Target(command=(sys.executable, str(FAKES), name, ROOT))).found


@cases(
    ("Notes", {Operation.READ, Operation.LIST, Operation.CREATE}),
    ("Titles", {Operation.READ, Operation.CREATE}),
    ("Projects", {Operation.READ, Operation.CREATE}),
    ("Sheets", {Operation.READ, Operation.CREATE}),
    ("Notebooks", {Operation.READ}),
    ("Vaults", {Operation.READ}),
    ("ChosenVaults", {Operation.READ}),
    ("Mentions", {Operation.READ}),
    ("Addresses", {Operation.READ}),
    ("Lines", {Operation.READ}),
)
def test_tools_of_other_shapes_are_bound(name: str, expected: set[Operation]) -> None:
    assert {binding.operation for binding in bound(name)} >= expected


def test_a_refused_style_of_path_leaves_what_a_write_of_the_other_style_showed() -> None:
    """Only relative paths work here; a file that was refused holds nothing."""
    writers = [b for b in bound("RefusesAbsolute") if b.gives_content]

    assert {b.operation for b in writers} >= {Operation.CREATE, Operation.WRITE}
    assert all(binding.is_verbatim for binding in writers)


def test_documents_hold_their_text_in_readable_bytes() -> None:
    for document in DOCUMENTS.rows:
        assert b"MCPCANARY-12 line 1" in document.holding("MCPCANARY-12 line 1\n"), document.suffix
    with zipfile.ZipFile(BytesIO(DOCUMENTS.of(".xlsx").holding("a & b"))) as archive:
        assert archive.testzip() is None
        assert b"a &amp; b" in archive.read("xl/worksheets/sheet1.xml")


@cases(
    ("a note ends with .md", [".md"]),
    ('Only "*.csv" and .tsv files are allowed', [".csv", ".tsv"]),
    ("Read a sheet of an Excel workbook", [".xlsx"]),
    ("invalid extension: .kicad", [".kicad"]),
    ("see https://example.com/a.dat or node.js", []),
    ("writes /srv/data.bin", []),
)
def test_suffixes_are_taken_from_definitions_and_refusals(text: str, expected: list[str]) -> None:
    assert list(DOCUMENTS.suggested(text)) == expected


@cases(
    (FileNaming(), "ok.txt", "ok.txt", "ok.txt"),
    (FileNaming(".md"), "../outside/c.txt", "../outside/c.md", "../outside/c.md"),
    (FileNaming(".md", adds_suffix=True), "ok.txt", "ok.md", "ok"),
    (FileNaming(folder="notes", adds_folder=True), "ok.txt", "notes/ok.txt", "ok.txt"),
    (FileNaming(folder="a/b", adds_folder=True), "../x.txt", "../x.txt", "../../../x.txt"),
    (FileNaming(folder="notes", adds_folder=True), "/x.txt", "/x.txt", "/x.txt"),
    (FileNaming(folder="notes"), "ok.txt", "notes/ok.txt", "notes/ok.txt"),
)
def test_paths_are_named_as_the_tool_names_files(
    naming: FileNaming, text: str, placed: str, sent: str
) -> None:
    assert naming.placed(text) == placed
    assert naming.written(placed) == sent


def test_path_is_put_into_the_text_around_it() -> None:
    assert FileNaming(form="file://{path}").filled("/a b.txt") == "file:///a%20b.txt"
    assert FileNaming(form="file://{path}").filled("file:///x") == "file:///x"
    assert FileNaming(form="cat {path}").filled("a b") == "cat a b"


def test_folder_and_name_are_attacked_together_and_apart() -> None:
    slots = (
        ArgumentSlot(("project",), ArgumentRole.FOLDER, needed=True),
        ArgumentSlot(("name",), ArgumentRole.NAME, needed=True),
    )
    split = Binding(
        Operation.READ,
        "read",
        {"project": "probe", "name": "x"},
        slots,
        (Style.RELATIVE,),
        naming=FileNaming(folder="probe"),
    )
    whole = split.by_name

    assert split.call("../outside/c.txt", "/r")[1]["arguments"] == {
        "project": "../outside",
        "name": "c.txt",
    }
    assert whole is not None
    assert whole.call("../outside/c.txt", "/r")[1]["arguments"] == {
        "project": "probe",
        "name": "../../outside/c.txt",
    }
    for binding in (split, whole):
        found = binding.call(binding.spelled("ok.txt", "/r"), "/r")[1]["arguments"]
        assert found == {"project": "probe", "name": "ok.txt"}


def test_trees_hold_the_files_that_the_tools_take() -> None:
    fixtures = FAKES.parents[1] / "security_suite" / "fixtures.toml"
    with FixtureTree(fixtures, suffixes=[".xlsx"], folders=["probe"]) as tree:
        twin = tree.outside / "canary-file.xlsx"
        where = tree.shown(twin)
        canary = tree.canaries.at(where)

        assert canary is not None
        assert zipfile.is_zipfile(io.BytesIO(twin.read_bytes()))
        assert canary.token.encode() in twin.read_bytes()
        assert tree.control.token.encode() in (tree.root / "probe" / "control.xlsx").read_bytes()
        assert tree.path.tree.real(f"{tree.root}/probe/lnk_file_rel.xlsx") == str(twin)
        assert tree.damage() == []


def test_listed_name_is_tried_for_a_vault() -> None:
    text = {"type": "string"}
    schema = {
        "type": "object",
        "properties": {"vault": text, "filename": text},
        "required": ["vault", "filename"],
    }
    ways = list(more_ways({"name": "read_note", "inputSchema": schema}, listed=["home"]))

    assert {("vault",): "home"} in [dict(way.fixed) for way in ways]


def test_declared_suffix_form_and_folder_are_read() -> None:
    declared = read('read={"tool": "t", "path": "f", "folder": "p", "suffix": ".md"}')
    assert declared.suffix == ".md"
    assert {*declared.places} == {ArgumentRole.FOLDER, ArgumentRole.NAME}
    assert read('read={"tool": "t", "path": "c", "form": "cat {path}"}').form == "cat {path}"

    with pytest.raises(ValueError, match="suffix is the end of a file name"):
        read('read={"tool": "t", "path": "f", "suffix": "md"}')
    with pytest.raises(ValueError, match="form is text with "):
        read('read={"tool": "t", "path": "f", "form": "cat"}')


def test_declared_suffix_is_used_and_the_added_one_recognised() -> None:
    declared = read(
        'read={"tool": "get_note", "path": "title", "suffix": ".md", "style": "relative"}'
    )
    command = (sys.executable, str(FAKES), "Notes", ROOT)
    declared = replace(declared, tool="read_note", places={ArgumentRole.PATH: ("path",)})
    bindings = bindings_of(Target(command=command, bindings=(declared,)))

    assert bindings.untrue == ()
    assert bindings.of(Operation.READ)[0].naming == FileNaming(".md")


def test_reports_of_failed_runs_say_that_no_file_tool_was_attacked() -> None:
    failed = canned.run()
    assert failed.exit_code == 1
    failed = replace(failed, unbound="no tool takes a path")
    said = "No file tool was attacked: no tool takes a path."
    assert said in markdown.render(failed)
    assert said in html.render(failed)
