"""Bytes are split into lines, and lines are read as JSON, for any server output."""

import json
import math
import tracemalloc
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_touchstone.wire.framing import (
    CUT,
    DEEPEST,
    MOST_VALUES,
    Fault,
    Kind,
    Line,
    LineSplitter,
    Reading,
    brief,
    encode,
    excess,
    id_key,
    is_whole,
    joined,
    kind_of,
    open_brackets,
    read,
    split_glued,
    type_name,
)
from tests.cases import cases

STREAM = b'{"a":1}\n\n{"b":"\xe2\x80\xa8\xc2\x85"}\r\nbanner\r\r\n{"c":2}'
LINES = [b'{"a":1}', b"", b'{"b":"\xe2\x80\xa8\xc2\x85"}\r', b"banner\r\r", b'{"c":2}']

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def split(chunks: list[bytes], limit: int = 1000) -> list[Line]:
    splitter = LineSplitter(limit)
    lines = [line for chunk in chunks for line in splitter.feed(chunk)]
    last = splitter.close()
    return lines if last is None else [*lines, last]


def bytewise(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


def reading(raw: bytes, *, terminated: bool = True) -> Reading:
    return read(Line(raw, len(raw), terminated))


def test_stream_is_split_at_line_feeds_only() -> None:
    assert [line.raw for line in split([STREAM])] == LINES


def test_stream_is_split_the_same_byte_by_byte() -> None:
    assert split(bytewise(STREAM)) == split([STREAM])


@given(st.lists(st.binary(max_size=12), max_size=12), st.integers(0, 20))
def test_stream_is_split_the_same_in_any_chunks(chunks: list[bytes], limit: int) -> None:
    data = b"".join(chunks)

    assert split(chunks, limit) == split([data], limit) == split(bytewise(data), limit)


@given(st.binary(max_size=60))
def test_no_byte_is_lost_below_the_limit(data: bytes) -> None:
    lines = split([data])

    assert b"".join(line.raw + b"\n" * line.terminated for line in lines) == data
    assert all(line.length == len(line.raw) and not line.cut for line in lines)


def test_unterminated_rest_is_returned_once_at_the_end() -> None:
    splitter = LineSplitter()
    splitter.feed(b"one\ntwo")

    assert splitter.peek() == b"two"
    assert splitter.close() == Line(b"two", 3, terminated=False)
    assert splitter.peek() == b""
    assert splitter.close() is None


def test_terminated_stream_has_no_rest() -> None:
    splitter = LineSplitter()
    splitter.feed(b"one\n")

    assert splitter.close() is None


@pytest.mark.parametrize("chunk", [1, 7, 4096, 100_000])
def test_long_line_is_cut_and_its_length_counted(chunk: int) -> None:
    data = b"x" * 20_000
    chunks = [data[i : i + chunk] for i in range(0, len(data), chunk)]

    long, after = split([*chunks, b"\nafter\n"], limit=10_000)

    assert (long.raw, long.length, long.cut) == (b"x" * CUT, 20_000, True)
    assert after == Line(b"after", 5)


def test_cut_line_does_not_depend_on_the_chunks() -> None:
    data = b"0123456789" + b"x" * 2000

    assert split([b"0123456789", b"x" * 2000], 100) == split([data], 100)


@pytest.mark.parametrize("size", [100, 101])
def test_only_a_line_over_the_limit_is_cut(size: int) -> None:
    (line,) = split([b"x" * size + b"\n"], limit=100)

    assert line.cut is (size > 100)


def test_endless_line_takes_bounded_memory() -> None:
    splitter = LineSplitter(limit=100_000)
    chunk = b"x" * 65_536
    tracemalloc.start()
    try:
        for _ in range(200):
            splitter.feed(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    line = splitter.close()

    assert line is not None
    assert line.length == 200 * 65_536
    assert peak < 1_000_000


GOOD: dict[str, tuple[bytes, Any]] = {
    "an object": (b'{"a": 1}', {"a": 1}),
    "white space around": (b' \t{"a": 1}\r', {"a": 1}),
    "a line separator inside": ('{"a": "\u2028"}'.encode(), {"a": "\u2028"}),
    "a scalar": (b"5", 5),
    "null": (b"null", None),
    "an escaped pair": (b'"\\ud83d\\ude00"', "\U0001f600"),
    "an escaped zero": (b'"\\u0000"', "\0"),
    "a large integer": (b"1" * 4000, Decimal("1" * 4000)),
    "an integer of 5,000 digits": (b"-" + b"1" * 5000, Decimal("-" + "1" * 5000)),
    "a number past every float": (b"1e999", math.inf),
}

BAD: dict[str, tuple[bytes, Fault, bool, Any]] = {
    "nothing": (b"", Fault.BLANK, False, None),
    "blanks": (b" \t\r", Fault.BLANK, False, None),
    "a byte order mark": (b'\xef\xbb\xbf{"a":1}', Fault.BYTE_ORDER_MARK, True, {"a": 1}),
    "invalid UTF-8": (b'{"a":"\xff"}', Fault.NOT_UTF8, True, {"a": "\xff"}),
    "UTF-8 of a surrogate": (b'"\xed\xa0\x80"', Fault.NOT_UTF8, True, "\xed\xa0\x80"),
    "UTF-16, little end first": ('{"a":"é"}'.encode("utf-16-le"), Fault.NOT_UTF8, True, {"a": "é"}),
    "UTF-16, big end first": ('{"a":"é"}'.encode("utf-16-be"), Fault.NOT_UTF8, True, {"a": "é"}),
    "UTF-16 with its mark": ('{"a":1}'.encode("utf-16"), Fault.NOT_UTF8, True, {"a": 1}),
    "a later line of UTF-16": (
        b"\0" + '{"a":1}'.encode("utf-16-le"),
        Fault.NOT_UTF8,
        True,
        {"a": 1},
    ),
    "the half of a line feed": (b"\0", Fault.NOT_UTF8, False, None),
    "NaN": (b'{"a":NaN}', Fault.CONSTANT, True, {"a": None}),
    "Infinity": (b'{"a":-Infinity}', Fault.CONSTANT, True, {"a": None}),
    "a member twice": (b'{"a":1,"a":2}', Fault.DUPLICATE_KEY, True, {"a": 2}),
    "a member twice far inside": (b'[{"a":[{"b":1,"b":1}]}]', Fault.DUPLICATE_KEY, True, ...),
    "a lone surrogate": (b'{"a":"\\ud800"}', Fault.LONE_SURROGATE, True, {"a": "\ud800"}),
    "a lone surrogate as a name": (b'{"\\uDFFF":1}', Fault.LONE_SURROGATE, True, {"\udfff": 1}),
    "a nesting bomb": (b"[" * 100_000, Fault.TOO_DEEP, False, None),
    "a balanced nesting bomb": (b"[" * 99_999 + b"]" * 99_999, Fault.TOO_DEEP, True, ...),
    "a balanced nesting bomb in UTF-16": (
        ("[" * 999 + "]" * 999).encode("utf-16-le"),
        Fault.TOO_DEEP,
        False,
        None,
    ),
    "too many values": (b"[" + b"{}," * MOST_VALUES + b"1]", Fault.TOO_MANY, False, None),
    "a banner": (b"Server running on stdio", Fault.NOT_JSON, False, None),
    "two values": (b"{} {}", Fault.NOT_JSON, False, None),
    "a raw tab in a string": (b'"\t"', Fault.NOT_JSON, False, None),
    "an escape sequence": (b"\x1b[32m{}\x1b[0m", Fault.NOT_JSON, False, None),
    "two byte order marks": (b"\xef\xbb\xbf\xef\xbb\xbf{}", Fault.NOT_JSON, False, None),
}


@pytest.mark.parametrize("name", GOOD)
def test_valid_message_is_read_without_fault(name: str) -> None:
    raw, value = GOOD[name]

    assert reading(raw) == Reading(value)


@pytest.mark.parametrize("name", BAD)
def test_invalid_message_is_read_with_its_fault(name: str) -> None:
    raw, fault, readable, value = BAD[name]

    found = reading(raw)

    assert fault in found.faults
    assert found.readable is readable
    assert value is ... or found.value == value


def test_all_faults_of_a_line_are_reported() -> None:
    found = reading(b'\xef\xbb\xbf{"a":NaN,"a":"\xff"}', terminated=False)

    assert found.faults == {
        Fault.BYTE_ORDER_MARK,
        Fault.CONSTANT,
        Fault.DUPLICATE_KEY,
        Fault.NOT_UTF8,
        Fault.UNTERMINATED,
    }


def test_unterminated_message_is_read_and_marked() -> None:
    assert reading(b"{}", terminated=False) == Reading({}, frozenset({Fault.UNTERMINATED}))


def test_cut_line_is_not_parsed() -> None:
    assert read(Line(b"{}", 99)) == Reading(None, frozenset({Fault.TOO_LONG}), readable=False)


def depth(value: Any) -> int:
    parts = value.values() if isinstance(value, dict) else value
    return 1 + max(map(depth, parts), default=0) if isinstance(value, dict | list) else 0


SIGNS = st.text('[{\\"}],', max_size=8)
NESTED = st.recursive(
    SIGNS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SIGNS, inner, max_size=3),
    max_leaves=6,
)


@given(NESTED)
def test_depth_is_measured_as_a_parser_measures_it(value: Any) -> None:
    text = json.dumps(value)

    assert excess(text, depth(value)) is None
    assert (excess(text, depth(value) - 1) is None) is (depth(value) == 0)


def test_message_is_read_down_to_the_greatest_depth() -> None:
    inner = b'{"a":' * (DEEPEST - 1) + b"1" + b"}" * (DEEPEST - 1)
    deeper = inner.replace(b"1", b'["]",{}]')

    assert reading(b'{"id":5,"result":%s,"b":[]}' % inner).faults == set()
    found = reading(b'{"id":5,"result":%s,"b":[]}' % deeper)

    assert found.faults == {Fault.TOO_DEEP}
    assert found.value["id"] == 5
    assert found.value["b"] == []
    assert depth(found.value) == DEEPEST


def test_strings_count_as_one_value() -> None:
    text = '[\\",' * (MOST_VALUES * 2)

    assert reading(b'["%s"]' % text.encode()).value == ['[",' * (MOST_VALUES * 2)]


def test_string_of_escapes_is_measured_in_little_memory() -> None:
    text = '["' + '\\"[' * 300_000 + '"]'
    tracemalloc.start()
    try:
        assert excess(text) is None
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 4 * len(text)


@given(st.binary(max_size=80), st.booleans())
def test_any_bytes_are_read_without_exception(raw: bytes, terminated: bool) -> None:
    found = reading(raw, terminated=terminated)

    assert found.readable or found.faults


@given(st.text(alphabet='{}[]":,0123456789.eE-+\\un\ud7ffNaInfity \t\0é', max_size=40))
def test_json_like_text_is_read_without_exception(text: str) -> None:
    for codec in ("utf-8", "utf-16-le", "utf-16-be"):
        reading(text.encode(codec))


@given(JSON)
def test_encoded_message_is_read_back(value: Any) -> None:
    (line,) = LineSplitter().feed(encode(value))

    assert read(line) == Reading(value)


def test_message_is_encoded_as_one_utf8_line() -> None:
    assert encode({"a": "é\n\u2028"}) == b'{"a":"\xc3\xa9\\n\xe2\x80\xa8"}\n'


def test_any_readable_id_can_be_encoded() -> None:
    """A reply repeats the server's id, so encoding must not fail for any id."""
    for raw in (b'"\\ud800"', b"9" * 5000, b"1e999", b"-0.0", b'"\\u0000"'):
        line = encode({"id": reading(raw).value})

        assert line.endswith(b"}\n")
        assert line.count(b"\n") == 1


@cases(
    (b'{"a":1}{"b":2}', [b'{"a":1}', b'{"b":2}']),
    (b'{"a":"}{"}{"b":2}{}', [b'{"a":"}{"}', b'{"b":2}', b"{}"]),
    (b"{}Content-Length: 9\r", [b"{}", b"Content-Length: 9\r"]),
    (b'{"a":1}{"b":', [b'{"a":1}', b'{"b":']),
    (b'{"a":1} trailing', [b'{"a":1} trailing']),
    (b"[1][2]", [b"[1][2]"]),
    (b"banner {}", [b"banner {}"]),
    (b"", [b""]),
)
def test_messages_on_one_line_are_separated(raw: bytes, parts: list[bytes]) -> None:
    found = list(split_glued(Line(raw, len(raw))))

    assert [line.raw for line in found] == parts
    assert [line.terminated for line in found] == [False] * (len(parts) - 1) + [True]
    assert sum(line.length for line in found) == len(raw)


@pytest.mark.parametrize("raw", [b'{"a":"' + b"}{" * 100_000, b"{}" * 100_000, b"}{" * 100_000])
def test_long_line_is_separated_in_one_pass(raw: bytes) -> None:
    """With quadratic time, one line of a megabyte blocked the harness for an hour."""
    assert sum(line.length for line in split_glued(Line(raw, len(raw)))) == len(raw)
    assert is_whole(raw) is (raw == b"{}" * 100_000)


def test_complete_and_incomplete_messages_are_distinguished() -> None:
    assert is_whole(b'{"a":1}')
    assert is_whole(b'{"a":1}{"b":2}')
    assert not is_whole(b'{"a":1}{"b":')
    assert not is_whole(b"")
    assert not is_whole(b"loading")


def test_lines_are_joined_and_parsed_as_one_value() -> None:
    assert joined([b"{", b'"a": [1,', b"2]", b"}"]) == {"a": [1, 2]}
    assert joined([b"{", b'"a"']) is None
    assert joined([b"[" * 100_000]) is None


@cases(
    (b'{"a": [', 2),
    (b'{"a": "}]"', 1),
    (rb'{"a\"{": [ "}', 2),
    (b"}]", -2),
    (b'"]\\', 0),
    (b'"' + b'\\"' * 200_000 + b"[", 0),
    (b"", 0),
)
def test_open_brackets_are_counted_outside_strings(line: bytes, count: int) -> None:
    assert open_brackets(line) == count


@given(JSON, st.integers(0, 3))
def test_pretty_printed_value_has_balanced_brackets_and_is_joined(value: Any, indent: int) -> None:
    lines = json.dumps(value, indent=indent).encode().split(b"\n")

    assert sum(map(open_brackets, lines)) == 0
    assert joined(lines) == value


@cases(
    ({"id": 1, "method": "x"}, Kind.REQUEST),
    ({"id": None, "method": "x"}, Kind.REQUEST),
    ({"method": 5}, Kind.NOTIFICATION),
    ({"id": 1, "result": {}}, Kind.RESULT),
    ({"result": None}, Kind.RESULT),
    ({"id": 1, "result": {}, "error": {}}, Kind.RESULT),
    ({"id": 1, "error": {}}, Kind.ERROR),
    ({"error": None}, Kind.ERROR),
    ({"id": 1, "method": "x", "result": {}}, Kind.ODD),
    ({"method": "x", "error": {}}, Kind.ODD),
    ({"id": 1}, Kind.ODD),
    ({}, Kind.ODD),
    ([], Kind.ODD),
    ("x", Kind.ODD),
    (None, Kind.ODD),
)
def test_message_is_classified_by_its_members(value: Any, kind: Kind) -> None:
    assert kind_of(value) is kind


def test_ids_differ_by_type_and_agree_by_number() -> None:
    assert id_key(5) != id_key("5")
    assert id_key(5) == id_key(5.0) == id_key(Decimal(5))
    assert id_key(2**53 + 1) != id_key(float(2**53))
    assert id_key("") is not None


@pytest.mark.parametrize("value", [None, True, False, [], [5], {}, {"id": 5}])
def test_invalid_id_has_no_key(value: Any) -> None:
    assert id_key(value) is None


@given(JSON)
def test_id_keys_are_hashable(value: Any) -> None:
    assert hash((id_key(value), type_name(value)))


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ({}, "object"),
        ([], "array"),
        ("", "string"),
        (True, "boolean"),
        (None, "null"),
        (1, "number"),
        (1.5, "number"),
        (Decimal(1), "number"),
    ],
)
def test_json_types_have_their_own_names(value: Any, name: str) -> None:
    assert type_name(value) == name


def test_brief_value_is_one_line_and_cut() -> None:
    assert brief({"a": "é\n"}) == '{"a": "é\\n"}'
    assert brief("x" * 500, 20) == '"' + "x" * 18 + "…"
    assert brief(Decimal(5)) == '"5"'


def test_brief_of_too_deep_value_is_unprintable() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    assert brief(deep) == "(unprintable)"
