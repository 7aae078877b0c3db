"""Paths that lead out of the root by their text.

Also blind opens: the server opens a file outside and returns nothing of it.
"""

from collections.abc import Iterable
from contextlib import closing
from typing import Any, Final

from mcp_touchstone.security.suite import (
    DEATHS,
    IN_PLACE,
    AttackCall,
    AttackSession,
    Broken,
    OpenWatcher,
    Operation,
    Place,
    Reply,
    attack,
    attack_paths,
    shown,
)

TREES = ("base", "siblings", "links")


@attack("traversal-dotdot", fixtures=TREES, place=Place.REUSED)
def keeps_climbs_inside(session: AttackSession) -> None:
    """Paths that climb with dot-dot neither read, list nor change anything outside the root."""
    attack_paths(session, "traversal-dotdot", "path.dotdot", operations=IN_PLACE)


@attack("traversal-absolute", fixtures=TREES, place=Place.REUSED)
def keeps_absolute_paths_inside(session: AttackSession) -> None:
    """Absolute paths neither read, list nor change anything outside the root."""
    attack_paths(session, "traversal-absolute", "path.absolute", operations=IN_PLACE)


@attack("traversal-sibling", fixtures=TREES, place=Place.REUSED)
def tells_the_root_from_its_siblings(session: AttackSession) -> None:
    """Folders whose names begin with the name of the root are outside."""
    attack_paths(session, "traversal-sibling", "path.sibling", operations=IN_PLACE)


@attack("traversal-two-readings", fixtures=TREES, place=Place.REUSED)
def opens_what_it_has_checked(session: AttackSession) -> None:
    """A path is opened as it was checked: links, dot-dot, blanks and quotes change nothing."""
    attack_paths(session, "traversal-two-readings", "path.canon-split", operations=IN_PLACE)


@attack("traversal-encoded", fixtures=TREES, place=Place.REUSED)
def decodes_no_path_behind_its_check(session: AttackSession) -> None:
    """Encoded climbs are treated as names, or are decoded before the check."""
    attack_paths(session, "traversal-encoded", "path.encoded", "path.uri", operations=IN_PLACE)


@attack("traversal-unicode", fixtures=TREES, place=Place.REUSED)
def normalises_no_path_behind_its_check(session: AttackSession) -> None:
    """Look-alikes of dots and slashes do not become dots and slashes after the check."""
    attack_paths(session, "traversal-unicode", "path.unicode", operations=IN_PLACE)


@attack("traversal-separators", fixtures=TREES, place=Place.REUSED)
def strips_no_path_into_a_climb(session: AttackSession) -> None:
    """A path is checked after filters have changed it; other separators lead nowhere outside."""
    attack_paths(
        session, "traversal-separators", "path.separators", "path.windows", operations=IN_PLACE
    )


@attack("traversal-expansion", fixtures=TREES, place=Place.REUSED)
def expands_no_path_out_of_the_root(session: AttackSession) -> None:
    """A tilde, a variable, a glob or a command in a path leads nowhere outside."""
    attack_paths(session, "traversal-expansion", "path.expansion", operations=IN_PLACE)


@attack("traversal-hostile-names", fixtures=TREES, lasts=True, place=Place.REUSED)
def survives_hostile_names(session: AttackSession) -> None:
    """Names with NUL or control characters and very long names end no process and leak nothing."""
    attack_paths(
        session, "traversal-hostile-names", "path.nul-control", "path.limits", operations=IN_PLACE
    )


@attack("traversal-opened", fixtures=TREES, place=Place.REUSED)
def opens_nothing_it_refuses(session: AttackSession) -> None:
    """A path outside the root is refused before it is opened."""
    nothing_outside(
        session, "traversal-opened", "path.dotdot", "path.absolute", "path.sibling", "link.read"
    )


LOOKS: Final = frozenset({Operation.READ, Operation.LIST})

UNKNOWN_OPENS: Final = "this system does not say which files are opened"

COMES_BACK: Final = "the answer contains the opened file: that is a finding of another threat"

EXPECTED: Final = "nothing outside is opened, be it only to refuse it then"


AGAIN: Final = 4
"""Repetitions of a call, each of which must open the same file."""


def opens_again(
    session: AttackSession, lookout: OpenWatcher, call: tuple[str, Any], path: object
) -> bool:
    """Return whether each repetition of a call opens a path again.

    What counts the files of a run opens its folders too, at any time, and may be another process.
    """
    for _ in range(AGAIN):
        lookout.seen()
        session.wire.request(*call, required=False)
        if path not in lookout.seen():
            return False
    return True


def nothing_outside(session: AttackSession, threat: str, *groups: str) -> None:
    """Ask for files outside, and judge whether the server opens one before it refuses it.

    Only reads and lists are sent: the trees show the files that a tool opens to change them.

    Raises:
        Broken: no payload could be fired, or several calls got no answer.
    """
    session.begin()
    found: list[tuple[AttackCall, str, Reply]] = []
    fired = lost = 0
    with closing(OpenWatcher(session.tree.beyond())) as lookout:
        if not lookout.works:
            session.judge.unseen(threat, UNKNOWN_OPENS)
            return
        for shot in _live(session, groups):
            session.payloads.fire(shot.payload.id)
            method, params = shot.call
            if not found:
                session.server.mark()
            lookout.seen()  # discards our own opens
            reply = session.wire.request(method, params, required=False)
            opened = lookout.seen()
            fired += 1
            if session.canaries.leaks(reply):
                session.judge.unseen(threat, COMES_BACK)
                return
            if opened and opens_again(session, lookout, shot.call, opened[0]):
                found.append((shot, session.tree.shown(opened[0]), reply))
            if not reply.answered:
                lost += 1
                if found or lost >= DEATHS:
                    break
                session.renew()
    if not fired:
        raise Broken("no payload could be fired")
    if lost >= DEATHS and not found:
        raise Broken(f"{lost} calls got no answer")
    messages = [f"{where} was opened: {shown(shot.call)}" for shot, where, _ in found]
    session.judge.conclude(
        threat,
        f"{messages[0]}; {len(found)} of {fired} calls" if messages else "",
        expected=EXPECTED,
        if_passed=f"{fired} calls that ask for what lies outside",
        at=found[0][2] if found else None,
    )


def _live(session: AttackSession, groups: Iterable[str]) -> Iterable[AttackCall]:
    shots = session.targeting.calls(session.payloads(*groups), LOOKS)
    return (shot for shot in shots if shot.live)
