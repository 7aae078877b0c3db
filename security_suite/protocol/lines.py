"""Lines that are legal but rare, or no message at all."""

from typing import Any, Final

from mcp_touchstone.security.suite import AttackSession, LineAttack, Payload, attack, encode

ELSEWHERE = {"frame.smuggle-10"}
"""Payloads of another attack."""

SEPARATORS = {"frame.smuggle-06", "frame.smuggle-07", "frame.smuggle-08"}
"""Characters at which some readers end a line, raw inside a string."""

BROKEN = {"json.string-07", "json.string-08", "json.string-09"}
"""Invalid strings: a wrong escape or raw control characters."""


TEXT: Final = 'caf\u00e9 "touchstone"'
"""Has a character of two bytes, and characters that JSON escapes."""

MEMBER: Final = "com.example/touchstone"

PAUSE: Final = 0.1
"""Seconds between two pieces of a line, enough for a server to read the first one."""

DRIPPING: Final = 0.6
"""Most seconds to send a line byte by byte."""

STRICT: Final = "the same request gets no result when it comes at once"


def _is_broken(row: Payload) -> bool:
    return row.is_bytes or row.id in BROKEN


@attack(
    "lines-pieces",
    "lines-broken",
    "lines-strings",
    "lines-depth",
    "lines-values",
    fixtures=("base",),
    unwatched=True,
    lasts=True,
)
def lives_on_after_hostile_lines(session: AttackSession) -> None:
    """No line ends the server, silences it, or leads it out of its root.

    Each class is fired in one piece; where that had an effect, the lines are fired one by one.
    """
    line_attack = LineAttack(session)
    _answers_pieces(line_attack, "lines-pieces", "frame.timing")
    framing = line_attack.lines(
        "frame.smuggle", only=lambda row: row.id not in ELSEWHERE | SEPARATORS
    )
    separators = line_attack.lines("frame.smuggle", only=lambda row: row.id in SEPARATORS)
    undecodable = line_attack.lines("json.string", only=_is_broken)
    strings = line_attack.lines("json.string", only=lambda row: not _is_broken(row))
    line_attack.survive("lines-broken", [*line_attack.lines("json.syntax"), *framing, *undecodable])
    line_attack.survive("lines-strings", [*strings, *separators])
    line_attack.survive("lines-depth", line_attack.lines("json.depth"))
    values = line_attack.lines("json.number", "rpc.type", "rpc.id", "load.progress")
    line_attack.survive("lines-values", values)


def _answers_pieces(line_attack: LineAttack, threat: str, *groups: str) -> None:
    """Send requests in pieces; each must be answered as if it were sent in one piece."""
    session = line_attack.session
    if not session.judge.covers(threat):
        return
    line_attack.ready()
    wire, missing, count = session.wire, "", 0
    at = None
    meta = {**(wire.meta() if wire.modern else {}), MEMBER: TEXT}
    if wire.request(wire.ping_method, meta=meta, required=False).result is None:
        session.judge.unseen(threat, STRICT)
        return
    for row, given in session.payloads.actions("drip split", *groups):
        session.payloads.fire(row.id)
        message = wire.build(wire.ping_method, meta=meta)
        raw = encode(message)
        cuts = _cuts(raw, given)
        pause = min(given.get("delay_ms", 1000 * PAUSE) / 1000, DRIPPING / len(cuts))
        asked = wire.say_raw(encode(message), message, required=False, cuts=cuts, pause=pause)
        reply = wire.answer_to(asked, line_attack.limit, patient=True)
        count += 1
        if reply.result is None:
            missing, at = f"{row.note}: {reply}", reply
            break
    session.judge.conclude(
        threat,
        missing,
        expected="a request that comes in pieces is answered as if it had come at once",
        if_passed=f"{count} requests in pieces, all answered",
        at=at,
    )


def _cuts(raw: bytes, given: dict[str, Any]) -> list[int]:
    """Return the positions at which a line is cut."""
    if given["do"] == "drip":
        return list(range(1, len(raw)))
    middle = "\u00e9".encode() if given["at"] == "utf8-middle" else b'\\"'
    return [raw.index(middle) + 1]
