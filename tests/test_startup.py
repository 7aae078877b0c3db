"""What the tool reads before it does anything, and what it costs a session of pytest."""

import json
import subprocess
import sys

import pytest

HEAVY = {
    "pytest",
    "hypothesis",
    "jsonschema",
    "referencing",
    "rich",
    "psutil",
    "mcp_touchstone.gate",
}


def imported(code: str) -> set[str]:
    """Give the modules that are imported when some statements were run."""
    program = f"import contextlib, io, json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "words", [["--version"], ["list", "ping"], ["explain", "ping-empty-response"]]
)
def test_what_only_prints_reads_no_library_it_does_not_need(words: list[str]) -> None:
    found = imported(
        "from mcp_touchstone.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    main({words!r})"
    )

    assert found & HEAVY == set()


def test_a_session_that_names_no_server_reads_the_plugin_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        def test_nothing_more_is_there():
            found = {name for name in sys.modules if name.startswith("mcp_touchstone")}
            assert found == {"mcp_touchstone", "mcp_touchstone.plugin"}
        """
    )

    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)
