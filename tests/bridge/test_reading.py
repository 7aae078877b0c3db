"""The strict reader accepts only what h11 and llhttp read alike."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp_touchstone.http_server.reading import FRAMING
from tests.cases import cases
from tests.http_readers import AMBIGUOUS, CHUNKED, HEAD, REQUESTS, RESPONSES, nodes, ours, theirs

MANY = settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(REQUESTS)
@MANY
def test_a_request_that_is_accepted_is_read_alike_by_others(raw: bytes) -> None:
    found = ours(raw)
    if found is None:
        return
    assert theirs(raw) == found
    own = raw.removesuffix(found.rest) if found.rest else raw
    if found.first[0] in {"GET", "POST"}:
        assert nodes(own) == replace(found, rest=b"")


@given(RESPONSES)
@MANY
def test_a_response_that_is_accepted_is_read_alike_by_others(raw: bytes) -> None:
    found = ours(raw, request=False)
    if found is None:
        return
    assert theirs(raw, request=False) == found
    if {name for name, _ in found.headers} & {*FRAMING}:  # llhttp waits for the end of another one
        own = raw.removesuffix(found.rest) if found.rest else raw
        assert nodes(own, request=False) == replace(found, rest=b"")


@cases(
    (HEAD + b"Content-Length: 2\r\n\r\n{}", b"{}"),
    (HEAD + b"\r\n", b""),
    (CHUNKED + b"2\r\n{}\r\n0\r\n\r\n", b"{}"),
    (CHUNKED + b'2;a;b=c;d="e\\" ;"\r\n{}\r\n00\r\nX: y\r\n\r\n', b"{}"),
    (HEAD + b"X:\t \xe9\t\r\nTransfer-Encoding:\tChunked \r\n\r\n0\r\n\r\n", b""),
)
def test_a_body_is_read(raw: bytes, body: bytes) -> None:
    found = ours(raw)

    assert found is not None
    assert found.body == body


@pytest.mark.parametrize("raw", [*AMBIGUOUS, b""])
def test_what_readers_could_read_differently_is_refused(raw: bytes) -> None:
    assert ours(raw) is None


@given(st.binary(max_size=200))
@MANY
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    for head in (b"", HEAD, CHUNKED):
        ours(head + raw)
        ours(raw, request=False)
