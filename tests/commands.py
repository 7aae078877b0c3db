"""Commands that run in a process of their own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[1]
Done = subprocess.CompletedProcess[str]


def ran(command: Sequence[str | Path], **options: Any) -> Done:
    """Run a command; return its status and what it printed."""
    fixed: dict[str, Any] = {"capture_output": True, "encoding": "utf-8", "timeout": 300}
    done: Done = subprocess.run(command, check=False, **fixed | options)
    return done


def touchstone(*words: str, cwd: Path = CHECKOUT, **env: str) -> Done:
    """Run the command line of the checkout, with further variables."""
    env = {**os.environ, "COLUMNS": "100", "PYTHONIOENCODING": "utf-8", **env}
    return ran([sys.executable, "-m", "mcp_touchstone", *words], cwd=cwd, env=env)
