"""The command line: options, exit codes, and one line for each error."""

import json
import os
import re
import shlex
import sys
from pathlib import Path

import jsonschema
import pytest
from pytest_subprocess import FakeProcess
from syrupy.assertion import SnapshotAssertion

from mcp_touchstone.cli import main
from mcp_touchstone.engine.stages import JOBS
from mcp_touchstone.report.machine import SCHEMA
from tests.cases import cases
from tests.commands import ran, run_here, touchstone
from tests.conftest import HERE, MUTANTS, PROGRESS, mutant_command
from tests.goldens import scrubbed

pytestmark = pytest.mark.slow

ROOT = HERE.parent


def test_output_before_an_error_is_flushed() -> None:
    code = (
        "import sys; from mcp_touchstone import cli;"
        "cli.main = lambda: print('first', end='') or print('then', file=sys.stderr) or 2;"
        "cli.program()"
    )
    done = ran([sys.executable, "-c", code])

    assert (done.returncode, done.stdout, done.stderr) == (2, "first", "then\n")


REFUSAL = '{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "no such vault"}}'


@cases(
    ("print('hello'); sys.exit(3)", "it wrote “hello” in place of a message"),
    ("print('hello')", "it wrote “hello” in place of a message"),
    ("print(); sys.exit(3)", "it wrote “” in place of a message"),
    ("sys.exit(3)", "the server left (status 3)"),
    ("print('{'); print('x' * 9000)", "it wrote “{” in place of a message"),
    (f"print({REFUSAL!r}, end=''); sys.exit(1)", "no such vault"),
)
def test_program_that_ends_without_a_message_is_not_judged(code: str, why: str) -> None:
    done = run_here("check", "--", sys.executable, "-c", f"import sys; {code}")

    assert done.returncode == 2, done.stdout
    assert why in " ".join(done.stdout.split())
    assert "FAIL" not in done.stdout


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_program_that_prints_its_usage_is_not_judged(stream: str) -> None:
    program = f"import sys; print('Usage: serve ROOT\\n\\nROOT  a folder', file=sys.{stream})"
    done = run_here("check", "--", sys.executable, "-c", program)

    assert done.returncode == 2, done.stdout
    assert "its usage" in done.stdout
    assert "FAIL" not in done.stdout


def test_server_that_prints_its_usage_and_goes_on_is_judged() -> None:
    start = "import runpy; runpy.run_path('tests/toy_server.py', run_name='__main__')"
    server = (sys.executable, "-S", "-c", f"print('usage: speak MCP', flush=True); {start}")
    words = ("--select", "stdio-stdout-only-messages", "--revision", "2025-11-25")
    done = run_here("check", *words, "--", *server)

    assert done.returncode == 1, done.stdout
    assert "stdio-stdout-only-messages" in done.stdout


def test_reference_server_conforms(tmp_path: Path) -> None:
    done = run_here("check", "--self", "--json", str(tmp_path / "out.json"))
    report = json.loads((tmp_path / "out.json").read_text("utf-8"))

    assert done.returncode == 0, done.stdout
    assert report["summary"]["clauses"]["pass"] > 80
    for outcome in ("fail", "broken", "warn", "note"):
        assert report["summary"]["clauses"][outcome] == 0
    assert len(report["revisions"]["spoken"]) == 5


def test_json_report_fits_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    schema = json.loads(SCHEMA.read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)

    for server in (["--self"], ["--", *mutant_command("RefusesPings")], ["--", "false"]):
        run_here("check", "--select", "answers_a_ping", "--json", str(path), *server)
        jsonschema.validate(json.loads(path.read_text("utf-8")), schema)


def test_baseline_accepts_known_failures_and_fails_once_they_are_fixed(
    tmp_path: Path, golden: SnapshotAssertion
) -> None:
    words = ("check", "--select", "ping", "--revision", "2025-11-25")
    report = tmp_path / "out.json"
    bad, good = ("--", *mutant_command("RefusesPings")), ("--", sys.executable, "-m")
    server = (*good, "mcp_touchstone", "serve", "--root", "{root}")

    assert run_here(*words, "-q", *bad, cwd=tmp_path).returncode == 1
    first = run_here(*words, "--update-baseline", *bad, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert scrubbed(first.stdout) == golden(name="update")
    second = run_here(*words, "--json", str(report), *bad, cwd=tmp_path)
    assert second.returncode == 0
    assert scrubbed(second.stdout) == golden(name="known")
    document = json.loads(report.read_text("utf-8"))
    jsonschema.validate(document, json.loads(SCHEMA.read_text("utf-8")))
    assert document["gate"] == {"fail_on": [], "failed": 0, "known": 1, "sdk": 0}
    assert run_here(*words, "-q", "--no-baseline", *bad, cwd=tmp_path).returncode == 1
    fixed = run_here(*words, "--json", str(report), *server, cwd=tmp_path)
    assert fixed.returncode == 1, fixed.stdout
    assert scrubbed(fixed.stdout) == golden(name="stale")
    document = json.loads(report.read_text("utf-8"))
    jsonschema.validate(document, json.loads(SCHEMA.read_text("utf-8")))
    assert [row["rule"] for row in document["baseline"]["stale"]] == ["ping-empty-response"]


def test_diff_and_since_fail_only_for_new_findings(
    tmp_path: Path, golden: SnapshotAssertion
) -> None:
    words = ("check", "--select", "ping", "--revision", "2025-11-25")
    bad, good = mutant_command("RefusesPings"), [sys.executable, "-m", "mcp_touchstone"]
    server = ("--", *good, "serve", "--root", "{root}")
    for name, command in (("good", server), ("bad", ("--", *bad))):
        run_here(*words, "-q", "--json", f"{name}.json", *command, cwd=tmp_path)

    worse = run_here("diff", "good.json", "bad.json", cwd=tmp_path)
    assert worse.returncode == 1
    assert scrubbed(worse.stdout) == golden(name="worse")
    better = run_here("diff", "bad.json", "good.json", "--format", "markdown", cwd=tmp_path)
    assert better.returncode == 0
    assert scrubbed(better.stdout) == golden(name="better")
    same = run_here(*words, "--since", "bad.json", "--json", "new.json", "--", *bad, cwd=tmp_path)
    assert same.returncode == 0, same.stdout
    assert scrubbed(same.stdout) == golden(name="same")
    document = json.loads((tmp_path / "new.json").read_text("utf-8"))
    jsonschema.validate(document, json.loads(SCHEMA.read_text("utf-8")))
    assert document["since"]["counts"]["still open"] == 1
    assert run_here(*words, "--since", "good.json", "--", *bad, cwd=tmp_path).returncode == 1


def test_repeat_command_omits_configured_secrets(tmp_path: Path) -> None:
    entry = {
        "command": sys.executable,
        "args": [str(MUTANTS), "RefusesPings", "{root}"],
        "env": {"KEY": "s3cret"},
    }
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"a": entry, "b": {}}}))
    words = ("--config", ".mcp.json", "--target", "a")
    done = run_here(
        "check", "--select", "answers_a_ping", "--revision", "2025-11-25", *words, cwd=tmp_path
    )

    assert done.returncode == 1, done.stdout + done.stderr
    assert "s3cret" not in done.stdout
    again = next(line for line in done.stdout.splitlines() if line.strip().startswith("again"))
    assert again.endswith("--revision 2025-11-25 --config .mcp.json --target a")
    assert run_here(*shlex.split(again)[2:], cwd=tmp_path).returncode == 1


TOY = [sys.executable, "-S", str(HERE / "toy_server.py"), "{root}"]
REFUSES_PINGS = ("--revision", "2025-11-25", "--", *mutant_command("RefusesPings"))
SCREENS = {
    "explain": (0, ["explain", "ping-empty-response"]),
    "explain a merged id": (0, ["explain", "discover-server-info"]),
    "list": (0, ["list", "basic/ping"]),
    "quiet": (0, ["check", "--self", "-q", "--select", "ping"]),
    "verbose": (1, ["check", "-v", "--select", "ping", *REFUSES_PINGS]),
    "below the threshold": (0, ["check", "--select", "ping", "--fail-on", "never", *REFUSES_PINGS]),
    "warning": (0, ["check", "--select", "ping", "--", *mutant_command("AnswersPingsWithAPong")]),
    "unsupported revision": (
        2,
        ["check", "--revision", "2025-11-25", "--", *mutant_command("SpeaksNoHandshakeRevision")],
    ),
    "recon": (
        0,
        ["recon", "--revision", "2025-11-25", "--sandbox", "off", "--", *TOY, "echo", "note"],
    ),
    "recon of no server": (
        2,
        ["recon", "--timeout", "5", "--", sys.executable, "-c", "exit('the key is missing')"],
    ),
}
"""Name -> the exit status, and the command line."""


@pytest.mark.parametrize("name", SCREENS)
def test_screen(name: str, golden: SnapshotAssertion, tmp_path: Path) -> None:
    status, words = SCREENS[name]
    done = run_here(*words, cwd=tmp_path)
    text = scrubbed(done.stdout + PROGRESS.sub("", done.stderr))
    text = re.sub(r"(?m)^\d+ (clauses|threats): .*", r"<counts of \1>", text)
    text = re.sub(r"(?m)^(  started +|  inherits +).*(\n {10}.*)*", r"\1<of this machine>", text)

    assert done.returncode == status
    assert text == golden


def test_list_selects_by_suite_level_and_severity() -> None:
    threats = touchstone("list", "--suite", "security", "--level", "critical").stdout
    clauses = touchstone("list", "--level", "MAY").stdout

    rows = [line for line in threats.splitlines() if line.startswith("  ")]
    assert rows
    assert all("  critical  " in row and "  attacks: " in row for row in rows)
    rows = [line for line in clauses.splitlines() if line.startswith("  ")]
    assert rows
    assert all("  MAY  " in row for row in rows)


def test_list_and_explain_start_no_process(fp: FakeProcess) -> None:
    """pytest-subprocess refuses every unregistered process."""
    fp.allow_unregistered(allow=False)

    assert main(["list", "ping"]) == 0
    assert main(["explain", "ping-empty-response"]) == 0
    assert list(fp.calls) == []


def test_closed_pipe_prints_no_traceback() -> None:
    command = f"{sys.executable} -m mcp_touchstone list | head -1"

    assert ran(["bash", "-c", command], cwd=ROOT).stderr == ""


def test_relative_program_is_found_in_the_working_directory(tmp_path: Path) -> None:
    script = tmp_path / "server.sh"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m reference_server\n')
    script.chmod(0o755)

    done = touchstone(
        "check",
        "-q",
        "--select",
        "answers_a_ping",
        "--env",
        f"PYTHONPATH={ROOT}",
        "--",
        "./server.sh",
        cwd=tmp_path,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_server_gets_its_own_home_and_the_root_placeholder_is_replaced(tmp_path: Path) -> None:
    script = tmp_path / "server.py"
    script.write_text(
        "import os, pathlib, sys\n"
        f"pathlib.Path({str(tmp_path / 'seen')!r}).write_text("
        "os.environ['HOME'] + '\\n' + sys.argv[1] + '\\n' + os.environ['WHERE'])\n"
    )
    run_here("check", "--env", "WHERE={root}/x", "--", sys.executable, str(script), "{root}")
    home, root, where = (tmp_path / "seen").read_text().splitlines()

    assert "mcp-touchstone-" in home
    assert home != str(Path.home())
    assert root.endswith("/root")
    assert where == f"{root}/x"


def test_recon_json_lists_examples_and_reasons() -> None:
    done = run_here(
        "recon",
        "--json",
        "--call",
        'write={"path": "x"}',
        "--call",
        "gone",
        "--",
        *TOY,
        "echo",
        "write",
        "elicit",
        "old",
    )

    found = json.loads(done.stdout)
    assert found["name"] == "toy 1"
    assert list(found["revisions"]) == ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
    assert found["processes"] == 8
    newest = found["revisions"]["2025-11-25"]
    assert newest["offers"]["elicits"][0]["params"]["name"] == "elicit"
    assert newest["offers"]["elicits"][0]["asked"] == ["elicitation/create"]
    assert "mrtr" not in {*newest["offers"], *newest["lacks"]}
    assert newest["lacks"]["samples"] == "no sampling"
    subjects = {remark.partition(":")[0] for remark in found["remarks"]}
    assert subjects == {"--call write", "--call gone", "no file tool is attacked"}


def test_repeat_command_includes_call_and_resource_options() -> None:
    named = ["--call", 'file_read={"path": "a b"}', "--resource", "workspace:///README.md"]

    done = run_here(
        "check", "--select", "answers_a_ping", *named, "--", *mutant_command("RefusesPings")
    )

    again = next(line for line in done.stdout.splitlines() if " again " in line)
    for word in named:
        assert shlex.quote(word) in again
    assert shlex.split(again)[1:4] == ["mcp-touchstone", "check", "-v"]


NAMES = {
    "tool like another": ["--call", "ecoh"],
    "tool like none": ["--call", "x"],
    "prompt": ["--prompt", "greet"],
    "resource": ["--resource", "a:b"],
}


@pytest.mark.parametrize("quick", [[], ["--quick"]], ids=["whole", "quick"])
def test_unknown_tool_prompt_or_resource_name_is_an_error(
    quick: list[str], golden: SnapshotAssertion
) -> None:
    words = ["check", "-q", *quick, "--select", "answers_a_ping"]
    found = [run_here(*words, *named, "--", *TOY, "echo", "note") for named in NAMES.values()]

    assert [done.returncode for done in found] == [2] * len(NAMES)
    assert "".join(done.stderr for done in found) == golden(name="all")


def complete(line: str) -> list[str]:
    """Return the completions of a command line, as a shell script requests them."""
    program = (
        "import os, sys; os.dup2(1, 8); os.dup2(2, 9); sys.argv = ['mcp-touchstone'];"
        "from mcp_touchstone.cli import main; main()"
    )
    env = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
    }
    done = ran([sys.executable, "-c", program], env=env)
    return [word.strip() for word in done.stdout.splitlines()]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str) -> None:
    done = touchstone("completion", shell)

    assert done.returncode == 0
    assert "_ARGCOMPLETE" in done.stdout
    assert "mcp-touchstone" in done.stdout


def test_completion_covers_commands_options_and_values() -> None:
    assert complete("mcp-touchstone che") == ["check"]
    assert "--select" in complete("mcp-touchstone check --sel")
    assert complete("mcp-touchstone check --suite sec") == ["security"]
    assert complete("mcp-touchstone explain ping-empty") == ["ping-empty-response"]


def test_help_states_the_default_of_jobs() -> None:
    text = " ".join(touchstone("check", "--help").stdout.split())

    assert "at most 64" in text
    assert min(64, 20 * (os.cpu_count() or 1)) == JOBS
