"""A configuration that the command line did not name cannot lower what protects the user."""

import json
import sys
from pathlib import Path

import pytest

from mcp_touchstone.cli import main
from mcp_touchstone.config import resolve, toml_keys
from mcp_touchstone.config.parser import parse
from mcp_touchstone.config.settings import ConfigError, Settings, field_of, key
from mcp_touchstone.fleet import servers
from mcp_touchstone.target.server_settings import SERVER_OPTIONS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and paths of POSIX")

SERVER = 'command = ["cat"]\n'
LOCAL = "url = 'http://127.0.0.1:{port}/mcp'\n" + SERVER
RISKS = {
    "sandbox": SERVER + "sandbox = 'off'",
    "token-command": LOCAL + "token-command = 'touch pwned'",
    "other-token-command": LOCAL + "other-token-command = 'touch pwned'",
    "header": LOCAL + "header = { X = 'env:SECRET' }",
    "env": SERVER + "env = { LD_PRELOAD = './x.so' }",
    "online": SERVER + "online = true",
    "intrusive": SERVER + "intrusive = true",
    "rate": SERVER + "rate = 1000",
    "root-size": SERVER + "root-size = 1025",
    "ca-file": LOCAL + "ca-file = 'ca.pem'",
    "url": "url = 'https://example.org/mcp'",
    "root-from": SERVER + "root-from = '..'",
    "world": SERVER + "world = '/etc'",
    "cwd": SERVER + "cwd = 'link/below'",
    "baseline": SERVER + "baseline = '../known.toml'",
    "budget": SERVER + "budget = 'link/b.toml'",
    "from": "from = '../client.json'",
    "config-template": SERVER + "config-template = '../gateway.json'",
    "promise": SERVER + "[promise]\nread-only = { env = { A = '1' } }",
    "command": 'command = ["cat", "--file=../home/.ssh/key"]',
    "client": SERVER + "client = ['sh', '-c', 'cat ../home/.ssh/key']",
    "gateway": SERVER + "gateway = ['sh', '-c', 'cat ../home/.ssh/key']",
}
"""Key -> a file that uses it against the user."""

HARMLESS = (
    SERVER + "root-size = 9\nsandbox = 'auto'\noffline = true\nroot-from = 'seed'\nworld = '.'",
    SERVER + "cwd = '{root}'\nbaseline = 'known.toml'\nbudget = './seed/../b.toml'\nonline = false",
    LOCAL + "issuer = 'mock'\npromise = ['audit']\nenv = {}\nselect = 'ping'\n[call]\nx = true",
    "from = 'client.json'\nserver = 'plain'",
    f'command = ["{sys.executable}", "-m", "x", "/usr/share", "a/../b", "../home/server.py"]',
)


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the working folder: a clone of a stranger, beside the home of the user."""
    clone, home = tmp_path / "clone", tmp_path / "home"
    (clone / "seed").mkdir(parents=True)
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "key").write_text("secret")
    (home / "server.py").write_text("")
    (clone / "link").symlink_to(home)
    document = {"mcpServers": {"plain": {"command": "x"}, "asks": {"command": "${SECRET}"}}}
    for folder in (clone, tmp_path):
        (folder / "client.json").write_text(json.dumps(document))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SECRET", "s3cret")
    monkeypatch.chdir(clone)
    return clone


def settings(*words: str) -> Settings:
    return resolve.settings(parse(["recon", *words]))[0]


def test_each_risk_of_the_table_has_a_case() -> None:
    assert {*RISKS} == {name for name, row in toml_keys.KEYS.items() if row.risk}


@pytest.mark.parametrize("name", RISKS)
def test_a_risk_needs_a_word_of_the_user(clone: Path, name: str) -> None:
    (clone / "touchstone.toml").write_text(RISKS[name])

    with pytest.raises(ConfigError) as caught:
        settings()

    assert str(caught.value) == (
        f"touchstone.toml: {name} is not used, as you did not name this file; if you have read it "
        "and trust it, add --trust-config or --config touchstone.toml"
    )
    if name != "from":  # which has two servers
        assert settings("--trust-config") == settings("--config", "touchstone.toml")


@pytest.mark.parametrize("place", ["pyproject", "target", "common"])
def test_a_risk_is_found_wherever_a_key_may_stand(clone: Path, place: str) -> None:
    texts = {
        "pyproject": ("pyproject.toml", "[tool.mcp-touchstone]\n{}"),
        "target": ("touchstone.toml", "[targets.a]\n{}"),
        "common": ("touchstone.toml", "{}\n[targets.a]\n[targets.b]\n"),
    }
    file, form = texts[place]
    (clone / file).write_text(form.format(RISKS["sandbox"]))

    with pytest.raises(ConfigError, match=f"{file}: sandbox is not used"):
        settings(*(() if place == "pyproject" else ("a",)))


@pytest.mark.parametrize("text", HARMLESS)
def test_other_values_need_no_word(clone: Path, text: str) -> None:
    (clone / "touchstone.toml").write_text(text)

    assert settings() == settings("--config", "touchstone.toml")


def test_what_the_user_sets_instead_is_no_risk(clone: Path) -> None:
    text = LOCAL + "sandbox = 'off'\nenv = { A = '1' }\nheader = { X = 'env:SECRET' }"
    (clone / "touchstone.toml").write_text(text)

    with pytest.raises(ConfigError, match="toml: header, env is not used"):
        settings("--sandbox", "auto", "--env", "B=2")
    found = settings("--sandbox", "auto", "--env", "A=2", "--header", "X=env:HOME")

    assert (found.sandbox, dict(found.env)) == ("auto", {"A": "2"})


@pytest.mark.parametrize("word", ["${SECRET}", "${env:SECRET}", "${NONE:-x}", "${NONE}"])
@pytest.mark.parametrize("where", ["args", "url", "headers", "env"])
def test_the_file_of_a_client_gets_no_variable(clone: Path, where: str, word: str) -> None:
    url = {"url": "http://127.0.0.1:9/mcp"}
    server = {
        "args": {"command": "x", "args": [word]},
        "env": {"command": "x", "env": {"A": word}},
        "url": {"url": f"http://127.0.0.1:9/{word}"},
        "headers": {**url, "headers": {"X": word}},
    }[where]
    (clone / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": server}}))
    (clone / "touchstone.toml").write_text("from = '.mcp.json'\n")

    with pytest.raises(ConfigError) as caught:
        settings()

    assert "touchstone.toml: " in str(caught.value)
    assert "is not used, as you did not name this file" in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_a_fleet_gives_no_variable_to_files_in_a_folder(clone: Path) -> None:
    document = {"a": {"command": "x", "args": ["${SECRET}"]}, "b": {"command": "x", "cwd": "/etc"}}
    (clone / "seed" / "c.json").write_text(json.dumps({"mcpServers": document}))

    found = list(servers.read(clone / "seed"))

    assert all("--trust-config" in one.trouble.line for one in found if one.trouble is not None)
    assert [one.trouble is not None for one in found] == [True, True]
    for path, trusted in ((clone / "seed", True), (clone / "seed" / "c.json", False)):
        assert [one.trouble for one in servers.read(path, trusted=trusted)] == [None, None]


COMMANDS = (
    "check",
    "check --suite security",
    "check --watch",
    "recon",
    "recon --json",
    "load",
    "bridge",
    "golden record",
    "golden verify",
    "client",
)


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("name", ["sandbox", "token-command", "env"])
def test_each_command_refuses_with_one_line(
    clone: Path, words: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "client = ['cat']\n" + RISKS[name].replace('["cat"]', '["touch", "pwned"]')
    (clone / "touchstone.toml").write_text(text)

    assert main(words.split()) == 2

    said = capsys.readouterr()
    assert f"touchstone.toml: {name} is not used" in said.err
    assert said.err.count("\n") == 1
    assert not said.out
    assert not (clone / "pwned").exists()


def test_the_first_line_names_the_file(clone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (clone / "touchstone.toml").write_text(SERVER + "timeout = 0.1\nfail-on = 'profile'")

    for words in (["check"], ["check", "-q"], ["check", "--config", "touchstone.toml"]):
        assert main(words) == 2
        assert capsys.readouterr().out.startswith("configuration: touchstone.toml\n")


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "a\\\\b", "\\u0000", ""])
def test_a_name_of_a_target_is_a_name_of_a_file(clone: Path, name: str) -> None:
    (clone / "touchstone.toml").write_text(f'[targets."{name}"]\n{SERVER}')

    with pytest.raises(ConfigError, match="no name of a file"):
        settings()


@pytest.mark.parametrize(
    "text",
    [
        'cwd = "\\u0000"',
        'root-from = "\\u0000"',
        'cwd = "{root}/../../.."',
        'from = "/proc/self/environ"',
    ],
)
def test_odd_paths_lead_out(clone: Path, text: str) -> None:
    command = "" if text.startswith("from") else SERVER
    (clone / "touchstone.toml").write_text(f"{command}{text}\n")

    with pytest.raises(ConfigError, match="is not used"):
        settings()


def test_pages_list_the_risks() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "config.md").read_text("utf-8")
    rows = {key(name): row for name, row in SERVER_OPTIONS.items()}

    assert all(field_of(name) for name in rows)
    for name, row in toml_keys.KEYS.items():
        if row.risk is not None:
            assert f"| `{name}` | {row.risk.when} |" in page
