"""Output at a terminal: width, colour, progress, Ctrl-C."""

import os
import re
import shlex
import signal
import sys
from types import SimpleNamespace
from typing import Any, cast

import pytest
from syrupy.assertion import SnapshotAssertion

from mcp_touchstone.catalog.loader import load
from mcp_touchstone.catalog.sdk import SdkIdentity
from mcp_touchstone.cli import main
from mcp_touchstone.report.progress import Progress
from mcp_touchstone.results.events import Found, Met
from mcp_touchstone.results.run import PlannedCase
from mcp_touchstone.results.sdk_faults import releases
from mcp_touchstone.results.verdict import Judgement, Outcome
from tests import canned
from tests.conftest import HERE, mutant_command
from tests.goldens import Golden, scrubbed
from tests.hostile_cases import hostile

pytestmark = pytest.mark.slow

pyte = pytest.importorskip("pyte")
pexpect = pytest.importorskip("pexpect", exc_type=ImportError)

ROOT = str(HERE.parent)
SMALL = (sys.executable, "-S", str(HERE / "golden_server.py"), "{root}")
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
def test_output_keeps_to_the_terminal_width(width: int) -> None:
    child = spawn(
        *("check", "--select", "answers_a_ping", "--", *SMALL, "refuses-pings"), width=width
    )
    lines = [ESCAPE.sub("", line) for line in screen(child).replace("\r", "\n").splitlines()]
    copied = ("mcp-touchstone ", "spec", "again", "http")

    wide = [li for li in lines if len(li) > width and not li.strip().startswith(copied)]

    assert wide == []
    assert child.exitstatus == 1


def test_progress_is_shown_and_removed() -> None:
    text = screen(spawn("check", "--self", "--select", "lifecycle", "--revision", "2025-11-25"))
    final = ESCAPE.sub("", text).splitlines()[-2:]

    assert re.search(r"\d+/[\d…]+  conformance/basic/lifecycle", ESCAPE.sub("", text))
    assert any(line.startswith("passed") for line in final)


def test_colours_are_used_unless_no_color_is_set() -> None:
    words = ("check", "--select", "answers_a_ping", "-q", "--", *SMALL)

    assert "\x1b[3" in screen(spawn(*words))
    assert "\x1b[3" not in screen(spawn(*words, env={"NO_COLOR": "1"}))


def test_sigterm_exits_130_and_reports_the_interruption() -> None:
    child = spawn("check", "--timeout", "600", "--", *hostile("never_answers"))
    child.expect("never_answers")
    child.kill(signal.SIGTERM)
    text = ESCAPE.sub("", screen(child))

    assert child.exitstatus == 130
    assert "interrupted" in text
    assert "Traceback" not in text


def test_interrupt_prints_a_partial_summary() -> None:
    child = spawn("check", "--jobs", "1", "--", *mutant_command("SaysNothingWrong"))
    child.expect(r"[5-9]/\d\d+ ")
    child.kill(signal.SIGINT)
    text = ESCAPE.sub("", screen(child))

    assert child.exitstatus == 130
    assert "verdicts until" in text


def test_heartbeat_reports_a_slow_server_unless_quiet(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mcp_touchstone.report.progress.HEARTBEAT", 0.01)
    mute = hostile("never_answers")
    words = ["check", "--timeout", "1", "--revision", "2025-11-25"]

    assert main([*words, "--", *mute]) == 2
    assert "mcp-touchstone: 0 s" in capfd.readouterr().err
    assert main([*words, "-q", "--", *mute]) == 2
    assert "starting the server" not in capfd.readouterr().err


def test_progress_shows_the_running_scenario_and_the_remaining_time() -> None:
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
    assert progress.text() == "1/40  basic/ping  2025-11-25"
    for _ in range(9):
        progress.done("basic/stdio  2025-11-25")
    assert progress.text() == "10/40  basic/ping  2025-11-25  about 20 s left"
    for _ in range(10):
        progress.done("basic/stdio  2025-11-25")
    assert progress.text() == "20/40  basic/ping  2025-11-25  about 10 s left"
    for _ in range(20):
        progress.done("basic/ping  2025-11-25")
    assert progress.text() == "40/40"


def test_the_remaining_time_does_not_grow() -> None:
    now = [0.0]
    progress = Progress(clock=lambda: now[0])
    progress.plan(8)
    for _ in range(4):
        progress.done("basic/ping  2025-11-25")
    now[0] = 8.0
    assert progress.text() == "4/8  about 10 s left"
    progress.plan(80)
    for _ in range(20):
        progress.done("basic/ping  2025-11-25")
    now[0] = 60.0
    assert progress.text() == "24/80"


def test_progress_counts_done_scenarios_before_the_total_is_known() -> None:
    progress = Progress(clock=lambda: 0.0)
    progress.start("basic/ping  2025-11-25")
    progress.done("basic/ping  2025-11-25")
    assert progress.text() == "1/…"
    progress.plan(40)
    assert progress.text() == "1/40"


def test_progress_names_each_clause_that_certainly_fails(snapshot: SnapshotAssertion) -> None:
    progress = Progress(clock=lambda: 0.0)
    progress.plan(40)
    progress.start("basic/ping  2025-11-25")
    for rule, revision, outcome in (
        (canned.KNOWN_RULE, canned.NEW, Outcome.FAIL),
        (canned.WEAK_RULE, canned.NEW, Outcome.WARN),
        (canned.BROKEN_RULE, canned.OLD, Outcome.FAIL),
        (canned.BROKEN_RULE, canned.NEW, Outcome.FAIL),
    ):
        found = canned.verdict(rule, revision, outcome)
        case = PlannedCase(cast("Any", None), revision, (rule,))
        progress.on_event(Found(case, found.judgements))

    text = f"{progress.text()}\n\n{progress.text(between=chr(10))}\n"
    assert text == snapshot.use_extension(Golden)


def test_progress_names_no_fault_of_the_sdk() -> None:
    release = next(one for one in releases(http=True) if one.faults)
    fault = next(one for one in sorted(release.faults) if one.outcome == str(Outcome.FAIL))
    clause = load().catalogue[fault.clause]
    judgement = Judgement(
        clause=fault.clause,
        revision=fault.revision,
        outcome=Outcome.FAIL,
        scenario=fault.scenario,
    )
    found = Found(PlannedCase(cast("Any", None), fault.revision, (clause,)), [judgement])
    own, sdk = Progress(clock=lambda: 0.0), Progress(clock=lambda: 0.0)

    sdk.on_event(Met(cast("Any", SimpleNamespace(sdk=SdkIdentity((release.sdk,))))))
    for progress in (own, sdk):
        progress.on_event(found)

    assert fault.clause in own.text()
    assert "failed" not in sdk.text()


class Screen:
    """The final content of a terminal of 80 columns."""

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
    "pass": ((*PING, "--self"), 0),
    "fail": ((*PING, "--", *mutant_command("RefusesPings")), 1),
    "quiet": ((*PING, "-q", "--", *mutant_command("RefusesPings")), 1),
    "broken": (("check", "--", *hostile("exits_at_once")), 2),
    "interrupted": (
        ("check", "--timeout", "600", "--", *hostile("never_answers")),
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
    """Remove the command, whose length and line breaks depend on the checkout path."""
    text = re.sub(
        r"(?m)^(mcp-touchstone \S+  checks  ).*\n(?:(?!  \S|\n).+\n)*", r"\1<command>\n", text
    )
    return re.sub(r"(?m)^(  again +).*\n(?:(?!  \S|\n).+\n)*", r"\1<command>\n", text)


@pytest.mark.parametrize("rest", ["", "mutants Name '{root}'\n", " Name '{root}'\n", "a\n b\n"])
def test_command_is_removed_across_line_breaks(rest: str) -> None:
    text = f"mcp-touchstone 1  checks  x\n{rest}  server  y\n\n  again      x\n{rest}\nz\n"
    shown = "mcp-touchstone 1  checks  <command>\n  server  y\n\n  again      <command>\n\nz\n"

    assert nameless(text) == shown


def test_every_golden_screen_belongs_to_a_test() -> None:
    folder = HERE.parent / "golden" / "test_terminal"
    names = {f"test_what_is_seen_when_it_is_over[{name}].txt" for name in SEEN}
    names.add("test_progress_names_each_clause_that_certainly_fails.txt")

    assert {path.name for path in folder.glob("*")} == names
