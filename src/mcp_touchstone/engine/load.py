"""Calls in flight at the same time: does every answer belong to its call, and does memory grow?

A verdict never rests on time: answers a second and their percentiles are only reported. A server
fails for an answer that is that of another request, for a call that stays unanswered although a
later one was answered, and for memory that grows beyond its allowance.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.server_profile import ServerProfile
from mcp_touchstone.engine.process_pool import ProcessPool
from mcp_touchstone.engine.runner import survey
from mcp_touchstone.runtime import interrupts
from mcp_touchstone.runtime.timeouts import Pace
from mcp_touchstone.target.target import Target
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.framing import brief, object_in
from mcp_touchstone.wire.lifecycle import LOOSE

LANES: Final = (1, 8, 64)
"""Numbers of calls in flight."""

CALLS: Final = 334
SECONDS: Final = 20.0
"""The most calls of a lane, and the most seconds: about a thousand calls together."""

ALONE: Final = 3
"""How often each request is sent alone first."""

TOOLS: Final = 4
"""The most tools that are called."""

GROWTH: Final = 0.5
LEAST: Final = 32 * 2**20
"""Memory may grow by this share of the memory after the first lane, and by these bytes."""


@dataclass(frozen=True, slots=True)
class Lane:
    """What was measured with some calls in flight; durations in seconds."""

    flying: int
    calls: int
    seconds: float
    durations: tuple[float, ...]

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.durations) / self.seconds if self.seconds else 0.0

    def percentile(self, share: float) -> float:
        """Return the duration that this share of the answers did not exceed; 0 without one."""
        ranked = sorted(self.durations)
        return ranked[min(len(ranked) - 1, int(share * len(ranked)))] if ranked else 0.0


@dataclass(slots=True)
class Load:
    """The result.

    Attributes:
        revision: the revision of the calls; empty if it could not be opened.
        kinds: the requests that were sent.
        unchecked: those whose answer differs each time, so that it was only compared with others.
        lanes: the measurements.
        wrong: a sentence for each answer that belongs to another request.
        lost: number of calls without an answer.
        memory: bytes at rest, after the first lane and at the end; zeros if unknown.
    """

    profile: ServerProfile
    revision: str = ""
    kinds: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    lanes: list[Lane] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    lost: int = 0
    memory: tuple[int, int, int] = (0, 0, 0)

    @property
    def leaks(self) -> bool:
        """Whether the memory grew beyond its allowance."""
        _rest, before, after = self.memory
        return after - before > max(LEAST, GROWTH * before)

    @property
    def exit_code(self) -> int:
        """0 every answer was right, 1 one was not, or memory grew, 2 nothing was measured."""
        if not self.lanes:
            return 2
        return 1 if self.wrong or self.lost or self.leaks else 0


@dataclass(frozen=True, slots=True)
class _Kind:
    """A request, and the answers that it got alone."""

    name: str
    method: str
    params: Mapping[str, Any] | None
    alone: frozenset[str] = frozenset()


def load(target: Target) -> Load:
    """Measure one process of a server in its newest revision.

    Raises:
        LaunchError: the server cannot be started.
    """
    pace = Pace(target.timeout)
    with interrupts.held(), target.make_world() as world:
        with interrupts.allowed():
            profile, _ = survey(target, words=("callable-tool",), world=world)
        found = Load(profile)
        if not profile.spoken:
            return found
        pool = ProcessPool(target, world, pace)
        try:
            with interrupts.allowed(), pool.killed_on_error():
                pool.knows(profile)
                connection = pool.spawn_at_once(max(profile.spoken), "load")
                if connection.open().result is not None:
                    found.revision = connection.transcript.revision
                    _measure(found, connection)
        finally:
            pool.close()
        pool.check()
    return found


def _measure(found: Load, connection: Connection) -> None:
    rest = _memory(connection)
    spoken = found.profile.spoken[found.revision]
    tools = [one for one in spoken.found.get("callable-tool", []) if one.name][:TOOLS]
    plain = dict.fromkeys((connection.ping_method, *spoken.list_methods))
    kinds = [_Kind(method, method, None) for method in plain]
    kinds += [_Kind(f"{one.method} {one.name}", one.method, one.params) for one in tools]
    kinds = [_alone(connection, kind) for kind in kinds]
    found.kinds = [kind.name for kind in kinds]
    found.unchecked = [kind.name for kind in kinds if len(kind.alone) > 1]
    before = 0
    for flying in LANES:
        found.lanes.append(_lane(found, connection, kinds, flying))
        before = before or _memory(connection)
    found.memory = (rest, before, _memory(connection))


def _memory(connection: Connection) -> int:
    try:
        return connection.process.family.memory
    except LookupError:  # we did not start it
        return 0


def _alone(connection: Connection, kind: _Kind) -> _Kind:
    """Send a request some times by itself."""
    replies = [connection.request(kind.method, kind.params) for _ in range(ALONE)]
    alone = frozenset(_text(reply.value) for reply in replies if reply.value is not None)
    return _Kind(kind.name, kind.method, kind.params, alone)


def _text(answer: Mapping[str, Any]) -> str:
    """Return what an answer says, without its id and its ``_meta``."""
    said = dict(object_in(answer, "result") or object_in(answer, "error"))
    said.pop("_meta", None)
    return json.dumps(said, sort_keys=True)


def _lane(found: Load, connection: Connection, kinds: Sequence[_Kind], flying: int) -> Lane:
    """Keep some calls in flight, and check each answer."""
    transcript = connection.transcript
    open_, durations = dict[int, _Kind](), list[float]()
    turn, begun, sent = itertools.cycle(kinds), now(), 0
    start = len(transcript)

    def came() -> list[int]:
        return [line for line in open_ if transcript.answer_to(line) is not None]

    def take() -> None:
        for line in came():
            pair = transcript.answer_to(line)
            if pair is not None:
                durations.append(pair[0].at - transcript[line].at)
                _check(found, open_.pop(line), kinds, pair[1].value)

    while not connection.gone and (open_ or sent < CALLS):
        while len(open_) < flying and sent < CALLS and now() - begun < SECONDS:
            kind = next(turn)
            open_[connection.say(connection.build(kind.method, kind.params))] = kind
            sent += 1
        if not open_ or not connection.wait(came, connection.pace.reply):
            break
        take()
    seconds = now() - begun
    for line in list(open_):
        connection.answer_to(line, patient=True)
    take()
    if connection.gone or connection.ping().answered:
        found.lost += len(open_)
    strays = [
        message
        for entry in transcript.since(start)
        for message in entry.messages
        if message.role in LOOSE
    ]
    found.wrong += [f"an answer to no request: {brief(one.value, 80)}" for one in strays[:1]]
    return Lane(flying, sent, seconds, tuple(durations))


def _check(found: Load, kind: _Kind, kinds: Sequence[_Kind], answer: Mapping[str, Any]) -> None:
    """Compare an answer with those that this request and the others got alone.

    A tool whose answers differ each time may give that of another tool by chance.
    """
    said = _text(answer)
    if said in kind.alone:
        return
    others = [one for one in kinds if len(kind.alone) == 1 or one.method != kind.method]
    other = next((one.name for one in others if said in one.alone), "")
    if other:
        found.wrong.append(f"{kind.name} got the answer to {other}")


def lines(found: Load) -> list[str]:
    """Return the result as lines for a person."""
    if not found.lanes:
        return [f"not measured: {found.profile.trouble or 'the server was not opened'}"]
    rows = ["in flight   calls  answers/s     p50     p95     p99"]
    for lane in found.lanes:
        times = "".join(f"{lane.percentile(s) * 1000:>8.1f}" for s in (0.5, 0.95, 0.99))
        rows.append(f"{lane.flying:>9}{lane.calls:>8}{lane.rate:>11.1f}{times}")
    rest, before, after = (round(size / 2**20, 1) for size in found.memory)
    rows += ["milliseconds, of this machine in this run", f"requests: {', '.join(found.kinds)}"]
    known = f"{rest} MiB at rest, {before} MiB after the first calls, {after} MiB at the end"
    rows.append(f"memory: {known if any(found.memory) else 'unknown, as we did not start it'}")
    if found.unchecked:
        rows.append(
            f"answers differ each time, and were compared with others only: "
            f"{', '.join(found.unchecked)}"
        )
    rows += [f"WRONG: {one}" for one in dict.fromkeys(found.wrong)]
    rows += [f"LOST: {found.lost} calls without an answer"] if found.lost else []
    rows += ["LEAK: the memory grew beyond its allowance"] if found.leaks else []
    return rows
