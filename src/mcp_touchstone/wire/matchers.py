"""Small comparisons that several chapters share. Pure."""

import base64
import binascii
import itertools
import math
import re
import string
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from mcp_touchstone.wire.framing import brief, type_name

if TYPE_CHECKING:
    from mcp_touchstone.wire.reply import Reply

_GUESSED: Final = 40.0
"""Ids that differ in fewer bits than this can be guessed from a few others."""

VOLATILE: Final = frozenset({"_meta", "ttlMs", "nextCursor"})
"""Members of a result that may differ between two equal calls."""

_LABEL: Final = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
META_KEY: Final = re.compile(
    rf"(?:(?P<prefix>{_LABEL}(?:\.{_LABEL})*)/)?(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?"
)
"""A key of ``_meta`` (basic/index#meta): a prefix or none, then a name, which may be empty."""

OUTPUT_REFUSED: Final = re.compile(r"(MCP error -\d+: )?Output validation error: ")
"""The SDKs for TypeScript and Python begin an error so if the output of a tool does not fit."""

CLIENT_METHODS: Final = frozenset(
    {"ping", "roots/list", "sampling/createMessage", "elicitation/create"}
    | {f"tasks/{name}" for name in ("get", "result", "list", "cancel")}
)
"""Methods of server requests in a handshake revision; one without an id lacks it by mistake."""


def outcome(reply: "Reply") -> tuple[str, Any]:
    """Return the essential part of an answer: a result without volatile members, or a code."""
    if reply.value is None:
        return ("silence", None)
    if reply.result is not None:
        return ("result", {k: _stable(v) for k, v in reply.result.items() if k not in VOLATILE})
    return ("error", reply.code)


def _stable(value: Any) -> Any:
    """Sort a list of named items by name; the order of lists is not always specified."""
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return sorted(value, key=lambda item: str(item.get("name") or item.get("uri") or item))
    return value


def same_outcome(first: "Reply", second: "Reply") -> bool:
    """Return whether two answers are equivalent for a client."""
    return outcome(first) == outcome(second)


def refused_output(result: Mapping[str, Any]) -> str:
    """Return the error of an SDK that the output of its own tool is invalid; empty if it is none.

    Args:
        result: the result of ``tools/call``.
    """
    content = result.get("content")
    blocks = content if isinstance(content, list) and result.get("isError") is True else []
    texts = [block.get("text") for block in blocks if isinstance(block, dict)]
    said = texts[0] if len(texts) == 1 else None
    return said if isinstance(said, str) and OUTPUT_REFUSED.match(said) else ""


def guessable(ids: list[str]) -> bool:
    """Return whether the differing parts of ids are too short to be random."""
    rest = [one[_common(ids) :] for one in ids]
    end = _common([one[::-1] for one in rest])
    parts = ["".join(filter(str.isalnum, one[: len(one) - end])) for one in rest]
    used = set().union(*parts)
    alphabets = (string.digits, string.hexdigits[:16], string.digits + string.ascii_lowercase)
    size = next((len(one) for one in alphabets if used <= {*one}), 64)
    return max(map(len, parts)) * math.log2(size) < _GUESSED


def _common(texts: list[str]) -> int:
    """Return the length of the common prefix."""
    columns = zip(*texts, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda column: len({*column}) == 1, columns))


def normalised(uri: str) -> str:
    """Return a URI in the normal form of section 6.2 of RFC 3986: case, percent-encoding, path.

    A trailing slash is left out too: servers of files often write one, or none, for a folder.
    """
    try:
        split = urlsplit(uri)
    except ValueError:
        return uri
    place, path = split.netloc.lower(), quote(unquote(split.path), "/:@!$&'()*+,;=")
    return urlunsplit((split.scheme.lower(), place, path.rstrip("/"), split.query, split.fragment))


def covers(declared: Any, required: Any) -> bool:
    """Return whether capabilities contain every required member, at each depth.

    An empty elicitation means one by form (client/elicitation#capabilities).
    """
    if not isinstance(required, dict):
        return True
    return isinstance(declared, dict) and all(
        name in declared and covers(_in_full(name, declared[name]), _in_full(name, value))
        for name, value in required.items()
    )


def _in_full(capability: str, value: Any) -> Any:
    return {"form": {}} if capability == "elicitation" and value == {} else value


def wrong_types(
    value: Mapping[str, Any], types: Mapping[str, str], required: tuple[str, ...] = ()
) -> list[str]:
    """Return the members of an object that are missing, or have another JSON type than given.

    Args:
        value: the object.
        types: member -> JSON type name; a member that is absent is fine unless required.
        required: members that must be present.
    """
    found = [f"{name} is missing" for name in required if name not in value]
    for name, expected in types.items():
        if name in value and type_name(value[name]) != expected:
            found.append(f"{name} is {brief(value[name], 40)}, not {_article(expected)} {expected}")
    return found


def _article(noun: str) -> str:
    return "an" if noun[0] in "aeio" else "a"


def capability_faults(declared: Any, features: tuple[str, ...]) -> list[str]:
    """Return the known capabilities that are no objects, and the flags that are no booleans."""
    wrong = []
    for feature in features:
        if not isinstance(declared, dict) or feature not in declared:
            continue
        value = declared[feature]
        if not isinstance(value, dict):
            wrong.append(f"{feature} is {brief(value, 40)}")
            continue
        wrong += [
            f"{feature}.{flag} is {brief(value[flag], 40)}"
            for flag in ("listChanged", "subscribe")
            if flag in value and not isinstance(value[flag], bool)
        ]
    return wrong


def base64_fault(text: str) -> tuple[str, bool]:
    """Return the fault of base64 text, and whether a tolerant reader accepts it.

    Line breaks, missing padding and the URL-safe alphabet are tolerable; an empty text is valid.
    """
    if text.startswith("data:"):
        return "a data: URI in place of base64", False
    slips = []
    plain = "".join(text.split())
    if plain != text:
        slips.append("white space")
    if set(plain) & set("-_"):
        slips.append("the URL-safe alphabet")
        plain = plain.translate(str.maketrans("-_", "+/"))
    if len(plain) % 4:
        slips.append("missing padding")
        bare = plain.rstrip("=")
        plain = bare + "=" * (-len(bare) % 4)
    try:
        base64.b64decode(plain, validate=True)
    except (binascii.Error, ValueError):
        return "no base64", False
    return f"base64 with {' and '.join(slips)}" if slips else "", True
