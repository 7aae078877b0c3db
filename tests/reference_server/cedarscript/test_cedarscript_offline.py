"""The CEDARScript tools without the library: scanning, explaining, and a missing library."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reference_server.failure import ToolError
from reference_server.features.cedarscript import available, engine, explain
from reference_server.features.cedarscript.indentation import DEFAULT, Indentation, find_unit
from reference_server.features.cedarscript.scan import ScriptError, find_blocks
from reference_server.features.cedarscript.tree_cache import TreeCache
from reference_server.features.cedarscript.unified import unified
from reference_server.features.patching.diffs import apply
from tests.cases import cases
from tests.reference_client import CHECKOUT
from tests.reference_server.cedarscript.client import WHY_NOT, Client

pytestmark = pytest.mark.slow

if TYPE_CHECKING:
    from pathlib import Path

ALWAYS = ["explain_error", "list_capabilities"]


def test_library_is_available_in_tox_where_supported() -> None:
    if "TOX_ENV_NAME" not in os.environ or sys.version_info >= (3, 13):
        pytest.skip("the extra is a matter of whoever runs these tests by hand")
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        pytest.skip("no build of the parser")
    assert WHY_NOT is None


def blocks(content: str) -> list[tuple[int, str]]:
    return [(block.line, block.text) for block in find_blocks(content)]


@cases(
    ("RM FILE 'a'", [(1, "RM FILE 'a'")]),
    ("RM FILE 'a'\r\nRM FILE 'b'", [(1, "RM FILE 'a'\nRM FILE 'b'")]),
    ("Look:\n```CEDARScript\nX\n```\n", [(3, "X\n")]),
    ("```cedarscript\r\nX\r\n```", [(2, "X\n")]),
    ("````CedarScript\nX '\n```\n'\n````", [(2, "X '\n```\n'\n")]),
    ("~~~cedarscript \nX\n~~~  \n", [(2, "X\n")]),
    ("```python\n```cedarscript\n```\n```cedarscript\nX\n```", [(5, "X\n")]),
    ("```cedarscript\nA\n```\n```cedarscript\nB\n```", [(2, "A\n"), (5, "B\n")]),
    ("```cedarscript\nRM FILE r'''\n```\n'''\n```", [(2, "RM FILE r'''\n```\n'''\n")]),
    ("```cedarscript\n/*\n```\n*/ X\n```", [(2, "/*\n```\n*/ X\n")]),
    ("```cedarscript\n# don't\nX\n```", [(2, "# don't\nX\n")]),
    ("```cedarscript\n```", [(2, "")]),
    ("-- a\nRM FILE '-- b' -- c", [(1, "#  a\nRM FILE '-- b' #  c")]),
    ("RM FILE 'a'--b", [(1, "RM FILE 'a'--b")]),
    ("Nothing.\n<NOCEDARSCRIPT/>\n", []),
    ("It's prose.", [(1, "It's prose.")]),
)
def test_script_blocks_are_found(content: str, found: list[tuple[int, str]]) -> None:
    assert blocks(content) == found


@cases(
    ("```cedarscript\nRM FILE 'a'\n", "UNCLOSED_FENCE", 1, 1),
    ("x\n```cedarscript\nRM FILE '''\n```\n'''", "UNCLOSED_FENCE", 2, 1),
    ("```js\n\n```cedarscript\nRM FILE 'a'", "UNCLOSED_FENCE", 1, 1),
    ("RM FILE 'a", "UNCLOSED_STRING", 1, 9),
    ("\n\nRM FILE 'a\nb'", "UNCLOSED_STRING", 3, 9),
    ('RM FILE r"""a""', "UNCLOSED_STRING", 1, 9),
    ("RM FILE 'a' /*", "UNCLOSED_COMMENT", 1, 13),
    (r"RM FILE 'a\nb'", "UNSUPPORTED_ESCAPE", 1, 11),
    (r"RM FILE 'a\\tb'", "UNSUPPORTED_ESCAPE", 1, 11),
    ('CREATE FILE \'a\' WITH CONTENT """\n\\d\n"""', "UNSUPPORTED_ESCAPE", 2, 1),
    ('CREATE FILE \'a\' WITH CONTENT """\n \\"\\"\\"\n"""', "UNSUPPORTED_ESCAPE", 2, 2),
    ("RM FILE 'a\0'", "CONTROL_CHARACTER", 1, 11),
    ("RM FILE 'a'\rRM", "CONTROL_CHARACTER", 1, 12),
)
def test_lexical_error_reports_line_and_column(
    content: str, code: str, line: int, column: int
) -> None:
    with pytest.raises(ScriptError) as caught:
        find_blocks(content)
    assert caught.value.code == code
    assert caught.value.context == {"script_line": line, "script_column": column}


@pytest.mark.parametrize("content", ["", " \n\t"])
def test_empty_script_is_refused(content: str) -> None:
    with pytest.raises(ToolError) as caught:
        find_blocks(content)
    assert caught.value.code == "EMPTY_SCRIPT"


def test_valid_escapes_are_accepted() -> None:
    taken = r"""UPDATE FILE 'a\'b' REPLACE LINE "\t\"x\"" WITH CONTENT '''
print("\n\\")
'''"""
    assert blocks(taken) == [(1, taken)]


@settings(deadline=None)
@given(st.text(alphabet="`'\"r\\ \n#-/*aé~cedarscriptUPDATE", max_size=80))
def test_any_text_is_parsed_or_refused(content: str) -> None:
    try:
        found = find_blocks(content)
    except ToolError as error:
        assert re.fullmatch(r"[A-Z_]+", error.code)  # noqa: PT017 - either outcome is fine
    else:
        lines = content.split("\n")
        assert all(1 <= block.line <= len(lines) + 1 for block in found)


def test_repetitive_text_is_scanned_in_time() -> None:
    for piece in ("'", '"', "`", "```\n", "/*", "\\", "r'", '"""', "\n", "-- ", "#", "'''x"):
        content = "UPDATE " + piece * (200_000 // len(piece))
        try:
            find_blocks(content)
        except ToolError:
            continue


@cases(
    ("", DEFAULT),
    ("a\nb", DEFAULT),
    ("def f():\n  return", "  "),
    ("class A:\n\tdef f():\n\t\tpass", "\t"),
    ("class A:\n   def f():\n      pass", "   "),
    ("x = f(\n        a,\n)\nif x:\n    y", "    "),
    ("a:\n  - b\n  - c:\n      d", "  "),
)
def test_indentation_unit_is_detected_from_the_file(text: str, unit: str) -> None:
    assert find_unit(text.split("\n")) == unit


def test_only_lines_with_relative_prefix_are_indented() -> None:
    content = "\n@0:if x:\n  @1:y\nz\n@-1:\n\n@-1:w\n"
    made = Indentation("   ").apply_relative_indents(content, 6)
    assert made == ["      if x:", "         y", "z", "", "", "   w"]


@cases(
    ("a\n", "a\n", ""),
    (None, "a\n", "--- /dev/null\n+++ b/p\n@@ -0,0 +1 @@\n+a\n"),
    ("a\n", None, "--- a/p\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"),
    (
        "a\nb",
        "a\nb\n",
        "--- a/p\n+++ b/p\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+b\n",
    ),
    ("a\fb\u2028c\n", "x\n", "--- a/p\n+++ b/p\n@@ -1 +1 @@\n-a\fb\u2028c\n+x\n"),
)
def test_diffs_are_unified(before: str | None, after: str | None, diff: str) -> None:
    assert unified(before, after, "p") == diff


LINES = st.lists(st.sampled_from("abc"), min_size=1, max_size=30).map("\n".join)


@given(before=LINES, after=LINES)
def test_diff_applied_to_the_old_text_gives_the_new_one(before: str, after: str) -> None:
    assume(before != after)
    assert apply(before, unified(before, after, "p"), ("p",)).text == after


def test_error_advice_table_is_complete() -> None:
    path = CHECKOUT / "reference_server" / "features" / "cedarscript" / "advice.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    codes = [row["code"] for row in table["rules"]]
    assert len(codes) == len(set(codes))
    for rule in explain.rules().values():
        assert rule.explanation.endswith(".")
        assert rule.steps
        assert "$" not in "".join(rule.steps)
        assert rule.explain("x").endswith(".")
        assert "{" not in rule.explain(None)
        for pattern in rule.patterns:
            re.compile(pattern)


@cases(
    ("CEDARScriptEditorException: Command #2 failed: File not found: u.py", "NOT_FOUND", 2),
    ('{"type": "PolicyError", "code": "LINK", "message": "x"}', "LINK", None),
    ("PermissionError: [Errno 13] Permission denied: '/x/y'", "NOT_PERMITTED", None),
    ("IsADirectoryError: [Errno 21] Is a directory", "IS_DIRECTORY", None),
    ("UnicodeDecodeError: 'utf-8' codec can't decode byte", "NOT_TEXT", None),
    ("ModuleNotFoundError: No module named 'packaging'", "CEDARSCRIPT_UNAVAILABLE", None),
    ("RuntimeError: ed failed", "UNSUPPORTED_CONSTRUCT", None),
    ("error: missing ), unterminated subpattern at position 0", "INVALID_REGEX", None),
    ("Something else entirely", "UNKNOWN", None),
    ("{" * 5000, "UNKNOWN", None),
)
def test_error_messages_are_explained(
    tmp_path: Path, message: str, code: str, index: int | None
) -> None:
    with Client(tmp_path, log_level="off") as client:
        explained = client.call("explain_error", error_message=message)
    assert explained["code"] == code
    assert explained["known"] is (code != "UNKNOWN")
    assert explained.get("command_index") == index
    if code == "NOT_FOUND":
        assert explained["explanation"].startswith("Command #2: ")
        assert explained["explanation"].endswith(": u.py.")
    assert "/x/y" not in json.dumps(explained)


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=300))
def test_library_error_text_is_not_exposed(text: str) -> None:
    marked = f"tip-{text}-tip"
    error = explain.as_error({"kind": "OddError", "text": marked, "command_index": 3})
    assert "tip-" not in json.dumps(error.body())
    assert error.context == {"command_index": 3}


def names(client: Client) -> list[str]:
    return [tool["name"] for tool in client.ask("tools/list")["result"]["tools"]]


def test_missing_library_is_reported_by_list_capabilities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(available, "_is_there", lambda _name: False)
    monkeypatch.setattr(sys, "platform", "linux")
    with Client(tmp_path, log_level="off") as client:
        assert names(client) == ALWAYS
        capabilities = client.call("list_capabilities")
        explained = client.call("explain_error", error_message="NO_CHANGE")
        unknown = client.call("explain_error", error_message="no such words")
    assert explained["known"] is True
    for one in (explained, unknown):
        assert "parse_cedarscript" not in json.dumps(one), "it is not listed"
    assert capabilities["available"] is False
    if os.uname().machine == "x86_64":
        assert "not installed" in capabilities["reason"]


def test_unsupported_platform_is_reported_by_list_capabilities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with Client(tmp_path, log_level="off") as client:
        assert names(client) == ALWAYS
        assert "for darwin" in client.call("list_capabilities")["reason"]


def test_tree_cache_parses_each_source_once() -> None:
    made: list[bytes] = []

    def parse(source: bytes) -> int:
        made.append(source)
        return len(made)

    cache = TreeCache(parse, largest=10)

    assert [cache.parse(source) for source in (b"aaaa", b"bbbb", b"aaaa", b"bbbb")] == [1, 2, 1, 2]
    assert (made, cache.hits) == ([b"aaaa", b"bbbb"], 2)


def test_tree_cache_size_is_bounded() -> None:
    made: list[bytes] = []
    cache = TreeCache(made.append, largest=10)

    for source in (b"aaaa", b"bbbb", b"aaaa", b"cccc", b"aaaa", b"bbbb", b"x" * 11, b"x" * 11):
        cache.parse(source)
        assert cache.size <= 10

    # The least recently used tree is evicted. A source over the limit is parsed each time.
    assert made == [b"aaaa", b"bbbb", b"cccc", b"bbbb", b"x" * 11, b"x" * 11]


FAKES = {
    "raises on import": ("raise ImportError('/secret/place')", "does not load (ImportError)"),
    "other version": ("CEDARScriptEditor = None", "is 9.9"),
    "prints and exits": ("import os; print('junk', flush=True); os._exit(3)", "did not start"),
}


def fake_library(place: Path, source: str, version: str) -> None:
    """Write packages with the library's names to a folder that is first on the path."""
    from reference_server.features.cedarscript.library import VERSIONS  # noqa: PLC0415

    for package in ("cedarscript_editor", "cedarscript_ast_parser", "packaging"):
        (place / package).mkdir()
        (place / package / "__init__.py").write_text(source)
    (place / "cedarscript_editor" / "cedarscript_editor.py").write_text("")
    for name, right in VERSIONS.items():
        info = place / f"{name.replace('-', '_')}-{version or right}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {name}\nVersion: {version or right}\n")


@pytest.mark.skipif(sys.platform != "linux", reason="the cheap check refuses other systems")
@pytest.mark.parametrize("fake", FAKES)
def test_tools_of_a_broken_library_are_withdrawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: str
) -> None:
    source, reason = FAKES[fake]
    place, root = tmp_path / "site", tmp_path / "root"
    place.mkdir()
    root.mkdir()
    fake_library(place, source, "9.9" if fake == "other version" else "")
    monkeypatch.setattr(engine, "reason_against", lambda: None)
    monkeypatch.setattr("reference_server.features.cedarscript.tools.reason_against", lambda: None)
    monkeypatch.setenv("PYTHONPATH", str(place))
    with Client(root, log_level="off") as client:
        assert names(client) == ["parse_cedarscript", "apply_cedarscript", *ALWAYS]
        error = client.fail("parse_cedarscript", content="RM FILE 'a'")
        assert error["code"] == "CEDARSCRIPT_UNAVAILABLE"
        assert "secret" not in json.dumps(error)
        assert reason in error["message"]
        if fake == "prints and exits":
            return  # the failure may be temporary
        assert names(client) == ALWAYS
        capabilities = client.call("list_capabilities")
        assert capabilities["available"] is False
        assert reason in capabilities["reason"]
