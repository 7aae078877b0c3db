"""Attacks on the protocol itself: lines to send, and a check that the server still answers.

A refusal proves nothing, and neither does silence after a line that is no message. These effects
count: the process ended or no longer answers, a message inside another message was executed or
sent back as a message, or protected bytes were returned.
"""

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_touchstone.bindings.argument_roles import ArgumentRole
from mcp_touchstone.bindings.binding import Binding, Operation
from mcp_touchstone.bindings.canary import Area, Canary
from mcp_touchstone.catalog.clause import Breach
from mcp_touchstone.judging.used_server import Broken
from mcp_touchstone.runtime.safe_path import SafePath
from mcp_touchstone.security import line_payloads
from mcp_touchstone.security.attack_session import AttackSession
from mcp_touchstone.security.line_payloads import LinePayload, Names
from mcp_touchstone.security.payload import CANARY, Payload
from mcp_touchstone.security.repro_calls import early, talk
from mcp_touchstone.security.tally import shown, whose
from mcp_touchstone.transport.process import LaunchError
from mcp_touchstone.wire.framing import Kind, encode
from mcp_touchstone.wire.reply import Reply
from mcp_touchstone.wire.transcript import Entry, Source

PATIENCE: Final = 10.0
"""Seconds within which a server must answer a basic request after an attack."""

LOSSES: Final = 3
"""Number of processes that end under one threat after which no more lines are sent."""

ALIVE: Final = "the server keeps running and answers"
NOBODY: Final = "touchstone_no_such_tool"


@dataclass(frozen=True, slots=True)
class LineHit:
    """One forbidden effect.

    Attributes:
        guilty: the line that caused it; None if unknown.
        at: the reply or entry that shows it; None without one.
    """

    what: str
    guilty: LinePayload | None = None
    at: Reply | Entry | None = None


class LineAttack:
    """Sends lines to one server and judges threats by their effects."""

    def __init__(self, session: AttackSession, *, opened: bool = True) -> None:
        """Open the connection, unless ``opened`` is false.

        The attack is ``unwatched``: its lines break rules on purpose.
        """
        self.session = session
        self._readers: list[Binding] = []
        self._given: list[Canary] = []
        self._left = False
        if opened:
            self._begin()

    def _begin(self) -> None:
        self._readers = self.session.begin()
        self._given = self._climbed()

    def _climbed(self) -> list[Canary]:
        """Return the canaries that a plain ``../`` path leaks; that is another finding."""
        if self.reader is None:
            return []
        root, outside = str(self.session.tree.root), self.session.tree.outside.name
        call = self.reader.call(self.reader.spelled(f"../{outside}/{CANARY}", root), root)
        return self._leaked(self.session.wire.request(*call, required=False).value or {})

    def _leaked(self, value: Any) -> list[Canary]:
        return self.session.tree.canaries.found_in_message(value, {Area.OUTSIDE})

    @property
    def reader(self) -> Binding | None:
        """A binding of a tool that reads files by path; None without one."""
        known = (one for one in self._readers if one.tool and one.has(ArgumentRole.PATH))
        return next(known, None)

    @property
    def limit(self) -> float:
        """Seconds within which the server must answer after an attack."""
        return max(PATIENCE, self.session.pace.reply)

    def ready(self) -> None:
        """Prepare a process that answers for the next threat; start a new one if needed."""
        if (
            self.session.wire.gone
            or self.session.wire.transcript.overflow
            or self.pulse() is not None
        ):
            self.session.renew()
            self._begin()
        self.session.server.mark()

    def pulse(self) -> LineHit | None:
        """Send a basic request and read a plain file; return the failure, or None."""
        wire = self.session.wire
        reply = wire.ping(seconds=self.limit, required=False)
        if not reply.answered:
            return LineHit(reply.why, at=reply)
        if self._readers and self.session.begin() != self._readers:
            return LineHit("it answers, but a plain file can no longer be read", at=reply)
        return None

    # --- lines

    def names(self) -> Names:
        """Return the values of the names in braces of a line on this server."""
        wire, tree = self.session.wire, self.session.tree
        meta = wire.meta() if wire.modern else None
        reader = self.reader
        if reader is None:
            harmless = self.session.spoken.harmless
            return Names(meta, harmless[0] if harmless else NOBODY, "path", known=tree.names)
        path = next(slot.pointer for slot in reader.slots if slot.role is ArgumentRole.PATH)
        _, params = reader.call(reader.naming.placed("ok.txt"), str(tree.root))
        flat = len(path) == 1
        others = {k: v for k, v in params["arguments"].items() if k != path[0]} if flat else {}
        prefix = "" if reader.spelled("x", "/r") == "x" else str(tree.root)
        return Names(meta, reader.tool, str(path[0]), others, prefix, tree.names)

    def lines(
        self, *groups: str, only: Callable[[Payload], bool] = lambda _row: True
    ) -> list[LinePayload]:
        """Return the lines of some classes of payloads that ``only`` accepts."""
        names, wire = self.names(), self.session.wire
        return [
            line_payloads.load(row, names, (next(wire.ids), next(wire.ids)))
            for row in self.session.payloads(*groups, via="line")
            if only(row)
        ]

    def said(self, note: str, method: str, params: Mapping[str, Any] | None = None) -> LinePayload:
        """Return a line with a well-formed request."""
        return line_payloads.plain(method, note, self.session.wire.build(method, params))

    # --- sending

    def survive(
        self,
        threat: str,
        fired: Sequence[LinePayload],
        *,
        mild: Callable[[LineHit], Breach | None] = lambda _hit: None,
        because: str = "",
    ) -> None:
        """Send lines one after the other and judge a threat by their effects.

        Args:
            mild: returns the most severe breach that a hit counts as; None for no limit.
            because: the reason for ``mild``.
        """
        if not self.session.judge.covers(threat):
            return
        if not fired:
            raise Broken("no payload could be fired")
        self.ready()
        self._left = False
        hit = self._volley(fired)
        more = 0
        if hit is not None and len(fired) > 1:
            hit, more = self._narrowed(fired, hit)
        found = ""
        if hit is not None:
            found = hit.what + (f": {hit.guilty}" if hit.guilty else "")
            found += f"; {more} more payloads have this effect" if more else ""
        passed = f"{len(fired)} payloads, {sum(shell.size for shell in fired):,} bytes"
        if self._left:
            passed += "; other effects are findings of another threat: a plain path has them too"
        self.session.judge.conclude(
            threat,
            found,
            expected=ALIVE,
            if_passed=passed,
            at=hit.at if hit is not None else None,
            mild=mild(hit) if hit is not None else None,
            because=because,
            script=self._script(hit.guilty, forged=False) if hit and hit.guilty else "",
        )

    def _volley(self, fired: Iterable[LinePayload]) -> LineHit | None:
        wire, tree = self.session.wire, self.session.tree
        line = len(wire.transcript)
        for payload in fired:
            self._send_line(payload)
        hit = self.pulse()
        for entry in wire.transcript.since(line):
            if entry.source is Source.THEM and entry.reading is not None:
                for canary in self._leaked(entry.reading.value):
                    self._left = self._left or canary in self._given
                    if canary not in self._given:
                        return LineHit(f"{whose(canary)} came back", at=entry)
        if damage := tree.damage():
            tree.restore(damage)
            return LineHit(str(damage[0]))
        return hit

    def _send_line(self, payload: LinePayload) -> None:
        self.session.payloads.fire(payload.id)
        self.session.wire.say_raw(payload.data + b"\n", malformed=True, required=False)

    def _narrowed(self, fired: Iterable[LinePayload], hit: LineHit) -> tuple[LineHit, int]:
        """Send the lines one by one; return the smallest guilty one and the number of others.

        A line is guilty if it has the effect alone, on an unused process.
        """
        guilty: list[LineHit] = []
        places = []
        try:
            for shell in sorted(fired, key=lambda payload: payload.size):
                self.ready()
                if self._volley([shell]) is None:
                    continue
                self.session.renew()
                self._begin()
                place = self.session.wire, len(self.session.wire.transcript)
                found = self._volley([shell])
                if found is not None:
                    places.append(place)
                    guilty.append(LineHit(found.what, shell, found.at))
                    if len(guilty) >= LOSSES:
                        break
        except (Broken, LaunchError):
            pass
        if not guilty:
            return hit, 0
        self.session.server.go_back(*places[0])
        return guilty[0], len(guilty) - 1

    def _script(self, line: LinePayload, *, forged: bool) -> str:
        wire = self.session.wire
        return talk(self.session.scene, line, wire.build(wire.ping_method), forged=forged)

    # --- messages in messages

    def carried(self, threat: str, fired: Sequence[LinePayload], markers: set[str]) -> None:
        """Send lines with messages inside strings and objects, and judge a threat.

        A result with the id of an inner message is a finding: the inner message was executed, or
        sent back, as a message.

        Args:
            markers: ids used only by the inner messages.
        """
        if not self.session.judge.covers(threat):
            return
        self.ready()
        guilty, at = None, None
        deaths = 0
        for payload in fired:
            line = len(self.session.wire.transcript)
            self._send_line(payload)
            ended = self.pulse()
            at = next((e for e, one in self._results(line) if one.get("id") in markers), None)
            if at is not None:
                guilty = payload
                break
            if ended is not None:
                deaths += 1
                if deaths >= LOSSES:
                    break
                self.ready()
        found = f"text inside a message was read as a message: {guilty}" if guilty else ""
        died = f"{deaths} payloads ended or silenced the server, which lines-broken judges"
        if guilty is None and deaths >= LOSSES:
            raise Broken(died)
        self.session.judge.conclude(
            threat,
            found,
            expected="text inside a message is not read as a message",
            if_passed=f"{len(fired)} payloads" + (f"; {died}" if deaths else ""),
            at=at,
            script=self._script(guilty, forged=True) if guilty else "",
        )

    def _results(self, line: int) -> Iterator[tuple[Entry, Any]]:
        """Yield the results after a line, each with its entry."""
        for entry in self.session.wire.transcript.since(line):
            for message in entry.messages:
                if message.kind is Kind.RESULT:
                    yield entry, message.value

    # --- calls that must not be executed

    def unseen(self, threat: str) -> None:
        """Send calls without an id or with a null id; judge whether they made their files."""
        if not self.session.judge.covers(threat):
            return
        self.ready()
        wire, tried, effects = self.session.wire, 0, []
        for binding in self._makers():
            for without, id_ in (("without an id", {}), ("with null for an id", {"id": None})):
                params, path = self._making(binding)
                call = ("tools/call", params)
                request = {"jsonrpc": "2.0", **id_, "method": call[0], "params": params}
                line = wire.say_raw(encode(request), malformed=True, required=False)
                hit, tried = self.pulse(), tried + 1
                answered = any(one.get("id") is None for _, one in self._results(line))
                if path.exists() and not answered:
                    effects.append(f"{path.name} was made by a call {without}: {shown(call)}")
                if hit is not None:
                    effects.append(hit.what)
                    self.ready()
        self.session.judge.conclude(
            threat,
            effects[0] if effects else "",
            expected="what nobody can be answered for is not done",
            if_passed=f"{tried} calls made nothing",
        )

    def early(self, threat: str) -> None:
        """Send a call that makes a file before the handshake; judge whether it made the file."""
        wire = self.session.wire
        if wire.modern:
            raise Broken("there is no handshake in this revision")
        params, path = self._making(self._makers()[0])
        call = ("tools/call", params)
        line = wire.say(wire.build(*call), required=False)
        reply = wire.answer_to(line, wire.pace.startup)
        kind = "folder" if path.is_dir() else "file"
        self.session.judge.conclude(
            threat,
            f"a {kind} was made before initialize was sent: {shown(call)}" if path.exists() else "",
            expected="nothing is made before the handshake",
            if_passed="the call made nothing",
            at=reply,
            script=early(self.session.scene, call),
        )

    def _makers(self) -> list[Binding]:
        found = self.session.bindings.of(Operation.CREATE, Operation.MKDIR)
        makers = list({binding.tool: binding for binding in found if binding.tool}.values())
        if not makers:
            raise Broken("no tool makes files")
        return makers[:3]

    def _making(self, binding: Binding) -> tuple[dict[str, Any], SafePath]:
        """Return the params of a call that makes a new file or folder, and its path."""
        root = self.session.tree.root
        name = f"made-{secrets.token_hex(6)}.txt"
        _, params = binding.call(binding.spelled(name, str(root)), str(root), content="made\n")
        return params, root / binding.naming.placed(name)
