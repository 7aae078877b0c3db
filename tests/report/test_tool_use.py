"""Tools that are not judged are named: called, failed, not annotated read-only, not reached."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.bindings.argument_roles import ArgumentRole, ArgumentSlot
from mcp_touchstone.bindings.binding import Binding, Bindings, Operation, Style
from mcp_touchstone.connection.server_profile import Example, ServerProfile, Spoken
from mcp_touchstone.results.tool_use import SHOWN, FailedTool, ToolUse, tool_use
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.wire.reply import Reply
from tests.commands import ran, run_here
from tests.conftest import HERE
from tests.discovery.test_probing import probed

OLD, NEW, MODERN = "2024-11-05", "2025-11-25", "2026-07-28"
WORKS_ON = """
import json, sys
def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
tool = {"name": "work", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params", {})
    if method == "tools/call":
        token = params.get("_meta", {}).get("progressToken")
        if token is not None:
            about = {"progressToken": token, "progress": 1}
            say({"method": "notifications/progress", "params": about})
    elif method == "initialize":
        about = {"capabilities": {"tools": {}}, "serverInfo": {"name": "w", "version": "1"}}
        say({"id": message["id"], "result": {"protocolVersion": "2025-11-25", **about}})
    elif "id" in message:
        say({"id": message["id"], "result": {"tools": [tool]} if method == "tools/list" else {}})
"""
"""A server whose tool reports progress and does not end."""

LEFT_OUT = "not called, as a quick run calls only those of --call"
PATH = ArgumentSlot(("path",), ArgumentRole.PATH, needed=True)
TOY = [sys.executable, "-S", str(HERE / "toy_server.py"), "{root}"]
KINDS = ("json", "html", "markdown")


def profile(**revisions: dict[str, Any]) -> ServerProfile:
    """Return a profile with a working tool, and in each revision the given notes of others."""
    made = dict[str, Spoken]()
    for revision, notes in revisions.items():
        tools = [
            {"name": name, "annotations": {"readOnlyHint": hint}}
            for name, hint in (("get", True), ("list", True), ("late", True), ("put", False))
        ]
        spoken = Spoken(Reply(1), {"tools": tools})
        made[revision.strip("_").replace("_", "-")] = spoken
        spoken.decided.add("callable-tool", Example("tools/call", {"name": "get"}))
        spoken.decided.notes.update(notes)
        spoken.decided.settle(["callable-tool"])
    return ServerProfile(Pace(1.0), made)


def test_each_tool_is_in_one_group() -> None:
    found = tool_use(profile(_2025_11_25={"tool list": "error -32602 no"}))

    assert found.called == ("get",)
    assert [(tool.name, tool.reason) for tool in found.failed] == [("list", "error -32602 no")]
    assert (found.left_out, found.unreached) == (("put",), ("late",))


def test_no_arguments_are_asked_for_a_tool_whose_own_output_is_invalid() -> None:
    invalid = FailedTool("get", "isError: MCP error -32602: Output validation error: no")

    assert "to call one" not in dict(ToolUse(failed=(invalid,)).rows())
    assert "to call one" in dict(ToolUse(failed=(invalid, FailedTool("put", "isError: no"))).rows())


def test_a_tool_that_fails_in_one_revision_is_named_with_it() -> None:
    found = tool_use(profile(_2024_11_05={}, _2025_11_25={"tool list": "error 1"}))
    assert found.failed[0].revisions == ()

    works = profile(_2024_11_05={}, _2025_11_25={"tool list": "error 1"})
    works.spoken[OLD].decided.add("callable-tool", Example("tools/call", {"name": "list"}))
    assert tool_use(works).failed[0].revisions == (NEW,)
    assert "list" not in tool_use(works).called


def test_a_quick_run_names_the_tools_that_it_does_not_call() -> None:
    quick = profile(_2025_11_25={})
    quick = replace(quick, pace=Pace(1.0, hurried=True))
    assert tool_use(quick).called == ("get",)
    assert tool_use(quick).hurried == ("list", "late", "put")

    quick.spoken[NEW].decided.tried.clear()
    (row,) = tool_use(quick).rows()
    assert row == (LEFT_OUT, "get, list, late, put")


def test_a_quick_run_calls_the_tools_of_call_and_says_so(tmp_path: Path) -> None:
    words = ["--quick", "--call", "echo", "--json", str(tmp_path / "r.json")]
    done = run_here("check", *words, "--", *TOY, "echo", "write")
    said = " ".join(done.stdout.split())

    assert f"called: echo {LEFT_OUT}: write" in said
    assert said.endswith(f"(--quick: {MODERN} only, no tool called but those of --call)")
    document = json.loads((tmp_path / "r.json").read_text("utf-8"))
    judged = {verdict["clause"] for verdict in document["verdicts"]}
    assert "tools-call-result-shape" in judged
    assert document["summary"]["quick"].startswith("--quick: ")


def test_a_run_with_attacks_says_which_tools_were_attacked() -> None:
    way = Binding(
        Operation.READ, "get", {"path": "{root}/a", "limit": 1}, (PATH,), (Style.ABSOLUTE,)
    )
    known = profile(_2025_11_25={})
    known.discovered.bindings = Bindings((way,), unbound=("list",))
    found = tool_use(known, {"get", "put"})

    assert (found.called, found.left_out, found.unreached) == ((), (), ())
    assert dict(found.rows()) == {
        "attacked": "get(path), put",
        "not attacked": "list (it was called with paths, and no effect on files was seen); "
        "late (no argument looks like the path of a file; --bindings names one)",
    }
    assert ToolUse.read(found.document()) == found


@pytest.mark.skipif(sys.platform == "win32", reason="links")
def test_a_security_run_lists_no_attacked_tool_as_not_called() -> None:
    words = ["--suite", "security", "--select", "traversal-dotdot"]
    said = " ".join(run_here("check", *words, "--self").stdout.split())

    assert "attacked: file_apply_patch_only(" in said
    assert "file_read(cwd, path)" in said
    assert "not annotated read-only" not in said
    assert "explain_error, list_capabilities (no argument looks like the path" in said


def test_an_error_is_shortened_and_escaped() -> None:
    (tool,) = tool_use(profile(_2025_11_25={"tool list": "a\n\x1b[2J" + "x" * 999})).failed

    assert tool.error.startswith("a \\x1b[2Jxx")
    assert len(tool.error) < 200


def test_many_tools_are_counted() -> None:
    rows = dict(ToolUse(called=tuple(f"tool{n}" for n in range(SHOWN + 3))).rows())

    assert list(rows) == ["called"]
    assert rows["called"].endswith(f"tool{SHOWN - 1}, 3 more")


def test_nothing_is_said_if_no_tool_was_probed() -> None:
    untouched = profile(_2025_11_25={})
    untouched.spoken[NEW].decided.tried.clear()

    assert tool_use(untouched) == ToolUse()
    assert list(ToolUse().rows()) == []


def test_probes_tell_errors_silence_and_refused_calls_apart() -> None:
    with probed("echo", "picky", "write", words={"callable-tool"}, on=(NEW,)) as found:
        use = tool_use(found.profile)
        assert use.called == ("echo",)
        assert [f"{tool.name} ({tool.reason})" for tool in use.failed] == [
            "picky (isError: picky does not do that)"
        ]
        assert use.left_out == ("write",)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the screen and the reports of one check."""
    folder = tmp_path_factory.mktemp("reports")
    asked = [f"--report={kind}:{folder / kind}" for kind in KINDS]
    words = ["--select", "tools-call-result-shape", "--revision", NEW, *asked]
    done = run_here("check", *words, "--", *TOY, "echo", "picky", "write")
    return {"screen": done.stdout, **{k: (folder / k).read_text("utf-8") for k in KINDS}}


@pytest.mark.parametrize("kind", ["screen", "html", "markdown"])
def test_each_report_names_the_tools_that_were_not_judged(
    judged: dict[str, str], kind: str
) -> None:
    text = " ".join(judged[kind].split())

    for words in ("picky does not do that", "not annotated read-only", "write", "--call NAME="):
        assert words in text


def test_json_has_the_tools(judged: dict[str, str]) -> None:
    assert json.loads(judged["json"])["tools"] == {
        "called": ["echo"],
        "failed": [{"name": "picky", "error": "isError: picky does not do that", "revisions": []}],
        "not_read_only": ["write"],
        "not_reached": [],
        "not_called_quick": [],
    }


def test_a_reason_is_shown_once_behind_its_tools() -> None:
    alike = FailedTool("map", "no key"), FailedTool("pin", "no key", (NEW,))
    use = ToolUse(failed=(*alike, FailedTool("pie", "no key"), FailedTool("bar", "offline")))

    assert dict(use.rows())["no call succeeded"] == (
        f"map, pie (no key); pin (no key, in {NEW}); bar (offline)"
    )


def test_pytest_names_them_with_its_own_option(tmp_path: Path) -> None:
    server = " ".join([*TOY, "echo", "picky"])
    words = ["--mcp-select=tools-call-result-shape", f"--mcp-revision={NEW}"]
    pytest_of_ours = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]
    done = ran([*pytest_of_ours, f"--mcp-server={server}", *words], cwd=tmp_path)

    assert "no call succeeded: picky (isError: picky does not do that)" in done.stdout
    assert "--mcp-call NAME=" in done.stdout


@pytest.mark.parametrize(("words", "status"), [((), 0), (("--strict",), 1)])
def test_strict_counts_a_tool_that_never_answers(words: tuple[str, ...], status: int) -> None:
    command = ["check", "-q", "--timeout", "2", "--select", "tools-call-answered", *words]

    assert run_here(*command, "--revision", NEW, "--", *TOY, "hang").returncode == status


def test_a_call_that_reports_progress_is_not_seen_and_the_reason_says_so(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    words = ["-q", "--timeout", "2", "--select", "tools-call-answered", "--json", str(report)]
    run_here("check", *words, "--revision", NEW, "--", sys.executable, "-S", "-c", WORKS_ON)

    assert "reports progress, or asks the client" in report.read_text(encoding="utf-8")
