"""What several commands share: messages, the console, the reports of a run."""

from __future__ import annotations

import os

from mcp_touchstone.runtime.console import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Final

    from rich.console import Console

    from mcp_touchstone.config.settings import Settings
    from mcp_touchstone.gate.settlement import Renewal
    from mcp_touchstone.report.kinds import Parts
    from mcp_touchstone.report.terminal import Terminal
    from mcp_touchstone.results.run import Run

INTERRUPTED: Final = 130
CODES: Final = {
    INTERRUPTED: "interrupted",
    1: "failed",
    2: "not checked",
    0: "passed",
}
"""Exit codes of `check`, the worst first, as they are printed for several targets."""


def complain(message: str) -> int:
    """Print an error; return the exit status 2."""
    say(f"mcp-touchstone: {message}", error=True)
    return 2


def announce(settings: Settings, *, error: bool = False) -> None:
    """Print which configuration is used, if one is; to stderr if stdout is for a program."""
    if settings.configuration is not None:
        say(f"configuration: {settings.configuration}", error=error, flush=True)


def shared_reports(several: Sequence[Settings]) -> Parts:
    """Return the parts of the reports that all of several runs write."""
    common = set.intersection(*(set(one.report) for one in several))
    if len(several) == 1 or not common:
        return {}
    from mcp_touchstone.report import kinds

    return kinds.shared(common)


def reports(settings: Settings, parts: Parts, env: Mapping[str, str]) -> Callable[[Run], list[str]]:
    """Return what writes the reports; it returns a line for each that could not be written.

    Args:
        env: the variables that the judged side gets beside ours.
    """
    if not (settings.report or settings.json or settings.save or settings.scripts):
        return lambda _run: []
    from mcp_touchstone.report import kinds

    wanted = kinds.wanted(settings.report, settings.json, settings.save, settings.scripts)
    return lambda run: kinds.write(wanted, run, {**os.environ, **env}, settings.name, parts)


def older(settings: Settings) -> Any:
    """Read the report of ``--since``; None if there is none."""
    if settings.since is None:
        return None
    from mcp_touchstone.report.recorded import load

    return load(settings.since)


def conclude(  # noqa: PLR0917  (two callers)
    run: Run,
    settings: Settings,
    terminal: Terminal,
    write: Callable[[Run], list[str]],
    renewal: Renewal | None,
    old: Any,
    on_run: Callable[[Run], None] = lambda _run: None,
) -> int:
    """Compare a run with the report of ``--since``, show it, and write its reports.

    Return its exit code.
    """
    from mcp_touchstone.runtime import interrupts

    if old is not None:
        from dataclasses import replace

        from mcp_touchstone.catalog.loader import renamed
        from mcp_touchstone.report import machine
        from mcp_touchstone.results.comparison import compare

        since = compare(
            old,
            machine.document(run),
            name=str(settings.since),
            floor=run.floor,
            renamed=renamed(),
        )
        run = replace(run, since=since)
    terminal.finish(run)
    on_run(run)
    if renewal is not None:
        from mcp_touchstone.report import standing

        say(*standing.renewed(renewal))
    with interrupts.held():
        lost = [complain(line) for line in write(run)]
    return lost[0] if lost else run.exit_code


def console(color: str) -> Console:
    """Return the console of the standard output, with colors as ``--color`` says."""
    from rich.console import Console

    class Screen(Console):
        """A console that does not exit the program by itself."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    if color == "auto":
        return Screen()
    return Screen(force_terminal=color == "always", no_color=color == "never")
