"""The tap in a client's file: only its own words change, and they go without a trace."""

import json
from pathlib import Path

import pytest

from mcp_touchstone.cli import main
from mcp_touchstone.config.client_wrap import unwrapped, wrapped
from mcp_touchstone.config.settings import ConfigError

REPORT = Path("/recordings")
FILE = """{
  // the servers of this workspace
  "mcpServers": {
    "time":   {"command": "uvx", "args": ["mcp-server-time", "--local"], "env": {"K": "v"}},
    "plain": { "command" : "server" , "cwd": "/x" },
    "none": {"args": [ ], "command": "other"}, /* "fake": {"command": "no"} */
    "remote": {"url": "https://example.org/mcp"},
  },
  "rest": [1,   2]
}
"""


def test_unwrapping_gives_the_same_bytes() -> None:
    new, names = wrapped(FILE, "f", None, REPORT)

    assert names == ["time", "plain", "none"]
    assert new != FILE
    assert unwrapped(new, "f", None) == (FILE, names)


def test_only_one_server_can_be_wrapped() -> None:
    new, names = wrapped(FILE, "f", "plain", REPORT)

    assert names == ["plain"]
    changed = [a for a, b in zip(FILE.splitlines(), new.splitlines(), strict=True) if a != b]
    assert changed == ['    "plain": { "command" : "server" , "cwd": "/x" },']
    assert unwrapped(new, "f", "plain")[0] == FILE


def test_a_wrapped_server_starts_the_tap_before_its_own_command() -> None:
    plain = json.dumps({"servers": {"a b": {"command": "uvx", "args": ["x", "y"]}}})

    server = json.loads(wrapped(plain, "f", None, REPORT)[0])["servers"]["a b"]

    tap = ["-m", "mcp_touchstone", "tap", "--report", "/recordings/a_b", "--", "uvx", "x", "y"]
    assert server["args"] == tap


def test_a_file_that_was_formatted_since_is_unwrapped_too() -> None:
    before = {"mcpServers": {"a": {"command": "uvx", "args": ["x", "y"]}}}
    new = json.dumps(json.loads(wrapped(json.dumps(before), "f", None, REPORT)[0]), indent=8)

    assert json.loads(unwrapped(new, "f", None)[0]) == before


def test_a_server_is_wrapped_once() -> None:
    new, _ = wrapped(FILE, "f", None, REPORT)

    with pytest.raises(ConfigError, match="is not behind the tap yet"):
        wrapped(new, "f", None, REPORT)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"mcpServers": 1}', '{"a": {}}', "{}"])
def test_other_files_are_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        wrapped(text, "f", None, REPORT)


def test_an_unknown_server_is_refused_with_a_hint() -> None:
    with pytest.raises(ConfigError, match="did you mean 'time'"):
        wrapped(FILE, "f", "tim", REPORT)


def test_the_command_line_edits_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / ".mcp.json"
    file.write_bytes(FILE.replace("\n", "\r\n").encode())
    before = file.read_bytes()

    assert main(["tap", "--wrap", str(file), "time", "--report", str(tmp_path)]) == 0
    assert b'"mcp_touchstone"' in file.read_bytes()
    assert main(["tap", "--unwrap", str(file)]) == 0

    assert file.read_bytes() == before
    assert "time: recorded in" in capsys.readouterr().out
