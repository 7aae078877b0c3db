"""Prompts and completions of the reference server."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

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
from tests.reference_client import MODERN, InProcess, Message, ask, code_of

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


class Talk:
    """One server with prompts and completions, spoken to in one revision."""

    def __init__(self, root: Path, revision: str = MODERN, **settings: Any) -> None:
        self.revision = revision
        self.root = root
        self.client = InProcess(Settings([str(root)], **settings), [prompting])
        self._last = 0

    def __enter__(self) -> Self:
        self.client.open(self.revision)
        return self

    def __exit__(self, *_exc: object) -> None:
        self.client.leave()

    def ask(self, method: str, **params: Any) -> Message:
        self._last += 1
        self.client.send(ask(self.revision, self._last, method, **params))
        answer: Message = self.client.hear()
        assert answer["id"] == self._last
        assert "canary" not in str(answer)
        assert str(self.root) not in str(answer)
        return answer

    def prompts(self) -> list[Message]:
        found: list[Message] = self.ask("prompts/list")["result"]["prompts"]
        return found

    def messages(self, name: str, **arguments: Any) -> list[Message]:
        answer = self.ask("prompts/get", name=name, arguments=arguments)
        found: list[Message] = answer["result"]["messages"]
        assert {message["role"] for message in found} == {"user"}
        return [message["content"] for message in found]

    def complete(self, typed: str, ref: Message | None = None, **more: Any) -> Message:
        argument = {"name": more.pop("name", "path"), "value": typed}
        answer = self.ask("completion/complete", ref=ref or EDIT, argument=argument, **more)
        found: Message = answer["result"]["completion"]
        return found

    def refused(self, method: str, **params: Any) -> str:
        answer = self.ask(method, **params)
        assert code_of(answer) == INVALID_PARAMS
        return str(answer["error"]["message"])


EDIT = {"type": "ref/prompt", "name": "edit_file"}
FILE = {"type": "ref/resource", "uri": "workspace:///{+path}"}
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
def talk(root: Path) -> Iterator[Talk]:
    with Talk(root) as talk:
        yield talk


def test_offered_prompts_depend_on_the_settings(root: Path) -> None:
    with Talk(root, read_only=True) as talk:
        assert [one["name"] for one in talk.prompts()] == ["text_editor_guide"]
        (content,) = talk.messages("text_editor_guide")
        assert "str_replace" not in content["text"]
    with Talk(root, text_editor=False) as talk:
        assert talk.prompts() == []
        talk.refused("prompts/get", name="text_editor_guide")


def test_guide_examples_are_valid_tool_calls() -> None:
    blocks = guides.EDITOR_GUIDE.split("```json")[1:]
    examples = [json.loads(block.split("```")[0]) for block in blocks]
    for example in examples:
        assert problem_with(example, input_schema(Settings())) is None
        checked(example["command"], example)
    assert [example["command"] for example in examples] == list(COMMANDS)


def test_edit_file_attachment_has_an_encoded_uri(talk: Talk) -> None:
    _, attached = talk.messages("edit_file", path="src/deep/a b.txt", task="x")
    assert attached["resource"]["uri"] == "workspace:///src/deep/a%20b.txt"
    assert attached["resource"]["mimeType"] == "text/plain"


def test_edit_file_does_not_attach_a_long_file(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompts, "LONGEST_TEXT", 5)
    (content,) = talk.messages("edit_file", path="main.md", task="x")
    assert "view_range" in content["text"]


@POSIX_ONLY
@cases("../outside.txt", "out/outside.txt", ".git/config", "missing", "src", "blob", "", "a\0b")
def test_edit_file_refuses_paths_outside_the_policy(talk: Talk, path: str) -> None:
    (talk.root / "out").symlink_to(talk.root.parent)
    talk.refused("prompts/get", name="edit_file", arguments={"path": path, "task": "x"})


@cases(
    *(".git/", ".git/co", "../", "../out", "/", "//x", "a\0b/", "a\\b/", "missing/x"),
    *("main.md/x", "{{7*7}}", "out/", ".", "x" * 9_000),
)
def test_unreachable_paths_have_no_completions(talk: Talk, typed: str) -> None:
    (talk.root / "out").symlink_to(talk.root.parent)
    assert talk.complete(typed) == {"values": [], "total": 0, "hasMore": False}
    root = str(talk.root)
    assert talk.complete(f"{root}/ma")["values"] == []


def test_completion_returns_at_most_100_values(talk: Talk) -> None:
    for number in range(101):
        (talk.root / f"f{number:03}").touch()
    found = talk.complete("f")
    assert (len(found["values"]), found["total"], found["hasMore"]) == (100, 101, True)
    assert talk.complete("f0")["hasMore"] is False
    for number in range(60):
        (talk.root / "src" / f"f0{number:02}").touch()
    found = talk.complete("f0")
    assert (len(found["values"]), found["total"], found["hasMore"]) == (100, 160, True)
    (talk.root / "f000").unlink()
    values = talk.complete("f0")["values"]
    assert (len(values), values[98:]) == (100, ["f099", "src/f000"])


def test_completion_stops_early_in_a_large_tree(
    talk: Talk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(completion, "MOST_FILES", 2)
    assert talk.complete("") == {"values": ["blob", "main.md"], "hasMore": True}


def test_last_line_is_completed_from_the_chosen_path(talk: Talk) -> None:
    chosen = {"arguments": {"path": "src/main.py"}}
    assert talk.complete("", LINES, name="last", context=chosen)["values"] == ["2"]
    assert talk.complete("3", LINES, name="last", context=chosen)["values"] == []
    assert talk.complete("", LINES, name="last")["values"] == []
    assert talk.complete("", LINES, name="last", context={})["values"] == []
    assert talk.complete("", LINES, name="first")["values"] == ["1"]
    denied = {"arguments": {"path": ".git/config"}}
    assert talk.complete("", LINES, name="last", context=denied)["values"] == []
