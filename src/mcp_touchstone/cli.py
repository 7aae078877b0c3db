"""The command line: read settings, run one command, print. Imports the rest where it is used."""

from __future__ import annotations

import contextlib
import os
import sys

from mcp_touchstone.runtime.console import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from typing import Any, Final, NoReturn

    from rich.console import Console

    from mcp_touchstone.catalog.scenario import Registry
    from mcp_touchstone.config.parser import CommandLine
    from mcp_touchstone.config.settings import Settings
    from mcp_touchstone.fleet.judge import Plan
    from mcp_touchstone.report.kinds import Parts
    from mcp_touchstone.report.terminal import Terminal
    from mcp_touchstone.results.events import Event
    from mcp_touchstone.results.run import Run
    from mcp_touchstone.sandbox.sandbox import Method
    from mcp_touchstone.tap.recording import Recording
    from mcp_touchstone.target.target import Target

INTERRUPTED: Final = 130
CODES: Final = {
    INTERRUPTED: "interrupted",
    1: "failed",
    2: "not checked",
    0: "passed",
}
"""Exit codes of `check`, the worst first, as they are printed for several targets."""

JOBS: Final = 20
"""Conversations at a time for each processor core, shared by the servers of a fleet."""

RARELY: Final = (500_000, 50, 50)
"""Garbage collection thresholds of a process that is ours: a run keeps nearly all it makes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["serve"]:  # before anything is imported that only checking needs
        from mcp_touchstone import server

        return server.main(words[1:])
    from mcp_touchstone.runtime import interrupts

    if arguments is None:
        interrupts.take()
    try:
        return _main(words, ours=arguments is None)
    except KeyboardInterrupt:
        _complain("interrupted")
        return INTERRUPTED


def _main(words: list[str], *, ours: bool) -> int:  # noqa: PLR0911  (one for each end)
    """Run a command other than ``serve``; ``ours`` says whether the process is ours."""
    from mcp_touchstone.catalog.errors import UserError
    from mcp_touchstone.config.parser import parse, parser

    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could come next
        import argcomplete

        argcomplete.autocomplete(parser())
    line = parse(words)
    options, name = line.options, line.options.subcommand
    if ours and name in {"check", "init", "recon", "golden", "load"}:
        _take_charge()
    if sys.stdout is not None and ours:
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        if name in {"tap", "client"}:
            return _finished(_tap(line) if name == "tap" else _client(line))
        if name in WITHOUT_SERVER:
            return _finished(WITHOUT_SERVER[name](options))
        from mcp_touchstone.config import resolve

        if name == "check" and options.record is not None:
            return _finished(_check_record(line))
        found = resolve.settings(line)
        if name == "check":
            return _finished(_check(found))
        return _finished(WITH_SERVER[name](options, found[0]))
    except UserError as error:
        return _complain(str(error))
    except BrokenPipeError:
        _discard()
        return 141
    except OSError as error:  # a full disk, or no descriptors left: nothing of the server's
        _discard()
        return _complain(f"{error.filename or 'the output'}: {error.strerror or error}")


def program() -> NoReturn:
    """Run the command line and exit at once, without the interpreter's own shutdown.

    The interpreter would free every object of a long run; by then all is written and ended.
    """
    status = main()
    with contextlib.suppress(KeyboardInterrupt):
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
    os._exit(status)


def _discard() -> None:
    """Discard output that is not written yet, so that its failure is not reported at exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        number = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


def _finished(status: int) -> int:
    """Flush the output and return the exit status."""
    if sys.stdout is not None:
        sys.stdout.flush()
    return status


def _complain(message: str) -> int:
    say(f"mcp-touchstone: {message}", error=True)
    return 2


# --- check


def _check(several: Sequence[Settings]) -> int:
    """Check one server after another; return the worst exit code."""
    from mcp_touchstone.catalog.errors import UserError

    codes: dict[str, int] = {}
    parts = _shared_reports(several)
    for one in several:
        if codes:
            say("")
        try:
            codes[one.name] = _check_one(one, parts)
        except UserError as error:  # the others are checked all the same
            codes[one.name] = _complain(str(error))
            if parts:
                from mcp_touchstone.report import kinds

                for line in kinds.write_missing(
                    kinds.wanted(one.report), parts, one.name, str(error)
                ):
                    _complain(line)
        if codes[one.name] == INTERRUPTED:
            break
    if len(several) > 1:
        say("")
        width = max(map(len, codes))
        for name, code in codes.items():
            say(f"  {name:<{width}}  {CODES[code]}")
    return next(code for code in CODES if code in codes.values())


def _check_record(line: CommandLine) -> int:
    """Check the server of a registry record, and print where the two differ."""
    from mcp_touchstone.config.settings import layer, merged
    from mcp_touchstone.fleet import servers

    options = line.options
    if line.server or options.words or options.config or "bundled" in options or "url" in options:
        return _complain(f"--from {options.record}: it names the server; drop the other one")
    own = layer(vars(options))
    entry = servers.record_of(options.record, own.get("env", {}))
    settings = merged({"command": entry.launch, "url": entry.url, "env": dict(entry.env)}, own)
    say(f"server: {entry.url or ' '.join(entry.launch)}", flush=True)

    def compare(run: Run) -> None:
        said = next(iter(reversed(run.profile.spoken.values())), None)
        for one in servers.differences(entry, said.server_info if said else {}):
            say(f"record: {one}")

    return _check_one(settings, {}, compare, servers.published(options.record))


def _shared_reports(several: Sequence[Settings]) -> Parts:
    common = set.intersection(*(set(one.report) for one in several))
    if len(several) == 1 or not common:
        return {}
    from mcp_touchstone.report import kinds

    return kinds.shared(common)


def _check_one(
    settings: Settings,
    parts: Parts,
    on_run: Callable[[Run], None] = lambda _run: None,
    record: Mapping[str, Any] | None = None,
) -> int:
    import threading
    from dataclasses import replace

    from mcp_touchstone.config import resolve
    from mcp_touchstone.engine.runner import judge
    from mcp_touchstone.runtime import interrupts

    write = _reports(settings, parts)
    target = resolve.target(settings)
    choice = replace(resolve.choice(settings), record=record)
    book = resolve.book(settings)
    old = None if settings.since is None else _recorded(settings.since)
    _check_budget(settings)
    screen = _Screen(settings, target)
    try:
        run = judge(target, screen.read, choice, on_event=screen.on_event, stop=threading.Event())
    finally:
        screen.stop()
    renewal = None if book is None else book.hold(run, screen.read(), choice)
    if (settings.budget is not None or settings.update_budget) and run.budgets.tokens:
        _hold_budget(run, settings)
    if old is not None:
        from mcp_touchstone.catalog.loader import renamed
        from mcp_touchstone.report import machine
        from mcp_touchstone.results.comparison import compare

        run.since = compare(
            old,
            machine.document(run),
            name=str(settings.since),
            floor=run.floor,
            renamed=renamed(),
        )
    screen.terminal.finish(run)
    on_run(run)
    if renewal is not None:
        from mcp_touchstone.report import standing

        for line in standing.renewed(renewal):
            say(line)
    with interrupts.held():
        lost = [_complain(line) for line in write(run)]
    return lost[0] if lost else run.exit_code


def _check_budget(settings: Settings) -> None:
    """Refuse a wrong file of budgets before the server is started."""
    if settings.budget is not None:
        from mcp_touchstone.gate import budget_file

        if settings.budget.exists() or not settings.update_budget:
            budget_file.load(settings.budget)


def _hold_budget(run: Run, settings: Settings) -> None:
    """Compare the costs of a run with the file of budgets, or write them into it."""
    from pathlib import Path

    from mcp_touchstone.gate import budget_file

    path = settings.budget or Path("budgets.toml")
    if settings.update_budget:
        budget_file.update(run.budgets, path)
    run.budgets = budget_file.hold(run.budgets, path)


class _Screen:
    """What a check prints. Its modules are imported while the server starts."""

    def __init__(self, settings: Settings, target: Target) -> None:
        self._settings = settings
        self._target = target
        self._terminal: Terminal | None = None
        self._over = False

    def read(self) -> Registry:
        """Open the terminal, and read the suite."""
        from mcp_touchstone.catalog.loader import load

        _ = self.terminal
        return load(self._settings.suite)

    @property
    def terminal(self) -> Terminal:
        """The terminal, opened on first use."""
        from mcp_touchstone.report.terminal import Terminal

        if self._terminal is None:
            settings = self._settings
            self._terminal = Terminal(
                _console(settings.color),
                verbose=settings.verbose,
                quiet=settings.quiet,
                environment={**os.environ, **self._target.env},
            )
            self._terminal.start(self._target.shown, self._target.shelter)
            if self._over:
                self._terminal.stop()
        return self._terminal

    def on_event(self, event: Event) -> None:
        """Follow the gate."""
        self.terminal.on_event(event)

    def stop(self) -> None:
        """Remove the progress line for good."""
        self._over = True
        if self._terminal is not None:
            self._terminal.stop()


def _reports(settings: Settings, parts: Parts) -> Callable[[Run], list[str]]:
    """Return what writes the reports; it returns a line for each that could not be written."""
    if not (settings.report or settings.json or settings.save or settings.scripts):
        return lambda _run: []
    from mcp_touchstone.report import kinds

    wanted = kinds.wanted(settings.report, settings.json, settings.save, settings.scripts)
    return lambda run: kinds.write(wanted, run, os.environ, settings.name, parts)


def _recorded(path: Path) -> Any:
    from mcp_touchstone.report.recorded import load

    return load(path)


def _init(options: argparse.Namespace, settings: Settings) -> int:
    from mcp_touchstone.config import files, resolve, scaffold
    from mcp_touchstone.engine.runner import survey
    from mcp_touchstone.runtime import interrupts

    files.may_write(options.output, force=options.force)
    target = resolve.target(settings, explores=True)
    profile, _ = survey(target)
    if not profile.spoken:
        return _complain(f"nothing was written: {profile.trouble}; does the command start it?")
    source = (str(options.config), settings.name or None) if options.config else None
    with interrupts.held():
        files.write(options.output, scaffold.text(target, profile, source))
    for line in scaffold.again(str(options.output)):
        say(line)
    return 0


def _diff(options: argparse.Namespace) -> int:
    import json

    from mcp_touchstone.catalog.loader import renamed
    from mcp_touchstone.config import resolve
    from mcp_touchstone.config.settings import layer, merged
    from mcp_touchstone.report import comparison as report
    from mcp_touchstone.report.recorded import load
    from mcp_touchstone.results.comparison import compare

    settings = merged(layer(vars(options)))
    floor = resolve.floor(settings.fail_on)
    old, new = load(options.old), load(options.new)
    found = compare(old, new, name=str(options.old), floor=floor, renamed=renamed())
    if options.format == "json":
        say(*json.dumps(report.document(found), indent=2).split("\n"))
        return found.exit_code
    markdown = options.format == "markdown"
    for line in (
        report.markdown(found) if markdown else report.text(found, verbose=settings.verbose)
    ):
        say(line)
    return found.exit_code


def _report(options: argparse.Namespace) -> int:
    from mcp_touchstone.report import kinds
    from mcp_touchstone.report.reread import read

    given = ((kind, getattr(options, kind)) for kind in kinds.RENDERERS)
    words = [f"{kind}:{path}" for kind, path in given if path is not None]
    if not words:
        known = ", ".join(f"--{kind}" for kind in kinds.RENDERERS)
        return _complain(f"no report is named; add one of {known}")
    wanted = kinds.wanted(words)
    lost = kinds.write(wanted, read(options.run), os.environ)
    for line in lost:
        _complain(line)
    return 2 if lost else 0


def _recon(options: argparse.Namespace, settings: Settings) -> int:
    import json

    from mcp_touchstone.catalog import revision as rev
    from mcp_touchstone.config import resolve
    from mcp_touchstone.engine.process_pool import inherited
    from mcp_touchstone.engine.runner import survey
    from mcp_touchstone.report import survey as report

    target = resolve.target(settings, explores=True)
    profile, processes = survey(target, settings.revision)
    revisions = list(settings.revision or rev.ALL)
    if options.as_json:
        say(*json.dumps(report.document(profile, revisions, processes), indent=2).split("\n"))
    else:
        variables = inherited(os.environ, target)
        for line in report.text(
            profile, revisions, processes, shelter=target.shelter, variables=variables
        ):
            say(line)
    return 0 if profile.spoken else 2


def _load(_options: argparse.Namespace, settings: Settings) -> int:
    from mcp_touchstone.config import resolve
    from mcp_touchstone.engine.load import lines, load

    found = load(resolve.target(settings))
    for line in lines(found):
        say(line)
    return found.exit_code


def _golden(options: argparse.Namespace, settings: Settings) -> int:
    from dataclasses import replace

    from mcp_touchstone.config import resolve
    from mcp_touchstone.recordings.recorder import record, recorded_suite, verify
    from mcp_touchstone.report import golden as report

    revisions = settings.revision
    records = options.action == "record"
    suite = options.scenarios or "" if records else recorded_suite(options.folder)
    # the suite decides whether the server needs a sandbox
    target = resolve.target(replace(settings, suite=suite or settings.suite))
    try:
        if records:
            results = record(
                target,
                options.folder,
                revisions,
                suite=suite,
                update=options.update,
                any_version=options.any_version,
            )
            lines = [line for one in results for line in report.recorded(one)]
        else:
            results = verify(
                target, options.folder, revisions, update=options.update, create=options.create
            )
            lines = [
                line for one in results for line in report.verified(one, verbose=settings.verbose)
            ]
    except OSError as error:
        return _complain(f"the recording could not be written: {error}")
    for line in lines:
        say(line)
    return max(one.exit_code for one in results)


def _bridge(options: argparse.Namespace, settings: Settings) -> int:
    from mcp_touchstone.bridge.child import Launch
    from mcp_touchstone.bridge.listener import Listener, until_signal
    from mcp_touchstone.config import resolve
    from mcp_touchstone.runtime import interrupts
    from mcp_touchstone.runtime.scratch import World

    if settings.sandbox not in {"", "off"}:
        return _complain(f"--sandbox {settings.sandbox}: bridge starts the server outside; drop it")
    if settings.url:
        return _complain(f"{settings.url}: it speaks HTTP already; bridge serves stdio servers")
    target = resolve.target(settings)
    try:
        with (
            interrupts.held(),
            World(target.world, seed=target.root_from) as world,
            interrupts.allowed(),
        ):
            launch = Launch(
                command=target.command_in(world.root),
                env={**os.environ, **target.env_in(world.root)},
                cwd=target.cwd_in(world.root),
            )
            launch.check()
            with Listener(
                launch, port=options.port, most=options.sessions, startup=settings.timeout
            ) as listener:
                stopped = until_signal(lambda: say(listener.start(), flush=True))
    except OSError as error:
        return _complain(f"port {options.port} cannot be used: {error.strerror}")
    return stopped


def _tap(line: CommandLine) -> int:
    """Stand between a client and a server, or edit the file of a client."""
    from mcp_touchstone.tap import recording, relay

    options, command = line.options, line.server
    if options.wrap or options.unwrap:
        return _wrap(options) if command is None else _complain("--wrap and a command: keep one")
    if options.words or not command:
        return _complain("tap: write the command of the server behind `--`, and --report DIR")
    if options.report is None:
        return _complain("tap: name the folder of the recordings with --report DIR")
    about = {"command": recording.shown(command)}
    recorder = recording.recorder(options.report, about, os.environ)
    return relay.exit_like(relay.run(command, recorder))


def _wrap(options: argparse.Namespace) -> int:
    from pathlib import Path

    from mcp_touchstone.config import client_wrap
    from mcp_touchstone.config.settings import ConfigError

    file: Path = options.wrap or options.unwrap
    name = options.words[0] if options.words else None
    if options.words[1:]:
        return _complain(f"unrecognized argument {options.words[1]!r}")
    report = (options.report or Path("mcp-tap")).absolute()
    try:
        text = file.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: it is not UTF-8") from error
    if options.wrap:
        new, names = client_wrap.wrapped(text, str(file), name, report)
    else:
        new, names = client_wrap.unwrapped(text, str(file), name)
    file.write_bytes(new.encode())
    for one in names:
        say(f"{one}: recorded in {report}" if options.wrap else f"{one}: not recorded any more")
    return 0


def _tap_show(options: argparse.Namespace) -> int:
    from mcp_touchstone.tap import recording, show

    width = _console("auto").width
    for number, one in enumerate(recording.read_all(options.folder)):
        say(*([""] if number else []), *show.text(one, width))
    return 0


def _judge(options: argparse.Namespace) -> int:
    """Judge the sides of recorded conversations; return the worst exit code."""
    from mcp_touchstone.config.settings import layer, merged
    from mcp_touchstone.report.text import plural
    from mcp_touchstone.tap import judge, recording

    settings = merged(layer(vars(options)))
    recordings = recording.read_all(options.folder)
    sides = judge.SIDES if options.side == "both" else (options.side,)
    if len(sides) > 1 and (settings.json or settings.baseline or settings.update_baseline):
        return _complain("--json and --baseline are for one side; add --side client or server")
    parts = _shared_reports([settings] * len(sides))
    codes: set[int] = set()
    for side in sides:
        again = ("judge", str(options.folder), "--side", side)
        count = plural(len(recordings), "recording")
        head = f"{count} in {options.folder}: the {side}"
        if codes:
            say("")
        code = _judge_side(settings, recordings, side, parts, head, again)
        codes.add(code)
    return next(code for code in CODES if code in codes)


def _client(line: CommandLine) -> int:
    """Run a client in each scenario, and judge it."""
    from pathlib import Path
    from tempfile import TemporaryDirectory

    from mcp_touchstone.config.settings import layer, merged
    from mcp_touchstone.report.text import plural
    from mcp_touchstone.tap import drive, judge, scenarios

    options, command = line.options, line.server
    if not command:
        return _complain("client: write the command of the client behind `--`")
    names = options.scenario or list(scenarios.SCENARIOS)
    for name in names:
        scenarios.find(name)
    settings = merged(layer(vars(options)))
    played = []
    with contextlib.ExitStack() as stack:
        folder = options.recordings or Path(stack.enter_context(TemporaryDirectory()))
        for name in names:
            try:
                one = drive.play(
                    command, name, folder / name, http=options.over_http, limit=options.limit
                )
            except OSError as error:
                return _complain(f"client: {command[0]}: {error.strerror}")
            played.append(one)
            if not settings.quiet:
                say(f"  {name:<14} {one.trouble.partition(': ')[2] or 'played'}", flush=True)
                for text in one.said if one.trouble else ():
                    say(f"{'':16} {text}")
    trouble = "; ".join(one.trouble for one in played if one.trouble)
    recordings = [found for one in played for found in one.recordings]
    again = ("client", "-v", *(["--http"] if options.over_http else []), "--", *command)
    head = f"{plural(len(played), 'scenario')} of {' '.join(command)}: the client"
    return _judge_side(settings, recordings, judge.CLIENT, {}, head, again, trouble)


def _act(options: argparse.Namespace) -> int:
    from mcp_touchstone.tap import act, recording, scenarios

    if options.listing:
        width = max(map(len, scenarios.SCENARIOS))
        for name, part in scenarios.SCENARIOS.items():
            say(f"{name:<{width}}  {(part.__doc__ or '').partition(chr(10))[0]}")
        return 0
    if options.scenario is None or options.report is None:
        return _complain("act: name a scenario and the folder of the recordings with --report DIR")
    part = scenarios.find(options.scenario)
    about = {"scenario": options.scenario, "pid": os.getpid()}
    return act.play(part(recording.recorder(options.report, about, os.environ)))


def _judge_side(  # noqa: PLR0917  (one caller for each command)
    settings: Settings,
    recordings: Sequence[Recording],
    side: str,
    parts: Parts,
    head: str,
    again: Sequence[str],
    trouble: str = "",
) -> int:
    """Judge one side of conversations, and report on it."""
    from dataclasses import replace

    from mcp_touchstone import __version__
    from mcp_touchstone.catalog.loader import load
    from mcp_touchstone.config import resolve
    from mcp_touchstone.report.terminal import Terminal
    from mcp_touchstone.tap import judge

    settings = replace(settings, name=side)
    choice = resolve.choice(settings)
    run = judge.judge(recordings, side, choice, again, trouble)
    write = _reports(settings, parts)
    if settings.baseline:
        book = resolve.book(settings)
        renewal = None if book is None else book.hold(run, load(judge.SUITES[side]), choice)
        if renewal is not None:
            from mcp_touchstone.report import standing

            say(*standing.renewed(renewal))
    terminal = Terminal(
        _console(settings.color),
        verbose=settings.verbose,
        quiet=settings.quiet,
        environment=os.environ,
    )
    if not settings.quiet:
        terminal.say(("mcp-touchstone ", "bold"), __version__, "  judges  ", head)
        terminal.name(side, run.profile)
    terminal.finish(run)
    lost = [_complain(line) for line in write(run)]
    return lost[0] if lost else run.exit_code


def _take_charge() -> None:
    """Adopt processes that servers leave behind, and let none of them write core dumps."""
    import gc

    from mcp_touchstone.transport.orphans import adopt, end_with_parent, return_memory

    adopt()
    end_with_parent()
    return_memory()
    gc.set_threshold(*RARELY)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _console(color: str) -> Console:
    from rich.console import Console

    class Screen(Console):
        """A console that does not exit the program by itself."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    if color == "auto":
        return Screen()
    return Screen(force_terminal=color == "always", no_color=color == "never")


# --- the catalogue


def _list(options: argparse.Namespace) -> int:
    from mcp_touchstone.report import catalogue

    catalogue.listing(options.word, suite=options.suite, levels=options.level)
    return 0


def _explain(options: argparse.Namespace) -> int:
    from mcp_touchstone.catalog.clause import CatalogueError
    from mcp_touchstone.report import catalogue

    try:
        catalogue.explain(options.clause)
    except CatalogueError as error:
        if catalogue.is_of_profile(options.clause):
            return _complain(str(error))
        chapter = f" {options.clause}" if catalogue.is_listed(options.clause) else ""
        return _complain(f"{error}; `mcp-touchstone list{chapter}` shows them")
    return 0


def _fleet(options: argparse.Namespace) -> int:
    from mcp_touchstone.fleet import containers, drive, servers
    from mcp_touchstone.fleet.child import Running
    from mcp_touchstone.fleet.servers import Registry
    from mcp_touchstone.sandbox import sandbox

    if (options.engine == "dask") != bool(options.scheduler):
        return _complain("--engine dask and --scheduler ADDRESS belong together")
    listed = servers.read(options.list)
    if options.opt_out is not None:
        listed = servers.without(listed, servers.opt_outs(options.opt_out), options.opt_out)
    entries = list(drive.shard(listed, *options.shard))
    if options.list_only:
        for entry in entries:
            trouble = "" if entry.trouble is None else f"  ({entry.trouble.line})"
            say(f"{entry.key}{trouble}")
        return 0
    engine = options.inside if options.inside in containers.ENGINES else ""
    how = sandbox.Method.BWRAP if engine else options.inside  # of servers that are no images
    method, why = (None, "") if how == "none" else sandbox.choose(how)
    if engine:
        boxed = {entry.registry for entry in entries} - {Registry.OCI, Registry.REMOTE}
        why = containers.unavailable(engine) or (why if boxed else "")
    if why:
        hint = "" if engine else "; --inside none runs servers without it"
        return _complain(f"--inside {options.inside}: {why}{hint}")
    if method is None and not engine:
        _complain("--inside none: the servers can do all that you can")
    plan = _fleet_plan(options, method, engine)
    running = Running()
    _stop_on_signals(running.stop)
    with drive.Rows(options.out, plan, resume=options.resume) as rows:
        tally = drive.Tally(planned=sum(entry.key not in rows.done for entry in entries))
        say(f"{tally.planned} servers, {len(entries) - tally.planned} have a row", flush=True)
        with (
            drive.cluster(options.scheduler, running, _complain)
            if options.engine == "dask"
            else drive.threads(options.workers, running)
        ) as pool:
            drive.drive(
                entries,
                plan,
                rows,
                pool=pool,
                running=running,
                on_row=lambda row: say(tally.add(row), flush=True),
            )
    for kind, count in sorted(tally.classes.items(), key=lambda pair: -pair[1]):
        say(f"  {kind:14} {count}")
    return INTERRUPTED if running.stopping else 0


def _fleet_plan(options: argparse.Namespace, method: Method | None, engine: str) -> Plan:
    from mcp_touchstone.config.settings import layer, words
    from mcp_touchstone.fleet.judge import Plan

    return Plan(
        words=tuple(words(layer(vars(options)), "fleet")),
        method=method,
        engine=engine,
        deadline=options.deadline,
        startup=options.timeout,
        jobs=max(JOBS * (os.cpu_count() or 1) // options.workers, 2),
        memory=options.memory << 20,
        files=None if options.no_files else options.out.absolute().with_suffix(".files"),
        work=options.work and options.work.absolute(),
    )


def _stop_on_signals(stop: Callable[[], None]) -> None:
    """Call ``stop`` at SIGINT and SIGTERM, outside of the signal handler."""
    import signal
    import threading

    def take(_number: int, _frame: object) -> None:
        threading.Thread(target=stop).start()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, take)


def _fleet_report(options: argparse.Namespace) -> int:
    from mcp_touchstone.fleet import report

    found = report.gather(options.rows)
    old = None if options.since is None else report.gather([options.since])
    for line in report.text(found, old, names=options.names):
        say(line)
    if options.html is not None:
        options.html.write_text(report.html(found, old, names=options.names), "utf-8")
    if options.csv is not None:
        options.csv.write_text(report.table(found), "utf-8")
    if options.parquet is not None:
        report.parquet(options.rows, options.parquet)
    return 0


def _login(options: argparse.Namespace) -> int:
    from mcp_touchstone.client import login
    from mcp_touchstone.transport import logins

    if options.forget:
        known = logins.forget(options.url)
        say(f"{options.url}: " + ("forgotten" if known else "there was no login"))
    elif options.print_token:
        say(login.token(options.url))
    else:
        login.login(options.url, client=options.client_id, scope=" ".join(options.scope))
    return 0


def _completion(options: argparse.Namespace) -> int:
    from argcomplete.shell_integration import shellcode

    say(*shellcode(["mcp-touchstone"], shell=options.shell).split("\n"))
    return 0


WITHOUT_SERVER: Final[dict[str, Callable[[argparse.Namespace], int]]] = {
    "diff": _diff,
    "report": _report,
    "list": _list,
    "explain": _explain,
    "completion": _completion,
    "login": _login,
    "fleet": _fleet,
    "fleet report": _fleet_report,
    "tap show": _tap_show,
    "judge": _judge,
    "act": _act,
}
WITH_SERVER: Final[dict[str, Callable[[argparse.Namespace, Settings], int]]] = {
    "init": _init,
    "recon": _recon,
    "load": _load,
    "golden": _golden,
    "bridge": _bridge,
}


if __name__ == "__main__":
    program()
