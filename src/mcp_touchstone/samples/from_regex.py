"""A text that matches a regular expression: a short, obvious one, or none. Pure.

It supports the patterns of real schemas: literals, classes, groups, alternatives, quantifiers,
anchors. It does not support look-ahead, look-behind and back-references. The pattern is read by the
parser of ``re``, which Hypothesis uses too.

It is the only place where a pattern of a server is matched. Python cannot stop a match, so its
steps are estimated before, and a pattern that may need too many is not matched.
"""

import functools
import re
from collections.abc import Iterable
from re import _parser  # type: ignore[attr-defined]
from typing import Any, Final

_CLASSES: Final = {
    "CATEGORY_DIGIT": (r"\d", "1"),
    "CATEGORY_NOT_DIGIT": (r"\D", "a"),
    "CATEGORY_SPACE": (r"\s", " "),
    "CATEGORY_NOT_SPACE": (r"\S", "a"),
    "CATEGORY_WORD": (r"\w", "a"),
    "CATEGORY_NOT_WORD": (r"\W", "-"),
}
"""Name of a class -> how it is written, and a character of it."""

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


_SET: Final = re.compile(r"\\.|\[\^?+\]?+(?:\\.|[^\]\\])*\]", re.DOTALL)
_KEPT: Final = re.compile(r"(\\.)|[\[&~|]", re.DOTALL)


class _GaveUp(Exception):  # noqa: N818  (an outcome)
    pass


@functools.lru_cache(1024)
def text_for(pattern: str) -> str | None:
    """Return a text that the pattern matches; None if the pattern is not supported."""
    if len(pattern) > LONGEST_PATTERN or pattern.count("(") > DEEPEST:
        return None
    try:
        compiled = _compiled(pattern)
        text = _written(_parser.parse(compiled.pattern))
        if _steps(pattern, len(text)) > MOST_STEPS or compiled.search(text):
            return text
    except (_GaveUp, re.error, OverflowError, ValueError):
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
    if "[" in _SET.sub("", pattern):  # a set without an end
        raise _GaveUp
    return re.compile(_SET.sub(lambda found: _calm(found[0]), pattern))


def _calm(part: str) -> str:
    if not part.startswith("["):
        return part  # a whole escape, so that its sign opens no set
    if "--" in part:
        raise _GaveUp
    opening = 2 if part.startswith("[^") else 1
    escaped = _KEPT.sub(lambda sign: sign[0] if sign[1] else "\\" + sign[0], part[opening:-1])
    return part[:opening] + escaped + part[-1]


def _written(parts: Iterable[tuple[Any, Any]]) -> str:
    return "".join(_text(str(kind), value) for kind, value in parts)


def _text(kind: str, value: Any) -> str:
    """Return a text for one part of a parsed pattern."""
    if kind.endswith("_REPEAT"):
        least, _, inner = value
        text = _written(inner)
        if least > LONGEST or len(text) * least > LONGEST_TEXT:
            raise _GaveUp
        return text * int(least)
    if kind in {"BRANCH", "SUBPATTERN"}:
        return _written(value[1][0] if kind == "BRANCH" else value[-1])
    if kind in {"ANY", "AT"}:
        return "a" if kind == "ANY" else ""
    if kind == "NOT_LITERAL":
        return _one_of([("NEGATE", None), ("LITERAL", value)])
    return _one_of(value if kind == "IN" else [(kind, value)])


def _one_of(members: list[tuple[Any, Any]]) -> str:
    """Return a character of a set: the first one, or a liked one if it is negated."""
    kind, value = str(members[0][0]), members[0][1]
    if kind == "NEGATE":
        for sign in _LIKED:
            if not any(_has(str(one), of, sign) for one, of in members[1:]):
                return sign
    elif kind == "CATEGORY":
        return _CLASSES[str(value)][1]
    elif kind in {"LITERAL", "RANGE"}:
        return chr(value if kind == "LITERAL" else value[0])
    raise _GaveUp


def _has(kind: str, value: Any, sign: str) -> bool:
    if kind == "CATEGORY":
        return re.fullmatch(_CLASSES[str(value)][0], sign) is not None
    low, high = value if kind == "RANGE" else (value, value)
    return bool(low <= ord(sign) <= high)
