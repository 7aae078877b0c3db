"""What a person sees at a terminal: width, colour, progress, Ctrl-C."""

import os
import re
import shlex
import signal
import sys
import time
from typing import Any

import pytest

from tests.conftest import HERE, mutant_command

pexpect = pytest.importorskip("pexpect", exc_type=ImportError)

ROOT = str(HERE.parent)
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def spawn(*words: str, width: int = 80, env: dict[str, str] | None = None) -> Any:
    """Start the tool on a pseudo-terminal of a given width."""
    command = [sys.executable, "-m", "mcp_touchstone.cli", *words]
    own = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(width), **(env or {})}
    own = {
        k: v
        for k, v in own.items()
        if k not in {"NO_COLOR", "FORCE_COLOR", "CI"} or (env and k in env)
    }
    return pexpect.spawn(
        shlex.join(command), cwd=ROOT, env=own, dimensions=(50, width), encoding="utf-8", timeout=60
    )


def screen(child: Any) -> str:
    """Read to the end."""
    child.expect(pexpect.EOF)
    child.close()
    return str(child.before)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_keeps_to_the_width_of_the_terminal(width: int) -> None:
    child = spawn("check", "--select", "ping", "--", *mutant_command("RefusesPings"), width=width)
    lines = [ESCAPE.sub("", line) for line in screen(child).replace("\r", "\n").splitlines()]
    copied = ("mcp-touchstone ", "spec", "again", "http")

    wide = [li for li in lines if len(li) > width and not li.strip().startswith(copied)]

    assert wide == []
    assert child.exitstatus == 1


def test_shows_progress_and_takes_it_away() -> None:
    text = screen(spawn("check", "--select", "lifecycle"))
    final = ESCAPE.sub("", text).splitlines()[-1]

    assert re.search(r"\d+/\d+  conformance/basic/lifecycle", ESCAPE.sub("", text))
    assert final.startswith("conforming")


def test_colours_a_terminal_and_honours_no_color() -> None:
    words = ("check", "--select", "ping", "-q")

    assert "\x1b[3" in screen(spawn(*words))
    assert "\x1b[3" not in screen(spawn(*words, env={"NO_COLOR": "1"}))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_it_ends_the_servers_and_says_what_it_had(number: signal.Signals) -> None:
    child = spawn(
        "check", "--timeout", "60", "--", sys.executable, "tests/hostile/never_answers.py"
    )
    child.expect("never_answers")
    time.sleep(1.5)
    begun = time.monotonic()
    child.kill(number)
    text = ESCAPE.sub("", screen(child))

    assert child.exitstatus == 130
    assert "interrupted" in text
    assert "Traceback" not in text
    assert time.monotonic() - begun < 10


def test_interrupted_half_way_it_leaves_a_partial_summary() -> None:
    child = spawn("check", "--jobs", "1", "--", *mutant_command("SaysNothingWrong"))
    child.expect(r"[5-9]/\d\d+ ")
    child.kill(signal.SIGINT)
    text = ESCAPE.sub("", screen(child))

    assert child.exitstatus == 130
    assert "judged" in text
    assert "what was judged until then is shown" in text
