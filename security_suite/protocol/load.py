"""Floods of requests, long lines, unread output and many failures.

No judgement depends on the speed of the server. The attacks check whether every request is answered
in the end, whether the server keeps running, and which resources it still uses afterwards.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from mcp_touchstone.security.suite import (
    NOBODY,
    PIPE,
    AttackSession,
    Breach,
    LineAttack,
    LineHit,
    LinePayload,
    OutputStream,
    Reply,
    ResourceUsage,
    Role,
    Transcript,
    attack,
    cpu_share,
    encode,
    id_key,
    now,
    sleep,
)

FLOOD = 1000
STORM = 200


@attack(
    "load-idle",
    "load-oversize",
    "load-memory",
    "load-flood",
    "load-unread",
    "load-cancel",
    "load-stderr",
    "load-descriptors",
    fixtures=("base",),
    lasts=True,
)
def bears_too_much_at_once(session: AttackSession) -> None:
    """A server still answers after floods, long lines, unread output and many cancellations."""
    load = Load(session)
    load.idle("load-idle", "frame.timing")
    load.swell("load-oversize", "load-memory", load.lines("frame.oversize"))
    load.flood("load-flood", FLOOD)
    load.unread("load-unread")
    load.storm("load-cancel", STORM)
    load.spend("load-descriptors")
    load.deaf("load-stderr")


PATIENCE: Final = 60.0
"""Seconds for all answers to a flood."""

CLEAN_EXIT: Final = 8 << 20
"""Bytes of a line above which a server may exit, if its status is 0."""

COPIES: Final = 16
SPARE: Final = 128 << 20
"""Allowed memory: ``COPIES`` times the size of a message, plus ``SPARE`` bytes."""

UNREAD: Final = 384 << 10
"""Bytes of unread answers: more than any pipe and our own reader buffer."""

FAILURES: Final = 100
"""Failing calls in a row."""

FULL: Final = 5.0
"""Seconds to wait until an unread pipe no longer fills."""

REASONS: Final = ("a\nb", "\x1b[2J", "x" * 10_000)
"""Reasons of cancellations; a server may write them into a log."""

ODD_IDS: Final[tuple[Any, ...]] = (None, [], {}, 1.5, True, "", "no such id", -1)
"""Ids that are unknown or invalid."""

LOOKS: Final = 12
"""Equal fill levels of a pipe, 0.05 seconds apart, after which it counts as full."""

HALF: Final = b'{"jsonrpc":"2.0","id":"half a line","meth'

BUSY: Final = 0.5
"""Share of the time that a thread wants a core, above which a server counts as busy."""

UNKNOWN_CORES: Final = "this system does not say whether somebody wants a core"

Requests = list[dict[str, Any]]


class Load(LineAttack):
    """Sends many or large messages, and checks the answers and the resources of the server."""

    _first: int | None = None
    """The line of the first request that has no answer or several."""

    # --- idling

    def idle(self, threat: str, *groups: str) -> None:
        """Send nothing, then half a line; judge whether the server stays idle."""
        if not self.session.judge.covers(threat):
            return
        self.ready()
        wire, busy = self.session.wire, ""
        for row, given in self.session.payloads.actions("idle half-then-idle", *groups):
            self.session.payloads.fire(row.id)
            if given["do"] == "half-then-idle":
                wire.say_raw(HALF, malformed=True, required=False)
            share = cpu_share(wire.process.pid, BUSY)
            if given["do"] == "half-then-idle":
                wire.say_raw(b"\n", malformed=True, required=False)
            if share is None:
                self.session.judge.unseen(threat, UNKNOWN_CORES)
                return
            if share > BUSY:
                busy = f"it wanted a core for {share:.0%} of the time ({row.note})"
                break
        self.session.judge.conclude(
            threat, busy, expected="a server that has nothing to do waits", if_passed="it waited"
        )
        self.ready()

    # --- floods

    def flood(self, threat: str, count: int, *, others: Sequence[bytes] = ()) -> None:
        """Send many requests in one piece, other lines among them, and wait for every answer."""
        if not self.session.judge.covers(threat):
            return
        self.ready()
        asked = self._requests(count)
        lines = [encode(request) for request in asked]
        for n, line in enumerate(others):
            lines.insert((n + 1) * len(lines) // (len(others) + 1), line)
        owed = self._say(asked, b"".join(lines))
        self._conclude(threat, owed, f"{len(asked)} requests at once, all answered once")

    def storm(self, threat: str, count: int) -> None:
        """Cancel many requests and unknown ids at once, then check that the server answers."""
        if not self.session.judge.covers(threat):
            return
        self.ready()
        wire = self.session.wire
        line, asked, data = len(wire.transcript), self._requests(count), b""
        sent: dict[Any, int] = {}
        for n, request in enumerate(asked):
            params = {"requestId": request["id"], "reason": REASONS[n % len(REASONS)]}
            odd = {"requestId": ODD_IDS[n % len(ODD_IDS)], "reason": n}
            data += encode(request) + encode(_cancelled(params)) + encode(_cancelled(odd))
            said = wire.transcript.said
            sent[id_key(request["id"])] = said(
                encode(request), request, required=False, modern=wire.modern
            )
        wire.process.pipes.post(data + encode(_cancelled({})) + encode(_cancelled(None)))
        hit = self.pulse()
        answers: dict[Any, list[int]] = {id_key(request["id"]): [] for request in asked}
        for entry in wire.transcript.since(line):
            for message in entry.messages:
                key = id_key(message.value.get("id")) if _answers(message.role) else None
                if key in answers:
                    answers[key].append(entry.n)
        twice = [(sent[key], *lines) for key, lines in answers.items() if len(lines) > 1]
        shown = Reply(twice[0][0], entry=twice[0][2]) if twice else None
        found = hit.what if hit is not None else ""
        found = found or (f"{len(twice)} requests were answered more than once" if twice else "")
        self.session.judge.conclude(
            threat,
            found,
            expected="no request is answered twice, and the server keeps running",
            if_passed=f"{count} requests and {2 * count + 2} cancellations",
            at=shown or (hit.at if hit is not None else None),
            also=twice[0][:2] if twice else (),
        )

    def unread(self, threat: str) -> None:
        """Leave answers unread until the server can write no more, then read them all."""
        if not self.session.judge.covers(threat):
            return
        self.ready()
        wire = self.session.wire
        line = len(wire.transcript)
        method = "tools/list" if "tools" in self.session.spoken.capabilities else wire.ping_method
        if not self._is_sound(method):
            self.session.judge.unseen(
                threat, f"without load, {method} does not get one answer of one line"
            )
            return
        size = max(60, *(len(e.raw) for e in wire.transcript.since(line)))
        count = min(4000, UNREAD // size + 8)
        asked = [wire.build(method) for _ in range(count)]
        wire.process.pipes.neglect(OutputStream.STDOUT)
        owed = self._say(asked, b"".join(encode(request) for request in asked))
        self._until_full(OutputStream.STDOUT)
        gone = wire.gone
        wire.process.pipes.heed()
        what = f"{count} answers of {size} bytes, read when the pipe was full"
        if gone:
            self._conclude(threat, lambda: owed() or "left while nobody read its answers", what)
        else:
            self._conclude(threat, owed, what)

    def _is_sound(self, method: str) -> bool:
        """Return whether a request gets one answer of one line; load may be why nothing comes."""
        wire = self.session.wire
        key = id_key(wire.transcript[wire.request(method, required=False).asked].value["id"])
        is_alive = wire.ping(required=False).answered
        answers = [
            entry
            for entry in wire.transcript
            for message in entry.messages
            if _answers(message.role) and id_key(message.value.get("id")) == key
        ]
        return not is_alive or (len(answers) == 1 and not answers[0].spread)

    def deaf(self, threat: str) -> None:
        """Stop reading stderr while calls fail that the server logs there."""
        if not self.session.judge.covers(threat):
            return
        self.ready()
        wire = self.session.wire
        before, sample = wire.process.pipes.stderr_bytes, 20
        for request in self._failing(sample):
            wire.answer_to(wire.say(request, required=False))
        wire.quiet()
        each = (wire.process.pipes.stderr_bytes - before) // sample
        if not each:
            self.session.judge.conclude(
                threat,
                "",
                expected=GOES_ON,
                if_passed=f"{sample} failing calls write nothing there",
            )
            return
        wire.process.pipes.neglect(OutputStream.STDERR)
        count = min(3000, 5 * FILLED // each + sample)
        asked = self._failing(count)
        owed = self._say(asked, b"".join(encode(request) for request in asked))
        found = owed()
        wire.process.pipes.heed()
        if found:
            found += f" while nobody read its stderr: {each} bytes for each failing call"
        self.session.judge.conclude(
            threat,
            found,
            expected=GOES_ON,
            if_passed=f"{count} failing calls, {each} bytes each",
            at=self._first,
        )

    def _say(self, asked: Requests, data: bytes) -> Callable[[], str]:
        wire = self.session.wire
        line = len(wire.transcript)
        said = {
            id_key(request["id"]): wire.transcript.said(
                encode(request), request, required=False, modern=wire.modern
            )
            for request in asked
        }
        wire.process.pipes.post(data)
        return self._owed(said, line)

    def _owed(self, said: Mapping[Any, int], line: int) -> Callable[[], str]:
        """Return a function that waits for all answers and returns what went wrong, in words."""

        def wait() -> str:
            transcript = self.session.wire.transcript
            owed, twice, at = set(said), 0, line
            until = now() + PATIENCE
            while True:
                entries = transcript.since(at)
                at += len(entries)
                for entry in entries:
                    for message in entry.messages:
                        key = id_key(message.value.get("id")) if _answers(message.role) else None
                        if key in said and key not in owed:
                            twice += 1
                            self._first = self._first or said[key]
                        owed.discard(key)
                left = transcript.ended or transcript.overflow
                if twice or not owed or left or now() > until:
                    break
                if self.session.wire.wait(partial(_longer, transcript, at), self.limit) is None:
                    break
            if twice:
                return f"{twice} requests were answered more than once"
            if owed:
                why = self.session.wire.absence(self.limit)
                self._first = min(said[key] for key in owed)
                return f"{len(owed)} of {len(said)} requests: {why}"
            return ""

        return wait

    def _conclude(self, threat: str, owed: Callable[[], str], passed: str) -> None:
        found = owed()
        hit = None if found else self.pulse()
        if hit is not None:
            found = f"afterwards: {hit.what}"
        self.session.judge.conclude(
            threat,
            found,
            expected="every request is answered once, and the server keeps running",
            if_passed=passed,
            at=self._first if hit is None else hit.at,
        )

    def _until_full(self, stream: OutputStream) -> None:
        process = self.session.wire.process
        until, before, same = now() + FULL, -1, 0
        while now() < until and process.running and same < LOOKS:
            sleep(0.05)
            there = process.pipes.unread(stream)
            same = same + 1 if there == before and there != 0 else 0
            before = -1 if there is None else there

    # --- requests

    def _requests(self, count: int) -> Requests:
        """Return many requests: probes, and every tenth a call that reads a plain file."""
        wire, root = self.session.wire, str(self.session.tree.root)
        made = []
        for n in range(count):
            if self.reader is not None and n % 10 == 9:  # noqa: PLR2004  (every tenth)
                made.append(wire.build(*self.reader.call(self._spelled("ok.txt"), root)))
            else:
                made.append(wire.build(wire.ping_method))
        return made

    def _failing(self, count: int) -> Requests:
        """Return many failing calls: reads of missing files, and calls of unknown tools."""
        wire, root = self.session.wire, str(self.session.tree.root)
        made = []
        for n in range(count):
            if self.reader is not None and n % 2:
                path = self._spelled(f"no-such-file-{n}.txt")
                made.append(wire.build(*self.reader.call(path, root)))
            else:
                made.append(wire.build("tools/call", {"name": f"{NOBODY}_{n}", "arguments": {}}))
        return made

    def _spelled(self, path: str) -> str:
        assert self.reader is not None  # noqa: S101  (asked before)
        return self.reader.spelled(path, str(self.session.tree.root))

    # --- resources

    def swell(self, survival: str, memory: str, fired: Sequence[LinePayload]) -> None:
        """Send long lines; judge whether the server keeps running and how much memory it takes."""
        self.ready()
        gauge = ResourceUsage(self.session.wire.process.pid)
        before, process = gauge.peak(), self.session.wire.process
        self.survive(survival, fired, mild=_leaves, because=LEFT)
        if not self.session.judge.covers(memory):
            return
        if not self.session.judge.covers(survival):
            for shell in fired:
                self.session.wire.say_raw(shell.data + b"\n", malformed=True, required=False)
            self.pulse()
        after = gauge.peak() if process is self.session.wire.process else None
        if before is None or after is None:
            self.session.judge.unseen(memory, "the memory of the server cannot be measured")
            return
        sent = max(payload.size for payload in fired)
        allowed = COPIES * sent + SPARE
        taken = after - before
        if taken > allowed:
            again = self._taken_again(fired)
            taken = taken if again is None else min(taken, again)
        what = f"{taken >> 20} MiB more for a line of {sent >> 20} MiB"
        self.session.judge.conclude(
            memory,
            what if taken > allowed else "",
            expected=f"at most {allowed >> 20} MiB more",
            if_passed=what,
        )

    def _taken_again(self, fired: Sequence[LinePayload]) -> int | None:
        """Measure again on a new process: one measurement near a limit proves nothing."""
        self.session.renew()
        self._begin()
        gauge = ResourceUsage(self.session.wire.process.pid)
        before, process = gauge.peak(), self.session.wire.process
        for payload in fired:
            self.session.wire.say_raw(payload.data + b"\n", malformed=True, required=False)
        self.pulse()
        after = gauge.peak() if process is self.session.wire.process else None
        return None if before is None or after is None else after - before

    def spend(self, threat: str) -> None:
        """Make calls that fail, and judge whether descriptors stay open afterwards."""
        if not self.session.judge.covers(threat):
            return
        self.ready()
        gauge = ResourceUsage(self.session.wire.process.pid)
        counts = []
        for _ in range(3):
            asked = self._failing(FAILURES)
            self._say(asked, b"".join(encode(request) for request in asked))()
            self.pulse()
            counts.append(gauge.descriptors())
        first, second, third = counts
        if first is None or second is None or third is None:
            self.session.judge.unseen(threat, "the open descriptors cannot be counted")
            return
        grown = min(second - first, third - second)
        counted = f"{first}, {second}, {third} descriptors after {FAILURES} failing calls each"
        self.session.judge.conclude(
            threat,
            counted if grown >= FAILURES // 4 else "",
            expected="a failed call closes the files it opened",
            if_passed=counted,
        )


FILLED: Final = PIPE if sys.platform == "linux" else 65_536
"""Bytes after which an unread pipe is full."""

GOES_ON: Final = "requests are answered whether anybody reads stderr or not"


LEFT: Final = "it left with status 0 over a line that is longer than servers have to bear"


def _cancelled(params: Mapping[str, Any] | None) -> dict[str, Any]:
    bare = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    return bare if params is None else {**bare, "params": dict(params)}


def _longer(transcript: Transcript, than: int) -> bool:
    return len(transcript) > than


def _answers(role: Role) -> bool:
    return role in {Role.ANSWER, Role.SECOND_ANSWER, Role.ORPHAN}


def _leaves(hit: LineHit) -> Breach | None:
    """Return the severity of an exit after a long line: a clean exit is only a note."""
    big = hit.guilty is not None and hit.guilty.size > CLEAN_EXIT
    return Breach.NOTE if big and "status 0" in hit.what else None
