"""Servers that break a rule of client/elicitation in stateless requests."""

from typing import ClassVar

from tests.mutants.asking import FORM, Interrupts, elicits
from tests.mutants.kit import MODERN, Json, client_capabilities, control, mutant, params

COMPLETED = "notifications/elicitation/complete"
LINK: Json = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Sign in", "url": "https://a.example/"},
}


class _Links(Interrupts):
    """Elicits a visit of a URL if the client can."""

    asks: ClassVar[Json] = {"who": LINK}

    def able(self, request: Json) -> bool:
        return elicits(client_capabilities(request), "url")


@control(
    "elicitation-url-params",
    "elicitation-url-valid",
    "elicitation-url-https",
    "elicitation-url-no-sensitive-data",
    "elicitation-mode-supported",
    revision=MODERN,
)
class LinksInARound(_Links):
    """Elicits a visit of a URL, only from clients in URL mode."""


@control(
    "elicitation-string-format",
    "elicitation-handles-refusal",
    "elicitation-mode-supported",
    revision=MODERN,
)
class FormsInARound(Interrupts):
    """Elicits an address, and handles every answer correctly."""

    asks: ClassVar[Json] = {
        "who": {
            "method": "elicitation/create",
            "params": {
                "message": "Whom?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"mail": {"type": "string", "format": "email"}},
                },
            },
        }
    }


@mutant("elicitation-mode-supported", revision=MODERN)
class LinksInEveryRound(_Links):
    """Elicits a visit of a URL from every client with elicitation."""

    def able(self, request: Json) -> bool:
        return "elicitation" in client_capabilities(request)


@mutant("elicitation-mode-supported", revision=MODERN)
class FormsInEveryRound(Interrupts):
    """Elicits a form from every client with elicitation."""

    def able(self, request: Json) -> bool:
        return "elicitation" in client_capabilities(request)


@mutant("elicitation-url-params", revision=MODERN)
class LinksWithoutAUrl(_Links):
    """Elicits a visit of a URL without giving it."""

    asks: ClassVar[Json] = {
        "who": {"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in"}}
    }


@mutant("elicitation-url-valid", revision=MODERN)
class LinksToAWord(_Links):
    """Gives a word as the URL of an elicitation."""

    asks: ClassVar[Json] = {
        "who": {**LINK, "params": {**LINK["params"], "url": "somewhere else"}},
    }


@mutant("elicitation-complete-removed", revision=MODERN)
class SendsTheRemovedCompletion(_Links):
    """Announces the completion of a stateless elicitation."""

    def finish(self, request: Json) -> None:
        body = {"elicitationId": "e"}
        self.emit({"jsonrpc": "2.0", "method": COMPLETED, "params": body})
        super().finish(request)


@mutant("elicitation-handles-refusal", revision=MODERN)
class HangsWhenTheUserDeclines(Interrupts):
    """Never answers a retry in which the user declined."""

    def finish(self, request: Json) -> None:
        if params(request)["inputResponses"]["who"].get("action") != "decline":
            super().finish(request)


@mutant("elicitation-handles-refusal", revision=MODERN)
class HangsWithoutResponses(Interrupts):
    """Never answers a retry without responses."""

    def missing(self, request: Json) -> None:
        pass


@mutant("elicitation-validates-content", revision=MODERN)
class AcceptsAnyContent(Interrupts):
    """Accepts a form with any content."""

    asks: ClassVar[Json] = {"who": FORM}

    def fits(self, response: Json) -> bool:
        del response
        return True
