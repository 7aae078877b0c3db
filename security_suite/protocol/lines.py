"""Lines that are legal but rare, or no message at all."""

from mcp_touchstone.suite import Payload, Siege, Trickle, attack

ELSEWHERE = {"frame.smuggle-10"}
"""What another attack fires."""

SEPARATORS = {"frame.smuggle-06", "frame.smuggle-07", "frame.smuggle-08"}
"""Characters at which some readers end a line, raw inside a string."""

BROKEN = {"json.string-07", "json.string-08", "json.string-09"}
"""Strings that are none: a wrong escape, raw control characters."""


def _is_broken(row: Payload) -> bool:
    return row.is_bytes or row.id in BROKEN


@attack(
    "lines-pieces",
    "lines-broken",
    "lines-strings",
    "lines-depth",
    "lines-values",
    fixtures=("base",),
    lasts=True,
)
def lives_on_after_hostile_lines(siege: Siege) -> None:
    """No line ends the server, silences it, or leads it out of its root.

    Each class is fired in one piece; where that had an effect, the lines are fired one by one.
    """
    barrage = Trickle(siege)
    barrage.piecemeal("lines-pieces", "frame.timing")
    framing = barrage.lines("frame.smuggle", only=lambda row: row.id not in ELSEWHERE | SEPARATORS)
    separators = barrage.lines("frame.smuggle", only=lambda row: row.id in SEPARATORS)
    undecodable = barrage.lines("json.string", only=_is_broken)
    strings = barrage.lines("json.string", only=lambda row: not _is_broken(row))
    barrage.survive("lines-broken", [*barrage.lines("json.syntax"), *framing, *undecodable])
    barrage.survive("lines-strings", [*strings, *separators])
    barrage.survive("lines-depth", barrage.lines("json.depth"))
    values = barrage.lines("json.number", "rpc.type", "rpc.id", "load.progress")
    barrage.survive("lines-values", values)
