"""The pytest plugin: options, collection, fixtures. Selects and prints; the engine checks.

The harness is imported only if a server is named, so that other sessions do not wait for it.
"""

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

import pytest

from mcp_touchstone.pytest_plugin.options import ALL, SERVER, declare, given, is_set

if TYPE_CHECKING:
    from mcp_touchstone.api.live_server import Live
    from mcp_touchstone.api.session import Session
    from mcp_touchstone.tap.in_process import ServerInPart
    from mcp_touchstone.target.target import Target

ACTIVE: Final = pytest.StashKey[bool]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options and the ini keys."""
    declare(parser)


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
    """Reject options about a server if none is named: they would have no effect."""
    idle = [name for name in ALL if name not in SERVER and is_set(config, name)]
    if idle:
        raise pytest.UsageError(
            f"--mcp-{idle[0]} has no effect, as no server is checked: add --mcp to check those of "
            "touchstone.toml, --mcp-server COMMAND, --mcp-client COMMAND or --mcp-gateway COMMAND"
        )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that uses our fixtures once for each configured server."""
    if "_mcp_target" in metafunc.fixturenames:
        from mcp_touchstone.pytest_plugin.jobs import jobs  # noqa: PLC0415  (only when it is used)

        try:
            names = [job.name for job in jobs(metafunc.config) if job.settings is None]
        except pytest.UsageError as error:
            pytest.fail(str(error), pytrace=False)
        if any(names):
            metafunc.parametrize("_mcp_target", names, indirect=True, scope="session")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show the conversation of a failing test of the user, and not our own frames."""
    error = call.excinfo.value if call.excinfo else None
    if error is not None and type(error).__module__.startswith("mcp_touchstone."):
        error.__cause__ = error.__context__ = None  # its message has the cause
        error.__traceback__ = _without_ours(error.__traceback__)
        call.excinfo = pytest.ExceptionInfo.from_exception(error)
    report = yield
    session = getattr(item, "funcargs", {}).get("mcp_session")
    if report.failed and session is not None and isinstance(item, pytest.Function):
        from mcp_touchstone.report.text import masked  # noqa: PLC0415  (only when it is used)
        from mcp_touchstone.runtime.secrets import arguments  # noqa: PLC0415  (as above)

        target: Any = item.funcargs["_mcp_target"]
        secrets = {**os.environ, **target.env, **arguments(target.command)}
        text = masked("\n".join(session.conversation()), secrets)
        report.sections.append(("conversation of mcp_session", text))
    return report


def _without_ours(frames: TracebackType | None) -> TracebackType | None:
    """Return a traceback without frames of this package and of what opens its sessions."""
    if frames is None:
        return None
    rest = _without_ours(frames.tb_next)
    path = Path(frames.tb_frame.f_code.co_filename)
    if path.name == "contextlib.py" or Path(__file__).parents[1] in path.parents:
        return rest
    return TracebackType(rest, frames.tb_frame, frames.tb_lasti, frames.tb_lineno)


@pytest.fixture(scope="session")
def _mcp_target(pytestconfig: pytest.Config, request: pytest.FixtureRequest) -> "Target":
    """Return the server; private, so that a project's own ``mcp_server`` does not replace it."""
    from mcp_touchstone.pytest_plugin.jobs import jobs  # noqa: PLC0415  (only when it is used)

    found = [job for job in jobs(pytestconfig) if job.settings is None]
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


@pytest.fixture
def mcp_part() -> Iterator[Callable[..., "ServerInPart"]]:
    """Return what plays a part for a client in this process: ``mcp_part("tools_call").command``.

    With ``http=True`` it has a ``url``, with ``revision=`` it speaks that one only. After the test
    all that the client sent is judged; a broken MUST is an error of the test.
    """
    from mcp_touchstone.report.digest import findings  # noqa: PLC0415  (only when it is used)
    from mcp_touchstone.report.sections import in_full  # noqa: PLC0415  (as above)
    from mcp_touchstone.results.verdict import Outcome  # noqa: PLC0415  (as above)
    from mcp_touchstone.tap.in_process import ClientTest  # noqa: PLC0415  (as above)

    with ClientTest() as test:
        yield test.play
    run = test.run
    if broken := findings(run, Outcome.FAIL):
        pytest.fail("\n\n".join(in_full(run, one) for one in broken), pytrace=False)
