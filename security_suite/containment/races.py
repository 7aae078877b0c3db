"""Paths that change between their check and their use.

Two names are exchanged all the time while calls are made, so a check before an open is not enough.
"""

import json
from collections.abc import Iterator
from typing import Final

from mcp_touchstone.security.suite import (
    CANARY,
    CHANGING,
    Area,
    AttackCall,
    AttackSession,
    Binding,
    Broken,
    NameExchanger,
    Operation,
    Payload,
    SafePath,
    attack,
    attack_calls,
    fill,
)

TREES = ("base",)


@attack("races-read", fixtures=TREES)
def reads_inside_whatever_is_exchanged(session: AttackSession) -> None:
    """No read leads outside while a folder or file is exchanged with a link."""
    race(session, "races-read", frozenset({Operation.READ}))


@attack("races-write", fixtures=TREES)
def writes_inside_whatever_is_exchanged(session: AttackSession) -> None:
    """Nothing is made or changed outside while a folder or file is exchanged with a link."""
    race(session, "races-write", CHANGING)


CALLS: Final = 200
"""Calls for each payload and tool."""

ENOUGH: Final = 3
"""Hits after which a race is won."""

AIMED: Final = {
    "read": (Operation.READ,),
    "create": (Operation.CREATE,),
    "write": (Operation.WRITE,),
    "patch": (Operation.EDIT,),
    "delete": (Operation.DELETE,),
}


def race(session: AttackSession, threat: str, operations: frozenset[Operation]) -> None:
    """Fire calls at names that are exchanged with links outwards, and judge a threat.

    Raises:
        Broken: no call met both sides of the exchange, so there was no race.
    """
    raced: list[int] = []

    def shots() -> Iterator[AttackCall]:
        for row in session.payloads("race.toctou", via="session"):
            swap = json.loads(fill(row.text, {**session.tree.names, "i": "{i}"}))
            if swap["do"] != "swap" or swap["op"] not in AIMED or "lf" not in _kinds(swap):
                continue
            for binding in session.bindings.of(*AIMED[swap["op"]]):
                if binding.operation in operations:
                    yield from _raced(session, row, swap, binding, raced)

    attack_calls(session, threat, shots(), enough=ENOUGH)
    if not raced:
        raise Broken("no payload could be fired")


def _kinds(swap: dict[str, str]) -> set[str]:
    """Return the link of an exchange as the fixture names it: both kinds lead outside."""
    return {"lf"} if swap["b"] in {"race/l", "race/lf"} else set()


def _raced(
    session: AttackSession, row: Payload, swap: dict[str, str], binding: Binding, raced: list[int]
) -> Iterator[AttackCall]:
    one, other = _laid(session, swap)
    root = str(session.tree.root)
    before = (session.tree.root / "race" / "kept").read_bytes()
    with NameExchanger(one, other) as exchange:
        for number in range(CALLS):
            name = swap["path"].replace("{i}", str(number))
            path = binding.spelled(name, root)
            call = binding.call(path, root, before=before, content=f"raced {number}\n")
            yield AttackCall(row, name, binding, call, live=True)
    raced.append(exchange.turns)


def _laid(session: AttackSession, swap: dict[str, str]) -> tuple[SafePath, SafePath]:
    """Make the exchanged names: a folder or file inside, and a link to a folder or file outside."""
    tree = session.tree
    top = tree.root / "race"
    top.remove()
    top.mkdir()
    decoy = tree.canaries.plant(f"{tree.root.name}/race/kept", Area.INSIDE).content
    (top / "kept").write_text(decoy)
    one, other = tree.root / swap["a"], tree.root / swap["b"]
    if swap["b"] == "race/l":
        one.mkdir()
        (one / CANARY).write_text(decoy)
        other.symlink_to(tree.outside)
    else:
        one.write_text(decoy)
        other.symlink_to(tree.outside / CANARY)
    return one, other
