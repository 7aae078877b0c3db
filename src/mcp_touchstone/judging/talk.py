"""What a scenario and an attack have in common: the parts through which they use a server."""

from dataclasses import dataclass

from mcp_touchstone.connection.connection import Connection
from mcp_touchstone.connection.raw_http import RawHttp
from mcp_touchstone.connection.server_profile import ServerProfile, Spoken
from mcp_touchstone.judging.judge import Judge
from mcp_touchstone.judging.used_server import Examples, UsedServer
from mcp_touchstone.runtime.timeouts import Pace


@dataclass(eq=False)
class Talk:
    """The parts of one use of a server.

    Attributes:
        server: its processes.
        judge: records the judgements; ``judge(clause, passed, ...)`` records one.
        examples: what it can do; ``examples(word)`` are the examples of a word.
    """

    server: UsedServer
    judge: Judge
    examples: Examples

    @property
    def wire(self) -> Connection:
        """The current connection: what is sent and received goes through it."""
        return self.server.wire

    @property
    def http(self) -> RawHttp:
        """The HTTP endpoint, for requests with other headers or another body than usual.

        Raises:
            LookupError: the messages are sent on stdio.
        """
        return RawHttp(self.wire)

    @property
    def modern(self) -> bool:
        """Whether this revision is stateless."""
        return self.wire.modern

    @property
    def pace(self) -> Pace:
        """The time limits."""
        return self.wire.pace

    @property
    def profile(self) -> ServerProfile:
        """The profile of the server."""
        return self.examples.profile

    @property
    def revision(self) -> str:
        """The judged revision."""
        return self.examples.revision

    @property
    def spoken(self) -> Spoken:
        """The profile of this revision."""
        return self.examples.spoken


def hear_late_answers(judge: Judge) -> None:
    """Excuse failures by silence if the server answers while a later request is pending.

    Then it was slow to read, and the silence proves nothing. The engine looks for such answers
    after each scenario. A scenario that lets a blocked server go on looks for them before.
    """
    for silence in judge.silences:
        wire = silence.wire
        if silence.asked > len(wire.transcript):
            continue  # a line of another connection
        if not (wire.gone or wire.transcript.answer_to(silence.asked)):
            later = wire.say(wire.build(wire.ping_method), required=False)
            wire.answer_to(later, patient=True)
        if wire.transcript.answer_to(silence.asked) is not None:
            judge.excuse(silence)
    judge.silences.clear()


def forget_after_the_session(judge: Judge) -> None:
    """Take back what rests on HTTP 404 to our session, if a ping shows that it has ended."""
    for lost in judge.lost:
        if not lost.wire.gone:
            lost.wire.ping(required=False)
        if lost.wire.channel.session_ended:
            judge.forget(lost)
    judge.lost.clear()
