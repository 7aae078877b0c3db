"""The pytest plugin: options, collection, fixtures. Selects and prints; the gate judges.

Imports nothing of the harness until a server was named, so a session that does not use it
pays for this file only.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from mcp_touchstone.connection import Connection
    from mcp_touchstone.live import Live
    from mcp_touchstone.target import Target

ACTIVE = pytest.StashKey[bool]()
USED = {
    "call": ("NAME={...}", "this tool may be called, best with arguments that work; repeatable"),
    "resource": ("URI", "this resource can be read; repeatable"),
    "prompt": ("NAME={...}", "this prompt can be rendered, with these arguments; repeatable"),
}
"""What may be used beside tools annotated read-only: option -> its value and its help."""
DRAWN = {
    "examples": ("N", "examples of each property in each revision; a few by default, 0 for none"),
    "seed": ("S", "what the drawing of examples starts from; the same seed draws the same"),
}
"""What properties draw: option -> its value and its help."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options and the ini keys."""
    group = parser.getgroup("mcp", "MCP servers (mcp-touchstone)")
    group.addoption(
        "--mcp-server",
        metavar="COMMAND",
        help="judge this MCP server beside the tests; {root} stands for a throw-away folder",
    )
    group.addoption(
        "--mcp-select",
        action="append",
        default=[],
        metavar="WORD",
        help="clause, chapter, group or scenario; globs allowed; repeatable",
    )
    group.addoption(
        "--mcp-revision",
        action="append",
        default=[],
        metavar="DATE",
        help="judge this protocol revision only; repeatable",
    )
    group.addoption("--mcp-strict", action="store_true", help="a broken SHOULD is a failure")
    for name, (metavar, text) in DRAWN.items():
        group.addoption(f"--mcp-{name}", type=int, metavar=metavar, help=text)
        parser.addini(f"mcp_{name}", text)
    group.addoption(
        "--mcp-timeout", type=float, metavar="SECONDS", help="limit for the first answer (60)"
    )
    for name, what in USED.items():
        group.addoption(f"--mcp-{name}", action="append", default=[], metavar=what[0], help=what[1])
        parser.addini(f"mcp_{name}", what[1], type="linelist")
    parser.addini("mcp_server", "command of the MCP server to judge beside the tests")
    parser.addini("mcp_select", "clauses, chapters or groups to judge", type="args")
    parser.addini("mcp_revision", "protocol revisions to judge", type="args")
    parser.addini("mcp_strict", "a broken SHOULD is a failure", type="bool", default=False)
    parser.addini("mcp_timeout", "seconds the first answer may take", default="60")


def pytest_configure(config: pytest.Config) -> None:
    """Take node ids of ours off the command line, so that pytest looks for no such files."""
    config.addinivalue_line("markers", "mcp: a scenario of mcp-touchstone")
    command = config.getoption("--mcp-server") or config.getini("mcp_server")
    config.stash[ACTIVE] = bool(command)
    if command:
        from mcp_touchstone.pytest_suite import Suite  # noqa: PLC0415  (only when it is used)

        config.pluginmanager.register(Suite(config), "mcp_touchstone_suite")


@pytest.fixture(scope="session")
def mcp_server(pytestconfig: pytest.Config) -> "Target":
    """Give the server named by --mcp-server or the mcp_server ini key."""
    if not pytestconfig.stash.get(ACTIVE, False):
        pytest.fail(
            "no server: name one with --mcp-server or the ini key mcp_server", pytrace=False
        )
    from mcp_touchstone.pytest_suite import target  # noqa: PLC0415  (only when it is used)

    return target(pytestconfig)


@pytest.fixture(scope="session")
def _mcp_live(mcp_server: "Target") -> Iterator["Live"]:
    from mcp_touchstone.live import Live  # noqa: PLC0415  (only when it is used)

    with Live(mcp_server) as live:
        yield live


@pytest.fixture
def mcp_session(_mcp_live: "Live") -> "Connection":
    """Give an open connection to the server: request, notify, quiet, transcript.

    One process serves the whole session; one that died is replaced for the next test.
    """
    return _mcp_live.connection()
