"""Every kind of answer obeys the size limits, and error messages give usable advice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from reference_server.settings import Settings
from reference_server.tools.text import LONGEST_TEXT
from tests.cases import cases
from tests.reference_client import InProcess, Message, modern_as
from tests.reference_server.cedarscript.client import NEEDS_LIBRARY, WHY_NOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LINE = "\u0416" * 99 + "\n"
"""A line of a character that no path, schema or message of ours contains."""

TOO_LONG = "one answer holds 500000"
ONE_LINE = "Line 1 alone does not fit into one answer, and no tool here reads a part of a line."


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "fits.txt").write_text(LINE * 5_000, "utf-8")
    (tmp_path / "big.txt").write_text(LINE * 5_001, "utf-8")
    (tmp_path / "line.txt").write_text("\u0416" * 500_001, "utf-8")
    (tmp_path / "fits.png").write_bytes(b"\xff" * 375_000)
    (tmp_path / "big.png").write_bytes(b"\xff" * 375_001)
    (tmp_path / "big.bytes").write_bytes(b"\xff" * 375_001)
    return tmp_path


def test_refusal_repeats_no_long_path(client: InProcess) -> None:
    body = client.found("file_read", path="a" * 100_000)

    assert body["context"]["file"] == "a" * 4096 + "…"


@pytest.fixture
def client(root: Path) -> Iterator[InProcess]:
    with InProcess(Settings([str(root)])) as client:
        yield client


def script(text: str, **more: Any) -> tuple[str, Message]:
    arguments = {"commands": text, **more}
    return "tools/call", {"name": "apply_cedarscript", "arguments": arguments}


def view(path: str, **more: Any) -> tuple[str, Message]:
    arguments = {"command": "view", "path": path, **more}
    return "tools/call", {"name": "text_editor", "arguments": arguments}


def edit(path: str, command: str, **more: Any) -> tuple[str, Message]:
    arguments = {"command": command, "path": path, **more}
    return "tools/call", {"name": "text_editor", "arguments": arguments}


ANSWERS: dict[str, tuple[str, Message]] = {
    "file_read": ("tools/call", {"name": "file_read", "arguments": {"path": "big.txt"}}),
    "file_read_range": (
        "tools/call",
        {
            "name": "file_read_range",
            "arguments": {"path": "big.txt", "startLine": 1, "endLine": 5_001},
        },
    ),
    "view": view("big.txt"),
    "view of lines": view("big.txt", view_range=[1, -1]),
    "str_replace": edit("line.txt", "str_replace", old_str="\u0416" * 500_001, new_str="\u0416"),
    "insert": edit("line.txt", "insert", insert_line=0, new_str="x"),
    "resource": ("resources/read", {"uri": "workspace:///big.txt"}),
    "resource of lines": ("resources/read", {"uri": "workspace:///big.txt?lines=1-5001"}),
    "prompt": ("prompts/get", {"name": "edit_file", "arguments": {"path": "big.txt", "task": "x"}}),
    "preview of a removal": script("RM FILE 'big.txt'"),
    "preview of a change": script("UPDATE FILE 'big.txt' REPLACE WHOLE WITH CONTENT 'x'"),
    "preview of two": script("RM FILE 'fits.txt'\nRM FILE 'big.txt'"),
    "change": script("RM FILE 'big.txt'\nRM FILE 'fits.txt'", dry_run=False),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_no_answer_holds_more_of_a_file_than_the_limit(client: InProcess, kind: str) -> None:
    method, params = ANSWERS[kind]
    if params.get("name") == "apply_cedarscript" and WHY_NOT is not None:
        pytest.skip(f"CEDARScript: {WHY_NOT}")
    heard = client.ask(method, **params)
    found = heard.get("result", {})

    shown = found.get("structuredContent", heard)
    assert json.dumps(shown, ensure_ascii=False).count("\u0416") <= LONGEST_TEXT


def test_confirmation_preview_is_short(root: Path) -> None:
    arguments = {"command": "insert", "path": "line.txt", "insert_line": 1, "new_str": "x"}
    can: Message = {"elicitation": {"form": {}}}
    with InProcess(Settings([str(root)], confirm_writes=True)) as client:
        preview = client.found("text_editor", **arguments)["preview"]
        client.send(modern_as(can, 1, "tools/call", name="text_editor", arguments=arguments))
        asked = client.hear()["result"]["inputRequests"]["confirm"]["params"]["message"]
    assert max(preview.count("\u0416"), asked.count("\u0416")) < 1_000


def test_resource_up_to_the_limit_is_read(client: InProcess, root: Path) -> None:
    (text,) = client.ask("resources/read", uri="workspace:///fits.txt")["result"]["contents"]
    assert len(text["text"]) == LONGEST_TEXT
    (blob,) = client.ask("resources/read", uri="workspace:///fits.png")["result"]["contents"]
    assert len(blob["blob"]) == LONGEST_TEXT
    (part,) = client.ask("resources/read", uri="workspace:///big.txt?lines=2-5001")["result"][
        "contents"
    ]
    assert part["text"] == LINE * 5_000
    assert (root / "big.txt").read_text("utf-8").endswith(part["text"])


@cases(
    ("big.txt", "Read workspace:///big.txt?lines=1-5000 first."),
    ("line.txt", ONE_LINE),
    ("big.txt?lines=1-5001", "Read workspace:///big.txt?lines=1-5000 first."),
    ("line.txt?lines=1-1", ONE_LINE),
    ("big.png", "Only text is read in parts."),
    ("big.bytes", "Only text is read in parts."),
)
def test_too_long_resource_error_gives_advice(client: InProcess, uri: str, advice: str) -> None:
    error = client.ask("resources/read", uri=f"workspace:///{uri}")["error"]
    assert error["code"] == -32602
    assert TOO_LONG in error["message"]
    assert advice in error["message"]
    assert error["data"]["uri"] == f"workspace:///{uri}"


def test_binary_resource_above_the_limit_is_not_listed(client: InProcess) -> None:
    listed = [one["name"] for one in client.ask("resources/list")["result"]["resources"]]
    assert "fits.png" in listed
    assert "big.png" not in listed


@NEEDS_LIBRARY
def test_diff_that_does_not_fit_is_replaced_by_its_size(client: InProcess, root: Path) -> None:
    (root / "small.txt").write_text("x\n")
    script = "RM FILE 'small.txt'\nRM FILE 'big.txt'"
    small, big = client.found("apply_cedarscript", commands=script)["preview"]["diffs"]
    assert "left_out" not in small
    assert small["diff"].endswith("-x\n")
    assert (big["file"], big["change"], big["diff"]) == ("big.txt", "removed", "")
    assert big["left_out"] > LONGEST_TEXT


@cases(
    ("file_read", {"path": "line.txt"}, ONE_LINE),
    ("file_read_range", {"path": "line.txt", "startLine": 1, "endLine": 1}, ONE_LINE),
    ("text_editor", {"command": "view", "path": "line.txt"}, ONE_LINE),
    ("text_editor", {"command": "view", "path": "line.txt", "view_range": [1, 1]}, ONE_LINE),
    ("file_read", {"path": "big.txt"}, "startLine 1 and endLine 5000"),
    ("text_editor", {"command": "view", "path": "big.txt"}, "view_range [1, 4672]"),
)
def test_too_long_read_error_names_a_readable_range_if_there_is_one(
    client: InProcess, tool: str, arguments: Message, advice: str
) -> None:
    error = client.found(tool, **arguments)
    assert error["code"] == "TEXT_TOO_LONG"
    assert any(advice in each for each in error["suggestions"])
    assert bool(error.get("related_tools")) is (tool == "file_read" and advice != ONE_LINE)


def instructions(root: Path, **settings: Any) -> str:
    with InProcess(Settings([str(root)], **settings)) as client:
        found: str = client.ask("server/discover")["result"]["instructions"]
    return found


def test_instructions_omit_disabled_tools(root: Path) -> None:
    assert "text_editor" in instructions(root)
    assert "text_editor" not in instructions(root, text_editor=False)
    reading = instructions(root, read_only=True)
    assert reading.startswith("Reads text")
    for name in ("apply_patch_only", "str_replace", "apply_cedarscript"):
        assert name in instructions(root)
        assert name not in reading
