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
    """Sends the user to a URL, if the client can do that."""

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
    """Sends the user to a URL, and asks nobody who cannot open one."""


@control(
    "elicitation-string-format",
    "elicitation-handles-refusal",
    "elicitation-mode-supported",
    revision=MODERN,
)
class FormsInARound(Interrupts):
    """Asks for an address, and takes every answer as it should."""

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
    """Sends the user of every client that elicits to a URL."""

    def able(self, request: Json) -> bool:
        return "elicitation" in client_capabilities(request)


@mutant("elicitation-mode-supported", revision=MODERN)
class FormsInEveryRound(Interrupts):
    """Shows a form on every client that elicits."""

    def able(self, request: Json) -> bool:
        return "elicitation" in client_capabilities(request)


@mutant("elicitation-url-params", revision=MODERN)
class LinksNowhere(_Links):
    """Sends the user to a URL without giving it."""

    asks: ClassVar[Json] = {
        "who": {"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in"}}
    }


@mutant("elicitation-url-valid", revision=MODERN)
class LinksToAWord(_Links):
    """Sends the user to a word."""

    asks: ClassVar[Json] = {
        "who": {**LINK, "params": {**LINK["params"], "url": "somewhere else"}},
    }


@mutant("elicitation-complete-removed", revision=MODERN)
class CompletesAsItDid(_Links):
    """Tells of the completion of a round."""

    def finish(self, request: Json) -> None:
        body = {"elicitationId": "e"}
        self.tell({"jsonrpc": "2.0", "method": COMPLETED, "params": body})
        super().finish(request)


@mutant("elicitation-handles-refusal", revision=MODERN)
class HangsWhenTheUserDeclines(Interrupts):
    """Never answers a retry that brings a no."""

    def finish(self, request: Json) -> None:
        if params(request)["inputResponses"]["who"].get("action") != "decline":
            super().finish(request)


@mutant("elicitation-handles-refusal", revision=MODERN)
class HangsWithoutAnAnswer(Interrupts):
    """Never answers a retry that brings nothing."""

    def missing(self, request: Json) -> None:
        pass


@mutant("elicitation-validates-content", revision=MODERN)
class TakesAnyForm(Interrupts):
    """Takes a form however it was filled in."""

    asks: ClassVar[Json] = {"who": FORM}

    def fits(self, response: Json) -> bool:
        del response
        return True
