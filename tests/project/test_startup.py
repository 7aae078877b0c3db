"""Modules that the command line and the pytest plugin import at startup."""

import json
import sys

import pytest

from tests.cases import cases
from tests.commands import ran

HEAVY = {
    *("pytest", "hypothesis", "jsonschema", "referencing", "rich", "psutil", "subprocess"),
    "mcp_touchstone.engine.runner",
}


def imported(code: str) -> set[str]:
    """Return the modules that some statements import."""
    program = f"import contextlib, io, json, sys\n{code}\nprint(json.dumps(sorted(sys.modules)))"
    return set(json.loads(ran([sys.executable, "-c", program]).stdout.splitlines()[-1]))


@cases(["--version"], ["list", "ping"], ["explain", "ping-empty-response"])
def test_printing_commands_import_no_heavy_library(words: list[str]) -> None:
    found = imported(
        "from mcp_touchstone.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        f"    main({words!r})"
    )

    assert found & HEAVY == set()


def test_pytest_session_without_server_imports_only_the_options(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys

        OPTIONS = {
            "catalog", "catalog.attack_level", "catalog.errors", "catalog.revision", "config",
            "config.settings", "target", "target.option", "target.server_settings",
            "target.values", "pytest_plugin", "pytest_plugin.options", "pytest_plugin.plugin",
            "version",
        }

        def test_nothing_more_is_there():
            found = {name for name in sys.modules if name.startswith("mcp_touchstone.")}
            assert found == {f"mcp_touchstone.{name}" for name in OPTIONS}
            assert not {"rich", "psutil", "jsonschema"} & set(sys.modules)
        """
    )

    pytester.runpytest_subprocess("-p", "no:cacheprovider").assert_outcomes(passed=1)


OF_GATEWAYS = (
    *(
        "gateway",
        "judging.hops",
        "judging.gateway_talk",
        "judging.expected",
        "_suites.conformance.gateways",
    ),
    *("parts.upstream", "parts.rich_upstream", "parts.callers", "parts.second", "parts.troubled"),
)


def test_check_imports_nothing_of_gateways() -> None:
    """Our server behind a gateway alone reads and fills a file of data while it is imported."""
    words = ("check", "--self", "--revision", "2025-11-25", "--select", "ping-empty-response")
    found = imported(
        "from mcp_touchstone.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()):\n"
        f"    code = main({[*words]!r})\n"
        "assert not code, code"
    )

    assert "mcp_touchstone.suite" in found
    names = tuple(f"mcp_touchstone.{one}" for one in OF_GATEWAYS)
    assert [one for one in found if one.startswith(names)] == []
