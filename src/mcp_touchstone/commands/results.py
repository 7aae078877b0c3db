"""The commands that start nothing: they show the catalogue and the reports of earlier runs."""

from __future__ import annotations

import os

from mcp_touchstone.commands.output import complain
from mcp_touchstone.runtime.console import say

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable
    from typing import Final

    from mcp_touchstone.config.parser import CommandLine


def run(line: CommandLine) -> int:
    """Run one of the commands; return the exit status."""
    return COMMANDS[line.options.subcommand](line.options)


def _diff(options: argparse.Namespace) -> int:
    import json

    from mcp_touchstone.catalog.loader import renamed
    from mcp_touchstone.config import resolve
    from mcp_touchstone.config.settings import layer, merged
    from mcp_touchstone.report import comparison as report
    from mcp_touchstone.report.recorded import load
    from mcp_touchstone.report.text import masked
    from mcp_touchstone.results.comparison import compare

    settings = merged(layer(vars(options)))
    floor = resolve.floor(settings.fail_on)
    old, new = load(options.old), load(options.new)
    found = compare(old, new, name=str(options.old), floor=floor, renamed=renamed())
    lines: Iterable[str]
    if options.format == "json":
        lines = json.dumps(report.document(found), indent=2).split("\n")
    elif options.format == "markdown":
        lines = report.markdown(found)
    else:
        lines = report.text(found, verbose=settings.verbose)
    hidden = _hidden(*old["target"]["command"], *new["target"]["command"])
    say(*(masked(line, hidden) for line in lines))
    return found.exit_code


def _report(options: argparse.Namespace) -> int:
    from mcp_touchstone.report import kinds
    from mcp_touchstone.report.reread import read

    given = ((kind, getattr(options, kind)) for kind in kinds.RENDERERS)
    words = [f"{kind}:{path}" for kind, path in given if path is not None]
    if not words:
        known = ", ".join(f"--{kind}" for kind in kinds.RENDERERS)
        return complain(f"no report is named; add one of {known}")
    wanted, run = kinds.wanted(words), read(options.run)
    hidden = _hidden(*run.subject.command, *run.subject.again)
    lost = kinds.write(wanted, run, hidden)
    for line in lost:
        complain(line)
    return 2 if lost else 0


def _hidden(*words: str) -> dict[str, str]:
    """Return the variables and arguments to hide, as a run does: an older version hid fewer."""
    from mcp_touchstone.runtime.secrets import arguments

    return {**os.environ, **arguments(words)}


def _list(options: argparse.Namespace) -> int:
    from mcp_touchstone.report import catalogue

    catalogue.listing(options.word, suite=options.suite, levels=options.level)
    return 0


def _explain(options: argparse.Namespace) -> int:
    from mcp_touchstone.report import catalogue

    catalogue.explain(options.clause)
    return 0


def _login(options: argparse.Namespace) -> int:
    from mcp_touchstone.connection import login
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


COMMANDS: Final[dict[str, Callable[[argparse.Namespace], int]]] = {
    "diff": _diff,
    "report": _report,
    "list": _list,
    "explain": _explain,
    "login": _login,
    "completion": _completion,
}
