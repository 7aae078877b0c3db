"""The command line: its words and their help. Runs nothing."""

import argparse
import os
from pathlib import Path
from typing import NoReturn

from mcp_touchstone import __version__
from mcp_touchstone import revision as rev
from mcp_touchstone.threat import DECLARED
from mcp_touchstone.tier import Tier

LEVELS = ("MUST", "SHOULD", "MAY", "SCHEMA")
EPILOG = """\
exit status:
  0    every judged clause holds
  1    a clause is broken, or the baseline is no longer true
  2    could not judge: the server did not start or answer, or the command line is wrong
  130  interrupted

examples:
  mcp-touchstone check                         judge the bundled reference server
  mcp-touchstone check -- node dist/index.js   judge yours
  mcp-touchstone check -- npx -y @modelcontextprotocol/server-filesystem {root}
  mcp-touchstone check --select ping --revision 2025-11-25 -v -- ./my-server
  mcp-touchstone init -- ./my-server           write touchstone.toml; `check` reads it
  mcp-touchstone recon -- ./my-server          see what there is to judge, and with what
  mcp-touchstone diff old.json new.json        what is new, fixed, still open
  mcp-touchstone golden record -- ./my-server  keep its answers; `golden verify` compares
  mcp-touchstone bridge -- ./my-server         serve it over HTTP on this machine
  mcp-touchstone explain ping-empty-response
"""


class Parser(argparse.ArgumentParser):
    """argparse, with the error on one line that says how to mend it."""

    def error(self, message: str) -> NoReturn:
        """Print one line and leave with status 2."""
        self.exit(2, f"{self.prog}: {message} (see `{self.prog} --help`)\n")


class Refusing(Parser):
    """A parser for words out of a file: the error is raised, to be told with its place."""

    def error(self, message: str) -> NoReturn:
        """Raise it.

        Raises:
            ValueError: always.
        """
        raise ValueError(message)


def _promise(text: str) -> str:
    from mcp_touchstone.terms import read as promise  # noqa: PLC0415  (as below)

    try:
        promise(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def _binding(text: str) -> str:
    # only where somebody says one: it takes longer to import than all the rest
    from mcp_touchstone.attack.told import read as binding  # noqa: PLC0415

    try:
        binding(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def parser(kind: type[Parser] = Parser) -> argparse.ArgumentParser:
    """Build the command line."""
    top = kind(
        prog="mcp-touchstone",
        description=(
            "Starts an MCP server, talks to it over stdio, and says which clauses of the protocol "
            "it keeps, in every revision it speaks."
        ),
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"mcp-touchstone {__version__}")
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)
    _check(commands)
    _init(commands)
    _diff(commands)
    _recon(commands)
    _bridge(commands)
    one = commands.add_parser("list", help="list the clauses and how each is judged")
    one.add_argument("word", nargs="*", help="chapters, groups or clause ids; globs allowed")
    one = commands.add_parser("explain", help="explain one clause in full")
    one.add_argument("clause", help="clause id, as in a report")
    _golden(commands)
    commands.add_parser(
        "coverage", help="show how much of the catalogue is judged, and why the rest is not"
    )
    one = commands.add_parser(
        "serve",
        help="run the bundled reference server on stdin and stdout",
        add_help=False,
    )
    one.add_argument("arguments", nargs=argparse.REMAINDER)
    return top


def _check(commands: "argparse._SubParsersAction[Parser]") -> None:
    check = commands.add_parser(
        "check",
        help="judge a server",
        description="Judge a server. Without SERVER, judges the bundled reference server.",
        usage="mcp-touchstone check [options] [NAME ... | -- SERVER ...]",
        epilog=EPILOG.partition("examples:")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    check.add_argument(
        "server",
        nargs="*",
        metavar="SERVER",
        help=(
            "command that starts the server; {root} stands for a throw-away folder made for it; "
            "without `--`, names of configured targets (all of them by default)"
        ),
    )
    what = check.add_argument_group("what is judged")
    what.add_argument(
        "--suite",
        choices=("conformance", "security", "all"),
        default="conformance",
        metavar="NAME",
        help=(
            "conformance (default), security or all; security calls tools that write, in "
            "throw-away folders, and needs {root} in the command"
        ),
    )
    what.add_argument(
        "--select",
        action="append",
        default=[],
        metavar="WORD",
        help="clause, chapter (ping), group (basic) or scenario; globs allowed; repeatable",
    )
    what.add_argument(
        "--promise",
        action="append",
        default=[],
        type=_promise,
        metavar="NAME",
        help=(
            "what the server claims beside containment, which is assumed; what breaks a promise "
            'it never made is a note; repeatable; with terms NAME=\'{"args": [WORDS it is started '
            'with for this], "limit": N, "deny": [NAMES]}\'; ' + ", ".join(DECLARED)
        ),
    )
    what.add_argument(
        "--attacks",
        action="append",
        default=[],
        choices=[str(tier) for tier in Tier],
        metavar="LEVEL",
        help=(
            "how far attacks go beside core, which is always fired: deep, race or platform; "
            "repeatable; docs/threats.md says what belongs where"
        ),
    )
    what.add_argument(
        "--revision",
        action="append",
        default=[],
        choices=rev.ALL,
        metavar="DATE",
        help=f"judge this revision only; repeatable; one of {', '.join(rev.ALL)}",
    )
    what.add_argument(
        "--level",
        action="append",
        default=[],
        choices=LEVELS,
        metavar="LEVEL",
        help="judge clauses of this level only (MUST includes MUST NOT); repeatable; "
        + ", ".join(LEVELS),
    )
    drawn = check.add_argument_group("what is drawn for properties")
    drawn.add_argument(
        "--examples",
        type=_count,
        metavar="N",
        help="examples of each property in each revision (a few by default; 0 for none)",
    )
    drawn.add_argument(
        "--seed",
        type=_count,
        default=0,
        metavar="S",
        help="what the drawing starts from (default 0); the same seed draws the same",
    )
    what.add_argument(
        "--quick",
        action="store_true",
        help="the newest revision only, in one conversation; no tool is tried out, nothing drawn",
    )
    what.add_argument("--strict", action="store_true", help="a broken SHOULD is a failure")
    _gate(check)
    _how_it_is_run(check).add_argument(
        "--jobs",
        type=_jobs,
        default=0,
        metavar="N",
        help="conversations at once (default: 6 for each core, from 12 to 24)",
    )
    _what_may_be_used(check)
    out = check.add_argument_group("what is reported")
    out.add_argument(
        "--report",
        action="append",
        default=[],
        metavar="KIND:PATH",
        help="write a report; repeatable; badge, html, json, junit, markdown or sarif",
    )
    out.add_argument("--json", type=Path, metavar="FILE", help="the same as --report json:FILE")
    out.add_argument(
        "--interop",
        action="store_true",
        help="let the official Python client use the server too; it changes no verdict",
    )
    out.add_argument(
        "--interop-python",
        metavar="PYTHON",
        help="the interpreter that has the client (package mcp), where that is not ours",
    )
    out.add_argument("--save", type=Path, metavar="DIR", help="write every transcript in full")
    out.add_argument("-v", "--verbose", action="store_true", help="show lines and notes in full")
    out.add_argument("-q", "--quiet", action="store_true", help="show failures and the count only")
    out.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="default auto"
    )


def _init(commands: "argparse._SubParsersAction[Parser]") -> None:
    init = commands.add_parser(
        "init",
        help="look at a server and write a configuration for it",
        description=(
            "Look at a server as `recon` does, and write touchstone.toml: the command, and as "
            "comments what could be said beside it. `check` reads it from then on."
        ),
        usage="mcp-touchstone init [options] -- SERVER ...",
    )
    init.add_argument(
        "server", nargs="*", metavar="SERVER", help="command that starts the server; see `check`"
    )
    init.add_argument(
        "--output",
        type=Path,
        default=Path("touchstone.toml"),
        metavar="FILE",
        help="where it is written (default %(default)s)",
    )
    init.add_argument("--force", action="store_true", help="replace a file that is there")
    _how_it_is_run(init)
    _what_may_be_used(init)


def _diff(commands: "argparse._SubParsersAction[Parser]") -> None:
    diff = commands.add_parser(
        "diff",
        help="show what changed from one report to another",
        description=(
            "Show what changed from one report of `check --json` to another: what is new, fixed, "
            "still open, no longer applicable, newly judged."
        ),
        epilog="exit status: 0 not worse than before, 1 worse, 2 could not tell",
    )
    diff.add_argument("old", type=Path, metavar="OLD.json")
    diff.add_argument("new", type=Path, metavar="NEW.json")
    _fail_on(diff)
    diff.add_argument(
        "--format", choices=("text", "json", "markdown"), default="text", help="default text"
    )
    diff.add_argument("-v", "--verbose", action="store_true", help="show all findings in full")


def _fail_on(command: "Parser | argparse._ArgumentGroup") -> None:
    command.add_argument(
        "--fail-on",
        action="append",
        default=[],
        metavar="FLOOR",
        help=(
            "from which gravity on: must (default), should or may for clauses, critical to info "
            "for threats; one of each, or never"
        ),
    )


def _gate(check: Parser) -> None:
    gate = check.add_argument_group("what fails the gate")
    _fail_on(gate)
    gate.add_argument(
        "--since",
        type=Path,
        metavar="OLD.json",
        help="fail only where it is worse than in this report, and show what changed",
    )
    gate.add_argument(
        "--baseline",
        type=Path,
        metavar="FILE",
        help="known failures, shown apart (default touchstone-baseline.toml, where there is one)",
    )
    gate.add_argument("--no-baseline", action="store_true", help="judge as if nothing were known")
    gate.add_argument(
        "--update-baseline",
        action="store_true",
        help="write what fails into the baseline, take out what does not, keep the reasons",
    )


def _recon(commands: "argparse._SubParsersAction[Parser]") -> None:
    recon = commands.add_parser(
        "recon",
        help="show what a server is and what was found to judge it with; judges nothing",
        description=(
            "Show what a server is: revisions, capabilities, and for each word that a clause may "
            "need an example that worked. Only tools annotated read-only, or named, are called; "
            "where the command holds {root}, what looks as if it took a path is called as well, "
            "in a throw-away folder, to see what it does to files."
        ),
        usage="mcp-touchstone recon [options] [-- SERVER ...]",
    )
    recon.add_argument(
        "server", nargs="*", metavar="SERVER", help="command that starts the server; see `check`"
    )
    recon.add_argument(
        "--revision",
        action="append",
        default=[],
        choices=rev.ALL,
        metavar="DATE",
        help="look at this revision only; repeatable",
    )
    _how_it_is_run(recon)
    _what_may_be_used(recon)
    recon.add_argument("--json", action="store_true", help="print it as JSON")


def _golden(commands: "argparse._SubParsersAction[Parser]") -> None:
    golden = commands.add_parser(
        "golden",
        help="record what a server answers, and see later what changed",
        description=(
            "Record what a server answers on a tour of what it offers, as files to keep beside "
            "its sources; and hold it against them later."
        ),
        epilog="exit status: 0 as recorded, 1 something differs, 2 could not ask",
    )
    actions = golden.add_subparsers(dest="action", metavar="ACTION", required=True)
    texts = {
        "record": "record a server; what changes from one recording to the next is marked volatile",
        "verify": "compare a server with its recording; new answers are recorded, but not in CI",
    }
    for action, text in texts.items():
        one = actions.add_parser(
            action,
            help=text,
            description=text[0].upper() + text[1:] + ".",
            usage=f"mcp-touchstone golden {action} [options] [-- SERVER ...]",
        )
        one.add_argument(
            "server", nargs="*", metavar="SERVER", help="command that starts the server; see check"
        )
        one.add_argument(
            "--folder",
            type=Path,
            default=Path("mcp-golden"),
            metavar="DIR",
            help="where the recording lies (default %(default)s)",
        )
        one.add_argument(
            "--revision",
            action="append",
            default=[],
            choices=rev.ALL,
            metavar="DATE",
            help="this revision only; repeatable",
        )
        one.add_argument(
            "--update", action="store_true", help="replace what was recorded and differs"
        )
        if action == "record":
            one.add_argument(
                "--any-version",
                action="store_true",
                help="the version the server gives itself may change",
            )
        else:
            one.add_argument(
                "--ci",
                action="store_true",
                default=os.environ.get("CI", "").lower() not in {"", "0", "false"},
                help="a new answer is a failure and not recorded; on where CI is set",
            )
        one.add_argument("-v", "--verbose", action="store_true", help="show every difference")
        _how_it_is_run(one)
        _what_may_be_used(one)


def _bridge(commands: "argparse._SubParsersAction[Parser]") -> None:
    bridge = commands.add_parser(
        "bridge",
        help="serve a stdio server over streamable HTTP on this machine",
        description=(
            "Serve a stdio server over streamable HTTP on 127.0.0.1, in every revision it speaks; "
            "prints the URL. Each session of 2025-11-25 and before has a process of its own, "
            "2026-07-28 has one for all. Without SERVER, serves the bundled reference server."
        ),
        usage="mcp-touchstone bridge [options] [-- SERVER ...]",
    )
    bridge.add_argument(
        "server",
        nargs="*",
        metavar="SERVER",
        help="command that starts the server; {root} stands for a throw-away folder made for it",
    )
    bridge.add_argument(
        "--port",
        type=_port,
        default=0,
        metavar="N",
        help="listen on this port (default 0: one that is free)",
    )
    bridge.add_argument(
        "--sessions",
        type=_sessions,
        default=32,
        metavar="N",
        help="sessions at a time, each a process (default 32); an idle one makes room",
    )
    _how_it_is_run(bridge, home="it has yours otherwise")


def _what_may_be_used(command: Parser) -> None:
    named = command.add_argument_group("what may be used, beside tools annotated read-only")
    example = """NAME='{"json": "arguments"}'"""
    named.add_argument(
        "--call",
        action="append",
        default=[],
        metavar="NAME={...}",
        help=f"this tool may be called, best with arguments that work: {example}, in which "
        "{root} works; repeatable",
    )
    named.add_argument(
        "--resource", action="append", default=[], metavar="URI", help="this can be read"
    )
    named.add_argument(
        "--prompt",
        action="append",
        default=[],
        metavar="NAME={...}",
        help="this prompt can be rendered, with these arguments; repeatable",
    )
    named.add_argument(
        "--bindings",
        action="append",
        default=[],
        type=_binding,
        metavar="OPERATION={...}",
        help="""what a tool does to files, where that is not found: read='{"tool": "get", """
        """"path": "name"}'; it is tried; repeatable""",
    )


def _how_it_is_run(
    command: Parser, home: str = "it has a HOME of its own unless you set that here"
) -> "argparse._ArgumentGroup":
    how = command.add_argument_group("how the server is run")
    how.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"set a variable for the server; {home}",
    )
    how.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help=(
            "where the server stands: a .toml, .mcp.json, or a file of Claude Desktop or VS Code; "
            "without SERVER, touchstone.toml or pyproject.toml here is read"
        ),
    )
    how.add_argument(
        "--target", "--server", metavar="NAME", help="which of the servers named there"
    )
    how.add_argument(
        "--root-from",
        type=Path,
        metavar="DIR",
        help="copy what is in this folder into each throw-away {root}; it stays as it is itself",
    )
    how.add_argument(
        "--offline",
        action="store_true",
        help="start the server where there is no network, not even this machine's own (Linux)",
    )
    how.add_argument("--cwd", metavar="DIR", help="working folder of the server; {root} works")
    how.add_argument(
        "--timeout",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="how long the first answer may take (default 60); later limits adapt to it",
    )
    return how


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 3600:  # noqa: PLR2004  (an hour)
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0 to 3600")
    return value


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:  # noqa: PLR2004  (ports end there)
        raise argparse.ArgumentTypeError(f"{text!r} is no port, 0 to 65535")
    return int(text)


def _sessions(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 1000:  # noqa: PLR2004  (each is a process)
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 1000")
    return int(text)


def _count(text: str) -> int:
    if not text.isdecimal() or not text.isascii() or len(text) > 9:  # noqa: PLR2004  (digits)
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 0 to 999999999")
    return int(text)


def _jobs(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 64:  # noqa: PLR2004  (threads, not processes)
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 64")
    return int(text)
