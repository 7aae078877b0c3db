"""Define and parse the command line. Runs nothing and reads no file."""

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from mcp_touchstone import __version__
from mcp_touchstone.catalog import revision as rev
from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.catalog.threat import DECLARED
from mcp_touchstone.config import values
from mcp_touchstone.runtime.printable import safe

DESCRIPTION: Final = """\
Check an MCP server over stdio or HTTP: start it, talk to it in each protocol
revision it supports, and report every rule it breaks, with the lines that prove
it.

commands:
  check       check a server
  init        look at a server and write touchstone.toml for it
  explain     show one rule in full
  serve       run the bundled reference server

more commands:
  list        list the rules
  recon       show what a server offers, without checking it
  diff        compare two reports of `check --json`
  golden      record the answers of a server, and compare with them later
  fleet       check many servers of a list, and report on all of them
  bridge      serve a stdio server over HTTP on this machine
  completion  print the completion script for bash, zsh or fish
"""
STATUS: Final = """\
exit status:
  0    no rule is broken
  1    a rule is broken, or a baseline entry no longer applies
  2    not checked: the server did not start or answer, or the command is wrong
  130  interrupted
"""
EXAMPLES: Final = """
examples:
  mcp-touchstone check -- node dist/index.js
  mcp-touchstone check -- npx -y @modelcontextprotocol/server-filesystem {root}
  mcp-touchstone check --select ping --revision 2025-11-25 -v -- ./my-server
  mcp-touchstone check https://example.org/mcp  a server that runs already
  mcp-touchstone check --self                  check the bundled reference server
  mcp-touchstone init -- ./my-server           write touchstone.toml; `check` reads it
  mcp-touchstone explain ping-empty-response
"""
SHELLS: Final = ("bash", "zsh", "fish")
PORTS: Final = 65535
MOST_SESSIONS: Final = 1000
MOST_WORKERS: Final = 256
MOST_MEMORY: Final = 1 << 20

_CHOICE: Final = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)")
_DASHES: Final = "--"


class Parser(argparse.ArgumentParser):
    """An argparse parser that prints each error on one line, with a suggestion."""

    def __init__(self, **given: Any) -> None:
        given.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **given)

    def error(self, message: str) -> NoReturn:
        """Print one line and exit with status 2."""
        text = safe(_CHOICE.sub(_suggestion, message.removeprefix("argument ")))
        self.exit(2, f"{self.prog}: {text} (see `{self.prog} --help`)\n")


def _suggestion(match: re.Match[str]) -> str:
    known = [name.strip("'") for name in match[2].split(", ")]
    hint = nearest(match[1], known) or f"; choose from {', '.join(known)}"
    return f"{match[1]!r} is not a valid choice{hint}"


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A parsed command line.

    Attributes:
        options: the values of the options. An option of `Settings` that was not given is absent.
        server: the words after ``--``; None if there is no ``--``.
    """

    options: argparse.Namespace
    server: tuple[str, ...] | None

    @property
    def words(self) -> tuple[str, ...]:
        """The positional words before ``--``: names of targets, or a command."""
        return tuple(self.options.words)


def parse(words: Sequence[str]) -> CommandLine:
    """Parse a command line; exit with status 2 if it is invalid."""
    top = parser()
    if tuple(words[:2]) == ("fleet", "report"):
        words = ["fleet report", *words[2:]]
    at = words.index(_DASHES) if _DASHES in words else len(words)
    options, rest = top.parse_known_args(words[:at])
    own: Parser = options.parser
    if rest:
        option = rest[0].partition("=")[0]
        known = [one for action in own._actions for one in action.option_strings]  # noqa: SLF001
        hint = nearest(option, known) if option.startswith("-") else ""
        own.error(f"unrecognized argument {rest[0]!r}{hint}")
    if at == len(words):
        return CommandLine(options, None)
    server = tuple(words[at + 1 :])
    if "words" not in vars(options):
        own.error("`--` is for a server command, and this command takes none")
    if not server or not server[0]:
        own.error("the command behind `--` is empty; is a variable not set?")
    if options.words:
        own.error(f"unrecognized argument {options.words[0]!r} before `--`")
    return CommandLine(options, server)


def _typed(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Wrap a reader so that argparse prints the message of its ``ValueError``."""

    def convert(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def _setting(
    group: "Parser | argparse._ArgumentGroup",
    *names: str,
    read: Callable[[str], Any] = str,
    complete: Iterable[str] | None = None,
    **given: Any,
) -> None:
    """Add an option for a field of `Settings`. It has no default, so other layers can set it."""
    if "action" not in given or given["action"] == "append":
        given["type"] = _typed(read)
    action: Any = group.add_argument(*names, default=argparse.SUPPRESS, **given)
    if complete is not None:
        action.completer = lambda **_: list(complete)


def parser() -> Parser:
    """Build the parser of the command line."""
    top = Parser(
        prog="mcp-touchstone",
        usage="mcp-touchstone [-h] [--version] COMMAND ...",
        description=DESCRIPTION,
        epilog=STATUS + EXAMPLES,
    )
    top.add_argument("--version", action="version", version=f"mcp-touchstone {__version__}")
    top.set_defaults(parser=top)
    commands = top.add_subparsers(
        dest="subcommand",
        prog="mcp-touchstone",
        metavar="COMMAND",
        required=True,
        help=argparse.SUPPRESS,
    )
    _check(_command(commands, "check"))
    _init(_command(commands, "init"))
    one = _command(commands, "explain", description="Show one rule in full.")
    action: Any = one.add_argument("clause", help="id of a clause or threat, as in a report")
    action.completer = _rules
    one = _command(commands, "serve", add_help=False)
    one.add_argument("arguments", nargs=argparse.REMAINDER)
    one = _command(commands, "list", description="List the rules and how each is checked.")
    one.add_argument("word", nargs="*", help="chapters, groups or clause ids; globs are allowed")
    action = one.add_argument(
        "--suite", type=_typed(values.suite), default="all", metavar="NAME",
        help="conformance, security or all (default)",
    )  # fmt: skip
    action.completer = lambda **_: list(values.SUITES)
    action = one.add_argument(
        "--level", action="append", default=[], type=_typed(values.grade), metavar="LEVEL",
        help="list only clauses of this level or threats of this severity; repeatable; "
        f"{', '.join(values.GRADES)}",
    )  # fmt: skip
    action.completer = lambda **_: list(values.GRADES)
    _recon(_command(commands, "recon"))
    _diff(_command(commands, "diff"))
    _report(_command(commands, "report"))
    _golden(_command(commands, "golden"))
    _bridge(_command(commands, "bridge"))
    _fleet(_command(commands, "fleet"))
    _fleet_report(_command(commands, "fleet report"))
    one = _command(
        commands,
        "completion",
        description=(
            "Print the completion script for a shell. For bash and zsh: "
            'eval "$(mcp-touchstone completion bash)"; for fish: '
            "mcp-touchstone completion fish | source."
        ),
    )
    one.add_argument("shell", choices=SHELLS)
    return top


def _rules(**_: Any) -> list[str]:
    """Return the ids of all clauses and threats, for completion."""
    from mcp_touchstone.catalog.loader import BOTH, rows  # noqa: PLC0415  (for completion only)

    return [clause.id for clause in rows(BOTH)]


def _command(commands: "argparse._SubParsersAction[Parser]", name: str, **given: Any) -> Parser:
    one = commands.add_parser(name, **given)
    one.set_defaults(parser=one)
    return one


def _check(check: Parser) -> None:
    check.usage = "mcp-touchstone check [options] [TARGET ... | -- COMMAND ... | --self]"
    check.description = (
        "Check a server: the command behind `--`, or the targets of touchstone.toml or\n"
        "pyproject.toml in the working folder."
    )
    check.epilog = STATUS
    _server(check, "targets of the configuration (default: all of them)")
    check.add_argument(
        "--from", type=Path, dest="record", metavar="SERVER.json",
        help="check the server of this registry record, and say where the two differ",
    )  # fmt: skip
    what = check.add_argument_group("scope")
    _setting(
        what, "--suite", read=values.suite, complete=values.SUITES, metavar="NAME",
        help="conformance (default), security or all. The security suite calls tools that write, "
        "in throw-away folders; to attack file tools it needs {root} in the command",
    )  # fmt: skip
    _setting(
        what, "--select", action="append", metavar="WORD", complete=_Rules(),
        help="clause, chapter (ping), group (basic) or scenario; globs are allowed; repeatable",
    )  # fmt: skip
    _revision(what)
    _setting(
        what, "--level", action="append", read=values.level, complete=values.LEVELS,
        metavar="LEVEL",
        help=f"check clauses of this level only (MUST includes MUST NOT); repeatable; "
        f"{', '.join(values.LEVELS)}",
    )  # fmt: skip
    _setting(
        what, "--quick", action="store_true",
        help="check the newest revision only, in one conversation, without calling tools",
    )  # fmt: skip
    _promise(what)
    _setting(
        what, "--attacks", action="append", read=values.attacks, complete=values.ATTACKS,
        metavar="LEVEL",
        help="also run this group of attacks: deep, race or platform; `core` always runs; "
        "repeatable",
    )  # fmt: skip
    _setting(
        what, "--attack-commands", action="store_true",
        help="also attack tools that run programs from a list or inside a folder; requires a "
        "sandbox",
    )  # fmt: skip
    _setting(
        what, "--accept-unbound", action="store_true",
        help="pass a security run although no tool that handles files was found",
    )  # fmt: skip
    generated = check.add_argument_group("property-based tests")
    most = values.MOST_EXAMPLES
    _setting(
        generated, "--examples", read=values.whole(0, most), metavar="N",
        help="examples of each property in each revision (default 10; 0 for none)",
    )  # fmt: skip
    _setting(
        generated, "--seed", read=values.whole(0, most), metavar="N",
        help="random seed (default 0); the same seed generates the same examples",
    )  # fmt: skip
    gate = check.add_argument_group("what fails the run")
    _fail_on(gate)
    _setting(
        gate, "--strict", action="store_true",
        help="a broken SHOULD is a failure, and faults of the server's SDK count",
    )  # fmt: skip
    _setting(
        gate, "--since", read=Path, metavar="OLD.json",
        help="fail only where the server is worse than in this report, and show what changed",
    )  # fmt: skip
    _setting(
        gate, "--baseline", read=Path, metavar="FILE",
        help="file of known failures (default: touchstone-baseline.toml, if it exists)",
    )  # fmt: skip
    _setting(gate, "--no-baseline", action="store_true", help="ignore known failures")
    _setting(
        gate, "--update-baseline", action="store_true",
        help="write current failures into the baseline, remove fixed ones, and keep all reasons",
    )  # fmt: skip
    how = _how_it_is_run(check)
    _setting(
        how, "--jobs", read=values.whole(1, values.MOST_JOBS), metavar="N",
        help="conversations at a time (default: 20 for each processor core, at most 64)",
    )  # fmt: skip
    _setting(
        how, "--deadline", read=values.deadline, metavar="SECONDS",
        help="limit for the whole run; the verdicts until then are reported (default: none; "
        "1200 where CI is set; 0 for none)",
    )  # fmt: skip
    _what_may_be_used(check)
    out = check.add_argument_group("reports")
    _setting(
        out, "--report", action="append", metavar="KIND:PATH",
        help="write a report; repeatable; badge, html, json, junit, markdown or sarif",
    )  # fmt: skip
    _setting(out, "--json", read=Path, metavar="FILE", help="the same as --report json:FILE")
    _setting(out, "--save", read=Path, metavar="DIR", help="write every transcript to this folder")
    _setting(
        out, "--scripts", read=Path, metavar="DIR",
        help="write a shell script for each security finding to this folder",
    )  # fmt: skip
    _setting(out, "-v", "--verbose", action="store_true", help="print lines and notes in full")
    _setting(out, "-q", "--quiet", action="store_true", help="print failures and the count only")
    out.add_argument(
        "--color", choices=("auto", "always", "never"), default=argparse.SUPPRESS,
        help="default: auto",
    )  # fmt: skip


class _Rules:
    """The ids of all rules, loaded only when a shell completes one."""

    def __iter__(self) -> Any:
        return iter(_rules())


def _server(command: Parser, text: str, *, own: bool = True) -> None:
    command.add_argument("words", nargs="*", metavar="TARGET", help=text)
    if own:
        _setting(
            command, "--self", dest="bundled", action="store_true",
            help="use the bundled reference server",
        )  # fmt: skip


def _promise(what: "Parser | argparse._ArgumentGroup") -> None:
    _setting(
        what, "--promise", action="append", read=values.promise, complete=DECLARED, metavar="NAME",
        help="a guarantee the server makes, for the security suite. Staying inside {root} is "
        "always tested; a violation of a guarantee that is not listed is only a note. With terms: "
        'NAME=\'{"args": [words added to the command], "limit": N, "deny": [names]}\'. Repeatable; '
        + ", ".join(DECLARED),
    )  # fmt: skip


def _revision(group: "Parser | argparse._ArgumentGroup") -> None:
    _setting(
        group, "--revision", action="append", read=values.revision, complete=rev.ALL,
        metavar="DATE",
        help=f"use this protocol revision only; repeatable; {', '.join(rev.ALL)}",
    )  # fmt: skip


def _init(init: Parser) -> None:
    init.usage = "mcp-touchstone init [options] -- COMMAND ..."
    init.description = (
        "Look at a server as `recon` does, and write touchstone.toml: the command, and further\n"
        "settings as comments. `check` reads the file."
    )
    _server(init, "a target of the file named with --config", own=False)
    init.add_argument(
        "--output",
        type=Path,
        default=Path("touchstone.toml"),
        metavar="FILE",
        help="file to write (default: %(default)s)",
    )
    init.add_argument("--force", action="store_true", help="replace the file if it exists")
    _how_it_is_run(init)
    _what_may_be_used(init)


def _diff(diff: Parser) -> None:
    diff.description = (
        "Compare two reports of `check --json`: new, fixed and open findings, and rules that no\n"
        "longer apply or were not checked before."
    )
    diff.epilog = "exit status: 0 not worse than before, 1 worse, 2 a report cannot be read"
    diff.add_argument("old", type=Path, metavar="OLD.json")
    diff.add_argument("new", type=Path, metavar="NEW.json")
    _fail_on(diff)
    diff.add_argument(
        "--format", choices=("text", "json", "markdown"), default="text", help="default: text"
    )
    diff.add_argument("-v", "--verbose", action="store_true", help="print all findings in full")


def _report(report: Parser) -> None:
    report.description = "Make other reports of one that `check --json` wrote."
    report.add_argument("run", type=Path, metavar="RUN.json")
    for kind, what in (
        ("html", "an HTML page"), ("markdown", "Markdown"), ("junit", "JUnit XML"),
        ("sarif", "SARIF"), ("badge", "the JSON of a shields.io badge"),
    ):  # fmt: skip
        report.add_argument(f"--{kind}", type=Path, metavar="FILE", help=f"write {what}")


def _fail_on(group: "Parser | argparse._ArgumentGroup") -> None:
    _setting(
        group, "--fail-on", action="append", read=values.fail_on, metavar="SEVERITY",
        complete=(
            "must", "should", "may", "critical", "high", "medium", "low", "info", "sdk", "never"
        ),
        help="lowest severity that fails the run. Conformance: must (default), should, may. "
        "Security: critical, high, medium, low, info. Give one of each, or never; sdk counts the "
        "faults of the server's SDK too",
    )  # fmt: skip


def _recon(recon: Parser) -> None:
    recon.usage = "mcp-touchstone recon [options] [TARGET | -- COMMAND ... | --self]"
    recon.description = (
        "Show what a server offers: revisions, capabilities, and a working example for each\n"
        "feature that a clause may need. Calls only tools that are annotated read-only or named\n"
        "here. With {root} in the command, tools that seem to take a path are called as well, in\n"
        "a throw-away folder, to see what they do to files."
    )
    _server(recon, "a target of the configuration")
    _revision(recon)
    _how_it_is_run(recon)
    _what_may_be_used(recon)
    recon.add_argument("--json", action="store_true", dest="as_json", help="print JSON")


def _golden(golden: Parser) -> None:
    golden.description = (
        "Record what a server answers to a fixed list of requests, as files to keep in version\n"
        "control, and compare the server with them later."
    )
    golden.epilog = "exit status: 0 as recorded, 1 an answer differs, 2 the server gave no answers"
    actions = golden.add_subparsers(
        dest="action", prog="mcp-touchstone golden", metavar="ACTION", required=True
    )
    texts = {
        "record": "record a server; values that change between two runs are marked volatile",
        "verify": "compare a server with its recording",
    }
    for name, text in texts.items():
        one = actions.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            usage=f"mcp-touchstone golden {name} [options] [TARGET | -- COMMAND ... | --self]",
        )
        one.set_defaults(parser=one)
        _server(one, "a target of the configuration")
        one.add_argument(
            "--folder",
            type=Path,
            default=Path("mcp-golden"),
            metavar="DIR",
            help="folder of the recording (default: %(default)s)",
        )
        _revision(one)
        _promise(one)
        one.add_argument(
            "--update", action="store_true", help="replace recorded answers that differ"
        )
        if name == "record":
            one.add_argument(
                "--suite",
                dest="scenarios",
                type=_typed(values.suite),
                metavar="NAME",
                help="also record the responses in the scenarios of a suite: conformance, "
                "security or all",
            )
            one.add_argument(
                "--any-version", action="store_true", help="ignore changes of the server's version"
            )
        else:
            one.add_argument(
                "--create",
                action="store_true",
                help="record answers that are not recorded yet; without it they are failures",
            )
        one.add_argument("-v", "--verbose", action="store_true", help="print every difference")
        _how_it_is_run(one)
        _what_may_be_used(one)


def _bridge(bridge: Parser) -> None:
    bridge.usage = "mcp-touchstone bridge [options] [TARGET | -- COMMAND ... | --self]"
    bridge.description = (
        "Serve a stdio server over streamable HTTP on 127.0.0.1, in every revision it supports,\n"
        "and print the URL. Each session up to 2025-11-25 has a process of its own; all of\n"
        "2026-07-28 share one."
    )
    _server(bridge, "a target of the configuration")
    bridge.add_argument(
        "--port",
        type=_typed(values.whole(0, PORTS)),
        default=0,
        metavar="N",
        help="port to listen on (default: 0, any free port)",
    )
    bridge.add_argument(
        "--sessions",
        type=_typed(values.whole(1, MOST_SESSIONS)),
        default=32,
        metavar="N",
        help="sessions at a time, each with a process (default: 32); an idle one is closed for a "
        "new one",
    )
    _how_it_is_run(bridge, home="its HOME is yours unless you set it here")


def _fleet(fleet: Parser) -> None:
    fleet.usage = (
        "mcp-touchstone fleet [options] LIST\n       mcp-touchstone fleet report [options] ROWS"
    )
    fleet.description = (
        "Install and check each server of a list, apart from your files and from each other, and\n"
        "append one line of JSON for each to a file. LIST is TOML, JSON Lines, CSV, a file of an\n"
        "MCP client (.mcp.json), a registry's server.json, or a folder of them."
    )
    fleet.epilog = (
        "exit status: 0 every server has a row, 2 not run, 130 interrupted; `--resume` continues"
    )
    fleet.add_argument("list", type=Path, metavar="LIST")
    fleet.add_argument(
        "--out", type=Path, default=Path("fleet.jsonl"), metavar="FILE",
        help="file of rows (default: %(default)s); reports and transcripts are kept beside it",
    )  # fmt: skip
    fleet.add_argument(
        "--resume", action="store_true",
        help="continue: leave out servers that have a row, check those again where we failed",
    )  # fmt: skip
    fleet.add_argument(
        "--no-files", action="store_true", help="keep no reports and transcripts, only rows"
    )
    fleet.add_argument(
        "--opt-out", type=Path, metavar="FILE",
        help="leave out the hosts and the servers in this file: a host, a name or a package a "
        "line, # begins a comment",
    )  # fmt: skip
    fleet.add_argument(
        "--list-only", action="store_true", help="print the servers of the list, and start none"
    )
    where = fleet.add_argument_group("where servers run")
    where.add_argument(
        "--inside", choices=("bwrap", "unshare", "podman", "docker", "none"), default="bwrap",
        help="sandbox of each server (default: bwrap); podman and docker run servers in images, "
        "and all others in bwrap; none lets them do all that you can",
    )  # fmt: skip
    where.add_argument(
        "--workers", type=_typed(values.whole(1, MOST_WORKERS)), default=2, metavar="N",
        help="servers at a time (default: %(default)s)",
    )  # fmt: skip
    where.add_argument(
        "--engine", choices=("pool", "dask"), default="pool",
        help="pool: threads of this machine (default); dask: the workers of a cluster",
    )  # fmt: skip
    where.add_argument(
        "--scheduler", default="", metavar="ADDRESS",
        help="scheduler of the cluster, such as tcp://10.0.0.1:8786; --out is written here, and "
        "the folder of reports is on the workers",
    )  # fmt: skip
    where.add_argument(
        "--shard", type=_typed(values.shard), default=(1, 1), metavar="I/N",
        help="check only the I-th of N equal parts of the list, for several machines",
    )  # fmt: skip
    where.add_argument(
        "--work",
        type=Path,
        metavar="DIR",
        help="folder for installations (default: a temporary one)",
    )
    where.add_argument(
        "--deadline", type=_typed(values.seconds), default=300.0, metavar="SECONDS",
        help="limit for one server, with its installation (default: 300)",
    )  # fmt: skip
    where.add_argument(
        "--timeout", type=_typed(values.seconds), default=30.0, metavar="SECONDS",
        help="limit for the first reply of a server (default: 30)",
    )  # fmt: skip
    where.add_argument(
        "--memory", type=_typed(values.whole(0, MOST_MEMORY)), default=4096, metavar="MB",
        help="memory of each process of a server (default: 4096; 0 for no limit; Linux)",
    )  # fmt: skip
    what = fleet.add_argument_group("scope")
    _setting(
        what, "--suite", read=values.suite, complete=values.SUITES, metavar="NAME",
        help="conformance (default), security or all; attacks on files need {root} in a command",
    )  # fmt: skip
    _setting(
        what, "--select", action="append", metavar="WORD", complete=_Rules(),
        help="clause, chapter, group or scenario; repeatable",
    )  # fmt: skip
    _revision(what)
    _setting(
        what, "--quick", action="store_true",
        help="check the newest revision only, in one conversation, without calling tools",
    )  # fmt: skip
    most = values.MOST_EXAMPLES
    _setting(
        what, "--examples", read=values.whole(0, most), metavar="N",
        help="examples of each property in each revision",
    )  # fmt: skip


def _fleet_report(report: Parser) -> None:
    report.prog = "mcp-touchstone fleet report"
    report.usage = "mcp-touchstone fleet report [options] ROWS ..."
    report.description = (
        "Report on the rows of one or more files: failures to start, and for each rule how many\n"
        "servers it applied to and how many broke it."
    )
    report.add_argument("rows", type=Path, nargs="+", metavar="ROWS")
    report.add_argument("--html", type=Path, metavar="FILE", help="write a page for a browser")
    report.add_argument("--csv", type=Path, metavar="FILE", help="write one line for each rule")
    report.add_argument(
        "--parquet", type=Path, metavar="FILE",
        help="write one line for each server, revision and rule; requires DuckDB",
    )  # fmt: skip
    report.add_argument(
        "--since", type=Path, metavar="OLD.jsonl", help="show what changed since these rows"
    )
    report.add_argument(
        "--names", action="store_true",
        help="name servers with a security finding too; they are withheld otherwise",
    )  # fmt: skip


def _what_may_be_used(command: Parser) -> None:
    group = command.add_argument_group("tools, resources and prompts that may be used")
    example = """NAME='{"json": "arguments"}'"""
    _setting(
        group, "--call", action="append", read=values.use, metavar="NAME={...}",
        help="allow calls of a tool that is not annotated read-only, best with arguments that "
        f"work: {example}; {{root}} is replaced in them; repeatable",
    )  # fmt: skip
    _setting(
        group, "--resource", action="append", metavar="URI",
        help="a resource that can be read; repeatable",
    )  # fmt: skip
    _setting(
        group, "--prompt", action="append", read=values.use, metavar="NAME={...}",
        help="a prompt with arguments that work; repeatable",
    )  # fmt: skip
    _setting(
        group, "--bindings", action="append", read=values.binding, metavar="OPERATION={...}",
        help="which tool reads or writes files, where that is not detected: "
        """read='{"tool": "get", "path": "name"}'; verified before use; repeatable""",
    )  # fmt: skip


def _how_it_is_run(
    command: Parser, home: str = "its HOME is a throw-away folder unless you set it here"
) -> "argparse._ArgumentGroup":
    how = command.add_argument_group("how the server is run")
    how.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="file that defines the server: TOML, .mcp.json, or a file of Claude Desktop or VS "
        "Code (default: touchstone.toml or pyproject.toml in the working folder)",
    )
    _setting(
        how, "--http", "--url", dest="url", read=values.url, metavar="URL",
        help="the server behind `--` speaks HTTP at this URL; {port} is replaced in both by a port "
        "that we choose: --http 'http://127.0.0.1:{port}/mcp' -- ./server --port {port}",
    )  # fmt: skip
    _setting(
        how, "--header", action="append", read=values.header, metavar="NAME=env:VARIABLE",
        help="send this header with each HTTP request; its value is read from a variable; "
        "repeatable",
    )  # fmt: skip
    _setting(
        how, "--ca-file", read=Path, metavar="FILE",
        help="accept the certificates of this file too, for https",
    )  # fmt: skip
    _setting(
        how, "--intrusive", action="store_true",
        help="send malformed and heavy traffic also to a server on another machine, which we did "
        "not start",
    )  # fmt: skip
    _setting(
        how, "--rate", read=values.whole(1, values.MOST_REQUESTS), metavar="N",
        help="HTTP requests a second at most (default: 5 to a server on another machine that we "
        "did not start, else no limit)",
    )  # fmt: skip
    _setting(
        how, "--sdk", read=values.sdk, metavar="'NAME VERSION'",
        help="the SDK that the server is built on, where its files do not show it (a bundle, a "
        "container, a URL): 'mcp 1.30.0'",
    )  # fmt: skip
    how.add_argument("--target", "--server", metavar="NAME", help="name of the server in that file")
    _setting(
        how, "--env", action="append", read=values.variable, metavar="NAME=VALUE",
        help=f"set a variable for the server; {home}; repeatable",
    )  # fmt: skip
    _setting(
        how, "--cwd", metavar="DIR", help="working folder of the server; {root} is replaced in it"
    )
    _setting(
        how, "--root-from", read=Path, metavar="DIR",
        help="copy this folder into each throw-away {root}; the folder itself is not changed",
    )  # fmt: skip
    _setting(
        how, "--world", read=Path, metavar="DIR",
        help="make each throw-away {root} in this folder, for servers that refuse the usual one",
    )  # fmt: skip
    _setting(
        how, "--sandbox", read=values.sandbox, complete=values.SANDBOXES, metavar="NAME",
        help="keep the server from your files, your processes and the network (Linux): auto, "
        "unshare, bwrap or off; auto where tools that may write are called, off otherwise",
    )  # fmt: skip
    _setting(
        how, "--online", action="store_true",
        help="leave the server the network in its sandbox",
    )  # fmt: skip
    _setting(
        how, "--offline", action="store_true",
        help="start the server without any network, loopback included (Linux)",
    )  # fmt: skip
    _setting(
        how, "--timeout", read=values.seconds, metavar="SECONDS",
        help="limit for the first reply (default 60); later limits adapt to the server",
    )  # fmt: skip
    return how
