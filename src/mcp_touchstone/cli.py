"""The command line: parse it, run one command. Imports the rest where it is used."""

from __future__ import annotations

import contextlib
import os
import sys

from mcp_touchstone.commands.output import INTERRUPTED, complain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Final, NoReturn

    from mcp_touchstone.config.parser import CommandLine

JUDGING: Final = {"check", "approve", "init", "recon", "golden", "load", "client", "gateway"}
"""Commands that start programs of others."""

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
        complain("interrupted")
        return INTERRUPTED


def _main(words: list[str], *, ours: bool) -> int:
    """Run a command other than ``serve``; ``ours`` says whether the process is ours."""
    from mcp_touchstone.catalog.errors import UserError
    from mcp_touchstone.config.parser import parse, parser

    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could come next
        import argcomplete

        argcomplete.autocomplete(parser())
    line = parse(words)
    if ours and line.options.subcommand in JUDGING:
        _take_charge()
    if sys.stdout is not None and ours:
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        return _finished(_run(line))
    except UserError as error:
        return complain(str(error))
    except BrokenPipeError:
        _discard()
        return 141
    except OSError as error:  # a full disk, or no descriptors left: nothing of the server's
        _discard()
        return complain(f"{error.filename or 'the output'}: {error.strerror or error}")


def _run(line: CommandLine) -> int:
    """Run the command of a line other than ``serve``; import only what it needs."""
    match line.options.subcommand:
        case "check" | "approve":
            from mcp_touchstone.commands.check import run
        case "init" | "recon" | "load" | "golden" | "bridge":
            from mcp_touchstone.commands.servers import run
        case "verify":
            from mcp_touchstone.commands.verify import run
        case "fleet" | "fleet report":
            from mcp_touchstone.commands.fleet import run
        case "tap" | "tap show" | "judge" | "client" | "act" | "gateway":
            from mcp_touchstone.commands.sides import run
        case _:
            from mcp_touchstone.commands.results import run
    return run(line)


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


if __name__ == "__main__":
    program()
