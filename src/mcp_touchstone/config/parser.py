"""Define and parse the command line. Runs nothing and reads no file."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mcp_touchstone.catalog.clause import nearest
from mcp_touchstone.config.arguments import Parser
from mcp_touchstone.config.commands import COMMANDS, STATUS
from mcp_touchstone.version import __version__

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
  approve     write what a server is into touchstone.lock; `check --locked` compares
  verify      verify the statement that `check --attest` made of a run
  load        send many calls at once, and check that each gets its own answer
  golden      record the answers of a server, and compare with them later
  fleet       check many servers of a list, and report on all of them
  bridge      serve a stdio server over HTTP on this machine
  tap         record what a client and a server say to each other, and show it
  judge       judge both sides of recorded conversations
  client      judge a client: run it against servers that play a part
  gateway     judge a gateway: compare a server directly and through it
  act         be the server of one scenario, for a client that cannot be scripted
  login       get a token for a server behind OAuth, with your browser
  completion  print the completion script for bash, zsh or fish
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
_DASHES: Final = "--"


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
        own.error("the command after `--` is empty; is a variable not set?")
    if options.words:
        own.error(f"unrecognized argument {options.words[0]!r} before `--`")
    return CommandLine(options, server)


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
    for name, fill in COMMANDS.items():
        one = commands.add_parser(name)
        one.set_defaults(parser=one)
        fill(one)
    commands.add_parser("serve", add_help=False).add_argument("arguments", nargs=argparse.REMAINDER)
    return top
