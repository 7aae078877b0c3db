"""The pytest plugin with the files of a project: configuration, targets, baseline."""

import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cases import cases
from tests.conftest import HERE, mutant_command

pytestmark = pytest.mark.slow

Run = Callable[..., pytest.RunResult]
PING = "conformance/basic/ping.py::answers_a_ping"
BASELINE = "mcp-touchstone::the_baseline_is_true"
SHORT = 'select = ["ping"]\nrevision = "2025-11-25"\n'


def command(mutant: str) -> str:
    return f"command = {json.dumps(mutant_command(mutant))}\n"


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Run pytest in this process, where the plugin is loaded already."""

    def run(*arguments: str) -> pytest.RunResult:
        if "-n" in arguments:  # workers use the standard streams of the process
            return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)

    return run


def known(path: Path, *clauses: str) -> None:
    where = 'revision = "2025-11-25"\nreason = "the gateway"\n'
    entries = [f'[[known]]\nclause = "{one}"\n{where}' for one in clauses]
    path.write_text("\n".join(entries), "utf-8")


def test_pyproject_configuration_enables_the_suite(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nmcp_config = "pyproject.toml"\n'
        f"[tool.mcp-touchstone]\n{command('RefusesPings')}{SHORT}"
    )
    (pytester.path / "sub").mkdir()

    result = run()

    assert result.ret == 1
    result.stdout.fnmatch_lines(["*again*--config pyproject.toml*", "*mcp-touchstone: *"])
    result.stdout.fnmatch_lines(["failed: *"])


def test_configuration_file_runs_scenarios_only_on_request(
    run: Run, pytester: pytest.Pytester
) -> None:
    (pytester.path / "touchstone.toml").write_text(command("SaysNothingWrong") + SHORT)
    pytester.makepyfile("def test_mine(): pass")

    run("--collect-only", "-q").stdout.fnmatch_lines(["1 test collected*"])
    run("--mcp", "--collect-only", "-q").stdout.fnmatch_lines([PING])
    run("--mcp-config", "touchstone.toml", "--collect-only", "-q").stdout.fnmatch_lines([PING])


def test_fixtures_find_the_configuration_file(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "touchstone.toml").write_text(command("SaysNothingWrong"))
    pytester.makepyfile(
        'def test_mine(mcp_session): assert mcp_session.request("ping").result == {}'
    )

    run().assert_outcomes(passed=1)


def test_known_failures_are_xfailed_with_their_reason(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "touchstone.toml").write_text(command("RefusesPings") + SHORT)
    known(pytester.path / "touchstone-baseline.toml", "ping-empty-response")

    result = run("--mcp", "-rx", "--junitxml=out.xml")

    assert result.ret == 0
    assert result.parseoutcomes()["xfailed"] == 1
    result.stdout.fnmatch_lines([f"XFAIL {PING}*known: ping-empty-response: the gateway*"])
    result.stdout.fnmatch_lines(["known*1 known failure, accepted by touchstone-baseline.toml"])
    cases = ET.parse(pytester.path / "out.xml").getroot().iter("testcase")  # noqa: S314  (our own)
    values = {p.get("value") for case in cases for p in case.iter("property")}
    assert "known" in values


def test_stale_baseline_entry_fails(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "touchstone.toml").write_text(command("SaysNothingWrong") + SHORT)
    known(pytester.path / "known.toml", "ping-empty-response")

    result = run("--mcp", "--mcp-baseline", "known.toml", "-v")

    assert result.ret == 1
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines([f"{BASELINE} FAILED*"])
    result.stdout.fnmatch_lines(["STALE  ping-empty-response (2025-11-25): it passes now"])


def test_each_target_has_its_own_items_and_fixtures(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "touchstone.toml").write_text(
        f"{SHORT}[targets.good]\n{command('SaysNothingWrong')}[targets.bad]\n"
        f"{command('RefusesPings')}"
    )
    pytester.makepyfile("def test_mine(mcp_server): assert mcp_server.command")

    result = run("--mcp", "-v", "-n", "2")

    result.stdout.fnmatch_lines_random(
        [
            f"*PASSED*{PING}[[]good]*",
            f"*FAILED*{PING}[[]bad]*",
            "*PASSED*test_mine[[]good]*",
            "*PASSED*test_mine[[]bad]*",
            "*mcp-touchstone: *[[]good]*",
            "*mcp-touchstone: *[[]bad]*",
        ]
    )
    one = run(f"{PING}[good]", "--mcp", "--mcp-target", "good")
    one.assert_outcomes(passed=1)


def test_markers_and_clause_ids_select_scenarios(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_mine(): pass")
    (pytester.path / "touchstone.toml").write_text(command("SaysNothingWrong"))
    strict = ("--mcp", "--collect-only", "-q", "--strict-markers")

    def collected(*words: str) -> list[str]:
        return [line for line in run(*strict, *words).outlines if "::" in line]

    everything = collected()
    assert len(everything) > 200
    assert len(collected("-m", "mcp")) == len(everything) - 1
    assert PING in collected("-m", "mcp_ping")
    assert len(collected("-m", "mcp_ping")) < 10
    (mine,) = collected("-m", "not mcp_conformance")
    assert mine.endswith("::test_mine")
    assert PING in collected("-k", "ping-empty-response")


@pytest.mark.parametrize(
    "words", [("--mcp-accept-unbound",), ("-o", "mcp_accept_unbound=true"), ()]
)
def test_security_run_without_file_tools_fails_unless_accepted(
    run: Run, pytester: pytest.Pytester, words: tuple[str, ...]
) -> None:
    toy = [sys.executable, "-S", str(HERE / "toy_server.py"), "{root}", "echo"]
    (pytester.path / "touchstone.toml").write_text(f"command = {json.dumps(toy)}")
    selected = ("--mcp-select", "lines-strings", "--mcp-select", "traversal-dotdot")

    result = run("--mcp", "--mcp-suite", "security", "--mcp-sandbox", "off", *selected, *words)

    assert result.parseoutcomes().get("failed", 0) == (0 if words else 1)


def test_attack_commands_without_a_sandbox_is_refused(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "touchstone.toml").write_text(command("SaysNothingWrong"))
    words = ("--mcp-suite", "security", "--mcp-sandbox", "off", "-o", "mcp_attack_commands=true")

    result = run("--mcp", *words)

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "--attack-commands requires a sandbox" in "\n".join(result.errlines)


def test_security_suite_is_selected_by_name(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "touchstone.toml").write_text(command("SaysNothingWrong"))
    result = run("--mcp", "--mcp-suite", "security", "--collect-only", "-q", "-m", "mcp_security")

    lines = [line for line in result.outlines if "::" in line]
    assert lines[0] == "mcp-touchstone::the_server_can_be_judged"
    assert {line.partition("/")[0] for line in lines[1:]} == {"security_suite"}


def test_should_violation_fails_with_fail_on_or_error_filter(
    run: Run, pytester: pytest.Pytester
) -> None:
    (pytester.path / "touchstone.toml").write_text(command("PingsAllTheTime") + SHORT)

    assert run("--mcp", "--mcp-fail-on", "should").ret == 1
    error = run("--mcp", "-W", "error::mcp_touchstone.pytest_plugin.TouchstoneWarning")
    assert error.ret == 1
    error.stdout.fnmatch_lines(["ping-not-excessive: *"])
    error.stdout.no_fnmatch_line("*Traceback*")


def test_server_program_that_hides_the_ini_file_is_refused(pytester: pytest.Pytester) -> None:
    """pytest looks for its ini file beside every argument that is a path, even of an option."""
    pytester.makeini("[pytest]\nmcp_select = ping\n")

    with pytest.raises(pytest.UsageError, match=r"reads no tox.ini here; write --mcp-server=/"):
        pytester.parseconfigure("--mcp-server", sys.executable)
    pytester.parseconfigure(f"--mcp-server={sys.executable}")


def test_server_program_below_a_common_folder_hides_the_ini_file_too(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, program = pytester.path / "project", pytester.path / "venv" / "server"
    project.mkdir()
    program.parent.mkdir()
    program.write_text("")
    monkeypatch.chdir(project)
    (project / "tox.ini").write_text("[testenv]\n")
    pytester.parseconfigure("--mcp-server", str(program))

    (project / "tox.ini").write_text("[pytest]\nmcp_select = ping\n")
    with pytest.raises(pytest.UsageError, match=r"reads no tox.ini here"):
        pytester.parseconfigure("--mcp-server", str(program))
    (pytester.path / "own.ini").write_text("[pytest]\n")
    pytester.parseconfigure("-c", "../own.ini", "--mcp-server", str(program))


@cases(
    ("", ("--mcp",), "for `--mcp`; `mcp-touchstone init` writes one"),
    ("", ("--mcp-config", "no.toml"), "no.toml: there is no such file"),
    ("comand = 'x'", ("--mcp",), "unknown key 'comand'; did you mean 'command'"),
    ("command = 'x'", ("--mcp-target", "one", "--mcp"), "it names no targets"),
    ("command = 'x'", ("--mcp", "--mcp-baseline", "no.toml"), "there is no such file"),
    ("command = 'x'", ("--mcp", "--mcp-suite", "x"), "--mcp-suite: 'x' is not a valid choice"),
    ("command = 'x'", ("--mcp", "--mcp-seed", "x"), "--mcp-seed: 'x' is not a whole number"),
    ("command = 'x'", ("--mcp", "--mcp-revision", "2020"), "--mcp-revision: '2020' is not a"),
    ("command = 'x'", ("--mcp", "--mcp-fail-on", "shuold"), "did you mean 'should'"),
)
def test_configuration_mistake_is_a_one_line_usage_error(
    pytester: pytest.Pytester, text: str, words: tuple[str, ...], said: str
) -> None:
    if text:
        (pytester.path / "touchstone.toml").write_text(text)

    with pytest.raises(pytest.UsageError, match=said) as caught:
        pytester.parseconfigure(*words)

    assert "\n" not in str(caught.value)


RISKY = {
    "sandbox": ("off", "mcp_sandbox = off"),
    "online": ("", "mcp_online = true"),
    "token-command": ("touch pwned", "mcp_token_command = touch pwned"),
    "header": ("X=env:HOME", "mcp_header = X=env:HOME"),
    "golden": ("../other", "mcp_golden = ../other"),
    "config": ("../t.toml", "mcp_config = ../t.toml"),
}


@cases(*RISKY.items())
def test_a_risk_in_an_ini_file_needs_a_word_on_the_command_line(
    run: Run, pytester: pytest.Pytester, name: str, given: tuple[str, str]
) -> None:
    value, line = given
    option = f"--mcp-{name}={value}" if value else f"--mcp-{name}"
    server = "" if name == "config" else "mcp_server = false\n"
    for text in (line, f"addopts = '{option}'", f"addopts = --mcp-trust-config '{option}'"):
        (pytester.path / "pytest.ini").write_text(f"[pytest]\n{server}{text}\n")

        result = run("--collect-only")

        assert result.ret == 4
        key = f"mcp_{name.replace('-', '_')}"
        result.stderr.fnmatch_lines([f"*pytest.ini: {key} is not used*add --mcp-trust-config"])
    assert not (pytester.path / "pwned").exists()


def test_a_risk_of_a_configuration_needs_a_word_on_the_command_line(
    run: Run, pytester: pytest.Pytester
) -> None:
    (pytester.path / "touchstone.toml").write_text(
        command("SaysNothingWrong") + SHORT + "env = { A = '1' }\n"
    )
    ini = pytester.path / "pytest.ini"
    refused = "*touchstone.toml: env is not used*add --mcp-trust-config or --mcp-config*"
    for text in ("", "mcp_config = touchstone.toml", "addopts = --mcp-config touchstone.toml"):
        ini.write_text(f"[pytest]\n{text}\n")

        run("--mcp", "--collect-only").stderr.fnmatch_lines([refused])
    for words in (["--mcp", "--mcp-trust-config"], ["--mcp-config", "touchstone.toml"]):
        result = run(*words, "--collect-only")

        assert result.ret == 0
        result.stdout.fnmatch_lines(["mcp-touchstone: configuration: touchstone.toml"])
    assert run("--mcp", "--mcp-trust-config", "-n", "1").ret == 0
