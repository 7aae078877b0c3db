"""The options of the pytest plugin and their ini keys. Does not import the harness."""

from typing import Final

import pytest

from mcp_touchstone.config.settings import OPTIONS, key
from mcp_touchstone.target.option import LEAVES, Option, OptionType

INI_FILES: Final = {
    "pytest.ini": "",
    "pyproject.toml": r"^\[tool\.pytest\b",
    "tox.ini": r"^\[pytest\]",
    "setup.cfg": r"^\[tool:pytest\]",
}
"""Files that pytest reads its configuration from, and the line that each needs for it."""

SETTINGS: Final[dict[str, Option]] = {
    key(name): row for name, row in OPTIONS.items() if row.in_pytest
}
"""Options for settings of the run; each is an ini key too, but for those that no file has."""
FILES: Final = ("config", "baseline")
"""Options that name a file; in an ini key its path is relative to the ini file."""
OWN: Final = {
    "server": Option(
        kind=OptionType.TEXT,
        metavar="COMMAND",
        help="check this MCP server beside the tests; {root} is a throw-away folder, {python} the "
        "interpreter that runs pytest",
    ),
    "client": Option(
        kind=OptionType.TEXT,
        metavar="COMMAND",
        help="check this MCP client beside the tests; {server} is a server of ours, {python} the "
        "interpreter that runs pytest",
    ),
    "gateway": Option(
        kind=OptionType.TEXT,
        metavar="COMMAND",
        help="check this gateway beside the tests; {server} or {url} is a server of ours behind "
        "it, {port} the port where it listens, {python} the interpreter that runs pytest",
    ),
    "config": Option(
        kind=OptionType.TEXT,
        metavar="FILE",
        risk=LEAVES,
        help="file that defines the server: touchstone.toml, pyproject.toml, or a client's file",
    ),
    "target": Option(
        kind=OptionType.TEXTS,
        metavar="NAME",
        help="check this server of the configuration only; repeatable",
    ),
    "trust-config": Option(
        kind=OptionType.FLAG,
        in_files=False,
        help="use all of a configuration and of ini keys that this command line does not name",
    ),
    "golden": Option(
        kind=OptionType.TEXT,
        metavar="DIR",
        risk=LEAVES,
        help="folder of a golden recording: check that the answers are as recorded in it",
    ),
    "golden-update": Option(
        kind=OptionType.FLAG,
        in_files=False,
        help="record the answers that differ, in the folder of --mcp-golden",
    ),
}
"""Options of the plugin alone."""
ALL: Final = {**OWN, **SETTINGS}
"""All options but ``--mcp``: name without ``--mcp-`` -> option."""
SERVER: Final = ("server", "url", "config", "client", "gateway")
"""Options and ini keys that name what is checked."""


def declare(parser: pytest.Parser) -> None:
    """Declare the options and the ini keys."""
    group = parser.getgroup("mcp", "MCP servers (mcp-touchstone)")
    group.addoption(
        "--mcp",
        action="store_true",
        help="check the servers of touchstone.toml or [tool.mcp-touchstone] beside the tests",
    )
    for name, row in ALL.items():
        option, key, text = f"--mcp-{name}", f"mcp_{name.replace('-', '_')}", row.help.rstrip(":")
        if row.kind is OptionType.FLAG:
            group.addoption(option, action="store_true", help=text)
        elif row.kind.is_repeatable:
            group.addoption(option, action="append", default=[], metavar=row.metavar, help=text)
        else:
            group.addoption(option, metavar=row.metavar, help=text)
        if not row.in_files:
            continue
        if row.kind is OptionType.FLAG:
            parser.addini(key, text, type="bool", default=False)
        elif row.kind is OptionType.USES:
            parser.addini(key, text, type="linelist")
        elif row.kind.is_repeatable:
            parser.addini(key, text, type="args")
        else:
            parser.addini(key, text, default=None)


def is_set(config: pytest.Config, name: str) -> bool:
    """Return whether an option was given."""
    return config.getoption(f"--mcp-{name}") not in (None, [], False)


def given(config: pytest.Config, name: str) -> list[str]:
    """Return the values of an option, or else of its ini key; a set flag has one value."""
    option = config.getoption(f"--mcp-{name}")
    key = config.getini(f"mcp_{name.replace('-', '_')}") if ALL[name].in_files else None
    found = option if is_set(config, name) else key
    if isinstance(found, str):
        return [found]
    return list(found) if isinstance(found, list) else ["true"] * bool(found)
