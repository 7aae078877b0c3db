"""Messages that are almost right: their fault, its usual cure, the intended message. Pure.

Some servers write every message with the same fault. No client can talk to them, but their first
answer shows the fault. It is reported once. If the intended messages are certain, the server is
judged by them.
"""

import ast
import base64
import binascii
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from mcp_touchstone.wire.framing import Kind, brief, id_key, kind_of, loads

LONGEST: Final = 1024 * 1024
"""Longest line that is searched for a message, in bytes."""


class Slip(StrEnum):
    """A fault that a server makes in each of its messages."""

    ID_AS_TEXT = "the id as a string"
    ID_IN_A_BOX = "the id inside an array or object"
    ID_OTHER = "another id"
    ID_MISSING = "no id"
    MEMBERS = "misspelled members"
    ENCODED_TWICE = "JSON inside a JSON string"
    PYTHON_TEXT = "a Python value as text"
    EVENT_STREAM = "server-sent events"
    CONTROLS = "control characters around each message"
    BASE64 = "base64"
    TEXT_BEFORE = "text before the message, on its line"


READ_ON: Final = frozenset(Slip) - {Slip.ID_OTHER, Slip.ID_MISSING}
"""Faults that still allow each answer to be matched to its request."""

CURES: Final = {
    Slip.ID_AS_TEXT: "copy the id without changing its type",
    Slip.ID_IN_A_BOX: "copy the id without wrapping it",
    Slip.ID_OTHER: "copy the id of the request into its answer",
    Slip.ID_MISSING: "copy the id of the request into its answer",
    Slip.MEMBERS: "serialize with lower-case names (camelCase naming policy)",
    Slip.ENCODED_TWICE: "encode the message once: it is a string already",
    Slip.PYTHON_TEXT: "write json.dumps(message), not print(message)",
    Slip.EVENT_STREAM: "write plain lines: server-sent events are for HTTP",
    Slip.CONTROLS: "end each message with a line feed and nothing else",
    Slip.BASE64: "write the JSON itself",
    Slip.TEXT_BEFORE: "log to stderr",
}


@dataclass(frozen=True, slots=True)
class NearMiss:
    """A line that is almost an answer.

    Attributes:
        slip: its fault.
        words: the fault, for a person; completes "line 3 is".
        meant: the intended answer.
    """

    slip: Slip
    words: str
    meant: dict[str, Any]

    @property
    def cure(self) -> str:
        """The usual cure."""
        return CURES[self.slip]


def near_miss(raw: bytes, value: Any, request: Any) -> NearMiss | None:
    """Return the fault of a line that is almost the answer to a request; None for other lines.

    Args:
        raw: the line.
        value: its JSON value; None if it has none.
    """
    if not isinstance(request, dict) or isinstance(value, list):
        return None
    if not isinstance(value, dict):
        return _embedded_answer(raw, value, request)
    return None if "method" in value else _misaddressed(value, request.get("id"))


def _misaddressed(value: dict[str, Any], own: Any) -> NearMiss | None:
    """Return the fault of an object that is almost the answer to the request with an id."""
    odd = _misspelled(value)
    if odd:
        words = f"an answer with misspelled members: {', '.join(odd)}"
        return NearMiss(Slip.MEMBERS, words, _respelled(value))
    if not {"result", "error"} & set(value):
        return None
    if "id" not in value:
        return NearMiss(Slip.ID_MISSING, "an answer without an id", {**value, "id": own})
    other = value["id"]
    if id_key(own) == id_key(other):
        return None
    words = f"an answer under id {brief(other)} to a request under id {brief(own)}"
    return NearMiss(_id_slip(other, own), words, {**value, "id": own})


def _id_slip(other: Any, own: Any) -> Slip:
    if isinstance(other, str) and other == str(own):
        return Slip.ID_AS_TEXT
    return Slip.ID_IN_A_BOX if _boxed(other) == [own] else Slip.ID_OTHER


def _boxed(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _respelled(value: dict[str, Any]) -> dict[str, Any]:
    return {name.lower(): part for name, part in value.items()}


def _misspelled(value: dict[str, Any]) -> list[str]:
    names = {name.lower(): name for name in value}
    odd = [names[n] for n in ("jsonrpc", "id", "result", "error") if n in names and n not in value]
    return odd if "id" in names else []


def _embedded_answer(raw: bytes, value: Any, request: dict[str, Any]) -> NearMiss | None:
    for slip in _READERS:
        found = embedded(slip, raw, value)
        if _is_response(found) and id_key(found.get("id")) == id_key(request.get("id")):
            return NearMiss(slip, f"an answer, but {slip}", found)
    return None


def _is_response(value: Any) -> bool:
    return isinstance(value, dict) and kind_of(value) in {Kind.RESULT, Kind.ERROR}


def embedded(slip: Slip, raw: bytes, value: Any) -> Any:
    """Return the JSON object in a line that is none, if it has this fault; otherwise None."""
    read = _READERS.get(slip)
    if read is None or len(raw) > LONGEST:
        return None
    try:
        found = read(raw, value)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return None
    return found if isinstance(found, dict) else None


def _twice(_: bytes, value: Any) -> Any:
    return loads(value) if isinstance(value, str) else None


def _python(raw: bytes, _: Any) -> Any:
    if not raw.lstrip().startswith((b"{'", b"b'{", b'b"{')):
        return None
    found = ast.literal_eval(raw.decode().strip())
    return loads(found) if isinstance(found, bytes) else found


def _event(raw: bytes, _: Any) -> Any:
    return loads(raw.removeprefix(b"data:")) if raw.startswith(b"data:") else None


def _controls(raw: bytes, _: Any) -> Any:
    bare = raw.strip(_CONTROLS)
    return loads(bare) if bare != raw.strip() else None


_CONTROLS: Final = bytes(range(0x21))


def _base64(raw: bytes, _: Any) -> Any:
    try:
        return loads(base64.b64decode(raw.strip(), validate=True))
    except binascii.Error:
        return None


def _text_before(raw: bytes, _: Any) -> Any:
    start = raw.find(b'{"')
    return loads(raw[start:]) if start > 0 else None


_READERS: Final[dict[Slip, Callable[[bytes, Any], Any]]] = {
    Slip.ENCODED_TWICE: _twice,
    Slip.PYTHON_TEXT: _python,
    Slip.EVENT_STREAM: _event,
    Slip.CONTROLS: _controls,
    Slip.BASE64: _base64,
    Slip.TEXT_BEFORE: _text_before,
}
"""Fault of a line -> function that reads the message in it; the most specific faults first."""

EMBEDDED: Final = frozenset(_READERS)
"""Faults of a line, an event or a body that has a message in something else."""


def corrected(slip: Slip, raw: bytes, value: Any, waiting: Iterable[Any]) -> Any:
    """Return the intended message in a line of a server with this fault; None if it has no fault.

    Args:
        slip: the fault of the server.
        raw: the line.
        value: its JSON value; None if it has none.
        waiting: ids of the open requests, the oldest first.
    """
    if slip in _READERS:
        return None if isinstance(value, dict | list) else embedded(slip, raw, value)
    if not isinstance(value, dict) or "method" in value:
        return None
    if slip is Slip.MEMBERS:
        return _respelled(value) if _misspelled(value) else None
    return _readdressed(slip, value, list(waiting)) if "id" in value else None


def _readdressed(slip: Slip, value: dict[str, Any], waiting: list[Any]) -> Any:
    """Return a response with the id of the request it answers; None if it has that id already."""
    own = id_key(value["id"])
    if not {"result", "error"} & set(value) or any(id_key(one) == own for one in waiting):
        return None
    meant = (one for one in waiting if _id_slip(value["id"], one) is slip)
    return next(({**value, "id": one} for one in meant), None)


__all__ = ["CURES", "READ_ON", "NearMiss", "Slip", "corrected", "embedded", "near_miss"]
