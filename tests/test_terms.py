"""What a server claims, with how it is started for that: read, written back, refused by name."""

import re
import tomllib

import pytest

from mcp_touchstone import config
from mcp_touchstone.command_line import Refusing, parser
from mcp_touchstone.target import Target, reference
from mcp_touchstone.terms import Terms, read, shown
from mcp_touchstone.threat import DECLARED, MODES


@pytest.mark.parametrize(
    "text",
    [
        "deny-list",
        'read-only={"args": ["--read-only"]}',
        'size-limit={"args": ["--max", "9"], "env": {"A": "1"}, "limit": 9, "tools": ["read"]}',
    ],
)
def test_a_promise_is_read_and_written_back(text: str) -> None:
    assert shown(*read(text)) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("readonly", "nothing is promised by 'readonly'; did you mean 'read-only'?; known are"),
        ("containment", "nothing is promised by 'containment'"),
        ("read-only=--read-only", """write read-only='{"args": ["--word"]}', or read-only alone"""),
        ("read-only=[]", "write read-only='{"),
        ('read-only={"words": []}', "read-only: unknown key 'words'; the keys are args, env"),
        ('read-only={"args": "-r"}', 'read-only: args is "-r"; write an array of strings'),
        ('size-limit={"limit": true}', "limit is true; write a whole number above 0"),
        ("size-limit", """size-limit: say which: size-limit='{"limit": 10485760}'"""),
    ],
)
def test_a_wrong_promise_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        read(text)


def test_a_configuration_says_it_as_a_list_or_as_a_table() -> None:
    table = """
    command = ["x", "{root}"]
    [promise]
    deny-list = true
    read-only = { args = ["--read-only"] }
    """
    found = config.read(tomllib.loads(table), "t.toml")[""]

    assert parser(Refusing).parse_args(["check", *config.words(found, {"promise"})]).promise == [
        "deny-list", 'read-only={"args": ["--read-only"]}',
    ]  # fmt: skip
    with pytest.raises(config.ConfigError, match="promise is a number; write a string, an array"):
        config.read({"promise": 3}, "t.toml")


def test_the_server_is_started_as_its_promise_says() -> None:
    target = Target(
        command=("serve", "{root}"),
        env={"A": "1"},
        promises=frozenset({"read-only"}),
        terms={"read-only": Terms(args=("--read-only",), env={"B": "2"})},
    )

    under = target.under({"read-only", "containment"})

    assert under.command == ("serve", "{root}", "--read-only")
    assert under.env == {"A": "1", "B": "2"}
    assert target.under(()).command == target.command
    assert target.words()[:4] == [
        "--env", "A=1", "--promise", 'read-only={"args": ["--read-only"], "env": {"B": "2"}}',
    ]  # fmt: skip


def test_the_reference_server_promises_what_is_only_judged_where_it_is_promised() -> None:
    assert reference().promises >= {"deny-list", "patch-only", *MODES}
    assert {*DECLARED} >= reference().promises
    assert reference().words() == []
