"""Two roots: returned paths name their root, and files of the other root do not change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from reference_server.settings import Settings
from reference_server.workspace.paths import names_of
from tests.reference_client import InProcess, Message, ask, modern, opening
from tests.reference_server.cedarscript.client import NEEDS_LIBRARY, tree

if TYPE_CHECKING:
    from pathlib import Path

SESSION = "2025-11-25"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Make two roots with files of the same names."""
    for name in ("one", "two"):
        (tmp_path / name / "lib").mkdir(parents=True)
        (tmp_path / name / "same.txt").write_text("same\n")
        (tmp_path / name / "lib" / "m.py").write_text(f"name = {name!r}\n")
    (tmp_path / "two" / "only.txt").write_text("two\n")
    return tmp_path


def serving(place: Path, **settings: Any) -> InProcess:
    return InProcess(Settings([str(place / "one"), str(place / "two")], **settings))


def edit(client: InProcess, command: str, path: str, **more: Any) -> Message:
    return client.found("text_editor", command=command, path=path, **more)


def test_undo_removes_the_file_created_in_the_second_root(place: Path) -> None:
    (place / "two" / "same.txt").unlink()
    with serving(place) as client:
        made = edit(client, "create", str(place / "two" / "same.txt"), file_text="same\n")
        assert edit(client, "undo_edit", "same.txt")["code"] == "NOTHING_TO_UNDO"
        assert (place / "one" / "same.txt").read_text() == "same\n"
        assert edit(client, "undo_edit", made["path"])["removed"] is True
    assert not (place / "two" / "same.txt").exists()
    assert (place / "one" / "same.txt").read_text() == "same\n"


def test_path_in_an_answer_reads_the_same_file(place: Path) -> None:
    with serving(place) as client:
        for root in ("one", "two"):
            for path in (f"{place}/{root}/lib/m.py", f"{root}/lib/m.py"):
                found = client.found("file_read", path=path)
                assert found["path"] == f"{root}/lib/m.py"
                assert found["text"] == f"name = {root!r}\n"
                assert client.found("file_read", path=found["path"]) == found
        inside = client.found("file_read", path="m.py", cwd="two/lib")
        assert inside["path"] == "two/lib/m.py"


def test_view_of_dot_lists_every_root(place: Path) -> None:
    with serving(place) as client:
        found = edit(client, "view", ".")
        shown = [entry["path"] for entry in found["entries"]]
        assert found["path"] == "."
        assert shown == [
            *("one", "one/lib", "one/same.txt"),
            *("two", "two/lib", "two/only.txt", "two/same.txt"),
        ]
        for entry in found["entries"]:
            again = edit(client, "view", entry["path"])
            assert again["path"] == entry["path"]
            assert ("entries" in again) == (entry["kind"] == "directory")


def test_client_roots_hide_the_other_root(place: Path) -> None:
    with serving(place) as client:
        client.send(*opening(SESSION, {"roots": {}}))
        client.hear()
        uri = (place / "two").as_uri()
        client.send(
            {"jsonrpc": "2.0", "id": client.hear()["id"], "result": {"roots": [{"uri": uri}]}}
        )
        view = {"name": "text_editor", "arguments": {"command": "view", "path": "."}}
        client.send(ask(SESSION, 1, "tools/call", **view))
        found = client.hear()["result"]["structuredContent"]
        assert {entry["path"].partition("/")[0] for entry in found["entries"]} == {"two"}


def test_resources_of_both_roots_have_distinct_uris(place: Path) -> None:
    with serving(place) as client:
        client.send(modern(1, "resources/list"))
        listed = client.hear()["result"]["resources"]
        assert [one["name"] for one in listed] == [
            *("one/lib/m.py", "one/same.txt"),
            *("two/lib/m.py", "two/only.txt", "two/same.txt"),
        ]
        for one in listed:
            client.send(modern(2, "resources/read", uri=one["uri"]))
            (contents,) = client.hear()["result"]["contents"]
            assert contents["text"] == (place / one["name"]).read_text()
        client.send(modern(3, "resources/read", uri="workspace:///two"))
        assert client.hear()["error"]["code"] == -32602
        assert client.found("workspace_digest")["files"] == len(listed)


def test_completed_paths_name_their_root(place: Path) -> None:
    ref = {"type": "ref/resource", "uri": "workspace:///{+path}"}
    expected = {
        "": ["one/lib/m.py", "one/same.txt", "two/lib/m.py", "two/only.txt", "two/same.txt"],
        "t": ["two/lib/m.py", "two/only.txt", "two/same.txt"],
        "two/o": ["two/only.txt"],
        "lib/": ["one/lib/m.py", "two/lib/m.py"],
    }
    with serving(place) as client:
        for typed, values in expected.items():
            argument = {"name": "path", "value": typed}
            client.send(modern(1, "completion/complete", ref=ref, argument=argument))
            assert client.hear()["result"]["completion"]["values"] == values


def test_errors_name_the_root(place: Path) -> None:
    (place / "two" / "blob").write_bytes(b"\xff")
    with serving(place, allow=["*.py", "blob"]) as client:
        for path, code in (
            ("two/.git/x", "DENIED"),
            ("two/same.txt", "NOT_ALLOWED"),
            ("two/blob", "NOT_TEXT"),
            ("two/none.py", "NOT_FOUND"),
        ):
            error = client.found("file_read", path=path)
            assert (error["code"], error["context"]["file"]) == (code, path)


@pytest.mark.parametrize("header", ["two/same.txt", "same.txt"])
def test_diff_header_may_omit_the_root(place: Path, header: str) -> None:
    diff = f"--- a/{header}\n+++ b/{header}\n@@ -1 +1 @@\n-same\n+other\n"
    with serving(place) as client:
        key = client.found("file_read", path="two/same.txt")["sha256"]
        made = client.found(
            "file_apply_patch_only", path="two/same.txt", expectedHash=key, diffText=diff
        )
    assert made["path"] == "two/same.txt"
    assert (place / "one" / "same.txt").read_text() == "same\n"
    assert (place / "two" / "same.txt").read_text() == "other\n"


@NEEDS_LIBRARY
def test_script_preview_and_diff_name_the_root(place: Path) -> None:
    script = "UPDATE FILE 'two/same.txt' REPLACE LINE 'same' WITH CONTENT 'other'"
    with serving(place) as client:
        shown = client.found("apply_cedarscript", commands=script)
        assert shown["preview"]["affected_files"] == ["two/same.txt"]
        made = client.found("apply_cedarscript", commands=script, dry_run=False)
    assert made["diffs"][0]["diff"].startswith("--- a/two/same.txt\n+++ b/two/same.txt\n")
    assert (place / "one" / "same.txt").read_text() == "same\n"
    assert (place / "two" / "same.txt").read_text() == "other\n"


@NEEDS_LIBRARY
def test_error_for_a_script_across_roots_names_the_command(place: Path) -> None:
    script = "RM FILE 'one/same.txt'\nRM FILE 'two/same.txt'"
    before = tree(place)
    with serving(place) as client:
        error = client.found("apply_cedarscript", commands=script, dry_run=False)
    assert (error["code"], error["field"]) == ("SPANS_ROOTS", "commands")
    assert error["context"] == {"file": "two/same.txt", "script_line": 2, "command_index": 2}
    assert tree(place) == before


@pytest.mark.parametrize("method", ["initialize", "server/discover"])
def test_instructions_explain_the_root_prefixes(place: Path, method: str) -> None:
    with serving(place) as client:
        client.send(modern(1, method) if method != "initialize" else opening(SESSION)[0])
        instructions = client.hear()["result"]["instructions"]
    assert "There are 2 roots, named one and two. A path begins with" in instructions
    assert str(place) not in instructions


def test_root_names_are_unique_and_printable() -> None:
    assert names_of(["/a/src", "/b/src/", "/b/src-2", "/c/src", "/"]) == (
        *("src", "src-2", "src-2-2", "src-3", "root"),
    )
    assert names_of(["/a/b\udcff", "/a/b\n", "/a/b\\c"]) == ("root", "root-2", "root-3")
