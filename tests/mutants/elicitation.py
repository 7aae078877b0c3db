"""Servers that break a rule of client/elicitation in a session."""

import os
from typing import Any, ClassVar

from tests.mutants.asking import Asks
from tests.mutants.kit import AskingTool, Json, control, mutant, notifies
from tests.mutants.schema_requests import CHOICES, LINK, formed

ELICIT = "elicitation/create"
COMPLETED = "notifications/elicitation/complete"
WHO: Json = {**formed(who={"type": "string"})}
WHO["requestedSchema"]["required"] = ["who"]


class Elicits(Asks):
    """A tool that elicits input if the client can, and waits for the answer.

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
class ElicitsCorrectly(Elicits):
    """Elicits a form with every kind of field, and handles every answer correctly."""

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
class ElicitsCorrectlyInTheFirstRevision(Elicits):
    """Elicits a form of the first revision with elicitation."""

    asks: ClassVar[list[Json]] = [
        formed(
            mail={"type": "string", "format": "email", "default": 7},
            sure={"type": "boolean", "default": True},
        )
    ]


class _Links(Elicits):
    """Elicits a visit of a URL, and announces its completion."""

    asks: ClassVar[list[Json]] = [LINK]

    def on_answer(self, request: Json, message: Json) -> None:
        self.complete(LINK["elicitationId"])
        super().on_answer(request, message)

    def complete(self, own: str) -> None:
        """Report that an elicitation is complete."""
        self.emit({"jsonrpc": "2.0", "method": COMPLETED, "params": {"elicitationId": own}})


@control(
    "elicitation-url-params-2025-11-25",
    "elicitation-url-valid",
    "elicitation-url-https",
    "elicitation-url-no-sensitive-data",
    "elicitation-complete-known-id",
    "elicitation-id-unique",
    "elicitation-mode-supported",
)
class LinksCorrectly(_Links):
    """Elicits visits of two URLs, one of them on this machine."""

    asks: ClassVar[list[Json]] = [
        LINK,
        {**LINK, "elicitationId": "f", "url": "http://localhost:8080/?state=0123"},
    ]


class _Requires(AskingTool):
    """Refuses a client in URL mode with an error that lists URLs."""

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
class RequiresAUrl(_Requires):
    """Answers that the user has to visit a URL first."""


# --- whom it asks


@mutant("elicitation-not-in-revision", revision="2025-03-26")
class ElicitsBeforeElicitation(Elicits):
    """Elicits from a client with sampling in a revision without elicitation."""

    def able(self, method: str, params: Json) -> bool:
        del method, params
        return "sampling" in self.client and "elicitation" not in self.client

    def on_answer(self, request: Json, message: Json) -> None:
        del message
        self.rest[request["id"]] = []
        self.go_on(request)


@mutant("elicitation-mode-supported")
class LinksWithoutUrlMode(_Links):
    """Elicits a visit of a URL from every client with elicitation."""

    def able(self, method: str, params: Json) -> bool:
        del method, params
        return "elicitation" in self.client


@mutant("elicitation-mode-supported")
class ElicitsFormsWithoutFormMode(Elicits):
    """Elicits a form from every client with elicitation."""

    def able(self, method: str, params: Json) -> bool:
        del method, params
        return "elicitation" in self.client


@mutant("elicitation-mode-supported", outcome="note")
class RequiresAUrlOfEveryClient(_Requires):
    """Answers every client that the user has to visit a URL first."""

    def able(self) -> bool:
        return True


# --- the form


@mutant("elicitation-form-params-shape", revision="2025-06-18")
class ElicitsWithoutAMessage(Elicits):
    """Elicits a form without a message."""

    asks: ClassVar[list[Json]] = [{"requestedSchema": WHO["requestedSchema"]}]


@mutant("elicitation-form-params-shape")
class ElicitsInAnUnknownMode(Elicits):
    """Elicits in an undefined mode."""

    asks: ClassVar[list[Json]] = [{**WHO, "mode": "popup"}]

    def able(self, method: str, params: Json) -> bool:
        return super().able(method, {**params, "mode": "form"})


@mutant("elicitation-form-params-shape")
class ElicitsAnArray(Elicits):
    """Elicits a form that is not an object."""

    asks: ClassVar[list[Json]] = [
        {"message": "?", "requestedSchema": {"type": "array", "properties": {}}}
    ]


@mutant("elicitation-form-schema-primitive-2025-06-18", revision="2025-06-18")
class ElicitsSeveralChoicesTooEarly(Elicits):
    """Elicits several choices in a revision without such fields."""

    asks: ClassVar[list[Json]] = [formed(some=CHOICES["some"])]


@mutant("elicitation-form-schema-primitive")
class ElicitsAListOfTexts(Elicits):
    """Elicits a list of free texts."""

    asks: ClassVar[list[Json]] = [formed(tags={"type": "array", "items": {"type": "string"}})]


@mutant("elicitation-form-schema-primitive")
class ElicitsAUnion(Elicits):
    """Gives a field a union type."""

    asks: ClassVar[list[Json]] = [formed(who={"anyOf": [{"type": "string"}, {"type": "null"}]})]


@mutant("elicitation-string-format", revision="2025-06-18")
class ElicitsAnUnknownFormat(Elicits):
    """Elicits a string in an undefined format, with an enum."""

    asks: ClassVar[list[Json]] = [
        formed(
            phone={"type": "string", "format": "phone"},
            kind={"type": "string", "format": "kind", "enum": ["home", "work"]},
        )
    ]


@mutant("elicitation-default-types")
class GivesANullDefault(Elicits):
    """Gives a text field the default null."""

    asks: ClassVar[list[Json]] = [formed(who={"type": "string", "default": None})]


@mutant("elicitation-default-types", revision="2025-06-18")
class GivesATextDefaultForABoolean(Elicits):
    """Gives a boolean field a text as its default."""

    asks: ClassVar[list[Json]] = [formed(sure={"type": "boolean", "default": "yes"})]


@mutant("elicitation-default-types", outcome="warn")
class GivesADefaultOutsideTheOptions(Elicits):
    """Gives a choice a default that is not an option."""

    asks: ClassVar[list[Json]] = [formed(one={**CHOICES["one"], "default": "z"})]


@mutant("elicitation-default-types", outcome="warn")
class GivesDefaultsOutsideTheOptions(Elicits):
    """Gives a multiple choice a default that is not an option."""

    asks: ClassVar[list[Json]] = [formed(some={**CHOICES["some"], "default": ["a", "z"]})]


@mutant("elicitation-default-types", outcome="warn")
class GivesADefaultAboveTheMaximum(Elicits):
    """Gives a number field a default above its maximum."""

    asks: ClassVar[list[Json]] = [formed(size={"type": "number", "maximum": 5, "default": 6})]


@mutant("elicitation-default-types", outcome="warn")
class GivesAFractionalDefaultForAnInteger(Elicits):
    """Gives an integer field a fraction as its default."""

    asks: ClassVar[list[Json]] = [formed(size={"type": "integer", "default": 0.5})]


@mutant("elicitation-no-sensitive-information-2025-06-18", revision="2025-06-18")
class ElicitsAPassword(Elicits):
    """Elicits a password."""

    asks: ClassVar[list[Json]] = [formed(userPassword={"type": "string"})]


@mutant("elicitation-form-no-credentials")
class ElicitsAKey(Elicits):
    """Elicits an API key under a harmless name."""

    asks: ClassVar[list[Json]] = [formed(value={"type": "string", "title": "Your API key"})]


@mutant("elicitation-form-no-clickable-urls")
class WritesAUrlIntoAForm(Elicits):
    """Puts a URL into the description of a field."""

    asks: ClassVar[list[Json]] = [
        formed(code={"type": "string", "description": "See https://a.example/code"})
    ]


# --- the URL


@mutant("elicitation-url-valid")
class LinksToAPathInAForm(_Links):
    """Gives a path as the URL of an elicitation."""

    asks: ClassVar[list[Json]] = [{**LINK, "url": "/sign-in"}]


@mutant("elicitation-url-valid")
class LinksToNoHost(_Links):
    """Gives a URL without a host."""

    asks: ClassVar[list[Json]] = [{**LINK, "url": "https:///sign-in"}]


@mutant("elicitation-url-https")
class LinksWithoutHttps(_Links):
    """Gives an http URL of another machine."""

    asks: ClassVar[list[Json]] = [{**LINK, "url": "http://a.example/"}]


@mutant("elicitation-url-no-sensitive-data")
class LinksWithAPassword(_Links):
    """Gives a URL with a user and a password."""

    asks: ClassVar[list[Json]] = [{**LINK, "url": "https://user:pass@a.example/"}]


@mutant("elicitation-url-no-sensitive-data")
class LinksWithItsCredential(_Links):
    """Gives a URL with the credential of the server."""

    def __init__(self) -> None:
        super().__init__()
        secret = os.environ.get("MCP_TOUCHSTONE_API_KEY", "")
        self.link = {**LINK, "url": f"https://a.example/?id={secret}"}

    def questions(self) -> list[tuple[str, Json]]:
        return [(ELICIT, self.link)]


@mutant("elicitation-url-no-sensitive-data", outcome="note")
class LinksWithAToken(_Links):
    """Gives a URL with a parameter named token."""

    asks: ClassVar[list[Json]] = [{**LINK, "url": "https://a.example/?token=1"}]


@mutant("elicitation-id-unique")
class LinksUnderOneId(_Links):
    """Gives two URLs the same elicitationId."""

    asks: ClassVar[list[Json]] = [LINK, {**LINK, "url": "https://b.example/"}]


@mutant("elicitation-url-required-error-only-when-required")
class RequiresNoUrl(_Requires):
    """Answers with error -32042 and an empty list."""

    listed: ClassVar[list[Json]] = []


@mutant("elicitation-url-required-error-shape")
class RequiresAForm(_Requires):
    """Lists a form among the required URLs."""

    listed: ClassVar[list[Json]] = [LINK, {**WHO, "elicitationId": "g"}]


@mutant("elicitation-complete-known-id")
class CompletesAnUnknownElicitation(_Links):
    """Announces the completion of an unknown elicitation."""

    def complete(self, own: str) -> None:
        super().complete(f"{own}-other")


@mutant("elicitation-complete-known-id", outcome="warn")
class CompletesAnEarlierElicitation(_Links):
    """Announces the completion of an elicitation of an earlier process, before it elicits."""

    def heard(self, line: bytes, message: Any) -> bytes | None:
        if notifies(message) and message["method"] == "notifications/initialized":
            self.complete("of-an-earlier-process")
        return super().heard(line, message)


@mutant("elicitation-complete-known-id")
class CompletesWithoutAnId(_Links):
    """Announces a completion without an elicitationId."""

    def complete(self, own: str) -> None:
        del own
        self.emit({"jsonrpc": "2.0", "method": COMPLETED, "params": {}})


# --- the answer


@mutant("elicitation-handles-refusal-legacy")
class HangsWhenDeclined(Elicits):
    """Never answers a call whose elicitation was declined."""

    def on_answer(self, request: Json, message: Json) -> None:
        if message.get("result", {}).get("action") != "decline":
            super().on_answer(request, message)


@mutant("elicitation-handles-refusal-legacy", revision="2025-06-18")
class HangsWhenDismissed(Elicits):
    """Never answers a call whose elicitation was dismissed."""

    def on_answer(self, request: Json, message: Json) -> None:
        if message.get("result", {}).get("action") != "cancel":
            super().on_answer(request, message)


@mutant("elicitation-handles-refusal-legacy")
class HangsOnAnError(Elicits):
    """Never answers a call whose elicitation got an error."""

    def on_answer(self, request: Json, message: Json) -> None:
        if "error" not in message:
            super().on_answer(request, message)


@mutant("elicitation-validates-content", revision="2025-06-18")
class AcceptsAnIncompleteForm(Elicits):
    """Accepts a form without a required field."""

    def fits(self, answer: Json, asked: Json) -> bool:
        asked = {**asked, "requestedSchema": {}}
        return "content" in answer and super().fits(answer, asked)


@mutant("elicitation-validates-content")
class AcceptsAnyType(Elicits):
    """Accepts a form with values of any type."""

    def fits(self, answer: Json, asked: Json) -> bool:
        del asked
        return "who" in answer.get("content", {})


@mutant("elicitation-validates-content")
class AcceptsConsentWithoutContent(Elicits):
    """Accepts consent without the content of the form."""

    def fits(self, answer: Json, asked: Json) -> bool:
        return "content" not in answer or super().fits(answer, asked)
