"""Configurations: keys, file discovery, and the settings they result in."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from mcp_touchstone.bindings import declared
from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.config.client_files import ConfiguredServer, Surroundings
from mcp_touchstone.config.client_files import read as source
from mcp_touchstone.config.files import ReadOptions, TargetConfig, find, may_write, write
from mcp_touchstone.config.parser import parse
from mcp_touchstone.config.settings import FIELDS, ConfigError, Settings, field_of, layer, merged
from mcp_touchstone.config.toml_keys import KEYS, OTHERS, Table, choose, command, read
from mcp_touchstone.config.toml_keys import layer as layer_of
from mcp_touchstone.target.promises import PromiseTerms
from tests.cases import cases

EVERYTHING = """
command = ["node", "dist/index.js", "{root}"]
env = { MODE = "test" }
cwd = "{root}"
url = "http://127.0.0.1:{port}/mcp"
header = { X-Key = "env:KEY" }
issuer = "mock"
scope = "read"
token-command = "print-token"
other-token-command = "print-token other"
ca-file = "ca.pem"
intrusive = true
rate = 3
sdk = "mcp 1.30.0"
timeout = 30
call = { echo = { text = "a" }, list = true }
prompt = { greet = { name = "x" } }
bindings = { read = { tool = "get", path = "name" } }
resource = "note:///1"
root-from = "seed"
world = "roots"
root-size = 64
offline = true
sandbox = "auto"
online = true
accept-unbound = true
attack-commands = true
deadline = 60
promise = ["deny-list"]
suite = "all"
for = ["vscode,cursor", "claude"]
select = ["ping", "tools"]
attacks = ["deep"]
revision = ["2025-11-25"]
level = "MUST"
advisories = true
strict = true
quick = true
fail-on = ["should", "high"]
baseline = "known.toml"
budget = "budgets.toml"
jobs = 4
examples = 0
seed = 7
"""


def table(text: str) -> Table:
    return choose(read(tomllib.loads(text), "t.toml"), None, "t.toml")[1]


def toml_settings(text: str) -> Settings:
    return merged(layer_of(table(text), "t.toml"))


def options_settings(*words: str) -> Settings:
    return merged(layer(vars(parse(["check", *words]).options)))


SAME = (
    "--env=MODE=test",
    "--cwd={root}",
    "--url=http://127.0.0.1:{port}/mcp",
    "--header=X-Key=env:KEY",
    "--issuer=mock",
    "--scope=read",
    "--token-command=print-token",
    "--other-token-command=print-token other",
    "--ca-file=ca.pem",
    "--intrusive",
    "--rate=3",
    "--sdk=mcp 1.30.0",
    "--timeout=30",
    '--call=echo={"text": "a"}',
    "--call=list",
    '--prompt=greet={"name": "x"}',
    '--bindings=read={"tool": "get", "path": "name"}',
    "--resource=note:///1",
    "--root-from=seed",
    "--world=roots",
    "--root-size=64",
    "--offline",
    "--sandbox=auto",
    "--online",
    "--accept-unbound",
    "--attack-commands",
    "--deadline=60",
    "--promise=deny-list",
    "--suite=all",
    "--for=vscode,cursor",
    "--for=claude",
    "--select=ping",
    "--select=tools",
    "--attacks=deep",
    "--revision=2025-11-25",
    "--level=MUST",
    "--advisories",
    "--strict",
    "--quick",
    "--fail-on=should",
    "--fail-on=high",
    "--baseline=known.toml",
    "--budget=budgets.toml",
    "--jobs=4",
    "--examples=0",
    "--seed=7",
)
"""What EVERYTHING says, as options."""


SIDES = (("client",), ("gateway",))


def test_file_and_options_give_the_same_settings() -> None:
    of_clients = {*OTHERS, *(key for key, row in KEYS.items() if row.commands in SIDES)}
    assert {*table(EVERYTHING)} == {*KEYS} - {"from", "server"} - of_clients
    assert toml_settings(EVERYTHING) == options_settings(*SAME)
    assert command(table(EVERYTHING)) == ("node", "dist/index.js", "{root}")


def test_settings_are_converted_and_immutable() -> None:
    found = toml_settings(EVERYTHING)

    assert found.call == (("echo", {"text": "a"}), ("list", None))
    assert found.bindings == (declared.read('read={"tool": "get", "path": "name"}'),)
    assert found.promise == {"deny-list": PromiseTerms()}
    assert (found.baseline, found.root_from) == (Path("known.toml"), Path("seed"))
    assert (found.timeout, found.jobs, found.examples) == (30.0, 4, 0)
    with pytest.raises(AttributeError):
        found.jobs = 5  # type: ignore[misc]


def test_every_key_is_a_settings_field() -> None:
    assert {*map(field_of, KEYS)} - {"from", "server"} <= FIELDS


def test_tool_can_have_several_argument_sets() -> None:
    found = toml_settings("command = 'x'\ncall = { a = [{ b = 1 }, { b = 2 }] }\n")

    assert found.call == (("a", {"b": 1}), ("a", {"b": 2}))


def test_command_string_is_split_like_a_shell_command() -> None:
    assert command(table("command = \"python -m 'my server'\"")) == ("python", "-m", "my server")


def test_options_replace_values_and_extend_tables() -> None:
    file = {
        "timeout": 9.0,
        "select": ("ping",),
        "env": {"A": "1", "B": "1"},
        "call": (("a", None),),
    }

    found = merged(file, {"select": ("tools",), "env": {"B": "2"}, "call": (("b", None),)})

    assert (found.timeout, found.select) == (9.0, ("tools",))
    assert found.env == {"A": "1", "B": "2"}
    assert found.call == (("a", None), ("b", None))


def test_targets_inherit_top_level_keys() -> None:
    text = """
    timeout = 9
    env = { A = "1", B = "1" }
    call = { x = true }
    command = "shared"
    [targets.one]
    command = "one"
    env = { B = "2" }
    [targets.two]
    timeout = 5
    call = { y = { z = 1 } }
    [targets.three]
    from = ".mcp.json"
    """
    found = read(tomllib.loads(text), "t.toml")

    assert choose(found, "one", "")[1] == {
        "timeout": 9,
        "env": {"A": "1", "B": "2"},
        "call": {"x": True},
        "command": "one",
    }
    assert found["two"]["command"] == "shared"
    assert found["two"]["call"] == {"x": True, "y": {"z": 1}}
    assert "command" not in found["three"]


MISTAKES = (
    *('comand = "x"', 'revisions = ["x"]', 'fail_on = "must"', "calls = {}", 'args = ["x"]'),
    *("timeout = '5'", "strict = 1", "env = { A = 1 }", "env = 'A=1'"),
    *("call = ['x']", "[call]\nx = true\ntimeout = 9", "call = { x = [] }", "call = { x = 3 }"),
    *("command = []", "command = 'x'\nfrom = 'y'", "targets = 3", "[targets]\none = 3"),
    "[targets.one]\ncomand = 'x'",
)


def test_unknown_key_or_invalid_value_is_refused_with_a_hint(golden: SnapshotAssertion) -> None:
    said = []
    for text in MISTAKES:
        with pytest.raises(ConfigError) as caught:
            read(tomllib.loads(text), "t.toml")
        said.append(str(caught.value))

    assert "\n".join(said) == golden


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configured(
    config: str | None = None, target: str | None = None, **more: Any
) -> TargetConfig | None:
    path = None if config is None else Path(config)
    return find(ReadOptions(path, target, more.pop("environment", {}), **more))


def test_no_configuration_is_found_in_an_unconfigured_folder(here: Path) -> None:
    (here / "pyproject.toml").write_text("[tool.other]\n")

    assert configured() is None


@cases(("touchstone.toml", ""), ("pyproject.toml", "[tool.mcp-touchstone]\n"))
def test_configuration_in_the_working_directory_is_found(here: Path, name: str, head: str) -> None:
    (here / name).write_text(f"{head}command = 'x'\ncwd = 'sub'\nbaseline = 'b.toml'\n")

    found = configured()

    assert found is not None
    assert (found.path, found.layer["command"]) == (Path(name), ("x",))
    assert found.layer["cwd"] == str(here / "sub")
    assert found.layer["baseline"] == Path("b.toml")
    assert found.layer["usual_baseline"] == Path("touchstone-baseline.toml")


def test_paths_are_relative_to_the_configuration_file(here: Path) -> None:
    other = here / "other"
    other.mkdir()
    (other / "server").write_text("")
    (other / "t.toml").write_text("command = './server'\nbaseline = 'b.toml'\nroot-from = 'seed'\n")

    found = configured("other/t.toml")

    assert found is not None
    assert found.layer == {
        "name": "",
        "configuration": Path("other/t.toml"),
        "command": (str(other / "./server"),),
        "cwd": str(other),
        "baseline": other / "b.toml",
        "root_from": other / "seed",
        "usual_baseline": other / "touchstone-baseline.toml",
    }
    assert found.words == ("--config", "other/t.toml")


def test_each_target_has_its_own_default_baseline(here: Path) -> None:
    (here / "touchstone.toml").write_text("command = 'x'\n[targets.one]\n[targets.two]\n")

    found = configured(target="two")

    assert found is not None
    assert found.layer["usual_baseline"] == Path("touchstone-baseline-two.toml")


def test_target_reads_its_command_from_a_client_file(here: Path) -> None:
    entry = {"command": "x", "args": ["${T}"], "env": {"K": "${NO}", "L": "1"}}
    (here / ".mcp.json").write_text(servers(a=entry))
    (here / "touchstone.toml").write_text(
        "from = '.mcp.json'\nserver = 'a'\nenv = { K = 'k' }\ntimeout = 3\n"
    )

    found = configured(environment={"T": "t"})

    assert found is not None
    assert found.layer["command"] == ("x", "t")
    assert found.layer["env"] == {"K": "k", "L": "1"}


def test_folder_or_invalid_utf8_is_refused(here: Path) -> None:
    (here / "a.toml").mkdir()
    (here / "b.toml").write_bytes(b"\xff")

    with pytest.raises(InputError, match="it is a folder"):
        configured("a.toml")
    with pytest.raises(InputError, match="not UTF-8"):
        configured("b.toml")


def test_existing_file_is_replaced_only_with_force(here: Path) -> None:
    path = Path("touchstone.toml")
    may_write(path, force=False)
    write(path, "command = 'x'\n")

    with pytest.raises(ConfigError, match="--force replaces it"):
        may_write(path, force=False)
    may_write(path, force=True)
    with pytest.raises(ConfigError, match="make it first"):
        may_write(Path("no/x.toml"), force=False)
    with pytest.raises(ConfigError, match="cannot be written"):
        write(here, "")
    path.unlink()
    (here / "pyproject.toml").write_text("[tool.mcp-touchstone]\n")
    with pytest.raises(ConfigError, match="change it there"):
        may_write(path, force=False)


AROUND = Surroundings(Path("/w/space"), Path("/home/me"), {"TOKEN": "t", "EMPTY": ""})


def servers(kind: str = "mcpServers", **entries: Any) -> str:
    return json.dumps({kind: entries})


@pytest.mark.parametrize("kind", ["mcpServers", "servers"])
def test_only_server_of_a_client_file_is_used(kind: str) -> None:
    text = servers(kind, a={"command": "x", "args": ["y"], "env": {"A": "1"}, "cwd": "/z"})

    assert source(text, None, "f", AROUND) == ConfiguredServer(("x", "y"), {"A": "1"}, "/z")


def test_vs_code_file_may_contain_comments_and_trailing_commas() -> None:
    text = """{
      // ours
      "inputs": [],
      "servers": { "a": { "type": "stdio", "command": "http://x", /* not a // comment */
        "args": ["a,]", "b",], }, },
    }"""

    assert source(text, "a", "f", AROUND).command == ("http://x", "a,]", "b")


def test_servers_are_found_in_vs_code_settings() -> None:
    text = json.dumps({"mcp": {"servers": {"a": {"command": "x"}}}})

    assert source(text, "a", "f", AROUND).command == ("x",)


@cases(
    ("${workspaceFolder}/x", "/w/space/x"),
    ("${workspaceFolderBasename}", "space"),
    ("${userHome}", "/home/me"),
    ("${env:TOKEN}", "t"),
    ("${env:NONE}", ""),
    ("${TOKEN}-${EMPTY}", "t-"),
    ("${NONE:-else}", "else"),
    ("${TOKEN:-else}", "t"),
    ("$HOME {root}", "$HOME {root}"),
)
def test_client_file_variables_are_substituted(text: str, filled: str) -> None:
    made = source(servers(a={"command": "x", "args": [text]}), "a", "f", AROUND)

    assert made.command == ("x", filled)


def test_input_variable_given_by_the_user_is_not_needed() -> None:
    around = Surroundings(Path("/w"), Path("/h"), {}, {"KEY"})
    text = servers("servers", a={"command": "x", "env": {"KEY": "${input:key}"}})

    assert source(text, "a", "f", around).env == {}


UNUSABLE: list[tuple[str, str | None]] = [
    ("[]", None),
    (servers(), None),
    (servers(a={}, b={}), None),
    (servers(alpha={}), "alhpa"),
    (servers(a=3), "a"),
    (servers(a={}), "a"),
    (servers(a={"type": "http"}), "a"),
    (servers(a={"type": "sse", "command": "x"}), "a"),
    (servers(a={"command": "x", "args": "y"}), "a"),
    (servers(a={"command": "x", "env": [1]}), "a"),
    (servers(a={"command": "x", "envFile": ".env"}), "a"),
    (servers("servers", a={"command": "x", "env": {"K": "${input:key}"}}), "a"),
    (servers("servers", a={"command": "x", "args": ["${input:key}"]}), "a"),
    (servers(a={"command": "x", "env": {"K": "${NO}"}}), "a"),
    (servers(a={"command": "${config:x}"}), "a"),
]


def test_unusable_client_file_entry_is_refused(golden: SnapshotAssertion) -> None:
    said = []
    for text, name in UNUSABLE:
        with pytest.raises(ConfigError) as caught:
            source(text, name, "f", AROUND)
        said.append(str(caught.value))

    assert "\n".join(said) == golden
    assert source(servers(a={"command": "x", "env": []}), "a", "f", AROUND).env == {}
    with pytest.raises(InputError, match=r"^f:1:2: invalid JSON"):
        source("{", None, "f", AROUND)


def test_workspace_folder_is_the_parent_of_dot_vscode(here: Path) -> None:
    (here / ".vscode").mkdir()
    text = servers("servers", a={"command": "${workspaceFolder}/run"})
    (here / ".vscode" / "mcp.json").write_text(text)

    found = configured(".vscode/mcp.json")

    assert found is not None
    assert found.layer["command"] == (f"{here}/run",)
    assert found.layer["env"] == {}
    assert "cwd" not in found.layer
    assert found.layer["usual_baseline"] == Path("touchstone-baseline.toml")
