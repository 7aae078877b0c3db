"""A run on the terminal: its progress, and then the report."""

import contextlib
from typing import Any

from rich.console import Console
from rich.text import Text

from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.sdk import SdkIdentity
from mcp_touchstone.discovery.recon import ServerProfile
from mcp_touchstone.report.progress import Heartbeat, Progress
from mcp_touchstone.report.sections import report
from mcp_touchstone.report.sheet import STYLES, Sheet
from mcp_touchstone.report.text import NAMELESS
from mcp_touchstone.results.events import Event, Learnt, Met
from mcp_touchstone.results.run import Run
from mcp_touchstone.results.sdk_faults import judged, releases
from mcp_touchstone.results.subject import Subject
from mcp_touchstone.results.verdict import Outcome
from mcp_touchstone.runtime.console import say
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.version import __version__

DECLARE = "--sdk 'NAME VERSION' names it"


class Terminal(Sheet):
    """Prints the progress of a run, and its report."""

    def __init__(self, console: Console, **given: Any) -> None:
        super().__init__(console, **given)
        self._status = console.status("starting the server") if console.is_terminal else None
        self._progress = Progress(console.get_time)
        self._state = "starting the server"
        self._heartbeat = Heartbeat(console.get_time, _to_stderr, lambda: self._state)

    def start(self, command: str, shelter: str = "") -> None:
        """Print the version, the command under test and its sandbox."""
        if not self.quiet:
            self.say(("mcp-touchstone ", "bold"), (__version__, "bold"), "  checks  ", command)
            if shelter:
                self.row("sandbox", shelter)
        if self._status:
            self._status.start()
        elif not self.quiet:
            self._heartbeat.start()

    def stop(self) -> None:
        """Remove the progress line."""
        self._heartbeat.stop()
        if self._status:
            self._status.stop()

    def on_event(self, event: Event) -> None:
        """Show an event of the runner."""
        if isinstance(event, Met):
            self._progress.on_event(event)
            if not self.quiet:
                self.introduce(event.profile)
            self._show_progress("calling its tools, resources and prompts")
        elif isinstance(event, Learnt):
            for remark in event.profile.remarks:
                self.row("remark", remark, STYLES[Outcome.WARN])
        else:
            self._progress.on_event(event)
            self._show_progress(self._progress.text("\n"))

    def _show_progress(self, text: str) -> None:
        self._state = "  ".join(text.splitlines())
        if self._status:
            lines = map(safe, text.splitlines())
            self._status.update(Text("\n".join(lines), no_wrap=True, overflow="ellipsis"))

    def name(self, subject: Subject, *, ran: bool) -> None:
        """Print the name of the judged side of recorded conversations, and its revisions.

        Args:
            ran: whether we ran it, so that we looked for its SDK.
        """
        if subject.revisions:
            self.row(subject.kind, subject.name or NAMELESS)
            if ran:
                self._name_sdk(subject.sdk, subject.kind)
            self.row("speaks", ", ".join(subject.revisions))
            if subject.refused:
                self.row("lacks", ", ".join(subject.refused))

    def _name_sdk(self, sdk: SdkIdentity, side: str) -> None:
        """Print what a server or a client is built on, and whether its faults count."""
        declare = f"; {DECLARE}" if side == "server" else ""
        yours = "" if sdk.sdks else f": its faults count as yours{declare}"
        if sdk.sdks and not any(judged(one, releases(side=side)) for one in sdk.sdks):
            yours = ": none of its releases was judged, so its faults count as yours"
        self.row("sdk", f"{sdk}{yours}")

    def introduce(self, profile: ServerProfile) -> None:
        """Print the name of the server and the revisions it supports."""
        if not profile.spoken:
            return
        self.row("server", profile.name or NAMELESS)
        if not profile.sdk.needless:
            self._name_sdk(profile.sdk, "server")
        more = "" if profile.asked == rev.ALL else " (others not tried)"
        self.row("supports", ", ".join(profile.spoken) + more)
        silent = [revision for revision in profile.asked if revision not in profile.spoken]
        if silent:
            self.row("lacks", ", ".join(silent))

    def finish(self, run: Run) -> None:
        """Print the whole report."""
        self.stop()
        report(self, run)


def _to_stderr(line: str) -> None:
    with contextlib.suppress(OSError, ValueError):
        say(f"mcp-touchstone: {line}", error=True, flush=True)
