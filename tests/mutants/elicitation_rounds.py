"""Servers that break a rule of questions/elicitation in stateless requests."""

from typing import ClassVar

from tests.mutants.asking import FORM, Interrupts, elicits
from tests.mutants.kit import (
    MODERN,
    Json,
    client_capabilities,
    control,
    controls,
    has,
    mutant,
    mutants,
    params,
)

COMPLETED = "notifications/elicitation/complete"
LINK: Json = {
    "method": "elicitation/create",
    "params": {"mode": "url", "message": "Sign in", "url": "https://a.example/"},
}


class _Links(Interrupts, asks={"who": LINK}):
    """Elicits a visit of a URL if the client can."""

    def able(self, request: Json) -> bool:
        return elicits(client_capabilities(request), "url")


controls(
    "elicitation-url-params",
    "elicitation-url-valid",
    "elicitation-url-https",
    "elicitation-url-no-sensitive-data",
    "elicitation-mode-supported",
    of=_Links,
    revision=MODERN,
)(LinksInARound="Elicits a visit of a URL, only from clients in URL mode.")


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


mutants("elicitation-mode-supported", of=_Links, revision=MODERN)(
    LinksInEveryRound=has(
        "Elicits a visit of a URL from every client with elicitation.",
        able=lambda self, request: "elicitation" in client_capabilities(request),
    )
)
mutants("elicitation-mode-supported", of=Interrupts, revision=MODERN)(
    FormsInEveryRound=has(
        "Elicits a form from every client with elicitation.",
        able=lambda self, request: "elicitation" in client_capabilities(request),
    )
)
mutants("elicitation-url-params", of=_Links, revision=MODERN)(
    LinksWithoutAUrl=has(
        "Elicits a visit of a URL without giving it.",
        asks={
            "who": {"method": "elicitation/create", "params": {"mode": "url", "message": "Sign in"}}
        },
    )
)
mutants("elicitation-url-valid", of=_Links, revision=MODERN)(
    LinksToAWord=has(
        "Gives a word as the URL of an elicitation.",
        asks={"who": {**LINK, "params": {**LINK["params"], "url": "somewhere else"}}},
    )
)


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


mutants("elicitation-validates-content", of=Interrupts, revision=MODERN)(
    AcceptsAnyContent=has(
        "Accepts a form with any content.", asks={"who": FORM}, fits=lambda *_: True
    )
)
