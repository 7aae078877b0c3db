"""Prompts and completions of the reference server."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reference_server import bundle
from reference_server.features import completion
from reference_server.features.text_editor import guides, prompts
from reference_server.features.text_editor.schema import COMMANDS, checked, input_schema
from reference_server.protocol.arguments import problem_with
from reference_server.protocol.revisions import ALL
from reference_server.settings import Settings
from reference_server.surface import Surface
from tests.cases import cases
from tests.reference_client import InProcess, Message, code_of

POSIX_ONLY = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")
INVALID_PARAMS = -32602


def prompting(surface: Surface) -> None:
    bundle.text_editor(surface)
    methods = surface.methods
    methods.request("prompts/list", ALL, surface.later("content.prompts", "list"), cacheable=True)
    methods.request("prompts/get", ALL, surface.later("content.prompts", "get"), slow=True)
    methods.request(
        "completion/complete", ALL, surface.later("features.completion", "complete"), slow=True
    )


def serving(root: Path, **settings: Any) -> InProcess:
    return InProcess(Settings([str(root)], **settings), [prompting])


def text_of(client: InProcess, name: str, **arguments: Any) -> str:
    """Return the only message of a prompt."""
    answer = client.ask("prompts/get", name=name, arguments=arguments)
    (message,) = answer["result"]["messages"]
    return str(message["content"]["text"])


def complete(client: InProcess, typed: str, ref: Message | None = None, **more: Any) -> Message:
    argument = {"name": more.pop("name", "path"), "value": typed}
    answer = client.ask("completion/complete", ref=ref or EDIT, argument=argument, **more)
    found: Message = answer["result"]["completion"]
    return found


EDIT = {"type": "ref/prompt", "name": "edit_file"}
LINES = {"type": "ref/resource", "uri": "workspace:///{+path}?lines={first}-{last}"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    (place / "src" / "deep").mkdir(parents=True)
    (place / ".git").mkdir()
    (place / ".git" / "config").write_bytes(b"canary")
    (place / ".git" / "canary").write_bytes(b"")
    (place / "main.md").write_bytes(b"# Main\n")
    (place / "src" / "main.py").write_bytes("print('ä')\r\nexit()\r\n".encode())
    (place / "src" / "deep" / "a b.txt").write_bytes(b"x")
    (place / "blob").write_bytes(b"\xff\x00")
    (tmp_path / "outside.txt").write_bytes(b"canary")
    return place


@pytest.fixture
def client(root: Path) -> Iterator[InProcess]:
    with serving(root) as client:
        yield client


def test_offered_prompts_depend_on_the_settings(root: Path) -> None:
    for settings, names in (
        ({"read_only": True}, ["text_editor_guide"]),
        ({"text_editor": False}, []),
    ):
        with serving(root, **settings) as client:
            listed = client.ask("prompts/list")["result"]["prompts"]
            assert [one["name"] for one in listed] == names
            if names:
                assert "str_replace" not in text_of(client, "text_editor_guide")
            else:
                assert code_of(client.ask("prompts/get", name="text_editor_guide")) == -32602


def test_guide_examples_are_valid_tool_calls() -> None:
    blocks = guides.EDITOR_GUIDE.split("```json")[1:]
    examples = [json.loads(block.split("```")[0]) for block in blocks]
    for example in examples:
        assert problem_with(example, input_schema(Settings())) is None
        checked(example["command"], example)
    assert [example["command"] for example in examples] == list(COMMANDS)


def test_edit_file_does_not_attach_a_long_file(
    client: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompts, "LONGEST_TEXT", 5)
    assert "view_range" in text_of(client, "edit_file", path="main.md", task="x")


@cases(
    *(".git/", ".git/co", "../", "../out", "/", "//x", "a\0b/", "a\\b/", "missing/x"),
    *("main.md/x", "{{7*7}}", "out/", ".", "x" * 9_000),
)
def test_unreachable_paths_have_no_completions(client: InProcess, root: Path, typed: str) -> None:
    (root / "out").symlink_to(root.parent)
    assert complete(client, typed) == {"values": [], "total": 0, "hasMore": False}
    assert complete(client, f"{root}/ma")["values"] == []


def test_completion_returns_at_most_100_values(client: InProcess, root: Path) -> None:
    for number in range(101):
        (root / f"f{number:03}").touch()
    found = complete(client, "f")
    assert (len(found["values"]), found["total"], found["hasMore"]) == (100, 101, True)
    assert complete(client, "f0")["hasMore"] is False
    for number in range(60):
        (root / "src" / f"f0{number:02}").touch()
    found = complete(client, "f0")
    assert (len(found["values"]), found["total"], found["hasMore"]) == (100, 160, True)
    (root / "f000").unlink()
    values = complete(client, "f0")["values"]
    assert (len(values), values[98:]) == (100, ["f099", "src/f000"])


def test_completion_stops_early_in_a_large_tree(
    client: InProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completion, "MOST_FILES", 2)
    assert complete(client, "") == {"values": ["blob", "main.md"], "hasMore": True}


def test_last_line_is_completed_from_the_chosen_path(client: InProcess) -> None:
    chosen = {"arguments": {"path": "src/main.py"}}
    assert complete(client, "", LINES, name="last", context=chosen)["values"] == ["2"]
    assert complete(client, "3", LINES, name="last", context=chosen)["values"] == []
    assert complete(client, "", LINES, name="last")["values"] == []
    assert complete(client, "", LINES, name="last", context={})["values"] == []
    assert complete(client, "", LINES, name="first")["values"] == ["1"]
    denied = {"arguments": {"path": ".git/config"}}
    assert complete(client, "", LINES, name="last", context=denied)["values"] == []
