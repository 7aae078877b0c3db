"""Bindings that the user declares: parsed, tried, and reported if untrue."""

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.bindings.argument_roles import ArgumentRole
from mcp_touchstone.bindings.binding import Operation, Style
from mcp_touchstone.bindings.declared import read
from mcp_touchstone.config.toml_keys import choose, layer
from mcp_touchstone.config.toml_keys import read as settings
from mcp_touchstone.target.target import ROOT, Target
from tests.cases import cases
from tests.commands import run_here
from tests.fakes.matrix import bindings_of

SERVER = """
import json, pathlib, sys
ROOT = pathlib.Path(sys.argv[1])
TEXT = {"type": "string"}
TOOLS = [
    {"name": "fetch", "inputSchema": {"type": "object", "required": ["key", "as"],
     "properties": {"key": TEXT, "as": {"type": "string"}, "from": TEXT}}},
    {"name": "put", "inputSchema": {"type": "object", "properties": {"items": {"type": "array",
     "items": {"type": "object", "properties": {"key": TEXT, "blob": TEXT}}}}}},
]
def call(name, given):
    if name == "fetch" and "from" in given:
        return (pathlib.Path(given["from"]) / given["key"]).read_text()
    if name == "fetch":
        return (ROOT / given["key"]).read_text() if given["as"] == "plain" else "another format"
    for item in given["items"]:
        (ROOT / item["key"]).write_text(item["blob"])
    return "done"
for line in sys.stdin:
    said = json.loads(line)
    if "id" not in said:
        continue
    result = {"tools": TOOLS}
    if said["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "keys", "version": "1"}}
    if said["method"] == "tools/call":
        try:
            text, failed = call(said["params"]["name"], said["params"]["arguments"]), False
        except Exception as error:
            text, failed = str(error), True
        result = {"content": [{"type": "text", "text": text}], "isError": failed}
    print(json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": result}), flush=True)
"""
"""No name and no description says that these tools touch files."""

FETCH = 'read={"tool": "fetch", "path": "key", "arguments": {"as": "plain"}}'
PUT = """write={"tool": "put", "path": ["items", 0, "key"], "content": ["items", 0, "blob"],
"style": "relative"}"""


@pytest.fixture
def command(tmp_path: Path) -> tuple[str, ...]:
    script = tmp_path / "keys.py"
    script.write_text(textwrap.dedent(SERVER), "utf-8")
    return (sys.executable, "-S", str(script), ROOT)


def test_bindings_option_is_parsed() -> None:
    declared = read(FETCH)

    assert (declared.operation, declared.tool, declared.style) == (Operation.READ, "fetch", None)
    assert declared.places == {ArgumentRole.PATH: ("key",)}
    assert declared.arguments == {"as": "plain"}
    move = read('move={"tool": "mv", "path": "a", "to": "b", "style": "absolute"}')
    assert move.places == {ArgumentRole.FROM: ("a",), ArgumentRole.TO: ("b",)}
    assert move.styles == (Style.ABSOLUTE,)


@cases(
    ("raed={}", "no operation is called 'raed'; did you mean 'read'"),
    ("undo={}", "no operation is called 'undo'"),
    ("read", "write OPERATION="),
    ("read=[]", "write OPERATION="),
    ('read={"tol": "x"}', "read: unknown key 'tol'; did you mean 'tool'"),
    ('read={"tool": "x"}', "read: tool and path are needed"),
    ('read={"path": "x"}', "read: tool and path are needed"),
    ('move={"tool": "x", "path": "a"}', "move: to is missing"),
    ('read={"tool": "x", "path": 3}', "path names an argument, or the way to it"),
    ('read={"tool": "x", "path": "a", "style": "rel"}', "style is relative or absolute"),
    ('read={"tool": "x", "path": "a", "arguments": 1}', "arguments is not a table"),
)
def test_invalid_binding_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read(text)


def test_configuration_tables_declare_bindings() -> None:
    document: dict[str, Any] = {
        "command": "x",
        "bindings": {"read": [{"tool": "a", "path": "p"}, {"tool": "b", "path": "p"}]},
    }
    found = choose(settings(document, "t"), None, "t")[1]

    assert [one.tool for one in layer(found, "t")["bindings"]] == ["a", "b"]


def test_confirmed_user_bindings_are_used_and_untrue_ones_reported(
    command: tuple[str, ...],
) -> None:
    declared = (read(FETCH), read(PUT), read('list={"tool": "fetch", "path": "key"}'))
    target = Target(command=command, bindings=declared)

    bindings = bindings_of(target)

    found = {binding.operation: binding for binding in bindings.found}
    assert found.keys() == {Operation.READ, Operation.WRITE}
    assert found[Operation.READ].styles == (Style.RELATIVE, Style.ABSOLUTE)
    assert found[Operation.WRITE].styles == (Style.RELATIVE,)
    made = found[Operation.WRITE].call("a.txt", "/r", content="x")
    assert made[1]["arguments"] == {"items": [{"key": "a.txt", "blob": "x"}]}
    (untrue,) = bindings.untrue
    assert untrue.startswith("list: fetch was called and did not do it")
    assert target.words()[:2] == ["--bindings", FETCH]


def test_root_placeholder_in_fixed_arguments_is_replaced(command: tuple[str, ...]) -> None:
    said = 'read={"tool": "fetch", "path": "key", "arguments": {"as": "plain", "from": "{root}"}}'

    (found,) = bindings_of(Target(command=command, bindings=(read(said),))).of(Operation.READ)
    assert found.call("a.txt", "/r")[1]["arguments"]["from"] == "/r"


def test_binding_to_an_unknown_tool_prints_one_line_and_exits_2(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    text = f"suite = 'security'\ncommand = {json.dumps(command)}\n"
    text += "[bindings.read]\ntool = 'fech'\npath = 'key'\n"
    (tmp_path / "touchstone.toml").write_text(text, "utf-8")

    done = run_here("check", "-q", cwd=tmp_path)

    assert done.returncode == 2, done.stdout
    assert "called 'fech'" in done.stderr
    assert done.stderr.count("\n") == 1
