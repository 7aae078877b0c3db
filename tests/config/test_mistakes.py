"""Mistakes of a new user: each prints one line with the correction and exits with status 2."""

import json
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from mcp_touchstone.cli import main

OK = "command = 'true'\n"
TWO = "[targets.plain]\ncommand = 'true'\n[targets.strict]\ncommand = 'true'\n"
KNOWN = '[[known]]\nclause = "ping-empty-response"\nreason = "x"\n'
CLIENT = json.dumps({"mcpServers": {"notes": {"command": "true"}, "web": {"type": "sse"}}})


@dataclass
class Mistake:
    """A command line and the existing files."""

    words: str
    files: dict[str, str] = field(default_factory=dict)


def config(text: str, words: str = "check") -> Mistake:
    return Mistake(words, {"touchstone.toml": text})


def baseline(text: str, words: str = "check -- true") -> Mistake:
    return Mistake(words, {"touchstone-baseline.toml": text})


def cli(words: str, **files: str) -> Mistake:
    return Mistake(words, {name.replace("__", "."): text for name, text in files.items()})


MISTAKES = {
    # the configuration
    "a configuration that is not TOML": config("command = "),
    "no command": config("timeout = 3"),
    "an empty command": config("command = []"),
    "an unclosed quotation": config('command = "a \'b"'),
    "a misspelt key": config("comand = 'x'"),
    "a key in the plural": config(OK + "revisions = []"),
    "an unknown key": config(OK + "xyzzy = 1"),
    "a misspelt key of a target": config("[targets.a]\ntimeuot = 1"),
    "text for a number": config(OK + "timeout = '9'"),
    "a negative number": config(OK + "timeout = -1"),
    "an unknown revision": config(OK + "revision = '2020'"),
    "an unknown suite": config(OK + "suite = 'secure'"),
    "an unknown level": config(OK + "level = 'must'"),
    "an unknown floor": config(OK + "fail-on = 'shuold'"),
    "an unknown promise": config(OK + "promise = 'denylist'"),
    "an unknown clause": cli("check", touchstone__toml=OK + "select = 'pnig'"),
    "command and from": config(OK + "from = '.mcp.json'"),
    "a missing client file": config("from = 'c.json'"),
    "arguments that are not a table": config(OK + "[call]\nx = 3"),
    "a binding of a misspelt operation": config(OK + "[bindings.raed]\ntool = 'x'"),
    "a binding without its tool": config(OK + "[bindings.read]\npath = 'x'"),
    "a binding that is not a table": config(OK + "bindings = 3"),
    "two configurations": cli(
        "check", touchstone__toml=OK, pyproject__toml="[tool.mcp-touchstone]"
    ),
    "a missing configuration file": cli("check --config no.toml"),
    "a pyproject.toml without our table": cli("check --config pyproject.toml", pyproject__toml=""),
    # targets
    "a target without a configuration": cli("check --target a"),
    "a target of a command": cli("check --target a -- true"),
    "a misspelt target": config(TWO, words="check --target plian"),
    "a misspelt argument": config(TWO, words="check plian"),
    "a target name and a misspelt one": config(TWO, words="check plain strcit"),
    "a target for a configuration without targets": config(OK, words="check --target x"),
    "one baseline of two targets": cli("check", touchstone__toml="baseline = 'known.toml'\n" + TWO),
    "too many targets": config(TWO, words="recon"),
    # files of clients
    "a client file that is not JSON": cli("check --config c.json", c__json="{"),
    "a file without servers": cli("check --config c.json", c__json="{}"),
    "several servers of a client": cli("check --config c.json", c__json=CLIENT),
    "a misspelt server": cli("check --config c.json --target note", c__json=CLIENT),
    "an HTTP server": cli("check --config c.json --target web", c__json=CLIENT),
    "a URL of another kind": cli("check --http ftp://a -- true"),
    "a URL of another scheme": cli("check ftp://a/mcp"),
    "certificates that are none": cli(
        "check http://127.0.0.1:9/mcp --ca-file a.pem", a__pem="x = 1"
    ),
    "attacks in a quick run": cli("check --quick --suite security -- true"),
    "attacks in a quick fleet": cli("fleet a.json --quick --suite security", a__json=CLIENT),
    "a misspelt word in braces": cli("check -- true {rot}"),
    "a port without a command": cli("check --http http://127.0.0.1:{port}/"),
    "a secret in an argument": cli("check http://127.0.0.1:9 --header A=b"),
    # the command
    "a missing program": cli("check -- no-such-program"),
    "a missing folder": cli("check --cwd no/where -- true"),
    "a variable without a value": cli("check --env A -- true"),
    "arguments that are not JSON": cli("check --call x=y -- true"),
    "an unknown option": cli("check --revison 2025-11-25"),
    "an unknown command": cli("chekc"),
    "an unknown action": cli("golden verfy"),
    "nothing after the dashes": cli("check --"),
    "no server at all": cli("check"),
    "a server twice": cli("check --self -- true"),
    "a server for a command that takes none": cli("list -- true"),
    "an unknown revision on the command line": cli("check --revision 1"),
    "an unknown clause on the command line": cli("check --select pnig -- true"),
    "init without a server": cli("init"),
    "init over a file": cli("init -- true", touchstone__toml=OK),
    # the baseline
    "a missing baseline": cli("check --baseline no.toml -- true"),
    "a baseline that is not TOML": baseline("[[known"),
    "an entry without a reason": baseline('[[known]]\nclause = "ping-empty-response"'),
    "an entry's misspelt key": baseline(KNOWN.replace("clause", "clase")),
    "an entry of a misspelt clause": baseline(KNOWN.replace("empty", "emtpy")),
    "an entry of an unknown revision": baseline(KNOWN + 'revision = "2025"'),
    "an entry twice": baseline(KNOWN + KNOWN),
    "--baseline with --no-baseline": cli("check --no-baseline --baseline x.toml -- true"),
    # reports
    "an unknown kind of report": cli("check --report htm:x -- true"),
    "a report without a file": cli("check --report html -- true"),
    "a report in a missing folder": cli("check --report html:no/x.html -- true"),
    "a report over a folder": cli("check --json . -- true"),
    "two reports in one file": cli("check --report html:x --report sarif:x -- true"),
    "a missing old report": cli("check --since no.json -- true"),
    "an old report without content": cli("check --since x.json -- true", x__json="{}"),
    "a comparison of missing reports": cli("diff no.json no.json"),
    # more
    "a name of an argument without a value": cli("check --call echo= -- true"),
    "an argument that is a list": cli("check --call 'echo=[\"a\"]' -- true"),
    "arguments without a name": cli("check --call '={\"a\": 1}' -- true"),
    "a missing program in the configuration": config("command = 'no-such-program'"),
    "a configuration with nothing but targets": config("[targets.a]\n[targets.b]"),
    "a timeout of zero": config(OK + "timeout = 0"),
    "a program that is not executable": cli("check -- ./x.md", x__md=""),
    "a command in quotes": cli("check -- 'node dist/index.js'"),
    "an empty command on the command line": cli("check -- ''"),
    "a clause that is not judged": cli("check --self --select caching-access-control"),
    "a misspelt clause to explain": cli("explain ping-empty-respons"),
    "several clauses as close": cli("explain jsonrpc-bach"),
    "a chapter to explain": cli("explain tools"),
    "a page to select": cli("check --section basic/transports -- x"),
    "a misspelt chapter to list": cli("list pnig"),
    "a misspelt level to list": cli("list --level critcal"),
    "an unknown level on the command line": cli("check --level must"),
    "a timeout that is not a number": cli("check --timeout soon"),
    "a negative timeout": cli("check --timeout -1"),
    "no jobs": cli("check --jobs 0"),
    "an unknown floor on the command line": cli("check --fail-on shuold"),
    "two floors": cli("check --self --fail-on must --fail-on may"),
    "a report without a path": cli("check --self --report junit:"),
    "a kind of report like another": cli("check --self --report serif:x"),
    "a kind of report like none": cli("check --self --report xyz:x"),
    "a JSON report in a missing folder": cli("check --self --json no/such/out.json"),
    "two reports in one file by two names": cli("check --self --report sarif:x --report junit:./x"),
    "transcripts in a missing folder": cli("check --self --save no/such/wire"),
    "a baseline that is not TOML on the command line": cli(
        "check --self --baseline x.md", x__md="some words\n"
    ),
    "a comparison of no reports": cli("diff x.md x.md", x__md="some words\n"),
    "a comparison with other JSON": cli("diff x.json y.json", x__json='{"a": 1}'),
    "a comparison with one report": cli("diff x.json"),
    "a configuration of another kind": cli("check --config tox.ini", tox__ini="[tox]\n"),
    "recon of no server": cli("recon"),
    "a recording of no server": cli("golden verify"),
    "a bridge to no server": cli("bridge"),
    "no command at all": cli(""),
}


def test_mistakes_print_one_line_each_and_exit_with_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    golden: SnapshotAssertion,
) -> None:
    found = []
    for name, mistake in MISTAKES.items():
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.chdir(folder)
        for file, text in mistake.files.items():
            (folder / file).write_text(text, "utf-8")
        try:
            code = main(shlex.split(mistake.words))
        except SystemExit as left:
            code = int(str(left.code))
        message = capfd.readouterr().err
        assert code == 2, name
        assert message.count("\n") == 1, message
        assert message.startswith("mcp-touchstone"), message
        assert {path.name for path in folder.iterdir()} == {*mistake.files}, name
        message = message.replace(str(folder), "<folder>")
        found.append(f"{name}\n  $ mcp-touchstone {mistake.words}\n  {message}")

    assert "\n".join(found) == golden
