"""The pytest plugin: options, collection, fixtures. Selects and prints; the engine checks.

The harness is imported only if a server is named, so that other sessions do not wait for it.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

import pytest

from mcp_touchstone.pytest_plugin.options import (
    FILES,
    FLAGS,
    GOLDEN,
    LISTS,
    SERVER,
    SINGLE,
    given,
)

if TYPE_CHECKING:
    from mcp_touchstone.api.live_server import Live
    from mcp_touchstone.api.session import Session
    from mcp_touchstone.target.target import Target

ACTIVE: Final = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options and the ini keys."""
    group = parser.getgroup("mcp", "MCP servers (mcp-touchstone)")
    group.addoption(
        "--mcp-server",
        metavar="COMMAND",
        help="check this MCP server beside the tests; {root} is a throw-away folder, {python} the "
        "interpreter that runs pytest",
    )
    parser.addini("mcp_server", "command of the MCP server to check beside the tests", default=None)
    group.addoption(
        "--mcp",
        action="store_true",
        help="check the servers of touchstone.toml or [tool.mcp-touchstone] beside the tests",
    )
    for name, text in FILES.items():
        group.addoption(f"--mcp-{name}", metavar="FILE", help=text)
        parser.addini(f"mcp_{name}", text, default=None)
    for name, (metavar, text) in LISTS.items():
        group.addoption(f"--mcp-{name}", action="append", default=[], metavar=metavar, help=text)
        kind: Literal["linelist", "args"] = "linelist" if metavar.endswith("{...}") else "args"
        parser.addini(f"mcp_{name.replace('-', '_')}", text, type=kind)
    for name, (metavar, text) in SINGLE.items():
        group.addoption(f"--mcp-{name}", metavar=metavar, help=text)
        parser.addini(f"mcp_{name}", text, default=None)
    for name, text in FLAGS.items():
        group.addoption(f"--mcp-{name}", action="store_true", help=text)
        parser.addini(f"mcp_{name.replace('-', '_')}", text, type="bool", default=False)
    group.addoption("--mcp-no-baseline", action="store_true", help="ignore known failures")
    group.addoption("--mcp-golden", metavar="DIR", help=GOLDEN)
    parser.addini("mcp_golden", GOLDEN, default=None)
    group.addoption(
        "--mcp-golden-update",
        action="store_true",
        help="record the answers that differ, in the folder of --mcp-golden",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the suite if a server is named; otherwise reject options that need a server."""
    config.addinivalue_line("markers", "mcp: a scenario of mcp-touchstone")
    named = any(given(config, name) for name in SERVER)
    config.stash[ACTIVE] = bool(config.getoption("--mcp") or named) and not config.option.help
    if config.stash[ACTIVE]:
        from mcp_touchstone.pytest_plugin.collect import Suite  # noqa: PLC0415  (only when it is used)

        config.pluginmanager.register(Suite(config), "mcp_touchstone_suite")
    elif not config.option.help:
        _refuse_idle_options(config)


def _refuse_idle_options(config: pytest.Config) -> None:
    """Reject options about a server if none is named: they would have no effect.

    Raises:
        pytest.UsageError: an option is rejected; the message names it.
    """
    names = [*LISTS, *SINGLE, *FLAGS, "baseline", "no-baseline", "golden", "golden-update"]
    idle = [name for name in names if config.getoption(f"--mcp-{name}") not in (None, [], False)]
    if idle:
        raise pytest.UsageError(
            f"--mcp-{idle[0]} has no effect, as no server is checked: add --mcp to check those of "
            "touchstone.toml, or --mcp-server COMMAND"
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that uses our fixtures once for each configured server."""
    if "_mcp_target" in metafunc.fixturenames:
        from mcp_touchstone.pytest_plugin.jobs import jobs  # noqa: PLC0415  (only when it is used)

        try:
            names = [job.name for job in jobs(metafunc.config)]
        except pytest.UsageError as error:
            pytest.fail(str(error), pytrace=False)
        if any(names):
            metafunc.parametrize("_mcp_target", names, indirect=True, scope="session")


@pytest.fixture(scope="session")
def _mcp_target(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> "Target":
    """Return the server; private, so that a project's own ``mcp_server`` does not replace it."""
    from mcp_touchstone.pytest_plugin.jobs import jobs  # noqa: PLC0415  (only when it is used)

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
def mcp_server(_mcp_target: "Target") -> "Target":
    """Return the server that an option, an ini key or a configuration names.

    If several are configured, the test runs once for each.
    """
    return _mcp_target


@pytest.fixture(scope="session")
def _mcp_live(_mcp_target: "Target") -> Iterator["Live"]:
    from mcp_touchstone.api.live_server import Live  # noqa: PLC0415  (only when it is used)

    with Live(_mcp_target) as live:
        yield live


@pytest.fixture
def mcp_session(_mcp_live: "Live") -> "Session":
    """Return an open session with the server: call_tool, tools, request, notify, transcript.

    One process serves the whole pytest session. If it ends, the next test gets a new one.
    """
    from mcp_touchstone.api.session import Session  # noqa: PLC0415  (only when it is used)

    return Session(_mcp_live.connection())


@pytest.fixture(scope="session")
def mcp_shared_session(_mcp_live: "Live") -> "Session":
    """Return the same as ``mcp_session``, for fixtures of module, class or session scope.

    It keeps its process: it is not reopened after the server has ended.
    """
    from mcp_touchstone.api.session import Session  # noqa: PLC0415  (only when it is used)

    return Session(_mcp_live.connection())
