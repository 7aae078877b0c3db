"""Test a rule with many examples, and report the smallest example that breaks it.

A property draws its examples, sends each to one running server and reads the answers. After each
example the server must answer an ordinary request. The ambient rules of the run check each example
alone. Clauses that plain lines already break are left to the rules about those lines, so that one
defect is one finding. A failing example is shrunk and sent once more to a new process. It counts
only if it fails there again: the property judges it, or, for an ambient rule, the transcript of
that process is given to the ambient rules. The traffic of the search itself is never judged.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_touchstone.catalog.clause import Breach
from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.pending import first_response
from mcp_touchstone.judging.ambient import Record, breaches
from mcp_touchstone.judging.conversation import Conversation
from mcp_touchstone.judging.run_settings import DrawSettings
from mcp_touchstone.properties.excerpt import excerpt
from mcp_touchstone.transport.process import now
from mcp_touchstone.wire.framing import encode
from mcp_touchstone.wire.reply import Reply

SECONDS: Final = 10.0
"""Minimum time limit for the examples of one property; also the limit for shrinking one of them."""

EACH: Final = 0.25
"""Seconds per example; this extends the time limit if many examples are requested."""

DEATHS: Final = 12
"""A property stops once it has replaced more processes than this."""

UNRELIABLE: Final = frozenset(
    {"stdio-utf8-output", "stdio-stdout-only-messages", "jsonrpc-response-id-echo"}
)
"""If plain lines break one of these, answers cannot be read or matched to requests."""

BEYOND: Final = "🪨-🥇"
"""A non-ASCII id, one of those that ``stdio-utf8-input`` sends."""

SHOWN: Final = 160
"""Characters of a line that a finding quotes."""


@dataclass(frozen=True, slots=True)
class Draw:
    """The source of examples: a strategy and its arguments.

    Attributes:
        strategy: the name of a function of the module ``strategies``.
        given: its arguments; different arguments must differ in their ``repr``.
    """

    strategy: str
    given: tuple[Any, ...] = ()

    def made(self) -> Any:
        """Return the Hypothesis strategy."""
        from mcp_touchstone.properties import strategies  # noqa: PLC0415  (Hypothesis, when needed)

        return getattr(strategies, self.strategy)(*self.given)


@dataclass(frozen=True, slots=True)
class Say:
    """One line of an example.

    Attributes:
        raw: the bytes of the line; None for the default encoding.
        owed: whether a missing answer breaks the rule that each request is answered.
        awaited: whether to wait for an answer.
        malformed: whether only the property judges the answers to the line.
    """

    message: Any
    raw: bytes | None = None
    owed: bool = True
    awaited: bool = True
    malformed: bool = False

    @property
    def line(self) -> bytes:
        """The bytes of the line, with its line feed."""
        return encode(self.message) if self.raw is None else self.raw


@dataclass(frozen=True, slots=True)
class BrokenClause:
    """A clause that an example breaks.

    Attributes:
        expected: the behaviour that the clause requires.
        at: the evidence: an answer, or the number of a line.
        mild: the maximum severity; None for the severity of the clause.
        ambient: whether an ambient rule reports it.
    """

    clause: str
    expected: str = ""
    actual: str = ""
    at: Reply | int | None = None
    mild: Breach | None = None
    ambient: bool = False


@dataclass(frozen=True, slots=True)
class Heard:
    """The lines of one example and the reaction of the server.

    Attributes:
        replies: the answer to each line, or the reason why there is none.
        after: the answer to the request after them.
        gone: whether the server has ended.
    """

    said: Sequence[Say]
    replies: Sequence[Reply]
    after: Reply
    gone: bool

    @property
    def complete(self) -> bool:
        """Whether every line that requires an answer has one."""
        pairs = zip(self.said, self.replies, strict=True)
        return all(reply.answered for say, reply in pairs if say.owed)

    @property
    def served(self) -> bool:
        """Whether every request among the lines has an answer, required or not."""
        pairs = zip(self.said, self.replies, strict=True)
        return all(reply.answered for say, reply in pairs if "id" in say.message)

    @property
    def quoted(self) -> str:
        """The lines, shortened for a finding."""
        text = " ".join(say.line.decode("utf-8", "replace").rstrip("\n") for say in self.said)
        return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


Build = Callable[[Any], Sequence[Say]]
"""Returns the lines to send for a value."""
Check = Callable[[Any, Heard, Heard], Iterator[BrokenClause]]
"""Yields the clauses that a value breaks. Its arguments are the value, the ``Heard`` of the value
and the ``Heard`` of the first plain value. It is called only while the server runs."""


@dataclass(frozen=True, slots=True)
class _Mark:
    """The place of an example: its connection, the line before it and its last line."""

    value: Any
    wire: Connection
    start: int
    end: int


@dataclass(slots=True)
class Property:
    """One property and the state of its test.

    Attributes:
        talk: the conversation; its connection is replaced when the server ends.
        draw: the source of the examples.
        build: returns the lines of an example.
        plain: values whose failures other rules report; each example is compared with the first.
        check: yields the other clauses that an example breaks.
        survival: the clause that is broken if the server ends or stops answering.
    """

    talk: Conversation
    draw: Draw
    build: Build
    plain: Sequence[Any]
    check: Check = lambda *_: iter(())
    survival: str = field(kw_only=True)
    _settled: set[str] = field(default_factory=set)
    _marks: list[_Mark] = field(default_factory=list)
    _twin: Heard | None = None
    _deaf: bool = False
    _spent: bool = False
    _silent: bool = False  # an answer was missing, so later waits are short
    _deaths: int = 0

    def hold(self, *clauses: str, compared: str = "") -> None:
        """Try every example and judge these clauses.

        Args:
            compared: a further clause, which compares each answer with the result of the first
                plain value.

        Raises:
            Broken: a new process could not be opened.
        """
        if not self._is_plainly_sound():
            named = (*clauses, compared) if compared else clauses
            self.talk.judge.unseen(named, "a plain line fails already, which other rules judge")
            return
        self._search()
        for clause in clauses:
            self.talk.judge(clause, True, expected="no example breaks it")
        twin = self._twin.replies if self._twin is not None else ()
        if compared and any(one.result is not None for one in twin):
            self.talk.judge(compared, True, expected="no example breaks it")
        elif compared:
            self.talk.judge.otherwise_unseen(compared, "the plain request has no result either")

    def _is_plainly_sound(self) -> bool:
        """Send the plain lines; the clauses that they break are settled.

        An ordinary request with a non-ASCII id precedes them. A server that cannot read it fails
        most examples, and ``stdio-utf8-input`` already reports that.

        Returns:
            Whether sending examples is useful.
        """
        wire = self.talk.wire
        line = wire.say(wire.build(wire.ping_method, id=BEYOND), malformed=True)
        if not first_response(self.talk.wire, line)[0].answered:
            return False
        for value in self.plain:
            self._settled |= {fault.clause for fault in self._say(value)}
            if self._twin is None or self.survival in self._settled:
                return False
        self._settled |= {clause for clause, _ in self._against_rules()}
        self._marks.clear()
        return not self._settled & UNRELIABLE

    def _search(self) -> None:
        """Send each example, then check all of them against the ambient rules."""
        from mcp_touchstone.properties import hypothesis_driver  # noqa: PLC0415  (as above)

        settings = self.talk.settings
        limit = max(SECONDS, EACH * settings.examples)
        known = {*map(repr, self.plain)}

        def draw() -> Sequence[Any]:
            return hypothesis_driver.draw(self.draw.made(), self._terms, settings.stop.is_set)

        drawn = settings.drawn.give(repr((self._terms, self.draw)), draw)
        begun = now()

        def over() -> bool:
            return now() - begun > limit or settings.stop.is_set()

        for value in drawn:
            if self._deaths > DEATHS or over():
                break
            for fault in self._say(value) if repr(value) not in known else ():
                if fault.clause not in self._settled:
                    self._pursue(value, fault)
        for clause, value in list(self._against_rules()):
            late = now() - begun > limit + SECONDS or settings.stop.is_set()
            if clause not in self._settled and not late:
                self._pursue(value, BrokenClause(clause, ambient=True))

    @property
    def _terms(self) -> DrawSettings:
        settings = self.talk.settings
        return DrawSettings(self.talk.judge.name, settings.examples, settings.seed, settings.home)

    def _against_rules(self) -> Iterator[tuple[str, Any]]:
        """Yield each clause that an ambient rule of the run finds broken, and the example."""
        rules = self.talk.settings.rules
        for wire in dict.fromkeys(mark.wire for mark in self._marks):
            marks = [mark for mark in self._marks if mark.wire is wire]
            part, fell = excerpt(wire.transcript, marks[0].start)
            record = Record(part, self.talk.profile)
            for rule, clauses in rules:
                for clause, n in breaches(rule, record, clauses):
                    line = (n or 0) + fell
                    yield from (
                        (clause, mark.value)
                        for mark in marks
                        if n is None or mark.start < line <= mark.end
                    )

    # --- a failing example

    def _pursue(self, value: Any, fault: BrokenClause) -> None:
        """Shrink a failing example and reproduce it on a new process."""
        from mcp_touchstone.properties import hypothesis_driver  # noqa: PLC0415  (as above)

        self._settled.add(fault.clause)
        marks, self._marks = self._marks, []
        seen, deaths, until = self.talk.wire, self._deaths, now() + SECONDS

        def fails(other: Any) -> bool:
            if now() > until or self.talk.settings.stop.is_set() or repr(other) in plain:
                return False
            return self._breaks(other, fault) is not None

        plain = {*map(repr, self.plain)}
        smallest = hypothesis_driver.shrink(self.draw.made(), value, fails, self._terms)
        shown = self._shows(smallest, fault)
        if not shown and repr(smallest) != repr(value):
            shown = self._shows(value, fault)
        ended = seen.gone and not seen.channel.session_ended  # a session may end at any time
        if not shown and ended and fault.clause == self.survival:
            self._judge(seen, fault)  # more than this example ended the server
        self._marks, self._deaths = marks, deaths

    def _breaks(self, value: Any, fault: BrokenClause) -> BrokenClause | None:
        """Send an example; return its fault with the same clause as ``fault``, or None."""
        self._marks.clear()
        found = [other for other in self._say(value) if other.clause == fault.clause]
        if fault.ambient and any(clause == fault.clause for clause, _ in self._against_rules()):
            found.append(fault)
        return found[0] if found else None

    def _shows(self, value: Any, fault: BrokenClause) -> bool:
        """Send an example to a new process, with full timeouts; judge it if it fails there."""
        compared = not fault.ambient and fault.clause != self.survival
        wire = self._renew(judged=fault.ambient)
        self._silent = False
        if compared:
            self._say(self.plain[0])
        found = self._breaks(value, fault)
        stable = not compared or (self.talk.wire is wire and not self._say(self.plain[0]))
        self._spent = True
        if found is None or not stable:
            return False
        self._judge(wire, found)
        return True

    def _judge(self, wire: Connection, fault: BrokenClause) -> None:
        settings = self.talk.settings
        options = ("--select", self.talk.judge.name, "--examples", str(settings.examples))
        seed = ("--seed", str(settings.seed)) if settings.seed else ()
        wire.transcript.repeat_by((*options, *seed))
        if not fault.ambient:
            self.talk.server.wire = wire
            self.talk.judge(
                fault.clause,
                False,
                expected=fault.expected,
                actual=fault.actual,
                at=fault.at,
                mild=fault.mild,
            )

    # --- sending

    def _renew(self, *, judged: bool = False) -> Connection:
        """Start a new process and open its connection.

        Raises:
            Broken: the connection could not be opened.
        """
        if self._deaf:
            self.talk.wire.channel.kill()
        wire = self.talk.server.restart(judged=judged)
        self._deaf = self._spent = False
        self._deaths += 1
        self.talk.need(wire.open(), "the opening of a new process, after the last one was lost")
        return wire

    def _say(self, value: Any) -> list[BrokenClause]:
        """Send one example; return its faults, or only the loss of the server if it is lost."""
        talk = self.talk
        if talk.wire.gone or self._deaf or self._spent:
            self._renew()
        wire = talk.wire
        start = len(wire.transcript)
        said = self.build(value)
        lines = [
            wire.say_raw(say.line, say.message, required=say.owed, malformed=say.malformed)
            for say in said
        ]
        after = wire.ping(required=False) if self._silent else None
        awaited = [line for line, say in zip(lines, said, strict=True) if say.awaited]
        patience = None if after is None else talk.pace.settle
        replies = {line: wire.answer_to(line, patience) for line in awaited}
        self._silent |= not all(reply.answered for reply in replies.values())
        after = after or wire.ping(required=False)
        replies |= {line: wire.answer_to(line, 0.0) for line in lines if line not in replies}
        heard = Heard(said, [replies[line] for line in lines], after, wire.gone)
        if not after.answered or wire.channel.session_ended:  # the 404 of an ended session
            self._deaf = True
            return [self._lost(heard, lines)]
        self._marks.append(_Mark(value, wire, start, len(wire.transcript)))
        if repr(value) == repr(self.plain[0]):
            self._twin = heard if heard.complete else None
        return [] if self._twin is None else [*self.check(value, heard, self._twin)]

    def _lost(self, heard: Heard, lines: Sequence[int]) -> BrokenClause:
        may_end = heard.served or self.talk.wire.channel.session_ended
        return BrokenClause(
            self.survival,
            expected="an answer to the request after it",
            actual=f"{heard.after}, after {heard.quoted}",
            at=lines[-1],
            mild=Breach.WARN if heard.gone and may_end else None,
        )
