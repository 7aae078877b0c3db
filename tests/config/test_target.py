"""Targets as command line words."""

import os
from pathlib import Path

from mcp_touchstone.target.target import ROOT, Target, reference


def test_target_words_contain_command_and_options() -> None:
    target = Target(
        command=("server", "{root}"),
        env={"A": "1"},
        cwd="{root}",
        call=(("ask", {"a": 1}), ("tell", None)),
        resource=("x:y",),
    )

    assert target.words() == [
        *("--env", "A=1", "--cwd", "{root}", "--call", 'ask={"a": 1}', "--call", "tell"),
        *("--resource", "x:y", "--", "server", "{root}"),
    ]


def test_reference_target_words_contain_only_user_additions() -> None:
    assert reference().words() == ["--self"]
    target = reference(env={"A": "1"}, call=(("file_read", {"path": "a"}),))
    assert target.words() == ["--env", "A=1", "--call", 'file_read={"path": "a"}', "--self"]


def test_reference_target_calls_tools_that_ask_the_client() -> None:
    calls = reference(call=reference().call[:1]).call

    assert [name for name, _ in calls] == ["explain_error", "text_editor"]
    assert "--confirm-writes" in reference().command_in(Path("/a"))


def test_target_finds_folders_in_its_command_and_variables(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    target = Target(
        command=("server", f"--allow={one}", ROOT, str(tmp_path / "none")),
        env={"ALLOWED": f"{two}{os.pathsep}relative"},
        cwd=str(tmp_path),
    )

    assert target.folders_in(tmp_path) == (tmp_path, one, tmp_path, two)


def test_words_that_are_too_long_for_a_path_name_no_file_and_no_folder() -> None:
    long = f"/{'x' * 300}"
    target = Target(command=(long, "-c", long), env={"TOKEN": long})

    assert target.inside().command == (long, "-c", long)
    assert target.folders_in(Path("root")) == (Path.cwd(),)
