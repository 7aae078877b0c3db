"""Promises of a server, with their arguments and variables."""

import re
import tomllib

import pytest

from mcp_touchstone.catalog.threat import DECLARED, MODES
from mcp_touchstone.config import toml_keys
from mcp_touchstone.config.settings import ConfigError
from mcp_touchstone.target.promises import PromiseTerms, read, shown
from mcp_touchstone.target.target import Target, reference
from tests.cases import cases


@cases(
    "deny-list",
    'read-only={"args": ["--read-only"]}',
    'size-limit={"args": ["--max", "9"], "env": {"A": "1"}, "limit": 9, "tools": ["read"]}',
)
def test_promise_is_read_and_written_back(text: str) -> None:
    assert shown(*read(text)) == text


@cases(
    ("readonly", "nothing is promised by 'readonly'; did you mean 'read-only'?; known are"),
    ("containment", "nothing is promised by 'containment'"),
    ("read-only=--read-only", """write read-only='{"args": ["--word"]}', or read-only alone"""),
    ("read-only=[]", "write read-only='{"),
    ('read-only={"words": []}', "read-only: unknown key 'words'; the keys are args, env"),
    ('read-only={"args": "-r"}', 'read-only: args is "-r"; write an array of strings'),
    ('size-limit={"limit": true}', "limit is true; write a whole number above 0"),
    ("size-limit", """size-limit: say which: size-limit='{"limit": 10485760}'"""),
)
def test_wrong_promise_is_refused_with_a_suggestion(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        read(text)


def test_configuration_table_declares_promises() -> None:
    table = """
    command = ["x", "{root}"]
    [promise]
    deny-list = true
    read-only = { args = ["--read-only"] }
    """
    found = toml_keys.read(tomllib.loads(table), "t.toml")[""]

    assert toml_keys.layer(found, "t.toml")["promise"] == {
        "deny-list": PromiseTerms(),
        "read-only": PromiseTerms(args=("--read-only",)),
    }
    with pytest.raises(ConfigError, match="promise is a number; write a string, an array"):
        toml_keys.read({"promise": 3}, "t.toml")


def test_promise_terms_change_command_and_environment() -> None:
    target = Target(
        command=("serve", "{root}"),
        env={"A": "1"},
        promise={"read-only": PromiseTerms(args=("--read-only",), env={"B": "2"})},
    )

    under = target.under({"read-only", "containment"})

    assert under.command == ("serve", "{root}", "--read-only")
    assert under.env == {"A": "1", "B": "2"}
    assert target.under(()).command == target.command
    assert target.words()[:4] == [
        "--env",
        "A=1",
        "--promise",
        'read-only={"args": ["--read-only"], "env": {"B": "2"}}',
    ]


def test_reference_target_declares_optional_promises() -> None:
    assert reference().promise.keys() >= {"deny-list", "patch-only", *MODES}
    assert {*DECLARED} >= reference().promise.keys()
    assert reference().words() == ["--self"]
