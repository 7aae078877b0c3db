"""The small client for scripts, agents and other people's tests."""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

import mcp_touchstone
from mcp_touchstone import LaunchError, Session, Tool, ToolResult, connect
from mcp_touchstone.catalog.loader import home
from tests.cases import cases
from tests.conftest import HERE

TOY = [sys.executable, "-S", str(HERE / "toy_server.py"), "{root}"]
REFERENCE = [sys.executable, "-m", "reference_server", "--root", "{root}"]
ENV = {"PYTHONPATH": str(home()), "PYTHONSAFEPATH": "1"}


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with connect(REFERENCE, env=ENV) as found:
        yield found


def test_successful_call_returns_content_and_structure(session: Session) -> None:
    result = session.call_tool("file_read", {"path": "notes/today.txt"})

    assert result.success
    assert result.error is None
    assert "two" in result.text
    assert result.content[0]["type"] == "text"
    assert isinstance(result.structured, dict)


def test_failed_call_returns_an_error_instead_of_raising(session: Session) -> None:
    failed = session.call_tool("file_read", {"path": "no/such/file"})
    unknown = session.call_tool("no-such-tool")

    assert (failed.success, unknown.success) == (False, False)
    assert "no/such/file" in str(failed.error)
    assert failed.content
    assert "no-such-tool" in str(unknown.error)
    assert unknown.reply.code == -32602


def test_tools_are_listed_with_schemas_and_read_only_flag(session: Session) -> None:
    tools = {tool.name: tool for tool in session.tools()}

    assert tools["file_read"].read_only
    assert not tools["file_apply_patch_only"].read_only
    assert "path" in tools["file_read"].input_schema["properties"]
    assert tools["file_read"].output_schema is not None
    assert tools["file_read"].definition["name"] == "file_read"


def test_session_has_server_info_and_revision(session: Session) -> None:
    assert session.server["name"] == "mcp-touchstone-reference"
    assert session.revision == "2025-11-25"


def test_session_exposes_sent_and_received_messages(session: Session) -> None:
    mine = Session(session.connection)
    mine.request("ping")
    mine.notify("notifications/x-nothing")

    assert [message["method"] for message in mine.sent] == ["ping", "notifications/x-nothing"]
    assert [message.get("result") for message in mine.received] == [{}]
    assert mine.quiet(0.01) == []
    assert len(mine.transcript) > len(mine.sent)


@cases("file_read*", ["file_read", "file_read_range"], lambda tool: "read" in tool.name)
def test_only_offered_tools_can_be_called(session: Session, offer: object) -> None:
    mine = Session(session.connection, offer)  # type: ignore[arg-type]
    before = len(mine.sent)

    refused = mine.call_tool("file_apply_patch_only", {})

    assert {tool.name for tool in mine.tools()} == {"file_read", "file_read_range"}
    assert mine.call_tool("file_read", {"path": "README.md"}).success
    assert str(refused.error).startswith("no tool 'file_apply_patch_only' is offered; there are")
    called = [m["params"]["name"] for m in mine.sent[before:] if m["method"] == "tools/call"]
    assert called == ["file_read"]


def test_all_pages_are_listed() -> None:
    with connect([*REFERENCE, "--page-size", "2"], env=ENV) as session:
        assert len(session.tools()) > 2


def test_stateless_revision_can_be_selected() -> None:
    with connect(REFERENCE, env=ENV, revision="2026-07-28") as session:
        assert session.revision == "2026-07-28"
        assert session.server["name"] == "mcp-touchstone-reference"
        assert session.call_tool("file_read", {"path": "README.md"}).success


SLOW = """
import json, sys, time
for line in sys.stdin:
    said = json.loads(line)
    if "id" not in said:
        continue
    result = {"tools": []}
    if said["method"] == "initialize":
        result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "slow", "version": "1"}}
    if said["method"] == "tools/call":
        if said["params"]["name"] == "never":
            continue
        result = {"content": [], "isError": True}
    print(json.dumps({"jsonrpc": "2.0", "id": said["id"], "result": result}), flush=True)
"""


def test_timed_out_call_is_cancelled_and_the_next_call_is_answered() -> None:
    with connect([sys.executable, "-S", "-c", SLOW]) as session:
        result = session.call_tool("never", timeout=0.3)
        again = session.call_tool("other", timeout=60)

        assert not result.success
        assert "no answer within 0.3 s" in str(result.error)
        (cancelled,) = [m for m in session.sent if m["method"] == "notifications/cancelled"]
        assert cancelled["params"]["requestId"] == session.sent[0]["id"]
        assert again.error == "the tool reported an error and said no more"


def test_command_string_is_split_like_a_shell_and_home_is_kept(tmp_path: Path) -> None:
    script = tmp_path / "a server.py"
    shown = SLOW.replace('"name": "slow"', '"name": __import__("os").environ.get("HOME", "")')
    script.write_text(shown, encoding="utf-8")
    command = f"{sys.executable} -S '{script}'"

    with connect(command, env={"HOME": str(tmp_path)}) as session:
        assert session.server["name"] == str(tmp_path)


@cases(
    (["no-such-program-at-all"], "there is no program 'no-such-program-at-all'"),
    (
        [sys.executable, "-S", "-c", "import sys; sys.exit('no key is set')"],
        r"initialize got no result: the server left \(status 1\); its stderr ends: no key",
    ),
)
def test_failed_start_raises_a_one_line_launch_error(command: list[str], said: str) -> None:
    with pytest.raises(LaunchError, match=said) as caught, connect(command):
        pass

    assert "\n" not in str(caught.value)


def test_empty_command_and_unknown_revision_are_refused() -> None:
    with pytest.raises(ValueError, match="the command is empty"), connect(""):
        pass
    with pytest.raises(ValueError, match="revision 'x' is none of"), connect("x", revision="x"):
        pass


def test_package_exports_the_client_names() -> None:
    assert {mcp_touchstone.Session, mcp_touchstone.Tool, ToolResult, Tool} == {
        Session,
        Tool,
        ToolResult,
    }
    with pytest.raises(AttributeError):
        mcp_touchstone.nothing  # noqa: B018


def test_importing_the_package_loads_no_client(pytester: pytest.Pytester) -> None:
    program = textwrap.dedent(
        """
        import sys, mcp_touchstone
        assert "mcp_touchstone.api.session" not in sys.modules
        """
    )
    assert pytester.run(sys.executable, "-c", program).ret == 0
