"""What is tested, as a person would type it."""

from pathlib import Path

from mcp_touchstone.target import Named, Target, reference


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
