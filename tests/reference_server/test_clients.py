"""The official Python clients use every feature of the reference server.

The tours (``tests/sdks``) run where their SDK is: in this environment, or under the interpreter
that MCP_TOUCHSTONE_SDK1 or MCP_TOUCHSTONE_SDK2 names. The SDKs validate every result with
their models and every ``structuredContent`` with the schema of the tool.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from base64 import b64decode
from importlib import metadata
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from reference_server.features.cedarscript.available import reason_against
from tests.reference_client import CHECKOUT
from tests.sdks.session import HANDSHAKES, MODERN
from tests.sdks.tour import APP, FILES

if TYPE_CHECKING:
    from pathlib import Path

Facts = dict[str, Any]

SESSION = HANDSHAKES[-1]
NAME = "mcp-touchstone-reference"
BRIDGE = [sys.executable, "-m", "mcp_touchstone", "bridge"]
"""Serves a stdio server over HTTP: the same tour is made through it."""
WITH_CEDARSCRIPT = reason_against() is None
TOOLS = [
    *("file_read", "file_read_range", "file_apply_patch_only", "text_editor"),
    *(("parse_cedarscript", "apply_cedarscript") if WITH_CEDARSCRIPT else ()),
    *("explain_error", "list_capabilities", "workspace_digest"),
]
RESOURCES = [path for path in sorted(FILES) if not path.startswith(".git/")]
REFUSED = {"stale": "HASH_MISMATCH", "denied": "DENIED", "mistyped": "INVALID_ARGUMENTS"}


class Tour(NamedTuple):
    """The results of a tour.

    Attributes:
        sdk: Version of the SDK.
        place: The directory of the roots.
        complaints: Messages that the SDK logged at the level of a warning or above.
        facts: The results of each stop.
        stderr: The lines that the servers wrote to stderr.
    """

    sdk: str
    revision: str
    place: Path
    complaints: list[str]
    facts: Facts
    stderr: list[Facts]


def interpreter(major: int) -> str | None:
    """Return an interpreter with the SDK, or None."""
    try:
        here = metadata.version("mcp").startswith(f"{major}.")
    except metadata.PackageNotFoundError:
        here = False
    return os.environ.get(f"MCP_TOUCHSTONE_SDK{major}", sys.executable if here else None)


def sdk_param(major: int, revision: str, transport: str) -> Any:
    """Return a parameter of the fixture, skipped if its SDK is missing."""
    reason = f"mcp {major}.x is not installed, and MCP_TOUCHSTONE_SDK{major} names no interpreter"
    marks = [] if interpreter(major) else [pytest.mark.skip(reason=reason)]
    if transport == "http" and "MCP_TOUCHSTONE_REFEREE" not in os.environ:
        # The client of 2.3 does not always come back from a session it closes over HTTP.
        marks.append(pytest.mark.skip(reason="MCP_TOUCHSTONE_REFEREE is not set"))
    named = f"sdk{major}-{revision}-{transport}"
    return pytest.param((major, revision, transport), marks=marks, id=named)


@pytest.fixture(
    scope="module",
    params=[
        sdk_param(major, revision, transport)
        for transport in ("stdio", "http")
        for major, revision in ((1, SESSION), (2, SESSION), (2, MODERN))
    ],
)
def tour(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tour:
    major, revision, transport = request.param
    python = interpreter(major)
    assert python
    place = tmp_path_factory.mktemp("tour")
    wanted = {
        "command": [sys.executable, "-m", "reference_server", "--log-level", "info"],
        "place": str(place),
        "revision": revision,
        "skip": ["tasks"] if revision == MODERN else [],
        "bridge": BRIDGE if transport == "http" else [],
    }
    # The server is started in the same directory, where its package is.
    made = subprocess.run(
        [python, "-m", f"tests.sdks.sdk{major}", json.dumps(wanted)],
        capture_output=True,
        timeout=120,
        cwd=CHECKOUT,
        check=False,
    )
    assert made.returncode == 0, made.stderr.decode()
    facts = json.loads(made.stdout)
    stderr = [json.loads(line) for line in (place / "stderr.txt").read_bytes().splitlines()]
    assert facts["sdk"].startswith(f"{major}.")
    return Tour(facts.pop("sdk"), revision, place, facts.pop("complaints"), facts, stderr)


def ok(result: Facts) -> Facts:
    """Return the structured content of a call that must succeed."""
    assert not result.get("isError"), result
    found = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == found
    assert isinstance(found, dict)
    return found


def error(result: Facts) -> str:
    """Return the error code of a call that must fail."""
    assert result["isError"], result
    code = result["structuredContent"]["code"]
    assert isinstance(code, str)
    return code


def test_sdk_logs_no_complaint(tour: Tour) -> None:
    assert tour.complaints == []
    assert [stop["faults"] for stop in tour.facts.values() if stop.get("faults")] == []


def test_server_logs_no_error_and_ends_with_its_input(tour: Tour) -> None:
    assert [line for line in tour.stderr if line["level"] == "ERROR"] == []
    endings = [line["why"] for line in tour.stderr if line["event"] == "ending"]
    assert set(endings) == {"end of input"}


def test_client_receives_server_info_and_capabilities(tour: Tour) -> None:
    opening = tour.facts["tools"]["opening"]
    assert opening["protocolVersion"] == tour.revision
    assert opening["serverInfo"]["name"] == NAME
    assert opening["instructions"].startswith("Reads and edits text files")
    declared = {"tools", "resources", "prompts", "completions"}
    # The one is deprecated in 2026-07-28, the others are not in its core.
    only_in_sessions = {"logging", "tasks"} if tour.revision == SESSION else set()
    assert set(opening["capabilities"]) == declared | only_in_sessions


def test_every_tool_works(tour: Tour) -> None:
    facts = tour.facts["tools"]
    assert [tool["name"] for tool in facts["listed"]] == TOOLS
    done = {label: call for label, call in facts["calls"].items() if label not in REFUSED}
    assert {call["tool"] for call in done.values()} == set(TOOLS)
    found = {label: ok(call) for label, call in done.items()}
    assert found["read"]["text"].encode() == APP
    assert found["range"]["text"].encode() == APP[: APP.index(b"\n\n\n") + 1]
    assert found["patch"]["before"]["sha256"] == found["read"]["sha256"]
    assert found["view"]["sha256"] == found["patch"]["after"]["sha256"]
    assert "docs" in [entry["path"] for entry in found["directory"]["entries"]]
    assert found["undo_edit"]["sha256"] == found["str_replace"]["sha256"]
    assert found["capabilities"]["available"] is WITH_CEDARSCRIPT
    assert found["explain"]["code"] == "LINE_NOT_FOUND"
    assert found["digest"]["files"] == 20
    root = tour.place / "tools"
    assert (root / "src/app.py").read_bytes() == APP.replace(b'"Hello " + name', b'f"Hello {name}"')
    assert (root / "src/new.py").read_bytes() == b"a = 1\nb\n"
    assert (root / "src/dos.txt").read_bytes() == (
        FILES["src/dos.txt"].replace(b"two", b"2") if WITH_CEDARSCRIPT else FILES["src/dos.txt"]
    )


def test_errors_of_tools_reach_the_client_as_results(tour: Tour) -> None:
    facts = tour.facts["tools"]
    assert {label: error(facts["calls"][label]) for label in REFUSED} == REFUSED
    assert facts["unknown"]["code"] == -32602


def test_client_model_is_asked_only_in_a_session(tour: Tour) -> None:
    facts = tour.facts["tools"]
    model = ok(facts["calls"]["explain"])["model"]
    if tour.revision == MODERN:  # deprecated there; only --deprecated lets this server ask
        assert (facts["asked"], model["asked"]) == ([], False)
        return
    assert [one["method"] for one in facts["asked"]] == ["sampling/createMessage"]
    assert model["asked"] is True
    assert (model["name"], model["words"]) == ("a model", "Look at line two.")


def test_every_resource_is_read(tour: Tour) -> None:
    facts = tour.facts["reading"]
    assert [one["name"] for one in facts["listed"]] == RESOURCES
    for one in facts["listed"]:
        (contents,) = facts["read"][one["uri"]]
        data = FILES[one["name"]]
        assert contents["uri"] == one["uri"]
        assert contents["mimeType"] == one["mimeType"]
        assert one["size"] == len(data)
        if "blob" in contents:
            assert b64decode(contents["blob"]) == data
        else:
            assert contents["text"] == data.decode("utf-8-sig")


def test_a_read_only_server_offers_nothing_that_writes(tour: Tour) -> None:
    facts = tour.facts["read_only"]
    assert facts["tools"] == [name for name in TOOLS if name != "file_apply_patch_only"]
    assert error(facts["create"]) == "INVALID_ARGUMENTS"
    assert facts["patch"]["code"] == -32602
    assert facts["prompts"] == ["text_editor_guide"]
    assert not (tour.place / "read_only" / "new.txt").exists()


def test_progress_increases_to_the_total(tour: Tour) -> None:
    progress = tour.facts["hearing"]["progress"]
    done = [one[0] for one in progress]
    assert len(done) > 2
    assert done == sorted(set(done))
    assert progress[-1] == [20, 20, None]
    assert progress[0] == [0, 20, "many/00.txt"]


def test_call_is_cancelled(tour: Tour) -> None:
    cancelled = tour.facts["hearing"]["cancelled"]
    assert cancelled.pop("progress before") > 1
    assert cancelled == {"answered": False, "progress after": 0, "alive": True}
    statuses = {one["status"] for one in tour.stderr if one.get("tool") == "workspace_digest"}
    assert statuses == {"success", "cancelled"}


def test_consent_is_asked_for_in_a_form(tour: Tour) -> None:
    facts = tour.facts["asking"]
    ok(facts["calls"]["yes"]["result"])
    assert facts["calls"]["yes"]["file"].encode() == APP.replace(b"world", b"everybody")
    ok(facts["calls"]["nothing destroyed"]["result"])
    assert [one["method"] for one in facts["asked"]] == ["elicitation/create"] * 4
    params = facts["asked"][0]["params"]
    assert "everybody" in params["message"]
    assert params["requestedSchema"]["required"] == ["confirm"]


def test_session_roots_restrict_access(tour: Tour) -> None:
    facts = tour.facts["roots"]
    if tour.revision == MODERN:  # deprecated there; this server does not ask
        assert (facts["first"], facts["second"], facts["asked"]) == (RESOURCES, RESOURCES, [])
        ok(facts["outside"])
        return
    assert facts["asked"] == ["roots/list", "roots/list"]
    assert facts["first"] == [path for path in RESOURCES if path.startswith("src/")]
    assert error(facts["outside"]) == "OUTSIDE_CLIENT_ROOTS"
    assert facts["second"] == [path for path in RESOURCES if path.startswith("docs/")]


def test_subscriber_is_notified_of_changes(tour: Tour) -> None:
    facts = tour.facts["watching"]
    assert facts["before"][0]["text"].encode() == FILES["src/dos.txt"]
    assert facts["notified of a change inside"]
    assert facts["after"][0]["text"].startswith("first\r\n")
    assert facts["notified of a change outside"]
    assert facts["notified of a new file"]
    assert facts["in the list"]
    assert facts["notified after the end"] == []


def test_a_tool_is_called_as_a_task(tour: Tour) -> None:
    if tour.revision == MODERN:  # it has none in its core
        assert not any("execution" in tool for tool in tour.facts["tools"]["listed"])
        return
    facts = tour.facts["tasks"]
    tasks = [facts["ended"]["taskId"], facts["cancelled"]["taskId"]]
    assert facts["created"]["task"]["status"] == facts["working"]["status"] == "working"
    assert facts["created"]["task"]["taskId"] == tasks[0]
    assert ok(facts["result"]) == facts["plain"]
    assert facts["ended"]["status"] == "completed"
    assert facts["cancelled"]["status"] == "cancelled"
    assert [one["taskId"] for one in facts["listed"]["tasks"]] == tasks
    assert facts["result of cancelled"]["code"] == -32602
    assert facts["not a task"]["code"] == -32601
    if tour.sdk.startswith("1."):  # the other one passes over what it calls deliberately absent
        statuses = [(one["params"]["taskId"], one["params"]["status"]) for one in facts["notified"]]
        assert statuses == list(zip(tasks, ("completed", "cancelled"), strict=True))


def test_every_revision_of_the_era_works(tour: Tour) -> None:
    facts = tour.facts["revisions"]
    assert list(facts) == ([MODERN] if tour.revision == MODERN else list(HANDSHAKES))
    for revision, found in facts.items():
        assert found["opening"]["protocolVersion"] == revision
        assert [tool["name"] for tool in found["tools"]] == TOOLS
        assert ("outputSchema" in found["tools"][0]) == (revision >= "2025-06-18")
        text = json.loads(found["call"]["content"][0]["text"])["text"]
        assert text == found["contents"]["contents"][0]["text"] == APP.decode()
        assert found["resources"] == len(RESOURCES)
        assert found["prompt"]["messages"]
        assert found["completion"]["completion"]["values"] == ["src/app.py"]
        assert found["alive"]
        assert found["faults"] == []
