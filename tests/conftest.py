"""What several test files share."""

import sys
from pathlib import Path

from mcp_touchstone.target import ROOT

pytest_plugins = ["pytester"]

HERE = Path(__file__).parent
MUTANTS = HERE / "mutants"


def mutant_command(name: str) -> list[str]:
    """Give the command of a mutant."""
    return [sys.executable, str(MUTANTS), name, ROOT]
