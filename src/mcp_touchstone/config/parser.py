"""Define and parse the command line. Runs nothing and reads no file."""

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from mcp_touchstone import __version__
from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.catalog.threat import Severity
from mcp_touchstone.config.settings import GROUPS, OPTIONS, SOURCES, rules
from mcp_touchstone.runtime.printable import safe
from mcp_touchstone.target import values
from mcp_touchstone.target.option import Kind, Option

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
  report      make other reports of one that `check --json` wrote
  load        send many calls at once, and check that each gets its own answer
  golden      record the answers of a server, and compare with them later
  fleet       check many servers of a list, and report on all of them
  bridge      serve a stdio server over HTTP on this machine
  tap         record what a client and a server say to each other, and show it
  judge       judge both sides of recorded conversations
  client      judge a client: run it against servers that play a part
  act         be the server of one scenario, for a client that cannot be scripted
  login       get a token for a server behind OAuth, with your browser
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
    if tuple(words[:2]) in {("fleet", "report"), ("tap", "show")}:
        words = [" ".join(words[:2]), *words[2:]]
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


def _add(group: "Parser | argparse._ArgumentGroup", name: str, row: Option) -> None:
    """Add an option of the table. One of `Settings` has no default, so other layers can set it."""
    default = argparse.SUPPRESS if name in OPTIONS else None
    given: dict[str, Any] = {"dest": name, "default": default, "help": row.text}
    if row.kind is Kind.FLAG:
        given["action"] = "store_true"
    else:
        given |= {"type": _typed(row.read), "metavar": row.metavar}
        given |= {"action": "append"} if row.kind.is_repeatable else {}
    _completed(group.add_argument(*row.names, **given), row.complete)


def _own(
    group: "Parser | argparse._ArgumentGroup",
    names: str,
    text: str,
    metavar: str = "",
    read: Callable[[str], Any] = str,
    *,
    complete: Callable[[], Iterable[str]] | None = None,
    **more: Any,
) -> None:
    """Add an option of one command; without ``metavar`` it is a flag."""
    if metavar:
        more |= {"type": _typed(read), "metavar": metavar}
    elif "choices" not in more:
        more["action"] = "store_true"
    _completed(group.add_argument(*names.split(), help=text, **more), complete)


def _completed(action: Any, complete: Callable[[], Iterable[str]] | None) -> None:
    """Let a shell complete the values of an argument."""
    if complete is not None:
        action.completer = lambda **_: list(complete())


def _table(command: Parser, name: str) -> None:
    """Add the options of the table that a command has."""
    for title in GROUPS:
        rows = {
            field: row
            for field, row in {**SOURCES, **OPTIONS}.items()
            if name in row.commands and row.group == title
        }
        group = command.add_argument_group(title) if title and rows else command
        for field, row in rows.items():
            _add(group, field, row)


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
    for name, fill in _COMMANDS.items():
        one = commands.add_parser(name)
        one.set_defaults(parser=one)
        fill(one)
    commands.add_parser("serve", add_help=False).add_argument("arguments", nargs=argparse.REMAINDER)
    return top


def _explain(explain: Parser) -> None:
    explain.description = "Show one rule in full."
    _completed(
        explain.add_argument("clause", help="id of a clause or threat, as in a report"), rules
    )


def _list(listed: Parser) -> None:
    listed.description = "List the rules and how each is checked."
    listed.add_argument("word", nargs="*", help="chapters, groups or clause ids; globs are allowed")
    _own(
        listed, "--suite", "conformance, security or all (default)", "NAME", values.suite,
        default="all", complete=lambda: values.SUITES,
    )  # fmt: skip
    grades = (*values.LEVELS, *map(str, Severity))
    _own(
        listed, "--level",
        "list only clauses of this level or threats of this severity; repeatable; "
        f"{', '.join(grades)}",
        "LEVEL", values.one_of(grades), action="append", default=[],
        complete=lambda: grades,
    )  # fmt: skip


def _completion(completion: Parser) -> None:
    completion.description = (
        "Print the completion script for a shell. For bash and zsh: "
        'eval "$(mcp-touchstone completion bash)"; for fish: '
        "mcp-touchstone completion fish | source."
    )
    completion.add_argument("shell", choices=SHELLS)


def _login(login: Parser) -> None:
    login.description = (
        "Get a token for a server behind OAuth, with your browser, and store it for `check URL`\n"
        "in your own folder. It is refreshed when it expires."
    )
    login.add_argument("url", metavar="URL")
    _own(login, "--client-id", "a client that is registered already", "ID", default="")
    login.add_argument(
        "--scope", action="append", default=[], metavar="NAME",
        help="a scope to ask for; repeatable (default: what the server names)",
    )  # fmt: skip
    _own(login, "--forget", "delete the stored token")
    _own(login, "--print-token", "print a valid token, for --token-command")


def _check(check: Parser) -> None:
    check.usage = "mcp-touchstone check [options] [TARGET ... | -- COMMAND ... | --self]"
    check.description = (
        "Check a server: the command behind `--`, or the targets of touchstone.toml or\n"
        "pyproject.toml in the working folder."
    )
    check.epilog = STATUS
    _words(check, "targets of the configuration (default: all of them)")
    _own(
        check, "--from",
        "check the server of this registry record, and say where the two differ",
        "SERVER.json", Path, dest="record",
    )  # fmt: skip
    _table(check, "check")


def _words(command: Parser, text: str = "a target of the configuration") -> None:
    command.add_argument("words", nargs="*", metavar="TARGET", help=text)


def _init(init: Parser) -> None:
    init.usage = "mcp-touchstone init [options] -- COMMAND ..."
    init.description = (
        "Look at a server as `recon` does, and write touchstone.toml: the command, and further\n"
        "settings as comments. `check` reads the file."
    )
    _words(init, "a target of the file named with --config")
    _own(
        init, "--output", "file to write (default: %(default)s)", "FILE", Path,
        default=Path("touchstone.toml"),
    )  # fmt: skip
    _own(init, "--force", "replace the file if it exists")
    _table(init, "init")


def _diff(diff: Parser) -> None:
    diff.description = (
        "Compare two reports of `check --json`: new, fixed and open findings, and rules that no\n"
        "longer apply or were not checked before."
    )
    diff.epilog = "exit status: 0 not worse than before, 1 worse, 2 a report cannot be read"
    diff.add_argument("old", type=Path, metavar="OLD.json")
    diff.add_argument("new", type=Path, metavar="NEW.json")
    _own(diff, "--format", "default: text", choices=("text", "json", "markdown"), default="text")
    _table(diff, "diff")


def _report(report: Parser) -> None:
    report.description = "Make other reports of one that `check --json` wrote."
    report.add_argument("run", type=Path, metavar="RUN.json")
    for kind, what in (
        ("html", "an HTML page"), ("markdown", "Markdown"), ("junit", "JUnit XML"),
        ("sarif", "SARIF"), ("badge", "the JSON of a shields.io badge"),
    ):  # fmt: skip
        _own(report, f"--{kind}", f"write {what}", "FILE", Path)


def _recon(recon: Parser) -> None:
    recon.usage = "mcp-touchstone recon [options] [TARGET | -- COMMAND ... | --self]"
    recon.description = (
        "Show what a server offers: revisions, capabilities, and a working example for each\n"
        "feature that a clause may need. Calls only tools that are annotated read-only or named\n"
        "here. With {root} in the command, tools that seem to take a path are called as well, in\n"
        "a throw-away folder, to see what they do to files."
    )
    _words(recon)
    _own(recon, "--json", "print JSON", dest="as_json")
    _table(recon, "recon")


def _load(load: Parser) -> None:
    load.usage = "mcp-touchstone load [options] [TARGET | -- COMMAND ... | --self]"
    load.description = (
        "Keep 1, 8 and 64 calls in flight, about a thousand together: lists, and tools that are\n"
        "annotated read-only or named with --call. Every answer is compared with the one that\n"
        "its request got alone. Only for a server of your own."
    )
    load.epilog = (
        "exit status: 0 every answer was right, 1 one belonged to another call or was lost, or\n"
        "the memory grew, 2 nothing was measured"
    )
    _words(load)
    _table(load, "load")


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
        _words(one)
        _own(
            one, "--folder", "folder of the recording (default: %(default)s)", "DIR", Path,
            default=Path("mcp-golden"),
        )  # fmt: skip
        _own(one, "--update", "replace recorded answers that differ")
        if name == "record":
            _own(
                one, "--suite",
                "also record the responses in the scenarios of a suite: conformance, security or "
                "all",
                "NAME", values.suite, dest="scenarios",
            )  # fmt: skip
            _own(one, "--any-version", "ignore changes of the server's version")
        else:
            _own(
                one, "--create",
                "record answers that are not recorded yet; without it they are failures",
            )  # fmt: skip
        _table(one, "golden")


def _bridge(bridge: Parser) -> None:
    bridge.usage = "mcp-touchstone bridge [options] [TARGET | -- COMMAND ... | --self]"
    bridge.description = (
        "Serve a stdio server over streamable HTTP on 127.0.0.1, in every revision it supports,\n"
        "and print the URL. Each session up to 2025-11-25 has a process of its own; all of\n"
        "2026-07-28 share one."
    )
    _words(bridge)
    _own(
        bridge, "--port", "port to listen on (default: 0, any free port)", "N",
        values.whole(0, PORTS), default=0,
    )  # fmt: skip
    _own(
        bridge, "--sessions",
        "sessions at a time, each with a process (default: 32); an idle one is closed for a new "
        "one",
        "N", values.whole(1, MOST_SESSIONS), default=32,
    )  # fmt: skip
    _table(bridge, "bridge")


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
    _own(
        fleet, "--out",
        "file of rows (default: %(default)s); reports and transcripts are kept beside it",
        "FILE", Path, default=Path("fleet.jsonl"),
    )  # fmt: skip
    _own(
        fleet, "--resume",
        "continue: leave out servers that have a row, check those again where we failed",
    )  # fmt: skip
    _own(fleet, "--no-files", "keep no reports and transcripts, only rows")
    _own(
        fleet, "--opt-out",
        "leave out the hosts and the servers in this file: a host, a name or a package a line, # "
        "begins a comment",
        "FILE", Path,
    )  # fmt: skip
    _own(fleet, "--list-only", "print the servers of the list, and start none")
    _where_servers_run(fleet)
    _table(fleet, "fleet")


def _where_servers_run(fleet: Parser) -> None:
    where = fleet.add_argument_group("where servers run")
    _own(
        where, "--inside",
        "sandbox of each server (default: bwrap); podman and docker run servers in images, and all "
        "others in bwrap; none lets them do all that you can",
        choices=("bwrap", "unshare", "podman", "docker", "none"), default="bwrap",
    )  # fmt: skip
    _own(
        where, "--workers", "servers at a time (default: %(default)s)", "N",
        values.whole(1, MOST_WORKERS), default=2,
    )  # fmt: skip
    _own(
        where, "--engine",
        "pool: threads of this machine (default); dask: the workers of a cluster",
        choices=("pool", "dask"), default="pool",
    )  # fmt: skip
    _own(
        where, "--scheduler",
        "scheduler of the cluster, such as tcp://10.0.0.1:8786; --out is written here, and the "
        "folder of reports is on the workers",
        "ADDRESS", default="",
    )  # fmt: skip
    _own(
        where, "--shard",
        "check only the I-th of N equal parts of the list, for several machines",
        "I/N", values.shard, default=(1, 1),
    )  # fmt: skip
    _own(where, "--work", "folder for installations (default: a temporary one)", "DIR", Path)
    _own(
        where, "--deadline", "limit for one server, with its installation (default: 300)",
        "SECONDS", values.seconds, default=300.0,
    )  # fmt: skip
    _own(
        where, "--timeout", "limit for the first reply of a server (default: 30)",
        "SECONDS", values.seconds, default=30.0,
    )  # fmt: skip
    _own(
        where, "--memory",
        "memory of each process of a server (default: 4096; 0 for no limit; Linux)",
        "MB", values.whole(0, MOST_MEMORY), default=4096,
    )  # fmt: skip


def _fleet_report(report: Parser) -> None:
    report.prog = "mcp-touchstone fleet report"
    report.usage = "mcp-touchstone fleet report [options] ROWS ..."
    report.description = (
        "Report on the rows of one or more files: failures to start, and for each rule how many\n"
        "servers it applied to and how many broke it."
    )
    report.add_argument("rows", type=Path, nargs="+", metavar="ROWS")
    _own(report, "--html", "write a page for a browser", "FILE", Path)
    _own(report, "--csv", "write one line for each rule", "FILE", Path)
    _own(
        report, "--parquet",
        "write one line for each server, revision and rule; requires DuckDB", "FILE", Path,
    )  # fmt: skip
    _own(report, "--since", "show what changed since these rows", "OLD.jsonl", Path)
    _own(
        report, "--names",
        "name servers with a security finding too; they are withheld otherwise",
    )  # fmt: skip


def _tap(tap: Parser) -> None:
    tap.usage = (
        "mcp-touchstone tap --report DIR -- COMMAND ...\n"
        "       mcp-touchstone tap --wrap FILE [--report DIR] [NAME]\n"
        "       mcp-touchstone tap --unwrap FILE [NAME]\n"
        "       mcp-touchstone tap show DIR"
    )
    tap.description = (
        "Stand between a client and a stdio server: pass every byte, signal and exit status on,\n"
        "and record each line in a file of DIR before it passes. `judge DIR` judges both sides,\n"
        "`tap show DIR` prints the conversations. --wrap puts the tap before the servers in the\n"
        "configuration of a client (.mcp.json, Claude Desktop, VS Code)."
    )
    tap.epilog = "exit status: that of the server; 126 or 127 if it cannot be started"
    _words(tap, "a server in FILE (default: all that have a command)")
    _own(tap, "--report", "folder of the recordings", "DIR", Path)
    which = tap.add_mutually_exclusive_group()
    which.add_argument("--wrap", type=Path, metavar="FILE", help="put the tap into this file")
    which.add_argument("--unwrap", type=Path, metavar="FILE", help="take the tap out of this file")


def _tap_show(show: Parser) -> None:
    show.prog = "mcp-touchstone tap show"
    show.usage = "mcp-touchstone tap show DIR"
    show.description = (
        "Print recorded conversations: each line with its time, beside each request the line and\n"
        "the time of its answer, what was never answered, and which line broke which rule."
    )
    show.add_argument("folder", type=Path, metavar="DIR", help="folder, or one recording")


def _judge(judge: Parser) -> None:
    judge.description = (
        "Judge both sides of recorded conversations by the rules on all traffic. What nobody did\n"
        "is not judged; `check` provokes a server."
    )
    judge.epilog = STATUS
    judge.add_argument("folder", type=Path, metavar="DIR", help="folder, or one recording")
    _own(
        judge, "--side", "judge this side only", choices=("client", "server", "both"),
        default="both",
    )  # fmt: skip
    _table(judge, "judge")


def _client(client: Parser) -> None:
    client.usage = "mcp-touchstone client [options] -- COMMAND ..."
    client.description = (
        "Run a client once for each scenario against a server of ours, and judge what it sent.\n"
        "{server} in COMMAND becomes the command of the server; with --http it becomes its URL,\n"
        "which else is the last argument. The environment has MCP_CONFORMANCE_SCENARIO,\n"
        "MCP_CONFORMANCE_PROTOCOL_VERSION and MCP_CONFORMANCE_CONTEXT (JSON, with the steps)."
    )
    client.epilog = STATUS
    _words(client, argparse.SUPPRESS)
    _own(
        client, "--scenario", "run this one only; repeatable; `act --list` lists them", "NAME",
        action="append", default=[],
    )  # fmt: skip
    _own(client, "--http", "reach the server over HTTP", dest="over_http")
    _own(
        client, "--timeout", "limit for the client in each scenario (default: 30)", "SECONDS",
        values.seconds, default=30.0, dest="limit",
    )  # fmt: skip
    _own(client, "--save", "keep the recordings in this folder", "DIR", Path, dest="recordings")
    _table(client, "client")


def _act(act: Parser) -> None:
    act.usage = "mcp-touchstone act SCENARIO --report DIR"
    act.description = (
        "Be the stdio server of one scenario, and record what the client says. Write this command\n"
        "into the configuration of a client, use it, and then `judge DIR --side client`."
    )
    act.add_argument("scenario", nargs="?", metavar="SCENARIO")
    _own(act, "--report", "folder of the recordings", "DIR", Path)
    _own(act, "--list", "list the scenarios", dest="listing")


_COMMANDS: Final[dict[str, Callable[[Parser], None]]] = {
    "check": _check,
    "init": _init,
    "explain": _explain,
    "list": _list,
    "recon": _recon,
    "diff": _diff,
    "report": _report,
    "load": _load,
    "golden": _golden,
    "bridge": _bridge,
    "fleet": _fleet,
    "fleet report": _fleet_report,
    "tap": _tap,
    "tap show": _tap_show,
    "judge": _judge,
    "client": _client,
    "act": _act,
    "completion": _completion,
    "login": _login,
}
