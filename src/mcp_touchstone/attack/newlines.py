"""Files whose lines end in every way, a hunk for each, and what may come of it. Values."""

from dataclasses import dataclass
from typing import Final

MARK: Final = "\\ No newline at end of file\n"


@dataclass(frozen=True, slots=True)
class Case:
    """One file and one hunk.

    Attributes:
        name: as payloads call it.
        before: what the file holds.
        hunk: what is applied, without headers.
        fits: what the file may hold afterwards, besides what it held; a refusal is always right.
    """

    name: str
    before: bytes
    hunk: str
    fits: frozenset[bytes]


def _case(name: str, before: bytes, hunk: str, *fits: bytes) -> Case:
    return Case(name, before, hunk, frozenset(fits))


_TWO: Final = "@@ -2,1 +2,1 @@\n-two\n+TWO\n"

CASES: Final = (
    _case(
        "crlf-file lf-diff",
        b"one\r\ntwo\r\nthree\r\n",
        "@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n",
        b"one\r\nTWO\r\nthree\r\n",
    ),
    _case(
        "lf-file crlf-diff",
        b"one\ntwo\nthree\n",
        "@@ -1,3 +1,3 @@\r\n one\r\n-two\r\n+TWO\r\n three\r\n",
        b"one\nTWO\nthree\n",
    ),
    _case(
        "mixed-file",
        b"one\ntwo\r\nthree\n",
        "@@ -1,1 +1,1 @@\n-one\n+ONE\n",
        b"ONE\ntwo\r\nthree\n",
        b"ONE\r\ntwo\r\nthree\n",
    ),
    _case("cr-only-file", b"one\rtwo\rthree\r", _TWO, b"one\rTWO\rthree\r"),
    _case(
        "no-newline-kept",
        b"one\ntwo",
        f"@@ -2,1 +2,1 @@\n-two\n{MARK}+TWO\n{MARK}",
        b"one\nTWO",
    ),
    _case(
        "no-newline-added",
        b"one\ntwo",
        f"@@ -2,1 +2,1 @@\n-two\n{MARK}+TWO\n",
        b"one\nTWO\n",
    ),
    _case("no-newline-wrong", b"one\ntwo\n", f"@@ -2,1 +2,1 @@\n-two\n{MARK}+TWO\n{MARK}"),
    _case(
        "marker-twice",
        b"one\ntwo\nthree\n",
        f"@@ -1,3 +1,3 @@\n one\n{MARK}-two\n+TWO\n three\n{MARK}",
    ),
    _case("bom-file", b"\xef\xbb\xbfone\ntwo\n", _TWO, b"\xef\xbb\xbfone\nTWO\n"),
    _case(
        "u2028-in-line",
        "a\u2028b\x85c\x0bd\x0ce\ntwo\n".encode(),
        _TWO,
        "a\u2028b\x85c\x0bd\x0ce\nTWO\n".encode(),
    ),
    _case(
        "trailing-spaces",
        b"one  \ntwo\n",
        "@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n",
        b"one  \nTWO\n",
    ),
    _case(
        "tabs",
        b"\tone\ntwo\n",
        "@@ -1,2 +1,2 @@\n         one\n-two\n+TWO\n",
        b"\tone\nTWO\n",
    ),
    _case("utf16-file", "one\ntwo\n".encode("utf-16"), _TWO, "one\nTWO\n".encode("utf-16")),
    _case("latin1-file", b"caf\xe9\ntwo\n", _TWO, b"caf\xe9\nTWO\n"),
)
"""Byte for byte: a line that the hunk does not name stays as it is."""
