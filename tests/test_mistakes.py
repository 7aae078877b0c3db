"""Mistakes of a new user: each prints one line with the correction and exits with status 2."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mcp_touchstone.cli import main

OK = "command = 'true'\n"
TWO = "[targets.plain]\ncommand = 'true'\n[targets.strict]\ncommand = 'true'\n"
KNOWN = '[[known]]\nclause = "ping-empty-response"\nreason = "x"\n'
CLIENT = json.dumps({"mcpServers": {"notes": {"command": "true"}, "web": {"type": "sse"}}})


@dataclass
class Mistake:
    """A command line, the existing files, and the parts of the expected error line."""

    words: str
    said: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)


def config(text: str, *said: str, words: str = "check") -> Mistake:
    return Mistake(words, ("touchstone.toml: ", *said), {"touchstone.toml": text})


def baseline(text: str, *said: str, words: str = "check -- true") -> Mistake:
    return Mistake(words, ("touchstone-baseline.toml: ", *said), {"touchstone-baseline.toml": text})


def cli(words: str, *parts: str, **files: str) -> Mistake:
    return Mistake(words, parts, {name.replace("__", "."): text for name, text in files.items()})


MISTAKES = {
    # the configuration
    "a configuration that is not TOML": config("command = ", "invalid TOML: "),
    "no command": config("timeout = 3", "it names no server; write command ="),
    "an empty command": config("command = []", "command is empty; write program and arguments"),
    "an unclosed quotation": config("command = \"a 'b\"", "command: no closing quotation"),
    "a misspelt key": config("comand = 'x'", "unknown key 'comand'; did you mean 'command'?"),
    "a key in the plural": config(OK + "revisions = []", "did you mean 'revision'?"),
    "an unknown key": config(OK + "xyzzy = 1", "the keys are command, from"),
    "a misspelt key of a target": config(
        "[targets.a]\ntimeuot = 1", "targets.a: unknown key 'timeuot'; did you mean 'timeout'?"
    ),
    "text for a number": config(OK + "timeout = '9'", "timeout is a string; write a number"),
    "a negative number": config(OK + "timeout = -1", "timeout: "),
    "an unknown revision": config(OK + "revision = '2020'", "revision: ", "2025-11-25"),
    "an unknown suite": config(OK + "suite = 'secure'", "suite: ", "security"),
    "an unknown level": config(OK + "level = 'must'", "level: ", "MUST"),
    "an unknown floor": config(OK + "fail-on = 'shuold'", "did you mean 'should'"),
    "an unknown promise": config(OK + "promise = 'denylist'", "promise", "deny-list"),
    "an unknown clause": cli(
        "check", "did you mean 'ping'", touchstone__toml=OK + "select = 'pnig'"
    ),
    "command and from": config(OK + "from = '.mcp.json'", "exclude each other; keep one"),
    "a missing client file": config("from = 'c.json'", "from = c.json: there is no"),
    "arguments that are not a table": config(OK + "[call]\nx = 3", "call.x is a number"),
    "a binding of a misspelt operation": config(
        OK + "[bindings.raed]\ntool = 'x'", "bindings: ", "did you mean 'read'"
    ),
    "a binding without its tool": config(
        OK + "[bindings.read]\npath = 'x'", "read: tool and path are needed; write OPERATION="
    ),
    "a binding that is not a table": config(OK + "bindings = 3", "bindings is a number; write a"),
    "two configurations": cli(
        "check", "are both here; keep one",
        touchstone__toml=OK, pyproject__toml="[tool.mcp-touchstone]",
    ),
    "a missing configuration file": cli(
        "check --config no.toml", "no.toml: there is no such file; `mcp-touchstone init`"
    ),
    "a pyproject.toml without our table": cli(
        "check --config pyproject.toml", "it has no [tool.mcp-touchstone]; write one",
        pyproject__toml="",
    ),
    # targets
    "a target without a configuration": cli("check --target a", "there is no touchstone.toml"),
    "a target of a command": cli(
        "check --target a -- true", "name the file that defines it with --config"
    ),
    "a misspelt target": config(TWO, "did you mean 'plain'", words="check --target plian"),
    "a misspelt argument": config(TWO, "did you mean 'plain'", "behind `--`", words="check plian"),
    "a target name and a misspelt one": config(
        TWO, "no target is called 'strcit'; did you mean 'strict'", words="check plain strcit"
    ),
    "a target for a configuration without targets": config(
        OK, "it names no targets; leave --target x out", words="check --target x"
    ),
    "one baseline of two targets": cli(
        "check", "several targets share the baseline known.toml; put {target} into its name",
        touchstone__toml="baseline = 'known.toml'\n" + TWO,
    ),
    "too many targets": config(TWO, "choose one with --target NAME", words="recon"),
    # files of clients
    "a client file that is not JSON": cli("check --config c.json", "invalid JSON", c__json="{"),
    "a file without servers": cli(
        "check --config c.json", "neither mcpServers nor servers; name a", c__json="{}"
    ),
    "several servers of a client": cli(
        "check --config c.json", "names notes, web; choose one with --target", c__json=CLIENT
    ),
    "a misspelt server": cli(
        "check --config c.json --target note", "did you mean 'notes'", c__json=CLIENT
    ),
    "an HTTP server": cli(
        "check --config c.json --target web", "type sse is HTTP+SSE of 2024-11-05", c__json=CLIENT
    ),
    "a URL of another kind": cli("check --http ftp://a -- true", "write http://HOST:PORT/PATH"),
    "a port without a command": cli("check --http http://127.0.0.1:{port}/", "add -- COMMAND"),
    "a secret in an argument": cli(
        "check http://127.0.0.1:9 --header A=b", "write NAME=env:VARIABLE"
    ),
    # the command
    "a missing program": cli(
        "check -- no-such-program", "there is no program 'no-such-program'"
    ),
    "a missing folder": cli("check --cwd no/where -- true", "no/where"),
    "a variable without a value": cli("check --env A -- true", "--env: A: write NAME=VALUE"),
    "arguments that are not JSON": cli("check --call x=y -- true", "x=y: write NAME="),
    "an unknown option": cli("check --revison 2025-11-25", "did you mean '--revision'"),
    "an unknown command": cli("chekc", "did you mean 'check'"),
    "an unknown action": cli("golden verfy", "did you mean 'verify'"),
    "nothing behind the dashes": cli("check --", "the command behind `--` is empty"),
    "no server at all": cli(
        "check", "check -- COMMAND", "`mcp-touchstone init -- COMMAND`", "--self"
    ),
    "a server twice": cli("check --self -- true", "both name a server; keep one"),
    "a server for a command that takes none": cli("list -- true", "this command takes none"),
    "an unknown revision on the command line": cli("check --revision 1", "2025-11-25"),
    "an unknown clause on the command line": cli(
        "check --select pnig -- true", "did you mean 'ping'"
    ),
    "init without a server": cli("init", "write the command of your server behind `--`"),
    "init over a file": cli("init -- true", "--force replaces it", touchstone__toml=OK),
    # the baseline
    "a missing baseline": cli(
        "check --baseline no.toml -- true",
        "no such file; `mcp-touchstone check --update-baseline` writes it",
    ),
    "a baseline that is not TOML": baseline("[[known", "Expected", "docs/baseline.md"),
    "an entry without a reason": baseline(
        '[[known]]\nclause = "ping-empty-response"', "entry 1", "reason is missing"
    ),
    "an entry's misspelt key": baseline(KNOWN.replace("clause", "clase"), "did you mean 'clause'?"),
    "an entry of a misspelt clause": baseline(
        KNOWN.replace("empty", "emtpy"), "did you mean 'ping-empty-response'"
    ),
    "an entry of an unknown revision": baseline(
        KNOWN + 'revision = "2025"', "unknown revision '2025'"
    ),
    "an entry twice": baseline(KNOWN + KNOWN, "entry 2 repeats entry 1", "keep one"),
    "--baseline with --no-baseline": cli(
        "check --no-baseline --baseline x.toml -- true", "excludes --baseline", "drop one"
    ),
    # reports
    "an unknown kind of report": cli("check --report htm:x -- true", "did you mean 'html'"),
    "a report without a file": cli("check --report html -- true", "--report html", "html:"),
    "a report in a missing folder": cli("check --report html:no/x.html -- true", "no", "folder"),
    "a report over a folder": cli("check --json . -- true", "."),
    "two reports in one file": cli(
        "check --report html:x --report sarif:x -- true", "would hold", "name two files"
    ),
    "a missing old report": cli("check --since no.json -- true", "no.json"),
    "an old report without content": cli("check --since x.json -- true", "x.json", x__json="{}"),
    "a comparison of missing reports": cli("diff no.json no.json", "no.json"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_prints_one_line_and_exits_with_2(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    mistake = MISTAKES[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mcp_touchstone.cli._end_on_sigterm", lambda: None)  # it is pytest's here
    for file, text in mistake.files.items():
        (tmp_path / file).write_text(text, "utf-8")

    try:
        code = main(mistake.words.split())
    except SystemExit as left:
        code = int(str(left.code))

    told = capfd.readouterr().err
    assert code == 2
    assert told.count("\n") == 1, told
    assert told.startswith("mcp-touchstone")
    for part in mistake.said:
        assert part in told, told
    assert {path.name for path in tmp_path.iterdir()} == {*mistake.files}
