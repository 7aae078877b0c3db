"""A text that matches a regular expression: a short, obvious one, or none. Pure.

It supports the patterns of real schemas: literals, classes, groups, alternatives, quantifiers,
anchors. It does not support look-ahead, look-behind and back-references.

It is the only place where a pattern of a server is matched. Python cannot stop a match, so its
steps are estimated before, and a pattern that may need too many is not matched.
"""

import functools
import re
from typing import Final

_CLASSES: Final = {"d": "1", "w": "a", "s": " ", "D": "a", "W": "-", "S": "a"}
_PLAIN: Final = {"t": "\t", "n": "\n", "r": "\r"}
_ANCHORS: Final = "bBAZz"
_LIKED: Final = "a1A0-_ ./:"
"""Characters tried first where a class excludes some."""

LONGEST: Final = 1000
"""Greatest number of repetitions in a supported pattern."""

LONGEST_PATTERN: Final = 2000
"""Greatest length of a supported pattern, in characters."""

LONGEST_TEXT: Final = 10_000
"""Greatest length of a text, in characters."""

DEEPEST: Final = 50
"""Greatest number of groups in a supported pattern; each takes some frames of the stack."""

MOST_STEPS: Final = 1_000_000
"""Greatest number of steps of a match; a text that needs more is returned unchecked."""


_SET: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_KEPT: Final = re.compile(r"(\\.)|[\[&~|]", re.DOTALL)


class _GaveUp(Exception):  # noqa: N818  (an outcome)
    pass


@functools.lru_cache(1024)
def text_for(pattern: str) -> str | None:
    """Return a text that the pattern matches; None if the pattern is not supported."""
    if len(pattern) > LONGEST_PATTERN or pattern.count("(") > DEEPEST:
        return None
    try:
        text = _Reader(pattern).read()
        compiled = _compiled(pattern)
        if _steps(pattern, len(text)) > MOST_STEPS or compiled.search(text):
            return text
    except (_GaveUp, re.error, IndexError, OverflowError, ValueError):
        pass
    return None


_CHOICE: Final = re.compile(r"[*+?|]|\{\d+,")
_REPEATED_GROUP: Final = re.compile(r"\)[*+?{]")


def _steps(pattern: str, length: int) -> int:
    """Estimate the worst number of steps of a backtracking search.

    Each choice can be tried at each place, for each place where the search starts.
    """
    if _REPEATED_GROUP.search(pattern):
        return 1 << min(length, 64)
    return int(max(2, length) ** min(1 + len(_CHOICE.findall(pattern)), 64))


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a foreign pattern, which may contain signs that Python reserves.

    In a set these are brackets and doubled signs: Python warns about them, so they are escaped.
    """
    return re.compile(_SET.sub(lambda found: _calm(found[0]), pattern))


def _calm(part: str) -> str:
    if not part.startswith("["):
        return part  # a whole escape, so that its sign opens no set
    if "--" in part:
        raise _GaveUp
    opening = 2 if part.startswith("[^") else 1
    escaped = _KEPT.sub(lambda sign: sign[0] if sign[1] else "\\" + sign[0], part[opening:-1])
    return part[:opening] + escaped + part[-1]


class _Reader:
    """Reader of a pattern, from left to right, that writes a matching text."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0

    def read(self) -> str:
        text = self._alternatives()
        if self._at < len(self._pattern):
            raise _GaveUp
        return text

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _take(self) -> str:
        char = self._pattern[self._at]
        self._at += 1
        return char

    def _alternatives(self) -> str:
        choices = [self._sequence()]
        while self._peek() == "|":
            self._take()
            choices.append(self._sequence())
        return choices[0]

    def _sequence(self) -> str:
        parts = []
        while self._peek() not in {"", "|", ")"}:
            parts.append(self._repeated(self._atom()))
        return "".join(parts)

    def _atom(self) -> str:
        char = self._take()
        if char in "^$":
            return ""
        if char == ".":
            return "a"
        if char == "[":
            return self._one_of()
        if char == "(":
            return self._group()
        if char == "\\":
            return self._escaped()
        if char in "*+?{":
            raise _GaveUp
        return char

    def _group(self) -> str:
        if self._peek() == "?":
            self._take()
            kind = self._take()
            if kind == "P":
                kind = self._take()
            if kind == "<" and self._peek() not in {"=", "!"}:
                while self._take() != ">":
                    pass
            elif kind != ":":
                raise _GaveUp
        text = self._alternatives()
        if self._take() != ")":
            raise _GaveUp
        return text

    def _escaped(self) -> str:
        char = self._take()
        if char in _ANCHORS:
            return ""
        if char in "xu":
            digits = 2 if char == "x" else 4
            code = self._pattern[self._at : self._at + digits]
            self._at += digits
            return chr(int(code, 16))
        if char.isdigit() or char in "pPk":
            raise _GaveUp
        return _CLASSES.get(char) or _PLAIN.get(char, char)

    def _one_of(self) -> str:
        start = self._at - 1
        negated = self._peek() == "^"
        if negated:
            self._take()
        first = ""
        while (char := self._take()) != "]" or not first:
            text = self._escaped() if char == "\\" else char
            first = first or text
        if not negated:
            return first
        only = _compiled(self._pattern[start : self._at])
        for char in _LIKED:
            if only.fullmatch(char):
                return char
        raise _GaveUp

    def _repeated(self, text: str) -> str:
        least = 1
        sign = self._peek()
        if sign and sign in "*?":
            self._take()
            least = 0
        elif sign == "+":
            self._take()
        elif sign == "{" and (found := re.match(r"\{(\d+)(?:,\d*)?\}", self._pattern[self._at :])):
            self._at += found.end()
            least = int(found[1])
        else:
            return text
        if self._peek() in {"?", "+"}:
            self._take()
        if least > LONGEST or len(text) * least > LONGEST_TEXT:
            raise _GaveUp
        return text * least
