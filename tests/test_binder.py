"""Which tool does what is found by calling it, whatever its name and its description say."""

import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.arguments import Places
from mcp_touchstone.attack.bindings import Binding, Operation, Style
from mcp_touchstone.attack.slots import Role, assemble, slots
from mcp_touchstone.attack.ways import ways
from mcp_touchstone.gate import survey
from mcp_touchstone.target import ROOT, Target, reference

FAKES = Path(__file__).parent / "fakes"
STRING = {"type": "string"}


def schema(*needed: str, **optional: Any) -> dict[str, Any]:
    properties = dict.fromkeys(needed, STRING) | optional
    return {"type": "object", "properties": properties, "required": list(needed)}


def roles(found: dict[str, Any]) -> dict[str, Role]:
    return {"/".join(map(str, slot.pointer)): slot.role for slot in slots(found)}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (schema("path"), {"path": Role.PATH}),
        (schema("file_path", "content"), {"file_path": Role.PATH, "content": Role.CONTENT}),
        (schema("source", "destination"), {"source": Role.FROM, "destination": Role.TO}),
        (schema("path", cwd=STRING), {"path": Role.PATH, "cwd": Role.BASE}),
        (schema("repo_path"), {"repo_path": Role.PATH}),
        (schema(paths={"type": "array", "items": STRING}), {"paths/0": Role.PATH}),
        (
            schema("path", edits={"type": "array", "items": schema("oldText", "newText")}),
            {"path": Role.PATH, "edits/0/oldText": Role.OLD, "edits/0/newText": Role.NEW},
        ),
        (schema("path", "insert_text"), {"path": Role.PATH, "insert_text": Role.CONTENT}),
        (schema("name"), {}),
        (schema(where={"type": "string", "description": "Path of the note"}), {"where": Role.PATH}),
    ],
)
def test_roles_are_read_from_names_and_descriptions(
    given: dict[str, Any], expected: dict[str, Role]
) -> None:
    assert roles(given) == expected


def test_arguments_are_put_where_they_belong_however_deep() -> None:
    files = {"type": "array", "items": schema("file_path", ranges={"type": "array"})}
    given = {"type": "object", "properties": {"files": files}, "required": ["files"]}
    pointer = slots(given)[0].pointer

    made = assemble(given, {pointer: "a.txt"}, Places())

    assert made["files"][0]["file_path"] == "a.txt"


def bound(target: Target) -> dict[Operation, set[str]]:
    dossier, _ = survey(target)
    assert dossier.bindings is not None
    found: dict[Operation, set[str]] = {}
    for binding in dossier.bindings.found:
        found.setdefault(binding.operation, set()).add(binding.tool or binding.uri)
    return found


def fake(name: str) -> Target:
    return Target(command=(sys.executable, str(FAKES), name, ROOT))


def test_the_tools_of_a_server_are_bound_by_what_they_do() -> None:
    assert bound(fake("Resolves")) == {
        Operation.READ: {"read_file"},
        Operation.LIST: {"list_directory"},
        Operation.CREATE: {"write_file"},
        Operation.WRITE: {"write_file"},
        Operation.EDIT: {"edit_file"},
        Operation.MKDIR: {"make_directory"},
        Operation.MOVE: {"move_file"},
    }


def test_the_reference_server_is_bound_without_a_word_of_configuration() -> None:
    found = bound(reference())

    assert found[Operation.READ] >= {"file.read", "file.read_range", "text_editor", "workspace:///"}
    assert found[Operation.EDIT] >= {"file.apply_patch_only", "text_editor"}
    assert found[Operation.CREATE] == {"text_editor"}
    assert Operation.COMPLETE in found


def test_patterns_searches_and_scripts_are_bound_by_what_came_of_them() -> None:
    found = bound(fake("Walks"))
    assert found[Operation.GLOB] == {"find_files"}
    assert found[Operation.SEARCH] == {"search_text"}

    assert bound(fake("Carries"))[Operation.SCRIPT] == {"apply_script"}
    assert Operation.COMPLETE in bound(fake("Completes"))


def test_a_repository_is_what_git_tools_list() -> None:
    assert bound(fake("Keeper")) == {
        Operation.LIST: {"git_log"},
        Operation.MKDIR: {"git_init"},
        Operation.STAGE: {"git_add"},
    }


def test_a_replacement_that_may_be_left_out_is_given() -> None:
    edit = {"name": "str_replace", "inputSchema": schema("path", "old_str", new_str=STRING)}

    assert {Role.PATH, Role.OLD, Role.NEW} in [way.roles for way in ways(edit)]


def test_tools_that_hide_their_arguments_are_guessed_by_name() -> None:
    (first, *_) = ways({"name": "read_notes", "inputSchema": {"$ref": "#/definitions/any"}})

    assert [slot.pointer for slot in first.slots] == [("paths", 0)]


def test_nothing_is_called_that_was_not_given_a_root() -> None:
    dossier, _ = survey(Target(command=(sys.executable, str(FAKES), "Resolves", ".")))

    assert dossier.bindings is not None
    assert dossier.bindings.found == ()
    assert dossier.bindings.calls == 0
    assert "{root}" in dossier.bindings.why


def test_a_way_to_write_paths_is_found_too() -> None:
    dossier, _ = survey(fake("RefusesAbsolute"))

    assert dossier.bindings is not None
    styles = {binding.styles for binding in dossier.bindings.found}
    assert styles == {(Style.RELATIVE,)}


def test_a_path_is_spelled_as_the_binding_takes_it() -> None:
    only_absolute = Binding(Operation.READ, "read", styles=(Style.ABSOLUTE,))

    assert only_absolute.spelled("../x", "/r") == "/r/../x"
    assert only_absolute.spelled("/x", "/r") == "/x"
    assert Binding(Operation.READ, "read", styles=(Style.RELATIVE,)).spelled("../x", "/r") == "../x"
