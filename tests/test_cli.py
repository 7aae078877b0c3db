"""The command line as a user meets it: options, exit codes, one line for each mistake."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from pytest_subprocess import FakeProcess

from mcp_touchstone.cli import main
from mcp_touchstone.report.machine import SCHEMA
from tests.conftest import HERE, MUTANTS, mutant_command

ROOT = HERE.parent


def touchstone(*words: str, cwd: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    """Run the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "mcp_touchstone", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8"},
    )


def test_what_was_printed_before_a_mistake_is_not_lost_on_the_way_out() -> None:
    code = (
        "import sys; from mcp_touchstone import cli;"
        "cli.main = lambda: print('first', end='') or print('then', file=sys.stderr) or 2;"
        "cli.program()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )

    assert (done.returncode, done.stdout, done.stderr) == (2, "first", "then\n")


def test_without_a_server_the_reference_server_is_judged_and_conforms(tmp_path: Path) -> None:
    done = touchstone("check", "--json", str(tmp_path / "out.json"))
    report = json.loads((tmp_path / "out.json").read_text("utf-8"))

    assert done.returncode == 0, done.stdout
    assert "conforming: no clause is broken" in done.stdout
    assert report["summary"]["clauses"]["pass"] > 80
    for outcome in ("fail", "broken", "warn", "note"):
        assert report["summary"]["clauses"][outcome] == 0
    assert len(report["revisions"]["spoken"]) == 5


def test_the_json_report_keeps_to_the_schema_we_ship(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    schema = json.loads(SCHEMA.read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)

    for server in ([], ["--", *mutant_command("RefusesPings")], ["--", "false"]):
        touchstone("check", "--select", "ping", "--json", str(path), *server)
        jsonschema.validate(json.loads(path.read_text("utf-8")), schema)


def test_a_broken_clause_is_exit_1_with_wire_and_repeat_command() -> None:
    done = touchstone("check", "--select", "ping", "--", *mutant_command("RefusesPings"))

    assert done.returncode == 1
    assert "FAIL  ping-empty-response" in done.stdout
    assert "▸" in done.stdout
    assert "again      mcp-touchstone check -v --select ping-empty-response" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("not conforming")


def test_the_repeat_command_repeats_it() -> None:
    done = touchstone("check", "--select", "ping", "--", *mutant_command("RefusesPings"))
    line = next(li for li in done.stdout.splitlines() if li.strip().startswith("again"))
    words = line.split("mcp-touchstone ", 1)[1].replace("'", "").split()

    assert touchstone(*words).returncode == 1


def test_revision_level_and_select_narrow_the_plan(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    touchstone(
        "check", "--revision", "2025-06-18", "--level", "SHOULD", "--select", "basic/lifecycle",
        "--json", str(path),
    )  # fmt: skip
    verdicts = json.loads(path.read_text("utf-8"))["verdicts"]

    assert verdicts
    assert {v["revision"] for v in verdicts} == {"2025-06-18"}
    assert {v["chapter"] for v in verdicts} == {"lifecycle"}
    assert {v["level"] for v in verdicts} <= {"SHOULD", "SHOULD NOT"}


def test_strict_turns_a_broken_should_into_a_failure() -> None:
    words = ("check", "--select", "meta-server-info", "--revision", "2026-07-28")
    server = ("--", *mutant_command("AnswersAnonymously"))

    assert touchstone(*words, *server).returncode == 0
    assert touchstone(*words, "--strict", *server).returncode == 1


def test_save_writes_a_numbered_transcript_for_each_process(tmp_path: Path) -> None:
    touchstone("check", "--select", "ping", "--save", str(tmp_path / "wire"))
    files = sorted((tmp_path / "wire").iterdir())

    assert len(files) >= 5
    assert "→ " in files[0].read_text("utf-8")
    assert "initialize" in files[0].read_text("utf-8")


def test_quiet_shows_failures_and_the_count_only() -> None:
    done = touchstone("check", "-q", "--select", "ping")

    assert len(done.stdout.strip().splitlines()) == 2


def test_verbose_shows_what_is_not_judged() -> None:
    done = touchstone("check", "-v", "--select", "ping", "--", *mutant_command("RefusesPings"))

    assert "judged by" in done.stdout
    assert "not judged" in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "--", "no-such-program"], "no program 'no-such-program'"),
        (["check", "--", "./README.md"], "may not be run"),
        (["check", "--cwd", "/no/such/folder", "--", "true"], "--cwd"),
        (["check", "--select", "pnig"], "did you mean 'ping'"),
        (["check", "--select", "caching-access-control"], "is not judged: "),
        (["check", "--revision", "2025-01-01"], "2025-11-25"),
        (["check", "--level", "must"], "MUST"),
        (["check", "--timeout", "soon"], "is no number of seconds"),
        (["check", "--timeout", "-1"], "is no number of seconds"),
        (["check", "--jobs", "0"], "is no number from 1 to 64"),
        (["check", "--env", "NOVALUE"], "write NAME=VALUE"),
        (["check", "--json", "/no/such/folder/out.json"], "does not exist; make it first"),
        (["check", "--report", "out.json"], "write KIND:PATH, where KIND is badge,"),
        (["check", "--report", "junit:"], "write KIND:PATH"),
        (["check", "--report", "serif:x"], "did you mean 'sarif'"),
        (["check", "--report", "xyz:x"], "there are badge, "),
        (["check", "--report", "junit:/no/such/x.xml"], "does not exist; make it first"),
        (["check", "--report", "sarif:docs"], "docs is a folder; name a file in it"),
        (["check", "--report", "sarif:x", "--report", "junit:./x"], "name two files"),
        (["check", "--save", "/no/such/folder/wire"], "does not exist; make it first"),
        (["check", "--baseline", "/no/such.toml"], "--update-baseline writes it"),
        (["check", "--baseline", "README.md"], "README.md: "),
        (["check", "--baseline", "x.toml", "--no-baseline"], "drop one"),
        (["check", "--fail-on", "shuold"], "did you mean 'should'"),
        (["check", "--fail-on", "must", "--fail-on", "may"], "name one floor"),
        (["check", "--since", "/no/such.json"], "`check --json /no/such.json` writes it"),
        (["diff", "README.md", "README.md"], "it is no JSON"),
        (["diff", "tests/cedarscript_cases.json", "x"], "name one that `check --json` wrote"),
        (["diff", "x.json"], "NEW.json"),
        (["check", "--config", "/no/such.toml"], "`mcp-touchstone init` writes"),
        (["check", "--config", "README.md"], "README.md: it is no JSON"),
        (["check", "--config", "tox.ini"], "tox.ini: it is no JSON"),
        (["check", "--config", "tests/cedarscript_cases.json"], "neither mcpServers nor servers"),
        (["check", "--config", "pyproject.toml"], "it has no [tool.mcp-touchstone]"),
        (["check", "--target", "x"], "name a file with --config"),
        (["check", "--target", "x", "--", "true"], "name the file it stands in"),
        (["init"], "name the command of your server"),
        (["init", "--output", "README.md", "--", "true"], "--force replaces it"),
        (["explain", "ping-empty-respons"], "did you mean 'ping-empty-response'"),
        (["list", "pnig"], "did you mean 'ping'"),
        (["chekc"], "--help"),
        ([], "--help"),
    ],
)
def test_a_mistake_is_one_line_that_says_how_to_mend_it(words: list[str], said: str) -> None:
    done = touchstone(*words)
    lines = done.stderr.strip().splitlines()

    assert done.returncode == 2
    assert said in done.stderr
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("mcp-touchstone")


def test_from_nothing_to_green_with_known_failures_and_red_once_they_are_mended(
    tmp_path: Path,
) -> None:
    words = ("check", "--select", "ping", "--revision", "2025-11-25")
    report = tmp_path / "out.json"
    bad, good = ("--", *mutant_command("RefusesPings")), ("--", sys.executable, "-m")
    server = (*good, "mcp_touchstone", "serve", "--root", "{root}")

    assert touchstone(*words, "-q", *bad, cwd=tmp_path).returncode == 1
    first = touchstone(*words, "--update-baseline", *bad, cwd=tmp_path)
    assert (first.returncode, first.stderr) == (0, "")
    assert "+ ping-empty-response (2025-11-25)" in first.stdout
    second = touchstone(*words, "--json", str(report), *bad, cwd=tmp_path)
    assert second.returncode == 0
    assert "known  1 known failure, excused by touchstone-baseline.toml" in second.stdout
    assert "nothing new" in second.stdout.splitlines()[-1]
    document = json.loads(report.read_text("utf-8"))
    jsonschema.validate(document, json.loads(SCHEMA.read_text("utf-8")))
    assert document["gate"] == {"fail_on": [], "failed": 0, "known": 1}
    assert touchstone(*words, "-q", "--no-baseline", *bad, cwd=tmp_path).returncode == 1
    mended = touchstone(*words, "--json", str(report), *server, cwd=tmp_path)
    assert mended.returncode == 1, mended.stdout
    assert "STALE  ping-empty-response" in mended.stdout
    assert mended.stdout.splitlines()[-1].startswith("the baseline is no longer true")
    document = json.loads(report.read_text("utf-8"))
    jsonschema.validate(document, json.loads(SCHEMA.read_text("utf-8")))
    assert [row["rule"] for row in document["baseline"]["stale"]] == ["ping-empty-response"]


def test_only_what_is_worse_than_in_an_older_report_fails(tmp_path: Path) -> None:
    words = ("check", "--select", "ping", "--revision", "2025-11-25")
    bad, good = mutant_command("RefusesPings"), [sys.executable, "-m", "mcp_touchstone"]
    server = ("--", *good, "serve", "--root", "{root}")
    for name, command in (("good", server), ("bad", ("--", *bad))):
        touchstone(*words, "-q", "--json", f"{name}.json", *command, cwd=tmp_path)

    worse = touchstone("diff", "good.json", "bad.json", cwd=tmp_path)
    assert worse.returncode == 1
    assert "NEW  1 finding\n  ping-empty-response  2025-11-25  (was pass, now fail)" in worse.stdout
    assert worse.stdout.splitlines()[-1].startswith("worse than before")
    better = touchstone("diff", "bad.json", "good.json", "--format", "markdown", cwd=tmp_path)
    assert better.returncode == 0
    assert better.stdout.startswith("**better than before**")
    same = touchstone(*words, "--since", "bad.json", "--json", "new.json", "--", *bad, cwd=tmp_path)
    assert same.returncode == 0, same.stdout
    assert "still open  1 finding" in same.stdout
    assert same.stdout.splitlines()[-1] == "not worse than before: nothing new since bad.json"
    document = json.loads((tmp_path / "new.json").read_text("utf-8"))
    jsonschema.validate(document, json.loads(SCHEMA.read_text("utf-8")))
    assert document["since"]["counts"]["still open"] == 1
    assert touchstone(*words, "--since", "good.json", "--", *bad, cwd=tmp_path).returncode == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("comand = 'x'", "touchstone.toml: unknown key 'comand'; did you mean 'command'?"),
        ("command = 'x'\ntimeout = 0", "touchstone.toml: timeout: '0' is no number of seconds"),
        ("command = 'x'\nrevision = '2025-11-26'", "touchstone.toml: revision: invalid choice"),
        ("command = 'x'\nfail-on = 'shuold'", "did you mean 'should'"),
        ("command = 'no-such-program'", "no program 'no-such-program'"),
        ("[targets.a]\n[targets.b]", "it names no server; write command"),
        ("command = ", "it is no TOML"),
    ],
)
def test_a_mistake_in_a_configuration_is_one_line_too(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "touchstone.toml").write_text(text)
    done = touchstone("check", cwd=tmp_path)

    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert said in done.stderr


def test_a_configured_server_is_judged_and_repeated_without_its_values(tmp_path: Path) -> None:
    entry = {
        "command": sys.executable,
        "args": [str(MUTANTS), "RefusesPings", "{root}"],
        "env": {"KEY": "s3cret"},
    }
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": entry, "b": {}}}))
    words = ("--config", ".mcp.json", "--target", "a")
    done = touchstone("check", "--select", "ping", "--revision", "2025-11-25", *words, cwd=tmp_path)

    assert done.returncode == 1, done.stdout + done.stderr
    assert "s3cret" not in done.stdout
    again = next(line for line in done.stdout.splitlines() if line.strip().startswith("again"))
    assert again.endswith("--revision 2025-11-25 --config .mcp.json --target a")
    assert touchstone(*shlex.split(again)[2:], cwd=tmp_path).returncode == 1


def test_a_floor_decides_what_fails_the_gate() -> None:
    words = ("check", "--select", "ping", "--revision", "2025-11-25")
    never = touchstone(*words, "--fail-on", "never", "--", *mutant_command("RefusesPings"))

    assert never.returncode == 0
    assert "FAIL  ping-empty-response" in never.stdout
    assert never.stdout.splitlines()[-1] == "passed: 1 failure below --fail-on never"


def test_a_revision_the_server_does_not_speak_is_said() -> None:
    server = ("--", *mutant_command("SpeaksNoHandshakeRevision"))
    done = touchstone("check", "--revision", "2025-11-25", *server)

    assert done.returncode == 2
    assert "--revision 2025-11-25: the server speaks 2026-07-28" in done.stderr


def test_explain_says_everything_about_a_clause() -> None:
    done = touchstone("explain", "ping-empty-response")

    for words in ("MUST", "2024-11-05", "judged", "not flagged", "https://modelcontextprotocol.io"):
        assert words in done.stdout
    assert done.returncode == 0


def test_explain_follows_a_merged_id() -> None:
    done = touchstone("explain", "discover-server-info")

    assert done.stdout.startswith("discover-server-info is now part of meta-server-info")


def test_list_shows_every_clause_with_its_state() -> None:
    everything = touchstone("list").stdout.splitlines()
    chapter = touchstone("list", "basic/ping").stdout.splitlines()

    assert len(everything) > 400
    assert sum(line.startswith("  ") for line in chapter) == 5


def test_version_and_list_import_nothing_heavy() -> None:
    program = (
        "import sys; from mcp_touchstone.cli import main; main(['list', 'ping']);"
        "heavy = {'pytest', 'hypothesis', 'jsonschema', 'rich', 'psutil', 'subprocess'};"
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert done.returncode == 0, done.stderr


def test_list_and_explain_start_no_process(fp: FakeProcess) -> None:
    """pytest-subprocess refuses every process nobody registered."""
    fp.allow_unregistered(allow=False)

    assert main(["list", "ping"]) == 0
    assert main(["explain", "ping-empty-response"]) == 0
    assert list(fp.calls) == []


def test_a_closed_pipe_is_no_traceback() -> None:
    command = f"{sys.executable} -m mcp_touchstone list | head -1"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, cwd=ROOT
    )

    assert done.stderr == ""


def test_serve_runs_the_reference_server() -> None:
    line = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        '"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "mcp_touchstone", "serve"],
        input=line,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )

    assert json.loads(done.stdout)["result"]["protocolVersion"] == "2025-11-25"
    assert done.returncode == 0


def test_a_relative_program_is_found_from_the_users_folder(tmp_path: Path) -> None:
    script = tmp_path / "server.sh"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m reference_server\n')
    script.chmod(0o755)

    done = touchstone(
        "check", "-q", "--select", "ping", "--env", f"PYTHONPATH={ROOT}", "--", "./server.sh",
        cwd=tmp_path,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_server_has_a_home_of_its_own_and_the_root_is_filled_in(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(
        "import os, pathlib, sys\n"
        f"pathlib.Path({str(tmp_path / 'seen')!r}).write_text("
        "os.environ['HOME'] + '\\n' + sys.argv[1] + '\\n' + os.environ['WHERE'])\n"
    )
    touchstone("check", "--env", "WHERE={root}/x", "--", sys.executable, str(script), "{root}")
    home, root, where = (tmp_path / "seen").read_text().splitlines()

    assert "mcp-touchstone-" in home
    assert home != str(Path.home())
    assert root.endswith("/root")
    assert where == f"{root}/x"


TOY = [sys.executable, "-S", str(HERE / "toy_server.py"), "{root}"]


def test_recon_shows_what_there_is_to_judge_with() -> None:
    done = touchstone("recon", "--revision", "2025-11-25", "--", *TOY, "echo", "note")

    assert done.returncode == 0, done.stderr
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "2025-11-25" in lines
    assert "server toy 1" in lines
    assert 'callable-tool tools/call echo {"text": "hello"}' in lines
    assert "readable-resource resources/read note:///1" in lines
    assert "no elicits no elicitation" in lines


def test_recon_as_json_holds_every_example_and_every_reason() -> None:
    done = touchstone(
        "recon", "--json", "--call", 'write={"path": "x"}', "--call", "gone", "--", *TOY,
        "echo", "write", "elicit", "old",
    )  # fmt: skip

    found = json.loads(done.stdout)
    assert found["name"] == "toy 1"
    assert list(found["revisions"]) == ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
    assert found["processes"] == 7
    newest = found["revisions"]["2025-11-25"]
    assert newest["offers"]["elicits"][0]["params"]["name"] == "elicit"
    assert newest["offers"]["elicits"][0]["asked"] == ["elicitation/create"]
    assert "mrtr" not in {*newest["offers"], *newest["lacks"]}
    assert newest["lacks"]["samples"] == "no sampling"
    told = {remark.partition(":")[0] for remark in found["remarks"]}
    assert told == {"--call write", "--call gone"}


def test_recon_of_what_is_no_server_says_why() -> None:
    done = touchstone("recon", "--timeout", "5", "--", sys.executable, "-c", "print('no')")

    assert done.returncode == 2
    assert done.stdout.startswith("nothing could be learnt: initialize got no result")


def test_what_is_named_is_part_of_the_command_that_repeats_a_finding() -> None:
    named = ["--call", 'echo={"text": "a b"}', "--resource", "note:///1", "--prompt", "hello"]

    done = touchstone("check", "--select", "ping", *named, "--", *mutant_command("RefusesPings"))

    again = next(line for line in done.stdout.splitlines() if " again " in line)
    for word in named:
        assert shlex.quote(word) in again
    assert shlex.split(again)[1:4] == ["mcp-touchstone", "check", "-v"]


@pytest.mark.parametrize("text", ["echo=", "echo=red", 'echo=["a"]', '={"a": 1}'])
def test_arguments_that_are_no_json_object_are_refused(text: str) -> None:
    done = touchstone("check", "--call", text)

    assert done.returncode == 2
    assert "write NAME=" in done.stderr
