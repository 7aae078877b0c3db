"""Names inside the root that are not served.

Files whose names only look denied must be served; otherwise the list denies too much.
"""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Final

from mcp_touchstone.security.suite import (
    CHANGING,
    NAMELESS,
    AttackSession,
    Binding,
    Broken,
    Call,
    Carriage,
    Operation,
    Payload,
    Place,
    SafePath,
    attack,
    attack_carrying,
    attack_paths,
    scripting,
    walking,
)

TREES = ("base", "siblings", "links", "denied")


@attack("deny-direct", fixtures=TREES, lasts=True, place=Place.REUSED)
def denies_by_name_at_every_depth(session: AttackSession) -> None:
    """A name on the deny list is not served at any depth."""
    attack_paths(session, "deny-direct", "deny.direct", "deny.dotenv")


@attack("deny-spelling", fixtures=TREES, lasts=True, place=Place.REUSED)
def denies_in_every_spelling(session: AttackSession) -> None:
    """No spelling of a path leads to a denied file."""
    attack_paths(session, "deny-spelling", "deny.spelling")


@attack("deny-case", fixtures=TREES, place=Place.REUSED)
def denies_in_every_case(session: AttackSession) -> None:
    """A denied name in capital letters leads to no denied file."""
    attack_paths(session, "deny-case", "deny.case")


@attack("deny-equivalence", fixtures=TREES, place=Place.REUSED)
def denies_what_is_taken_for_the_same(session: AttackSession) -> None:
    """Characters and endings that some systems ignore lead to no denied file."""
    attack_paths(session, "deny-equivalence", "deny.equivalence")


@attack("deny-alias", fixtures=TREES, place=Place.REUSED)
def denies_by_any_other_name(session: AttackSession) -> None:
    """Links and nested repositories lead to no denied path."""
    attack_paths(session, "deny-alias", "deny.alias")


@attack("deny-write-only", fixtures=TREES, place=Place.REUSED)
def keeps_build_output_unwritten(session: AttackSession) -> None:
    """Build output is read and not written."""
    attack_paths(session, "deny-write-only", "deny.writeonly", operations=CHANGING)
    if session.tree.denied.written and session.bindings.of(Operation.MOVE, Operation.COPY):
        attack_carrying(session, "deny-write-only", Carriage.DENIED, "deny.writeonly")


@attack("deny-near-miss", fixtures=(*TREES, "nearmiss"))
def serves_what_only_looks_denied(session: AttackSession) -> None:
    """Files whose names merely resemble denied ones can be read and made."""
    serve(session, "deny-near-miss", "deny.nearmiss")


@attack("deny-scripts", fixtures=(*TREES, "script"))
def denies_in_scripts_too(session: AttackSession) -> None:
    """A denied path in a script is refused like one in a call."""
    scripting.lead_to_denied(session, "deny-scripts", "script.path", "script.exec")


@attack("deny-walk", fixtures=("base", "siblings", "denied"))
def finds_nothing_denied(session: AttackSession) -> None:
    """No walk over the root returns a denied file; other attacks test walks through links."""
    walking.to_denied(session, "deny-walk", "walk.escape")


NAMED_OTHERWISE: Final = "the tools take only one kind of file, or name files in another way"
FREE: Final = "the server promised no deny list, so it may serve any file"


def serve(session: AttackSession, threat: str, *groups: str) -> None:
    """Read and make files that a guard may mistake for denied ones; each call must succeed.

    Raises:
        Broken: there was nothing to fire.
    """
    readers, refused, tried = session.begin(), [], 0
    makers = session.bindings.of(Operation.CREATE)
    if any(str(one.naming) for one in (*readers, *makers)):
        session.judge.unseen(threat, NAMED_OTHERWISE)
        return
    root = str(session.tree.root)
    for row, text in _near(session, *groups):
        path = session.tree.root / text
        if row.operation == "create":
            for binding in makers:
                session.payloads.fire(row.id)
                reply = session.wire.request(*_made(session, path, binding), required=False)
                tried += 1
                if not path.is_file():
                    where = session.tree.shown(path)
                    refused.append((f"{binding.tool} did not make {where}", reply))
        if row.operation != "read":
            continue
        plain = session.tree.plain(path)
        for binding in readers:
            method, params = binding.call(binding.spelled(text, root), root)
            session.payloads.fire(row.id)
            reply = session.wire.request(method, params, required=False)
            tried += 1
            if not session.canaries.returned(reply, plain):
                refused.append((f"{binding.tool or method} did not give {text}", reply))
    if not (tried or session.tree.denied.is_default):
        session.judge.unseen(threat, NAMELESS)
    elif not tried:
        raise Broken("no payload could be fired")
    elif refused and threat in session.claims.unpromised:
        session.judge.unseen(threat, FREE)
    else:
        session.judge.conclude(
            threat,
            f"{refused[0][0]}; {len(refused)} of {tried} calls" if refused else "",
            expected="a file on no list is served",
            if_passed=f"{tried} calls",
            at=refused[0][1] if refused else None,
        )


def _near(session: AttackSession, *groups: str) -> Iterator[tuple[Payload, str]]:
    """Yield the payloads whose names are not denied and can exist in the root."""
    for row, text in session.tree.each(session.payloads(*groups)):
        path = session.tree.root / text
        fits = all(not one.exists() or one.is_dir() for one in path.parents)
        if fits and not path.is_dir() and not session.tree.denied.lists(PurePosixPath(text).parts):
            yield row, text


def _made(session: AttackSession, path: SafePath, binding: Binding) -> Call:
    """Make the folder of a file, and return the call that makes the file."""
    path.parent.mkdir(exist_ok=True)
    root = str(session.tree.root)
    text = binding.spelled(path.relative_to(session.tree.root).as_posix(), root)
    return binding.call(text, root, content="touchstone\n")
