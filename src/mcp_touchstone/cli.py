"""The command line: choose, call the gate, print. Holds no logic; imports the rest lazily."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NoReturn

from mcp_touchstone import revision as rev
from mcp_touchstone.command_line import parser
from mcp_touchstone.mistake import Mistake

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from rich.console import Console

    from mcp_touchstone.interop import Client
    from mcp_touchstone.report.terminal import Terminal
    from mcp_touchstone.results import Run
    from mcp_touchstone.scenario import Registry

INTERRUPTED: Final = 130
CODES: Final = {
    INTERRUPTED: "interrupted",
    1: "fails the gate",
    2: "could not be judged",
    0: "passes",
}
"""Exit codes of `check`, the gravest first, as they are told of several targets."""

RARELY: Final = (500_000, 50, 50)
"""When cycles are looked for in a process that is ours: a run keeps nearly all it makes."""


def main(arguments: Sequence[str] | None = None) -> int:  # noqa: PLR0911  (one for each end)
    """Run the command line; give the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if words[:1] == ["serve"]:
        return _serve(words[1:])
    options = parser().parse_args(words)
    if arguments is None and options.command in {"check", "init", "recon", "golden"}:
        _take_charge()  # only where the process is ours
    commands = {
        "init": _init,
        "diff": _diff,
        "recon": _run_recon,
        "list": _list,
        "explain": _explain,
        "coverage": _coverage,
        "golden": _golden,
        "bridge": _run_bridge,
    }
    if sys.stdout is not None and arguments is None:
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        if hasattr(options, "config"):
            from mcp_touchstone import options as asked

            if options.command == "check":
                return _finished(_check(asked.each(options, words)))
            options = asked.configured(options, words)
        return _finished(commands[options.command](options))
    except Mistake as error:
        return _complain(str(error))
    except KeyboardInterrupt:
        print("mcp-touchstone: interrupted before anything was judged", file=sys.stderr)
        return 130
    except BrokenPipeError:
        _discard()
        return 141
    except OSError as error:  # a full disk, or no descriptors left: nothing of the server's
        _discard()
        return _complain(f"{error.filename or 'the output'}: {error.strerror or error}")


def program() -> NoReturn:
    """Be the process: run the command line and leave at once, as an interpreter does not.

    That would take every object of a long run apart, one by one; all is written and ended by then.
    """
    status = main()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(status)


def _discard() -> None:
    """Let what is not written yet go nowhere, so that nothing complains of it on the way out."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        number = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)


def _finished(status: int) -> int:
    """Give an exit status once everything is really written."""
    if sys.stdout is not None:
        sys.stdout.flush()
    return status


def _complain(message: str) -> int:
    from mcp_touchstone.report.text import safe

    print(f"mcp-touchstone: {safe(message)}", file=sys.stderr)
    return 2


# --- check


def _check(several: Sequence[argparse.Namespace]) -> int:
    """Judge one server after another; of their exit codes give the gravest."""
    codes: dict[str, int] = {}
    for one in several:
        if codes:
            print()
        try:
            codes[one.target] = _run_check(one)
        except Mistake as error:  # the others are judged all the same
            codes[one.target] = _complain(str(error))
        if codes[one.target] == INTERRUPTED:
            break
    if len(several) > 1:
        print()
        width = max(map(len, codes))
        for name, code in codes.items():
            print(f"  {name:<{width}}  {CODES[code]}")
    return next(code for code in CODES if code in codes.values())


def _run_check(options: argparse.Namespace) -> int:
    import threading

    from mcp_touchstone import options as asked
    from mcp_touchstone.gate import judge

    kinds = _kinds(options)
    target = asked.target(options)
    choice = asked.choice(options)
    book = asked.book(options, target)
    old = None if options.since is None else _recorded(options.since)
    client = _client(options)
    screen = _Screen(options, target.shown)
    _end_on_sigterm()
    try:
        run = judge(target, screen.read, choice, on_event=screen.on_event, stop=threading.Event())
        witness = None
        if client is not None and not run.trouble and not run.interrupted:
            from mcp_touchstone import interop

            try:
                witness = interop.ask(client, target)
            except KeyboardInterrupt:
                run.interrupted = True
    finally:
        screen.stop()
    renewal = None if book is None else book.hold(run, screen.read(), choice)
    if old is not None:
        from mcp_touchstone.comparison import compare
        from mcp_touchstone.loader import renamed
        from mcp_touchstone.report import machine

        run.since = compare(
            old, machine.document(run), name=str(options.since), floor=run.floor, renamed=renamed()
        )
    screen.terminal.finish(run)
    if renewal is not None:
        from mcp_touchstone.report import standing

        for line in standing.renewed(renewal):
            print(line)
    beside = None
    if witness is not None:
        from mcp_touchstone.report import interop as interop_report

        for line in interop_report.text(witness):
            print(line)
        beside = interop_report.document(witness)
    lost = [_complain(line) for line in kinds(run, beside)]
    return lost[0] if lost else run.exit_code


class _Screen:
    """What a check shows. It is imported while the server starts, which takes as long."""

    def __init__(self, options: argparse.Namespace, shown: str) -> None:
        self._options = options
        self._shown = shown
        self._terminal: Terminal | None = None
        self._over = False

    def read(self) -> "Registry":
        """Open it, and read the suite it shows the verdicts of."""
        from mcp_touchstone.loader import load

        _ = self.terminal
        return load(self._options.suite)

    @property
    def terminal(self) -> "Terminal":
        """The terminal, opened when it is asked for first."""
        from mcp_touchstone.report.terminal import Terminal

        if self._terminal is None:
            asked = self._options
            self._terminal = Terminal(
                _console(asked.color), verbose=asked.verbose, quiet=asked.quiet
            )
            self._terminal.start(self._shown)
            if self._over:
                self._terminal.stop()
        return self._terminal

    def on_event(self, what: str, subject: object) -> None:
        """Follow the gate."""
        self.terminal.on_event(what, subject)

    def stop(self) -> None:
        """Take the progress line away, for good."""
        self._over = True
        if self._terminal is not None:
            self._terminal.stop()


def _kinds(options: argparse.Namespace) -> "Callable[[Run, Any], list[str]]":
    """Give what writes the reports that are asked for, and says which could not be written."""
    if not (options.report or options.json or options.save):
        return lambda _run, _beside: []
    from mcp_touchstone.report import kinds

    wanted = kinds.wanted(options.report, options.json, options.save)
    return lambda run, beside: list(kinds.write(wanted, run, beside, os.environ))


def _recorded(path: "Path") -> "Any":
    from mcp_touchstone.report.recorded import load

    return load(path)


def _client(options: argparse.Namespace) -> "Client | None":
    """Find the official client, where it is asked for."""
    if not (options.interop or options.interop_python):
        return None
    from mcp_touchstone import interop

    return interop.find(options.interop_python)


def _init(options: argparse.Namespace) -> int:
    from mcp_touchstone import config_file, init
    from mcp_touchstone import options as asked
    from mcp_touchstone.gate import survey

    config_file.may_write(options.output, force=options.force)
    target = asked.target(options)
    if target.bundled:
        return _complain("init: name the command of your server behind `--`")
    _end_on_sigterm()
    dossier, _ = survey(target)
    if not dossier.spoken:
        return _complain(f"nothing was written: {dossier.trouble}; does the command start it?")
    source = (str(options.config), options.target) if options.config else None
    config_file.write(options.output, init.text(target, dossier, source))
    for line in init.again(str(options.output)):
        print(line)
    return 0


def _diff(options: argparse.Namespace) -> int:
    import json

    from mcp_touchstone import options as asked
    from mcp_touchstone.comparison import compare
    from mcp_touchstone.loader import renamed
    from mcp_touchstone.report import comparison as report
    from mcp_touchstone.report.recorded import load

    old, new = load(options.old), load(options.new)
    found = compare(old, new, name=str(options.old), floor=asked.floor(options), renamed=renamed())
    if options.format == "json":
        print(json.dumps(report.document(found), indent=2))
        return found.exit_code
    markdown = options.format == "markdown"
    for line in report.markdown(found) if markdown else report.text(found, verbose=options.verbose):
        print(line)
    return found.exit_code


def _run_recon(options: argparse.Namespace) -> int:
    import json

    from mcp_touchstone import options as asked
    from mcp_touchstone.gate import survey
    from mcp_touchstone.report import survey as report

    target = asked.target(options)
    _end_on_sigterm()
    dossier, processes = survey(target, options.revision)
    revisions = options.revision or list(rev.ALL)
    if options.json:
        print(json.dumps(report.document(dossier, revisions, processes), indent=2))
    else:
        for line in report.text(dossier, revisions, processes):
            print(line)
    return 0 if dossier.spoken else 2


def _golden(options: argparse.Namespace) -> int:
    from mcp_touchstone import options as asked
    from mcp_touchstone.golden import record, verify
    from mcp_touchstone.report import golden as report

    revisions = tuple(options.revision)
    target = asked.target(options)
    _end_on_sigterm()
    try:
        if options.action == "record":
            held = record(
                target,
                options.folder,
                revisions,
                update=options.update,
                any_version=options.any_version,
            )
            lines = report.recorded(held)
        else:
            held = verify(target, options.folder, revisions, update=options.update, ci=options.ci)
            lines = report.verified(held, verbose=options.verbose)
    except OSError as error:
        return _complain(f"the recording could not be written: {error}")
    for line in lines:
        print(line)
    return held.exit_code


def _run_bridge(options: argparse.Namespace) -> int:
    from mcp_touchstone import options as asked
    from mcp_touchstone.bridge.child import Launch
    from mcp_touchstone.bridge.listener import Listener
    from mcp_touchstone.world import World

    target = asked.target(options)
    try:
        with World() as world:
            launch = Launch(
                command=target.command_in(world.root),
                env={**os.environ, **target.env_in(world.root)},
                cwd=target.cwd_in(world.root),
            )
            launch.check()
            with Listener(
                launch, port=options.port, most=options.sessions, startup=options.timeout
            ) as listener:
                stopped = _wait_for_signal(lambda: print(listener.start(), flush=True))
    except OSError as error:
        return _complain(f"port {options.port} cannot be used: {error.strerror}")
    return stopped


def _wait_for_signal(begin: "Callable[[], object]") -> int:
    """Begin something and wait for SIGTERM or SIGINT; give the exit status."""
    import signal
    import threading

    received: list[int] = []
    over = threading.Event()

    def take(number: int, _frame: object) -> None:
        received.append(number)
        over.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, take)
    begin()
    while not over.wait(0.2):  # on Windows a wait without an end would keep Ctrl-C waiting too
        pass
    return 0 if received[0] == signal.SIGTERM else 130


def _end_on_sigterm() -> None:
    """Let SIGTERM end a run as Ctrl-C does: servers ended, folders removed, findings shown."""
    import signal

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)


def _take_charge() -> None:
    """Be the parent of what servers leave behind, and let none of them leave core dumps."""
    import gc

    from mcp_touchstone.strays import adopt

    adopt()
    gc.set_threshold(*RARELY)
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _console(color: str) -> "Console":
    from rich.console import Console

    class Told(Console):
        """A console that does not leave the program by itself."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    if color == "auto":
        return Told()
    return Told(force_terminal=color == "always", no_color=color == "never")


# --- the catalogue


def _list(options: argparse.Namespace) -> int:
    from mcp_touchstone.report import catalogue

    catalogue.listing(options.word)
    return 0


def _explain(options: argparse.Namespace) -> int:
    from mcp_touchstone.clause import CatalogueError
    from mcp_touchstone.report import catalogue

    try:
        catalogue.explain(options.clause)
    except CatalogueError as error:
        return _complain(f"{error}; `mcp-touchstone list` shows them")
    return 0


def _coverage(_: argparse.Namespace) -> int:
    from mcp_touchstone.loader import load, mutants
    from mcp_touchstone.report import coverage

    for line in coverage.text(coverage.measure(load(), mutants())):
        print(line)
    return 0


def _serve(words: list[str]) -> int:
    """Become the reference server: its own arguments, its own help."""
    import runpy

    from mcp_touchstone.loader import home

    sys.path.insert(0, str(home()))
    sys.argv = ["mcp-touchstone serve", *words]
    runpy.run_module("reference_server", run_name="__main__", alter_sys=False)
    return 0


if __name__ == "__main__":
    program()
