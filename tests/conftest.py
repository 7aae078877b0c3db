"""What several test files share."""

import signal
import sys
from pathlib import Path

from hypothesis import HealthCheck, settings

from mcp_touchstone.target import ROOT

pytest_plugins = ["pytester"]

# Who is started in the background by a shell script ignores interrupts, and so would all it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test of ours is about the speed of the machine it runs on. In CI the parent is Hypothesis' own
# profile for it, which draws the same examples every time.
settings.register_profile(
    "unhurried", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("unhurried")

HERE = Path(__file__).parent
MUTANTS = HERE / "mutants"


def mutant_command(name: str) -> list[str]:
    """Give the command of a mutant."""
    return [sys.executable, str(MUTANTS), name, ROOT]
