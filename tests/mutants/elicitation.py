"""Servers that break a rule of client/elicitation in a session."""

import os
from typing import ClassVar

from tests.mutants.asking import Asks
from tests.mutants.kit import AskingTool, Json, control, mutant
from tests.mutants.schema_requests import CHOICES, LINK, formed

ELICIT = "elicitation/create"
COMPLETED = "notifications/elicitation/complete"
WHO: Json = {**formed(who={"type": "string"})}
WHO["requestedSchema"]["required"] = ["who"]


class Elicits(Asks):
    """A tool that asks the user something and waits, if the client can do that.

    Attributes:
        asks: the params of what it asks, one after the other.
    """

    asks: ClassVar[list[Json]] = [WHO]

    def questions(self) -> list[tuple[str, Json]]:
        return [(ELICIT, one) for one in self.asks]


@control(
    "elicitation-validates-content",
    "elicitation-handles-refusal-legacy",
    "elicitation-string-format",
    "elicitation-default-types",
    "elicitation-form-no-credentials",
)
class ElicitsWell(Elicits):
    """Asks for a form of every kind of field, and takes every answer as it should."""

    asks: ClassVar[list[Json]] = [
        {
            "message": "Who is it for?",
            "requestedSchema": {
                "type": "object",
                "required": ["who"],
                "properties": {
                    "who": {"type": "string", "minLength": 1},
                    "mail": {"type": "string", "format": "email", "default": "user@example.com"},
                    "size": {"type": "integer", "minimum": 1, "maximum": 5, "default": 5},
                    **CHOICES,
                },
            },
        }
    ]


@control("elicitation-string-format", "elicitation-default-types", revision="2025-06-18")
class ElicitsWellAtFirst(Elicits):
    """Asks for a form of the first revision that has any."""

    asks: ClassVar[list[Json]] = [
        formed(
            mail={"type": "string", "format": "email", "default": 7},
            sure={"type": "boolean", "default": True},
        )
    ]


class _Links(Elicits):
    """Sends the user to a URL, and says so when that is done."""

    asks: ClassVar[list[Json]] = [LINK]

    def on_answer(self, request: Json, message: Json) -> None:
        self.complete(LINK["elicitationId"])
        super().on_answer(request, message)

    def complete(self, own: str) -> None:
        """Tell that an elicitation is complete."""
        self.tell({"jsonrpc": "2.0", "method": COMPLETED, "params": {"elicitationId": own}})


@control(
    "elicitation-url-params-2025-11-25",
    "elicitation-url-valid",
    "elicitation-url-https",
    "elicitation-url-no-sensitive-data",
    "elicitation-complete-known-id",
    "elicitation-id-unique",
    "elicitation-mode-supported",
)
class LinksWell(_Links):
    """Sends the user to two places, one of them on this machine."""

    asks: ClassVar[list[Json]] = [
        LINK,
        {**LINK, "elicitationId": "f", "url": "http://localhost:8080/?state=0123"},
    ]


class _Requires(AskingTool):
    """Answers a client that can open URLs with an error that lists some."""

    listed: ClassVar[list[Json]] = [LINK]

    def on_ask(self, request: Json) -> None:
        if self.able():
            self.refuse(request, -32042, "Sign in first", {"elicitations": self.listed})
        else:
            super().on_ask(request)

    def able(self) -> bool:
        """Whether the client can open a URL."""
        return "url" in self.client.get("elicitation", {})


@control(
    "elicitation-url-required-error-shape", "elicitation-url-required-error-only-when-required"
)
class RequiresALink(_Requires):
    """Answers that the user has to visit a URL first."""


# --- whom it asks


@mutant("elicitation-not-in-revision", revision="2025-03-26")
class ElicitsTooEarly(Elicits):
    """Elicits in a revision that has no elicitation, from whoever can sample."""

    def able(self, method: str, params: Json) -> bool:
        del method, params
        return "sampling" in self.client and "elicitation" not in self.client

    def on_answer(self, request: Json, message: Json) -> None:
        del message
        self.rest[request["id"]] = []
        self.go_on(request)


@mutant("elicitation-mode-supported")
class LinksWhoeverElicits(_Links):
    """Sends the user of every client that elicits to a URL."""

    def able(self, method: str, params: Json) -> bool:
        del method, params
        return "elicitation" in self.client


@mutant("elicitation-mode-supported")
class FormsForWhoeverElicits(Elicits):
    """Shows a form on every client that elicits."""

    def able(self, method: str, params: Json) -> bool:
        del method, params
        return "elicitation" in self.client


@mutant("elicitation-mode-supported", outcome="note")
class RequiresALinkOfAnybody(_Requires):
    """Answers every client that the user has to visit a URL first."""

    def able(self) -> bool:
        return True


# --- the form


@mutant("elicitation-form-params-shape", revision="2025-06-18")
class AsksWithoutAWord(Elicits):
    """Shows a form without a message."""

    asks: ClassVar[list[Json]] = [{"requestedSchema": WHO["requestedSchema"]}]


@mutant("elicitation-form-params-shape")
class AsksInAPopup(Elicits):
    """Names a mode that there is not."""

    asks: ClassVar[list[Json]] = [{**WHO, "mode": "popup"}]

    def able(self, method: str, params: Json) -> bool:
        return super().able(method, {**params, "mode": "form"})


@mutant("elicitation-form-params-shape")
class AsksForAnArray(Elicits):
    """Shows a form that is no object."""

    asks: ClassVar[list[Json]] = [
        {"message": "?", "requestedSchema": {"type": "array", "properties": {}}}
    ]


@mutant("elicitation-form-schema-primitive-2025-06-18", revision="2025-06-18")
class AsksForSeveralTooEarly(Elicits):
    """Asks for several choices in a revision that has no such field."""

    asks: ClassVar[list[Json]] = [formed(some=CHOICES["some"])]


@mutant("elicitation-form-schema-primitive")
class AsksForAnyNumberOfTexts(Elicits):
    """Asks for a list of texts of the user's own."""

    asks: ClassVar[list[Json]] = [formed(tags={"type": "array", "items": {"type": "string"}})]


@mutant("elicitation-form-schema-primitive")
class AsksForTextOrNothing(Elicits):
    """Leaves the type of a field to a union."""

    asks: ClassVar[list[Json]] = [formed(who={"anyOf": [{"type": "string"}, {"type": "null"}]})]


@mutant("elicitation-string-format", revision="2025-06-18")
class AsksForAPhoneNumber(Elicits):
    """Asks for a string in a format that forms do not have, beside an enum that may."""

    asks: ClassVar[list[Json]] = [
        formed(
            phone={"type": "string", "format": "phone"},
            kind={"type": "string", "format": "kind", "enum": ["home", "work"]},
        )
    ]


@mutant("elicitation-default-types")
class FillsInNothing(Elicits):
    """Fills a text in with null."""

    asks: ClassVar[list[Json]] = [formed(who={"type": "string", "default": None})]


@mutant("elicitation-default-types", revision="2025-06-18")
class FillsInAWordForYes(Elicits):
    """Fills a boolean in with a word."""

    asks: ClassVar[list[Json]] = [formed(sure={"type": "boolean", "default": "yes"})]


@mutant("elicitation-default-types", outcome="warn")
class FillsInWhatIsNoOption(Elicits):
    """Fills a choice in with what cannot be chosen."""

    asks: ClassVar[list[Json]] = [formed(one={**CHOICES["one"], "default": "z"})]


@mutant("elicitation-default-types", outcome="warn")
class FillsInWhatIsNoOptionOfMany(Elicits):
    """Fills several choices in, one of which cannot be chosen."""

    asks: ClassVar[list[Json]] = [formed(some={**CHOICES["some"], "default": ["a", "z"]})]


@mutant("elicitation-default-types", outcome="warn")
class FillsInTooMuch(Elicits):
    """Fills a number in that is too large."""

    asks: ClassVar[list[Json]] = [formed(size={"type": "number", "maximum": 5, "default": 6})]


@mutant("elicitation-default-types", outcome="warn")
class FillsInAFraction(Elicits):
    """Fills a whole number in with a fraction."""

    asks: ClassVar[list[Json]] = [formed(size={"type": "integer", "default": 0.5})]


@mutant("elicitation-no-sensitive-information-2025-06-18", revision="2025-06-18")
class AsksForAPassword(Elicits):
    """Asks for a password."""

    asks: ClassVar[list[Json]] = [formed(userPassword={"type": "string"})]


@mutant("elicitation-form-no-credentials")
class AsksForAKey(Elicits):
    """Asks for an API key under a harmless name."""

    asks: ClassVar[list[Json]] = [formed(value={"type": "string", "title": "Your API key"})]


@mutant("elicitation-form-no-clickable-urls")
class WritesALinkIntoAForm(Elicits):
    """Gives a URL in the description of a field."""

    asks: ClassVar[list[Json]] = [
        formed(code={"type": "string", "description": "See https://a.example/code"})
    ]


# --- the URL


@mutant("elicitation-url-valid")
class SendsTheUserToAPath(_Links):
    """Sends the user to a path."""

    asks: ClassVar[list[Json]] = [{**LINK, "url": "/sign-in"}]


@mutant("elicitation-url-valid")
class LinksToNoHost(_Links):
    """Sends the user to no host."""

    asks: ClassVar[list[Json]] = [{**LINK, "url": "https:///sign-in"}]


@mutant("elicitation-url-https")
class LinksInTheClear(_Links):
    """Sends the user over the net in the clear."""

    asks: ClassVar[list[Json]] = [{**LINK, "url": "http://a.example/"}]


@mutant("elicitation-url-no-sensitive-data")
class LinksWithAPassword(_Links):
    """Gives a user and a password in a URL."""

    asks: ClassVar[list[Json]] = [{**LINK, "url": "https://user:pass@a.example/"}]


@mutant("elicitation-url-no-sensitive-data")
class LinksWithItsCredential(_Links):
    """Gives the credential of the server in a URL."""

    def __init__(self) -> None:
        super().__init__()
        secret = os.environ.get("MCP_TOUCHSTONE_API_KEY", "")
        self.link = {**LINK, "url": f"https://a.example/?id={secret}"}

    def questions(self) -> list[tuple[str, Json]]:
        return [(ELICIT, self.link)]


@mutant("elicitation-url-no-sensitive-data", outcome="note")
class LinksWithAToken(_Links):
    """Gives something called a token in a URL."""

    asks: ClassVar[list[Json]] = [{**LINK, "url": "https://a.example/?token=1"}]


@mutant("elicitation-id-unique")
class LinksUnderOneId(_Links):
    """Sends the user to two places under one id."""

    asks: ClassVar[list[Json]] = [LINK, {**LINK, "url": "https://b.example/"}]


@mutant("elicitation-url-required-error-only-when-required")
class RequiresNothing(_Requires):
    """Answers that the user has to visit none of no URLs."""

    listed: ClassVar[list[Json]] = []


@mutant("elicitation-url-required-error-shape")
class RequiresAForm(_Requires):
    """Lists a form among the URLs to visit."""

    listed: ClassVar[list[Json]] = [LINK, {**WHO, "elicitationId": "g"}]


@mutant("elicitation-complete-known-id")
class CompletesAnother(_Links):
    """Tells of the completion of what it never asked."""

    def complete(self, own: str) -> None:
        super().complete(f"{own}-other")


@mutant("elicitation-complete-known-id")
class CompletesNobody(_Links):
    """Tells of a completion, and not of which."""

    def complete(self, own: str) -> None:
        del own
        self.tell({"jsonrpc": "2.0", "method": COMPLETED, "params": {}})


# --- the answer


@mutant("elicitation-handles-refusal-legacy")
class HangsWhenDeclined(Elicits):
    """Never answers a call whose question was declined."""

    def on_answer(self, request: Json, message: Json) -> None:
        if message.get("result", {}).get("action") != "decline":
            super().on_answer(request, message)


@mutant("elicitation-handles-refusal-legacy", revision="2025-06-18")
class HangsWhenDismissed(Elicits):
    """Never answers a call whose question was dismissed."""

    def on_answer(self, request: Json, message: Json) -> None:
        if message.get("result", {}).get("action") != "cancel":
            super().on_answer(request, message)


@mutant("elicitation-handles-refusal-legacy")
class HangsOnAnError(Elicits):
    """Never answers a call whose question got an error."""

    def on_answer(self, request: Json, message: Json) -> None:
        if "error" not in message:
            super().on_answer(request, message)


@mutant("elicitation-validates-content", revision="2025-06-18")
class TakesHalfAForm(Elicits):
    """Takes a form without what it requires."""

    def fits(self, answer: Json, asked: Json) -> bool:
        asked = {**asked, "requestedSchema": {}}
        return "content" in answer and super().fits(answer, asked)


@mutant("elicitation-validates-content")
class TakesAnyValue(Elicits):
    """Takes a form with values of any type."""

    def fits(self, answer: Json, asked: Json) -> bool:
        del asked
        return "who" in answer.get("content", {})


@mutant("elicitation-validates-content")
class TakesConsentWithoutAForm(Elicits):
    """Takes consent for a form that was not filled in."""

    def fits(self, answer: Json, asked: Json) -> bool:
        return "content" not in answer or super().fits(answer, asked)
