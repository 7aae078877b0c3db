"""What happens on a connection beside its lines, and the sentences for it in records and files."""

from enum import StrEnum
from typing import Final


class Side(StrEnum):
    """Where a line of a recording comes from."""

    CLIENT = "client"
    SERVER = "server"
    STDERR = "stderr"
    EVENT = "event"


class Happened(StrEnum):
    """An event. Its value is its sentence, or the beginning of it if it ends with a space.

    Files have these sentences, so they stay as they are.
    """

    CLIENT_CLOSED = "the client closed the input of the server"
    CLIENT_LEFT = "the client closed the connection"
    CLIENT_DEAF = "the client reads no more"
    SERVER_CLOSED = "the server closed its output"
    SERVER_CLOSED_LATER = "the server closed its output after that"
    SERVER_DEAF = "the server reads no more"
    NOT_STARTED = "the server could not be started: "
    EXITED = "the server exited with status "
    DIED = "the server was ended by "
    SIGNALLED = "the client sent "
    REOPENED = "the client opened a new session"
    REOPENED_BY_ID = "the client opened a new session with the id of the lost one"
    RESTARTED = "the client started the server again"
    FELL_BACK = "the client fell back to initialize"
    FALLS_BACK = "the client falls back to initialize elsewhere"
    ENDED = "the client ended"
    FAILED = "the client failed"
    CUT_OFF = "we ended the client"
    SHOUTED = "our server writes to its standard error"
    STDERR_READ = "what our server wrote to its standard error was read"
    FETCHED = "the client fetched "
    LOST = "our server ran a call, and its answer is lost: "
    RAN_AGAIN = "the client calls again: "
    LEFT_RUNNING = "the client ended and left the server running"
    KILLED = "the client killed the server without closing its input"
    AUTHORIZATION = "authorization: "
    FULL = "the recording is full: "
    INPUT_CLOSED = "we closed its input"
    TERMINATED = "we sent SIGTERM"
    REQUESTED = "we sent "

    @classmethod
    def of(cls, sentence: str) -> "Happened | None":
        """Return the event of a sentence; None for one that no rule reads."""
        whole = _WHOLE.get(sentence)
        return whole or next((one for one in _BEGINNINGS if sentence.startswith(one)), None)


_BEGINNINGS: Final = [one for one in Happened if one.endswith(" ")]
_WHOLE: Final = {one.value: one for one in Happened if not one.endswith(" ")}

CREDENTIALS: Final = " with "
"""Stands between the path of what a client fetched and the names of credentials in that request."""
