"""What is tested, as a person would type it."""

import os
from pathlib import Path

from mcp_touchstone.target import ROOT, Named, Target, reference


def test_a_server_is_given_by_its_command_and_all_that_goes_with_it() -> None:
    target = Target(
        command=("server", "{root}"),
        env={"A": "1"},
        cwd="{root}",
        named=Named(calls=(("ask", {"a": 1}), ("tell", None)), resources=("x:y",)),
    )

    assert target.words() == [
        *("--env", "A=1", "--cwd", "{root}", "--call", 'ask={"a": 1}', "--call", "tell"),
        *("--resource", "x:y", "--", "server", "{root}"),
    ]


def test_of_the_bundled_server_only_what_the_user_added_is_given() -> None:
    assert reference().words() == []
    target = reference(env={"A": "1"}, named=Named(calls=(("file.read", {"path": "a"}),)))
    assert target.words() == ["--env", "A=1", "--call", 'file.read={"path": "a"}']


def test_the_bundled_server_is_used_such_that_it_asks() -> None:
    named = reference(named=Named(calls=reference().named.calls[:1])).named

    assert [name for name, _ in named.calls] == ["explain_error", "text_editor"]
    assert "--confirm-writes" in reference().command_in(Path("/a"))


def test_a_server_is_told_of_folders_by_its_words_and_variables(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    target = Target(
        command=("server", f"--allow={one}", ROOT, str(tmp_path / "none")),
        env={"ALLOWED": f"{two}{os.pathsep}relative"},
        cwd=str(tmp_path),
    )

    assert target.folders_in(tmp_path) == (tmp_path, one, tmp_path, two)
