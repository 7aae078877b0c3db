"""What several test files share."""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from mcp_touchstone.target.target import ROOT

pytest_plugins = ["pytester"]

RETRIED = "retried"
"""Property of a test that judged a server again, because the first run missed a finding."""

RETRIES_ALLOWED = 0.02
"""Share of the mutants and fakes of a session that may be judged again; more fails the session."""

JUDGING = ("test_mutants", "test_fakes")
"""Parts of the names of the modules whose tests judge one mutant or fake each."""

# A process that a shell script starts in the background ignores interrupts, and so do its children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if sys.platform != "win32" and signal.getsignal(signal.SIGQUIT) is signal.SIG_IGN:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)

# No test of ours is about the speed of the machine it runs on. In CI the parent is Hypothesis' own
# profile for it, which draws the same examples every time.
settings.register_profile(
    "unhurried", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unhurried")

LEAN = ("-p", "no:cacheprovider", "-p", "no:hypothesispytest")
"""Options of a pytest of its own: the plugin of Hypothesis imports all of it at the end."""

HERE = Path(__file__).parent
MUTANTS = HERE / "mutants"


def mutant_command(name: str) -> list[str]:
    """Give the command of a mutant."""
    return [sys.executable, str(MUTANTS), name, ROOT]


@pytest.fixture
def golden(snapshot: Any) -> Any:
    """Compare with the files in golden/; ``--snapshot-update`` writes them."""
    from tests.goldens import Golden  # noqa: PLC0415  (syrupy is not installed in every environment)

    return snapshot.use_extension(Golden)


SLOW = frozenset(
    {
        "test_action",
        "test_again_command",
        "test_attack_findings",
        "test_binder",
        "test_bridge",
        "test_bridge_stateless",
        "test_call_sequences",
        "test_cedarscript",
        "test_cedarscript_attacks",
        "test_cedarscript_move",
        "test_cedarscript_offline",
        "test_cli",
        "test_engine_runs",
        "test_engine_selection",
        "test_example",
        "test_fakes",
        "test_faults",
        "test_fleet_cluster",
        "test_fleet_images",
        "test_fleet_running",
        "test_golden_scenarios",
        "test_http_targets",
        "test_init",
        "test_injecting",
        "test_killing",
        "test_learning",
        "test_mutants",
        "test_mutants_over_http",
        "test_near_miss",
        "test_notes",
        "test_plugin",
        "test_plugin_config",
        "test_properties",
        "test_quick",
        "test_readme",
        "test_recordings",
        "test_referee",
        "test_reference_attacks",
        "test_repeat",
        "test_reports",
        "test_rerun",
        "test_run_limits",
        "test_same_report",
        "test_sandbox",
        "test_sandbox_option",
        "test_schema",
        "test_self_defence",
        "test_serve_http",
        "test_single_instance",
        "test_targets",
        "test_terminal",
        "test_untouched",
        "test_wheel",
    }
)
"""Modules that `tox -e quick` leaves out: each takes more than five seconds on two cores."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of slow modules, and those of the reference server."""
    for item in items:
        module = item.path.stem
        if module in SLOW:
            item.add_marker("slow")
        if module.startswith(("test_reference_", "test_workspace", "test_cedarscript")):
            item.add_marker("reference")


class Retries:
    """Counts the tests that needed another try, in the process that collects the reports."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.tests = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Read what a test recorded."""
        if report.when == "call" and any(name in report.nodeid for name in JUDGING):
            self.tests += 1
            self.names |= {str(value) for key, value in report.user_properties if key == RETRIED}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Fail a session that retried more tests than allowed."""
        if self.exceeded and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the tests that were retried."""
        if self.names:
            verdict = "too many" if self.exceeded else "allowed"
            names = ", ".join(sorted(self.names))
            count = f"{len(self.names)} of {self.tests} mutants and fakes"
            terminalreporter.write_line(f"retried, {verdict}: {count}: {names}")

    @property
    def exceeded(self) -> bool:
        """Whether more tests were retried than is allowed."""
        return len(self.names) > max(1, RETRIES_ALLOWED * self.tests)


def pytest_configure(config: pytest.Config) -> None:
    """Count retries in the controller, not in the workers of xdist."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Retries(), "retries")
