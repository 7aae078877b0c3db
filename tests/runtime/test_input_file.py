"""The reader of files that somebody else may have written."""

import json
import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from mcp_touchstone.catalog.errors import InputError
from mcp_touchstone.runtime import input_file
from mcp_touchstone.runtime.input_file import InputFile
from mcp_touchstone.runtime.members import Members

DEEP = input_file.DEEPEST


def refused(read: Callable[[], Any]) -> str:
    """Return the one line with which a file is refused."""
    with pytest.raises(InputError) as caught:
        read()
    assert "\n" not in str(caught.value)
    return str(caught.value)


def file(folder: Path, data: bytes | str, name: str = "f.json") -> InputFile:
    path = folder / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return InputFile(path, "write another")


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "marked"])
def test_reads_json_and_toml(tmp_path: Path, mark: bytes) -> None:
    assert file(tmp_path, mark + b'{"a": [1, 2.5, "\xc3\xa9", null]}').json() == {
        "a": [1, 2.5, "é", None]
    }
    assert file(tmp_path, mark + b"a.b = 1\r\n").toml() == {"a": {"b": 1}}


def test_follows_a_link_only_where_the_user_names_it(tmp_path: Path) -> None:
    real = file(tmp_path, "[]").path
    (tmp_path / "link").symlink_to(real)
    (tmp_path / "folder").mkdir()
    (tmp_path / "away").symlink_to(tmp_path / "folder")
    (tmp_path / "folder" / "f").write_text("[1]")

    assert InputFile(tmp_path / "link").json() == []
    assert InputFile(tmp_path / "away" / "f", named=False).json() == [1]
    assert "it is a link" in refused(InputFile(tmp_path / "link", named=False).json)


@pytest.mark.skipif(os.name != "posix", reason="named pipes and sockets are files there")
def test_refuses_what_is_no_file(tmp_path: Path) -> None:
    pipe, other, loop = tmp_path / "pipe", tmp_path / "socket", tmp_path / "loop"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    with socket.socket(socket.AF_UNIX) as server:
        here = Path.cwd()
        os.chdir(tmp_path)  # the path of a socket is short
        server.bind("socket")
        os.chdir(here)
        for path, what in (
            (pipe, "a named pipe"),
            (tmp_path, "a folder"),
            (other, "a socket"),
            (Path("/dev/zero"), "a device"),
            (loop, ""),
            (Path("a\0b"), "no name"),
            (tmp_path / "none", "no such file; write it first"),
        ):
            one = InputFile(path, "x", "write it first")
            reads: list[Callable[[], Any]] = [one.data, one.json, partial(list, one.rows())]
            for read in reads:
                said = refused(read)
                assert what in said


def test_refuses_what_is_too_large(tmp_path: Path) -> None:
    sparse = file(tmp_path, "")
    os.truncate(sparse.path, 1 << 40)

    assert "it has more than 67,108,864 bytes; write another" in refused(sparse.json)
    assert "more than 1,048,576 bytes" in refused(sparse.toml)
    assert "more than 67,108,864 bytes" in refused(lambda: list(sparse.rows()))
    long = InputFile(sparse.path, "write another", most=1 << 41)
    assert f"{sparse.path}:1: it has more than" in refused(lambda: list(long.rows()))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", ":1:1: invalid JSON"),
        ('{"a":\n  nothing}', ":2:3: invalid JSON"),
        ("[" * DEEP + "]" * DEEP, ""),
        ("[" * (DEEP + 1) + "]" * (DEEP + 1), ": it is nested deeper"),
        ("[" * 10**6, ": it is nested deeper"),
        ('{"a":' * 10**5, ": it is nested deeper"),
        ('{"a b": [0, NaN]}', ': $["a b"][1] is NaN or'),
        ('{"a": [0, {"b": -Infinity}]}', ": $.a[1].b is NaN or"),
        ("1e999", ": $ is NaN or"),
        (f"[{10**299}, -1e299]", ""),
        (f"[{10**400}]", ": $[0] is NaN or"),
        (f"[-{'9' * 10**5}]", ": $[0] is NaN or"),
        ("[]," * 3 * 10**6, " values; write another"),
    ],
)
def test_refuses_json_with_a_place(tmp_path: Path, text: str, place: str) -> None:
    one = file(tmp_path, text)
    if not place:
        assert one.json() == json.loads(text)
    else:
        assert place in refused(one.json).replace("'", '"')


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a =\n", "line 1, column 4"),
        ("a = nan", ": $.a is NaN or"),
        ("a.b = [inf]", ": $.a.b[0] is NaN or"),
        (f"a = {10**400}", ": $.a is NaN or"),
        (f"a = {'9' * 5000}", "too many digits"),
        ("a = " + "[" * 10**5, "nested deeper"),
        ("a = " + "[" * 200 + "]" * 200, "nested deeper"),
        ("\nb" + ".b" * 10**5 + " = 1", ":2: a key has more than 64 parts"),
        ("[" + '"b" . ' * 64 + "b]", ":1: a key has more than 64 parts"),
        ("a = {" + "b." * 60 + "b = {" + "c." * 60 + "c = {" + "d." * 80 + "d = 1}}}", "64 parts"),
        (("{" + "b." * 60 + "b = ").join(["a = ", *[""] * 4]) + "1" + "}" * 4, "nested deeper"),
    ],
)
def test_refuses_toml_with_a_place(tmp_path: Path, text: str, place: str) -> None:
    assert place in refused(file(tmp_path, text, "f.toml").toml)


def test_names_the_line_that_is_not_utf_8(tmp_path: Path) -> None:
    one = file(tmp_path, b"{}\n{}\n\xff\n")

    assert "line 3 is not UTF-8" in refused(one.json)
    assert f"{one.path}:3: " in refused(lambda: list(one.rows()))
    assert "save it as UTF-8" in refused(file(tmp_path, "{}".encode("utf-16")).json)


def test_reads_rows_one_at_a_time(tmp_path: Path) -> None:
    one = file(tmp_path, '{"a": 1}\n\n[2]\r\n3')

    assert [value for _, value in one.rows()] == [{"a": 1}, [2], 3]
    assert [where for where, _ in one.rows(cut=True)] == [f"{one.path}:1", f"{one.path}:3"]
    rows = file(tmp_path, "1\n[1, x]\n").rows()
    assert next(rows)[1] == 1
    assert f"{one.path}:2:5: invalid JSON" in refused(lambda: next(rows))


def test_a_member_is_checked_where_it_is_read() -> None:
    found = Members.of(
        {"text": "a", "at": 1, "on": True, "none": None, "words": ["a", 5], "in": {"x": []}}, "f:3"
    )

    assert found.get("text", str) == "a"
    assert found.get("at", float) == 1
    assert found.get("none", str, "b") == "b"
    assert found.object("in").texts("x") == ()
    assert list(found.objects("more")) == []
    for read, said in (
        (lambda: found.get("on", int), "f:3: on must be a whole number"),
        (lambda: found.get("at", bool), "f:3: at must be true or false"),
        (lambda: found.get("none", str), "f:3: none must be a string"),
        (lambda: found.texts("words"), "f:3: words[1] must be a string"),
        (lambda: list(found.objects("words")), "f:3: words[0] must be an object"),
        (lambda: found.object("in").get("x", dict), "f:3: in: x must be an object"),
        (lambda: Members.of([], "f:3"), "f:3 must be an object"),
    ):
        assert refused(read) == said
