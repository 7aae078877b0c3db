"""Commands, in a process of their own or in this one."""

import contextlib
import io
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.cli import main

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


def run_here(*words: str, cwd: Path = CHECKOUT, **env: str) -> Done:
    """Run the command line in this process: it costs no imports, and its servers are forked."""
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    out, err = streams
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in {"COLUMNS": "100", **env}.items():
            patch.setenv(name, value)
        patch.chdir(cwd)
        try:
            status = main(words)
        except SystemExit as end:
            status = int(end.code or 0)
    said = [stream.buffer.getvalue().decode("utf-8") for stream in streams]
    return Done(words, status, *said)
