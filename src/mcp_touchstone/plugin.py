"""The pytest plugin: options, collection, fixtures. Selects and prints; the gate judges.

Imports nothing of the harness until a server was named, so a session that does not use it
pays for this file only.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import pytest

if TYPE_CHECKING:
    from mcp_touchstone.live import Live
    from mcp_touchstone.target import Target
    from mcp_touchstone.using import Session

ACTIVE = pytest.StashKey[bool]()

LISTS = {
    "select": ("WORD", "clause, chapter, group or scenario; globs allowed; repeatable"),
    "revision": ("DATE", "judge this protocol revision only; repeatable"),
    "target": ("NAME", "judge this server of the configuration only; repeatable"),
    "call": ("NAME={...}", "this tool may be called, best with arguments that work; repeatable"),
    "resource": ("URI", "this resource can be read; repeatable"),
    "prompt": ("NAME={...}", "this prompt can be rendered, with these arguments; repeatable"),
    "promise": ("NAME", "what the server claims, for the suite security; repeatable"),
    "fail-on": (
        "FLOOR",
        "from which gravity on an item fails: must, should, high, ...; repeatable",
    ),
}
"""Options that may be given several times, each an ini key too: name -> its value and its help."""
SINGLE = {
    "suite": ("NAME", "conformance (default), security or all; security needs {root}"),
    "timeout": ("SECONDS", "limit for the first answer (60)"),
    "examples": ("N", "examples of each property in each revision; a few by default, 0 for none"),
    "seed": ("S", "what the drawing of examples starts from; the same seed draws the same"),
}
"""The other options that are words of `mcp-touchstone check`: name -> its value and its help."""
FLAGS = {
    "strict": "a broken SHOULD is a failure",
    "quick": "only what is judged at once, in the newest revision; no tool is tried out",
}
"""Options without a value, each an ini key too."""
FILES = {
    "config": "where the server stands: touchstone.toml, pyproject.toml, or a client's file",
    "baseline": "known failures (default touchstone-baseline.toml, where there is one)",
}
"""Options that name a file; an ini key speaks from the folder of the ini file."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options and the ini keys."""
    group = parser.getgroup("mcp", "MCP servers (mcp-touchstone)")
    group.addoption(
        "--mcp-server",
        metavar="COMMAND",
        help="judge this MCP server beside the tests; {root} stands for a throw-away folder",
    )
    parser.addini("mcp_server", "command of the MCP server to judge beside the tests")
    group.addoption(
        "--mcp",
        action="store_true",
        help="judge what touchstone.toml or [tool.mcp-touchstone] names beside the tests",
    )
    for name, text in FILES.items():
        group.addoption(f"--mcp-{name}", metavar="FILE", help=text)
        parser.addini(f"mcp_{name}", text)
    for name, (metavar, text) in LISTS.items():
        group.addoption(f"--mcp-{name}", action="append", default=[], metavar=metavar, help=text)
        kind: Literal["linelist", "args"] = "linelist" if metavar.endswith("{...}") else "args"
        parser.addini(f"mcp_{name.replace('-', '_')}", text, type=kind)
    for name, (metavar, text) in SINGLE.items():
        group.addoption(f"--mcp-{name}", metavar=metavar, help=text)
        parser.addini(f"mcp_{name}", text)
    for name, text in FLAGS.items():
        group.addoption(f"--mcp-{name}", action="store_true", help=text)
        parser.addini(f"mcp_{name}", text, type="bool", default=False)
    group.addoption("--mcp-no-baseline", action="store_true", help="judge as if nothing were known")


def pytest_configure(config: pytest.Config) -> None:
    """Take node ids of ours off the command line, so that pytest looks for no such files."""
    config.addinivalue_line("markers", "mcp: a scenario of mcp-touchstone")
    wanted = ("mcp_server", "mcp_config")
    config.stash[ACTIVE] = bool(
        config.getoption("--mcp")
        or any(config.getoption(f"--{name.replace('_', '-')}") for name in wanted)
        or any(map(config.getini, wanted))
    )
    if config.stash[ACTIVE]:
        from mcp_touchstone.pytest_suite import Suite  # noqa: PLC0415  (only when it is used)

        config.pluginmanager.register(Suite(config), "mcp_touchstone_suite")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that uses our fixtures once for each server that is configured."""
    if "mcp_server" in metafunc.fixturenames:
        from mcp_touchstone.pytest_jobs import jobs  # noqa: PLC0415  (only when it is used)

        try:
            names = [job.name for job in jobs(metafunc.config)]
        except pytest.UsageError as error:
            pytest.fail(str(error), pytrace=False)
        if any(names):
            metafunc.parametrize("mcp_server", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def mcp_server(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> "Target":
    """Give the server that is named by an option, an ini key or a configuration.

    Where several are configured, the test runs once for each.
    """
    from mcp_touchstone.pytest_jobs import jobs  # noqa: PLC0415  (only when it is used)

    found = jobs(pytestconfig)
    if not found:
        pytest.fail(
            "no server: name one with --mcp-server or the ini key mcp_server, or write a "
            "touchstone.toml",
            pytrace=False,
        )
    name = getattr(request, "param", found[0].name)
    return next(job.target for job in found if job.name == name)


@pytest.fixture(scope="session")
def _mcp_live(mcp_server: "Target") -> Iterator["Live"]:
    from mcp_touchstone.live import Live  # noqa: PLC0415  (only when it is used)

    with Live(mcp_server) as live:
        yield live


@pytest.fixture
def mcp_session(_mcp_live: "Live") -> "Session":
    """Give an open session with the server: call_tool, tools, request, notify, transcript.

    One process serves the whole session; one that died is replaced for the next test.
    """
    from mcp_touchstone.using import Session  # noqa: PLC0415  (only when it is used)

    return Session(_mcp_live.connection())
