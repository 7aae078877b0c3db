"""Drive the scenarios that share a process, one behind the other. Prints nothing.

What can be judged is not known at once: a lane is fed while it runs.
"""

import threading
from collections.abc import Callable, Iterable, Iterator

from mcp_touchstone import revision as rev
from mcp_touchstone.client import willing
from mcp_touchstone.connection import Connection
from mcp_touchstone.conversation import Broken, Conversation
from mcp_touchstone.dice import Dice
from mcp_touchstone.doorway import Turn
from mcp_touchstone.plan import share
from mcp_touchstone.pool import Exhausted, Pool
from mcp_touchstone.process import LaunchError, now
from mcp_touchstone.recon import Dossier
from mcp_touchstone.results import Slot, unasked
from mcp_touchstone.scenario import Scenario
from mcp_touchstone.verdict import Outcome

OnEvent = Callable[[str, object], None]
"""(what, subject): ``recon`` and ``learnt`` Dossier, ``plan`` list of slots, ``start`` and ``done``
Slot."""


class Lane:
    """Slots that share a process, in the order they come; what may hurt it waits for the end."""

    def __init__(self) -> None:
        self._slots: list[Slot] = []
        self._harmful: list[Slot] = []
        self._closed = False
        self._changed = threading.Condition()

    def add(self, slots: Iterable[Slot]) -> None:
        """Take more slots."""
        with self._changed:
            for slot in slots:
                (self._harmful if _hurts(slot) else self._slots).append(slot)
            self._changed.notify_all()

    def close(self) -> None:
        """Nothing more will come."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def __iter__(self) -> Iterator[Slot]:
        """Give slot after slot; wait for more until the lane is closed."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._slots or self._closed)
                if not self._slots:
                    break
                slot = self._slots.pop(0)
            yield slot
        yield from self._harmful


def _hurts(slot: Slot) -> bool:
    return isinstance(slot.case, Scenario) and slot.case.hurts


def drive(
    lane: Iterable[Slot],
    pool: Pool,
    dossier: Dossier,
    on_event: OnEvent,
    stop: threading.Event,
    *,
    dice: Dice | None = None,
) -> None:
    """Run one lane to its end, or until ``stop`` is set; then let its process go."""
    slot = None
    for slot in lane:
        if stop.is_set():
            return
        on_event("start", slot)
        begun = now()
        _run_slot(slot, pool, dossier, stop, dice or Dice())
        slot.seconds = now() - begun
        slot.done = not stop.is_set()
        on_event("done", slot)
    if slot is not None and isinstance(slot.case, Scenario) and not slot.case.fresh:
        pool.release(slot.revision, share(slot))


def _run_slot(slot: Slot, pool: Pool, dossier: Dossier, stop: threading.Event, dice: Dice) -> None:
    scenario = slot.case
    assert isinstance(scenario, Scenario)  # noqa: S101  (lanes hold scenarios only)
    wire_revision = slot.revision
    if scenario.legacy:
        wire_revision = dossier.legacy[-1] if dossier.legacy else rev.LATEST_LEGACY
    try:
        talk = _begin(slot, scenario, wire_revision, pool, dossier)
    except (LaunchError, Exhausted) as error:
        slot.judgements = [unasked(slot, clause, str(error)) for clause in slot.clauses]
        return
    talk.dice = dice
    connection = talk.wire
    connection.transcript.scenario = scenario.id
    before = connection.client
    if scenario.willing:
        connection.use(willing(connection.revision))
    why = "the scenario ended without judging this clause"
    try:
        scenario.body(talk)  # type: ignore[arg-type]  # an attack gets its siege
    except Broken as broken:
        why = str(broken)
    except LaunchError as error:
        why = str(error)
    except Exception as error:  # noqa: BLE001  (a fault of a scenario must not lose the run)
        why = our_fault(error)
    slot.fired = frozenset(talk.fired)
    connection.use(before)
    if stop.is_set():
        return
    talk.broken(why)
    slot.judgements = talk.judgements
    if not scenario.fresh:
        _check_alive(slot, connection, pool)
    for used in talk.connections:
        if scenario.fresh or used is not connection:
            pool.retire(used)


def _begin(
    slot: Slot, scenario: Scenario, revision: str, pool: Pool, dossier: Dossier
) -> Conversation:
    """Give a scenario its process and its hands.

    Raises:
        LaunchError, Exhausted: no process can be had.
    """
    if scenario.fixtures:
        from mcp_touchstone.attack import grounds  # noqa: PLC0415  (the gate says why)

        return grounds.siege(pool, slot, dossier)
    turn = Turn.LONG if scenario.lasts else Turn.OTHER

    def spawn() -> Connection:
        return pool.spawn(revision, scenario.name, turn=turn)

    if not scenario.fresh:
        connection = pool.shared(slot.revision, share(slot))
    elif scenario.apart:
        connection = pool.apart(revision, scenario.name, turn=turn)
    else:
        connection = spawn()
    return Conversation(
        connection,
        scenario,
        slot.clauses,
        dossier=dossier,
        revision=slot.revision,
        spawn=spawn,
    )


def _check_alive(slot: Slot, connection: Connection, pool: Pool) -> None:
    """Ask once more; a dead or deaf process is blamed on the scenario that left it so.

    Its silence is a finding only where the scenario has none, and never after it has left: what
    the end of a process is worth, a rule of its own judges.
    """
    found = {Outcome.FAIL, Outcome.BROKEN, Outcome.WARN}
    blamed = connection.gone or any(j.outcome in found for j in slot.judgements)
    reply = connection.probe(required=not blamed)
    connection.transcript.scenario = ""
    if not reply.answered:
        slot.left = str(reply)
        if connection.gone:
            return
        pool.replace(slot.revision, share(slot))


def our_fault(error: Exception) -> str:
    """Say that a suite file went wrong, and where: no blame on the server."""
    frame = error.__traceback__
    while frame and frame.tb_next:
        frame = frame.tb_next
    line = f"{frame.tb_frame.f_code.co_filename}:{frame.tb_lineno}" if frame else "?"
    return f"a fault of mcp-touchstone itself: {type(error).__name__}: {error} ({line})"
