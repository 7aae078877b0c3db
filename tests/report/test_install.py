"""The first sentence of a security report, what a server can do by design, and what shows it."""

import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_touchstone.bindings.binding import Binding, Bindings, Operation
from mcp_touchstone.bindings.observed import Observed
from mcp_touchstone.report import html, install, machine, markdown, reread
from mcp_touchstone.results.abilities import Ability, Facts, Known, Power, abilities
from mcp_touchstone.results.advice import Word, advice
from mcp_touchstone.results.run import Execution, Run
from mcp_touchstone.results.verdict import Outcome
from tests.commands import run_here
from tests.runs import Found, run_of

HERE: Final = Path(__file__).parent
REVISION: Final = "2025-11-25"
CRITICAL, HIGH, MEDIUM = "traversal-dotdot", "special-procfs", "lines-values"
STAYS_IN: Final = Ability(Power.OUTSIDE, Known.NOT_SEEN)
PASSED: Final = {(CRITICAL, REVISION): Outcome.PASS}


def judged(found: Found, *powers: Ability, **more: Any) -> Run:
    """Return a run with attacks on a server with these abilities."""
    return run_of(found, {"scenario": "s"}, abilities=(STAYS_IN, *powers), **more)


def has(power: Power, text: str = "x", known: Known = Known.SEEN) -> Ability:
    """Return an ability."""
    return Ability(power, known, text)


ROWS: Final[dict[str, tuple[Run, Word, str]]] = {
    "nothing": (judged(PASSED), Word.NO_FINDING, "1 threat was tried"),
    "a critical finding": (
        judged({(CRITICAL, REVISION): Outcome.FAIL}),
        Word.DO_NOT,
        "attacks succeeded: traversal-dotdot",
    ),
    "a critical finding of a run that did not end": (
        judged({(CRITICAL, REVISION): Outcome.FAIL}, trouble="--deadline"),
        Word.DO_NOT,
        "traversal-dotdot",
    ),
    "an accepted finding": (
        Run(
            **{
                name: getattr(judged({(CRITICAL, REVISION): Outcome.FAIL}), name)
                for name in ("subject", "abilities")
            },
            verdicts=[],
        ),
        Word.NOT_JUDGED,
        "no rule applied",
    ),
    "trouble": (judged(PASSED, trouble="it left"), Word.NOT_JUDGED, "the server did not start"),
    "interrupted": (
        judged(PASSED, execution=Execution(interrupted=True)),
        Word.NOT_JUDGED,
        "the run was interrupted",
    ),
    "a secret without which it does not start": (
        judged(PASSED, has(Power.SECRETS, "its messages name A_KEY"), trouble="it left"),
        Word.NOT_JUDGED,
        "the server did not start; its messages name A_KEY",
    ),
    "a quick run": (
        judged(PASSED, execution=Execution(quick="--quick")),
        Word.NOT_JUDGED,
        "a quick run",
    ),
    "a part": (judged(PASSED, selected=True), Word.NOT_JUDGED, "only some threats were chosen"),
    "no file tool": (
        judged(PASSED, unattacked=True, unbound="none"),
        Word.NOT_JUDGED,
        "no file tool was attacked",
    ),
    "paths without an effect": (
        run_of(
            PASSED,
            {"scenario": "s"},
            abilities=(Ability(Power.OUTSIDE, Known.NOT_TRIED, "no tool was called with a path"),),
        ),
        Word.NOT_JUDGED,
        "no tool was called with a path",
    ),
    "a broken rule": (
        judged({(CRITICAL, REVISION): Outcome.BROKEN}),
        Word.NOT_JUDGED,
        "a rule could not be judged",
    ),
    "a high finding": (
        judged({(HIGH, REVISION): Outcome.FAIL}),
        Word.REVIEW,
        "attacks succeeded: special-procfs",
    ),
    "code that ran": (
        judged(PASSED, has(Power.CODE, "execute_code ran Python")),
        Word.REVIEW,
        "it runs programs or code by design (execute_code ran Python)",
    ),
    "code by name": (
        judged(PASSED, has(Power.CODE, "by name", Known.DECLARED)),
        Word.REVIEW,
        "it runs programs or code as it declares (by name)",
    ),
    "a medium finding": (
        judged({(MEDIUM, REVISION): Outcome.FAIL}),
        Word.ONLY_IF,
        "you accept that attacks succeeded: lines-values",
    ),
    "the network": (
        judged(PASSED, has(Power.NETWORK, "it looked for a.example")),
        Word.ONLY_IF,
        "the hosts it may reach are limited, or the network is off (it looked for a.example)",
    ),
    "the network in two ways": (
        judged(PASSED, has(Power.NETWORK, "it looked for a.example"), has(Power.NETWORK, "get")),
        Word.ONLY_IF,
        "the network is off (it looked for a.example; get)",
    ),
    "files elsewhere": (
        judged(PASSED, has(Power.OUTSIDE)),
        Word.ONLY_IF,
        "a sandbox or container shows it only what it may read and change",
    ),
    "deleting": (judged(PASSED, has(Power.DELETES)), Word.ONLY_IF, "kept elsewhere"),
    "leftovers": (judged(PASSED, has(Power.STAYS)), Word.ONLY_IF, "ends the processes"),
    "secrets": (judged(PASSED, has(Power.SECRETS)), Word.ONLY_IF, "made for it alone"),
    "questions": (judged(PASSED, has(Power.CLIENT)), Word.ONLY_IF, "asks your client"),
    "code in a run with a gap": (
        judged(PASSED, has(Power.CODE, "q ran SQL"), unattacked=True, unbound="none"),
        Word.REVIEW,
        "(q ran SQL); not all was judged: no file tool was attacked",
    ),
    "files of its own": (judged(PASSED, has(Power.STATE)), Word.NO_FINDING, "none was found"),
}
"""What a run came to -> the run, its word, and a part of its reasons."""


@pytest.mark.parametrize("name", ROWS)
def test_each_row_of_the_table_has_its_word(name: str) -> None:
    run, word, reason = ROWS[name]
    found = advice(run)

    assert found is not None
    assert (found.word, reason in str(found)) == (word, True), str(found)
    assert str(found).startswith(word)


def test_each_word_and_each_row_is_in_the_page() -> None:
    page = (HERE.parents[1] / "docs" / "guides" / "install.md").read_text("utf-8")

    assert {row[1] for row in ROWS.values()} == {*Word}
    for word in Word:
        assert f"*{word}*" in page
    for power in Power:
        assert f"| {power} |" in page
    for known in Known:
        assert f"*{known}*" in page


def test_a_run_without_attacks_has_no_word() -> None:
    run = run_of({("ping-empty-response", REVISION): Outcome.PASS}, {"scenario": "s"})

    assert (advice(run), install.sentence(run)) == (None, None)
    assert "installation" not in machine.document(run)


def test_what_the_baseline_accepts_is_accepted() -> None:
    run = judged({(CRITICAL, REVISION): Outcome.FAIL})
    run.verdicts[0] = replace(run.verdicts[0], known="we know")

    assert str(advice(run)).startswith("no finding")


def test_each_report_begins_with_the_sentence_and_has_the_abilities() -> None:
    run = judged(PASSED, has(Power.CODE, "<b>|execute_code ran Python"))
    page, text = html.render(run), markdown.render(run)

    assert text.startswith("**not without review**: it runs programs or code by design")
    fetches = markdown.render(judged(PASSED, has(Power.NETWORK)))
    assert fetches.startswith("**only if** the hosts it may reach are limited")
    assert '<p class="install"><strong>not without review</strong>' in page
    assert "&lt;b&gt;|execute_code ran Python" in page
    assert "<b>|" not in text
    assert '<section id="abilities">' in page


def test_a_report_can_be_made_again_from_json(tmp_path: Path) -> None:
    run = judged(PASSED, has(Power.CODE), selected=True)
    path = tmp_path / "run.json"
    path.write_text(json.dumps(machine.document(run)), "utf-8")
    again = reread.read(path)

    assert (again.abilities, again.selected) == (run.abilities, True)
    assert advice(again) == advice(run)


# --- what a server can do by design


def tool(name: str, *arguments: str, **hints: bool) -> dict[str, Any]:
    """Return the definition of a tool whose arguments are strings."""
    schema = {"type": "object", "properties": {one: {"type": "string"} for one in arguments}}
    return {"name": name, "inputSchema": schema, "annotations": hints}


def known_of(power: Power, *tools: dict[str, Any], **more: Any) -> list[tuple[Known, str]]:
    """Return how a power of a server with these tools is known."""
    found = abilities(Facts(tools=tools, **more))
    return [(one.known, one.text) for one in found if one.power is power]


@pytest.mark.parametrize(
    "one",
    [
        tool("execute_code", "code"),
        tool("run_command", "command"),
        tool("run_sql", "query"),
        tool("read_query", "sql"),
        tool("bash", "x"),
        tool("eval", "expression"),
        tool("execute_python", "source"),
        tool("start_process", "command"),
    ],
    ids=lambda one: one["name"],
)
def test_a_tool_that_runs_code_is_declared_by_its_name(one: dict[str, Any]) -> None:
    (found,) = known_of(Power.CODE, one)

    assert found == (Known.DECLARED, f"by name and arguments: {one['name']}")


def test_a_tool_that_runs_the_commands_of_a_list_is_declared() -> None:
    one = tool("run_pipeline")
    step = tool("", "name", "cmd")["inputSchema"]
    one["inputSchema"]["properties"]["steps"] = {"type": "array", "items": step}

    assert known_of(Power.CODE, one) == [
        (Known.DECLARED, "by name and arguments: run_pipeline"),
    ]


EDITOR: Final = tool("str_replace_editor", "command")
EDITOR["inputSchema"]["properties"]["command"]["enum"] = ["view", "create"]


@pytest.mark.parametrize(
    "one",
    [tool("format_code", "code"), tool("run_tests", "suite"), tool("search", "query"), EDITOR],
    ids=lambda one: one["name"],
)
def test_a_tool_that_only_sounds_like_it_is_not(one: dict[str, Any]) -> None:
    assert [known for known, _ in known_of(Power.CODE, one)] == [Known.NOT_TRIED]


def test_what_was_seen_comes_before_what_is_declared() -> None:
    ran = Bindings(
        (Binding(Operation.RUN, "shell"),),
        observed=Observed({"execute_code": ("Python", "SQL")}, tried_code=True),
    )
    tools = [tool("execute_code", "code"), tool("shell", "command"), tool("run_command", "command")]

    assert known_of(Power.CODE, *tools, bindings=ran) == [
        (Known.SEEN, "execute_code ran Python, SQL; shell ran programs"),
        (Known.DECLARED, "by name and arguments: run_command"),
    ]


def test_what_code_can_do_is_never_said_to_be_tried() -> None:
    ran = Bindings(tries=True, observed=Observed({"q": ("SQL",)}, tried_code=True, watched=True))
    found = {one.power: one for one in abilities(Facts(tools=[tool("q", "sql")], bindings=ran))}

    for power in (Power.NETWORK, Power.OUTSIDE, Power.DELETES, Power.STATE, Power.STAYS):
        assert found[power].known is Known.NOT_TRIED
        assert found[power].text.startswith("what the code that it runs can do; without that, ")
    assert found[Power.CODE].known is Known.SEEN


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        (Observed(watched=True, hosts=("a.example",)), (Known.SEEN, "it looked for a.example")),
        (Observed(watched=True, astray=2), (Known.SEEN, "2 attempts to leave the sandbox")),
        (Observed(watched=True), (Known.NOT_SEEN, "no host was looked for")),
        (Observed(), (Known.NOT_TRIED, "its network was not seen")),
    ],
)
def test_the_network_is_what_the_sandbox_saw(
    observed: Observed, expected: tuple[Known, str]
) -> None:
    (found,) = known_of(Power.NETWORK, tool("get"), bindings=Bindings(observed=observed))

    assert (found[0], found[1][: len(expected[1])]) == expected


@pytest.mark.parametrize(
    ("power", "tools", "text"),
    [
        (Power.NETWORK, [tool("a", openWorldHint=True)], "by openWorldHint: a"),
        (Power.NETWORK, [tool("a", "url")], "by name or arguments: a"),
        (Power.DELETES, [tool("a", destructiveHint=True)], "by destructiveHint: a"),
        (Power.DELETES, [tool("delete_file", "path")], "by name: delete_file"),
        (Power.STATE, [tool("a", readOnlyHint=False)], "by readOnlyHint false: a"),
        (Power.STAYS, [tool("spawn", "x")], "by name: spawn"),
    ],
)
def test_what_is_declared_says_by_what(
    power: Power, tools: Sequence[dict[str, Any]], text: str
) -> None:
    assert known_of(power, *tools) == [(Known.DECLARED, text)]


def test_other_facts_of_a_run_are_said() -> None:
    facts = Facts(
        tools=[tool("read", "path")],
        bindings=Bindings(roams=True, tries=True),
        sent=frozenset({"roots/list"}),
        needed=("X_API_KEY",),
        strays=2,
        escapes=("links-read",),
    )
    said = {one.power: one.text for one in abilities(facts) if one.known is Known.SEEN}

    assert said[Power.SECRETS] == "its messages name X_API_KEY"
    assert said[Power.CLIENT] == "its roots"
    assert said[Power.STAYS] == "2 were left when it had ended"
    assert said[Power.OUTSIDE] == "attacks left the folder: links-read"


def test_a_program_that_it_runs_for_itself_runs_nothing_of_the_caller() -> None:
    beside = Bindings(observed=Observed({}, tried_code=True, programs=("git",)))
    (code,) = known_of(Power.CODE, tool("read"), bindings=beside)
    (stays,) = known_of(Power.STAYS, tool("read"), bindings=beside)

    assert code[0] is Known.NOT_SEEN
    assert stays == (Known.NOT_SEEN, "none was left when it had ended; beside it ran git")


OTHERS: Final = "and for others, by their names no secrets"
COPY: Final = "and copied the whole environment; what it looks for in that is not seen"


@pytest.mark.parametrize(
    ("observed", "expected"),
    [
        (
            Observed(readers=("Python",), reads=("PORT", "A_API_KEY", "TOKEN")),
            (Known.SEEN, f"it asked for A_API_KEY, TOKEN; {OTHERS}: PORT"),
        ),
        (
            Observed(readers=("Node.js",), reads=("KEYBOARD",)),
            (Known.NOT_SEEN, "its Node.js code asked for KEYBOARD, as far as its tools were tried"),
        ),
        (
            Observed(readers=("Python",), copied=True),
            (Known.NOT_TRIED, f"its Python code asked for no variable {COPY}"),
        ),
        (
            Observed(),
            (Known.NOT_TRIED, "what it reads is seen in programs of Python and Node.js only"),
        ),
    ],
    ids=["a secret", "no secret", "a copy", "another program"],
)
def test_the_variables_that_it_asked_for_are_named(
    observed: Observed, expected: tuple[Known, str]
) -> None:
    assert known_of(Power.SECRETS, bindings=Bindings(observed=observed)) == [expected]


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (Facts(strays=2, sandboxed=True), "its sandbox ends what it started"),
        (Facts(strays=2, ended=False), "it was ended by us"),
    ],
)
def test_processes_that_we_ended_are_not_said_to_stay(facts: Facts, text: str) -> None:
    assert [(one.known, one.text) for one in abilities(facts) if one.power is Power.STAYS] == [
        (Known.NOT_TRIED, text)
    ]


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        ("A_API_KEY", True),
        ("AWS_ACCESS_KEY_ID", True),
        ("GITHUB_TOKEN", True),
        ("apiKey", True),
        ("SERVICE_CREDENTIALS_FILE", True),
        ("LLM_MAX_TOKENS", False),
        ("PY_KEY_VALUE_DISABLE", False),
        ("KEYBOARD", False),
        ("PATH_ID", False),
    ],
)
def test_a_secret_is_named_by_its_last_words(name: str, secret: bool) -> None:
    seen = Bindings(observed=Observed(readers=("Python",), reads=(name,)))
    (found,) = known_of(Power.SECRETS, bindings=seen)

    assert (found[0] is Known.SEEN) is secret


def test_each_power_is_always_there() -> None:
    for facts in (Facts(), Facts(started=False)):
        assert list(dict.fromkeys(one.power for one in abilities(facts))) == list(Power)


def test_a_server_that_did_not_start_for_want_of_a_secret_names_it() -> None:
    facts = Facts(started=False, needed=("A_KEY",))
    found = {one.power: one for one in abilities(facts)}

    assert found[Power.SECRETS].text == "its messages name A_KEY"
    assert found[Power.SECRETS].option == "--env NAME=VALUE"
    assert found[Power.CODE].known is Known.NOT_TRIED


def test_a_path_that_nobody_understood_is_not_tried() -> None:
    unbound = Bindings(unbound=("read",), tries=True)
    (found,) = known_of(Power.OUTSIDE, tool("read", "path"), bindings=unbound)

    assert found[0] is Known.NOT_TRIED


# --- a server


SERVER: Final = """
import contextlib, json, os, pathlib, socket, subprocess, sys
os.getenv("DEMO_DB_PASSWORD")
pathlib.Path.home().joinpath(".remembers").write_text("x")
TOOL = {"name": "execute_code", "description": "Runs Python. Set DEMO_API_KEY before.",
        "inputSchema": {"type": "object", "properties": {"code": {"type": "string"}},
                        "required": ["code"]}}
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message:
        continue
    answer = {}
    if method == "initialize":
        answer = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "demo", "version": "1"}}
    elif method == "tools/list":
        answer = {"tools": [TOOL]}
    elif method == "tools/call":
        with contextlib.suppress(OSError):
            socket.create_connection(("metrics.example", 443), 1)
        done = subprocess.run([sys.executable, "-c", params["arguments"]["code"]],
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)
        answer = {"content": [{"type": "text", "text": done.stdout + done.stderr}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="sandboxes")
@pytest.mark.slow
def test_a_server_that_runs_code_is_never_reported_without_a_word_on_it(tmp_path: Path) -> None:
    (tmp_path / "demo.py").write_text(SERVER, "utf-8")
    report = tmp_path / "r.json"
    words = ["--suite", "security", "--revision", REVISION, "--json", str(report)]
    words += ["--attack-commands", "--select", "lines-broken"]
    done = run_here("check", *words, "--", sys.executable, str(tmp_path / "demo.py"))
    found = json.loads(report.read_text("utf-8"))["installation"]
    seen = {one["ability"]: one["text"] for one in found["abilities"] if one["known"] == Known.SEEN}

    assert seen["runs programs or code"] == "execute_code ran Python", done.stdout
    assert seen["reaches the network"].startswith("it looked for metrics.example")
    assert seen["keeps state"] == "files in its home: .remembers"
    assert seen["needs secrets"] == (
        "it asked for DEMO_DB_PASSWORD; its messages name DEMO_API_KEY"
    )
    assert "by design" in done.stdout
