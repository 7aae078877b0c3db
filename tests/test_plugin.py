"""The pytest plugin in other people's projects, hostile configurations included."""

import shlex
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence

import pytest

from tests.conftest import mutant_command

SOUND = shlex.join([*mutant_command("SaysNothingWrong")])
SICK = shlex.join(mutant_command("RefusesPings"))
Run = Callable[..., pytest.RunResult]
NODE = "conformance/basic/ping.py::answers_a_ping"


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Run pytest as a user would: a process of its own, in the user's folder."""

    def run(
        *arguments: str, server: str = SOUND, select: Sequence[str] = ("ping",)
    ) -> pytest.RunResult:
        words = [word for name in select for word in ("--mcp-select", name)]
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        if server:
            command += ["--mcp-server", server]
        return pytester.run(*command, *words)

    return run


def test_judges_beside_the_users_own_tests(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine="def test_mine(): pass")

    result = run("-v", select=["answers_a_ping"])

    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["test_mine.py::test_mine PASSED*", f"{NODE} PASSED*"])


def test_a_failure_shows_clause_wire_and_the_command_that_repeats_it(run: Run) -> None:
    result = run(server=SICK)

    result.stdout.fnmatch_lines(
        [
            "FAIL  ping-empty-response",
            "*expected   an empty result object",
            "*→ *ping*",
            "*▸ *← *error*",
            "*again * mcp-touchstone check -v --select ping-empty-response*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    assert result.ret == 1


def test_a_broken_should_is_a_warning_of_pytest(run: Run) -> None:
    result = run(server=shlex.join(mutant_command("PingsAllTheTime")))

    result.stdout.fnmatch_lines(["*TouchstoneWarning: ping-not-excessive*"])
    assert result.ret == 0


def test_strict_is_left_to_the_clause(run: Run) -> None:
    """ping-not-excessive has no threshold in the text, so --strict leaves it a warning."""
    server = shlex.join(mutant_command("PingsAllTheTime"))

    assert run("--mcp-strict", server=server).ret == 0


def test_a_quick_look_skips_what_would_take_a_process_or_seconds(run: Run) -> None:
    words = ["echoes_the_id_as_sent", "drops_a_call_that_is_cancelled"]

    result = run("-rs", "--mcp-quick", select=words)

    result.assert_outcomes(passed=1, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*left out: --quick*"])


def test_a_node_id_reruns_one_scenario(run: Run) -> None:
    result = run(NODE, select=[])

    result.assert_outcomes(passed=1)


def test_keyword_and_last_failed_select(run: Run, pytester: pytest.Pytester) -> None:
    command = [sys.executable, "-m", "pytest", "--mcp-server", SICK, "--mcp-select", "ping"]
    first = pytester.run(*command)
    again = pytester.run(*command, "--lf", "-v")
    keyword = pytester.run(*command, "-k", "moderation")

    assert first.parseoutcomes()["failed"] == 1
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines([f"{NODE} FAILED*"])
    assert keyword.ret == 0


def test_junit_names_clause_and_failure(run: Run, pytester: pytest.Pytester) -> None:
    run("--junitxml=out.xml", server=SICK)

    cases = ET.parse(pytester.path / "out.xml").getroot().iter("testcase")  # noqa: S314  (our own)
    case = next(case for case in cases if case.get("name") == "answers_a_ping")
    properties = {p.get("name"): p.get("value") for p in case.iter("property")}
    failure = case.find("failure")

    assert properties["mcp_clause"] == "ping-empty-response"
    assert properties["mcp_verdict"] == "fail"
    assert "2025-11-25" in str(properties["mcp_revisions"])
    assert failure is not None
    assert "ping-empty-response" in (failure.text or "")


def test_xdist_workers_tell_the_same_story(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine="def test_a(): pass\ndef test_b(): pass")

    result = run("-n", "3", server=SICK, select=["ping", "stdio"])
    alone = run(server=SICK, select=["ping", "stdio"])

    assert result.parseoutcomes() == alone.parseoutcomes()
    assert result.ret == 1


def test_collect_only_starts_no_server(run: Run) -> None:
    result = run("--collect-only", "-q", server="this-program-does-not-exist")

    result.stdout.fnmatch_lines([NODE])
    assert result.ret == 0


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("this-program-does-not-exist", "*there is no program 'this-program-does-not-exist'*"),
        ("'unclosed", "*mcp_server: No closing quotation*"),
    ],
)
def test_a_command_that_cannot_run_is_one_clear_line(run: Run, server: str, words: str) -> None:
    result = run(server=server)

    (result.stdout if result.ret == 1 else result.stderr).fnmatch_lines([words])
    assert result.ret in {1, 4}


def test_an_unknown_selection_is_refused(run: Run) -> None:
    result = run(select=["pnig"])

    result.stderr.fnmatch_lines(["*--mcp-select pnig*did you mean 'ping'*"])
    assert result.ret == 4


def test_fixtures_give_a_live_session(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_mine="""
        def test_reads(mcp_session):
            assert mcp_session.request("tools/list").result["tools"]

        def test_the_same_process(mcp_session, mcp_server):
            assert mcp_session.request("ping").result == {}
            assert len(mcp_session.transcript) > 6
            assert "mutants" in mcp_server.shown
        """
    )

    result = run("-W", "error", "test_mine.py", select=["answers_a_ping"])

    result.assert_outcomes(passed=3)


def test_fixtures_without_a_server_say_what_to_do(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine="def test_it(mcp_session): pass")

    result = run(server="", select=[])

    result.stdout.fnmatch_lines(["*name one with --mcp-server or the ini key mcp_server, or*"])


def test_the_ini_key_is_enough(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeini(f"[pytest]\nmcp_server = {SOUND}\nmcp_select = answers_a_ping\n")

    run(server="", select=[]).assert_outcomes(passed=1)


def test_the_ini_key_leaves_a_named_test_file_alone(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeini(f"[pytest]\nmcp_server = {SOUND}\n")
    pytester.makepyfile(test_mine="def test_mine(): pass")

    run("test_mine.py", server="", select=[]).assert_outcomes(passed=1)


HOSTILE: dict[str, tuple[str, dict[str, str]]] = {
    "warnings as errors and strict markers": (
        "[pytest]\nfilterwarnings = error\naddopts = --strict-markers --strict-config\n",
        {},
    ),
    "python_files": ("[pytest]\npython_files = check_*.py\n", {}),
    "python_functions": ("[pytest]\npython_functions = spec_*\n", {}),
    "own conformance package": (
        "[pytest]\n",
        {"tests/conformance/__init__.py": "", "tests/conformance/ping.py": "X = 1\n"},
    ),
    "own conformance folder at the root": ("[pytest]\n", {"conformance/basic/ping.py": "X = 1\n"}),
    "a test file called as one of ours": (
        "[pytest]\n",
        {"ping.py": "", "test_ping.py": "def test_mine(): pass\n"},
    ),
    "autouse fixture that breaks everything": (
        "[pytest]\n",
        {
            "conftest.py": "import pytest\n@pytest.fixture(autouse=True)\n"
            "def spoil(): raise RuntimeError('spoiled')\n"
        },
    ),
    "importlib mode": ("[pytest]\naddopts = --import-mode=importlib\n", {}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_user_configurations_change_nothing(
    run: Run, pytester: pytest.Pytester, name: str
) -> None:
    ini, files = HOSTILE[name]
    pytester.makeini(ini)
    for path, text in files.items():
        file = pytester.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    result = run("-v", "-rA", select=["answers_a_ping"])

    result.stdout.fnmatch_lines([f"{NODE} PASSED*"])


def test_a_session_without_a_server_loads_nothing_of_the_harness(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_mine="""
        import sys
        def test_light():
            heavy = {"rich", "psutil", "jsonschema", "mcp_touchstone.gate"}
            assert not heavy & set(sys.modules)
        """
    )

    pytester.run(sys.executable, "-m", "pytest", "-p", "no:xdist").assert_outcomes(passed=1)


def test_works_where_xdist_is_not_installed(run: Run) -> None:
    result = run("-p", "no:xdist", select=["answers_a_ping"])

    result.assert_outcomes(passed=1)


def test_what_may_be_used_is_named_by_option_or_line_by_line(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makeini(
        """
        [pytest]
        mcp_call =
            write={"path": "a b"}
            echo
        mcp_resource = note:///1
        """
    )
    pytester.makepyfile(
        """
        def test_named(mcp_server):
            assert mcp_server.named.calls == (("write", {"path": "a b"}), ("echo", None))
            assert mcp_server.named.resources == ("note:///1",)
            assert mcp_server.named.prompts == (("greet", {"colour": "red"}),)
        """
    )

    result = run("--mcp-prompt", 'greet={"colour": "red"}', "-k", "test_named")

    assert result.parseoutcomes()["passed"] == 1
    wrong = run("--mcp-call", "echo=red", select=["answers_a_ping"])
    assert wrong.ret != 0
    assert "echo=red: write NAME=" in wrong.stdout.str() + wrong.stderr.str()
