"""The pytest plugin in users' projects, including hostile configurations."""

import json
import re
import shlex
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence

import pytest

from mcp_touchstone.target.target import ROOT
from tests.cases import cases
from tests.conftest import HERE, LEAN, mutant_command
from tests.tap import test_drive

pytestmark = pytest.mark.slow

SOUND = shlex.join([*mutant_command("SaysNothingWrong")])
SICK = shlex.join(mutant_command("RefusesPings"))
SMALL = (sys.executable, "-S", str(HERE / "golden_server.py"), ROOT)
Run = Callable[..., pytest.RunResult]
NODE = "conformance/basic/ping.py::answers_a_ping"
JUDGED = "mcp-touchstone::the_server_can_be_judged"
IDS = "conformance/clients/messages.py::gives_its_requests_unique_ids"


@pytest.fixture
def run(pytester: pytest.Pytester) -> Run:
    """Run pytest in the user's folder, in this process or ``apart`` as a user would.

    A process of its own is what a hostile configuration, workers, own output streams and a warning
    need: in this process each warning is an error. It costs much more: an interpreter, its imports,
    and servers that are not forked.
    """

    def run(
        *arguments: str,
        server: str = SOUND,
        select: Sequence[str] = ("answers_a_ping",),
        apart: bool = False,
    ) -> pytest.RunResult:
        words = [*arguments, *(["--mcp-server", server] if server else [])]
        words += [word for name in select for word in ("--mcp-select", name)]
        if apart:
            return pytester.run(sys.executable, "-m", "pytest", *LEAN, *words)
        return pytester.runpytest_inprocess("-p", "no:cacheprovider", *words)

    return run


def test_scenarios_run_beside_the_users_own_tests(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine="def test_mine(): pass")

    result = run("-v", server=shlex.join(SMALL), apart=True)

    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["test_mine.py::test_mine PASSED*", f"{NODE} PASSED*"])


def test_failure_prints_clause_wire_and_repeat_command(run: Run) -> None:
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


def test_strict_does_not_fail_a_clause_without_a_threshold(run: Run) -> None:
    """The specification gives ping-not-excessive no threshold, so it remains a warning."""
    server = shlex.join(mutant_command("PingsAllTheTime"))

    words = ("--mcp-strict", "--mcp-revision", "2025-11-25")
    assert run(*words, server=server, select=["ping"], apart=True).ret == 0


def test_quick_option_skips_slow_scenarios(run: Run) -> None:
    words = ["echoes_the_id_as_sent", "stops_a_cancelled_call"]

    result = run("-rs", "--mcp-quick", select=words)

    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*left out: --quick*"])


def test_a_node_id_reruns_one_scenario(run: Run) -> None:
    result = run(NODE, select=[])

    result.assert_outcomes(passed=1)


def test_keyword_and_last_failed_options_select_scenarios(
    run: Run, pytester: pytest.Pytester
) -> None:
    words = ["--mcp-server", SICK, "--mcp-select", "ping", "--mcp-revision", "2025-11-25"]
    first = pytester.runpytest_inprocess(*words)
    again = pytester.runpytest_inprocess(*words, "--lf", "-v")
    keyword = pytester.runpytest_inprocess(*words, "-k", "not answers_a_ping")

    assert first.parseoutcomes()["failed"] == 1
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines([f"{NODE} FAILED*"])
    assert keyword.ret == 0


@pytest.mark.parametrize(("words", "shown"), [((), True), (("-q",), False)])
def test_progress_is_shown_while_a_server_is_judged(
    run: Run, pytester: pytest.Pytester, words: tuple[str, ...], shown: bool
) -> None:
    pytester.makeconftest("import mcp_touchstone.report.progress as p\np.HEARTBEAT = 0.01\n")
    done = run(*words, server=shlex.join(SMALL), apart=True)

    assert bool(re.search(r"(?m)^mcp-touchstone: \d+ s: \d+/\S+", done.stdout.str())) is shown


def test_junit_report_names_clause_and_failure(run: Run, pytester: pytest.Pytester) -> None:
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


def test_xdist_gives_the_same_outcomes(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_mine="def test_a(): pass\ndef test_b(): pass")

    words = ("--mcp-revision", "2025-11-25")
    server, select = shlex.join([*SMALL, "refuses-pings"]), ["ping", "stdio"]
    result = run("-n", "2", *words, server=server, select=select, apart=True)
    alone = run(*words, server=server, select=select, apart=True)

    assert result.parseoutcomes() == alone.parseoutcomes()
    assert result.ret == 1


def test_collect_only_starts_no_server(run: Run) -> None:
    result = run("--collect-only", "-q", server="this-program-does-not-exist")

    result.stdout.fnmatch_lines([NODE])
    assert result.ret == 0


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

    result = run("-W", "error", "test_mine.py", apart=True)

    result.assert_outcomes(passed=4)


def test_a_failing_test_of_the_user_shows_its_conversation(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(
        test_mine="""
        def test_first(mcp_session):
            assert mcp_session.request("ping").result == {}

        def test_second(mcp_session):
            assert mcp_session.request("tools/call", {"name": "none"}).result
        """
    )

    result = run("test_mine.py")

    said = result.stdout.str().partition("conversation of mcp_session")[2]
    assert '→ {"jsonrpc":"2.0","id":' in said
    assert '"method":"tools/call"' in said
    assert '"error"' in said
    assert '"method":"ping"' not in said.partition("short test summary")[0]


def test_a_server_that_does_not_start_is_one_line_in_a_test(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(
        test_mine="""
        import mcp_touchstone

        def test_it():
            with mcp_touchstone.connect("no-such-program"):
                pass
        """
    )

    result = run("test_mine.py", server="", select=[])

    said = result.stdout.str()
    assert "LaunchError: there is no program 'no-such-program'" in said
    assert "live_server.py" not in said
    assert "contextlib.py" not in said
    assert "test_mine.py:4" in said


def test_rules_of_another_transport_are_not_collected(run: Run) -> None:
    said = run("--collect-only", "-q", select=[]).stdout.str()

    assert "conformance/basic/stdio" in said
    assert "conformance/http/" not in said


def test_fixtures_without_a_server_explain_how_to_name_one(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(test_mine="def test_it(mcp_session): pass")

    result = run(server="", select=[])

    result.stdout.fnmatch_lines(["*name one with --mcp-server or the ini key mcp_server, or*"])


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

    result = run("-v", "-rA", server=shlex.join(SMALL), apart=True)

    result.stdout.fnmatch_lines([f"{NODE} PASSED*"])


def test_calls_resources_and_prompts_are_named_by_option_or_ini_lines(
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
            assert mcp_server.call == (("write", {"path": "a b"}), ("echo", None))
            assert mcp_server.resource == ("note:///1",)
            assert mcp_server.prompt == (("greet", {"colour": "red"}),)
        """
    )

    result = run("--mcp-prompt", 'greet={"colour": "red"}', "-k", "test_named")

    assert result.parseoutcomes()["passed"] == 1
    wrong = run("--mcp-call", "echo=red", select=["answers_a_ping"])
    assert wrong.ret != 0
    assert "echo=red: write NAME=" in wrong.stdout.str() + wrong.stderr.str()


@pytest.mark.parametrize("argument", [".", "sub"])
def test_named_folder_runs_scenarios_and_tests(
    run: Run, pytester: pytest.Pytester, argument: str
) -> None:
    pytester.makeini(f"[pytest]\nmcp_server = {SOUND}\nmcp_select = answers_a_ping\n")
    (pytester.path / "sub").mkdir()
    (pytester.path / "sub" / "test_mine.py").write_text("def test_mine(): pass\n")

    run(argument, server="", select=[]).assert_outcomes(passed=3)


def test_header_says_that_naming_only_test_files_skips_the_check(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makeini(f"[pytest]\nmcp_server = {SOUND}\n")
    pytester.makepyfile(test_mine="def test_mine(): pass")

    result = run("test_mine.py", server="", select=[])

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*not checked: only test files were named; add --mcp)"])


@cases(
    (["--mcp-server", ""], "*--mcp-server: the command is empty; is a variable not set?"),
    (["--mcp-config", ""], "*--mcp-config: no file is named"),
    (["--mcp-strict"], "*--mcp-strict has no effect, as no server is checked: add --mcp *"),
    (["--mcp-select", "answers_a_ping"], "*--mcp-select has no effect, as no server is checked*"),
    (["--mcp-no-baseline"], "*--mcp-no-baseline has no effect*"),
    (["--mcp-server", "'unclosed"], "*--mcp-server: No closing quotation*"),
    (["--mcp-server", SOUND, "--mcp-select", "pnig"], "*--mcp-select pnig*did you mean 'ping'*"),
)
def test_options_that_are_wrong_or_without_effect_are_refused(
    run: Run, pytester: pytest.Pytester, words: list[str], said: str
) -> None:
    pytester.makepyfile(test_mine="def test_mine(): pass")

    result = run(*words, server="", select=[])

    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])


def test_help_is_printed_despite_a_configuration_error(run: Run, pytester: pytest.Pytester) -> None:
    (pytester.path / "touchstone.toml").write_text("command = 'x'\nbaseline = 'gone.toml'\n")

    assert run("--mcp", "--help", server="", select=[]).ret == 0
    missing = run("--mcp", server="", select=[])
    missing.stderr.fnmatch_lines(["*gone.toml: there is no such file; `mcp-touchstone*"])


@cases(
    ("this-program-does-not-exist", "*no program 'this-program-does-not-exist'*"),
    ("{python} -c 'import no_such_module'", "*No module named 'no_such_module'*"),
)
def test_server_that_does_not_start_is_one_failure(run: Run, server: str, said: str) -> None:
    result = run(server=server, select=["ping", "jsonrpc"])

    outcomes = result.parseoutcomes()
    assert (outcomes["failed"], outcomes.get("passed", 0)) == (1, 0)
    assert outcomes["skipped"] > 5
    result.stdout.fnmatch_lines([said])
    result.stdout.fnmatch_lines([f"FAILED {JUDGED} - BROKEN*"])


def test_workers_report_a_server_that_does_not_start_once(run: Run) -> None:
    server = "{python} -S -c print(1)"
    result = run("-n", "2", "-rfs", server=server, select=["ping"], apart=True)

    result.stdout.fnmatch_lines([f"FAILED {JUDGED} - BROKEN*"])
    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines([f"SKIPPED*the server could not be checked: see {JUDGED}"])


def test_the_item_of_the_whole_run_can_be_selected(run: Run) -> None:
    alone = run(JUDGED, select=["ping"])
    marked = run("-m", "mcp_ping", "-v", select=["ping", "jsonrpc"])

    alone.assert_outcomes(passed=1)
    marked.stdout.fnmatch_lines([f"{JUDGED} PASSED*", f"{NODE} PASSED*"])


def test_missing_module_hint_names_the_python_on_path(run: Run) -> None:
    result = run(server="python3 -c 'import no_such_module'")

    result.stdout.fnmatch_lines(["hint: `python3` is the first on PATH; {python} is *"])


def test_hooks_can_read_fixturenames_of_scenarios(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        def pytest_collection_modifyitems(items):
            items.sort(key=lambda item: "db" in item.fixturenames)
        def pytest_runtest_setup(item):
            assert "db" not in item.fixturenames
        """
    )

    run(select=["answers_a_ping"]).assert_outcomes(passed=2)


def test_project_fixture_can_override_mcp_server(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_mine="""
        import pytest

        @pytest.fixture
        def mcp_server():
            return "ours"

        def test_both(mcp_server, mcp_session):
            assert mcp_server == "ours"
            assert mcp_session.request("ping").result == {}
        """
    )

    run("test_mine.py", select=["answers_a_ping"]).assert_outcomes(passed=3)


def test_shared_session_is_available_to_wider_scopes(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_mine="""
        import pytest

        @pytest.fixture(scope="session")
        def tools(mcp_shared_session):
            return mcp_shared_session.tools()

        def test_tools(tools, mcp_session):
            assert tools == mcp_session.tools()
        """
    )

    run("test_mine.py", select=["answers_a_ping"]).assert_outcomes(passed=3)


def test_documented_filter_exempts_our_warnings_from_errors(
    run: Run, pytester: pytest.Pytester
) -> None:
    """The line of the ini file is the one in docs/guides/pytest.md."""
    line = "default::mcp_touchstone.pytest_plugin.TouchstoneWarning"
    assert line in (HERE.parent / "docs" / "guides" / "pytest.md").read_text("utf-8")
    server = shlex.join(mutant_command("PingsAllTheTime"))
    words = ("--mcp-revision", "2025-11-25")
    pytester.makeini("[pytest]\nfilterwarnings = error\n")
    strict = run(*words, server=server, select=["ping-not-excessive"])
    strict.stdout.fnmatch_lines(["FAILED *does_not_ping_excessively - ping-not-excess*"])

    pytester.makeini(f"[pytest]\nfilterwarnings =\n    error\n    {line}\n")
    exempt = run(*words, server=server, select=["ping-not-excessive"])
    exempt.stdout.fnmatch_lines(["*TouchstoneWarning: ping-not-excessive: *"])
    assert exempt.ret == 0


def test_a_client_is_judged_with_items_of_its_own(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(client=test_drive.DUPLICATE, test_mine="def test_mine(): pass")
    words = ("--mcp-client", "{python} client.py {server}", "--mcp-scenario", "tools_call")

    alone = run(*words, "--mcp-no-baseline", server="", select=["clients/messages"])
    both = run(*words)

    alone.stdout.fnmatch_lines(["FAIL  client-request-id-unique", "*▸ 4 → *tools/list*"])
    assert alone.parseoutcomes()["failed"] == 1
    both.stdout.fnmatch_lines([f"FAILED {IDS}[[]client]*"])
    assert both.parseoutcomes()["failed"] == 1


def test_a_client_that_never_connects_is_one_failure(run: Run) -> None:
    words = ("--mcp-client", "{python} -c 0 {server}", "--mcp-scenario", "tools_call")

    result = run(*words, server="", select=[])

    result.stdout.fnmatch_lines(["BROKEN  tools_call: the client never connected (exit status 0)"])
    result.stdout.fnmatch_lines(["FAILED mcp-touchstone::the_client_can_be_judged*"])
    assert result.parseoutcomes()["failed"] == 1
    result = run(*words, "-k", "opens_with_the_handshake", "-rs", server="", select=[])
    assert {**result.parseoutcomes(), "deselected": 0} == {"failed": 1, "deselected": 0}


MEMBERS = "conformance/gateways/members.py::passes_each_member_on"
GATEWAY = f"{{python}} {HERE / 'gateway' / 'faulty.py'} drop tools/list result._meta -- {{server}}"
ONE = ("--mcp-revision", "2025-11-25", "--mcp-no-baseline")


def test_a_gateway_is_judged_with_an_item_for_each_rule(
    run: Run, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(test_mine="def test_mine(): pass")
    words = ("--mcp-gateway", GATEWAY, *ONE, "--mcp-strict")

    result = run(*words, server="", select=["members"])
    only = run(*words, "-v", "-k", "offers_what", server="", select=["members"])

    assert result.parseoutcomes()["failed"] == 1
    result.stdout.fnmatch_lines(["FAIL  gateway-lists-meta", "*between the client and the gateway"])
    result.stdout.fnmatch_lines(["*again *mcp-touchstone gateway --select gateway-lists-meta *"])
    result.stdout.fnmatch_lines([f"FAILED {MEMBERS}*"])
    assert only.ret == 0
    assert only.parseoutcomes()["passed"] == 1


def test_a_gateway_of_a_file_is_judged_beside_its_server(
    run: Run, pytester: pytest.Pytester
) -> None:
    path = pytester.path / "touchstone.toml"
    path.write_text(
        f"gateway = {json.dumps(GATEWAY)}\ncommand = {json.dumps(SOUND)}\n"
        "expects = ['transparent']\nrevision = ['2025-11-25']\n"
    )

    words = ("--mcp", "-k", "passes_each_member_on or answers_a_ping")
    result = run(*words, server="", select=[])

    outcomes = result.parseoutcomes()
    assert (outcomes["failed"], outcomes["passed"]) == (1, 2)
    result.stdout.fnmatch_lines([f"FAILED {MEMBERS}[[]gateway]*"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--mcp-gateway", "{python} -c 0 {server}"), "*the gateway does not start*"),
        (("--mcp-gateway", "{python} -c 0"), "ERROR: *the command does not name our server*"),
        (
            ("--mcp-gateway", "x {server}", "--mcp-expects", "opaque"),
            "ERROR: --mcp-expects: 'opaque' is none of *",
        ),
        (
            ("--mcp-gateway", "x {config}", "--mcp-config-template", "none"),
            "ERROR: none: there is no such file; name another",
        ),
        (("--mcp-expects", "transparent"), "ERROR: --mcp-expects has no effect*"),
    ],
)
def test_a_gateway_that_cannot_be_judged_is_one_failure(
    run: Run, words: tuple[str, ...], said: str
) -> None:
    result = run(*words, server="", select=[])

    assert result.ret != 0
    (result.stderr if said.startswith("ERROR") else result.stdout).fnmatch_lines([said])
    if "can_be_judged" in result.stdout.str():
        result.stdout.fnmatch_lines(["FAILED mcp-touchstone::the_gateway_can_be_judged*"])


def test_no_output_of_pytest_contains_a_secret(
    run: Run, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = ("correct-horse-7-battery", "npm_supersecretvalue42")
    monkeypatch.setenv("NPM_TOKEN", planted[1])
    pytester.makepyfile(
        prints="""
        import os, sys
        sys.stderr.write(sys.argv[2])
        print(sys.argv[2], os.environ["NPM_TOKEN"], flush=True)
        input()
        """
    )
    server = shlex.join([sys.executable, "prints.py", "--token", planted[0]])

    result = run("-v", "--junit-xml=junit.xml", server=server, select=["stdio"], apart=True)

    printed = "\n".join([result.stdout.str(), (pytester.path / "junit.xml").read_text("utf-8")])
    assert "--token HIDDEN-SECRET_ARGUMENT_1" in printed
    assert "HIDDEN-NPM_TOKEN" in printed
    assert [one for one in planted if one in printed] == []
