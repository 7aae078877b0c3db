"""Commands in the arguments of tools, and sizes and times in answers."""

from datetime import UTC, datetime
from typing import Any

from mcp_touchstone.bindings.argument_roles import ArgumentRole, ArgumentSlot
from mcp_touchstone.bindings.command_line import filled, folder_slots, split, ways_to_run
from mcp_touchstone.security.file_facts import FileFacts, unique
from tests.cases import cases

TEXT = {"type": "string"}
TEXTS = {"type": "array", "items": TEXT}

NESTED = {("steps", 0, "cmd"): "grep", ("steps", 0, "args"): ["a b", "x"]}


def ways(name: str, *needed: str, **properties: Any) -> list[tuple[ArgumentSlot, ...]]:
    schema = {"type": "object", "properties": properties, "required": list(needed)}
    return list(ways_to_run({"name": name, "inputSchema": schema}))


@cases(
    ({"command": TEXT}, {("command",): "grep 'a b' x"}),
    ({"command": TEXTS}, {("command",): ["grep", "a b", "x"]}),
    ({"command_line": TEXT, "cwd": TEXT}, {("command_line",): "grep 'a b' x"}),
    ({"command": TEXT, "args": TEXTS}, {("command",): "grep", ("args",): ["a b", "x"]}),
    ({"program": TEXT, "args": TEXT}, {("program",): "grep", ("args",): "'a b' x"}),
    ({"steps": {"type": "array", "items": {"properties": {"cmd": TEXT, "args": TEXTS}}}}, NESTED),
    ({"argv": {"type": ["array", "null"], "items": TEXT}}, {("argv",): ["grep", "a b", "x"]}),
)
def test_command_is_written_into_the_arguments_for_it(
    properties: dict[str, Any], arguments: dict[Any, Any]
) -> None:
    assert filled(ways("tool", **properties)[0], "grep 'a b' x") == arguments


def test_tool_named_after_running_takes_the_command_in_any_required_text() -> None:
    (way,) = ways("run_terminal", "input", "cwd", input=TEXT, cwd=TEXT, note=TEXT)

    assert [slot.pointer for slot in way] == [("input",)]
    assert ways("read_notes", "input", input=TEXT) == []
    assert ways("edit", "command", command={**TEXT, "enum": ["view", "create"]}) == []


def test_other_path_arguments_name_the_folder_of_a_command() -> None:
    command = ArgumentSlot(("command",), ArgumentRole.COMMAND, needed=True)
    properties = {"command": TEXT, "working_dir": TEXT, "timeout": {"type": "integer"}}

    found = folder_slots({"type": "object", "properties": properties}, (command,))

    assert [(slot.pointer, slot.role) for slot in found] == [(("working_dir",), ArgumentRole.BASE)]


def test_new_lines_and_open_quotes_of_a_command_are_kept() -> None:
    assert split("cat a\ntouch b") == ["cat", "a\ntouch", "b"]
    assert split("cat 'a b") == ["cat", "'a", "b"]


NOON = int(datetime(1984, 3, 2, 12, tzinfo=UTC).timestamp())


@cases(
    ("size: 61234", "size"),
    ("61,234 bytes", "size"),
    ("59.8 KB", "size"),
    ("59.80 KiB", "size"),
    ("61.2 kB", "size"),
    (f'"mtime": {NOON}', "time"),
    (f'"mtimeMs": {NOON}000', "time"),
    (f'"mtime": {NOON}.0', "time"),
    ("1984-03-02T12:00:00Z", "time"),
    ("Mar 02 1984", "time"),
    ("3/2/1984, 12:00:00 PM", "time"),
    ("612345", ""),
    ("161234", ""),
    ("0.61234", ""),
    ("159.8 KB", ""),
    ("59.8 seconds", ""),
    ("13/2/1984", ""),
    ("1984-03-20", ""),
)
def test_size_and_time_are_found_in_the_forms_of_servers(text: str, found: str) -> None:
    assert FileFacts(61234, NOON).shown_in(text) == found


def test_facts_of_different_files_have_no_form_in_common() -> None:
    first, second = unique(0), unique(2)

    assert not {*first.sizes, *first.times} & {*second.sizes, *second.times}
