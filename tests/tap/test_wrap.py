"""The tap in a client's file: only its own words change, and they go without a trace."""

import errno
import json
import os
import sys
from pathlib import Path

import pytest

from mcp_touchstone.catalog.errors import UserError
from mcp_touchstone.cli import main
from mcp_touchstone.config.client_wrap import unwrapped, wrapped
from mcp_touchstone.config.settings import ConfigError
from mcp_touchstone.runtime import own_file

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

    tap = ["-m", "mcp_touchstone", "tap", "--report"]
    assert server["args"][:4] == tap
    assert server["args"][4].startswith("/recordings/a_b.")
    assert server["args"][5:] == ["--", "uvx", "x", "y"]


def test_a_file_that_was_formatted_since_is_unwrapped_too() -> None:
    before = {"mcpServers": {"a": {"command": "uvx", "args": ["x", "y"]}}}
    new = json.dumps(json.loads(wrapped(json.dumps(before), "f", None, REPORT)[0]), indent=8)

    assert json.loads(unwrapped(new, "f", None)[0]) == before


def test_a_server_is_wrapped_once() -> None:
    new, _ = wrapped(FILE, "f", None, REPORT)

    with pytest.raises(ConfigError, match="time, plain, none: behind the tap already"):
        wrapped(new, "f", None, REPORT)


JSON = (
    '{"mcpServers":{"é":{"command":"/home/josé/bin/x"},"w":{"command":"C:\\/a", "args":[ ]}}}',
    '{"mcpServers":{"v":{"args":[ "\\u00e9" , // c\n "b",],"command":"\\u0078\\ud83d\\ude00"}}}',
    (
        '{"projects":{"/p":{"mcpServers":{"a":{"command":"n","args":[]}}},"/q":{"mcpServers":'
        '{"a":{"command":"n"}}}},"mcpServers":{"a":{"command":"n"}}}'
    ),
    (
        '// z\n{"context_servers":{"old":{"command":{"path":"p","args":["q"],"env":null}},\n'
        '"new":{"source":"custom","command":"c", /* d */ "args":["a"]}}}'
    ),
    '{"mcp":{"x":{"type":"local","command":["bun", "x",\n "y"],},"r":{"url":"u"}}}',
    '{"mcp":{"servers":{"x":{"command":["bun"]},"y":{"command":"z"}}}}',
    '\t{"servers"\r\n:{"a":{"command":"1","args":[/* none */]}}}\r\n',
)
TOML = (
    '[mcp_servers.a]\ncommand = \'C:\\x\' # d\n  args = [ # e\n \'-y\', "q", """m\nl""",]\n',
    '[mcp_servers."b c"]\r\ncommand = """x"""\r\nenv = {A="1"}\r\n',
    'model = "x"\n[mcp_servers]\nz = { command = "q" , args = [] }\ny = {command = "q"}\n',
    '[[o]]\na=1\n[[o]]\nb=1979-05-27 07:32:00\n[mcp_servers.é]\n  command = "é"'.replace(
        "é]", '"é"]'
    ),
    "mcp_servers.a.command = 'x'\nmcp_servers.a.args = ['y']\n",
)
YAML = (
    'extensions:\n  a:\n    cmd: npx   # c\n    args:\n      - -y\n      - "q r"\n',
    "extensions:\n  b: {cmd: uvx, args: [x, y]}\n  c: {cmd: uvx}\n",
    "extensions:\n  c:\n    cmd: 'it''s'\n    args: [-y @mod]\n    type: stdio\n",
    "# g\nextensions:\n  d:\n    type: builtin\n  e:\n    cmd: z\n",
    'extensions:\n  f:\n    args:\n    - p\n    cmd: "\\u0078"\n    envs: {}\n',
)
CLIENTS = [
    *(("f.json", text) for text in JSON),
    *(("config.toml", text) for text in TOML),
    *(("config.yaml", text) for text in YAML),
]


@pytest.mark.parametrize(("where", "text"), CLIENTS)
def test_the_files_of_all_clients_have_the_same_text_again(where: str, text: str) -> None:
    new, names = wrapped(text, where, None, REPORT)

    assert new.count('"mcp_touchstone"') == len(names) > 0
    assert unwrapped(new, where, None) == (text, names)


def test_no_two_servers_share_a_folder() -> None:
    names = ["a b", "a_b", "a.b", "A_b", "a-b", "A B", "é", "è", "con", "..", "", "a" * 300]
    names += ["x/y", "x.y", "a_b.b133bc676fd3fed0"]
    servers = {name: {"command": "x"} for name in names}
    text = json.dumps(
        {
            "mcpServers": servers,
            "projects": {path: {"mcpServers": servers} for path in ("/p", "/P")},
            "servers": servers,
        }
    )

    document = json.loads(wrapped(text, "f", None, REPORT)[0])

    tables = [document, *document["projects"].values()]
    found = [one["args"][4] for table in tables for one in table["mcpServers"].values()]
    found += [one["args"][4] for one in document["servers"].values()]
    assert len({word.lower() for word in found}) == len(found) == 4 * len(names)
    assert all(Path(word).parent == REPORT for word in found)


@pytest.mark.parametrize(
    "server",
    [
        '{"command":"x","args":null}',
        '{"command":"x","args":"foo"}',
        '{"command":"x","args":5}',
        '{"command":"x","args":{"b":1}}',
        '{"command":"x","args":[1]}',
        '{"command":null}',
        '{"command":[]}',
        '{"command":["x",2]}',
    ],
)
def test_a_command_of_another_type_is_refused(server: str) -> None:
    text = f'{{"mcpServers":{{"good":{{"command":"x"}},"bad":{server}}}}}'

    with pytest.raises(ConfigError, match=r"f: bad: .*nothing was changed"):
        wrapped(text, "f", None, REPORT)
    assert wrapped(text, "f", "good", REPORT)[1] == ["good"]


def test_what_cannot_be_restored_is_not_edited() -> None:
    for where, text in (
        ("f.yaml", "extensions:\n  a:\n    cmd: >\n      x\n      y\n    args: [z]\n"),
        ("f.yaml", "x: &x npx\nextensions:\n  a:\n    cmd: *x\n    args: [z]\n"),
        ("f.toml", "[mcp_servers]\nx.command = 'y'\n"),
    ):
        with pytest.raises(ConfigError, match="write this before the command"):
            wrapped(text, where, None, REPORT)


@pytest.mark.parametrize("where", ["f.json", "f.toml", "f.yaml"])
def test_an_unknown_file_names_the_known_clients_and_what_to_write(where: str) -> None:
    with pytest.raises(ConfigError, match="Zed, Codex, Goose; write this "):
        wrapped({"f.json": "{}", "f.toml": "", "f.yaml": "a: b"}[where], where, None, REPORT)


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("f.json", '{"mcpServers":' + "[" * 100_000),
        ("f.json", '{"mcpServers":' + '{"a":' * 100_000),
        ("f.toml", "a = " + "[" * 100_000),
        ("f.yaml", "extensions: " + "[" * 100_000),
        ("f.yaml", "extensions: " + "- " * 20_000),
        ("f.json", '{"mcpServers":{"a":{"command":"x"}}} {}'),
        ("f.json", '{"mcpServers":{"a" {"command":"x"}}}'),
        ("f.json", '{"mcpServers":{1:{"command":"x"}}}'),
        ("f.json", "/*" * 200_000),
        ("f.toml", "[mcp_servers.a\n"),
        ("f.yaml", "a: ]"),
        ("f.yaml", "a: 1\n---\nb: 2"),
    ],
)
def test_a_malformed_file_is_refused(where: str, text: str) -> None:
    with pytest.raises(UserError, match=r"f\.(json|toml|yaml)"):
        wrapped(text, where, None, REPORT)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"mcpServers": 1}', '{"a": {}}', "{}"])
def test_other_files_are_refused(text: str) -> None:
    with pytest.raises(UserError):
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


def test_a_link_stays_and_its_target_keeps_mode_and_mark(tmp_path: Path) -> None:
    target, link = tmp_path / "dotfiles" / "mcp.json", tmp_path / ".mcp.json"
    target.parent.mkdir()
    link.symlink_to(target)
    before = b"\xef\xbb\xbf" + FILE.encode()
    target.write_bytes(before)
    target.chmod(0o640)

    assert main(["tap", "--wrap", str(link)]) == 0

    assert link.is_symlink()
    assert target.read_bytes().startswith(b"\xef\xbb\xbf{")
    assert target.stat().st_mode & 0o777 == 0o640
    assert main(["tap", "--unwrap", str(link)]) == 0
    assert target.read_bytes() == before
    assert sorted(tmp_path.rglob("*")) == [link, target.parent, target]


@pytest.mark.skipif(sys.platform == "win32", reason="no such files")
def test_what_is_no_single_regular_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, pipe = tmp_path / "a.json", tmp_path / "pipe"
    file.write_text(FILE)
    (tmp_path / "other").hardlink_to(file)
    os.mkfifo(pipe)

    for path in (file, pipe, tmp_path, tmp_path / "none"):
        assert main(["tap", "--wrap", str(path)]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert file.read_text() == FILE


def test_the_file_is_as_it_was_if_the_new_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.json"
    file.write_text(FILE)

    def full(_number: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)

    assert main(["tap", "--wrap", str(file)]) == 2
    assert f"{file}: not changed: No space left" in capsys.readouterr().err
    assert [*tmp_path.iterdir()] == [file]
    assert file.read_text() == FILE


def test_a_file_that_another_program_changed_meanwhile_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b"newer")

    with pytest.raises(OSError, match="another program changed it"):
        own_file.replace(file, b"old", b"new")
    assert file.read_bytes() == b"newer"
