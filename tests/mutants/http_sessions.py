"""HTTP servers that break a rule of http/sessions."""

import itertools
import json
from collections.abc import Iterator
from typing import Any, ClassVar

from mcp_touchstone.http_server.reading import MalformedError
from mcp_touchstone.http_server.refusals import INTERNAL_ERROR, INVALID_REQUEST, Refusal
from tests.mutants.http_kit import Extra, HttpFault, WithoutHandshake
from tests.mutants.kit import (
    LEGACY,
    MODERN,
    Fault,
    Json,
    Out,
    control,
    controls,
    has,
    mutant,
    mutants,
)
from tests.mutants.ping import no_ping

SESSION = "Mcp-Session-Id"


controls(
    "sessions-id-visible-ascii",
    "sessions-id-unique",
    "sessions-id-required",
    "sessions-id-issued",
    "sessions-ended-404",
    "sessions-ended-get-404",
    "sessions-other-clients",
    of=HttpFault,
)(EndsSessions="Keeps every rule on sessions.")


mutants("sessions-id-issued", of=HttpFault, revision=LEGACY)(
    KeepsTheIdToItself=has(
        "Wants a session id that it never gave.",
        send_header=lambda self, keyword, value: (
            None if keyword == SESSION else HttpFault.send_header(self, keyword, value)
        ),
    )
)


@control(revision=LEGACY)
class SpeaksNewerRevisions(Fault):
    """Answers a handshake of 2025-03-26 by 2025-06-18."""

    def said(self, message: Any, request: Json) -> Out:
        if request.get("method") == "initialize" and "result" in message:
            offered = message["result"]["protocolVersion"]
            message["result"]["protocolVersion"] = max(offered, "2025-06-18")
        return message  # type: ignore[no-any-return]


@control(revision=LEGACY)
class KeepsNoSessions(HttpFault, behind="SpeaksNewerRevisions"):
    """Issues no ids, takes each cancelled request for unknown, and wants the version header."""

    newest: ClassVar[list[str]] = []

    def send_header(self, keyword: str, value: str) -> None:
        if keyword == SESSION:
            self.newest.append(value)
        else:
            super().send_header(keyword, value)

    def write_stream(self, stream: Any, after: int, *, resumable: bool | None) -> bool:
        return super().write_stream(stream, after, resumable=None)

    def _post(self, line: bytes, messages: Any) -> None:
        if messages[0].get("method") == "notifications/cancelled":
            self.answer(202)
        else:
            super()._post(line, messages)

    def _session(self) -> Any:
        self.set_header(SESSION, self.newest[-1] if self.newest else None)
        if self.header("MCP-Protocol-Version") is None:
            raise Refusal(400, INVALID_REQUEST, "2025-03-26 is not served")
        return super()._session()

    def do_GET(self) -> None:  # noqa: N802  (the name in the base class)
        self._others()

    def do_DELETE(self) -> None:  # noqa: N802  (the name in the base class)
        self._others()


class RenamesSessions(HttpFault):
    """Issues other ids than the sessions have."""

    names: ClassVar[dict[str, str]] = {}

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        if SESSION in extra:
            name = self.name(extra[SESSION])
            self.names[name] = extra[SESSION]
            extra[SESSION] = name
        return status, body, extra

    def _session(self) -> Any:
        said = self.header(SESSION)
        if said is not None:
            self.set_header(SESSION, self.names.get(said, "unknown"))
        return super()._session()

    def name(self, session: str) -> str:
        """Return the id that is issued."""
        return session


mutants("sessions-id-visible-ascii", of=RenamesSessions)(
    IssuesIdsWithSpaces=has(
        "Issues session ids with a space in them.", name=lambda self, session: f"session {session}"
    )
)


@mutant("sessions-id-visible-ascii")
class WritesTheIdTwice(HttpFault):
    """Writes the header with the session id twice, as a server behind a careless proxy."""

    def send_header(self, keyword: str, value: str) -> None:
        for _ in range(2 if keyword == SESSION else 1):
            super().send_header(keyword, value)


mutants("sessions-id-unique", of=RenamesSessions)(
    CountsSessions=has(
        "Issues session ids that count.",
        numbers=itertools.count(1),
        name=lambda self, *_: f"session-{next(self.numbers)}",
    )
)


class MistakesThePlace(HttpFault):
    """Answers some requests without a session, or of an ended one, by another status."""

    status: ClassVar[tuple[int, int]] = (404, 400)

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        mistaken = status == self.status[0] and self.mistakes()
        return (self.status[1], b"", extra) if mistaken else (status, body, extra)

    def mistakes(self) -> bool:
        """Whether this request is one of them."""
        return self.command == "POST" and b'"method"' in self.received and b'"id"' in self.received


mutants("sessions-ended-404", of=MistakesThePlace)(
    AnswersAnEndedSessionWith400="Answers a request of an ended session by 400.",
    AcceptsNotificationsOfEndedSessions=has(
        "Answers a notification of an ended session by 202.",
        status=(404, 202),
        mistakes=lambda self: self.command == "POST" and b'"id"' not in self.received,
    ),
    AcceptsResponsesOfEndedSessions=has(
        "Answers a response of an ended session by 400.",
        mistakes=lambda self: self.command == "POST" and b'"method"' not in self.received,
    ),
    EndsASessionTwice=has(
        "Answers the DELETE of an ended session by 204.",
        status=(404, 204),
        mistakes=lambda self: self.command == "DELETE",
    ),
    EndsASessionTwiceWithABody=has(
        "Answers the DELETE of an ended session by 200 and an error.",
        status=(404, 200),
        mistakes=lambda self: self.command == "DELETE",
    ),
)
mutants("sessions-id-required", of=MistakesThePlace)(
    WantsAnIdForStreamsWith406=has(
        "Answers a GET without a session id by 406.",
        status=(400, 406),
        mistakes=lambda self: self.command == "GET" and self.header(SESSION) is None,
    ),
    WantsAnIdForStreamsWith401=has(
        "Answers a GET without a session id by 401.",
        status=(400, 401),
        mistakes=lambda self: self.command == "GET" and self.header(SESSION) is None,
    ),
    WantsAnIdToEndWith404=has(
        "Answers a DELETE without a session id by 404.",
        status=(400, 404),
        mistakes=lambda self: self.command == "DELETE" and self.header(SESSION) is None,
    ),
)


@mutant("sessions-id-required", revision=LEGACY)
class WantsAnIdForNotificationsWith404(MistakesThePlace, status=(400, 404)):
    """Answers a notification without a session id by 404."""

    def mistakes(self) -> bool:
        posted = self.command == "POST" and b'"id"' not in self.received
        return posted and self.header(SESSION) is None


@control("sessions-ended-404", revision=LEGACY)
class LetsNoClientEnd(HttpFault):
    """Has neither GET nor DELETE, and accepts no notification about a cancellation."""

    def _post(self, line: bytes, messages: Any) -> None:
        if messages[0].get("method") == "notifications/cancelled":
            self.answer(400)
        else:
            super()._post(line, messages)

    def do_GET(self) -> None:  # noqa: N802  (the name in the base class)
        self._others()

    def do_DELETE(self) -> None:  # noqa: N802  (the name in the base class)
        self._others()


@control("headers-version-invalid", revision=LEGACY)
class EndsASession(HttpFault):
    """Ends a session, as a server may at any time, when a request names an unknown version."""

    ended: ClassVar[set[str]] = set()

    def _post(self, line: bytes, messages: Any) -> None:
        session = self.header(SESSION) or ""
        if self.header("MCP-Protocol-Version") == "2099-01-01":
            self.ended.add(session)
        if session in self.ended:
            self.answer(404)
        else:
            super()._post(line, messages)


class ForgetsSessions(RenamesSessions, names={}):
    """Answers the id of a session of an earlier process by 400."""

    verb: ClassVar[str]

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        lost = self.header(SESSION) == "unknown" and self.command == self.verb
        return super().answering(400 if status == 404 and lost else status, body, extra)


mutants("sessions-ended-404", of=ForgetsSessions)(
    AnswersAForgottenSessionWith400=has(
        "Answers a request of a session of an earlier process by 400.", verb="POST"
    )
)
mutants("sessions-ended-get-404", of=ForgetsSessions)(
    AnswersGetOfAForgottenSessionWith400=has(
        "Answers a GET of a session of an earlier process by 400.", verb="GET"
    )
)


@mutant("sessions-other-clients", revision=LEGACY)
class ServesItsFirstClientOnly(HttpFault):
    """Answers each initialize after the first by 500."""

    served: ClassVar[list[bool]] = []

    def _initialize(self, line: bytes, request: Any) -> None:
        if self.served:
            self.answer(500)
            return
        self.served.append(True)
        super()._initialize(line, request)


@mutant("sessions-ended-404", revision=LEGACY)
class AsksTwoServersInTurn(HttpFault):
    """Knows a session that has just begun only every other time, as two servers would."""

    ready: ClassVar[set[str | None]] = set()
    turns: ClassVar[Iterator[int]] = itertools.count()

    def _post(self, line: bytes, messages: Any) -> None:
        session, method = self.header(SESSION), messages[0].get("method")
        if method == "notifications/initialized":
            self.ready.add(session)
        unknown = session is not None and session not in self.ready
        if method == "ping" and unknown and next(self.turns) % 2 == 0:
            self.answer(404)
        else:
            super()._post(line, messages)


class EndsAllSessions(HttpFault):
    """Answers all by 500 once something has ended."""

    ended: ClassVar[list[bool]] = []

    def _session(self) -> Any:
        found = super()._session()
        if self.ended:
            raise Refusal(500, INTERNAL_ERROR, "the clean-up failed")
        return found


@mutant("sessions-other-clients", revision=LEGACY)
class EndsAllSessionsWithOne(EndsAllSessions):
    """Answers all other sessions by 500 after one was ended."""

    def do_DELETE(self) -> None:  # noqa: N802  (the name in the base class)
        super().do_DELETE()
        self.ended.append(True)


@mutant("sessions-other-clients", revision=LEGACY)
class EndsAllSessionsWithAConnection(EndsAllSessions):
    """Answers all sessions by 500 after a client broke off its connection."""

    def _body(self) -> bytes:
        try:
            return super()._body()
        except (ConnectionError, MalformedError):
            self.ended.append(True)
            raise


@mutant("sessions-none-minted", revision=MODERN)
class IssuesAnIdPerRequest(WithoutHandshake):
    """Has no handshake, and issues a session id with each answer of 2026-07-28."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        if self.command == "POST" and self.is_modern:
            extra[SESSION] = "0b7f5a2e-4a3c-4f6e-9b7d-0c1d2e3f4a5b"
        return status, body, extra


controls(of=IssuesAnIdPerRequest, revision=MODERN)(
    IssuesIdsInBothEras=has(
        "Speaks revisions with a handshake too, and issues a session id with each answer.",
        behind="SaysNothingWrong",
    )
)


@mutant("sessions-header-ignored", revision=MODERN)
class RefusesSessionIds(WithoutHandshake):
    """Has no handshake, and refuses a request with a session id."""

    refused: ClassVar[str] = SESSION
    among: ClassVar[str] = ""

    def _post(self, line: bytes, messages: Any) -> None:
        if self.header(self.refused) is not None and self.among in str(messages[0].get("method")):
            self.answer(404)
            return
        super()._post(line, messages)


mutants("sessions-header-ignored", of=RefusesSessionIds, revision=MODERN)(
    RefusesSessionIdsWithLists=has(
        "Has no handshake, and refuses a list with a session id.", among="/list"
    )
)
mutants("sessions-last-event-id-ignored", of=RefusesSessionIds, revision=MODERN)(
    RefusesLastEventIds=has(
        "Has no handshake, and refuses a request with a Last-Event-ID.", refused="Last-Event-ID"
    ),
    RefusesLastEventIdsWithLists=has(
        "Has no handshake, and refuses a list with a Last-Event-ID.",
        refused="Last-Event-ID",
        among="/list",
    ),
)


@mutant("ping-empty-response", revision=LEGACY)
class KnowsOnlyPlainPings(HttpFault):
    """Answers a ping with params by 404 without a body, and goes on with the session."""

    def _post(self, line: bytes, messages: Any) -> None:
        if messages[0].get("method") == "ping" and b'"com.example/probe"' in line:
            self.answer(404)
        else:
            super()._post(line, messages)


class AnswersNoPing(HttpFault):
    """Answers each ping with -32601."""

    def _post(self, line: bytes, messages: Any) -> None:
        if messages[0].get("method") == "ping":
            self.answer(200, json.dumps(no_ping(messages[0])).encode())
        else:
            super()._post(line, messages)


controls(
    "sessions-other-clients",
    "headers-version-absent",
    "endpoint-accept-forms",
    of=AnswersNoPing,
    revision=LEGACY,
)(ServesSessionsWithoutPings="Answers each ping in a session with -32601.")
