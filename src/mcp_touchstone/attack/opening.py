"""Blind opens: what lies outside is opened, and nothing of it comes back."""

from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING, Final

from mcp_touchstone.attack.aimer import Shot
from mcp_touchstone.attack.bindings import Operation
from mcp_touchstone.attack.lookout import Lookout
from mcp_touchstone.attack.siege import Siege
from mcp_touchstone.attack.tally import DEATHS, shown
from mcp_touchstone.talk import Broken

if TYPE_CHECKING:
    from mcp_touchstone.reply import Reply

LOOKS: Final = frozenset({Operation.READ, Operation.LIST})

UNTOLD: Final = "this system tells nobody what is opened"

COMES_BACK: Final = "what is opened comes back: that is another finding"

EXPECTED: Final = "nothing outside is opened, be it only to refuse it then"


def nothing_outside(siege: Siege, threat: str, *groups: str) -> None:
    """Ask for what lies outside, and look what is opened there while it is refused.

    What a tool opens to change it shows in the trees.

    Raises:
        Broken: there was nothing to fire, or the server died of it again and again.
    """
    siege.begin()
    found: list[tuple[Shot, str, Reply]] = []
    fired = lost = 0
    with closing(Lookout(siege.field.beyond())) as lookout:
        if not lookout.works:
            siege.unseen(threat, UNTOLD)
            return
        for shot in _live(siege, groups):
            siege.fired.add(shot.payload.id)
            method, params = shot.call
            if not found:
                siege.mark()
            lookout.seen()  # up to here it was us
            reply = siege.wire.request(method, params, required=False)
            opened = lookout.seen()
            fired += 1
            if siege.leaks(reply):
                siege.unseen(threat, COMES_BACK)
                return
            if opened:
                found.append((shot, siege.field.shown(opened[0]), reply))
            if not reply.answered:
                lost += 1
                if found or lost >= DEATHS:
                    break
                siege.renew()
    if not fired:
        raise Broken("no payload could be fired")
    if lost >= DEATHS and not found:
        raise Broken(f"{lost} calls got no answer")
    told = [f"{where} was opened: {shown(shot.call)}" for shot, where, _ in found]
    siege.conclude(
        threat,
        f"{told[0]}; {len(found)} of {fired} calls" if told else "",
        expected=EXPECTED,
        passed=f"{fired} calls that ask for what lies outside",
        at=found[0][2] if found else None,
    )


def _live(siege: Siege, groups: Iterable[str]) -> Iterable[Shot]:
    shots = siege.shots(siege.payloads(*groups), LOOKS)
    return (shot for shot in shots if shot.live)
