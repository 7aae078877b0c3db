"""Tools are bound to operations by calling them."""

import sys
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.bindings.argument_roles import ArgumentRole, assemble, slots
from mcp_touchstone.bindings.binding import Binding, Operation, Style
from mcp_touchstone.bindings.call_variants import ways
from mcp_touchstone.samples.from_schema import Places
from mcp_touchstone.target.target import ROOT, Target, reference
from tests.cases import cases
from tests.fakes.matrix import bindings_of

pytestmark = pytest.mark.slow

FAKES = Path(__file__).parents[1] / "fakes"
STRING = {"type": "string"}


def schema(*needed: str, **optional: Any) -> dict[str, Any]:
    properties = dict.fromkeys(needed, STRING) | optional
    return {"type": "object", "properties": properties, "required": list(needed)}


def roles(found: dict[str, Any]) -> dict[str, ArgumentRole]:
    return {"/".join(map(str, slot.pointer)): slot.role for slot in slots(found)}


@cases(
    (schema("path"), {"path": ArgumentRole.PATH}),
    (
        schema("file_path", "content"),
        {"file_path": ArgumentRole.PATH, "content": ArgumentRole.CONTENT},
    ),
    (
        schema("source", "destination"),
        {"source": ArgumentRole.FROM, "destination": ArgumentRole.TO},
    ),
    (schema("path", cwd=STRING), {"path": ArgumentRole.PATH, "cwd": ArgumentRole.BASE}),
    (schema("repo_path"), {"repo_path": ArgumentRole.PATH}),
    (schema(paths={"type": "array", "items": STRING}), {"paths/0": ArgumentRole.PATH}),
    (
        schema("path", edits={"type": "array", "items": schema("oldText", "newText")}),
        {
            "path": ArgumentRole.PATH,
            "edits/0/oldText": ArgumentRole.OLD,
            "edits/0/newText": ArgumentRole.NEW,
        },
    ),
    (
        schema("path", "insert_text"),
        {"path": ArgumentRole.PATH, "insert_text": ArgumentRole.CONTENT},
    ),
    (schema("name"), {}),
    (
        schema(where={"type": "string", "description": "Path of the note"}),
        {"where": ArgumentRole.PATH},
    ),
)
def test_argument_roles_come_from_names_and_descriptions(
    given: dict[str, Any], expected: dict[str, ArgumentRole]
) -> None:
    assert roles(given) == expected


def test_nested_arguments_are_assembled_at_their_pointer() -> None:
    files = {"type": "array", "items": schema("file_path", ranges={"type": "array"})}
    given = {"type": "object", "properties": {"files": files}, "required": ["files"]}
    pointer = slots(given)[0].pointer

    made = assemble(given, {pointer: "a.txt"}, Places())

    assert made["files"][0]["file_path"] == "a.txt"


def test_arrays_of_arrays_are_assembled_at_their_pointer() -> None:
    rows = {"type": "array", "items": {"type": "array", "items": STRING}}
    given = {"type": "object", "properties": {"rows": rows}, "required": ["rows"]}

    assert assemble(given, {("rows", 0, 0): "a.txt"}, Places())["rows"] == [["a.txt"]]
    assert assemble(given | {"required": []}, {("rows", 0, 0): "a.txt"}, Places())["rows"] == [
        ["a.txt"]
    ]


def bound_tools(target: Target) -> dict[Operation, set[str]]:
    found: dict[Operation, set[str]] = {}
    for binding in bindings_of(target).found:
        found.setdefault(binding.operation, set()).add(binding.tool or binding.uri)
    return found


def fake_target(name: str) -> Target:
    return Target(command=(sys.executable, str(FAKES), name, ROOT))


def test_tools_are_bound_to_operations() -> None:
    assert bound_tools(fake_target("Resolves")) == {
        Operation.READ: {"read_file"},
        Operation.LIST: {"list_directory"},
        Operation.CREATE: {"write_file"},
        Operation.WRITE: {"write_file"},
        Operation.EDIT: {"edit_file"},
        Operation.MKDIR: {"make_directory"},
        Operation.MOVE: {"move_file"},
    }


def test_reference_server_is_bound_without_configuration() -> None:
    found = bound_tools(reference())

    assert found[Operation.READ] >= {"file_read", "file_read_range", "text_editor", "workspace:///"}
    assert found[Operation.EDIT] >= {"file_apply_patch_only", "text_editor"}
    assert found[Operation.CREATE] == {"text_editor"}
    assert Operation.COMPLETE in found


def test_glob_search_script_and_completion_are_bound() -> None:
    found = bound_tools(fake_target("Walks"))
    assert found[Operation.GLOB] == {"find_files"}
    assert found[Operation.SEARCH] == {"search_text"}

    assert bound_tools(fake_target("Carries"))[Operation.SCRIPT] == {"apply_script"}
    assert Operation.COMPLETE in bound_tools(fake_target("Completes"))


def test_git_tools_are_bound_to_operations() -> None:
    assert bound_tools(fake_target("Keeper")) == {
        Operation.LIST: {"git_log"},
        Operation.MKDIR: {"git_init"},
        Operation.STAGE: {"git_add"},
    }


def test_optional_replacement_text_gets_a_value() -> None:
    edit = {"name": "str_replace", "inputSchema": schema("path", "old_str", new_str=STRING)}

    assert {ArgumentRole.PATH, ArgumentRole.OLD, ArgumentRole.NEW} in [
        way.roles for way in ways(edit)
    ]


def test_arguments_of_an_unreadable_schema_are_guessed_from_the_tool_name() -> None:
    (first, *_) = ways({"name": "read_notes", "inputSchema": {"$ref": "#/definitions/any"}})

    assert [slot.pointer for slot in first.slots] == [("paths", 0)]


def test_no_tool_is_called_without_a_root_placeholder() -> None:
    bindings = bindings_of(Target(command=(sys.executable, str(FAKES), "Resolves", ".")))

    assert (bindings.found, bindings.calls) == ((), 0)
    assert "{root}" in bindings.why


def test_accepted_path_style_is_detected() -> None:
    styles = {binding.styles for binding in bindings_of(fake_target("RefusesAbsolute")).found}
    assert styles == {(Style.RELATIVE,)}


def test_path_is_written_in_the_style_of_the_binding() -> None:
    only_absolute = Binding(Operation.READ, "read", styles=(Style.ABSOLUTE,))

    assert only_absolute.spelled("../x", "/r") == "/r/../x"
    assert only_absolute.spelled("/x", "/r") == "/x"
    assert Binding(Operation.READ, "read", styles=(Style.RELATIVE,)).spelled("../x", "/r") == "../x"


def test_only_known_enum_values_are_called_unless_the_tool_is_trusted() -> None:
    values = ["read_file", "kill_all", "terminate", "sync", "list"]
    given = schema("path", action={"type": "string", "enum": values})
    given["required"].append("action")
    tool = {"name": "files", "inputSchema": given}

    assert {way.fixed["action",] for way in ways(tool)} == {"read_file", "list"}
    assert {way.fixed["action",] for way in ways(tool, ("files",))} == {*values}
