"""What a person sees at a terminal: width, colour, progress, Ctrl-C."""

import os
import re
import shlex
import signal
import sys
import time
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from mcp_touchstone.report.progress import Progress
from tests.conftest import HERE, mutant_command
from tests.test_golden import Golden, scrubbed

pyte = pytest.importorskip("pyte")
pexpect = pytest.importorskip("pexpect", exc_type=ImportError)

ROOT = str(HERE.parent)
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def spawn(*words: str, width: int = 80, env: dict[str, str] | None = None) -> Any:
    """Start the tool on a pseudo-terminal of a given width."""
    command = [sys.executable, "-m", "mcp_touchstone", *words]
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


# --- the line that shows progress


def test_progress_says_what_is_under_way_and_how_long_the_rest_may_take() -> None:
    now = [0.0]
    progress = Progress(clock=lambda: now[0])
    progress.plan(40)
    progress.start("basic/ping  2025-11-25")
    progress.start("basic/jsonrpc  2025-11-25")
    assert progress.text() == "0/40  basic/jsonrpc  2025-11-25"

    now[0] = 4.0
    progress.done("basic/jsonrpc  2025-11-25")
    assert progress.text() == "1/40  basic/ping  2025-11-25"
    now[0] = 6.0
    assert progress.text().endswith("25  about 4 min left")
    for _ in range(19):
        progress.done("basic/stdio  2025-11-25")
    assert progress.text() == "20/40  basic/ping  2025-11-25  about 10 s left"
    for _ in range(20):
        progress.done("basic/ping  2025-11-25")
    assert progress.text() == "40/40"


def test_progress_counts_what_is_done_before_it_is_known_how_much_there_is() -> None:
    progress = Progress(clock=lambda: 0.0)
    progress.start("basic/ping  2025-11-25")
    progress.done("basic/ping  2025-11-25")
    assert progress.text() == "1/…"
    progress.plan(40)
    assert progress.text() == "1/40"


# --- whole screens


class Screen:
    """What a person sees who looks at a terminal of 80 columns when all is over."""

    def __init__(self, child: Any) -> None:
        self._child = child
        self._screen = pyte.HistoryScreen(80, 60, history=1000)
        self._stream = pyte.Stream(self._screen)

    def until(self, pattern: str) -> None:
        self._child.expect(pattern)
        self._stream.feed(self._child.before + self._child.after)

    def text(self) -> str:
        self._child.expect(pexpect.EOF)
        self._stream.feed(self._child.before)
        self._child.close()
        above = ["".join(line[x].data for x in range(80)) for line in self._screen.history.top]
        return "\n".join(line.rstrip() for line in [*above, *self._screen.display]).rstrip() + "\n"


PING = ("check", "--select", "ping", "--revision", "2025-11-25")
SEEN: dict[str, tuple[tuple[str, ...], int]] = {
    "pass": (PING, 0),
    "fail": ((*PING, "--", *mutant_command("RefusesPings")), 1),
    "quiet": ((*PING, "-q", "--", *mutant_command("RefusesPings")), 1),
    "broken": (("check", "--", sys.executable, str(HERE / "hostile" / "exits_at_once.py")), 2),
    "interrupted": (
        ("check", "--timeout", "60", "--", sys.executable, str(HERE / "hostile/never_answers.py")),
        130,
    ),
}


@pytest.mark.parametrize("name", SEEN)
def test_what_is_seen_when_it_is_over(name: str, snapshot: SnapshotAssertion) -> None:
    words, status = SEEN[name]
    child = spawn(*words)
    screen = Screen(child)
    if name == "interrupted":
        screen.until("starting the server")
        child.kill(signal.SIGINT)
    text = screen.text()

    assert child.exitstatus == status, text
    assert scrubbed(nameless(text)) == snapshot.use_extension(Golden)


def nameless(text: str) -> str:
    """Take the command out: how long it is, and so where it is broken, depends on this place."""
    text = re.sub(
        r"(?m)^(mcp-touchstone \S+  judges  ).*\n(?:(?!  \S|\n).+\n)*", r"\1<command>\n", text
    )
    return re.sub(r"(?m)^(  again +).*\n(?:(?!  \S|\n).+\n)*", r"\1<command>\n", text)


@pytest.mark.parametrize("rest", ["", "mutants Name '{root}'\n", " Name '{root}'\n", "a\n b\n"])
def test_a_command_is_taken_out_wherever_it_is_broken(rest: str) -> None:
    text = f"mcp-touchstone 1  judges  x\n{rest}  server  y\n\n  again      x\n{rest}\nz\n"
    shown = "mcp-touchstone 1  judges  <command>\n  server  y\n\n  again      <command>\n\nz\n"

    assert nameless(text) == shown


def test_no_screen_is_left_over() -> None:
    folder = HERE.parent / "golden" / "test_terminal"
    names = {f"test_what_is_seen_when_it_is_over[{name}].txt" for name in SEEN}

    assert {path.name for path in folder.glob("*")} == names
