"""Sequences of calls that do harm although each call alone is harmless.

A walk is a random sequence of calls on files: one call prepares the effect of another. Each walk
has its own folder with a few names and a link outwards. Steps are drawn with a seed, and their
contents depend on the current tree. A walk that did harm is shortened step by step while it still
does harm.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mcp_touchstone.security.suite import (
    CANARY,
    CARRYING,
    SECRET,
    TEXT,
    Area,
    AttackCall,
    AttackSession,
    Binding,
    Call,
    Canary,
    Operation,
    Payload,
    Tier,
    attack,
    attack_calls,
)


@attack("sequences-escape", fixtures=("base",))
def escapes_by_no_sequence(session: AttackSession) -> None:
    """No sequence of calls leads outside, even if names become links in between."""
    wander(session, "sequences-escape")


STEPS: Final = 12
WALKS: Final = {Tier.CORE: 5, Tier.DEEP: 60}
"""Walks at a level, each of at most ``STEPS`` calls."""

NAMES: Final = ("a.txt", "b.txt", "d/a.txt", "d/b.txt")
LINK: Final = "link"

ROW: Final = Payload(
    id="walk",
    text="",
    via="session",
    operation="any",
    expect="deny",
    live=("posix",),
    note="a sequence of calls, as short as it gets",
)


@dataclass(frozen=True, slots=True)
class WalkStep:
    """One step of a walk.

    Attributes:
        binding: the tool; None for a step of ours, which replaces the name with a link outwards, as
            a checkout or another program of the user may do at any time.
        name: the path below the folder of the walk.
        to: the destination of a move or copy.
    """

    binding: Binding | None
    name: str
    to: str = ""


def wander(session: AttackSession, threat: str) -> None:
    """Make random walks, check after each step, and judge by the shortest walk that did harm."""
    readers = session.begin()
    walker = _Walker(session, readers)
    count = max(WALKS[tier] for tier in session.payloads.settings.tiers if tier in WALKS)
    calls = 0
    if not walker.has_tools:
        count = 0
    for number in range(count):
        chance = random.Random(f"{session.payloads.settings.seed} {number}")  # noqa: S311  (to be drawn again)
        steps = walker.drawn(chance)
        calls += len(steps)
        if walker.harm(steps):
            attack_calls(session, threat, walker.last(walker.shortened(steps)))
            return
    session.judge.conclude(
        threat,
        "",
        expected="no sequence of calls reaches a file that no single call may reach",
        if_passed=f"{count} walks, {calls} steps in all",
    )


class _Walker:
    def __init__(self, session: AttackSession, readers: Sequence[Binding]) -> None:
        self._session = session
        self._tree = session.tree
        wanted = {Operation.CREATE, Operation.WRITE, Operation.EDIT, Operation.UNDO}
        wanted |= {Operation.DELETE, *CARRYING}
        changing = [b for b in session.bindings.found if b.operation in wanted]
        self._number = 0
        self._folder = self._tree.root
        self._tools = [b for b in [*readers, *changing] if not self._is_led(b)]

    def _is_led(self, binding: Binding) -> bool:
        """Return whether one call through a link does harm: the attacks on links report that."""
        onto = [WalkStep(None, "b.txt"), WalkStep(binding, "a.txt", "b.txt")]
        calls = [[WalkStep(binding, LINK, "b.txt")]]
        if binding.operation in CARRYING:
            calls += [[WalkStep(binding, LINK, "new.txt")], onto]
        return any(self.harm(call) for call in calls)

    @property
    def has_tools(self) -> bool:
        """Whether a tool is left for the walks."""
        return bool(self._tools)

    def drawn(self, chance: random.Random) -> list[WalkStep]:
        """Draw the steps of a walk."""
        steps = []
        for _ in range(STEPS):
            name, to = chance.choice((*NAMES, LINK)), chance.choice(NAMES)
            ours = chance.random() < 1 / 6
            steps.append(WalkStep(None if ours else chance.choice(self._tools), name, to))
        return steps

    def harm(self, steps: Sequence[WalkStep]) -> bool:
        """Walk in a new folder; return whether a step did harm."""
        self._begin()
        for step in steps:
            reply_canaries = self._take(step)
            bad = reply_canaries or self._tree.damage() or self._tree.laundered(SECRET)
            if bad:
                self._end()
                return True
        self._end()
        return False

    def shortened(self, steps: list[WalkStep]) -> list[WalkStep]:
        """Remove steps while the walk still does harm."""
        length = next(
            n for n in range(1, len(steps) + 1) if n == len(steps) or self.harm(steps[:n])
        )
        steps = steps[:length]
        for step in list(steps):
            shorter = [one for one in steps if one is not step]
            if shorter and self.harm(shorter):
                steps = shorter
        return steps

    def last(self, steps: list[WalkStep]) -> Iterator[AttackCall]:
        """Repeat the walk up to its last step, and yield the last step as a call."""
        self._begin()
        before: list[Call | str] = [f"mkdir -p {self._folder}/d"]
        before.append(f"for n in {' '.join(NAMES)}; do echo line 1 > {self._folder}/$n; done")
        before.append(f"ln -s {self._tree.outside / CANARY} {self._folder}/{LINK}")
        *earlier, final = steps
        for step in earlier:
            before.append(self._told(step))
            self._take(step)
        if final.binding is None:
            before.append(self._told(final))
            self._take(final)
        else:
            where = self._where(final.name)
            call = self._call(final, final.binding)
            yield AttackCall(ROW, where, final.binding, call, True, tuple(before))
        self._end()

    # --- taking steps

    def _begin(self) -> None:
        self._number += 1
        self._folder = self._tree.root / f"walk{self._number}"
        (self._folder / "d").mkdir(parents=True)
        for suffix in ("", *self._session.bindings.suffixes()):
            for name in NAMES:
                path = self._folder / _named(name, suffix)
                path.write_bytes(self._tree.documents.holding(path, "line 1\n"))
            link = self._folder / _named(LINK, suffix)
            link.symlink_to(self._tree.outside / _named(CANARY, suffix))

    def _end(self) -> None:
        self._folder.remove()
        self._tree.restore()

    def _where(self, name: str) -> str:
        return f"{self._folder.name}/{name}"

    def _call(self, step: WalkStep, binding: Binding) -> Call:
        root = str(self._tree.root)
        path = self._folder / _named(step.name, binding.naming.suffix)
        held = path.read_bytes() if path.is_file() and not path.is_symlink() else b"line 1\n"
        suffix = binding.naming.suffix
        to = binding.in_style(self._where(_named(step.to, suffix)), root)
        where = binding.in_style(self._where(_named(step.name, suffix)), root)
        return binding.call(where, root, to=to, before=held, content="line 1\nwalked\n")

    def _take(self, step: WalkStep) -> list[Canary]:
        """Take a step; return the canaries that came back."""
        if step.binding is None:
            for suffix in ("", *self._session.bindings.suffixes()):
                path = self._folder / _named(step.name, suffix)
                path.remove()
                path.parent.mkdir(exist_ok=True)
                path.symlink_to(self._tree.outside / _named(CANARY, suffix))
            return []
        call = self._call(step, step.binding)
        reply = self._session.wire.request(*call, required=False)
        if not reply.answered:
            self._session.renew()
        return self._tree.canaries.found_in_message(reply.value or {}, {Area.OUTSIDE})

    def _told(self, step: WalkStep) -> Call | str:
        if step.binding is not None:
            return self._call(step, step.binding)
        return f"ln -sfn {self._tree.outside / CANARY} {self._folder / step.name}"


def _named(name: str, suffix: str) -> str:
    """Return a name with a suffix in place of ``TEXT``; unchanged if there is no suffix."""
    if not suffix:
        return name
    return name.removesuffix(TEXT) + suffix
