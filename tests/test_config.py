"""Configurations: what they may say, where they are found, what they come to on a command line."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone import config
from mcp_touchstone.command_line import Refusing, parser
from mcp_touchstone.config import KEYS, ConfigError, choose, read, takes, words
from mcp_touchstone.config_file import Asked, Found, find, may_write, write
from mcp_touchstone.sources import Source, Surroundings
from mcp_touchstone.sources import read as source

EVERYTHING = """
command = ["node", "dist/index.js", "{root}"]
env = { MODE = "test" }
cwd = "{root}"
timeout = 30
call = { echo = { text = "a" }, list = true }
prompt = { greet = { name = "x" } }
bindings = { read = { tool = "get", path = "name" } }
resource = "note:///1"
root-from = "seed"
offline = true
promise = ["deny-list"]
suite = "all"
select = ["ping", "tools"]
attacks = ["deep"]
revision = ["2025-11-25"]
level = "MUST"
strict = true
quick = true
fail-on = ["should", "high"]
baseline = "known.toml"
jobs = 4
examples = 0
seed = 7
"""


def settings(text: str) -> config.Settings:
    return choose(read(tomllib.loads(text), "t.toml"), None, "t.toml")[1]


def test_every_key_comes_to_words_the_command_line_knows() -> None:
    found = settings(EVERYTHING)
    assert {*found} == {*KEYS} - {"from", "server"}

    options = parser(Refusing).parse_args(["check", *words(found, KEYS)])

    assert options.env == ["MODE=test"]
    assert options.call == ['echo={"text": "a"}', "list"]
    assert options.bindings == ['read={"tool": "get", "path": "name"}']
    assert options.prompt == ['greet={"name": "x"}']
    assert (options.resource, options.promise) == (["note:///1"], ["deny-list"])
    assert (options.cwd, options.timeout, options.suite) == ("{root}", 30.0, "all")
    assert options.attacks == ["deep"]
    assert options.offline is True
    assert (options.select, options.level) == (["ping", "tools"], ["MUST"])
    assert (options.strict, options.quick) == (True, True)
    assert options.fail_on == ["should", "high"]
    assert (options.jobs, options.examples, options.seed) == (4, 0, 7)
    assert options.baseline == Path("known.toml")
    assert config.command(found) == ("node", "dist/index.js", "{root}")


def test_one_tool_may_be_called_in_several_ways() -> None:
    found = settings("command = 'x'\ncall = { a = [{ b = 1 }, { b = 2 }] }\n")

    assert words(found, {"call"}) == ['--call=a={"b": 1}', '--call=a={"b": 2}']


def test_a_command_may_be_written_as_in_a_shell() -> None:
    assert config.command(settings("command = \"python -m 'my server'\"")) == (
        "python", "-m", "my server",
    )  # fmt: skip


def test_a_command_that_knows_less_takes_what_it_knows() -> None:
    assert words(settings(EVERYTHING), {"env", "timeout"}) == ["--env=MODE=test", "--timeout=30"]


def test_lists_of_the_command_line_replace_those_of_the_file_and_tables_add_up() -> None:
    assert takes("timeout", 60.0)
    assert takes("select", [])
    assert not takes("select", ["ping"])
    assert takes("env", ["A=b"])
    assert not takes("suite", ...)


def test_targets_share_what_stands_above_them() -> None:
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
        "timeout": 9, "env": {"A": "1", "B": "2"}, "call": {"x": True}, "command": "one",
    }  # fmt: skip
    assert found["two"]["command"] == "shared"
    assert found["two"]["call"] == {"x": True, "y": {"z": 1}}
    assert "command" not in found["three"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('comand = "x"', "unknown key 'comand'; did you mean 'command'?"),
        ('revisions = ["x"]', "did you mean 'revision'?"),
        ('fail_on = "must"', "did you mean 'fail-on'?"),
        ("calls = {}", "did you mean 'call'?"),
        ('args = ["x"]', "did you mean 'command'?"),
        ("xyzzy = 1", "the keys are command, from"),
        ("timeout = '5'", "timeout is a string; write a number"),
        ("strict = 1", "strict is a number; write true or false"),
        ("env = { A = 1 }", "env.A is a number; write a string"),
        ("env = 'A=1'", "env is a string; write a table of strings"),
        ("call = ['x']", "call is an array of other values; write a table of arguments"),
        ("[call]\nx = true\ntimeout = 9", "call.timeout is a number; "),
        ("[call]\nx = true\ntimeout = 9", ", or move it above [call]"),
        ("call = { x = [] }", "call.x is an empty array"),
        ("call = { x = 3 }", "or true where we may make them up"),
        ("command = []", "command is empty; write program and arguments"),
        ("command = 'x'\nfrom = 'y'", "exclude each other; keep one"),
        ("targets = 3", "write [targets.NAME]"),
        ("[targets]\none = 3", "write [targets.one]"),
        (
            "[targets.one]\ncomand = 'x'",
            "targets.one: unknown key 'comand'; did you mean 'command'",
        ),
    ],
)
def test_a_wrong_key_or_value_is_refused_with_the_right_one(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(tomllib.loads(text), "t.toml")

    assert said in str(caught.value)
    assert str(caught.value).startswith("t.toml: ")


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("[targets.one]\n[targets.two]", None, "names one, two; choose one with --target"),
        ("[targets.one]\n[targets.two]", "tow", "did you mean 'two'"),
        ("", "one", "leave --target one out"),
    ],
)
def test_which_target_has_to_be_plain(text: str, name: str | None, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        choose(read(tomllib.loads(text), "t.toml"), name, "t.toml")


# --- files


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def configured(config: str | None = None, target: str | None = None, **more: Any) -> Found | None:
    path = None if config is None else Path(config)
    return find(Asked(path, target, more.pop("environment", {}), **more))


def test_where_nothing_is_configured_nothing_is_found(here: Path) -> None:
    (here / "pyproject.toml").write_text("[tool.other]\n")

    assert configured() is None


@pytest.mark.parametrize(
    ("name", "head"), [("touchstone.toml", ""), ("pyproject.toml", "[tool.mcp-touchstone]\n")]
)
def test_the_file_in_the_working_folder_is_found(here: Path, name: str, head: str) -> None:
    (here / name).write_text(f"{head}command = 'x'\ncwd = 'sub'\nbaseline = 'b.toml'\n")

    found = configured()

    assert found is not None
    assert (found.path, found.command) == (Path(name), ("x",))
    assert found.settings["cwd"] == str(here / "sub")
    assert (found.settings["baseline"], found.baseline) == (
        "b.toml",
        Path("touchstone-baseline.toml"),
    )


def test_a_file_elsewhere_speaks_of_its_own_folder(here: Path) -> None:
    other = here / "other"
    other.mkdir()
    (other / "server").write_text("")
    (other / "t.toml").write_text("command = './server'\nbaseline = 'b.toml'\n")

    found = configured("other/t.toml")

    assert found is not None
    assert found.command == (str(other / "./server"),)
    assert found.settings == {
        "command": "./server", "cwd": str(other), "baseline": str(other / "b.toml"),
    }  # fmt: skip
    assert found.baseline == other / "touchstone-baseline.toml"
    assert found.words == ("--config", "other/t.toml")


def test_each_of_several_targets_has_a_baseline_of_its_own(here: Path) -> None:
    (here / "touchstone.toml").write_text("command = 'x'\n[targets.one]\n[targets.two]\n")

    found = configured(target="two")

    assert found is not None
    assert found.baseline == Path("touchstone-baseline-two.toml")


def test_a_target_takes_its_command_from_a_clients_file(here: Path) -> None:
    (here / ".mcp.json").write_text(
        json.dumps(
            {
                "mcpServers": {
                    "a": {"command": "x", "args": ["${T}"], "env": {"K": "${NO}", "L": "1"}}
                }
            }
        )
    )
    (here / "touchstone.toml").write_text(
        "from = '.mcp.json'\nserver = 'a'\nenv = { K = 'k' }\ntimeout = 3\n"
    )

    found = configured(environment={"T": "t"})

    assert found is not None
    assert found.command == ("x", "t")
    assert found.settings["env"] == {"K": "k", "L": "1"}


@pytest.mark.parametrize(
    ("files", "asked", "said"),
    [
        ({"touchstone.toml": "x = "}, {}, "touchstone.toml: it is no TOML: "),
        ({"touchstone.toml": "timeout = 3"}, {}, "it names no server; write command ="),
        ({"touchstone.toml": "from = 'no.json'"}, {}, "no.json: there is no such file"),
        (
            {"touchstone.toml": "command = 'x'", "pyproject.toml": "[tool.mcp-touchstone]"},
            {}, "are both here; keep one",
        ),
        ({"pyproject.toml": ""}, {"config": "pyproject.toml"}, "it has no [tool.mcp-touchstone]"),
        ({}, {"config": "no.toml"}, "there is no such file; `mcp-touchstone init`"),
        ({}, {"config": ".toml/../.toml"}, "there is no such file"),
        ({}, {"target": "x"}, "name a file with --config"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_used_is_said_in_one_line(
    here: Path, files: dict[str, str], asked: dict[str, str], said: str
) -> None:
    for name, text in files.items():
        (here / name).write_text(text)

    with pytest.raises(ConfigError) as caught:
        configured(**asked)

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_folder_and_bytes_are_no_configuration(here: Path) -> None:
    (here / "a.toml").mkdir()
    (here / "b.toml").write_bytes(b"\xff")

    with pytest.raises(ConfigError, match="cannot be read"):
        configured("a.toml")
    with pytest.raises(ConfigError, match="no UTF-8"):
        configured("b.toml")


def test_a_file_is_not_replaced_unasked(here: Path) -> None:
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


# --- files of clients

AROUND = Surroundings(Path("/w/space"), Path("/home/me"), {"TOKEN": "t", "EMPTY": ""})


def servers(kind: str = "mcpServers", **entries: Any) -> str:
    return json.dumps({kind: entries})


@pytest.mark.parametrize("kind", ["mcpServers", "servers"])
def test_the_only_server_is_taken(kind: str) -> None:
    text = servers(kind, a={"command": "x", "args": ["y"], "env": {"A": "1"}, "cwd": "/z"})

    assert source(text, None, "f", AROUND) == Source(("x", "y"), {"A": "1"}, "/z")


def test_a_vs_code_file_may_hold_comments_and_a_last_comma() -> None:
    text = """{
      // ours
      "inputs": [],
      "servers": { "a": { "type": "stdio", "command": "http://x", /* not a // comment */
        "args": ["a,]", "b",], }, },
    }"""

    assert source(text, "a", "f", AROUND).command == ("http://x", "a,]", "b")


def test_settings_of_vs_code_hold_it_one_level_deeper() -> None:
    text = json.dumps({"mcp": {"servers": {"a": {"command": "x"}}}})

    assert source(text, "a", "f", AROUND).command == ("x",)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("${workspaceFolder}/x", "/w/space/x"),
        ("${workspaceFolderBasename}", "space"),
        ("${userHome}", "/home/me"),
        ("${env:TOKEN}", "t"),
        ("${env:NONE}", ""),
        ("${TOKEN}-${EMPTY}", "t-"),
        ("${NONE:-else}", "else"),
        ("${TOKEN:-else}", "t"),
        ("$HOME {root}", "$HOME {root}"),
    ],
)
def test_variables_are_filled_in_as_a_client_does(text: str, filled: str) -> None:
    made = source(servers(a={"command": "x", "args": [text]}), "a", "f", AROUND)

    assert made.command == ("x", filled)


def test_what_the_user_gave_is_not_asked_for() -> None:
    around = Surroundings(Path("/w"), Path("/h"), {}, {"KEY"})
    text = servers("servers", a={"command": "x", "env": {"KEY": "${input:key}"}})

    assert source(text, "a", "f", around).env == {}


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("{", None, "f: it is no JSON"),
        ("[]", None, "neither mcpServers nor servers"),
        (servers(), None, "names no server"),
        (servers(a={}, b={}), None, "names a, b; choose one with --target NAME"),
        (servers(alpha={}), "alhpa", "did you mean 'alpha'"),
        (servers(a=3), "a", "no object with a command"),
        (servers(a={}), "a", "f: a: it has no command"),
        (servers(a={"url": "http://x"}), "a", "only servers on stdio"),
        (servers(a={"type": "sse", "command": "x"}), "a", "only servers on stdio"),
        (servers(a={"command": "x", "args": "y"}), "a", "args is no array"),
        (servers(a={"command": "x", "env": []}), "a", None),
        (servers(a={"command": "x", "env": [1]}), "a", "env is no object"),
        (servers(a={"command": "x", "envFile": ".env"}), "a", "envFile is not read"),
        (
            servers("servers", a={"command": "x", "env": {"K": "${input:key}"}}), "a",
            "f: a: env.K asks its user for ${input:key}; give it: --env K=VALUE",
        ),
        (
            servers("servers", a={"command": "x", "args": ["${input:key}"]}), "a",
            "write a command with the value instead",
        ),
        (servers(a={"command": "x", "env": {"K": "${NO}"}}), "a", "needs the variable NO; set it"),
        (servers(a={"command": "${config:x}"}), "a", "${config:x} is unknown here"),
    ],
)  # fmt: skip
def test_what_a_client_would_have_to_be_asked_is_refused(
    text: str, name: str | None, said: str | None
) -> None:
    if said is None:
        assert source(text, name, "f", AROUND).env == {}
        return
    with pytest.raises(ConfigError) as caught:
        source(text, name, "f", AROUND)

    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_workspace_is_the_folder_that_holds_the_vs_code_one(here: Path) -> None:
    (here / ".vscode").mkdir()
    text = servers("servers", a={"command": "${workspaceFolder}/run"})
    (here / ".vscode" / "mcp.json").write_text(text)

    found = configured(".vscode/mcp.json")

    assert found is not None
    assert found.command == (f"{here}/run",)
    assert found.settings == {"env": {}}
    assert found.baseline == Path("touchstone-baseline.toml")
