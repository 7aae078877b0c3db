"""Content that the log of the reference server never has."""

import json
import random
import re
import string
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_server.operation import redact
from tests.cases import cases
from tests.reference_client import Spawned, modern, notification
from tests.reference_log import call, logged, writer

LETTERS = string.ascii_letters + string.digits


RANDOM = random.Random(7)  # noqa: S311 - made here so that no secret-like text lies in the repository


def some(count: int, letters: str = LETTERS) -> str:
    return "".join(RANDOM.choices(letters, k=count))


SECRETS = {
    "provider key": f"sk-{some(40)}",
    "code host": f"ghp_{some(36)}",
    "fine-grained": f"github_pat_{some(82)}",
    "cloud": f"AKIA{some(16, string.ascii_uppercase + string.digits)}",
    "signed token": f"eyJ{some(30)}.eyJ{some(60)}.{some(43)}",
    "private key": f"-----BEGIN {'PRIVATE'} KEY-----\n{some(64)}\n{some(64)}\n",
    "chat": f"xoxb-{some(48)}",
    "header": f"Bearer {some(20)}",
    "connection": f"postgres://u:{some(12)}@h/db",
    "assignment": f"password={some(12)}",
    "hex": some(64, "0123456789abcdef"),
    "bare": some(40),
}


def parts_of(secret: str) -> list[str]:
    """Return the forbidden parts of a secret: any six characters of its random parts."""
    runs = re.findall(r"[A-Za-z0-9]{12,}", secret)
    return [run[at : at + 6] for run in runs for at in range(0, len(run) - 6, 3)]


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("style", ["json", "text"])
def test_log_contains_no_secrets_or_file_contents(kind: str, style: str, tmp_path: Path) -> None:
    secret = SECRETS[kind]
    (tmp_path / "held.txt").write_text(secret)
    options = ("--log-level=debug", f"--log-format={style}")
    with writer(tmp_path, *options) as client:
        client.send(
            call(1, "write", path="new.txt", file_text=secret),
            call(2, "file_read", path="held.txt"),
            call(3, "file_read", path=secret),
            call(4, "file_read", path="held.txt", cwd=secret),
            call(5, "file_read", **{secret: secret}),
            call(6, secret, path=secret),
            call(7, "write", path="new.txt", file_text=[secret], mode=secret),
            modern(8, secret),
            modern(9, "tools/list", cursor=secret),
            notification("notifications/cancelled", {"requestId": 9, "reason": secret}),
            notification(secret),
            secret.replace("\n", "").encode(),
        )
        shown = logged(client)

    assert "tool_called" in shown
    assert parts_of(secret)
    assert [part for part in parts_of(secret) if part in shown] == []


def test_log_contains_no_secrets_of_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = some(30)
    monkeypatch.setenv("CEDARSCRIPT_API_KEY", secret)
    monkeypatch.setenv("GITHUB_TOKEN", secret)
    with Spawned("--root", str(tmp_path), "--log-level=debug") as client:
        client.send(modern(1, "server/discover"), call(2, "file_read", path="none"))
        shown = logged(client)
    assert secret not in shown
    assert str(tmp_path) not in shown


@cases(
    "a.txt",
    "src/mcp_touchstone/report/terminal.py",
    "tests/reference_server/test_redaction.py",
    "docs/2025-11-25/server-tools.md",
    "Reports 2025/Übersicht.txt",
    "app/components/ApplicationNavigationBar.tsx",
)
def test_ordinary_paths_are_not_redacted(path: str) -> None:
    assert redact.text(path) == path


def test_path_segment_that_looks_like_a_key_is_redacted() -> None:
    shown = redact.text(f"keys/{some(40)}/a.txt")
    assert shown == "keys/[40 characters]/a.txt"


@cases(
    ("path must be a string", "path must be a string"),
    ("unknown tool 'file.raed'", "unknown tool 'file.raed'"),
    ("unknown tool 'x y'", "unknown tool [3 characters]"),
    ('unknown tool "it\'s"', "unknown tool [4 characters]"),
)
def test_quoted_plain_words_are_kept_and_others_redacted(message: str, shown: str) -> None:
    assert redact.sentence(message) == shown


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(
    given_arguments=st.dictionaries(st.sampled_from(["path", "mode", "n", "text"]), JSON_VALUES),
    unknown=st.dictionaries(st.text().map(lambda name: "?" + name), JSON_VALUES),
)
def test_logged_arguments_hide_free_text_and_unknown_names(
    given_arguments: dict[str, Any], unknown: dict[str, Any]
) -> None:
    properties = {"path": {}, "mode": {"enum": ["a"]}, "n": {}, "text": {}}
    shown = redact.arguments({**given_arguments, **unknown}, {"properties": properties})

    json.dumps(shown, allow_nan=False)
    assert shown.pop("unknown", 0) == len(unknown)
    assert shown.keys() == given_arguments.keys()
    for name in ("text", "mode"):
        if isinstance(value := given_arguments.get(name), str) and value != "a":
            assert shown[name] == f"[{len(value)} characters]"
