"""What other parsers read in the bytes of HTTP/1.1: h11, and llhttp of Node if it is installed."""

import io
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import h11
import pytest
from hypothesis import strategies as st

from mcp_touchstone.http_server.reading import (
    MalformedError,
    body_of,
    check_request,
    fields,
    request_line,
    status_line,
)

BIG: Final = 1 << 20
CODING: Final = "transfer-encoding"

Fields = list[tuple[str, str]]


@dataclass(frozen=True)
class Reading:
    """A message as a parser understood it.

    Attributes:
        first: method and target, or the status.
        rest: bytes after it.
    """

    first: tuple[str, ...]
    headers: Fields
    body: bytes
    trailers: Fields
    rest: bytes


def ours(raw: bytes, *, request: bool = True) -> Reading | None:
    """Return what we read; None if we refuse it."""
    source = io.BufferedReader(io.BytesIO(raw))
    try:
        line = source.readline()
        if request:
            verb, target, version = request_line(line)
            first: tuple[str, ...] = (verb, target)
        else:
            version, status, _ = status_line(line)
            first = (str(status),)
        found = fields(source)
        if request:
            check_request(version, found)
        body = body_of(version, found, source, 0 if request else None)
        data = b"".join(body)
    except MalformedError:
        return None
    low = _low(found)
    return Reading(first, low, data, _low(body.trailers), source.read())


def theirs(raw: bytes, *, request: bool = True) -> Reading | None:
    """Return what h11 reads; None if it refuses it, or if it has no end."""
    connection = h11.Connection(h11.SERVER if request else h11.CLIENT, BIG)
    if not request:
        connection.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
        connection.send(h11.EndOfMessage())
    connection.receive_data(raw)
    first: tuple[str, ...] = ()
    headers: Fields = []
    body = b""
    try:
        while True:
            event = connection.next_event()
            if event is h11.NEED_DATA:
                connection.receive_data(b"")
            elif isinstance(event, h11.Request):
                first = (event.method.decode(), event.target.decode())
                headers = _text(event.headers)
            elif isinstance(event, h11.Response):
                first, headers = (str(event.status_code),), _text(event.headers)
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                rest = connection.trailing_data[0]
                return Reading(first, headers, body, _text(event.headers), rest)
            else:
                return None
    except h11.RemoteProtocolError:
        return None


class _Heard:
    """The callbacks of llhttp."""

    def __init__(self) -> None:
        self.target = self.body = b""
        self.headers: Fields = []
        self.trailers: Fields = []
        self.in_body = self.complete = False

    def on_url(self, url: bytes) -> None:
        self.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        into = self.trailers if self.in_body else self.headers
        into += _text([(name, value.strip(b" \t"))])

    def on_headers_complete(self) -> None:
        self.in_body = True

    def on_body(self, data: bytes) -> None:
        self.body += data

    def on_message_complete(self) -> None:
        self.complete = True


def nodes(raw: bytes, *, request: bool = True) -> Reading | None:
    """Return what llhttp reads in bytes with one message; None if it refuses it."""
    llhttp: Any = pytest.importorskip("httptools")
    heard = _Heard()
    parser = (llhttp.HttpRequestParser if request else llhttp.HttpResponseParser)(heard)
    try:
        parser.feed_data(raw)
    except (llhttp.HttpParserUpgrade, llhttp.HttpParserError):
        return None
    if request:
        first: tuple[str, ...] = (parser.get_method().decode(), heard.target.decode())
    else:
        first = (str(parser.get_status_code()),)
    return (
        Reading(first, heard.headers, heard.body, heard.trailers, b"") if heard.complete else None
    )


def _low(found: Iterable[tuple[str, str]]) -> Fields:
    """Return fields as they are compared: the name of a coding has no case."""
    low = ((name.lower(), value) for name, value in found)
    return [(name, value.lower() if name == CODING else value) for name, value in low]


def _text(found: Iterable[tuple[bytes, bytes]]) -> Fields:
    return _low((name.decode("latin-1"), value.decode("latin-1")) for name, value in found)


# --- bytes that are almost a message


def _any(*values: str) -> st.SearchStrategy[str]:
    return st.sampled_from(values)


NAMES = _any("X-A", "Accept", "Content-Type", "Trailer", "x_y", "X A", "", "X\0", "Hos\xe9t")
VALUES = _any("a", "", " a b ", "\xe9", "a\tb", "a\0b", "a\rb", "a\n b", "5", "\x7f", "a,b")
LENGTHS = _any("5", " 5 ", "05", "+5", "-5", "0x5", "5, 5", "5_0", "\xb2", "", "4", "6")
CODINGS = _any(
    *("chunked", "Chunked", " chunked ", "chunked, identity", "identity", "gzip, chunked"),
    *("xchunked", "chunked, chunked", "\x0bchunked", ""),
)
SIZES = _any(
    *("5", "05", "5;a", "5;a=b", '5;a="b"', '5;a="\n"', '5;a="\r\n"', "0x5", "+5", "-5", "0_5"),
    *("5 ", " 5", "5 ;a", "5;", "5;=", "", "f" * 20, "0" * 13 + "5", "5\t", "4", "6", '5;a="\\""'),
)
ENDS = _any(*["\r\n"] * 40, "\n", "\r", "", "\r\r\n", " \r\n")
COLONS = _any(*[": "] * 20, ":", " : ", "", ":\t", "\t:")
BEHIND = "GET /next HTTP/1.1\r\nHost: localhost\r\n\r\n"


@st.composite
def header(draw: st.DrawFn) -> str:
    """Return a line that is a header, or almost one."""
    length = st.tuples(_any("Content-Length", "content-length", "Content_Length"), LENGTHS)
    coding = st.tuples(_any("Transfer-Encoding", "transfer-encoding"), CODINGS)
    named = st.tuples(st.just("Connection"), _any("close, Content-Length", "Host", "X-A"))
    name, value = draw(st.one_of(st.tuples(NAMES, VALUES), length, coding, named))
    return draw(_any("", "", "", "", " ")) + name + draw(COLONS) + value + draw(ENDS)


@st.composite
def chunks(draw: st.DrawFn) -> str:
    """Return a body in chunks, or almost one."""
    found = ""
    for _ in range(draw(st.integers(0, 2))):
        found += draw(SIZES) + draw(ENDS) + draw(_any("hello", "hell", "hello!")) + draw(ENDS)
    found += draw(_any("0", "0", "0", "00", "0;a", "", "-0")) + draw(ENDS)
    return found + "".join(draw(st.lists(header(), max_size=1))) + draw(ENDS)


@st.composite
def messages(draw: st.DrawFn, first: st.SearchStrategy[str], fixed: str = "") -> bytes:
    """Return bytes that are a message, or almost one; often with something after it."""
    framing = draw(_any("none", "length", "chunks", "both", "drawn"))
    text = draw(first) + draw(ENDS) + fixed + "".join(draw(st.lists(header(), max_size=2)))
    if framing in {"length", "both"}:
        text += "Content-Length: " + draw(LENGTHS | st.just("5")) + "\r\n"
    if framing in {"chunks", "both"}:
        text += "Transfer-Encoding: " + draw(CODINGS | st.just("chunked")) + "\r\n"
    text += draw(ENDS)
    text += draw(chunks()) if framing in {"chunks", "both"} else ""
    text += draw(_any("", "hello")) if framing in {"length", "drawn"} else ""
    raw = (text + draw(_any("", "", BEHIND, "DELETE", "\r\n"))).encode("latin-1", "replace")
    for _ in range(draw(st.sampled_from([0, 0, 0, 1]))):
        place = draw(st.integers(0, len(raw)))
        raw = raw[:place] + draw(st.binary(max_size=2)) + raw[place + draw(st.integers(0, 2)) :]
    return raw


REQUESTS = messages(
    _any(
        *["POST /mcp HTTP/1.1"] * 8,
        *("GET /mcp HTTP/1.1", "POST /mcp HTTP/1.0", "POST  /mcp HTTP/1.1", "GET /mcp x HTTP/1.1"),
        *("GET /mcp", "GET http://x/mcp HTTP/1.1", "GET\t/mcp HTTP/1.1", "POST //mcp HTTP/1.1"),
        *("POST /mcp HTTP/2.0", "POST /mcp http/1.1", "POST /m\xe9 HTTP/1.1"),
    ),
    "Host: localhost\r\n",
)
RESPONSES = messages(
    _any(
        *["HTTP/1.1 200 OK"] * 8,
        *("HTTP/1.1 200", "HTTP/1.0 200 OK", "HTTP/1.1  200 OK", "HTTP/1.1 20 OK", "HTTP/1.1 2000"),
        *("200 OK", "HTTP/1.1 404 a\rb", "HTTP/1.1 099 x", "HTTP/1.1 +20 x", "HTTP/2 200 OK"),
    )
)

# --- requests that two readers could read differently

HEAD: Final = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED: Final = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
_ODD: Final = (b"0x5", b"+5", b"0_5", b"-5", b" 5", b"", b"5 ", b"5;", b"f" * 20)
AMBIGUOUS: Final = [
    *(CHUNKED + size + b"\r\nhello\r\n0\r\n\r\n" for size in _ODD),
    CHUNKED + b"3\r\nabcdef\r\n0\r\n\r\n",
    CHUNKED + b"5\nhello\n0\n\n",
    CHUNKED + b'5;a="\n"\r\nhello\r\n0\r\n\r\n',
    CHUNKED + b"5\r\nhello\r\n0\r\n",
    CHUNKED + b"5\r\nhello\r\n",
    CHUNKED + b"5\r\nhel",
    CHUNKED + b"2\r\n{}\r\n0\r\nHost: evil\r\n\r\n",
    CHUNKED + b"2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n",
    CHUNKED + b"2\r\n{}\r\n0\r\n X: y\r\n\r\n",
    HEAD + b"Content-Length: 5\r\n\r\nhel",
    HEAD + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: identity, chunked\r\n\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    HEAD + b"host: evil\r\n\r\n",
    HEAD + b"Authorization: a\r\nAuthorization: b\r\n\r\n",
    HEAD + b"X: a\r\n b\r\n\r\n",
    HEAD + b"X: a\rHost: evil\r\n\r\n",
    HEAD + b"X: a\0b\r\n\r\n",
    HEAD + b"X\r\n\r\n",
    HEAD + b": y\r\n\r\n",
    HEAD + b"X: y\n\r\n",
    HEAD + b"X: y\r\n",
    HEAD + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
    HEAD + b"X: y\r\n" * 300 + b"\r\n",
    b"POST /mcp HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET http://evil.example/mcp HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /mcp x HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET\x0b/mcp\x0bHTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /mcp\r\n\r\n",
    b"GET /mcp HTTP/1.1\r\n\r\n",
    b"POST /mcp HTTP/1.1\r\nost: localhost\r\nContent-Length: 0\r\n\r\n",
    b"GET /mcp HTTP/2.0\r\n\r\n",
]
