"""What each command accepts, and the words of its help."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Final

from mcp_touchstone.catalog.threat import Severity
from mcp_touchstone.config.arguments import Parser, completed, own, table
from mcp_touchstone.config.settings import rules
from mcp_touchstone.target import values

STATUS: Final = """\
exit status:
  0    no rule is broken
  1    a rule is broken, or a baseline entry no longer applies
  2    not checked: the server did not start or answer, or the command is wrong
  130  interrupted
"""

PORTS: Final = 65535


def _explain(explain: Parser) -> None:
    explain.description = "Show one rule in full."
    completed(
        explain.add_argument("clause", help="id of a clause, threat or advisory, as in a report"),
        rules,
    )


def _list(listed: Parser) -> None:
    listed.description = "List the rules and how each is checked."
    listed.add_argument("word", nargs="*", help="chapters, groups or clause ids; globs are allowed")
    own(
        listed,
        "--suite",
        "conformance, security or all (default)",
        "NAME",
        values.suite,
        default="all",
        complete=lambda: values.SUITES,
    )
    grades = (*values.LEVELS, *map(str, Severity))
    own(
        listed,
        "--level",
        "list only clauses of this level or threats of this severity; repeatable; "
        f"{', '.join(grades)}",
        "LEVEL",
        values.one_of(grades),
        action="append",
        default=[],
        complete=lambda: grades,
    )


def _completion(completion: Parser) -> None:
    completion.description = (
        "Print the completion script for a shell. For bash and zsh: "
        'eval "$(mcp-touchstone completion bash)"; for fish: '
        "mcp-touchstone completion fish | source."
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))


def _login(login: Parser) -> None:
    login.description = (
        "Get a token for a server behind OAuth, with your browser, and store it for `check URL`\n"
        "in your own folder. It is refreshed when it expires."
    )
    login.add_argument("url", metavar="URL")
    own(login, "--client-id", "a client that is registered already", "ID", default="")
    login.add_argument(
        "--scope",
        action="append",
        default=[],
        metavar="NAME",
        help="a scope to ask for; repeatable (default: what the server names)",
    )
    own(login, "--forget", "delete the stored token")
    own(login, "--print-token", "print a valid token, for --token-command")


def _check(check: Parser) -> None:
    check.usage = "mcp-touchstone check [options] [TARGET ... | -- COMMAND ... | --self]"
    check.description = (
        "Check a server: the command after `--`, or the targets of touchstone.toml or\n"
        "pyproject.toml in the working folder."
    )
    check.epilog = STATUS
    words(check, "targets of the configuration (default: all of them)")
    own(
        check,
        "--from",
        "check the server of this registry record, and say where the two differ",
        "SERVER.json",
        Path,
        dest="record",
    )
    own(
        check,
        "--watch",
        "check again when files change, what failed first: those of the command, and those of the "
        "working folder or of these paths; Ctrl-C ends",
        "PATH",
        Path,
        nargs="*",
    )
    table(check, "check")


def _approve(approve: Parser) -> None:
    approve.usage = "mcp-touchstone approve [options] [TARGET ... | -- COMMAND ...]"
    approve.description = (
        "Check a server with the security suite, and write it into touchstone.lock: digests of\n"
        "its package, all that it offers, what it can do by design, and the verdicts. `check\n"
        "--locked` then fails if something changed. The exit status is that of the check; a\n"
        "server that is not good is written too, as it is you who approves it."
    )
    approve.epilog = STATUS
    approve.set_defaults(watch=None, record=None)
    words(approve, "targets of the configuration (default: all of them)")
    table(approve, "check", but="bundled")


def _verify(verify: Parser) -> None:
    verify.usage = "mcp-touchstone verify [options] FILE [-- COMMAND ...]"
    verify.description = (
        "Verify a statement of `check --attest`, offline: its signature, the report, and the\n"
        "files of the command after `--`, which is not started."
    )
    verify.epilog = (
        "exit status: 0 all that was named agrees, 1 something differs, 2 the statement or its\n"
        "signature cannot be used"
    )
    verify.set_defaults(words=[])
    verify.add_argument("statement", type=Path, metavar="FILE")
    own(verify, "--key", "the public key (PEM); a signed statement requires it", "KEY", Path)
    own(verify, "--report", "the report of `check --json` that it is about", "RUN.json", Path)


def words(command: Parser, text: str = "a target of the configuration") -> None:
    """Add the words before ``--``: targets."""
    command.add_argument("words", nargs="*", metavar="TARGET", help=text)


def _init(init: Parser) -> None:
    init.usage = "mcp-touchstone init [options] -- COMMAND ..."
    init.description = (
        "Look at a server as `recon` does, and write touchstone.toml: the command, and further\n"
        "settings as comments. `check` reads the file."
    )
    words(init, "a target of the file named with --config")
    own(
        init,
        "--output",
        "file to write (default: %(default)s)",
        "FILE",
        Path,
        default=Path("touchstone.toml"),
    )
    own(init, "--force", "replace the file if it exists")
    table(init, "init")


def _diff(diff: Parser) -> None:
    diff.description = (
        "Compare two reports of `check --json`: new, fixed and open findings, and rules that no\n"
        "longer apply or were not checked before."
    )
    diff.epilog = "exit status: 0 not worse than before, 1 worse, 2 a report cannot be read"
    diff.add_argument("old", type=Path, metavar="OLD.json")
    diff.add_argument("new", type=Path, metavar="NEW.json")
    own(diff, "--format", "default: text", choices=("text", "json", "markdown"), default="text")
    table(diff, "diff")


def _report(report: Parser) -> None:
    report.description = "Make other reports of one that `check --json` wrote."
    report.add_argument("run", type=Path, metavar="RUN.json")
    for kind, what in (
        ("html", "an HTML page"),
        ("markdown", "Markdown"),
        ("junit", "JUnit XML"),
        ("sarif", "SARIF"),
        ("badge", "the JSON of a shields.io badge"),
    ):
        own(report, f"--{kind}", f"write {what}", "FILE", Path)


def _recon(recon: Parser) -> None:
    recon.usage = "mcp-touchstone recon [options] [TARGET | -- COMMAND ... | --self]"
    recon.description = (
        "Show what a server offers: revisions, capabilities, and a working example for each\n"
        "feature that a clause may need. Calls only tools that are annotated read-only or named\n"
        "here. With {root} in the command, tools that seem to take a path are called as well, in\n"
        "a throw-away folder, to see what they do to files."
    )
    words(recon)
    own(recon, "--json", "print JSON", dest="as_json")
    table(recon, "recon")


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
    words(load)
    table(load, "load")


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
        words(one)
        own(
            one,
            "--folder",
            "folder of the recording (default: %(default)s)",
            "DIR",
            Path,
            default=Path("mcp-golden"),
        )
        own(one, "--update", "replace recorded answers that differ")
        if name == "record":
            own(
                one,
                "--suite",
                "also record the responses in the scenarios of a suite: conformance, security or "
                "all",
                "NAME",
                values.suite,
                dest="scenarios",
            )
            own(one, "--any-version", "ignore changes of the server's version")
        else:
            own(
                one,
                "--create",
                "record answers that are not recorded yet; without it they are failures",
            )
        table(one, "golden")


def _bridge(bridge: Parser) -> None:
    bridge.usage = "mcp-touchstone bridge [options] [TARGET | -- COMMAND ... | --self]"
    bridge.description = (
        "Serve a stdio server over streamable HTTP on 127.0.0.1, in every revision it supports,\n"
        "and print the URL. Each session up to 2025-11-25 has a process of its own; all of\n"
        "2026-07-28 share one."
    )
    words(bridge)
    own(
        bridge,
        "--port",
        "port to listen on (default: 0, any free port)",
        "N",
        values.whole(0, PORTS),
        default=0,
    )
    own(
        bridge,
        "--sessions",
        "sessions at a time, each with a process (default: 32); an idle one is closed for a new "
        "one",
        "N",
        values.whole(1, 1000),
        default=32,
    )
    table(bridge, "bridge")


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
    own(
        fleet,
        "--out",
        "file of rows (default: %(default)s); reports and transcripts are kept beside it",
        "FILE",
        Path,
        default=Path("fleet.jsonl"),
    )
    own(
        fleet,
        "--resume",
        "continue: leave out servers that have a row, check those again where we failed",
    )
    own(fleet, "--no-files", "keep no reports and transcripts, only rows")
    own(
        fleet,
        "--opt-out",
        "leave out the hosts and the servers in this file: a host, a name or a package a line, # "
        "begins a comment",
        "FILE",
        Path,
    )
    own(fleet, "--list-only", "print the servers of the list, and start none")
    _where_servers_run(fleet)
    table(fleet, "fleet")


def _where_servers_run(fleet: Parser) -> None:
    where = fleet.add_argument_group("where servers run")
    own(
        where,
        "--inside",
        "sandbox of each server (default: auto, unshare where it works, else bwrap); podman and "
        "docker run servers in images, and all others as auto does; none lets them do all that you "
        "can",
        choices=("auto", "bwrap", "unshare", "podman", "docker", "none"),
        default="auto",
    )
    own(
        where,
        "--workers",
        "servers at a time (default: %(default)s)",
        "N",
        values.whole(1, 256),
        default=2,
    )
    own(
        where,
        "--engine",
        "pool: threads of this machine (default); dask: the workers of a cluster",
        choices=("pool", "dask"),
        default="pool",
    )
    own(
        where,
        "--scheduler",
        "scheduler of the cluster, such as tcp://10.0.0.1:8786; --out is written here, and the "
        "folder of reports is on the workers",
        "ADDRESS",
        default="",
    )
    own(
        where,
        "--shard",
        "check only the I-th of N equal parts of the list, for several machines",
        "I/N",
        values.shard,
        default=(1, 1),
    )
    own(where, "--work", "folder for installations (default: a temporary one)", "DIR", Path)
    own(
        where,
        "--deadline",
        "limit for one server, with its installation (default: 300)",
        "SECONDS",
        values.seconds,
        default=300.0,
    )
    own(
        where,
        "--timeout",
        "limit for the first reply of a server (default: 30)",
        "SECONDS",
        values.seconds,
        default=30.0,
    )
    own(
        where,
        "--memory",
        "memory of each process of a server (default: 4096; 0 for no limit; Linux)",
        "MB",
        values.whole(0, 1 << 20),
        default=4096,
    )


def _fleet_report(report: Parser) -> None:
    report.prog = "mcp-touchstone fleet report"
    report.usage = "mcp-touchstone fleet report [options] ROWS ..."
    report.description = (
        "Report on the rows of one or more files: failures to start, and for each rule how many\n"
        "servers it applied to and how many broke it."
    )
    report.add_argument("rows", type=Path, nargs="+", metavar="ROWS")
    own(report, "--html", "write a page for a browser", "FILE", Path)
    own(report, "--csv", "write one line for each rule", "FILE", Path)
    own(
        report,
        "--parquet",
        "write one line for each server, revision and rule; requires DuckDB",
        "FILE",
        Path,
    )
    own(report, "--since", "show what changed since these rows", "OLD.jsonl", Path)
    own(
        report,
        "--names",
        "name servers with a security finding too; they are withheld otherwise",
    )


def _tap(tap: Parser) -> None:
    tap.usage = (
        "mcp-touchstone tap --report DIR -- COMMAND ...\n"
        "       mcp-touchstone tap --wrap FILE [--report DIR] [NAME]\n"
        "       mcp-touchstone tap --unwrap FILE [NAME]\n"
        "       mcp-touchstone tap --listen PORT --to URL --report DIR\n"
        "       mcp-touchstone tap show DIR"
    )
    tap.description = (
        "Stand between a client and a stdio server: pass every byte, signal and exit status on,\n"
        "and record each line in a file of DIR before it passes. `judge DIR` judges both sides,\n"
        "`tap show DIR` prints the conversations. --wrap puts the tap before the servers in the\n"
        "configuration of a client: Claude, Cursor, VS Code, Zed, opencode, Codex, Goose.\n"
        "--listen puts it before an HTTP server, and prints the URL for its clients."
    )
    tap.epilog = "exit status: that of the server; 126 or 127 if it cannot be started"
    words(tap, "a server in FILE (default: all that have a command)")
    own(tap, "--report", "folder of the recordings", "DIR", Path)
    which = tap.add_mutually_exclusive_group()
    which.add_argument("--wrap", type=Path, metavar="FILE", help="put the tap into this file")
    which.add_argument("--unwrap", type=Path, metavar="FILE", help="take the tap out of this file")
    own(
        tap,
        "--listen",
        "port on 127.0.0.1 for HTTP clients; 0 for any free one",
        "PORT",
        values.whole(0, PORTS),
        default=None,
    )
    own(tap, "--to", "the HTTP server behind --listen", "URL")
    own(
        tap,
        "--fault",
        "what a host should survive, at the first call of a tool: drop-answer, delay=SECONDS,\n"
        "restart (stdio), close-stream (HTTP); several with commas",
        "FAULT",
        default="",
    )
    table(tap, "tap")


def _tap_show(show: Parser) -> None:
    show.prog = "mcp-touchstone tap show"
    show.usage = "mcp-touchstone tap show DIR [options]"
    show.description = (
        "Print recorded conversations: each line with its time, beside each request the line and\n"
        "the time of its answer, what was never answered, and which line broke which rule."
    )
    show.add_argument("folder", type=Path, metavar="DIR", help="folder, or one recording")
    most = values.whole(1, 1_000_000)
    own(show, "--tail", "print the last N lines only", "N", most, default=0)
    own(show, "--method", "print this method only, or a pattern: tools/*", "METHOD", default="")
    own(show, "--broken", "print lines that break a rule only")
    own(show, "--headers", "print the recorded HTTP headers too")
    own(
        show,
        "--until-broken",
        "stop after the first line that breaks a rule; exit with 1 if there is one",
    )
    own(show, "--unjudged", "ask no rule: the lines alone, in less than half of the time")
    own(show, "--follow", "go on with what is recorded later, until Ctrl-C")
    own(show, "--html", "write the same as one HTML page in place of the screen", "FILE", Path)


def _judge(judge: Parser) -> None:
    judge.description = (
        "Judge both sides of recorded conversations by the rules on all traffic. What nobody did\n"
        "is not judged; `check` provokes a server."
    )
    judge.epilog = STATUS
    judge.add_argument("folder", type=Path, metavar="DIR", help="folder, or one recording")
    own(
        judge,
        "--side",
        "judge this side only",
        choices=("client", "server", "both"),
        default="both",
    )
    table(judge, "judge")


def _client(client: Parser) -> None:
    client.usage = "mcp-touchstone client [options] [-- COMMAND ...]"
    client.description = (
        "Run a client once for each scenario against a server of ours, and judge what it sent.\n"
        "{server} in COMMAND becomes the command of the server, or its URL. Without {server} the\n"
        "command is one of the official conformance suite: it gets a URL as its last argument,\n"
        "and the scenarios that it knows. The environment has MCP_CONFORMANCE_SCENARIO,\n"
        "MCP_CONFORMANCE_PROTOCOL_VERSION and MCP_CONFORMANCE_CONTEXT (JSON, with the steps).\n"
        "Without a command it is `client` of touchstone.toml or pyproject.toml."
    )
    client.epilog = STATUS
    words(client, argparse.SUPPRESS)
    table(client, "client")


def _gateway(gateway: Parser) -> None:
    gateway.usage = (
        "mcp-touchstone gateway [options] -- COMMAND ...\n"
        "       mcp-touchstone gateway --upstream-port PORT [options] --to URL\n"
        "       mcp-touchstone gateway --upstream-port PORT --upstream"
    )
    gateway.description = (
        "Judge a gateway, proxy or bridge: start our server, the gateway before it and our client\n"
        "before that; hold the same exchanges with the server itself; and say what was lost,\n"
        "changed, invented or crossed on the way, with the lines of both hops. In COMMAND\n"
        "{server} is our server as a stdio command, {url} the same over HTTP, and {port} the port\n"
        "on which the gateway listens; without it, the gateway speaks stdio. {server:a} and\n"
        "{server:b} are two servers, for a gateway that joins several."
    )
    gateway.epilog = STATUS
    own(
        gateway,
        "--to",
        "the URL of a gateway that runs already",
        "URL",
        values.url,
        dest="url",
        default=argparse.SUPPRESS,
    )
    own(gateway, "--upstream", "print the command and the URL of our server for such a gateway")
    words(gateway, "the URL of a gateway that runs already, or a target of the configuration")
    table(gateway, "gateway")


def _act(act: Parser) -> None:
    act.usage = "mcp-touchstone act SCENARIO --report DIR"
    act.description = (
        "Be the stdio server of one scenario, and record what the client says. Write this command\n"
        "into the configuration of a client, use it, and then `judge DIR --side client`."
    )
    act.add_argument("scenario", nargs="?", metavar="SCENARIO")
    own(act, "--report", "folder of the recordings", "DIR", Path)
    own(act, "--list", "list the scenarios", dest="listing")


COMMANDS: Final[dict[str, Callable[[Parser], None]]] = {
    "check": _check,
    "approve": _approve,
    "verify": _verify,
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
    "gateway": _gateway,
    "act": _act,
    "completion": _completion,
    "login": _login,
}
