"""HTTP servers that break a rule of http/endpoint."""

import json
import re
import time
from typing import Any, ClassVar

from mcp_touchstone.http_server.refusals import Refusal
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

BATCHES = "2025-03-26"
ERROR = b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"Not wanted"}}'


controls(
    "endpoint-notification-accepted",
    "endpoint-response-accepted",
    "endpoint-request-content-type",
    "endpoint-get-stream-or-405",
    "endpoint-utf8-output",
    "endpoint-utf8-input",
    "endpoint-accept-forms",
    "endpoint-content-type-forms",
    "endpoint-chunked-request",
    "endpoint-kept-connection",
    of=HttpFault,
)(EndpointWithSessions="Keeps every rule on the endpoint with sessions.")
controls("endpoint-batch-accepted", of=HttpFault, revision=BATCHES)(
    EndpointWithBatches="Accepts batches of notifications."
)
controls(
    "endpoint-removed-methods",
    "endpoint-allow-header",
    "endpoint-unknown-method-404",
    "endpoint-missing-meta-400",
    "sessions-none-minted",
    "sessions-header-ignored",
    "sessions-last-event-id-ignored",
    of=WithoutHandshake,
    revision=MODERN,
)(EndpointWithoutSessions="Keeps every rule on the endpoint without sessions.")


@control("endpoint-missing-capability-400", revision=MODERN)
class RefusesWithoutCapabilities(HttpFault, behind="ElicitsOnlyIfDeclared"):
    """Refuses a call that needs a capability which the client lacks."""


class LimitsCalls(HttpFault):
    """Refuses each call of a tool as one too many."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        if b'"tools/call"' not in self.received:
            return status, body, extra
        return 429, b"", {**extra, "Retry-After": "1"}


LIMITED = ("jsonrpc-request-answered", "tools-list-result-shape")
controls(*LIMITED, of=LimitsCalls, revision=LEGACY)(
    LimitsCallsOfSessions="Refuses each call of a tool as one too many, in sessions."
)
controls(*LIMITED, of=LimitsCalls, revision=MODERN)(
    LimitsCallsOfRequests="Refuses each call of a tool as one too many, without sessions."
)


@control("endpoint-notification-refused", revision=LEGACY)
class RefusesCancellations(HttpFault):
    """Accepts no cancellation."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        cancels = self.is_cancellation
        return (400, ERROR, extra) if cancels and status == 202 else (status, body, extra)

    @property
    def is_cancellation(self) -> bool:
        """Whether the request has a notification of a cancellation."""
        return b"notifications/cancelled" in self.received


@mutant("endpoint-notification-accepted", revision=LEGACY)
class AcceptsNotificationsWith200(HttpFault):
    """Answers a notification by 200."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        one = status == 202 and b'"method"' in self.received and self.received[:1] != b"["
        return (200 if one else status), body, extra


mutants("endpoint-notification-accepted", of=HttpFault, revision=MODERN)(
    AcceptsNotificationsWithABody=has(
        "Answers a notification by 202 with a text.",
        answering=lambda self, status, body, extra: (
            status,
            (b"Accepted" if status == 202 else body),
            extra,
        ),
    )
)


@mutant("endpoint-notification-accepted", revision=LEGACY)
class AnnouncesABody(HttpFault):
    """Announces a body for the 202 to a cancellation, and closes the connection without one."""

    def begin(self, status: int, headers: Any) -> None:
        owes = status == 202 and b"notifications/cancelled" in self.received
        self.close_connection |= owes
        super().begin(status, {**headers, "Content-Length": "8"} if owes else headers)


class AcceptsOneKindWith200(HttpFault):
    """Answers one kind of message by 200."""

    mark: ClassVar[bytes]

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        return (200 if status == 202 and self.mark in self.received else status), body, extra


mutants("endpoint-notification-accepted", of=AcceptsOneKindWith200)(
    AcceptsTheHandshakeWith200=has(
        "Answers notifications/initialized by 200.", mark=b"notifications/initialized"
    )
)
mutants("endpoint-response-accepted", of=AcceptsOneKindWith200)(
    AcceptsWantedResponsesWith200=has(
        "Answers the response to a request of its own by 200.",
        behind="Samples",
        mark=b'"role":"assistant"',
    )
)


class AnswersInLatin1(HttpFault):
    """Writes its answers in Latin-1 where it can."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        return status, _latin1(body), extra

    def _chunk(self, data: bytes) -> None:
        super()._chunk(_latin1(data))


def _latin1(data: bytes) -> bytes:
    text = re.sub(r"\\u00([c-f][0-9a-f])", lambda found: chr(int(found[1], 16)), data.decode())
    try:
        return text.encode("latin-1")
    except ValueError:
        return data


mutants("endpoint-utf8-output", of=AnswersInLatin1)(
    AnswersSessionsInLatin1="Writes its answers in Latin-1 in a session.",
    AnswersRequestsInLatin1=has("Writes its answers in Latin-1 in 2026-07-28.", MODERN),
)


class AnswersInUtf8(HttpFault):
    """Writes its answers in UTF-8 without escapes, in two parts if they are long."""

    def written(self, data: bytes) -> bytes:
        """Return the bytes of an answer, or of an event."""
        return data

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        return status, self.written(_unescaped(body)), extra

    def _chunk(self, data: bytes) -> None:
        whole = self.written(_unescaped(data))
        at = len(whole) // 3 + 1  # inside a character, if it is an id of three bytes each
        for piece in filter(None, (whole[:at], whole[at : at + 1], whole[at + 1 :])):
            super()._chunk(piece)


def _unescaped(data: bytes) -> bytes:
    escape = re.compile(r"\\u([4-9][0-9a-f]{3})")
    return escape.sub(lambda found: chr(int(found[1], 16)), data.decode()).encode()


controls("endpoint-utf8-output", of=AnswersInUtf8)(
    AnswersInTwoParts="Cuts its answers inside a character, as any stream of bytes may be cut."
)


class DecodesItsAnswers(AnswersInUtf8, size=0):
    """Decodes each piece of its answers for itself, as a wrong filter of responses does."""

    size: ClassVar[int]

    def written(self, data: bytes) -> bytes:
        pieces = [data[at : at + self.size] for at in range(0, len(data), self.size)]
        return "".join(piece.decode("utf-8", "replace") for piece in pieces).encode()


mutants("endpoint-utf8-output", of=DecodesItsAnswers)(
    DecodesItsAnswersEach4KiB=has("Decodes each 4 KiB of its answers.", size=4 << 10),
    DecodesItsAnswersEach64KiB=has("Decodes each 64 KiB of its answers.", MODERN, size=64 << 10),
)


@mutant("endpoint-utf8-output", revision=LEGACY)
class StreamsInLatin1(AnswersInLatin1):
    """Writes its events, and no bodies, in Latin-1."""

    def respond(self, exchange: Any, prompt: float, *more: Any, **others: Any) -> bool:
        exchange.only = lambda: None
        return super().respond(exchange, prompt, *more, **others)


def _wait_for_characters(self: HttpFault) -> bytes:
    body = HttpFault._body(self)
    while 1024 < len(body) != len(body.decode()) and not self.client_left():
        time.sleep(0.1)
    return body


def _decode_pieces(self: HttpFault) -> bytes:
    body = HttpFault._body(self)
    pieces = [body[at : at + 1024] for at in range(0, len(body), 1024)]
    return "".join(piece.decode("utf-8", "replace") for piece in pieces).encode()


mutants("endpoint-utf8-input", of=HttpFault)(
    WaitsForCharacters=has(
        "Waits for as many characters as Content-Length says, if a body is long.",
        _body=_wait_for_characters,
    ),
    DecodesPieces=has("Decodes each KiB of a body for itself.", MODERN, _body=_decode_pieces),
)
mutants("endpoint-utf8-input", of=HttpFault, revision=LEGACY)(
    ReadsPostsInLatin1=has(
        "Reads its input as Latin-1.",
        _body=lambda self: HttpFault._body(self).decode("latin-1").encode(),
    )
)


@control("endpoint-request-content-type", revision=LEGACY)
class AnswersCancelledRequestsWith202(HttpFault):
    """Answers a request that was cancelled by 202 without a body."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        asked = json.loads(self.received or "{}") if self.command == "POST" else {}
        cancelled = asked.get("method") == "tools/call" and b"cancelled" in body
        return (202, b"", extra) if cancelled else (status, body, extra)


@mutant("endpoint-notification-refused", "jsonrpc-notification-no-response", revision=LEGACY)
class RefusesNotificationsWith200(RefusesCancellations):
    """Refuses a notification with an error and the status 200."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        cancels = self.is_cancellation and status == 202
        return (200, ERROR, extra) if cancels else (status, body, extra)


@mutant("endpoint-response-accepted", revision=LEGACY)
class AcceptsResponsesWith204(HttpFault):
    """Answers a response by 204."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        response = status == 202 and b'"method"' not in self.received
        return (204 if response else status), body, extra


@mutant("endpoint-batch-accepted", revision=BATCHES)
class AcceptsBatchesWith200(HttpFault):
    """Answers a batch of notifications by 200."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        batch = status == 202 and self.received[:1] == b"["
        return (200 if batch and self.is_wrong() else status), body, extra

    def is_wrong(self) -> bool:
        """Whether this batch is answered wrongly."""
        return True


mutants("endpoint-batch-accepted", of=AcceptsBatchesWith200, revision=BATCHES)(
    AcceptsResponsesInBatchesWith200=has(
        "Answers a batch with a response by 200.",
        is_wrong=lambda self: b'"result"' in self.received,
    )
)


class _NamesTypesTwice(HttpFault):
    """Writes the header with the type of each answer twice, as a server behind a careless proxy."""

    second: ClassVar[str] = ""

    def send_header(self, keyword: str, value: str) -> None:
        super().send_header(keyword, value)
        if keyword == "Content-Type":
            super().send_header(keyword, self.second or value)


mutants("endpoint-request-content-type", of=_NamesTypesTwice)(
    NamesTwoTypes=has("Says that each answer is plain text, too.", second="text/plain")
)
controls("endpoint-request-content-type", of=_NamesTypesTwice)(
    NamesOneTypeTwice="Names the type of each answer twice."
)


class _AltersBodies(HttpFault):
    """Writes bodies that are not strict JSON."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        return status, self.altered(body), extra

    def altered(self, body: bytes) -> bytes:
        """Return the body of an answer."""
        return body


mutants("endpoint-request-content-type", of=_AltersBodies)(
    MarksTheByteOrder=has(
        "Begins each body with a byte order mark.",
        altered=lambda self, body: body and b"\xef\xbb\xbf" + body,
    ),
    WritesNanInBodies=has(
        "Writes NaN into the results of calls, as json.dumps of Python does.",
        LEGACY,
        altered=lambda self, body: body.replace(
            b'"content":[', b'"_meta":{"cost":NaN},"content":['
        ),
    ),
)


@mutant("endpoint-request-content-type", revision=LEGACY)
class AnswersAsText(HttpFault):
    """Sends answers as text/plain."""

    def send_header(self, keyword: str, value: str) -> None:
        plain = keyword == "Content-Type" and value == "application/json"
        super().send_header(keyword, "text/plain" if plain and self.is_success else value)

    @property
    def is_success(self) -> bool:
        """Whether the answer has a status below 300."""
        return self.last_status < 300


mutants("endpoint-get-stream-or-405", of=HttpFault)(
    AnswersGetWith404=has("Answers GET by 404.", do_GET=lambda self: self.answer(404))
)


mutants("endpoint-get-stream-or-405", of=HttpFault, outcome="warn", passes=("sessions-ended-404",))(
    GivesGetNoStatus=has("Never answers a GET.", do_GET=lambda self: self.wait_until_left())
)


class WantsOneForm(HttpFault):
    """Compares a header as a whole."""

    name: ClassVar[str] = "Accept"
    refused: ClassVar[int] = 406

    def do_POST(self) -> None:  # noqa: N802  (the name in the base class)
        if self.likes(self.header(self.name) or ""):
            super().do_POST()
        else:
            with self.refusing():
                raise Refusal(self.refused, -32600, f"{self.name} is not the usual one")

    def likes(self, value: str) -> bool:
        """Whether it takes a value of the header."""
        return value == "application/json, text/event-stream"


mutants("endpoint-accept-forms", of=WantsOneForm)(
    WantsOneAccept="Wants the header Accept as clients mostly write it.",
    TakesTypesInOneOrder=has(
        "Wants both types in one order.",
        MODERN,
        likes=lambda self, value: "text/event-stream" in value.partition("application/json")[2],
    ),
)
mutants("endpoint-accept-forms", of=WantsOneForm, outcome="warn")(
    ReadsNoWeights=has(
        "Takes a type with a weight for another type.",
        likes=lambda self, value: (
            {"application/json", "text/event-stream"} <= {one.strip() for one in value.split(",")}
        ),
    )
)
mutants("endpoint-accept-forms", "lifecycle-initialize-response", of=WantsOneForm)(
    AcceptsJsonAlone=has(
        "Refuses each request that accepts a stream, too.",
        likes=lambda self, value: value == "application/json",
    )
)
mutants("endpoint-content-type-forms", of=WantsOneForm)(
    WantsOneContentType=has(
        "Wants the header Content-Type without a parameter.",
        name="Content-Type",
        refused=415,
        likes=lambda self, value: value == "application/json",
    )
)
mutants("endpoint-chunked-request", of=HttpFault)(
    TakesChunksForNothing=has(
        "Answers a body in chunks like an empty one.",
        answering=lambda self, status, body, extra: (400 if status == 411 else status, body, extra),
    )
)


@mutant("endpoint-kept-connection", revision=LEGACY)
class LeavesRefusedBodies(HttpFault):
    """Leaves the body of a refused request on the connection."""

    leaves: bool = False

    def refuse(self, refusal: Refusal) -> None:
        self.leaves = True
        self.answer(refusal.status, refusal.body(), refusal.headers)

    def handle_one_request(self) -> None:
        self.leaves = False
        super().handle_one_request()
        if self.leaves and self.command:
            self.close_connection = False


class NamesNoMethods(WithoutHandshake):
    """Has no header Allow."""

    def send_header(self, keyword: str, value: str) -> None:
        if keyword != "Allow":
            super().send_header(keyword, value)


mutants("endpoint-allow-header", of=NamesNoMethods, revision=MODERN)(
    RefusesMethodsWithoutAllow="Answers GET by 405 without Allow."
)
mutants("endpoint-removed-methods", of=WithoutHandshake, revision=MODERN)(
    AnswersGetWith400=has(
        "Has no handshake, and answers GET by 400.", do_GET=lambda self: self.answer(400)
    )
)


class RefusesOneMethod(HttpFault):
    """Refuses one removed method with another status or another code."""

    method: ClassVar[str] = "ping"
    refusal: ClassVar[tuple[int, bytes]] = (200, b"-32601")

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        if status != 404 or b'"%s"' % self.method.encode() not in self.received:
            return status, body, extra
        return self.refusal[0], body.replace(b"-32601", self.refusal[1]), extra


mutants("endpoint-unknown-method-404", of=RefusesOneMethod, revision=MODERN)(
    AnswersRemovedPingsWith200="Sends the error about ping with 200.",
    AnswersRemovedLevelsAsInvalid=has(
        "Sends another error about logging/setLevel.",
        method="logging/setLevel",
        refusal=(404, b"-32600"),
    ),
    AnswersHiddenPromptsWith200=has(
        "Offers no prompts, and sends the error about their list with 200.",
        behind="OffersNoPrompts",
        method="prompts/list",
    ),
    AnswersHiddenPromptWith200=has(
        "Offers no prompts, and sends the error about one with 200.",
        behind="OffersNoPrompts",
        method="prompts/get",
    ),
)


@control(revision=MODERN)
class OffersNoPrompts(Fault):
    """Offers no prompts."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if isinstance(message, dict) and str(message.get("method")).startswith("prompts/"):
            self.refuse(message, -32601, "Method not found")
            return None
        return line

    def said(self, message: Any, request: Json) -> Out:
        if isinstance(message, dict) and "result" in message:
            message["result"].get("capabilities", {}).pop("prompts", None)
        return message  # type: ignore[no-any-return]


@mutant("endpoint-missing-meta-400", revision=MODERN)
class AnswersAMissingMetaWith422(WithoutHandshake):
    """Answers a request without _meta, and no other, by 422."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        bare = self.command == "POST" and b'"_meta"' not in self.received
        return (422 if status == 400 and bare else status), body, extra


mutants("endpoint-missing-capability-400", of=RefusesWithoutCapabilities, revision=MODERN)(
    AnswersAMissingCapabilityWith200=has(
        "Sends the error about a missing capability with 200.",
        answering=lambda self, status, body, extra: (
            (200 if b"-32021" in body else status),
            body,
            extra,
        ),
    )
)
