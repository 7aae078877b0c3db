"""The tools of the reference server in each revision, and reads confined to the root."""

import json
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_server.protocol.arguments import check_schema, problem_with
from reference_server.protocol.toolbox import Toolbox
from reference_server.settings import Settings
from tests.cases import cases
from tests.client_questions import tool
from tests.reference_client import InProcess, Message, converse, modern, only

POSIX_ONLY = pytest.mark.skipif(os.name == "nt", reason="needs POSIX files")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "root"
    (place / "sub").mkdir(parents=True)
    (place / "a.txt").write_bytes(b"one\ntwo\nthree\n")
    (place / "sub" / "b.txt").write_bytes(b"inside")
    (tmp_path / "outside.txt").write_bytes(b"canary")
    return place


def call(root: Path, tool: str, **arguments: Any) -> Message:
    with InProcess(Settings([str(root)])) as client:
        found: Message = client.ask("tools/call", name=tool, arguments=arguments)["result"]
    return found


def read(root: Path, path: str) -> Message:
    found: Message = call(root, "file_read", path=path)["structuredContent"]
    return found


def refused(root: Path, tool: str, **arguments: Any) -> Message:
    result = call(root, tool, **arguments)
    assert result["isError"] is True
    assert "canary" not in json.dumps(result)
    error: Message = result["structuredContent"]
    return error


def test_names_with_a_dot_are_called_and_not_listed(root: Path) -> None:
    patch = {"path": "a.txt", "expectedHash": "0" * 64, "diffText": "x"}
    for alias, name, arguments in (
        ("file.read", "file_read", {"path": "a.txt"}),
        ("file.read_range", "file_read_range", {"path": "a.txt", "startLine": 1, "endLine": 2}),
        ("file.apply_patch_only", "file_apply_patch_only", patch),
        ("workspace.digest", "workspace_digest", {}),
    ):
        found = [call(root, one, **arguments) for one in (alias, name)]
        assert found[0].get("isError") == found[1].get("isError")
        assert found[0]["content"][0] == found[1]["content"][0]


def test_name_of_a_tool_wins_over_an_alias() -> None:
    toolbox = Toolbox()
    for name, more in (("a_b", {"alias": "a.b"}), ("a.b", {})):
        toolbox.add(tool(name, lambda _call, _given: {}, **more))
        found = toolbox.find("a.b")
        assert found
        assert found.name == name


def test_out_of_range_numbers_give_a_tool_error(root: Path) -> None:
    for number in (b"1e400", b"-1e400", b"9" * 5000):
        question = json.dumps(
            modern(
                "q",
                "tools/call",
                name="file_read_range",
                arguments={"path": "a.txt", "startLine": 1, "endLine": "N"},
            )
        ).encode()
        line = question.replace(b'"N"', number)
        answer = only(converse(line, settings=Settings([str(root)])))
        assert answer["result"]["isError"] is True


@cases(
    (b"", {"newline": "none", "final_newline": False, "lines": 0, "text": ""}),
    (b"x", {"newline": "none", "final_newline": False, "lines": 1}),
    (b"x\r\ny", {"newline": "crlf", "final_newline": False, "lines": 2}),
    (b"x\ry\r", {"newline": "cr", "final_newline": True, "lines": 2}),
    (b"x\r\ny\n", {"newline": "mixed", "final_newline": True, "lines": 2}),
    (b"\xef\xbb\xbfx", {"bom": True, "encoding": "utf-8", "text": "x"}),
    ("\ufeffxé\n".encode("utf-16-le"), {"bom": True, "encoding": "utf-16-le", "text": "xé\n"}),
    ("\ufeffx".encode("utf-16-be"), {"bom": True, "encoding": "utf-16-be", "text": "x"}),
    ("a\u2028b\x0cc\n".encode(), {"lines": 1, "newline": "lf"}),
    (b"a\0b", {"text": "a\0b"}),
)
def test_read_reports_the_file_format(root: Path, raw: bytes, facts: Message) -> None:
    (root / "f").write_bytes(raw)
    found = read(root, "f")
    assert {name: found[name] for name in facts} == facts


@cases(
    *((1, 1, "a\r\n", 1), (2, 3, "b\nc\r", 3), (4, 4, "d", 4), (2, 99, "b\nc\rd", 4)),
    (1.0, 1e3, "a\r\nb\nc\rd", 4),
)
def test_range_keeps_newlines(root: Path, first: float, last: float, text: str, end: int) -> None:
    (root / "f").write_bytes(b"a\r\nb\nc\rd")
    result = call(root, "file_read_range", path="f", startLine=first, endLine=last)
    found = result["structuredContent"]
    assert (found["text"], found["startLine"], found["endLine"]) == (text, first, end)
    assert found["lines"] == 4


def test_text_limit_counts_code_points(root: Path) -> None:
    for text in ("é" * 250_001, "\u4e2d" * 500_000, "\U0001f600" * 250_001, "\x01" * 499_999):
        (root / "f").write_text(text, encoding="utf-8")
        assert read(root, "f")["text"] == text
    (root / "f").write_bytes(b"x\r\n" * 166_667)
    assert refused(root, "file_read", path="f")["code"] == "TEXT_TOO_LONG"


def test_error_for_a_long_line_names_the_line_and_its_length(root: Path) -> None:
    (root / "f").write_text("x" * 500_001 + "\n" + "y" * 400_000 + "\n" + "z" * 400_000)
    alone = refused(root, "file_read_range", path="f", startLine=1, endLine=1)
    assert alone["message"].startswith("Line 1 alone has 500002 characters")
    both = refused(root, "file_read_range", path="f", startLine=2, endLine=3)
    assert "startLine 2 and endLine 2" in both["suggestions"][0]


@POSIX_ONLY
def test_special_files_are_refused_without_blocking(root: Path) -> None:
    os.mkfifo(root / "fifo")
    refused(root, "file_read", path="fifo")
    # The path of a socket may be no longer than some 100 bytes, so tmp_path is too deep.
    with tempfile.TemporaryDirectory() as short, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{short}/s")
        refused(Path(short), "file_read", path="s")


@pytest.fixture
def unreadable(root: Path) -> Iterator[str]:
    (root / "secret").write_text("canary")
    (root / "secret").chmod(0)
    yield "secret"
    (root / "secret").chmod(0o600)


@POSIX_ONLY
def test_unreadable_file_is_refused(root: Path, unreadable: str) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    refused(root, "file_read", path=unreadable)


@cases(
    {"type": "string", "format": "date"},
    {"type": "object", "properties": {"x": {"type": "string", "contentEncoding": "base64"}}},
    {"type": "array", "items": {"type": "integer", "multipleOf": 2}},
    *({"type": "string", "pattern": pattern} for pattern in ("x", "^x", "x$")),
    *({"type": ["string", "null"]}, {"type": "null"}, {}),
)
def test_schema_with_unchecked_keywords_is_refused(schema: Message) -> None:
    with pytest.raises(ValueError, match=r"check|type|pattern"):
        check_schema(schema)


def test_two_tools_cannot_share_a_name() -> None:
    box = Toolbox()
    one = tool("t", lambda _call, _arguments: {})
    box.add(one)
    with pytest.raises(ValueError, match="two tools"):
        box.add(one)


@cases(
    *((True, "integer", False), (1, "integer", True), (1.0, "integer", True)),
    *((1.5, "integer", False), (float("inf"), "integer", False), (True, "number", False)),
    *((1.5, "number", True), (float("inf"), "number", False), (1, "boolean", False)),
    *((False, "boolean", True), ([], "array", True), ({}, "array", False), (None, "string", False)),
)
def test_type_check_agrees_with_json_schema(value: Any, schema: str, fits: bool) -> None:
    assert (problem_with(value, {"type": schema}) is None) is fits


SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={
            "minLength": st.integers(0, 3),
            "maxLength": st.integers(0, 3),
            "pattern": st.sampled_from(["^[ab]{2}$", "^a|b$", "^$"]),
            "enum": st.just(["a", "ab"]),
            "const": st.sampled_from(["a", "ab"]),
        },
    )
    | st.fixed_dictionaries(
        {"type": st.sampled_from(["integer", "number"])},
        optional={
            **{name: st.integers(-2, 2) for name in ("minimum", "maximum", "const")},
            "enum": st.just([1, 2.5]),
        },
    )
    | st.just({"type": "boolean"}),
    lambda parts: (
        st.fixed_dictionaries(
            {"type": st.just("array")},
            optional={"items": parts, "minItems": st.integers(0, 2), "maxItems": st.integers(0, 2)},
        )
        | st.fixed_dictionaries(
            {"type": st.just("object")},
            optional={
                "properties": st.dictionaries(st.sampled_from("xy"), parts),
                "required": st.lists(st.sampled_from("xy"), unique=True),
                "additionalProperties": st.just(False),
            },
        )
    ),
    max_leaves=4,
)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([1.0, 2.5, -0.5])
    | st.text(alphabet="abc", max_size=4),
    lambda parts: (
        st.lists(parts, max_size=3) | st.dictionaries(st.sampled_from("xyz"), parts, max_size=3)
    ),
    max_leaves=5,
)


@given(SCHEMAS, VALUES)
def test_keyword_check_agrees_with_json_schema(schema: Message, value: Any) -> None:
    check_schema(schema)
    fits = jsonschema.Draft202012Validator(schema).is_valid(value)
    assert (problem_with(value, schema) is None) is fits


def test_dollar_in_a_pattern_does_not_match_before_a_newline() -> None:
    schema = {"type": "string", "pattern": "^a$"}
    assert problem_with("a", schema) is None
    assert problem_with("a\n", schema)
