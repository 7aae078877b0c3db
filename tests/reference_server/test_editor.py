"""The tool text_editor: effects of its commands, refusals, and undo."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_server.failure import ToolError
from reference_server.features.text_editor import editing, editor
from reference_server.features.text_editor.history import History, Step
from reference_server.settings import Settings
from reference_server.surface import Surface
from reference_server.tools.text import Text
from tests.cases import cases
from tests.reference_client import InProcess, Message

POSIX_ONLY = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")
OPEN_TO_ALL = os.name != "nt" and os.geteuid() == 0

PLAIN = b"one\ntwo\nthree\n"


def only_the_editor(surface: Surface) -> None:
    surface.toolbox.later(lambda: surface.module("features.text_editor.editor").install(surface))


class Desk(InProcess):
    """A client of a server with only the editor."""

    def __init__(self, root: Path, **settings: Any) -> None:
        self.root = root
        super().__init__(Settings([str(root)], **settings), [only_the_editor])

    def tool(self) -> Message:
        (tool,) = self.ask("tools/list")["result"]["tools"]
        return dict(tool)

    def edit(self, command: str, path: str, **more: Any) -> Message:
        found = self.found("text_editor", command=command, path=path, **more)
        jsonschema.validate(found, self.tool()["outputSchema"])
        assert "canary" not in str(found)
        return found

    def do(self, command: str, path: str, **more: Any) -> Message:
        found = self.edit(command, path, **more)
        assert found.get("command") == command, found
        return found

    def refused(self, command: str, path: str, **more: Any) -> Message:
        before = digest(self.root)
        error = self.edit(command, path, **more)
        assert error["message"]
        assert digest(self.root) == before
        assert str(self.root.parent) not in str(error)
        return error


def digest(root: Path) -> dict[str, Any]:
    """Return everything below a root that a write could change."""
    return {
        str(path): (path.lstat().st_mode, path.lstat().st_mtime_ns, path.lstat().st_ino)
        for path in sorted(root.rglob("*"))
        if not path.name.startswith(".mcp-edit-")
    }


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    (place / "sub" / "deep" / "deeper").mkdir(parents=True)
    (place / "a.txt").write_bytes(PLAIN)
    (place / "sub" / "b.txt").write_bytes(b"inside\n")
    (place / "sub" / "deep" / "c.txt").write_bytes(b"")
    (place / ".git").mkdir()
    (place / ".git" / "config").write_bytes(b"canary\n")
    (tmp_path / "outside.txt").write_bytes(b"canary\n")
    return place


@pytest.fixture
def desk(root: Path) -> Iterator[Desk]:
    with Desk(root) as desk:
        yield desk


def test_read_only_editor_offers_only_view(root: Path) -> None:
    with Desk(root, read_only=True) as desk:
        tool = desk.tool()
        properties = tool["inputSchema"]["properties"]
        assert properties["command"]["enum"] == ["view"]
        assert set(properties) == {"command", "path", "cwd", "view_range"}
        assert tool["annotations"]["readOnlyHint"] is True
        assert tool["annotations"]["destructiveHint"] is False
        assert desk.do("view", "a.txt")["first_line"] == 1
        writes: list[tuple[str, str, Message]] = [
            ("create", "new.txt", {"file_text": "x"}),
            ("str_replace", "a.txt", {"old_str": "one", "new_str": "1"}),
            ("insert", "a.txt", {"insert_line": 0, "new_str": "x"}),
            ("undo_edit", "a.txt", {}),
        ]
        for command, path, more in writes:
            desk.refused(command, path, **more)


@cases(
    ("create", {}, "file_text"),
    ("str_replace", {"old_str": "one"}, "new_str"),
    ("str_replace", {"new_str": "1"}, "old_str"),
    ("insert", {"new_str": "x"}, "insert_line"),
    ("insert", {"insert_line": 1}, "new_str"),
    ("insert", {"insert_line": 1, "new_str": "x", "insert_text": "y"}, "insert_text"),
    ("str_replace", {"old_str": "one", "insert_text": "1"}, "new_str"),
    ("view", {"old_str": "one"}, "old_str"),
    ("undo_edit", {"view_range": [1, 2]}, "view_range"),
)
def test_command_refuses_missing_and_foreign_arguments(
    desk: Desk, command: str, more: Message, field: str
) -> None:
    body = desk.refused(command, "a.txt", **more)
    assert (body["code"], body["field"]) == ("INVALID_ARGUMENTS", field)


def test_view_omits_newline_characters_and_bom(desk: Desk) -> None:
    (desk.root / "w.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\rthree")
    found = desk.do("view", "w.txt")
    assert found["text"] == "     1\tone\n     2\ttwo\n     3\tthree"
    assert (found["bom"], found["newline"], found["final_newline"]) == (True, "mixed", False)


def test_view_refuses_binary_files(desk: Desk) -> None:
    (desk.root / "blob").write_bytes(b"\xff\x00\xfe")
    body = desk.refused("view", "blob")
    assert body["code"] == "NOT_TEXT"
    assert "encoding" not in body.get("field", "")


@pytest.mark.parametrize("name", ["utf-32-le", "utf-32-be"])
def test_utf_32_is_named_and_not_edited(desk: Desk, name: str) -> None:
    raw = "\ufeffa\n".encode(name)
    (desk.root / "wide").write_bytes(raw)
    for command, more in (("view", {}), ("insert", {"insert_line": 0, "new_str": "X"})):
        body = desk.refused(command, "wide", **more)
        assert body["code"] == "NOT_TEXT"
        assert "UTF-32" in body["message"]
    assert (desk.root / "wide").read_bytes() == raw


def test_edit_that_would_make_the_file_utf_32_is_refused(desk: Desk) -> None:
    raw = "\ufeffa\n".encode("utf-16-le")
    (desk.root / "wide").write_bytes(raw)
    body = desk.refused("insert", "wide", insert_line=0, new_str="\0")
    assert body["code"] == "NOT_TEXT"
    assert (desk.root / "wide").read_bytes() == raw


@POSIX_ONLY
def test_view_of_a_directory_goes_two_levels_deep(desk: Desk) -> None:
    (desk.root / "out").symlink_to(desk.root.parent)
    (desk.root / "sub" / "up").symlink_to("..")
    found = desk.do("view", ".")
    assert found["entries"] == [
        {"path": "a.txt", "kind": "file", "size": len(PLAIN)},
        {"path": "out", "kind": "link"},
        {"path": "sub", "kind": "directory"},
        {"path": "sub/b.txt", "kind": "file", "size": 7},
        {"path": "sub/deep", "kind": "directory"},
        {"path": "sub/up", "kind": "link"},
    ]
    assert (found["path"], found["truncated"]) == (".", False)
    inner = desk.do("view", "deep/", cwd="sub")
    assert inner["path"] == "sub/deep"
    assert [entry["path"] for entry in inner["entries"]] == ["sub/deep/c.txt", "sub/deep/deeper"]


def test_view_of_a_directory_is_truncated_at_the_limit(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(editor, "MOST_ENTRIES", 2)
    found = desk.do("view", ".")
    assert (len(found["entries"]), found["truncated"]) == (2, True)
    assert desk.do("view", "sub/deep")["truncated"] is False


def test_create_makes_the_file_and_its_directories(desk: Desk) -> None:
    found = desk.do("create", "new/er/f.txt", file_text="a\r\nb\n")
    assert (desk.root / "new/er/f.txt").read_bytes() == b"a\r\nb\n"
    assert (found["path"], found["newline"], found["undo_steps"]) == ("new/er/f.txt", "mixed", 1)
    assert desk.do("create", "n.txt", cwd="sub", file_text="")["path"] == "sub/n.txt"


@cases(
    ("str_replace", {"old_str": "not there", "new_str": "x"}),
    ("insert", {"insert_line": 99, "new_str": "x"}),
    ("undo_edit", {}),
)
def test_write_denial_does_not_reveal_whether_the_file_exists(
    desk: Desk, command: str, more: Message
) -> None:
    (desk.root / "bin").mkdir()
    (desk.root / "bin" / "tool").write_bytes(b"built\n")
    for path in ("bin/tool", "bin/none"):
        assert desk.refused(command, path, **more)["code"] == "WRITE_DENIED"
    assert desk.do("view", "bin/tool")["text"] == "     1\tbuilt"


@cases(
    (b"a\r\nb\r\nc", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc"),
    (b"a\r\nb\r\n", "a\r\nb", "c", b"c\r\n"),
    (b"a\nb\n", "a\r\nb", "c\r\nd", b"c\nd\n"),
    (b"a\rb\rc", "b\n", "x\ny\n", b"a\rx\ry\rc"),
    (b"a\nb\r\nc\rd\n", "b\nc", "x\ny", b"a\nx\r\ny\rd\n"),
    (b"a\nb\r\nc\rd\n", "c", "x\ny", b"a\nb\r\nx\ry\rd\n"),
    (b"abc", "b", "1\r\n2", b"a1\r\n2c"),
    (b"a\r\nb\r\n", "\nb", "", b"a\r\n"),
    (b"\xef\xbb\xbfa\r\n", "a", "b", b"\xef\xbb\xbfb\r\n"),
    *(
        ("\ufeffä\n".encode(each), "ä", "ö\nü", "\ufeffö\nü\n".encode(each))
        for each in ("utf-16-le", "utf-16-be")
    ),
    (b"form\x0cfeed\xe2\x80\xa8\n", "feed", "x", b"form\x0cx\xe2\x80\xa8\n"),
)
def test_str_replace_keeps_newlines_and_encoding(
    desk: Desk, text: bytes, old: str, new: str, result: bytes
) -> None:
    (desk.root / "f.txt").write_bytes(text)
    desk.do("str_replace", "f.txt", old_str=old, new_str=new)
    assert (desk.root / "f.txt").read_bytes() == result


@cases(
    ("     2\ttwo\n     3\tthree\n", 2, "line numbers"),
    ("2\ttwo", 2, "line numbers"),
    ("one \n\ttwo", 1, "white space"),
    ("t wo", 2, "white space"),
    ("two\nfour\n", 2, "first line"),
    ("nowhere", None, "not occur"),
    (" \n ", None, "white space only"),
)
def test_no_match_error_hints_at_the_cause(
    desk: Desk, old: str, line: int | None, hint: str
) -> None:
    body = desk.refused("str_replace", "a.txt", old_str=old, new_str="x")
    assert (body["code"], body["context"].get("line")) == ("NO_MATCH", line)
    assert body["context"]["file"] == "a.txt"
    assert hint in body["message"]


def test_ambiguous_match_error_names_the_lines(desk: Desk) -> None:
    (desk.root / "f.txt").write_bytes(b"x\ny\nx\n")
    body = desk.refused("str_replace", "f.txt", old_str="x", new_str="z")
    assert (body["code"], body["context"]) == ("AMBIGUOUS", {"file": "f.txt", "line": 1})
    assert "2 times, at the lines 1, 3;" in body["message"]
    (desk.root / "f.txt").write_bytes(b"aaa")
    body = desk.refused("str_replace", "f.txt", old_str="aa", new_str="z")
    assert body["code"] == "AMBIGUOUS"
    assert "2 times, at the line 1;" in body["message"]


def test_ambiguous_match_error_names_at_most_twenty_lines(desk: Desk) -> None:
    (desk.root / "f.txt").write_bytes(b"x\n" * 30)
    message = desk.refused("str_replace", "f.txt", old_str="x", new_str="z")["message"]
    assert "more than 20 times" in message
    assert " 20;" in message
    assert "21" not in message


@given(
    st.lists(st.sampled_from(["a", "b", "\n", "\r\n", "\r"]), max_size=20).map("".join),
    st.lists(st.sampled_from(["X", "\n", "\r\n"]), max_size=4).map("".join),
    st.data(),
)
def test_replacement_keeps_every_other_character(text: str, new: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    old = text[start:end]
    if not old or text[start - 1 : start + 1] == "\r\n" or text[end - 1 : end + 1] == "\r\n":
        return
    try:
        edited = editing.replace(text, old, new)
    except ToolError as error:
        assert error.code in {"AMBIGUOUS", "NO_CHANGE"}  # noqa: PT017 - an Edited is fine too
    else:
        assert edited.text.startswith(text[:start])
        assert edited.text.endswith(text[end:])
        assert len(edited.text) >= len(text) - len(old)


@cases(
    ("a\nb\n", 0, "x\n", "x\na\nb\n", (1, 1)),
    ("a\nb\n", 1, "x", "a\nx\nb\n", (2, 2)),
    ("a\nb\n", 2, "x\ny\n", "a\nb\nx\ny\n", (3, 4)),
    ("a\nb\n", 2, "x", "a\nb\nx\n", (3, 3)),
    ("a\nb", 2, "x", "a\nb\nx", (3, 3)),
    ("a\nb", 2, "x\n", "a\nb\nx\n", (3, 3)),
    ("a\r\nb\r\n", 1, "x\ny", "a\r\nx\r\ny\r\nb\r\n", (2, 3)),
    ("a\r\nb", 2, "x\ny", "a\r\nb\r\nx\r\ny", (3, 4)),
    ("a\rb\r", 0, "x", "x\ra\rb\r", (1, 1)),
    ("a\nb\r\nc\n", 2, "x", "a\nb\r\nx\r\nc\n", (3, 3)),
    ("", 0, "x", "x", (1, 1)),
    ("", 0, "x\r\ny\r\n", "x\r\ny\r\n", (1, 2)),
    ("a", 1, "x\r\ny", "a\r\nx\r\ny", (2, 3)),
    ("a", 0, "x", "x\na", (1, 1)),
    ("a\n", 1, "\n", "a\n\n", (2, 2)),
)
def test_insert_adds_whole_lines_after_a_line(
    text: str, line: int, new: str, result: str, lines: tuple[int, int]
) -> None:
    edited = editing.insert(Text(text.encode()), line, new)
    assert edited.text == result
    assert (edited.first_line, edited.last_line) == lines


@pytest.mark.parametrize("more", [{}, {"new_str": "four"}])
def test_insert_takes_its_lines_as_insert_text_too(desk: Desk, more: Message) -> None:
    desk.do("insert", "a.txt", insert_line=3, insert_text="four", **more)
    assert (desk.root / "a.txt").read_bytes() == PLAIN + b"four\n"


def test_a_long_snippet_is_cut() -> None:
    text = Text(b"x\n" * 5_000)
    shown = editing.snippet(text, 1, 5_000)
    assert len(shown) < 5_000
    assert shown.endswith("…")


@POSIX_ONLY
def test_undo_follows_no_link(desk: Desk) -> None:
    desk.do("create", "n.txt", file_text="canary\n")
    (desk.root / "n.txt").unlink()
    (desk.root / "n.txt").symlink_to("../outside.txt")
    assert desk.refused("undo_edit", "n.txt")["code"] == "LINK"
    assert (desk.root.parent / "outside.txt").read_bytes() == b"canary\n"


@POSIX_ONLY
@pytest.mark.skipif(OPEN_TO_ALL, reason="root may write everything")
def test_undo_refuses_a_write_protected_file(desk: Desk) -> None:
    desk.do("str_replace", "a.txt", old_str="one", new_str="1")
    (desk.root / "a.txt").chmod(0o444)
    assert desk.refused("undo_edit", "a.txt")["code"] == "NOT_PERMITTED"


def step(place: str, size: int | None) -> Step:
    return Step(place, None if size is None else b"x" * size, "")


def test_history_forgets_the_oldest_edits_first() -> None:
    history = History(most_edits=3, most_bytes=10)
    for size in (1, 2, None, 3):
        history.record(step("f", size))
    assert history.count("f") == 3
    history.record(step("g", 6))
    assert (history.count("f"), history.count("g")) == (2, 1)
    assert history.last("f") == step("f", 3)
    history.record(step("g", 4))
    assert (history.count("f"), history.count("g")) == (0, 2)


def test_edit_too_large_for_the_history_discards_earlier_edits_of_the_file() -> None:
    history = History(most_edits=3, most_bytes=10)
    history.record(step("f", 1))
    history.record(step("g", 1))
    history.record(step("f", 11))
    assert (history.last("f"), history.count("g")) == (None, 1)


def test_edit_that_needs_confirmation_is_written_only_with_the_token(root: Path) -> None:
    with Desk(root, confirm_writes=True) as desk:
        assert "confirm_token" in desk.tool()["inputSchema"]["properties"]
        desk.do("create", "n.txt", file_text="a\n")
        edits: list[tuple[str, Message, bytes | None]] = [
            ("str_replace", {"old_str": "a", "new_str": "b"}, b"b\n"),
            ("insert", {"insert_line": 1, "new_str": "c"}, b"b\nc\n"),
            ("undo_edit", {}, b"b\n"),
            ("undo_edit", {}, b"a\n"),
            ("undo_edit", {}, None),
        ]
        for command, more, result in edits:
            before = (root / "n.txt").read_bytes()
            waiting = desk.edit(command, "n.txt", **more)
            assert waiting["confirmed"] is False
            assert (root / "n.txt").read_bytes() == before
            desk.do(command, "n.txt", **more, confirm_token=waiting["confirm_token"])
            after = (root / "n.txt").read_bytes() if (root / "n.txt").exists() else None
            assert after == result


def test_history_is_thread_safe() -> None:
    history = History(most_edits=50)

    def work(place: str) -> None:
        for _ in range(200):
            history.record(step(place, 1))
            last = history.last(place)
            if last:
                history.forget(last)

    threads = [threading.Thread(target=work, args=(str(number),)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [history.count(str(number)) for number in range(8)] == [0] * 8
