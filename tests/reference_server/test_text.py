"""Files as text: lines, newlines, hashes, encodings."""

import hashlib
import io
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_server.failure import ToolError
from reference_server.tools.text import ENCODINGS, Text, newline_at, newline_before, skip_lines

TEXTS = st.text(alphabet="ab\r\n\u2028\x0c\x85é", max_size=200) | st.text(
    alphabet="a\r\n", max_size=200
)


def lines_of(text: str) -> list[str]:
    return list(io.StringIO(text, newline=""))


@given(TEXTS)
def test_lines_end_at_lf_crlf_and_cr_only(text: str) -> None:
    found = Text(text.encode())
    assert found.lines() == lines_of(text)
    assert found.line_count == len(lines_of(text))


@given(TEXTS, st.integers(0, 100), st.integers(0, 100))
def test_skip_lines_advances_by_whole_lines(text: str, first: int, second: int) -> None:
    lines = lines_of(text)
    position = skip_lines(text, 0, first)
    assert text[:position] == "".join(lines[:first])
    assert text[position : skip_lines(text, position, second)] == "".join(
        lines[first : first + second]
    )


@given(TEXTS, st.integers(1, 50), st.integers(0, 50))
def test_part_returns_the_requested_lines(text: str, first: int, more: int) -> None:
    assert Text(text.encode()).part(first, first + more) == "".join(
        lines_of(text)[first - 1 : first + more]
    )


@given(TEXTS)
def test_newline_is_found_at_and_before_a_position(text: str) -> None:
    position = 0
    for line in lines_of(text):
        bare = line.rstrip("\r\n")
        assert newline_at(text, position + len(bare)) == line[len(bare) :]
        position += len(line)
        assert newline_before(text, position) == line[len(bare) :]


@pytest.mark.parametrize("unit", ["\n", "\r", "\r\n", "a\n", "a\r", "x" * 100_000 + "\r"])
def test_line_operations_are_fast_for_any_newlines(unit: str) -> None:
    text = Text((unit * (5_000_000 // len(unit))).encode())
    started = time.monotonic()
    text.facts()
    assert text.part(text.line_count, text.line_count) == unit
    assert time.monotonic() - started < 5


@given(st.binary(max_size=50), st.sampled_from(ENCODINGS))
def test_decoded_text_encodes_to_the_same_bytes(data: bytes, encoding: str) -> None:
    try:
        found = Text(data, encoding)
    except ToolError:
        return
    assert found.encode(found.text) == data


def test_invalid_utf_8_is_refused() -> None:
    with pytest.raises(ToolError) as caught:
        Text(b"caf\xe9")
    assert caught.value.code == "NOT_TEXT"


@pytest.mark.parametrize("name", ["utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("encoding", [None, *ENCODINGS])
def test_utf_32_is_refused_in_every_encoding(name: str, encoding: str | None) -> None:
    with pytest.raises(ToolError, match="UTF-32") as caught:
        Text("\ufeffa\n".encode(name), encoding)
    assert caught.value.code == "NOT_TEXT"


@given(
    st.lists(st.text(alphabet="abé\u2028\U0001f600", max_size=5), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["utf-8", "utf-16-le", "utf-16-be"]),
    st.booleans(),
)
def test_normalized_hash_ignores_newlines_encoding_and_bom(
    lines: list[str], newline: str, encoding: str, bom: bool
) -> None:
    marked = ("\ufeff" if bom else "") + newline.join(lines)
    found = Text(marked.encode(encoding), encoding)
    assert bool(found.mark) is bom
    expected = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert found.hashes()["sha256_normalized"] == expected
    assert found.hashes()["sha256"] == hashlib.sha256(marked.encode(encoding)).hexdigest()


def test_unencodable_character_is_named() -> None:
    with pytest.raises(ToolError, match=r"U\+20AC") as caught:
        Text(b"caf\xe9", "iso-8859-1").encode("€")
    assert caught.value.code == "CANNOT_ENCODE"
