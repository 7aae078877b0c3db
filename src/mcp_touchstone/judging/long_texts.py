"""Long messages outside ASCII: whoever decodes pieces of them, each by itself, changes a character.

What is told by it is the id of a request, which comes back in the answer. A server may refuse a
long message. So only a server that answers as many bytes in ASCII is judged.
"""

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from mcp_touchstone.connection.connection import Connection, Reply
from mcp_touchstone.connection.pending import first_response
from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.wire.framing import encode, object_in

LETTER: Final = "編"
ASCII: Final = "x"

CUTS: Final = tuple(kib << 10 for kib in (1, 4, 8, 16, 64))
"""Bytes after which programs often cut."""

LETTERS: Final = (1, 5_600, 22_200)
"""Letters of an id; after the first, an answer has more than 16 and 64 KiB."""

SHORTER: Final = LETTERS[:-1]
"""Those of a request in less than 64 KiB: some readers of lines take no more, and then stop."""

SIZES: Final = (1 << 10, 1 << 16)
"""Characters of ids that are answered, if as long a request with a short id is."""

MORE: Final = 1 << 10
"""Bytes of a request besides a long id, at most."""

BETWEEN_WRITES: Final = 0.05
"""Seconds between the two writes of a message, so that they arrive apart."""


def long_ids(talk: Conversation) -> Iterator[str]:
    """Yield long ids, as long as the server answers as long a request with a short id."""
    for size in SIZES:
        if not _read(talk.wire, ASCII, size + MORE).answered:
            _end_if_it_stopped(talk.wire)
            return
        yield ASCII * size


def judge_reading(talk: Conversation, clause: str) -> None:
    """Judge that requests in two writes are read, the first of which ends inside a character."""
    for cut in CUTS:
        reply = _read(talk.wire, LETTER, cut, cuts=(cut,))
        if not reply.answered:
            if not talk.wire.gone and _read(talk.wire, ASCII, cut, cuts=(cut,)).answered:
                expected = f"the answer to {cut >> 10} KiB and more in CJK, which are read in two"
                talk.judge.expect(reply, clause, False, f"{expected} parts, as to ASCII")
            else:
                _end_if_it_stopped(talk.wire)
            return


def _end_if_it_stopped(wire: Connection) -> None:
    """End a server that answers nothing after a long line: it may stop there, and owes nothing."""
    if not wire.gone and not wire.ping(required=False).answered:
        wire.end(polite=False)


def _read(wire: Connection, letter: str, size: int, *, cuts: Sequence[int] = ()) -> Reply:
    message = _padded(wire, letter, size)
    line = wire.say_raw(encode(message), message, malformed=True, cuts=cuts, pause=BETWEEN_WRITES)
    return first_response(wire, line)[0]


def _padded(wire: Connection, letter: str, size: int) -> dict[str, Any]:
    """Return a request whose id begins a byte before ``size`` bytes, after a text of letters.

    Whoever reads these bytes alone, and decodes them, changes the first letter of the id.
    """
    bare = wire.build(wire.ping_method, id=f"{letter * 4}-{next(wire.ids)}")
    known = {**object_in(bare, "params", "_meta")}
    own = bare.pop("id")

    def filled(text: str) -> dict[str, Any]:
        return {**bare, "params": {"_meta": {**known, "touchstone-text": text}}, "id": own}

    room = size - 1 - encode(filled("")).index(own.encode())
    count, rest = divmod(room, len(letter.encode()))
    return filled(letter * count + "x" * rest)


def judge_writing(talk: Conversation, clause: str, letters: Sequence[int] = LETTERS) -> None:
    """Judge that long ids in CJK come back as they were sent.

    The requests are in ASCII, with escapes: so what changes an id is the writing of the answer.
    The same id comes with and without a byte before it, as not every cut is inside a character.

    Args:
        letters: numbers of letters, of which a server answers the first.
    """
    escaped = len(json.dumps(LETTER)) - len('""')
    for count, before in itertools.product(letters, ("-", "--")):
        own = f"{next(talk.wire.ids)}{before}"
        reply, got = _written(talk.wire, own + LETTER * count)
        if not reply.answered and (
            count == letters[0]
            or talk.wire.gone
            or not _written(talk.wire, own + ASCII * escaped * count)[0].answered
        ):
            talk.judge.unseen(clause, f"an id of {count:,} letters does not come back")
            return
        size = count * len(LETTER.encode()) >> 10
        expected = f"an answer of {size} KiB and more in CJK, with the id of the request"
        if not talk.judge(clause, reply.answered, expected=expected, actual=got or reply, at=reply):
            return


def _written(wire: Connection, text: str) -> tuple[Reply, str]:
    """Ask with an id in escapes; return the answer, and how the id of another one differs."""
    message = wire.build(wire.ping_method, id=text)
    raw = json.dumps(message).encode() + b"\n"
    reply, came = first_response(wire, wire.say_raw(raw, message, malformed=True))
    other = came[0][1].value.get("id") if came else None
    if not isinstance(other, str):
        return reply, ""
    pairs = enumerate(zip(text, other, strict=False))
    at = next((n for n, (ours, theirs) in pairs if ours != theirs), min(len(text), len(other)))
    return reply, f"an id that differs from character {at + 1:,} on: {other[at : at + 8]!r}"
