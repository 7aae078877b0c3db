"""`mcp-touchstone client`: one revision, several clients at a time, shards, known outcomes."""

import errno
import itertools
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.catalog.loader import CLIENTS, load
from mcp_touchstone.catalog.sdk import UNKNOWN, SdkIdentity
from mcp_touchstone.cli import main
from mcp_touchstone.config.settings import Settings
from mcp_touchstone.engine.choice import Choice
from mcp_touchstone.parts import stepper
from mcp_touchstone.parts.scenarios import find, scenarios, without
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.tap import check, client_process, drive, show
from mcp_touchstone.tap.client_process import STARTS
from mcp_touchstone.tap.drive import Played
from mcp_touchstone.tap.stage import Stage
from mcp_touchstone.target import values
from mcp_touchstone.target.target import Target
from tests.cases import cases
from tests.mutants.clients import http_client
from tests.reference_client import CHECKOUT
from tests.tap.test_drive import CLOSE, GOOD, STATELESS, STEPS, TRANSPORT

if os.name != "posix":
    pytest.skip("signals of POSIX", allow_module_level=True)

ASKED = GOOD.replace('"2025-11-25"', "__import__('os').environ['MCP_CONFORMANCE_PROTOCOL_VERSION']")
MODERN = STATELESS + (
    "say(id=1, method='server/discover', params={'_meta': meta})\n"
    "sys.exit('error' in json.loads(server.stdout.readline()))\n"
)
BROKEN = "import os\nif os.environ['MCP_CONFORMANCE_SCENARIO'] == 'progress': raise SystemExit(4)\n"


def run(tmp_path: Path, code: str, *options: str) -> int:
    """Run a client; return the exit status of ours."""
    words = [*options, "--json", str(tmp_path / "j"), "--", sys.executable, "-c", code]
    return main(["client", *words, *([] if "--http" in options else ["{server}"])])


def report(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "j").read_text())
    return found


def played(tmp_path: Path) -> dict[str, str]:
    return {one["scenario"]: one["outcome"] for one in report(tmp_path)["scenarios"]}


@cases("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
def test_a_scenario_runs_in_the_named_revision_whatever_the_client_would_choose(
    tmp_path: Path, revision: str
) -> None:
    which = ("--spec-version", revision, "--scenario", "tools_call", "--scenario", "progress")

    assert run(tmp_path, ASKED + STEPS + CLOSE, *which) == 0

    found = report(tmp_path)
    assert found["revisions"]["spoken"] == [revision]
    assert {one["revision"] for one in found["scenarios"]} == {revision}


def test_a_client_of_another_revision_is_left_out(tmp_path: Path) -> None:
    code = GOOD.replace(
        "server.stdout.readline()\nsay(method",
        "if '2025-11-25' not in server.stdout.readline().decode(): sys.exit(1)\nsay(method",
    )
    where = ("--scenario", "tools_call", "--spec-version", "2025-06-18")

    assert run(tmp_path, code, *where) == 0
    assert report(tmp_path)["scenarios"][0]["why"] == "the client does not speak 2025-06-18"

    assert run(tmp_path, ASKED + "sys.exit(1)\n", *where) == 2
    assert played(tmp_path) == {"tools_call": "crashed"}


def test_parts_of_both_eras_and_of_none_speak_the_named_revision(tmp_path: Path) -> None:
    where = ("--scenario", "progress", "--spec-version", "2026-07-28")

    assert run(tmp_path, MODERN, *where) == 0

    assert report(tmp_path)["revisions"]["spoken"] == ["2026-07-28"]
    both = find("auth", "2025-06-18")
    assert (both.modern, both.both, both.spoken()) == (False, False, ["2025-06-18"])


def test_each_scenario_that_fits_a_revision_is_played_once() -> None:
    fit = {name for name in scenarios() if not without(name, "2026-07-28")}
    assert {"cancel-stateless", "progress", "auth"} <= fit
    assert not {"cancel", "questions", "older", "auth-2025-03-26"} & fit

    fit = {name for name in scenarios() if not without(name, "2025-06-18")}
    assert {"cancel", "questions", "older", "auth"} <= fit
    assert not {"cancel-stateless", "restart", "auth-2025-03-26"} & fit


def test_the_transport_of_2024_11_05_is_not_spoken(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, GOOD, "--http", "--spec-version", "2024-11-05") == 2

    assert "2024-11-05 has another transport over HTTP" in capsys.readouterr().err


def test_clients_run_at_the_same_time_and_are_reported_in_order(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    wait = (
        f"import os, pathlib, time\nthere = pathlib.Path({str(there)!r})\n"
        "(there / os.environ['MCP_CONFORMANCE_SCENARIO']).touch()\n"
        "while len([*there.iterdir()]) < 2: time.sleep(0.01)\n"
    )
    which = ("--scenario", "progress", "--scenario", "tools_call")

    assert run(tmp_path, wait + GOOD + CLOSE, *which, "--jobs", "2") == 0

    assert [*played(tmp_path)] == ["progress", "tools_call"]


def test_the_time_of_a_run_is_not_that_of_its_conversations(tmp_path: Path) -> None:
    own = tmp_path / "seconds"
    begin = "import pathlib, time\nbegan = time.monotonic()\n"
    end = f"\npathlib.Path({str(own)!r}).write_text(str(time.monotonic() - began))\n"

    assert run(tmp_path, begin + GOOD + CLOSE + end, "--scenario", "progress") == 0

    assert report(tmp_path)["summary"]["seconds"] >= round(float(own.read_text()), 3)


def test_an_interruption_ends_all_clients(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = Stage.begin

    def cut(*given: Any) -> None:
        begin(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(Stage, "begin", cut)
    which = ("--scenario", "progress", "--scenario", "tools_call")

    assert run(tmp_path, GOOD + "import time\ntime.sleep(60)", *which, "--jobs", "2") == 130


def test_the_end_of_a_client_does_not_kill_one_that_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = []
    monkeypatch.setattr(client_process, "sweep", lambda _mark: held.append(STARTS.locked()))

    assert run(tmp_path, GOOD + CLOSE, "--scenario", "tools_call") == 0

    assert held == [True]


HANDLER = "import os\nif os.environ['MCP_CONFORMANCE_SCENARIO'] != {name!r}: raise SystemExit(9)\n"
FINDS = """
with post({"id": 2, "method": "tools/list"}, **session) as answer:
    assert b"test_client_elicitation_defaults" in answer.read()
"""


@cases(
    ("elicitation-sep1034-client-defaults", None),
    ("elicitation-defaults", None),
    ("tools_call", "tools_call"),
)
def test_a_client_of_the_official_suite_gets_each_name_and_then_tools_call(
    tmp_path: Path, name: str, played_as: str | None
) -> None:
    code = HANDLER.format(name=name) + TRANSPORT + FINDS
    words = ["--scenario", "questions", "--json", str(tmp_path / "j"), "--"]

    assert main(["client", *words, sys.executable, "-c", code]) == 0

    (found,) = report(tmp_path)["scenarios"]
    assert (found["outcome"], found.get("played_as")) == ("judged", played_as)


def bad_recording(tmp_path: Path) -> Path:
    """Record a client that uses an id twice over HTTP."""
    again = "post({'id': 1, 'method': 'tools/list'}, **session).close()\n"
    words = ["--http", "--scenario", "tools_call", "--save", str(tmp_path / "r"), "-q", "--"]
    assert main(["client", *words, sys.executable, "-c", TRANSPORT + again]) == 1
    return tmp_path / "r" / "tools_call"


@cases(
    ((), ["initialize", "tools/list", "client-request-id-unique"], []),
    (("--tail", "1"), [".jsonl"], ["notifications/initialized"]),
    (("--method", "tools/*"), ["tools/list", "5"], ["notifications/initialized", "serverInfo"]),
    (("--broken",), ["client-request-id-unique"], ["notifications/initialized"]),
    (("--headers",), ["Mcp-Session-Id: ", "POST /mcp", "200 OK"], []),
    (("--unjudged",), ["initialize", "tools/list"], ["client-request-id-unique"]),
)
def test_a_recording_is_shown_in_part(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    there: list[str],
    absent: list[str],
) -> None:
    folder = bad_recording(tmp_path)
    capsys.readouterr()

    assert main(["tap", "show", str(folder), *options]) == 0

    shown = capsys.readouterr().out
    assert [one for one in there if one not in shown] == []
    assert [one for one in absent if one in shown] == []


@cases("--broken", "--until-broken")
def test_what_is_not_judged_breaks_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    assert main(["tap", "show", str(tmp_path), "--unjudged", option]) == 2

    assert "--unjudged" in capsys.readouterr().err


def test_a_broken_rule_ends_the_lines_and_the_status_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = bad_recording(tmp_path)
    capsys.readouterr()

    assert main(["tap", "show", str(folder), "--until-broken"]) == 1

    assert "client-request-id-unique" in capsys.readouterr().out.splitlines()[-1]


def test_lines_are_shown_as_they_are_recorded_each_once(tmp_path: Path) -> None:
    """A rule that an earlier line broke is shown when it is seen."""
    whole = next(bad_recording(tmp_path).glob("*.jsonl"))
    lines = whole.read_bytes().splitlines(keepends=True)
    file = tmp_path / "grows" / whole.name
    file.parent.mkdir()
    follower = show.Follower(file.parent, 100, show.ALL)
    said = []
    for line in lines:
        with file.open("ab") as sink:
            sink.write(line)
        said.append([*follower.news()])

    assert [*follower.news()] == []
    text = "\n".join(itertools.chain.from_iterable(said))
    assert text.count("tools/list") == text.count("client-request-id-unique: ") == 1
    assert follower.broken
    assert "no answer" not in text


def test_a_page_has_the_lines_and_no_markup_of_others(tmp_path: Path) -> None:
    folder = bad_recording(tmp_path)
    (file,) = folder.iterdir()
    file.write_text(file.read_text().replace("add_numbers", "<script>alert(1)</script>"))

    assert main(["tap", "show", str(folder), "--html", str(tmp_path / "p.html")]) == 0

    text = (tmp_path / "p.html").read_text()
    assert "client-request-id-unique" in text
    assert "<script" not in text
    assert "&lt;script" in text


def test_the_table_of_official_scenarios_has_those_of_our_parts() -> None:
    text = (CHECKOUT / "docs" / "guides" / "client-sdk.md").read_text("utf-8")
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    theirs, ours = (
        {*re.findall("`([^`]+)`", " ".join(column))} for column in zip(*rows, strict=True)
    )

    assert ours <= {*scenarios()}
    named = {word for part in scenarios().values() for word in (part.official or "").split()}
    assert named - {"elicitation-defaults"} <= theirs


@cases(
    ("auth-dpop", "the scenario auth-dpop is of a draft"),
    ("stderr", "the scenario stderr needs stdio"),
    ("silly", "silly"),
)
def test_no_scenario_is_played_if_a_named_one_cannot_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, why: str
) -> None:
    ran = tmp_path / "ran"
    code = f"open({str(ran)!r}, 'w')\n" + GOOD

    assert run(tmp_path, code, "--http", "--scenario", "tools_call", "--scenario", name) == 2
    assert why in capsys.readouterr().err
    assert not ran.exists()


@cases(("progress", 1), ("tools_call", 2))
def test_a_scenario_that_cannot_be_run_takes_no_verdict_of_another(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    status: int,
) -> None:
    play = drive.play

    def fails(target: Target, scenario: str, *more: Any, **named: Any) -> Played:
        if scenario == name:
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return play(target, scenario, *more, **named)

    monkeypatch.setattr(drive, "play", fails)
    code = GOOD + "say(id=1, method='tools/list')\n" + CLOSE  # the same id again
    words = ("--scenario", "tools_call", "--scenario", "progress")

    assert run(tmp_path, code, *words) == status
    if status == 1:
        assert played(tmp_path) == {"tools_call": "judged", "progress": "crashed"}
    said = capsys.readouterr()
    assert os.strerror(errno.EAGAIN) in said.out + said.err


def test_a_scenario_of_a_draft_is_played_only_where_its_chapter_is_selected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, GOOD, "--http", "--scenario", "auth-dpop") == 2
    assert "the scenario auth-dpop is of a draft: add --select dpop" in capsys.readouterr().err

    client = Settings(client=(sys.executable, "-c", GOOD), client_http=True)
    drafts = {name for name, part in scenarios().items() if part.draft}
    for words, extra in (((), set()), (("clients",), set()), (("clients/*",), drafts)):
        scenes = check._Scenes(client, Target(command=client.client), Choice(select=words))
        assert {*scenes.fit()} & drafts == extra


def test_the_command_that_repeats_a_scenario_of_a_draft_selects_it(tmp_path: Path) -> None:
    command = (sys.executable, http_client.__file__, "client-dpop-target", "{server}")
    client = Settings(client=command, client_http=True, scenario=("auth-dpop",))

    found = check.check(client, Choice(select=("dpop",)))

    (broken,) = found.of(Outcome.FAIL)
    assert broken.gravest.replay == (
        *("--scenario", "auth-dpop", "--select", "dpop", "--select", "clients"),
    )


def test_each_draft_on_clients_has_a_scenario() -> None:
    chapters = {clause.chapter for clause in load(CLIENTS).catalogue if clause.draft}

    assert {part.draft for part in scenarios().values()} == {"", *chapters}


def test_shards_have_each_scenario_once(tmp_path: Path) -> None:
    names = ("tools_call", "progress", "pagination")
    which = [word for name in names for word in ("--scenario", name)]
    found: list[str] = []
    for shard in ("1/2", "2/2"):
        run(tmp_path, GOOD + CLOSE, *which, "--shard", shard)
        found += played(tmp_path)

    assert sorted(found) == sorted(names)


def known(tmp_path: Path, outcome: str, *more: str) -> tuple[str, ...]:
    file = tmp_path / "known.toml"
    rows = ["[[known]]", 'scenario = "progress"', f'outcome = "{outcome}"', 'reason = "#12"', *more]
    file.write_text("\n".join(rows) + "\n")
    return "--baseline", str(file)


BOTH = ("--scenario", "tools_call", "--scenario", "progress")


def test_a_scenario_in_trouble_fails_only_if_scenarios_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = BROKEN + GOOD + CLOSE

    assert run(tmp_path, code, *BOTH) == 0
    assert run(tmp_path, code, *BOTH, "--scenario-baseline") == 1
    assert "1 scenario not judged to the end" in capsys.readouterr().out
    assert report(tmp_path)["gate"]["scenarios"] == 1
    badge = str(tmp_path / "badge.json")
    assert main(["report", str(tmp_path / "j"), "--badge", badge]) in {0, 1}
    assert json.loads((tmp_path / "badge.json").read_text())["color"] == "red"


def test_an_entry_accepts_what_came_of_a_scenario(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = known(tmp_path, "never connected")

    assert run(tmp_path, BROKEN + GOOD + CLOSE, *BOTH, "--scenario-baseline", *file) == 0

    assert report(tmp_path)["scenarios"][1]["known"] == "#12"
    assert "#12" in capsys.readouterr().out


@cases("did not end", "never connected")
def test_an_entry_for_another_outcome_is_stale(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], outcome: str
) -> None:
    code = (BROKEN if outcome == "did not end" else "") + GOOD + CLOSE

    assert run(tmp_path, code, *BOTH, *known(tmp_path, outcome)) == 1

    assert "what came of the scenario now" in capsys.readouterr().out


@cases(
    ('scenario = "progres"\noutcome = "crashed"', "did you mean 'progress'"),
    ('scenario = "progress"', "outcome must be one of"),
    ('scenario = "progress"\noutcome = "judged"', "outcome must be one of"),
    ('scenario = "progress"\nclause = "client-utf8"', "one of them"),
)
def test_a_wrong_entry_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], entry: str, why: str
) -> None:
    file = tmp_path / "known.toml"
    file.write_text(f'[[known]]\n{entry}\nreason = "x"\n')

    assert run(tmp_path, GOOD, "--baseline", str(file)) == 2

    assert why in capsys.readouterr().err


def test_an_update_writes_scenarios_beside_clauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    few = {name: scenarios()[name] for name in ("tools_call", "progress")}
    monkeypatch.setattr("mcp_touchstone.tap.check.scenarios", lambda: few)
    again = "say(id=1, method='tools/list')\n"
    code = BROKEN + GOOD + again + CLOSE

    assert run(tmp_path, code, "--scenario-baseline", "--update-baseline") == 0

    text = (tmp_path / "touchstone-baseline.toml").read_text()
    assert 'scenario = "progress"' in text
    assert 'clause = "client-request-id-unique"' in text
    assert run(tmp_path, code, "--scenario-baseline") == 0
    assert run(tmp_path, code, "--scenario-baseline", "--shard", "2/2") in {0, 2}
    assert report(tmp_path).get("baseline", {}).get("stale") == []


ONE_THING = """
import os, shlex
method, name, given, line = sys.argv[1:]
server = subprocess.Popen(shlex.split(line), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
params["protocolVersion"] = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
say(id=1, method="initialize", params=params)
server.stdout.readline()
say(method="notifications/initialized")
about = {"name": name, "arguments": json.loads(given)}
about = {"uri": name} if method == "resources/read" else about
say(id=2, method=method, params={} if method.endswith("list") else about)
answer = json.loads(server.stdout.readline())
"""


def one_thing(tmp_path: Path) -> str:
    """Write a program that sends one request, and return its words."""
    head = GOOD.replace(GOOD.partition("info = ")[0], "\nimport json, subprocess, sys\n")
    file = tmp_path / "one_thing.py"
    file.write_text(
        head.partition('say(id=1, method="initialize"')[0]
        + ONE_THING
        + CLOSE
        + "sys.exit('error' in answer)\n"
    )
    return f"{sys.executable} {file}"


@cases(("tools_call", 2), ("resources", 5), ("order", 3))
def test_a_program_that_does_one_thing_takes_the_steps(
    tmp_path: Path, scenario: str, processes: int
) -> None:
    program = one_thing(tmp_path)
    words = [
        *("--steps", f"{program} {{method}} {{tool}} {{arguments}} {{server_line}}"),
        *("--steps", f"resources/read={program} {{method}} {{uri}} {{arguments}} {{server_line}}"),
    ]

    assert main(["client", "--scenario", scenario, "--json", str(tmp_path / "j"), *words]) == 0

    assert played(tmp_path) == {scenario: "judged"}
    assert report(tmp_path)["summary"]["processes"] == processes


def test_the_look_for_its_sdk_is_no_time_of_a_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def looks_long(*_given: object) -> SdkIdentity:
        time.sleep(2.5)
        return UNKNOWN

    monkeypatch.setattr("mcp_touchstone.tap.client_process.identity", looks_long)
    words = ["--scenario", "tools_call", "--json", str(tmp_path / "j"), "--timeout", "2", "--"]
    code = "import time; time.sleep(1.5)"

    main(["client", *words, sys.executable, "-c", code, "{server}"])

    assert played(tmp_path) == {"tools_call": "never connected"}


def test_a_command_connects_in_a_scenario_without_steps(tmp_path: Path) -> None:
    words = [
        "--steps",
        f"tools/list={one_thing(tmp_path)} {{method}} '' {{arguments}} {{server_line}}",
    ]

    assert main(["client", "--scenario", "version", "--json", str(tmp_path / "j"), *words]) == 0

    warned = [one["clause"] for one in report(tmp_path)["verdicts"] if one["outcome"] == "warn"]
    assert warned == ["client-leaves-unknown-version"]
    assert report(tmp_path)["summary"]["processes"] == 1


def test_a_step_without_a_command_is_passed_over(tmp_path: Path) -> None:
    words = [
        "--steps",
        f"tools/list={one_thing(tmp_path)} {{method}} '' {{arguments}} {{server_line}}",
    ]

    assert main(["client", "--scenario", "tools_call", "--json", str(tmp_path / "j"), *words]) == 0

    assert report(tmp_path)["summary"]["processes"] == 1


def test_commands_take_the_steps_that_send_no_request(tmp_path: Path) -> None:
    tell = f"{sys.executable} -c 'import sys; open(sys.argv[1], \"w\").write(sys.argv[2])'"
    words = [
        *(
            "--steps",
            f"tools/list={one_thing(tmp_path)} {{method}} '' {{arguments}} {{server_line}}",
        ),
        *("--steps", f"answer={tell} {tmp_path / 'answer'} '{{action}} {{content}}'"),
        *("--steps", f"end={tell} {tmp_path / 'end'} '{{method}}'"),
        *("--scenario", "questions", "--scenario", "reopened"),
    ]

    assert main(["client", "--json", str(tmp_path / "j"), *words]) == 0

    assert (tmp_path / "answer").read_text() == 'accept {"name": "Ada Lovelace", "count": 7}'
    assert (tmp_path / "end").read_text() == ""
    assert report(tmp_path)["summary"]["processes"] == 3


def test_a_scenario_without_a_command_for_a_step_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = {name: scenarios()[name] for name in ("tools_call", "logging", "prompts")}
    monkeypatch.setattr("mcp_touchstone.tap.check.scenarios", lambda: few)
    words = [
        "--steps",
        f"tools/list={one_thing(tmp_path)} {{method}} '' {{arguments}} {{server_line}}",
    ]

    assert main(["client", "--json", str(tmp_path / "j"), *words]) == 0

    assert played(tmp_path) == {
        "tools_call": "judged",
        "logging": "judged",
        "prompts": "left out",
    }


def test_the_words_of_a_step_are_filled() -> None:
    step = {"call": "add", "arguments": {"a": 2, "text": "x y"}}
    reply = {"answer": "accept", "content": {"name": "Ada"}}
    command = ["call", "{tool}", "{pairs}", "--json={arguments}", "{method}", "{action} {content}"]

    assert [*stepper.filled(command, step, reply)] == [
        *("call", "add", "a=2", "text=x y", '--json={"a": 2, "text": "x y"}', "tools/call"),
        'accept {"name": "Ada"}',
    ]
    assert [*stepper.filled(["{action} {content}"], step, {})] == ["cancel {}"]


def test_a_command_may_be_known_to_an_issuer() -> None:
    command = ["call", "--id={client_id}", "--secret={client_secret}"]

    known = {"client_id": "c1", "client_secret": "s1"}
    assert [*stepper.filled(command, {}, {}, known)] == ["call", "--id=c1", "--secret=s1"]
    assert [*stepper.filled(command, {}, {}, {"client_id": "c1"})] == ["call", "--id=c1"]
    assert [*stepper.filled(command, {}, {})] == ["call"]


@cases(("", "left out"), ("--id={client_id}", "never connected"))
def test_a_command_that_takes_no_client_id_is_given_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, outcome: str
) -> None:
    one = {"auth-pre-registered": scenarios()["auth-pre-registered"]}
    monkeypatch.setattr("mcp_touchstone.tap.check.scenarios", lambda: one)
    words = ["--steps", f"tools/list={sys.executable} -c 'raise SystemExit(3)' {option}"]

    main(["client", "--http", "--json", str(tmp_path / "j"), *words])

    assert played(tmp_path) == {"auth-pre-registered": outcome}


@cases("tools/call", *stepper.OWN)
def test_a_command_is_for_the_step_before_it(name: str) -> None:
    assert values.step(f"{name}=client {{uri}}") == (name, "client {uri}")


def test_an_option_is_repeated_for_each_argument() -> None:
    words = ["get", "{prompt}", "--arg={pairs}"]

    step = {"prompt": "greet", "arguments": {"name": "Ada", "of": "{tool}"}}
    assert [*stepper.filled(words, step, {})] == [
        *("get", "greet", "--arg=name=Ada", "--arg=of={tool}")
    ]
    assert [*stepper.filled(words, {"prompt": "greet"}, {})] == ["get", "greet"]


def test_a_command_is_not_told_to_call_each_tool_of_a_list(tmp_path: Path) -> None:
    steps = [{"list": "tools"}, {"call": "*", "a": 2, "b": 3}, {"call": "add"}]
    note = f"open({str(tmp_path / 'calls')!r}, 'a').write(sys.argv[1] + ' ')"
    words = ["--step", "*", sys.executable, "-c", f"import sys; {note}", "{method}{tool}"]

    done = subprocess.run(
        [sys.executable, stepper.__file__, *words],
        env={**os.environ, "MCP_CONFORMANCE_CONTEXT": json.dumps({"steps": steps})},
        check=False,
    )

    assert done.returncode == 0
    assert (tmp_path / "calls").read_text() == "tools/list tools/calladd "


def test_the_command_that_failed_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--steps", f"tools/list={sys.executable} -c 'raise SystemExit(3)'"]

    assert main(["client", "--scenario", "tools_call", *words]) == 2

    shown = capsys.readouterr()
    assert "the command of tools/list ended with exit status 3" in shown.out + shown.err


@cases("'", "tools/list=", "")
def test_steps_that_are_no_command_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    with pytest.raises(SystemExit) as left:
        main(["client", "--steps", text])

    assert left.value.code == 2
    assert "--steps" in capsys.readouterr().err


def test_steps_exclude_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["client", "--steps", "x {server}", "--", "y"]) == 2

    assert "keep one" in capsys.readouterr().err
