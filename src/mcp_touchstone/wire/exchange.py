"""One HTTP request of ours and its response, as observed. Pure values."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mcp_touchstone.wire.sse import ServerEvent

JSON: Final = "application/json"
EVENTS: Final = "text/event-stream"
UNAUTHORIZED: Final = 401
FORBIDDEN: Final = 403
TOO_MANY_REQUESTS: Final = 429
PARAMETER: Final = re.compile(r'([A-Za-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')

Headers = tuple[tuple[str, str], ...]
"""Names and values as they came, in their order; a name may come twice."""


@dataclass(frozen=True, slots=True)
class SentRequest:
    """What another program needs to send a request again, beside its method and headers.

    Attributes:
        server: scheme, host and port, as in a URL.
        target: path and query.
        body: its bytes, secrets hidden.
        variables: header with a secret of the user -> what a shell writes after ``$`` for it.
        started: whether we started the server, so that it is gone.
    """

    server: str
    target: str
    body: bytes
    variables: Mapping[str, str]
    started: bool


@dataclass(slots=True)
class Exchange:
    """One HTTP request and its response.

    Attributes:
        number: number of the exchange on its connection, from 1.
        line: number of our line that it carries; 0 for none.
        sent: headers of the request, with secret values replaced.
        began: seconds since the start of the process at which it began.
        status: status of the response; 0 before it came.
        headers: headers of the response.
        headed: seconds at which the headers were complete; None before that.
        ended: seconds at which the response ended, or we stopped reading; None before that.
        messages: number of messages in the response so far.
        body: the beginning of a body that holds no message.
        fault: the reason the response was cut off; empty if it was not.
        lost: why what came in it is no message; empty if nothing came.
        left: whether we closed the connection before its end.
        events: the events of a stream, without their data.
        crafted: whether a scenario wrote the request itself.
        event_line: number of the event that records a request without a line; 0 for none.
        target: path and query of the request; empty for those of the endpoint.
        request_parts: what sends it again; None if it was not sent or has too long a body.
    """

    number: int
    verb: str
    line: int
    sent: Headers
    began: float
    status: int = 0
    headers: Headers = ()
    headed: float | None = None
    ended: float | None = None
    messages: int = 0
    body: bytes = b""
    fault: str = ""
    lost: str = ""
    left: bool = False
    events: list[ServerEvent] = field(default_factory=list)
    crafted: bool = False
    event_line: int = 0
    target: str = ""
    request_parts: SentRequest | None = None

    def header(self, name: str) -> str | None:
        """Return the first value of a response header; None if it is absent."""
        return next(iter(self.lines(name)), None)

    def lines(self, name: str) -> list[str]:
        """Return the values of a response header that is written once or several times."""
        wanted = name.lower()
        return [value for known, value in self.headers if known.lower() == wanted]

    def said(self, name: str) -> str | None:
        """Return a header of the request, its lines joined by commas (RFC 9110, section 5.3).

        None if it is absent.
        """
        wanted = name.lower()
        values = [value for known, value in self.sent if known.lower() == wanted]
        return ", ".join(values) if values else None

    @property
    def kind(self) -> str:
        """The media type of the response, in lower case and without parameters."""
        return next(iter(self.kinds), "")

    @property
    def kinds(self) -> list[str]:
        """The different media types of the response; more than one are a contradiction."""
        types = self.lines("Content-Type")
        return [*dict.fromkeys(one.partition(";")[0].strip().lower() for one in types)]

    @property
    def streams(self) -> bool:
        """Whether the response is a stream of events."""
        return self.kind == EVENTS

    @property
    def challenge(self) -> dict[str, str]:
        """The parameters of the WWW-Authenticate headers of the response."""
        found: dict[str, str] = {}
        for name, value in self.headers:
            if name.lower() == "www-authenticate":
                for parameter, quoted, plain in PARAMETER.findall(value):
                    found.setdefault(parameter.lower(), quoted or plain)
        return found

    @property
    def is_limited(self) -> bool:
        """Whether the server refused the request because there were too many in a time."""
        return self.status == TOO_MANY_REQUESTS

    @property
    def barred(self) -> str:
        """Why a request was refused whatever it says; empty if it was not.

        It lacks a token or a scope, or it is one too many (RFC 6585, section 4).
        """
        if self.is_limited:
            return f"the server limits the rate of requests: {self}"
        if self.status == UNAUTHORIZED and self.said("Authorization") is None:
            return f"the server wants a token: {self}"
        if self.status == FORBIDDEN and self.challenge.get("error") == "insufficient_scope":
            return f"the token lacks a scope: {self}"
        return ""

    @property
    def request(self) -> str:
        """The request in a few words: the method, and the headers that matter to the protocol."""
        kept = [f"{name}: {value}" for name, value in self.sent if _matters(name)]
        return "; ".join([self.verb, *kept])

    @property
    def response(self) -> str:
        """The response in a few words, with the headers that matter to the protocol."""
        kept = [f"{name}: {value}" for name, value in self.headers if name.lower() in ANSWERED]
        return "; ".join([str(self), *kept])

    def __str__(self) -> str:
        """Return the response in a few words, for a reader."""
        if self.fault and not self.status:
            return self.fault
        if not self.status:
            return f"no response to {self.verb}"
        kind = f", {self.kind}" if self.kind else ""
        is_empty = self.kind == JSON and self.ended is not None
        is_empty = is_empty and not (self.messages or self.body)
        empty = "its body is empty" if is_empty else ""
        why = self.fault or ("" if self.messages else self.lost or empty)
        return f"HTTP {self.status}{kind}" + (f" ({why})" if why else "")


@dataclass(frozen=True, slots=True)
class Origin:
    """The place a message came from.

    Attributes:
        exchange: the exchange whose response holds it.
        event: the event that holds it; None for a plain body.
    """

    exchange: Exchange
    event: ServerEvent | None = None

    @property
    def refuses(self) -> bool:
        """Whether the response has the status of an error."""
        return self.exchange.status >= 400  # noqa: PLR2004  (4xx and 5xx are errors)

    def __str__(self) -> str:
        """Return it in a few words, for a reader."""
        if self.event is None:
            return self.exchange.response
        known = "" if self.event.id is None else f" with the id {self.event.id}"
        stream = "" if self.exchange.verb == "POST" else f" of a {self.exchange.verb}"
        return f"{self.exchange.response}{stream}; an event{known}"


MATTERS: Final = frozenset({"last-event-id", "origin"})
"""Further request headers that a reader of a finding needs."""


ANSWERED: Final = frozenset({"mcp-session-id", "www-authenticate", "location", "allow"})
"""Response headers that a reader of a finding needs, beside the type of the content."""


def _matters(name: str) -> bool:
    low = name.lower()
    return low.startswith("mcp-") or low in MATTERS
