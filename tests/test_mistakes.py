"""Every mistake a new user can make: one line that says how to mend it, and exit status 2."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mcp_touchstone.cli import main

OK = "command = 'true'\n"
TWO = "[targets.plain]\ncommand = 'true'\n[targets.strict]\ncommand = 'true'\n"
KNOWN = '[[known]]\nclause = "ping-empty-response"\nreason = "x"\n'
CLIENT = json.dumps({"mcpServers": {"notes": {"command": "true"}, "web": {"url": "http://x"}}})


@dataclass
class Mistake:
    """Files that are there, words that are said, and what the one line has to hold."""

    words: str
    said: tuple[str, ...]
    files: dict[str, str] = field(default_factory=dict)


def config(text: str, *said: str, words: str = "check") -> Mistake:
    return Mistake(words, ("touchstone.toml: ", *said), {"touchstone.toml": text})


def baseline(text: str, *said: str, words: str = "check -- true") -> Mistake:
    return Mistake(words, ("touchstone-baseline.toml: ", *said), {"touchstone-baseline.toml": text})


def said(words: str, *parts: str, **files: str) -> Mistake:
    return Mistake(words, parts, {name.replace("__", "."): text for name, text in files.items()})


MISTAKES = {
    # the configuration
    "no TOML": config("command = ", "it is no TOML", "mend it there"),
    "no command": config("timeout = 3", "it names no server; write command ="),
    "an empty command": config("command = []", "command is empty; write program and arguments"),
    "a quotation that does not end": config("command = \"a 'b\"", "command: no closing quotation"),
    "a misspelt key": config("comand = 'x'", "unknown key 'comand'; did you mean 'command'?"),
    "a key in the plural": config(OK + "revisions = []", "did you mean 'revision'?"),
    "a key nobody knows": config(OK + "xyzzy = 1", "the keys are command, from"),
    "a misspelt key of a target": config(
        "[targets.a]\ntimeuot = 1", "targets.a: unknown key 'timeuot'; did you mean 'timeout'?"
    ),
    "text for a number": config(OK + "timeout = '9'", "timeout is a string; write a number"),
    "a number that is none": config(OK + "timeout = -1", "timeout: ", "mend it there"),
    "a revision there is not": config(OK + "revision = '2020'", "revision: ", "2025-11-25"),
    "a suite there is not": config(OK + "suite = 'secure'", "suite: ", "security"),
    "a level there is not": config(OK + "level = 'must'", "level: ", "MUST"),
    "a floor there is not": config(OK + "fail-on = 'shuold'", "did you mean 'should'"),
    "a promise there is not": config(OK + "promise = 'denylist'", "promise", "deny-list"),
    "a clause there is not": said(
        "check", "did you mean 'ping'", touchstone__toml=OK + "select = 'pnig'"
    ),
    "command and from": config(OK + "from = '.mcp.json'", "exclude each other; keep one"),
    "a client's file that is not there": config("from = 'c.json'", "from = c.json: there is no"),
    "arguments that are no table": config(OK + "[call]\nx = 3", "call.x is a number"),
    "a binding of a misspelt operation": config(
        OK + "[bindings.raed]\ntool = 'x'", "bindings: ", "did you mean 'read'", "mend it there"
    ),
    "a binding without its tool": config(
        OK + "[bindings.read]\npath = 'x'", "read: tool and path are needed; write OPERATION="
    ),
    "a binding that is no table": config(OK + "bindings = 3", "bindings is a number; write a"),
    "two configurations": said(
        "check", "are both here; keep one",
        touchstone__toml=OK, pyproject__toml="[tool.mcp-touchstone]",
    ),
    "a file that is not there": said(
        "check --config no.toml", "no.toml: there is no such file; `mcp-touchstone init`"
    ),
    "a project without our table": said(
        "check --config pyproject.toml", "it has no [tool.mcp-touchstone]; write one",
        pyproject__toml="",
    ),
    # targets
    "a target without a configuration": said("check --target a", "there is no touchstone.toml"),
    "a target of a command": said(
        "check --target a -- true", "name the file it stands in with --config"
    ),
    "a misspelt target": config(TWO, "did you mean 'plain'", words="check --target plian"),
    "a misspelt name": config(TWO, "did you mean 'plain'", "behind `--`", words="check plian"),
    "a name and a misspelt one": config(
        TWO, "no target is called 'strcit'; did you mean 'strict'", words="check plain strcit"
    ),
    "targets where there are none": config(
        OK, "it names no targets; leave --target x out", words="check --target x"
    ),
    "one report of two targets": said(
        "check --report html:out.html", "--report html:out.html: several targets are judged; "
        "put {target} into its name", touchstone__toml=TWO,
    ),
    "one JSON report of two targets": said(
        "check --json out.json", "put {target} into its name", touchstone__toml=TWO
    ),
    "one baseline of two targets": said(
        "check", "several targets share the baseline known.toml; put {target} into its name",
        touchstone__toml="baseline = 'known.toml'\n" + TWO,
    ),
    "several where one is meant": config(TWO, "choose one with --target NAME", words="recon"),
    # files of clients
    "a client's file that is no JSON": said("check --config c.json", "it is no JSON", c__json="{"),
    "a file of something else": said(
        "check --config c.json", "neither mcpServers nor servers; name a", c__json="{}"
    ),
    "several servers of a client": said(
        "check --config c.json", "names notes, web; choose one with --target", c__json=CLIENT
    ),
    "a misspelt server": said(
        "check --config c.json --target note", "did you mean 'notes'", c__json=CLIENT
    ),
    "a server on HTTP": said(
        "check --config c.json --target web", "only servers on stdio are judged", c__json=CLIENT
    ),
    # the command
    "a program there is not": said(
        "check -- no-such-program", "there is no program 'no-such-program'"
    ),
    "a folder there is not": said("check --cwd no/where -- true", "no/where"),
    "a variable without a value": said("check --env A -- true", "--env A: write NAME=VALUE"),
    "arguments that are no JSON": said("check --call x=y -- true", "x=y: write NAME="),
    "an option there is not": said("check --revison 2025-11-25", "--revison", "--help"),
    "a revision the command line knows not": said("check --revision 1", "2025-11-25"),
    "a clause the command line knows not": said(
        "check --select pnig -- true", "did you mean 'ping'"
    ),
    "init without a server": said("init", "name the command of your server behind `--`"),
    "init over a file": said("init -- true", "--force replaces it", touchstone__toml=OK),
    # the baseline
    "a baseline that is not there": said(
        "check --baseline no.toml -- true", "no such file; --update-baseline writes it"
    ),
    "a baseline that is no TOML": baseline("[[known", "Expected", "docs/baseline.md"),
    "an entry without a reason": baseline(
        '[[known]]\nclause = "ping-empty-response"', "entry 1", "reason is missing"
    ),
    "an entry about nothing": baseline(KNOWN.replace("clause", "clase"), "did you mean 'clause'?"),
    "an entry of a misspelt clause": baseline(
        KNOWN.replace("empty", "emtpy"), "did you mean 'ping-empty-response'"
    ),
    "an entry of a revision there is not": baseline(
        KNOWN + 'revision = "2025"', "unknown revision '2025'"
    ),
    "an entry twice": baseline(KNOWN + KNOWN, "entry 2 repeats entry 1", "keep one"),
    "a baseline and none": said(
        "check --no-baseline --baseline x.toml -- true", "excludes --baseline", "drop one"
    ),
    # reports
    "a kind of report there is not": said("check --report htm:x -- true", "did you mean 'html'"),
    "a report without a file": said("check --report html -- true", "--report html", "html:"),
    "a report in no folder": said("check --report html:no/x.html -- true", "no", "folder"),
    "a report over a folder": said("check --json . -- true", "."),
    "two reports in one file": said(
        "check --report html:x --report sarif:x -- true", "would hold", "name two files"
    ),
    "an old report that is not there": said("check --since no.json -- true", "no.json"),
    "an old report of something else": said("check --since x.json -- true", "x.json", x__json="{}"),
    "a comparison with nothing": said("diff no.json no.json", "no.json"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_and_exit_2(
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
