"""HTTP servers that break a rule of http/endpoint."""

from typing import ClassVar

from tests.mutants.http_kit import Extra, HttpFault, WithoutHandshake
from tests.mutants.kit import LEGACY, MODERN, control, mutant

BATCHES = "2025-03-26"
ERROR = b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"Not wanted"}}'


@control(
    "endpoint-notification-accepted",
    "endpoint-response-accepted",
    "endpoint-request-content-type",
    "endpoint-get-stream-or-405",
    revision=LEGACY,
)
class EndpointWithSessions(HttpFault):
    """Keeps every rule on the endpoint with sessions."""


@control("endpoint-batch-accepted", revision=BATCHES)
class EndpointWithBatches(HttpFault):
    """Accepts batches of notifications."""


@control(
    "endpoint-removed-methods",
    "endpoint-unknown-method-404",
    "endpoint-missing-meta-400",
    "sessions-none-minted",
    "sessions-header-ignored",
    "sessions-last-event-id-ignored",
    revision=MODERN,
)
class EndpointWithoutSessions(WithoutHandshake):
    """Keeps every rule on the endpoint without sessions."""


@control("endpoint-missing-capability-400", revision=MODERN)
class RefusesWithoutCapabilities(HttpFault):
    """Refuses a call that needs a capability which the client lacks."""

    behind: ClassVar[str] = "ElicitsOnlyIfDeclared"


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


@mutant("endpoint-notification-accepted", revision=MODERN)
class AcceptsNotificationsWithABody(HttpFault):
    """Answers a notification by 202 with a text."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        return status, (b"Accepted" if status == 202 else body), extra


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
        return (200 if batch else status), body, extra


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


@mutant("endpoint-get-stream-or-405", revision=LEGACY)
class AnswersGetWith404(HttpFault):
    """Answers GET by 404."""

    def do_GET(self) -> None:  # noqa: N802  (the name in the base class)
        self.answer(404)


@mutant("endpoint-get-stream-or-405", revision="2025-03-26")
class AnswersGetWithAPage(HttpFault):
    """Answers GET by a web page."""

    def do_GET(self) -> None:  # noqa: N802  (the name in the base class)
        with self.refusing():
            self._session()
            self.answer(200, b"{}")


@mutant("endpoint-removed-methods", revision=MODERN)
class AnswersGetWith400(WithoutHandshake):
    """Has no handshake, and answers GET by 400."""

    def do_GET(self) -> None:  # noqa: N802  (the name in the base class)
        self.answer(400)


@mutant("endpoint-unknown-method-404", revision=MODERN)
class AnswersUnknownMethodsWith200(HttpFault):
    """Sends the error about an unknown method with 200."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        return (200 if b"-32601" in body else status), body, extra


@mutant("endpoint-missing-meta-400", revision=MODERN)
class AnswersAnIncompleteMetaWith200(HttpFault):
    """Sends the error about an incomplete _meta with 200."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        return (200 if b"-32602" in body else status), body, extra


@mutant("endpoint-missing-capability-400", revision=MODERN)
class AnswersAMissingCapabilityWith200(RefusesWithoutCapabilities):
    """Sends the error about a missing capability with 200."""

    def answering(self, status: int, body: bytes, extra: Extra) -> tuple[int, bytes, Extra]:
        return (200 if b"-32021" in body else status), body, extra
