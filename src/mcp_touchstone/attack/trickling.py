"""Input that comes slowly, in pieces, or not at all: what the server makes of it meanwhile."""

import threading
from typing import Any, Final

from mcp_touchstone.attack.barrage import Barrage
from mcp_touchstone.framing import encode
from mcp_touchstone.process import now, sleep
from mcp_touchstone.turns import turns

TEXT: Final = 'caf\u00e9 "touchstone"'
"""Has a character of two bytes, and characters that JSON escapes."""

MEMBER: Final = "com.example/touchstone"

PAUSE: Final = 0.1
"""Seconds between two pieces of a line, for a server that reads to read the first."""

DRIPPING: Final = 0.6
"""Seconds a line takes that comes byte by byte, at most."""

HALF: Final = b'{"jsonrpc":"2.0","id":"half a line","meth'

WINDOW: Final = 0.3
WINDOWS: Final = 3
"""Seconds that are looked at, and how often at most; the quietest time counts."""

BUSY: Final = 0.5
"""Share of the time a thread wants a core, from which on a server does not wait but works."""

WORKS: Final = 0.1
"""Share of the time it has to have had one as well: on a full machine all that wakes waits."""

STRICT: Final = "the same request gets no result when it comes at once"

UNTOLD: Final = "this system tells nobody who wants a core"


class Trickle(Barrage):
    """Sends little, and looks what becomes of it."""

    def piecemeal(self, threat: str, *groups: str) -> None:
        """Send requests in pieces; each has to be answered as if it had come at once."""
        if not self.siege.judges(threat):
            return
        self.ready()
        wire, missing, count = self.siege.wire, "", 0
        at = None
        meta = {**(wire.meta() if wire.modern else {}), MEMBER: TEXT}
        if wire.request(wire.everyday, meta=meta, required=False).result is None:
            self.siege.unseen(threat, STRICT)
            return
        for row, given in self.siege.deeds("drip split", *groups):
            self.siege.fired.add(row.id)
            message = wire.build(wire.everyday, meta=meta)
            raw = encode(message)
            cuts = _cuts(raw, given)
            pause = min(given.get("delay_ms", 1000 * PAUSE) / 1000, DRIPPING / len(cuts))
            asked = wire.say_in_pieces(message, cuts, pause)
            reply = wire.answer_to(asked, self.limit, patient=True)
            count += 1
            if reply.result is None:
                missing, at = f"{row.note}: {reply}", reply
                break
        self.siege.conclude(
            threat,
            missing,
            expected="a request that comes in pieces is answered as if it had come at once",
            passed=f"{count} requests in pieces, all answered",
            at=at,
        )

    def idle(self, threat: str, *groups: str) -> None:
        """Send nothing, and half a line; look whether the server waits or works."""
        if not self.siege.judges(threat):
            return
        self.ready()
        wire, busy = self.siege.wire, ""
        for row, given in self.siege.deeds("idle half-then-idle", *groups):
            self.siege.fired.add(row.id)
            if given["do"] == "half-then-idle":
                wire.say_raw(HALF, malformed=True, required=False)
            share = self._share()
            if share is None:
                self.siege.unseen(threat, UNTOLD)
                return
            if share > BUSY:
                busy = f"it wanted a core for {share:.0%} of the time ({row.note})"
                break
        self.siege.conclude(
            threat, busy, expected="a server that has nothing to do waits", passed="it waited"
        )
        self.ready()

    def _share(self) -> float | None:
        """Give the share of the time in which the server wanted a core, in its quietest moment."""
        shares = []
        for _ in range(WINDOWS):
            before, begun = self._wanted(), now()
            sleep(WINDOW)
            after, spent = self._wanted(), now() - begun
            if before is None or after is None:
                return None
            wanted, had = ((b - a) / spent for a, b in zip(before, after, strict=True))
            shares.append(wanted if had > WORKS else 0.0)
            if shares[-1] <= BUSY:
                break
        return min(shares)

    def _wanted(self) -> tuple[float, float] | None:
        """Give the seconds in which its threads wanted a core so far, and in which they had one."""
        known, ours = turns(self.siege.wire.process.pid), threading.get_native_id()
        found = [turn for thread, turn in known.items() if thread != ours]
        if not found:
            return None
        had = sum(turn.ran for turn in found)
        return had + sum(turn.waited for turn in found), had


def _cuts(raw: bytes, given: dict[str, Any]) -> list[int]:
    """Give where a line is cut."""
    if given["do"] == "drip":
        return list(range(1, len(raw)))
    middle = "\u00e9".encode() if given["at"] == "utf8-middle" else b'\\"'
    return [raw.index(middle) + 1]
